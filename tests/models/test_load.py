"""load_model: every form that a user may type, and one sentence for every other."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import certiseg as cs
from certiseg.models import load
from certiseg.models.compact import WEIGHTS, compact
from certiseg.models.specs import respecified, split_spec
from tests.models.tiny import NAMES, SIZE, TinyNet, assert_certifies, assert_same_function, onnx_file

NET = TinyNet().eval()


@pytest.mark.parametrize("spec", ["", "nonsense", "hf:", "hrnet-w48", "hrnet-w48:", "compact:", "model.h5", None, 3])
def test_unknown_specs_list_the_known_ones(spec: Any) -> None:
    with pytest.raises(cs.InputError, match=r"hrnet-w48:WEIGHTS.pth.*hf:FOLDER") as caught:
        cs.load_model(spec)
    assert "\n" not in str(caught.value)


def test_hints_for_near_misses(tmp_path: Path) -> None:
    with pytest.raises(cs.InputError, match="write hf:"):
        cs.load_model(str(tmp_path))
    with pytest.raises(cs.InputError, match="weights alone are no model"):
        cs.load_model("best.pth")


@pytest.mark.skipif(not WEIGHTS.is_file(), reason="the weights do not ship yet")
def test_compact_knows_its_classes() -> None:
    model = cs.load_model("compact")
    assert (model.name, model.hierarchy, model.num_classes) == ("compact", "camvid", 31)
    assert model.class_names == cs.load_hierarchy("camvid").classes


def test_compact_with_weights_of_a_training_run(tmp_path: Path) -> None:
    from certiseg.training.checkpoint import save_weights

    network = compact(len(NAMES)).eval()
    save_weights(tmp_path / "best.safetensors", network, classes=NAMES)
    loaded = cs.load_model(f"compact:{tmp_path / 'best.safetensors'}")
    assert loaded.class_names == NAMES
    assert_same_function(loaded, cs.Segmenter(network), (32, 40))
    (tmp_path / "text.safetensors").write_text("no weights")
    with pytest.raises(cs.InputError, match="must be an intact, readable PyTorch or safetensors file"):
        cs.load_model(f"compact:{tmp_path / 'text.safetensors'}")
    with pytest.raises(cs.InputError, match=r"weights must be a file, got .* missing"):
        cs.load_model("compact:nowhere.safetensors")


class FakeHRNet(nn.Module):
    """Stands for the network, with the layer that its class count is read from."""

    def __init__(self, classes: int) -> None:
        super().__init__()
        self.last_layer = nn.ModuleDict({"3": nn.Conv2d(3, classes, 1)})

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return self.last_layer["3"](images)


@pytest.mark.parametrize(
    "classes, preset", [(19, "cityscapes"), (59, "pascal_context"), (171, "coco_stuff"), (7, None)]
)
def test_hrnet_takes_its_hierarchy_by_class_count(
    monkeypatch: pytest.MonkeyPatch, classes: int, preset: str | None
) -> None:
    asked = {}

    def load_hrnet(path: str, *, ocr: bool, num_classes: int | None, align_corners: bool) -> nn.Module:
        asked.update(path=path, ocr=ocr, num_classes=num_classes, align_corners=align_corners)
        return FakeHRNet(classes)

    monkeypatch.setattr(load, "load_hrnet", load_hrnet)
    model = cs.load_model("hrnet-w48-ocr:weights.pth")
    assert asked == {"path": "weights.pth", "ocr": True, "num_classes": None, "align_corners": True}
    assert model.name == "hrnet-w48-ocr:weights.pth?align_corners=true"
    assert (model.num_classes, model.hierarchy, model.class_names) == (classes, preset, None)
    assert model.settings.align_corners
    assert model.settings.mean == (0.485, 0.456, 0.406)
    plain = cs.load_model("hrnet-w48:weights.pth")
    assert (asked["ocr"], asked["align_corners"], plain.settings.align_corners) == (False, False, False)
    other = cs.load_model("hrnet-w48:weights.pth?align_corners=true")
    assert (asked["align_corners"], other.settings.align_corners) == (True, True)
    assert other.name == "hrnet-w48:weights.pth?align_corners=true"
    assert other.fingerprint() != plain.fingerprint()


class Malice:
    """A pickle that writes a file when it is loaded."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return os.mkdir, (str(self.path),)


@pytest.mark.parametrize("spec", ["hrnet-w48", "hrnet-w48-ocr"])
def test_malicious_and_truncated_weights(tmp_path: Path, spec: str) -> None:
    evil = tmp_path / "evil.pth"
    evil.write_bytes(pickle.dumps({"state_dict": Malice(tmp_path / "ran")}))
    with pytest.raises(cs.InputError, match=r"was not run|damaged"):
        cs.load_model(f"{spec}:{evil}")
    torch.save({"state_dict": Malice(tmp_path / "ran")}, evil)
    with pytest.raises(cs.InputError, match=r"was not run|damaged"):
        cs.load_model(f"{spec}:{evil}")
    assert not (tmp_path / "ran").exists()
    torch.save(NET.state_dict(), tmp_path / "other.pth")
    whole = (tmp_path / "other.pth").read_bytes()
    (tmp_path / "half.pth").write_bytes(whole[: len(whole) // 2])
    for name in ("half.pth", "other.pth", "none.pth"):
        with pytest.raises(cs.InputError):
            cs.load_model(f"{spec}:{tmp_path / name}")


def scripted(path: Path) -> Path:
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.jit.save(torch.jit.trace(NET, torch.rand(1, 3, *SIZE)), path)
    return path


def exported(path: Path, *, any_size: bool) -> Path:
    dynamic = torch.export.Dim.DYNAMIC
    shapes = ({0: dynamic, 2: dynamic, 3: dynamic},) if any_size else None
    example = torch.rand(2 if any_size else 1, 3, *SIZE)
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.export.save(torch.export.export(NET, (example,), dynamic_shapes=shapes), path)
    return path


def test_programs_need_trust(tmp_path: Path) -> None:
    file = str(scripted(tmp_path / "m.pt"))
    with pytest.raises(cs.InputError, match=r"can run code when they are loaded; .* --trust-model"):
        cs.load_model(file)
    trusted = cs.load_model(file, trust=True)
    assert_same_function(trusted, cs.Segmenter(NET))
    assert_certifies(trusted, tmp_path, again=cs.load_model(file, trust=True))


@pytest.mark.parametrize("any_size", [False, True])
def test_exported_programs(tmp_path: Path, any_size: bool) -> None:
    file = str(exported(tmp_path / "m.pt2", any_size=any_size))
    with pytest.raises(cs.InputError, match="trust"):
        cs.load_model(file)
    trusted = cs.load_model(file, trust=True)
    assert trusted.settings.input_size == (None if any_size else SIZE)
    assert_same_function(trusted, cs.Segmenter(NET))


def test_a_program_that_is_none(tmp_path: Path) -> None:
    for name in ("m.pt", "m.pt2"):
        (tmp_path / name).write_bytes(b"nothing of the kind")
        with pytest.raises(cs.InputError, match=r"must be a TorchScript or torch.export program \(weights alone"):
            cs.load_model(str(tmp_path / name), trust=True)


FACTORIES = """
import certiseg as cs
from tests.models.tiny import NAMES, TinyNet

def net(classes=5):
    return TinyNet(classes)

def whole():
    return cs.Segmenter(TinyNet(), class_names=NAMES, mean=(0.5, 0.5, 0.5))

number = 3
"""


def test_factories(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "some_factories.py").write_text(FACTORIES)
    monkeypatch.syspath_prepend(tmp_path)
    plain = cs.load_model("torch:some_factories:net", classes=7, std=(0.5, 0.5, 0.5))
    assert plain.settings.std == (0.5, 0.5, 0.5)
    assert plain(torch.rand(1, 3, 8, 8)).values.shape[1] == 7
    whole = cs.load_model("torch:some_factories:whole", divisible_by=8)
    assert (whole.class_names, whole.settings.divisible_by) == (NAMES, 8)
    assert whole.settings.mean == (0.5, 0.5, 0.5)
    assert whole.name == "torch:some_factories:whole"
    for spec, message in {
        "torch:some_factories": "torch:package.module:factory",
        "torch:no_such_module:net": "importable",
        "torch:some_factories:nothing": "must have 'nothing'",
        "torch:some_factories:number": "function that returns the model, got int",
    }.items():
        with pytest.raises(cs.InputError, match=message):
            cs.load_model(spec)


@pytest.mark.parametrize(
    "module, loader, extra",
    [
        ("onnxruntime", "m.onnx", "onnx"),
        ("openvino", "m.xml", "openvino"),
        ("ai_edge_litert.interpreter", "m.tflite", "tflite"),
        ("transformers", "hf:folder", "huggingface"),
    ],
)
def test_missing_libraries_name_their_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: str, loader: str, extra: str
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    for name in ("m.onnx", "m.xml", "m.bin", "m.tflite", "folder/model.safetensors"):
        (tmp_path / name).write_bytes(b"\0\0\0\0TFL3")
    (tmp_path / "folder" / "config.json").write_text("{}")
    with pytest.raises(cs.InputError, match=rf"{module}.*pip install \"certiseg\[{extra}\]\""):
        cs.load_model(loader)


def test_loading_imports_no_runtime() -> None:
    code = (
        "import sys, certiseg.models.load, certiseg.models.onnx, certiseg.models.openvino, certiseg.models.tflite, "
        "certiseg.models.huggingface, certiseg.models.backends; "
        "print([m for m in ('onnxruntime', 'onnx', 'openvino', 'ai_edge_litert', 'transformers', 'torchvision') "
        "if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_command_line_says_it_in_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from PIL import Image

    from certiseg.cli import main
    from tests.models.tiny import picture

    Image.fromarray(picture()).save(tmp_path / "a.png")
    file = scripted(tmp_path / "m.pt")
    arguments = ["certify", str(tmp_path / "a.png"), "--model", str(file), "--out", str(tmp_path / "out")]
    assert main(arguments) == 2
    assert "--trust-model" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_every_form_is_documented() -> None:
    page = Path(__file__).resolve().parents[2] / "docs" / "models.md"
    text = page.read_text("utf-8")
    for form in load.SPECS:
        for part in form.replace(" or ", ", ").split(", "):
            assert f"`{part}`" in text, part


def test_onnx_through_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import yaml
    from PIL import Image

    from certiseg.cli import main
    from tests.models.tiny import HIERARCHY, picture

    Image.fromarray(picture()).save(tmp_path / "a.png")
    (tmp_path / "tiny.yaml").write_text(yaml.safe_dump(HIERARCHY))
    file = str(onnx_file(tmp_path / "m.onnx", NET, torch.rand(1, 3, *SIZE)))
    model = ["--model", file, "--mean", "0.5,0.5,0.5", "--std", "0.5,0.5,0.5", "--divisible-by", "8"]
    image, out = str(tmp_path / "a.png"), str(tmp_path / "out")
    more = ["--hierarchy", str(tmp_path / "tiny.yaml"), "-n", "60", "--n0", "4", "--sigma", "0.1", "--out", out]
    assert main(["certify", image, *model, *more]) == 0
    printed = capsys.readouterr().err
    assert "does not name its classes; they are taken in the order of tiny: road, house, tree" in printed
    assert "padded to a multiple of 8" in printed
    assert main(["verify", f"{out}/a.certificate.npz", *model, "--image", image]) == 0
    assert main(["verify", f"{out}/a.certificate.npz", "--model", file, "--image", image]) == 1
    assert "how its input is prepared" in capsys.readouterr().out


@pytest.mark.parametrize(
    "spec, expected",
    [
        ("hrnet-w48:a.pth?align_corners=false", ("hrnet-w48:a.pth", {"align_corners": False})),
        ("m.onnx?mean=0.5,0.5,0.5&window=64x96", ("m.onnx", {"mean": (0.5, 0.5, 0.5), "window": (64, 96)})),
        ("m.onnx?input_size=360&class_names=a,b", ("m.onnx", {"input_size": 360, "class_names": ("a", "b")})),
        ("torch:a.b:c?weights=w.safetensors", ("torch:a.b:c", {"weights": "w.safetensors"})),
        ("what?.onnx", ("what?.onnx", {})),
        ("compact", ("compact", {})),
    ],
)
def test_specs_with_settings(spec: str, expected: tuple[str, dict[str, Any]]) -> None:
    assert split_spec(spec) == expected


@pytest.mark.parametrize(
    "spec, message",
    [
        ("compact?colour=red", "behind the \\?, got 'colour'"),
        ("compact?align_corners=maybe", "align_corners .* must be true or false, got 'maybe'"),
        ("compact?window=large", "window .* must be HxW, got 'large'"),
        ("compact?mean=a,b,c", "mean .* must be R,G,B"),
    ],
)
def test_specs_that_say_something_else(spec: str, message: str) -> None:
    with pytest.raises(cs.InputError, match=message):
        cs.load_model(spec)


def test_a_file_may_have_a_question_mark_in_its_name(tmp_path: Path) -> None:
    odd = tmp_path / "m?window=8x8"
    odd.touch()
    assert split_spec(str(odd)) == (str(odd), {})


def test_weights_of_a_factory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from certiseg.training.checkpoint import save_weights

    (tmp_path / "own_networks.py").write_text(
        "from tests.models.tiny import TinyNet\ndef net(): return TinyNet()\ndef text(): return str.upper\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    torch.manual_seed(5)
    other = TinyNet()
    with torch.no_grad():
        for value in other.parameters():
            value.normal_()
    save_weights(tmp_path / "w.safetensors", other, classes=NAMES, trained_size=[24, 32])
    loaded = cs.load_model(f"torch:own_networks:net?weights={tmp_path / 'w.safetensors'}")
    assert_same_function(loaded, cs.Segmenter(other.eval()))
    assert (loaded.class_names, loaded.settings.trained_size) == (NAMES, (24, 32))
    assert loaded.fingerprint() != cs.load_model("torch:own_networks:net").fingerprint()
    with pytest.raises(cs.InputError, match="weights must be for a torch network"):
        cs.load_model(f"torch:own_networks:text?weights={tmp_path / 'w.safetensors'}")


def test_a_model_may_be_loaded_onto_a_device(tmp_path: Path) -> None:
    assert cs.load_model("compact", device="cpu").device.type == "cpu"
    assert cs.load_model("compact", device="meta").device.type == "meta"
    with pytest.raises(cs.InputError, match="device must be one of this machine"):
        cs.load_model("compact", device="toaster")


def test_images_far_from_what_a_model_was_trained_for_are_pointed_out() -> None:
    model = cs.load_model("compact")
    assert model.settings.trained_size == (360, 480)
    assert model.notes(None, (360, 480)) == []
    assert model.notes(None, (500, 600)) == []
    for size in ((874, 1164), (120, 160)):
        (note,) = model.notes(None, size)
        assert f"{size[0]}x{size[1]}" in note
        assert "--input-size 360" in note
    assert not any("trained" in note for note in model.adjusted(input_size=360).notes(None, (874, 1164)))
    assert model.adjusted(trained_size=None).fingerprint() == model.fingerprint()


def test_a_factory_whose_weights_do_not_fit_says_which(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "import torch\ndef make():\n    torch.nn.Conv2d(3, 4, 1).load_state_dict({'odd': torch.zeros(1)})\n"
    (tmp_path / "weights_that_do_not_fit.py").write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(cs.InputError, match=r'Missing key.* "weight", "bias".*"odd"') as caught:
        cs.load_model("torch:weights_that_do_not_fit:make")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("spec", "said", "found"),
    [
        ("compact", {}, "compact:a.safetensors"),
        (
            "hrnet-w48:city.pth?align_corners=true",
            {"window": (720, 960), "mean": None},
            "hrnet-w48:a.safetensors?align_corners=true&window=720x960",
        ),
        ("hf:lab/net@1234", {"bgr": False, "overlap": 8}, "hf:lab/net@1234?bgr=false&overlap=8&weights=a.safetensors"),
        ("torch:a.b:c?std=2,2&weights=b.pth", {"std": (0.5, 0.1)}, "torch:a.b:c?std=0.5,0.1&weights=a.safetensors"),
    ],
)
def test_a_network_with_other_weights_is_named_with_all_that_was_said(spec: str, said: Any, found: str) -> None:
    assert respecified(spec, "a.safetensors", said) == found
    with pytest.raises(cs.InputError, match=r"no \?, & or ="):
        respecified("torch:a:b", "a&b.pth", {})
