"""`make test-wheel`: the wheel holds everything, and works where nothing of the checkout can be seen."""

import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src/certiseg"


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


def run(clean, *command):
    done = subprocess.run(
        [clean / "env/bin/python", "-P", *command], cwd=clean, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_every_file_of_the_package_is_inside(wheel):
    inside = set(zipfile.ZipFile(wheel).namelist())
    wanted = {
        f"certiseg/{path.relative_to(SOURCE)}"
        for path in SOURCE.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert {name for name in wanted if name.endswith((".yaml", ".safetensors", ".json"))} >= {
        "certiseg/presets/camvid.yaml",
        "certiseg/datasets/labels/cityscapes.yaml",
        "certiseg/models/weights/compact.safetensors",
        "certiseg/models/weights/denoiser.safetensors",
        "certiseg/analysis/published.json",
    }
    assert wanted <= inside


def test_nothing_else_is_inside(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    assert all(name.startswith(("certiseg/", "certiseg-")) for name in names)
    assert not [name for name in names if "__pycache__" in name or name.endswith((".npz", ".jpg", ".nbi", ".nbc"))]
    assert zipfile.ZipFile(wheel).testzip() is None
    assert wheel.stat().st_size < 60 << 20


def test_the_metadata_asks_for_the_bounds_of_the_project(wheel):
    archive = zipfile.ZipFile(wheel)
    (name,) = (name for name in archive.namelist() if name.endswith("METADATA"))
    text = archive.read(name).decode()
    assert "Requires-Python: >=3.11" in text
    assert "numpy<3,>=1.26" in text


def test_it_is_imported_from_the_wheel(clean):
    place = run(clean, "-c", "import certiseg; print(certiseg.__file__)").strip()
    assert place.startswith(str(clean))


def test_presets_weights_and_labels_load(clean):
    program = """
import certiseg as cs
from certiseg.datasets.coding import label_table
for name in ("cityscapes", "acdc", "pascal_context", "coco_stuff", "camvid"):
    cs.load_hierarchy(name)
label_table("cityscapes")
print(cs.load_model("compact").num_classes)
"""
    assert run(clean, "-c", program).strip() == "31"


def test_certify_and_verify_work(clean):
    make = "import numpy as np; from PIL import Image; Image.fromarray(np.zeros((32, 40, 3), np.uint8)).save('a.png')"
    run(clean, "-c", make)
    command = ["certiseg", "certify", "a.png", "--sigma", "0.1", "-n", "60", "--out", "out"]
    assert "certified" in run(clean, "-m", *command)
    assert "verified" in run(clean, "-m", "certiseg", "verify", "out/a.certificate.npz")


def test_every_command_has_help(clean):
    script = clean / "env/bin/certiseg"
    done = subprocess.run([script, "--help"], cwd=clean, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0
    assert "certify" in done.stdout
