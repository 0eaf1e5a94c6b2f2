"""The independent checker's own words on threats: what a stored threat must be, and how far votes at anchors reach.

Restates section 12 of docs/design.md with SciPy's distributions. Like verify.py it imports nothing from what it checks.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from math import isfinite, log
from typing import Any

import numpy as np
from numpy.typing import NDArray

_ONE_SIDED = {"fog": {"airlight", "depth"}, "dark": set(), "haze": set(), "flat": set(), "blur": set()}
_CLOSE = 1e-9


def threat_of(meta: Mapping[str, Any]) -> dict[str, Any]:
    """The stored threat of votes; files from before there were others mean l2."""
    return dict(meta.get("threat", {"name": "l2"}))


def anchors_of(meta: Mapping[str, Any]) -> list[float]:
    """The stored anchors of votes."""
    return [float(anchor) for anchor in meta.get("anchors", [0.0])]


def counts_of(meta: Mapping[str, Any], votes: Mapping[str, NDArray[Any]]) -> list[NDArray[Any]]:
    """The counts at every anchor."""
    return [votes["counts"], *(votes[f"counts_anchor_{k}"] for k in range(1, len(anchors_of(meta))))]


def first_counts(meta: Mapping[str, Any], votes: Mapping[str, NDArray[Any]], n: int) -> dict[str, NDArray[Any]]:
    """The counts of the first n draws at every anchor, under the names that counts have."""
    names = ["counts", *(f"counts_anchor_{k}" for k in range(1, len(anchors_of(meta))))]
    return {name: votes[f"{name}_first_{n}"] for name in names}


def odd_threat(meta: Mapping[str, Any], votes: Mapping[str, NDArray[Any]]) -> str | None:
    """What is wrong with the threat, the noise and the anchors of votes; None if nothing is."""
    threat, anchors, sigma = threat_of(meta), anchors_of(meta), meta["sigma"]
    name = threat.get("name")
    if name == "l2":
        plain = set(threat) == {"name"} and anchors == [0.0] and 0 < sigma < float("inf")
        return None if plain else f"l2 has neither scale nor anchors and needs noise, got sigma = {sigma}"
    if name != "gamma" and name not in _ONE_SIDED:
        return f"there is no threat {name!r}"
    if set(threat) != {"name", "scale"} | _ONE_SIDED.get(name, set()):
        return f"the threat {name} is stored with other numbers than it has"
    if not (isfinite(threat["scale"]) and threat["scale"] > 0 and 0 <= sigma < float("inf")):
        return f"scale = {threat['scale']} and sigma = {sigma} are no scale and no noise"
    if meta.get("noise", "gaussian") != "gaussian" or (name == "gamma" and sigma != 0):
        return f"nothing is proven for {name} with this pixel noise"
    if anchors[0] != 0 or len(set(anchors)) < len(anchors) or (name != "gamma" and min(anchors) < 0):
        return f"anchors must begin with 0 and be parameters of {name}, each once"
    if name == "fog" and not 0 <= threat["airlight"] <= 1:
        return f"airlight = {threat['airlight']} must lie in [0, 1]"
    return _odd_depth(threat, votes)


def _odd_depth(threat: Mapping[str, Any], votes: Mapping[str, NDArray[Any]]) -> str | None:
    recorded = threat.get("depth")
    if recorded is None:
        return None
    depth = votes["depth"]
    hashed = hashlib.sha256(f"{depth.dtype.str}{depth.shape}".encode() + np.ascontiguousarray(depth).tobytes())
    if hashed.hexdigest() != recorded or depth.shape != votes["candidate"].shape or not (depth >= 0).all():
        return "the depth map is not the recorded one, not of the image's size, or negative"
    return None


def identity(meta: Mapping[str, Any]) -> bytes:
    """What the digest of votes adds for a threat; nothing for l2."""
    threat = threat_of(meta)
    if threat["name"] == "l2":
        return b""
    return f"{json.dumps(threat, sort_keys=True)}{tuple(anchors_of(meta))}".encode()


def deviation(meta: Mapping[str, Any]) -> float:
    """Sigma as the noise has it: Gaussian noise is scaled in 32 bits."""
    sigma = float(meta["sigma"])
    return sigma if meta.get("noise", "gaussian") == "grid" else min(sigma, float(np.float32(sigma)))


def covered(meta: Mapping[str, Any], tau: float, radius: float) -> tuple[float, float, list[int]]:
    """The range around 0 that the votes cover at tau, beside an l2 radius, and the anchors that it needs."""
    from scipy.stats import norm

    threat, sigma = threat_of(meta), deviation(meta)
    if threat["name"] == "l2":
        return 0.0, float(sigma * norm.ppf(tau)), [0]
    if threat["name"] == "gamma":
        high = float(threat["scale"] * norm.ppf(tau))
        low = -high
    else:
        left = float(norm.sf(radius / sigma)) if radius > 0 else 0.5
        low, high = 0.0, max(threat["scale"] * log(left / (1 - tau)), 0.0)
    intervals = [(anchor + low, anchor + high) for anchor in anchors_of(meta)]
    least, most, used = *intervals[0], {0}
    while near := [k for k, (a, b) in enumerate(intervals) if k not in used and a <= most and b >= least]:
        used |= set(near)
        least = min([least, *(intervals[k][0] for k in near)])
        most = max([most, *(intervals[k][1] for k in near)])
    return least, most, sorted(used)


def odd_range(meta: Mapping[str, Any], settings: Mapping[str, Any], radius: float, stored: Any) -> str | None:
    """What is wrong with the stored radius and range of a certificate; None if nothing is."""
    threat, tau, chosen = threat_of(meta), settings["tau"], settings.get("radius")
    low, high, _ = covered(meta, tau, chosen or 0.0)
    if threat["name"] == "l2":
        if chosen is not None or not np.isclose(radius, high, rtol=_CLOSE, atol=1e-12):
            return f"R must be sigma * Phi^-1(tau) = {high:.6f}, got {radius:.6f}"
        return None
    if chosen is None or chosen < 0 or radius != chosen or (chosen > 0 and not meta["sigma"] > 0):
        return f"R must be the chosen point of the trade-off, {chosen}, got {radius}"
    if threat["name"] != "gamma" and high <= 0 < tau - 0.5 and chosen > 0:
        from scipy.stats import norm

        if chosen > deviation(meta) * norm.ppf(tau) * (1 + _CLOSE):
            return f"R = {chosen} is more than sigma * Phi^-1(tau), where the range ends"
    fits = np.shape(stored) == (2,) and np.allclose(stored, (low, high), rtol=_CLOSE, atol=1e-12)
    return None if fits else f"the range must be [{low:.6f}, {high:.6f}], got {stored}"


def in_words(meta: Mapping[str, Any], settings: Mapping[str, Any]) -> str:
    """The range that was checked, as the report of the checker shows it."""
    threat = threat_of(meta)
    low, high, used = covered(meta, settings["tau"], settings.get("radius") or 0.0)
    if threat["name"] == "l2":
        return f"R = {high:.4f}"
    many = len(anchors_of(meta))
    return f"{threat['name']} for t in [{low:.4f}, {high:.4f}], votes at {len(used)} of {many} anchors"
