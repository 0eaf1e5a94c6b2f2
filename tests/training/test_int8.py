"""Eight bits: a file that is certified as what it is, with the instructions that computed it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import certiseg as cs
from certiseg.errors import InputError
from certiseg.models import runtime
from certiseg.models.backends import with_backend
from certiseg.models.export import export_onnx
from certiseg.training import int8
from tests.models.tiny import NAMES, TinyNet, picture

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")
pytest.importorskip("openvino")


def rounded_file(path: Path) -> Path:
    """A tiny network whose input is rounded to 8 bits inside the graph."""
    export_onnx(cs.Segmenter(TinyNet(), class_names=NAMES, hierarchy=None), path)
    model = onnx.load(str(path))
    graph, make = model.graph, onnx.helper.make_node
    name = graph.input[0].name
    for node in graph.node:
        node.input[:] = ["rounded" if held == name else held for held in node.input]
    graph.initializer.append(onnx.helper.make_tensor("scale", onnx.TensorProto.FLOAT, (), [1 / 64]))
    graph.initializer.append(onnx.helper.make_tensor("zero", onnx.TensorProto.INT8, (), [0]))
    graph.node.insert(0, make("DequantizeLinear", ["whole", "scale", "zero"], ["rounded"]))
    graph.node.insert(0, make("QuantizeLinear", [name, "scale", "zero"], ["whole"]))
    path.write_bytes(model.SerializeToString())
    return path


@pytest.mark.parametrize("backend", ["onnxruntime", "openvino"])
def test_the_instructions_stand_in_the_votes_and_are_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, backend: str
) -> None:
    model = with_backend(cs.load_model(rounded_file(tmp_path / "m.onnx")), backend)
    assert model.arithmetic == f"int8 on {runtime.instructions()}"
    votes = cs.sample(model, picture(), sigma=0.2, n0=2, n=60)
    assert votes.provenance["arithmetic"] == model.arithmetic
    file = tmp_path / "certificate.npz"
    cs.certify(votes, method="sets").save(file)
    assert cs.verify(file, model=model, image=picture()).passed
    monkeypatch.setattr(runtime, "instructions", lambda: "abacus")
    told = cs.verify(file, model=model, image=picture())
    assert not told.passed
    assert "int8 on abacus" in str(told)


def test_other_models_say_nothing_of_it(tmp_path: Path) -> None:
    export_onnx(cs.Segmenter(TinyNet()), tmp_path / "m.onnx")
    for model in (cs.Segmenter(TinyNet()), cs.load_model(tmp_path / "m.onnx")):
        assert model.arithmetic is None
        assert "arithmetic" not in cs.sample(model, picture(), sigma=0.2, n0=1, n=1).provenance


def test_without_the_library_it_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "nncf", None)
    with pytest.raises(InputError, match=r"quantising a model needs the library nncf.*certiseg\[int8\]"):
        int8.export_int8(cs.Segmenter(TinyNet()), tmp_path / "m.onnx", [picture()], sigma=0.2)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--out", "m.xml"], r"out must be an \.onnx file, got 'm\.xml'"),
        (["--out", "m.onnx", "--most", "0"], "most must be at least 1, got 0"),
        (["--out", "m.onnx", "--sigma", "0"], "sigma must be a positive number, got 0"),
    ],
)
def test_bad_arguments_are_refused_before_any_work(tmp_path: Path, arguments: list[str], sentence: str) -> None:
    Image.fromarray(np.zeros((8, 8, 3), np.uint8)).save(tmp_path / "a.png")
    with pytest.raises(InputError, match=sentence):
        int8.main(["--images", str(tmp_path), *arguments])


def test_a_quantised_network_certifies(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("nncf", reason="certiseg[int8] is not installed")
    for seed in range(4):
        noise = np.random.default_rng(seed).integers(0, 256, (48, 64, 3)).astype(np.uint8)
        Image.fromarray(noise).save(tmp_path / f"{seed}.png")
    out = tmp_path / "small.onnx"
    assert int8.main(["--images", str(tmp_path), "--most", "2", "--out", str(out)]) == 0
    assert "calibrated on 2 images" in capfd.readouterr().out
    model = with_backend(cs.load_model(out), "openvino")
    assert model.arithmetic is not None
    assert model.class_names == cs.load_model("compact").class_names
    votes = cs.sample(model, tmp_path / "0.png", sigma=0.25, n0=2, n=60)
    cs.certify(votes, cs.load_hierarchy("camvid"), method="sets").save(tmp_path / "certificate.npz")
    assert cs.verify(tmp_path / "certificate.npz", model=model, image=tmp_path / "0.png").passed
