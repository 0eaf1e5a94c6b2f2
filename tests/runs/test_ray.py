"""A run on a real Ray cluster of two nodes on loopback: the bytes of the local run, and both nodes drew."""

import pytest

import certiseg as cs
from certiseg.runs.evaluate import evaluate_dataset
from certiseg.runs.folder import RunFolder
from certiseg.runs.ray import RayPool
from certiseg.runs.settings import EngineSettings
from tests.runs.small import Images, build, hashes, manifest_of, plain_run

pytest.importorskip("ray")


@pytest.fixture(scope="module")
def cluster():
    from tests.runs.cluster import Cluster

    started = Cluster()
    try:
        started.add_node()
        started.wait_for(2)
        yield started
    finally:
        started.close()


def test_two_nodes_give_the_bytes_of_one_process(cluster, tmp_path):
    images = Images(4, broken=2)
    manifest = manifest_of(images)
    expected = plain_run(tmp_path / "here", images, manifest)
    engine = RayPool(build, manifest, EngineSettings(engine="ray", address=cluster.address, draws_per_task=40))
    try:
        left_out = evaluate_dataset(RunFolder(tmp_path / "ray"), manifest, images, engine=engine)
    finally:
        engine.close()
    assert list(left_out) == ["drive/002"]
    assert hashes(tmp_path / "ray") == expected
    assert {place.split("(")[1].split(")")[0] for place in engine.places} == {"127.0.0.2", "127.0.0.3"}
    assert sum(engine.places.values()) == 3 * len(manifest.sigmas) * (manifest.n0 + 100)


@pytest.mark.parametrize(
    ("address", "sentence"),
    [
        ("127.0.0.2:9", "nobody answers"),
        ("ray://127.0.0.2:9", "nobody answers"),
        ("somewhere", "must be auto, HOST:PORT or ray://HOST:PORT"),
        ("no.such.host.invalid:6379", "nobody answers"),
    ],
)
def test_an_address_where_no_cluster_is_is_one_sentence(address, sentence):
    images = Images(1)
    with pytest.raises(cs.InputError, match=sentence) as caught:
        RayPool(build, manifest_of(images), EngineSettings(engine="ray", address=address))
    assert "\n" not in str(caught.value)
