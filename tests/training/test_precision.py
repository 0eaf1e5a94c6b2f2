"""bfloat16: the same network, and gradients close to those in 32 bits."""

import copy

import torch
from torch import nn

from certiseg.models.compact import compact
from certiseg.training.precision import Depthwise, prepare_bfloat16


def test_gradients_in_bfloat16_are_those_in_32_bits_up_to_rounding() -> None:
    torch.manual_seed(0)
    plain = nn.Sequential(nn.Conv2d(3, 8, 1), nn.Conv2d(8, 8, 5, stride=2, padding=2, groups=8, bias=False))
    quick = copy.deepcopy(plain)
    prepare_bfloat16(quick)
    assert [type(layer) for layer in quick] == [nn.Conv2d, Depthwise]
    images = torch.rand(2, 3, 16, 20)
    plain(images).square().mean().backward()
    with torch.autocast("cpu", torch.bfloat16):
        result = quick(images)
    assert result.dtype == torch.bfloat16
    result.float().square().mean().backward()
    for own, other in zip(plain.parameters(), quick.parameters(), strict=True):
        torch.testing.assert_close(other.grad, own.grad, atol=1e-3, rtol=0.05)


def test_a_prepared_network_keeps_its_answers_and_its_copies_have_weights_of_their_own() -> None:
    plain = nn.Sequential(nn.Conv2d(4, 4, 3, groups=4, bias=False)).eval()
    quick = copy.deepcopy(plain)
    prepare_bfloat16(quick)
    images = torch.rand(1, 4, 8, 8)
    assert quick(images).equal(plain(images))
    other = copy.deepcopy(quick)
    with torch.no_grad():
        other[0].weight.zero_()
        assert not other(images).any()
        assert quick(images).equal(plain(images))


def test_every_depthwise_layer_of_compact_is_prepared() -> None:
    network = compact()
    prepare_bfloat16(network)
    assert not [
        name
        for name, layer in network.named_modules()
        if getattr(layer, "groups", 1) > 1 and type(layer) is not Depthwise
    ]
    assert any(type(layer) is Depthwise for layer in network.modules())
