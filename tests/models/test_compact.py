"""The shipped network: sizes, constants, weights."""

import json

import pytest
import torch
from safetensors import safe_open

from certiseg.datasets.camvid import CLASSES
from certiseg.errors import InputError
from certiseg.models import compact as module
from certiseg.models.compact import WEIGHTS, compact, load_compact


@pytest.mark.parametrize("size", [(32, 32), (33, 47), (61, 130)])
def test_any_size_gives_quarter_size_logits(size: tuple[int, int]) -> None:
    network = compact(7).eval()
    with torch.inference_mode():
        logits = network(torch.rand(2, 3, *size))
    assert logits.shape == (2, 7, -(-size[0] // 4), -(-size[1] // 4))


def test_size_and_gradients() -> None:
    network = compact()
    assert 1e6 < sum(p.numel() for p in network.parameters()) < 3e6
    network(torch.rand(2, 3, 48, 48)).square().mean().backward()
    assert all(p.grad is not None and torch.isfinite(p.grad).all() for p in network.parameters())


def test_too_small_an_image_is_refused() -> None:
    with pytest.raises(InputError, match="at least 32x32 for compact, got 40x31"):
        compact()(torch.rand(1, 3, 31, 40))


def test_an_image_alone_or_in_a_batch_gets_the_same_logits() -> None:
    network = compact().eval()
    images = torch.rand(3, 3, 64, 64)
    with torch.inference_mode():
        torch.testing.assert_close(network(images)[1:2], network(images[1:2]), atol=1e-4, rtol=1e-4)


def test_shipped_weights_load_and_are_small() -> None:
    assert WEIGHTS.stat().st_size <= 8_000_000
    with safe_open(WEIGHTS, "pt") as file:
        assert tuple(json.loads(file.metadata()["classes"])) == CLASSES
    network = load_compact()
    assert not network.training
    assert {p.dtype for p in network.parameters()} == {torch.float32}
    with torch.inference_mode():
        flat = network(torch.full((1, 3, 96, 128), 0.5))
    assert torch.isfinite(flat).all()


def test_missing_weights_are_named(monkeypatch: pytest.MonkeyPatch, tmp_path) -> None:
    monkeypatch.setattr(module, "WEIGHTS", tmp_path / "none.safetensors")
    with pytest.raises(InputError, match="model compact must have its weights"):
        load_compact()
