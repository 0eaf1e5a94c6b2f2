"""Faults on a real two-node Ray cluster: workers, nodes and drivers that go, tasks that hang, nodes that do not fit.

Run by `make test-ray`. Every run must end with the bytes of the run in one process.
"""

import os
import signal
import subprocess
import sys
import threading
import time
from functools import partial
from pathlib import Path

import pytest

import certiseg as cs
from certiseg.runs.evaluate import evaluate_dataset
from certiseg.runs.folder import RunFolder
from certiseg.runs.progress import Progress
from certiseg.runs.ray import RayPool
from certiseg.runs.settings import EngineSettings
from tests.runs.cluster import Cluster
from tests.runs.small import Images, build, hashes, manifest_of, node_build, plain_run, slow
from tests.runs.test_measured import ALONG

IMAGES = 6
DRAWS = IMAGES * 105
PLAIN = {"sigmas": (0.1,)}


@pytest.fixture
def cluster():
    started = Cluster()
    try:
        yield started
    finally:
        started.close()


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    """The hashes of the run in one process."""
    images = Images(IMAGES)
    return plain_run(tmp_path_factory.mktemp("here"), images, manifest_of(images, **PLAIN))


class Watched(Progress):
    """Calls watch(engine, draws) after each task."""

    def __init__(self, engine, watch):
        super().__init__()
        self.engine, self.watch = engine, watch

    def drew(self, draws):
        super().drew(draws)
        self.watch(self.engine, draws)


def run(cluster, path, build=build, *, watch=None, changes=None, **options):
    """The run on the cluster, watched with its engine after each task; returns the engine, closed."""
    images = Images(IMAGES)
    manifest = manifest_of(images, **PLAIN | (changes or {}))
    engine = RayPool(build, manifest, EngineSettings(engine="ray", address=cluster.address, **options))
    progress = Watched(engine, watch or (lambda *_: None))
    try:
        assert evaluate_dataset(RunFolder(path), manifest, images, engine=engine, progress=progress) == {}
    finally:
        engine.close()
    return engine


def test_a_killed_and_a_hanging_worker_change_no_byte(cluster, expected, tmp_path):
    cluster.add_node()
    cluster.wait_for(2)
    trouble = tmp_path / "trouble"
    trouble.mkdir()
    (trouble / "kill").touch()
    (trouble / "hang").touch()
    engine = run(cluster, tmp_path / "run", partial(build, trouble=str(trouble)), timeout=20.0)
    assert list(trouble.iterdir()) == []
    assert sum(engine.losses.values()) >= 2
    assert sum(engine.places.values()) == DRAWS
    assert hashes(tmp_path / "run") == expected


STOPS = {"settings": ((200, 0.75), (200, 0.6)), "test": "anytime", "stop_undecided": 0.05}


@pytest.mark.parametrize("draws_per_task", [None, 11])
def test_images_that_stop_early_end_at_the_same_draw_whoever_is_killed(cluster, draws_per_task, tmp_path):
    images = Images(IMAGES)
    expected = plain_run(tmp_path / "here", images, manifest_of(images, sigmas=(0.1,), **STOPS))
    ends = {RunFolder(tmp_path / "here").draws(name)[0.1] for name in images.names}
    assert max(ends) < 200
    assert len(ends) > 1
    cluster.add_node()
    cluster.wait_for(2)
    trouble = tmp_path / "trouble"
    trouble.mkdir()
    (trouble / "kill").touch()
    (trouble / "hang").touch()
    faulty = partial(build, trouble=str(trouble), pause=0.02)
    engine = run(cluster, tmp_path / "run", faulty, changes=STOPS, timeout=20.0, draws_per_task=draws_per_task)
    assert list(trouble.iterdir()) == []
    assert sum(engine.losses.values()) >= 2
    assert hashes(tmp_path / "run") == expected
    least = sum(RunFolder(tmp_path / "here").drawn(name) for name in images.names)
    assert least <= sum(engine.places.values()) < least + 32 * IMAGES, "at most a block of each image is drawn in vain"


def test_a_node_that_leaves_and_one_that_joins_change_no_byte(cluster, expected, tmp_path):
    node = cluster.add_node()
    cluster.wait_for(2)

    def watch(engine, draws):
        if len(engine.places) == 2 and node in cluster.nodes:  # both have made draws
            cluster.end(node)
            cluster.add_node(number=4)

    engine = run(cluster, tmp_path / "run", slow, watch=watch, draws_per_task=20)
    assert node not in cluster.nodes
    assert sum(engine.places.values()) == DRAWS
    assert sum(engine.losses.values()) >= 1
    assert hashes(tmp_path / "run") == expected


DRIVER = """
import sys
from functools import partial
from pathlib import Path
sys.path.insert(0, {root!r})
from tests.runs import ray_faults as f
class There: address = {address!r}
watch = lambda engine, k: print("draws", k, flush=True)
f.run(There, Path({path!r}), f.slow, watch=watch, changes=f.{asked}, draws_per_task=20)
"""


def kill_drivers(cluster, path, asked, after=(3, 6)):
    """Start the run so often, each time in a process that is killed after so many tasks."""
    root = str(Path(__file__).parents[2])
    code = DRIVER.format(root=root, address=cluster.address, path=str(path), asked=asked)
    for lines in after:
        with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as driver:
            for number, _ in enumerate(driver.stdout):
                if number == lines:
                    driver.send_signal(signal.SIGKILL)
                    break
    assert list((path / "partial").rglob("*.npz")) or list((path / "rows").iterdir())


def test_a_killed_driver_goes_on_with_the_ranges_it_had(cluster, expected, tmp_path):
    cluster.add_node()
    cluster.wait_for(2)
    kill_drivers(cluster, tmp_path / "run", "PLAIN")
    seen = []
    engine = run(cluster, tmp_path / "run", slow, watch=lambda _, draws: seen.append(draws), draws_per_task=20)
    assert 0 < sum(engine.places.values()) < DRAWS
    assert sum(seen) == sum(engine.places.values())  # what was found is not drawn again
    assert hashes(tmp_path / "run") == expected


def test_measures_along_a_threat_survive_workers_drivers_and_nodes_that_go(cluster, tmp_path):
    """Objects, kept maps, two anchors: first a worker and two drivers are killed, then a node leaves."""
    images = Images(IMAGES)
    expected = plain_run(tmp_path / "here", images, manifest_of(images, **ALONG))
    node = cluster.add_node()
    cluster.wait_for(2)
    trouble = tmp_path / "trouble"
    trouble.mkdir()
    (trouble / "kill").touch()
    engine = run(cluster, tmp_path / "worker", partial(build, trouble=str(trouble)), changes=ALONG)
    assert list(trouble.iterdir()) == []
    assert sum(engine.losses.values()) >= 1
    assert hashes(tmp_path / "worker") == expected

    kill_drivers(cluster, tmp_path / "driver", "ALONG")

    def watch(engine, draws):
        if len(engine.places) == 2 and node in cluster.nodes:
            cluster.end(node)

    engine = run(cluster, tmp_path / "driver", slow, watch=watch, changes=ALONG, draws_per_task=20)
    assert node not in cluster.nodes
    assert sum(engine.places.values()) < IMAGES * 2 * 65
    assert hashes(tmp_path / "driver") == expected


def test_nodes_that_do_not_fit_are_one_sentence(cluster, tmp_path):
    sites = {}
    for name, code in (
        ("without", "import sys\nclass No:\n def find_spec(self, name, path=None, target=None):\n"
                    "  if name == 'certiseg': raise ModuleNotFoundError('No module named certiseg')\n"
                    "sys.meta_path.insert(0, No())\n"),
        ("older", "import sys, types\nold = types.ModuleType('certiseg')\nold.__version__ = '0.0.1'\n"
                  "sys.modules['certiseg'] = old\n"),
    ):  # fmt: skip
        (tmp_path / name).mkdir()
        (tmp_path / name / "sitecustomize.py").write_text(code)
        sites[name] = {"PYTHONPATH": str(tmp_path / name)}
    cases = (
        (sites["without"], f"certiseg must be {cs.__version__} as in the manifest, got none; install"),
        (sites["older"], f"certiseg must be {cs.__version__} as in the manifest, got 0.0.1; install"),
        ({"OTHER_WEIGHTS": "1"}, "weights and preparation of the model"),
    )
    for number, (environment, sentence) in enumerate(cases, 3):
        node = cluster.add_node(number, **environment)
        cluster.wait_for(2)
        with pytest.raises(cs.InputError) as caught:
            run(cluster, tmp_path / f"run{number}", node_build, workers=2)
        assert sentence in str(caught.value)
        assert f"127.0.0.{number}" in str(caught.value)
        assert "\n" not in str(caught.value)
        cluster.end(node)


def test_ctrl_c_ends_the_workers_and_leaves_a_folder_to_go_on_with(cluster, expected, tmp_path):
    seen = []

    def interrupt(engine, draws):
        seen.append(draws)
        if len(seen) == 3:
            threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()
            time.sleep(0.2)

    with pytest.raises(KeyboardInterrupt):
        run(cluster, tmp_path / "run", slow, watch=interrupt, draws_per_task=20)
    assert not RunFolder(tmp_path / "run").table_path.exists()
    run(cluster, tmp_path / "run")
    assert hashes(tmp_path / "run") == expected
