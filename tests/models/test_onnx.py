"""ONNX files: the same function as the torch original, and one sentence for each kind of file that is none."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from onnx import TensorProto, helper
from torch import Tensor, nn

import certiseg as cs
from tests.models.tiny import NAMES, SIZE, Labels, TinyNet, assert_certifies, assert_same_function, onnx_file

NET = TinyNet().eval()
EXAMPLE = torch.rand(1, 3, *SIZE)
MEAN, STD = (0.4, 0.5, 0.6), (0.2, 0.3, 0.4)


class ChannelsLast(nn.Module):
    """The network for (B, H, W, 3) images, with the classes last."""

    def __init__(self) -> None:
        super().__init__()
        self.network = NET

    def forward(self, images: Tensor) -> Tensor:
        return self.network(images.permute(0, 3, 1, 2)).permute(0, 2, 3, 1)


def graph_file(path: Path, inputs: list[Any], *, output: Any = None) -> Path:
    """A graph that passes its first input on."""
    source = inputs[0]
    kind = source.type.tensor_type
    shape = [side.dim_value or side.dim_param for side in kind.shape.dim]
    output = output or helper.make_tensor_value_info("y", kind.elem_type, shape)
    node = helper.make_node("Identity", [source.name], ["y"])
    graph = helper.make_graph([node], "g", inputs, [output])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    path.write_bytes(model.SerializeToString())
    return path


def image_input(shape: list[Any], kind: int = TensorProto.FLOAT, name: str = "x") -> Any:
    return helper.make_tensor_value_info(name, kind, shape)


def test_same_function_as_torch(tmp_path: Path) -> None:
    file = onnx_file(tmp_path / "m.onnx", NET, EXAMPLE)
    original = cs.Segmenter(NET, mean=MEAN, std=STD)
    loaded = cs.load_model(file, mean=MEAN, std=STD)
    assert (loaded.backend, loaded.num_classes, loaded.class_names) == ("onnxruntime", len(NAMES), None)
    assert_same_function(loaded, original)
    assert_same_function(loaded, original, (37, 51))


def test_certifies_and_verifies_bit_for_bit(tmp_path: Path) -> None:
    file = str(onnx_file(tmp_path / "m.onnx", NET, EXAMPLE))
    certificate = assert_certifies(cs.load_model(file), tmp_path, again=cs.load_model(file))
    assert certificate.votes.provenance["backend"] == "onnxruntime"


def test_fixed_size_and_batch(tmp_path: Path) -> None:
    file = onnx_file(tmp_path / "m.onnx", NET, EXAMPLE, any_size=False)
    loaded = cs.load_model(str(file))
    assert loaded.settings.input_size == SIZE
    assert_same_function(loaded, cs.Segmenter(NET, input_size=SIZE), (40, 50))
    with pytest.raises(cs.InputError, match=r"input_size must be the model's own, \(24, 32\)"):
        cs.load_model(str(file), input_size=(16, 16))


def test_a_fixed_batch_is_filled_up(tmp_path: Path) -> None:
    file = onnx_file(tmp_path / "m.onnx", NET, EXAMPLE.repeat(2, 1, 1, 1), any_size=False)
    assert_same_function(cs.load_model(str(file)), cs.Segmenter(NET))


def test_channels_last(tmp_path: Path) -> None:
    file = onnx_file(tmp_path / "m.onnx", ChannelsLast(), EXAMPLE.permute(0, 2, 3, 1), any_size=False)
    loaded = cs.load_model(str(file))
    assert (loaded.settings.input_size, loaded.num_classes) == (SIZE, len(NAMES))
    assert_same_function(loaded, cs.Segmenter(NET))


def test_bytes_in_and_labels_out(tmp_path: Path) -> None:
    module = Labels(NET)
    file = onnx_file(tmp_path / "m.onnx", module, (EXAMPLE * 255).to(torch.uint8), any_size=False)
    loaded = cs.load_model(str(file), num_classes=len(NAMES))
    assert loaded.kind == "labels"
    assert loaded.settings.integer_input
    assert_same_function(loaded, cs.Segmenter(module, scores="labels", num_classes=5, integer_input=True))
    assert_certifies(loaded, tmp_path)
    with pytest.raises(cs.InputError, match="num_classes must be given"):
        cs.load_model(str(file))
    with pytest.raises(cs.InputError, match=r"labels in 0..1, got"):
        cs.load_model(str(file), num_classes=2).predict(np.zeros((8, 8, 3), np.uint8) + 90)


def test_labels_take_their_count_from_the_hierarchy(tmp_path: Path) -> None:
    file = onnx_file(tmp_path / "m.onnx", Labels(NET), (EXAMPLE * 255).to(torch.uint8), any_size=False)
    assert cs.load_model(str(file), hierarchy="camvid").num_classes == 31


@pytest.mark.parametrize(
    "note",
    [
        {"classes": json.dumps(NAMES)},
        {"names": str(dict(enumerate(NAMES)))},
        {"names": json.dumps({str(i): name for i, name in enumerate(NAMES)})},
        {"classes": ",".join(NAMES)},
        {"names": "\n".join(NAMES)},
    ],
)
def test_class_names_come_from_the_metadata(tmp_path: Path, note: dict[str, str]) -> None:
    loaded = cs.load_model(str(onnx_file(tmp_path / "m.onnx", NET, EXAMPLE, notes=note)))
    assert loaded.class_names == NAMES


def test_metadata_with_other_names(tmp_path: Path) -> None:
    few = onnx_file(tmp_path / "few.onnx", NET, EXAMPLE, notes={"classes": "road,sky"})
    with pytest.raises(cs.InputError, match=r"few.onnx: class_names must name the 5 classes, got 2"):
        cs.load_model(str(few))
    gap = onnx_file(tmp_path / "gap.onnx", NET, EXAMPLE, notes={"names": "{0: 'road', 2: 'sky'}"})
    with pytest.raises(cs.InputError, match="without gaps"):
        cs.load_model(str(gap))
    odd = onnx_file(tmp_path / "odd.onnx", NET, EXAMPLE, notes={"names": "[1, 2]"})
    with pytest.raises(cs.InputError, match="class names must be a list"):
        cs.load_model(str(odd))


def test_names_are_matched_with_the_hierarchy(tmp_path: Path) -> None:
    camvid = cs.load_hierarchy("camvid").classes
    net = TinyNet(31)
    right = onnx_file(tmp_path / "right.onnx", net, EXAMPLE, notes={"classes": json.dumps(camvid)})
    assert cs.load_model(str(right)).hierarchy == "camvid"
    permuted = json.dumps([camvid[1], camvid[0], *camvid[2:]])
    wrong = cs.load_model(str(onnx_file(tmp_path / "wrong.onnx", net, EXAMPLE, notes={"classes": permuted})))
    assert wrong.hierarchy is None
    with pytest.raises(cs.InputError, match="in the model's order"):
        cs.load_hierarchy("camvid").require_classes(wrong.class_names or ())


def test_weights_beside_the_file_are_part_of_the_fingerprint(tmp_path: Path) -> None:
    graph = onnx.load(onnx_file(tmp_path / "m.onnx", NET, EXAMPLE))
    file = tmp_path / "outside.onnx"
    onnx.save_model(graph, file, save_as_external_data=True, location="outside.bin", size_threshold=0)
    loaded = cs.load_model(str(file))
    assert_same_function(loaded, cs.Segmenter(NET))
    weights = tmp_path / "outside.bin"
    content = bytearray(weights.read_bytes())
    content[100] ^= 1
    weights.write_bytes(content)
    assert cs.load_model(str(file)).fingerprint() != loaded.fingerprint()


def test_threads_follow_torch(tmp_path: Path) -> None:
    loaded: Any = cs.load_model(str(onnx_file(tmp_path / "m.onnx", NET, EXAMPLE)))
    loaded(EXAMPLE)
    assert loaded.model._threads == torch.get_num_threads()


def test_several_outputs(tmp_path: Path) -> None:
    two = helper.make_graph(
        [helper.make_node("Identity", ["x"], ["a"]), helper.make_node("Neg", ["x"], ["b"])],
        "g",
        [image_input(["n", 3, "h", "w"])],
        [image_input(["n", 3, "h", "w"], name="a"), image_input(["n", 3, "h", "w"], name="b")],
    )
    file = tmp_path / "two.onnx"
    file.write_bytes(
        helper.make_model(two, ir_version=8, opset_imports=[helper.make_opsetid("", 17)]).SerializeToString()
    )
    with pytest.raises(cs.InputError, match="must have one output, got a, b; choose one"):
        cs.load_model(str(file))
    with pytest.raises(cs.InputError, match="output must be one of a, b, got 'c'"):
        cs.load_model(str(file), output="c")
    images = torch.rand(1, 3, 4, 4)
    assert torch.equal(cs.load_model(str(file), output="b")(images).values, -images)


@pytest.mark.parametrize(
    "inputs, message",
    [
        ([image_input([1, 3, 8])], r"shape \(B, channels, H, W\) or \(B, H, W, channels\), got x \(1, 3, 8\) float32"),
        ([image_input([1, 80, 80, 80])], "1 to 64 channels"),
        ([image_input([1, 3, 8, "w"])], "both height and width open"),
        ([image_input([1, 3, 8, 8], TensorProto.INT64)], "floats or bytes .* got x .* int64"),
        ([image_input([1, 3, 8, 8], TensorProto.STRING)], "floats or bytes"),
        ([image_input([1, 3, 8, 8]), image_input([1], name="z")], "one input, the image, got x .*, z"),
    ],
)
def test_inputs_that_are_no_image(tmp_path: Path, inputs: list[Any], message: str) -> None:
    with pytest.raises(cs.InputError, match=message):
        cs.load_model(str(graph_file(tmp_path / "m.onnx", inputs)))


def test_outputs_that_are_no_scores(tmp_path: Path) -> None:
    bytes_out = graph_file(tmp_path / "bytes.onnx", [image_input([1, 3, 8, 8], TensorProto.UINT8)])
    with pytest.raises(cs.InputError, match="must hold floats, or labels"):
        cs.load_model(str(bytes_out))
    flat = helper.make_graph(
        [helper.make_node("Flatten", ["x"], ["y"])], "g", [image_input([1, 3, 8, 8])], [image_input([1, 192], name="y")]
    )
    file = tmp_path / "flat.onnx"
    file.write_bytes(
        helper.make_model(flat, ir_version=8, opset_imports=[helper.make_opsetid("", 17)]).SerializeToString()
    )
    with pytest.raises(cs.InputError, match=r"output must have the shape .* got y \(1, 192\)"):
        cs.load_model(str(file))


def test_wrong_class_count(tmp_path: Path) -> None:
    file = str(onnx_file(tmp_path / "m.onnx", NET, EXAMPLE))
    with pytest.raises(cs.InputError, match="scores of 19 classes, got scores"):
        cs.load_model(file, num_classes=19)


def test_files_that_are_no_model(tmp_path: Path) -> None:
    whole = onnx_file(tmp_path / "m.onnx", NET, EXAMPLE).read_bytes()
    for name, content in {"truncated": whole[: len(whole) // 2], "text": b"not a model at all"}.items():
        file = tmp_path / f"{name}.onnx"
        file.write_bytes(content)
        with pytest.raises(cs.InputError, match="must be an ONNX model that onnxruntime can load") as caught:
            cs.load_model(str(file))
        assert "\n" not in str(caught.value)
    (tmp_path / "names.onnx").write_bytes(whole.replace(b"image", b"im\xffge"))
    with pytest.raises(cs.InputError, match=r"names.onnx: must be"):
        cs.load_model(tmp_path / "names.onnx")
    (tmp_path / "empty.onnx").touch()
    with pytest.raises(cs.InputError, match="got an empty file"):
        cs.load_model(str(tmp_path / "empty.onnx"))
    with pytest.raises(cs.InputError, match="which is missing"):
        cs.load_model(str(tmp_path / "none.onnx"))


def test_unknown_options_are_refused(tmp_path: Path) -> None:
    file = str(onnx_file(tmp_path / "m.onnx", NET, EXAMPLE))
    with pytest.raises(cs.InputError, match="got 'meen'"):
        cs.load_model(file, meen=MEAN)
