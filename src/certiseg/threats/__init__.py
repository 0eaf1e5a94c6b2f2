"""Threats of light and weather: what happens to images, with one parameter t each, and what a certificate covers.

    from certiseg import threats
    fog = threats.fog(scale=0.5, airlight=0.8)
    fog.apply(image, 0.3)      # T_t x
    fog.range(tau=0.75)        # (0.0, 0.3465...)
    fog.words(0.3465)          # fog of density up to 29 %

base.py      what all have: apply, range, words, and how they are stored
veil.py      fog, dark, haze, flat
heat.py      blur
power.py     gamma
pixels.py    l2, the perturbations of the paper
anchors.py   whole ranges from votes at several parameters
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from numpy.typing import NDArray

from certiseg.errors import InputError
from certiseg.threats.base import Threat
from certiseg.threats.heat import Blur
from certiseg.threats.pixels import L2
from certiseg.threats.power import Gamma
from certiseg.threats.veil import Dark, Flat, Fog, Haze

l2, fog, dark, haze, flat, blur, gamma = L2, Fog, Dark, Haze, Flat, Blur, Gamma
NAMES = ("fog", "dark", "haze", "flat", "blur", "gamma")
"""The threats with a parameter."""
_KINDS: dict[str, type[Threat]] = {kind.name: kind for kind in (L2, Fog, Dark, Haze, Flat, Blur, Gamma)}


def named(name: str, scale: float, **options: Any) -> Threat:
    """A threat by its name."""
    if name not in NAMES:
        raise InputError(f"threat must be one of {', '.join(NAMES)}, got {name!r}")
    return _KINDS[name](scale, **options)


def unpack(meta: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Threat:
    """The inverse of `Threat.pack`; an array that is missing or not the recorded one is refused."""
    options = dict(meta)
    name = options.pop("name", None)
    if name not in _KINDS:
        raise InputError(f"threat must be one of {', '.join(_KINDS)}, got {name!r}")
    if options.get("depth") is not None:
        options["depth"] = arrays["depth"]
    try:
        threat = _KINDS[name](**options)
    except TypeError as error:
        raise InputError(f"threat must be stored with its own numbers, got others: {error}") from None
    if threat.pack()[0] != dict(meta):
        raise InputError(f"threat must be stored as it was used, but its numbers or arrays differ: {name}")
    return threat


__all__ = ["NAMES", "Threat", "blur", "dark", "flat", "fog", "gamma", "haze", "l2", "named", "unpack"]
