"""The shipped network: sizes, what it does not see, weights."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save_file

from certiseg.errors import InputError
from certiseg.hierarchy import load_hierarchy
from certiseg.models import compact as module
from certiseg.models.compact import (
    CONTRAST,
    WEIGHTS,
    ConvNorm,
    Encoder,
    compact,
    load_compact,
    normalised,
)
from certiseg.models.export import _traced
from certiseg.models.layers import POINT, Convolution
from certiseg.models.weight_files import load_weights


@pytest.mark.parametrize("size", [(32, 32), (33, 47), (63, 64), (61, 130)])
def test_any_size_gives_logits_at_about_a_quarter(size: tuple[int, int]) -> None:
    network = compact(7).eval()
    with torch.inference_mode():
        logits = network(torch.rand(2, 3, *size))
    assert logits.shape == (2, 7, *((side // 2 + 1) // 2 for side in size))


def test_the_answer_is_that_of_two_looks() -> None:
    network = load_compact()
    images = torch.rand(1, 3, 70, 99)
    share = network.coarse_share[:, None, None].clone()
    small = torch.nn.functional.avg_pool2d(normalised(images), 2, ceil_mode=True)
    with torch.no_grad():
        both = network(images)
        fine, coarse = (network.head(network._look(seen)) for seen in (normalised(images), small))
        network.coarse_share.zero_()
        torch.testing.assert_close(network(images), fine)
    larger = torch.nn.functional.interpolate(coarse, fine.shape[-2:], mode="bilinear", align_corners=False)
    torch.testing.assert_close(both, (1 - share) * fine + share * larger, atol=1e-5, rtol=1e-4)
    assert not torch.allclose(both, fine, atol=1e-3)


def test_it_learns_from_one_look() -> None:
    network = compact(5, dropout=0).train()
    images = torch.rand(2, 3, 64, 96)
    torch.testing.assert_close(network(images), network.head(network._look(normalised(images))))


def test_weights_for_one_look_are_refused(tmp_path: Path) -> None:
    state = {name: value.contiguous() for name, value in compact().state_dict().items() if name != "coarse_share"}
    save_file(state, tmp_path / "one.safetensors")
    with pytest.raises(InputError, match="coarse_share"):
        load_weights(compact(), tmp_path / "one.safetensors")


@pytest.mark.parametrize("size", [(32, 32), (33, 47), (45, 32), (97, 130)])
def test_one_graph_serves_any_size(size: tuple[int, int], any_size: tuple[torch.nn.Module, Any]) -> None:
    network, session = any_size
    image = torch.rand(1, 3, *size)
    with torch.inference_mode():
        wanted = network(image).numpy()
    np.testing.assert_allclose(session.run(None, {"image": image.numpy()})[0], wanted, atol=2e-4)


@pytest.fixture(scope="module")
def any_size() -> tuple[torch.nn.Module, Any]:
    onnxruntime = pytest.importorskip("onnxruntime")
    network = load_compact()
    content = _traced(network, torch.rand(1, 3, 96, 128), any_size=True)
    return network, onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])


def test_features_of_the_encoder() -> None:
    with torch.inference_mode():
        features = Encoder().eval()(torch.rand(1, 3, 96, 160))
    assert [tuple(feature.shape[1:]) for feature in features] == [
        (24, 24, 40),
        (40, 12, 20),
        (112, 6, 10),
        (320, 3, 5),
    ]


def test_cells_lie_near_the_middle_of_what_they_cover() -> None:
    encoder = Encoder().eval()
    for layer in encoder.modules():
        if isinstance(layer, torch.nn.Conv2d):
            torch.nn.init.constant_(layer.weight, 1 / layer.weight[0].numel())
    columns = torch.arange(1024).expand(1, 3, 64, 1024) * 1e-6  # small: ReLU6 then changes nothing
    with torch.inference_mode():
        places, weights = encoder(columns), encoder(torch.full_like(columns, 1e-6))
    for level, (place, weight) in enumerate(zip(places, weights, strict=True), 2):
        cell, index = 2**level, 512 // 2**level
        centre = float(place[0, 0, -1, index] / weight[0, 0, -1, index])
        assert abs(centre - (index * cell + (cell - 1) / 2)) <= 0.2 * cell


def test_size_and_gradients() -> None:
    network = compact()
    assert 4e6 < sum(p.numel() for p in network.parameters()) < 4.5e6
    network(torch.rand(2, 3, 64, 64)).square().mean().backward()
    assert all(p.grad is not None and torch.isfinite(p.grad).all() for p in network.parameters())


@pytest.mark.parametrize("later", [False, True])
@pytest.mark.parametrize("relu", [False, True])
def test_a_norm_that_no_longer_learns_is_part_of_its_convolution(later: bool, relu: bool) -> None:
    torch.manual_seed(0)
    layer = ConvNorm(8, 8, stride=2 if later else 1, groups=4, relu=relu, later=later)
    images = 3 * torch.randn(2, 8, 13, 16)
    layer(images)  # statistics other than those of the start
    layer.eval()
    torch.testing.assert_close(layer(images), torch.nn.Sequential.forward(layer, images))


def test_too_small_an_image_is_refused() -> None:
    with pytest.raises(InputError, match="at least 32x32 for compact, got 40x31"):
        compact()(torch.rand(1, 3, 31, 40))


def test_every_image_is_brought_to_mean_zero_and_one_contrast() -> None:
    images = torch.rand(2, 3, 40, 48) * torch.tensor([1.0, 0.1]).view(2, 1, 1, 1)
    result = normalised(images)
    torch.testing.assert_close(result.mean((2, 3)), torch.zeros(2, 3), atol=1e-5, rtol=0)
    torch.testing.assert_close(result.square().mean((1, 2, 3)).sqrt(), torch.full((2,), CONTRAST), atol=1e-4, rtol=0)
    assert not normalised(torch.full((1, 3, 32, 32), 0.7)).abs().max() > 1e-3


@pytest.mark.parametrize("airlight", [0.0, 0.8, 1.0])
@pytest.mark.parametrize("left", [0.5, 0.05])
def test_uniform_fog_darkness_and_loss_of_contrast_change_nothing(airlight: float, left: float) -> None:
    images = torch.rand(1, 3, 48, 64)
    for towards in (torch.tensor(airlight), images.mean((2, 3), keepdim=True)):
        exposed = towards + left * (images - towards)
        torch.testing.assert_close(normalised(exposed), normalised(images), atol=2e-3, rtol=0)


def test_an_image_alone_or_in_a_batch_gets_the_same_logits() -> None:
    network = compact().eval()
    images = torch.rand(3, 3, 64, 64)
    with torch.inference_mode():
        torch.testing.assert_close(network(images)[1:2], network(images[1:2]), atol=1e-4, rtol=1e-4)


def test_shipped_weights_load_and_are_small() -> None:
    assert WEIGHTS.stat().st_size <= 9_000_000
    with safe_open(WEIGHTS, "pt") as file:
        assert tuple(json.loads(file.metadata()["classes"])) == load_hierarchy("camvid").classes
    network = load_compact()
    assert not network.training
    assert {p.dtype for p in network.parameters()} == {torch.float32}
    with torch.inference_mode():
        flat = network(torch.full((1, 3, 96, 128), 0.5))
    assert torch.isfinite(flat).all()


def test_missing_weights_are_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(module, "WEIGHTS", tmp_path / "none.safetensors")
    with pytest.raises(InputError, match=r"weights must be a file, got .*none.safetensors"):
        load_compact()


@pytest.mark.skipif(not torch.backends.mkldnn.is_available(), reason="torch was built without oneDNN")
def test_no_convolution_takes_the_slow_loop_on_one_thread() -> None:
    network, before = compact().eval(), torch.get_num_threads()
    image = torch.rand(1, 3, 480, 640).to(memory_format=torch.channels_last)  # small maps take it anyway
    torch.set_num_threads(1)
    try:
        large, small = (_operations(network, picture) for picture in (image, image[..., :96, :96]))
    finally:
        torch.set_num_threads(before)
    assert "mkldnn::_convolution_pointwise" in large
    assert not [name for name in large if "slow" in name]
    assert "aten::slow_conv_dilated2d" not in small, "the slowest of all"


def _operations(network: torch.nn.Module, image: torch.Tensor) -> set[str]:
    with torch.inference_mode(), torch.profiler.profile() as seen:
        network(image)
    return {event.key for event in seen.key_averages()}


def test_what_is_called_dilated_is_the_same_function() -> None:
    network, image = compact().eval(), torch.rand(1, 3, 64, 96)
    points = [layer for layer in network.modules() if isinstance(layer, Convolution) and layer.kernel_size == POINT]
    assert len(points) > 30
    with torch.inference_mode():
        found = network(image)
        for layer in points:
            layer.__class__ = torch.nn.Conv2d  # type: ignore[assignment]
        torch.testing.assert_close(network(image), found, rtol=1e-5, atol=1e-5)
