"""`make test-wheel`: the wheel holds everything, and works where nothing of the checkout can be seen."""

import importlib.metadata
import os
import signal
import subprocess
import sys
import sysconfig
import urllib.request
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src/certiseg"
LIMIT = 14 << 20
BESIDE = ("streets", "benchmarks", "experiments", "tests")
CUT_OUT = """
from pathlib import Path
from PIL import Image
from certiseg.datasets import open_dataset
for sample in open_dataset("streets", first=4):
    for kind, pixels in (("images", sample.image), ("labels", sample.label)):
        folder = Path("data", kind)
        folder.mkdir(parents=True, exist_ok=True)
        Image.fromarray(pixels[140:188, 200:264]).save(folder / f"{sample.name}.png")
classes = "\\n".join(open_dataset("streets").classes)
Path("data/classes.txt").write_text(classes)
"""
IMAGE, FEW = "data/images/street_00001.png", "--sigma 0.25 -n 60"
WEAK = "--multiples 1 --steps 1 --restarts 1 --samples 1 --draws 60 --few-draws 30"
RUN = "evaluate folder --root data --sigma 0.25 --setting 60:0.75"
COMMANDS = (
    (f"demo --images {IMAGE} -n 60 --out demo", "nested"),
    (f"certify {IMAGE} {FEW} --out out", "certified"),
    ("verify out/street_00001.certificate.npz", "verified"),
    (f"{RUN} --out run", "nested"),
    (f"{RUN} --shard 1/2 --out half-1", ""),
    (f"{RUN} --shard 2/2 --out half-2", ""),
    ("merge half-1 half-2 --out whole", "nested"),
    ("calibrate folder --root data --sigma 0.25 --radius 0 --risk 0.5 --out calibration.json", "true class"),
    (f"certify {IMAGE} --calibration calibration.json --out truth", "classes"),
    ("tune run", "thresholds"),
    ("report run --root data --out run.html", ""),
    (f"attack {IMAGE} {FEW} {WEAK} --out attack.md", ""),
    ("plan --size 48x64", "n"),
    ("hierarchy show camvid", "Pedestrian"),
    ("hierarchy new data/classes.txt --out mine.yaml", ""),
    ("hierarchy check mine.yaml", ""),
    ("train streets --out trained --epochs 1 --steps-per-epoch 1 --batch-size 2 --crop 64 64 --no-tensorboard", ""),
    ("adapt compact --images data/images --sigma 0.25 --out adapted.safetensors", "layers"),
    ("evaluate streets --first 1 --setting 70:0.75 --methods nested --out streets", "nested"),
)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(folder), str(ROOT)]
    subprocess.run(command, check=True, timeout=600)
    (built,) = folder.glob("certiseg-*.whl")
    return built


@pytest.fixture(scope="module")
def clean(wheel, tmp_path_factory):
    """A fresh environment with the wheel; other libraries are seen where the tests have them, certiseg is not."""
    folder = tmp_path_factory.mktemp("clean")
    venv.create(folder / "env", with_pip=True)
    python = folder / "env/bin/python"
    install = [python, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", wheel]
    subprocess.run(install, check=True, timeout=300)
    libraries = sysconfig.get_paths()["purelib"]
    (next((folder / "env").glob("lib/python*/site-packages")) / "libraries.pth").write_text(f"{libraries}\n")
    return folder


def environment():
    """Nothing that leads back to the checkout."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}


def run(clean, *command):
    call = [clean / "env/bin/python", "-P", *command]
    done = subprocess.run(call, cwd=clean, env=environment(), capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, f"{command}: {done.stderr}"
    return done.stdout


def test_every_file_of_the_package_is_inside(wheel):
    inside = set(zipfile.ZipFile(wheel).namelist())
    wanted = {
        f"certiseg/{path.relative_to(SOURCE)}"
        for path in SOURCE.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert wanted >= {
        "certiseg/py.typed",
        "certiseg/presets/camvid.yaml",
        "certiseg/datasets/labels/cityscapes.yaml",
        "certiseg/datasets/scenes/classes.txt",
        "certiseg/datasets/scenes/test/images/street_00001.jpg",
        "certiseg/datasets/scenes/test/labels/street_00001.png",
        "certiseg/datasets/scenes/test/lanes/street_00001.png",
        "certiseg/models/weights/compact.safetensors",
        "certiseg/models/weights/denoiser.safetensors",
    }
    assert wanted <= inside


def test_nothing_else_is_inside(wheel):
    archive = zipfile.ZipFile(wheel)
    names = archive.namelist()
    assert all(name.startswith(("certiseg/", "certiseg-")) for name in names)
    assert not [name for name in names if "__pycache__" in name or name.endswith((".npz", ".nbi", ".nbc"))]
    assert {name.split("/scenes/")[0] for name in names if name.endswith(".jpg")} == {"certiseg/datasets"}
    assert archive.testzip() is None
    assert wheel.stat().st_size <= LIMIT


def test_no_generator_benchmark_or_experiment_is_inside(wheel, clean):
    archive = zipfile.ZipFile(wheel)
    inside = {archive.read(name) for name in archive.namelist() if name.endswith(".py")}
    for folder in BESIDE:
        files = [path for path in (ROOT / folder).rglob("*.py") if path.stat().st_size]
        assert files
        assert not [path for path in files if path.read_bytes() in inside]
        found = run(clean, "-c", f"from importlib.util import find_spec; print(find_spec({folder!r}))")
        assert found.strip() == "None"


def test_the_metadata_asks_for_the_bounds_of_the_project(wheel):
    archive = zipfile.ZipFile(wheel)
    (name,) = (name for name in archive.namelist() if name.endswith("METADATA"))
    text = archive.read(name).decode()
    assert "Requires-Python: >=3.11" in text
    assert "numpy<3,>=1.26" in text


def test_it_is_imported_from_the_wheel(clean):
    place = run(clean, "-c", "import certiseg; print(certiseg.__file__)").strip()
    assert place.startswith(str(clean))


def test_presets_weights_scenes_and_labels_load(clean):
    program = """
import certiseg as cs
from certiseg.datasets import open_dataset
from certiseg.datasets.coding import published_ids
for name in ("cityscapes", "acdc", "pascal_context", "coco_stuff", "camvid"):
    cs.load_hierarchy(name)
published_ids("cityscapes")
scenes = [sample for split in ("test", "val", "train") for sample in open_dataset("streets", split=split)]
print(cs.load_model("compact").num_classes, len(scenes))
"""
    assert run(clean, "-c", program).split() == ["31", "24"]


def test_every_command_works(clean):
    """Each on small cut-outs of the scenes; `view` is asked for its page by a test of its own."""
    run(clean, "-c", CUT_OUT)
    for command, words in COMMANDS:
        assert words in run(clean, "-m", "certiseg", *command.split()), command
    known = run(clean, "-c", "from certiseg.cli import COMMANDS; print(*COMMANDS)").split()
    assert {command.split()[0] for command, _ in COMMANDS} | {"view"} == set(known)


def test_view_shows_its_page(clean):
    call = [clean / "env/bin/certiseg", "view", "run", "--root", "data", "--no-browser", "--port", "0"]
    with subprocess.Popen(call, cwd=clean, env=environment(), stdout=subprocess.PIPE, text=True) as server:
        try:
            address = next(word for line in server.stdout for word in line.split() if word.startswith("http://"))
            with urllib.request.urlopen(address, timeout=60) as answer:
                assert b"<html" in answer.read()
        finally:
            server.send_signal(signal.SIGINT)


def test_the_open_ranges_resolve_and_work(wheel, tmp_path):
    """`pip install certiseg` in an empty environment; torch alone is that of the tests, which came without CUDA."""
    venv.create(tmp_path / "env", with_pip=True)
    python, torch = tmp_path / "env/bin/python", importlib.metadata.version("torch")
    (tmp_path / "torch.txt").write_text(f"torch=={torch}\n")
    install = [python, "-m", "pip", "install", "--quiet", "--no-cache-dir", "-c", tmp_path / "torch.txt", wheel]
    subprocess.run(install, check=True, timeout=550, env=environment())
    run(tmp_path, "-m", "pip", "check")
    run(tmp_path, "-c", CUT_OUT)
    assert "certified" in run(tmp_path, "-m", "certiseg", "certify", IMAGE, *FEW.split(), "--out", "out")
    assert "verified" in run(tmp_path, "-m", "certiseg", "verify", "out/street_00001.certificate.npz")
