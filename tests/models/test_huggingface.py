"""Hugging Face folders, with a small SegFormer that is built from a config; test_hub.py is about the Hub."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F

import certiseg as cs
from certiseg.models.huggingface import read_processor
from tests.models.tiny import NAMES, SIZE, assert_certifies, assert_same_function, noisy_batch

transformers = pytest.importorskip("transformers")

PROCESSOR = {
    "image_processor_type": "SegformerImageProcessor",
    "do_resize": True,
    "size": {"height": 32, "width": 40},
    "resample": 2,
    "do_rescale": True,
    "rescale_factor": 1 / 255,
    "do_normalize": True,
    "image_mean": [0.485, 0.456, 0.406],
    "image_std": [0.229, 0.224, 0.225],
}


@pytest.fixture(scope="module")
def network() -> Any:
    torch.manual_seed(0)
    config = transformers.SegformerConfig(
        num_encoder_blocks=4,
        depths=[1, 1, 1, 1],
        hidden_sizes=[8, 8, 16, 16],
        num_attention_heads=[1, 1, 2, 2],
        decoder_hidden_size=16,
        id2label=dict(enumerate(NAMES)),
        label2id={name: index for index, name in enumerate(NAMES)},
        initializer_range=0.5,
    )
    return transformers.SegformerForSemanticSegmentation(config).eval()


@pytest.fixture
def folder(network: Any, tmp_path: Path) -> Callable[..., Path]:
    """Write the network with a processor that differs from the usual one as told."""

    def write(name: str = "segformer", **changes: Any) -> Path:
        network.save_pretrained(tmp_path / name)
        processor = {key: value for key, value in {**PROCESSOR, **changes}.items() if value is not None}
        (tmp_path / name / "preprocessor_config.json").write_text(json.dumps(processor))
        return tmp_path / name

    return write


def test_same_function_as_the_network_with_its_processor(network: Any, folder: Callable[..., Path]) -> None:
    loaded = cs.load_model(f"hf:{folder()}")
    assert (loaded.class_names, loaded.num_classes) == (NAMES, len(NAMES))
    images = noisy_batch((48, 60))
    resized = F.interpolate(images, size=(32, 40), mode="bilinear", antialias=True)
    mean, std = (torch.tensor(PROCESSOR[key]).view(1, 3, 1, 1) for key in ("image_mean", "image_std"))
    with torch.inference_mode():
        expected = network(pixel_values=(resized - mean) / std).logits
    found = loaded(images)
    assert float((found.values - expected).abs().max()) < 1e-4
    assert found.labels().shape == (3, 48, 60)


def test_certifies_and_verifies_bit_for_bit(folder: Callable[..., Path], tmp_path: Path) -> None:
    place = folder()
    assert_certifies(cs.load_model(f"hf:{place}"), tmp_path, again=cs.load_model(f"hf:{place}"))


def test_without_resizing_the_image_keeps_its_size(network: Any, folder: Callable[..., Path]) -> None:
    loaded = cs.load_model(f"hf:{folder(do_resize=False, do_normalize=False)}")
    assert loaded.settings.input_size is None
    assert_same_function(loaded, cs.Segmenter(lambda x: network(pixel_values=x)), (40, 48))


def test_processor_numbers_in_terms_of_unit_images(folder: Callable[..., Path]) -> None:
    raw = read_processor(folder(do_rescale=False, image_mean=[123.0, 116.0, 103.0], image_std=[58.0, 57.0, 57.0]))
    assert raw["mean"] == pytest.approx((123 / 255, 116 / 255, 103 / 255))
    assert raw["std"] == pytest.approx((58 / 255, 57 / 255, 57 / 255))
    twice = read_processor(folder(rescale_factor=2 / 255, do_normalize=False))
    assert (twice["mean"], twice["std"]) == ((0, 0, 0), pytest.approx((0.5, 0.5, 0.5)))
    assert read_processor(folder(do_flip_channel_order=True))["bgr"]
    shortest = read_processor(folder(size={"shortest_edge": 32}, resample=3))
    assert (shortest["input_size"], shortest["resize"]) == (32, "bicubic")
    assert read_processor(folder(size=64))["input_size"] == (64, 64)


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"do_center_crop": True, "crop_size": {"height": 16, "width": 16}}, "crops: pixels outside .* no prediction"),
        ({"do_pad": True, "pad_size": {"height": 64, "width": 64}}, "letterboxes; set it to false to certify"),
        ({"do_pad": True, "size_divisor": 32}, "letterboxes"),
        ({"size": {"shortest_edge": 32, "longest_edge": 64}}, "`size` must be height and width"),
        ({"size": {"height": 32, "width": 40}, "keep_aspect_ratio": True}, "`size` must be"),
        ({"do_resize": None}, "`do_resize` must be true or false"),
        ({"resample": 0}, "`resample` must be 2"),
        ({"image_mean": [0.5]}, "mean must be 3 numbers|std must be 1 numbers"),
        ({"image_std": None}, "`image_std` must be numbers, one per channel"),
        ({"size": {"height": -1, "width": 40}}, "input_size must be"),
    ],
)
def test_processors_that_cannot_be_certified(folder: Callable[..., Path], changes: Any, message: str) -> None:
    with pytest.raises(cs.InputError, match=message) as caught:
        cs.load_model(f"hf:{folder(**changes)}")
    assert "\n" not in str(caught.value)


def test_names_that_are_no_names(network: Any, folder: Callable[..., Path]) -> None:
    place = folder()
    config = json.loads((place / "config.json").read_text())
    config["id2label"] = {str(index): f"LABEL_{index}" for index in range(len(NAMES))}
    (place / "config.json").write_text(json.dumps(config))
    assert cs.load_model(f"hf:{place}").class_names is None


def test_names_of_a_preset_choose_it(tmp_path: Path, network: Any, folder: Callable[..., Path]) -> None:
    from certiseg.models.settings import preset_of

    cityscapes = cs.load_hierarchy("cityscapes").classes
    assert preset_of([name.replace(" ", "_").upper() for name in cityscapes]) == "cityscapes"
    assert preset_of(cityscapes[::-1]) is None


def test_folders_that_hold_no_model(tmp_path: Path, folder: Callable[..., Path]) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(cs.InputError, match=r"config.json and model.safetensors, got one without config.json"):
        cs.load_model(f"hf:{tmp_path / 'empty'}")
    with pytest.raises(cs.InputError, match=r"got no folder; .*hf:ORG/NAME"):
        cs.load_model(f"hf:{tmp_path / 'nowhere'}")
    place = folder("no-processor")
    (place / "preprocessor_config.json").unlink()
    with pytest.raises(cs.InputError, match=r"must have a preprocessor_config.json"):
        cs.load_model(f"hf:{place}")
    place = folder("bad-json")
    (place / "preprocessor_config.json").write_text("{")
    with pytest.raises(cs.InputError, match="readable JSON"):
        cs.load_model(f"hf:{place}")
    (place / "preprocessor_config.json").write_text("[]")
    with pytest.raises(cs.InputError, match="must be a JSON object, got list"):
        cs.load_model(f"hf:{place}")


def test_weights_that_are_damaged_or_missing(tmp_path: Path, folder: Callable[..., Path]) -> None:
    from safetensors.torch import load_file, save_file

    place = folder("truncated")
    weights = place / "model.safetensors"
    whole = weights.read_bytes()
    weights.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(cs.InputError, match="must hold a semantic segmentation model"):
        cs.load_model(f"hf:{place}")
    weights.write_bytes(whole)
    tensors = load_file(weights)
    del tensors["decode_head.classifier.weight"]
    save_file(tensors, weights, metadata={"format": "pt"})
    with pytest.raises(cs.InputError, match=r"must hold all weights.*decode_head.classifier.weight"):
        cs.load_model(f"hf:{place}")


def test_pickled_weights_never_run(tmp_path: Path, folder: Callable[..., Path]) -> None:
    place = folder("pickled")
    (place / "model.safetensors").rename(place / "pytorch_model.bin")
    with pytest.raises(cs.InputError, match="as safetensors, got none; other formats can run code"):
        cs.load_model(f"hf:{place}")


def test_code_in_the_folder_never_runs(folder: Callable[..., Path]) -> None:
    place = folder("code")
    config = json.loads((place / "config.json").read_text())
    config["auto_map"] = {"AutoModelForSemanticSegmentation": "evil.Model"}
    (place / "config.json").write_text(json.dumps(config))
    (place / "evil.py").write_text("raise SystemExit('ran')")
    with pytest.raises(cs.InputError, match="`auto_map` must be absent"):
        cs.load_model(f"hf:{place}")


@pytest.mark.parametrize("backend", ["onnxruntime", "openvino"])
def test_other_backends(folder: Callable[..., Path], backend: str) -> None:
    from certiseg.models.backends import with_backend

    loaded = cs.load_model(f"hf:{folder()}")
    assert_same_function(with_backend(loaded, backend, SIZE), loaded)
