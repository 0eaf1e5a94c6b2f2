"""Convolutions merged with their BatchNorm: the same function, whatever has been kept from earlier calls."""

import copy
import gc

import pytest
import torch
from torch import Tensor, nn

from certiseg.models import layers
from certiseg.models.layers import Convolution, convolve

needs_onednn = pytest.mark.skipif(not layers._ONEDNN, reason="torch was built without oneDNN")


def make(**settings: int) -> tuple[Convolution, nn.BatchNorm2d]:
    torch.manual_seed(0)
    conv, norm = Convolution(8, 8, bias=False, **{"kernel_size": 3, "padding": 1, **settings}), nn.BatchNorm2d(8)
    norm(torch.randn(4, 8, 5, 5) * 3 + 1)
    nn.init.uniform_(norm.weight, 0.5, 2)
    nn.init.uniform_(norm.bias, -1, 1)
    return conv, norm.eval()


def plain(x: Tensor, conv: Convolution, norm: nn.BatchNorm2d, *, relu6: bool) -> Tensor:
    y: Tensor = norm(conv(x))
    return y.clamp(0, 6) if relu6 else y


@pytest.mark.parametrize("relu6", [False, True])
@pytest.mark.parametrize("settings", [{}, {"groups": 8}, {"stride": 2}, {"kernel_size": 1, "padding": 0}])
def test_the_merged_layer_is_the_same_function(settings: dict[str, int], relu6: bool) -> None:
    conv, norm = make(**settings)
    for size in ((1, 8, 12, 16), (3, 8, 7, 9), (1, 8, 1, 1)):
        x = torch.randn(size) * 3
        with torch.no_grad():
            wanted = plain(x, conv, norm, relu6=relu6)
            torch.testing.assert_close(convolve(x, conv, norm, relu6=relu6), wanted, atol=1e-5, rtol=1e-4)
        with torch.inference_mode():
            torch.testing.assert_close(convolve(x, conv, norm, relu6=relu6), wanted, atol=1e-5, rtol=1e-4)
        torch.testing.assert_close(convolve(x, conv, norm, relu6=relu6), wanted, atol=1e-5, rtol=1e-4)


def changes(conv: Convolution, norm: nn.BatchNorm2d) -> dict[str, Tensor]:
    assert norm.running_mean is not None
    assert norm.running_var is not None
    of_norm = {"scale": norm.weight, "bias": norm.bias, "mean": norm.running_mean, "variance": norm.running_var}
    return {"kernel": conv.weight, **of_norm}


@pytest.mark.parametrize("name", ["kernel", "scale", "bias", "mean", "variance"])
def test_changed_weights_are_noticed(name: str) -> None:
    conv, norm = make()
    x = torch.randn(1, 8, 12, 16)
    with torch.inference_mode():
        before = convolve(x, conv, norm, relu6=False)
        changes(conv, norm)[name].mul_(1.5)
        after = convolve(x, conv, norm, relu6=False)
        torch.testing.assert_close(after, plain(x, conv, norm, relu6=False), atol=1e-5, rtol=1e-4)
    assert not torch.allclose(before, after, atol=1e-3)


def test_loaded_weights_and_copies_are_noticed() -> None:
    pair = nn.ModuleList(make())
    x = torch.randn(1, 8, 12, 16)
    with torch.inference_mode():
        convolve(x, pair[0], pair[1], relu6=True)  # type: ignore[arg-type]
        other = copy.deepcopy(pair)
        other.load_state_dict({name: value * 0.5 for name, value in pair.state_dict().items()})
        found = [convolve(x, each[0], each[1], relu6=True) for each in (pair, other)]  # type: ignore[arg-type]
        for each, result in zip((pair, other), found, strict=True):
            wanted = plain(x, each[0], each[1], relu6=True)  # type: ignore[arg-type]
            torch.testing.assert_close(result, wanted, atol=1e-5, rtol=1e-4)


def test_gradients_reach_weights_and_images() -> None:
    conv, norm = make()
    with torch.no_grad():
        convolve(torch.randn(1, 8, 12, 16), conv, norm, relu6=True)  # something is kept
    x = torch.randn(1, 8, 12, 16, requires_grad=True)
    convolve(x, conv, norm, relu6=True).sum().backward()
    for gradient in (x.grad, conv.weight.grad, norm.weight.grad):
        assert gradient is not None
        assert gradient.any()


@needs_onednn
def test_kernels_are_kept_for_few_shapes_and_as_long_as_their_layer() -> None:
    conv, norm = make()
    with torch.inference_mode():
        for width in range(10, 20):
            convolve(torch.randn(1, 8, 12, width), conv, norm, relu6=True)
    assert [place[-1] for place in layers._KEPT[conv]] == [16, 17, 18, 19]
    kept = len(layers._KEPT)
    del conv
    gc.collect()
    assert len(layers._KEPT) == kept - 1


@needs_onednn
def test_every_number_of_threads_has_kernels_of_its_own() -> None:
    conv, norm = make()
    x, before = torch.randn(1, 8, 12, 16), torch.get_num_threads()
    try:
        with torch.inference_mode():
            for threads in (1, 2):
                torch.set_num_threads(threads)
                convolve(x, conv, norm, relu6=True)
    finally:
        torch.set_num_threads(before)
    assert [place[0] for place in layers._KEPT[conv]] == [1, 2]


def test_weights_that_cannot_tell_of_a_change_are_not_kept() -> None:
    with torch.inference_mode():
        conv, norm = make()
        x = torch.randn(1, 8, 12, 16)
        convolve(x, conv, norm, relu6=False)
        norm.bias.add_(1)
        found = convolve(x, conv, norm, relu6=False)
        torch.testing.assert_close(found, plain(x, conv, norm, relu6=False), atol=1e-5, rtol=1e-4)
    assert conv not in layers._KEPT
