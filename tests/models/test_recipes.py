"""The recipes of docs/models.md are the files of examples/models, and they run."""

from __future__ import annotations

import json
import re
import runpy
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from PIL import Image

from tests.models.tiny import NAMES, SIZE, TinyNet, onnx_file, picture, tflite_file

ROOT = Path(__file__).resolve().parents[2]
RECIPES = ROOT / "examples" / "models"
NOT_RUN = {"smp_unet.py", "mmsegmentation.py", "torchvision_deeplab.py"}
"""They need torchvision, which has no CPU build here."""


def blocks() -> dict[str, str]:
    """Code blocks of the page by the file that they come from."""
    text = (ROOT / "docs" / "models.md").read_text("utf-8")
    return dict(re.findall(r"<!-- examples/models/(\S+) -->\n```python\n(.*?)```", text, flags=re.DOTALL))


def test_the_page_shows_every_recipe_word_for_word() -> None:
    assert blocks() == {path.name: path.read_text("utf-8") for path in RECIPES.glob("*.py")}


@pytest.mark.parametrize("name", sorted(NOT_RUN))
def test_recipes_that_are_not_run_compile(name: str) -> None:
    compile((RECIPES / name).read_text("utf-8"), name, "exec")


def prepare_onnx() -> None:
    onnx_file(Path("street.onnx"), TinyNet(31).eval(), torch.rand(1, 3, *SIZE))


def prepare_openvino() -> None:
    openvino = pytest.importorskip("openvino")
    prepare_onnx()
    openvino.save_model(openvino.Core().read_model("street.onnx"), "street.xml", compress_to_fp16=False)


def prepare_tflite() -> None:
    pytest.importorskip("ai_edge_litert")
    tflite_file(Path("street.tflite"), TinyNet(5).eval(), labels=True)


def prepare_huggingface() -> None:
    transformers = pytest.importorskip("transformers")
    config = transformers.SegformerConfig(
        depths=[1, 1, 1, 1],
        hidden_sizes=[8, 8, 16, 16],
        num_attention_heads=[1, 1, 2, 2],
        decoder_hidden_size=16,
        id2label=dict(enumerate(NAMES)),
    )
    transformers.SegformerForSemanticSegmentation(config).save_pretrained("segformer")
    processor = {"do_resize": True, "size": {"height": 32, "width": 32}, "resample": 2, "do_rescale": True}
    processor |= {"image_mean": [0.485, 0.456, 0.406], "image_std": [0.229, 0.224, 0.225]}
    Path("segformer/preprocessor_config.json").write_text(json.dumps(processor))


PREPARED: dict[str, Callable[[], None]] = {
    "torch_module.py": lambda: None,
    "huggingface_folder.py": prepare_huggingface,
    "onnx_file.py": prepare_onnx,
    "openvino_file.py": prepare_openvino,
    "tflite_file.py": prepare_tflite,
    "plain_function.py": lambda: None,
}


def test_no_recipe_is_forgotten() -> None:
    assert set(blocks()) == set(PREPARED) | NOT_RUN


@pytest.mark.parametrize("name", sorted(PREPARED))
def test_recipe(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    torch.manual_seed(0)
    PREPARED[name]()
    Image.fromarray(picture()).save("street.png")
    after = runpy.run_path(str(RECIPES / name))
    assert after["certificate"].votes.n == 100
    assert "With probability at least 0.999" in capsys.readouterr().out
