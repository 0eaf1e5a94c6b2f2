"""TFLite files as phones have them: fixed size, bytes in, labels out; and floats to scores."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest
import torch

import certiseg as cs
from tests.models.tiny import NAMES, SIZE, Labels, TinyNet, assert_certifies, assert_same_function, tflite_file

pytest.importorskip("ai_edge_litert")

NET = TinyNet().eval()


def test_same_scores_as_torch(tmp_path: Path) -> None:
    loaded = cs.load_model(str(tflite_file(tmp_path / "m.tflite", NET, labels=False)))
    assert (loaded.backend, loaded.num_classes, loaded.settings.input_size) == ("litert", len(NAMES), SIZE)
    assert_same_function(loaded, cs.Segmenter(NET, input_size=SIZE))
    assert_same_function(loaded, cs.Segmenter(NET, input_size=SIZE), (40, 50))


def test_bytes_in_labels_out(tmp_path: Path) -> None:
    file = str(tflite_file(tmp_path / "m.tflite", NET, labels=True))
    loaded = cs.load_model(file, class_names=NAMES)
    assert (loaded.kind, loaded.settings.integer_input) == ("labels", True)
    original = cs.Segmenter(Labels(NET), scores="labels", num_classes=5, integer_input=True, input_size=SIZE)
    assert_same_function(loaded, original)
    assert_same_function(loaded, original, (50, 40))
    certificate = assert_certifies(loaded, tmp_path, again=cs.load_model(file, class_names=NAMES))
    assert certificate.votes.provenance["backend"] == "litert"


def test_scores_certify_and_verify(tmp_path: Path) -> None:
    file = str(tflite_file(tmp_path / "m.tflite", NET, labels=False))
    assert_certifies(cs.load_model(file), tmp_path, again=cs.load_model(file))


def test_names_packed_into_the_file(tmp_path: Path) -> None:
    file = tflite_file(tmp_path / "m.tflite", NET, labels=True)
    with zipfile.ZipFile(file, "a") as archive:
        archive.writestr("labelmap.txt", "\n".join(NAMES) + "\n")
    assert cs.load_model(str(file)).class_names == NAMES


def test_labels_need_a_class_count(tmp_path: Path) -> None:
    file = str(tflite_file(tmp_path / "m.tflite", NET, labels=True))
    with pytest.raises(cs.InputError, match=r"m.tflite: num_classes must be given"):
        cs.load_model(file)
    with pytest.raises(cs.InputError, match="mean and std must not be given"):
        cs.load_model(file, num_classes=5, mean=(0.5, 0.5, 0.5))
    with pytest.raises(cs.InputError, match=r"labels in 0..1"):
        cs.load_model(file, num_classes=2)(torch.rand(1, 3, *SIZE))


def test_files_that_are_no_model(tmp_path: Path) -> None:
    whole = tflite_file(tmp_path / "m.tflite", NET, labels=True).read_bytes()
    (tmp_path / "text.tflite").write_bytes(b"this is no flatbuffer")
    with pytest.raises(cs.InputError, match="got a file of another kind"):
        cs.load_model(str(tmp_path / "text.tflite"))
    (tmp_path / "names.tflite").write_bytes(whole.replace(b"image", b"im\xffge"))
    with pytest.raises(cs.InputError, match="names that are no text"):
        cs.load_model(tmp_path / "names.tflite")
    (tmp_path / "half.tflite").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(cs.InputError, match="that LiteRT can load"):
        cs.load_model(str(tmp_path / "half.tflite"))
