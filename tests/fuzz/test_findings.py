"""What the campaign found, each as a test of its own."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

import certiseg as cs
from certiseg.archive import parse_json, write_archive
from certiseg.cli import main
from certiseg.models.settings import parse_names
from certiseg.models.tensor_io import TensorSpec, image_input
from certiseg.runs.folder import RunFolder
from certiseg.runs.manifest import KIND, load_manifest
from certiseg.runs.sealed import write_sealed
from certiseg.runs.table import write_table
from certiseg.settings import stored
from tests.conftest import random_votes
from tests.runs.test_evaluate import Images, make_manifest


@pytest.mark.parametrize("dtype", ["S3", "f8", "M8[s]"])
def test_snapshots_of_votes_must_be_whole_numbers(dtype):
    votes = random_votes(0, num_classes=3, n=50, size=(2, 3))
    odd = np.zeros(votes.counts.shape).astype(dtype)
    with pytest.raises(cs.InputError, match="add up"):
        replace(votes, snapshots={20: odd})


@pytest.mark.parametrize("settings", [{"input_size": (100_000, 100_000)}, {"divisible_by": 65_535_000}])
def test_a_model_file_cannot_ask_for_an_enormous_input(settings):
    model = cs.Segmenter(lambda images: images, **settings)
    with pytest.raises(cs.InputError, match="at most 100,000,000 pixels"):
        model.predict(np.zeros((8, 8, 3), np.uint8))


@pytest.mark.parametrize(
    "head", [torch.zeros(()), torch.zeros(10**9, 0), torch.zeros(10**9, 0, 1, 1), torch.zeros(70_000, 1, 1, 1)]
)
def test_weights_cannot_ask_for_an_enormous_network(head, tmp_path):
    save_file({"head.weight": head}, tmp_path / "w.safetensors")
    with pytest.raises(cs.InputError, match="must hold this network's weights"):
        cs.load_model(f"compact:{tmp_path / 'w.safetensors'}")


def test_a_model_file_cannot_ask_for_an_enormous_batch():
    with pytest.raises(cs.InputError, match="at most 1,024 images per call"):
        image_input([TensorSpec("image", (2**20, 3, 24, 32), "float32")], "hostile.onnx")


def test_a_factory_that_cannot_be_called_is_one_sentence():
    with pytest.raises(cs.InputError, match=r"torch:os:system: factory must return the model.*TypeError"):
        cs.load_model("torch:os:system")


def test_votes_with_an_infinite_snapshot_are_refused(tmp_path):
    votes = random_votes(0, num_classes=3, n=50, size=(2, 3))
    meta, arrays = votes.pack()
    write_archive(tmp_path / "v.npz", kind="votes", version=1, meta=meta | {"snapshots": [np.inf]}, arrays=arrays)
    with pytest.raises(cs.InputError, match="must hold votes"):
        cs.load_votes(tmp_path / "v.npz")


def test_a_certificate_names_only_vertices_of_its_hierarchy(tmp_path):
    votes = random_votes(0, num_classes=19, n=50, size=(2, 3))
    made = cs.certify(votes, cs.load_hierarchy("cityscapes"), alpha=0.5)
    replace(made, vertex=np.full((2, 3), 400, np.int16)).save(tmp_path / "c.npz")
    with pytest.raises(cs.InputError, match=r"vertex must hold whole numbers in -2\.\."):
        cs.load_certificate(tmp_path / "c.npz")


def test_rows_of_another_kind_are_refused(tmp_path):
    with pytest.raises(cs.InputError, match="rows of images must be as certiseg writes them"):
        write_table(tmp_path / "table.parquet", [[{"image": "a", "flat": {"1": {}}}]], run="")
    assert not (tmp_path / "table.parquet").exists()


@pytest.mark.parametrize(
    "change",
    [{"sigmas": [{}]}, {"alpha": []}, {"n0": float("inf")}, {"methods": [3]}, {"settings": [[100, {}]]}, {"test": []}],
)
def test_a_manifest_of_other_types_is_refused(change, tmp_path):
    manifest, _ = make_manifest(Images(1))
    write_sealed(tmp_path / "manifest.json", KIND, stored(manifest) | change)
    with pytest.raises(cs.InputError, match=r"manifest\.json"):
        load_manifest(tmp_path / "manifest.json")


def test_json_that_is_nested_too_deeply_is_no_json():
    deep = "[" * 100_000
    with pytest.raises(ValueError, match="nested"):
        parse_json(deep)
    assert parse_names("a,b", "notes") == ("a", "b")
    assert parse_names(deep, "notes") == (deep,)


def test_arguments_with_line_breaks_are_one_sentence(capsys):
    with pytest.raises(SystemExit):
        main(["hierarchy", "show", "camvid", "a\nb"])
    assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.parametrize("content", [{}, {"images": []}, {"images": {"elsewhere": "why"}}])
def test_what_was_left_out_must_be_images_of_the_run(content, tmp_path):
    folder = RunFolder(tmp_path, make_manifest(Images(1))[0])
    folder.write_note(folder.left_out_path, "list of images left out", content)
    with pytest.raises(cs.InputError, match="must list images of the run"):
        folder.left_out()
