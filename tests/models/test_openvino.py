"""OpenVINO files: the same function as the torch original."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

import certiseg as cs
from tests.models.tiny import NAMES, SIZE, Labels, TinyNet, assert_certifies, assert_same_function, onnx_file

ov = pytest.importorskip("openvino")

NET = TinyNet().eval()
EXAMPLE = torch.rand(1, 3, *SIZE)


def xml_file(path: Path, module: torch.nn.Module, example: torch.Tensor, *, any_size: bool, labels: str = "") -> Path:
    model = ov.Core().read_model(str(onnx_file(path.with_suffix(".onnx"), module, example, any_size=any_size)))
    if labels:
        model.set_rt_info(labels, ["model_info", "labels"])
    ov.save_model(model, str(path), compress_to_fp16=False)
    return path


def test_same_function_as_torch(tmp_path: Path) -> None:
    file = xml_file(tmp_path / "m.xml", NET, EXAMPLE, any_size=True)
    loaded = cs.load_model(str(file), std=(0.5, 0.5, 0.5))
    original = cs.Segmenter(NET, std=(0.5, 0.5, 0.5))
    assert (loaded.backend, loaded.num_classes) == ("openvino", len(NAMES))
    assert_same_function(loaded, original)
    assert_same_function(loaded, original, (37, 51))


def test_certifies_and_verifies_bit_for_bit(tmp_path: Path) -> None:
    file = str(xml_file(tmp_path / "m.xml", NET, EXAMPLE, any_size=True, labels=" ".join(NAMES)))
    loaded = cs.load_model(file)
    assert loaded.class_names == NAMES
    certificate = assert_certifies(loaded, tmp_path, again=cs.load_model(file))
    assert certificate.votes.provenance["backend"] == "openvino"


def test_fixed_size_bytes_and_labels(tmp_path: Path) -> None:
    module = Labels(NET)
    file = xml_file(tmp_path / "m.xml", module, (EXAMPLE * 255).to(torch.uint8), any_size=False)
    loaded = cs.load_model(str(file), class_names=NAMES)
    assert (loaded.settings.input_size, loaded.settings.integer_input, loaded.kind) == (SIZE, True, "labels")
    assert_same_function(loaded, cs.Segmenter(module, scores="labels", num_classes=5, integer_input=True))


def test_fingerprint_covers_the_weights(tmp_path: Path) -> None:
    one = cs.load_model(str(xml_file(tmp_path / "a.xml", NET, EXAMPLE, any_size=True)))
    other = cs.load_model(str(xml_file(tmp_path / "b.xml", TinyNet(seed=1), EXAMPLE, any_size=True)))
    assert one.fingerprint() != other.fingerprint()


def test_files_that_are_no_model(tmp_path: Path) -> None:
    file = xml_file(tmp_path / "m.xml", NET, EXAMPLE, any_size=True)
    weights = file.with_suffix(".bin")
    content = weights.read_bytes()
    weights.write_bytes(content[: len(content) // 4])
    with pytest.raises(cs.InputError, match="must be a model that OpenVINO can read") as caught:
        cs.load_model(str(file))
    assert "\n" not in str(caught.value)
    weights.unlink()
    with pytest.raises(cs.InputError, match=r"weights beside it, got no m.bin"):
        cs.load_model(str(file))
    weights.write_bytes(content)
    file.write_text("<html></html>")
    with pytest.raises(cs.InputError, match="must be a model that OpenVINO can read"):
        cs.load_model(str(file))
