"""Colours that carry meaning stay apart for those who see fewer of them."""

import itertools

import numpy as np
import pytest

from certiseg.viewer.overview import overview
from certiseg.viewer.reasons import REASONS

# Viénot, Brettel and Mollon 1999: linear RGB as seen without the long or the middle cones.
SEEN = {
    "protan": [[0.11238, 0.88762, 0.0], [0.11238, 0.88762, 0.0], [0.00401, -0.00401, 1.0]],
    "deutan": [[0.29275, 0.70725, 0.0], [0.29275, 0.70725, 0.0], [-0.02234, 0.02234, 1.0]],
}


def lab(colour, seen=None):
    """OKLab of an sRGB colour, as somebody sees it."""
    value = np.asarray(colour) / 255
    linear = np.where(value <= 0.04045, value / 12.92, ((value + 0.055) / 1.055) ** 2.4)
    if seen:
        linear = np.clip(np.array(SEEN[seen]) @ linear, 0, 1)
    cones = np.array([[0.41222147, 0.53633254, 0.05144599], [0.2119035, 0.6806995, 0.10739696],
                      [0.08830246, 0.28171884, 0.62997870]]) @ linear  # fmt: skip
    return np.array([[0.21045426, 0.79361779, -0.00407205], [1.97799850, -2.42859221, 0.45059371],
                     [0.02590404, 0.78277177, -0.80867577]]) @ np.cbrt(cones)  # fmt: skip


@pytest.mark.parametrize("seen", [None, "protan", "deutan"])
def test_reasons_are_told_apart(seen):
    colours = [[int(reason.colour[i : i + 2], 16) for i in (1, 3, 5)] for reason in REASONS]
    for one, two in itertools.combinations(colours, 2):
        assert np.linalg.norm(lab(one, seen) - lab(two, seen)) > 0.05


@pytest.mark.parametrize("seen", [None, "protan", "deutan"])
def test_the_heat_map_only_gets_lighter(client, seen):
    heat = overview(client.viewer.reader, client.viewer.pictures)["colours"]["heat"]
    lightness = [lab(colour, seen)[0] for colour in heat]
    assert np.diff(lightness[::8]).min() > 0
