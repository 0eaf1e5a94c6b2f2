"""From a certificate to what the page draws: numbers as JSON and maps as raw bytes, in one answer.

4 bytes: length of the JSON (little endian); the JSON, padded with spaces to a multiple of 8; then each layer of
`layers` in turn, row by row, little endian, padded to a multiple of 8. The browser colours them.
"""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certiseg.certificate import Certificate
from certiseg.errors import InputError
from certiseg.scores import VOID, evaluate
from certiseg.viewer.reasons import reason_map

LAYERS = ("vertex", "radius", "reason")
SIDES = ("within", "excludes")


def numbers(certificate: Certificate, truth: NDArray[np.integer] | None) -> dict[str, Any]:
    """What the page says about a certificate besides its map."""
    vertices = len(certificate.hierarchy.vertices)
    shares = np.bincount(certificate.vertex.reshape(-1).astype(np.intp) + 2, minlength=vertices + 2)
    scores = None if truth is None else evaluate(certificate, truth)
    return {
        "radius": certificate.radius,
        "critical": certificate.critical,
        "n": certificate.votes.n,
        "n0": certificate.votes.n0,
        "sigma": certificate.votes.sigma,
        "max_set": certificate.votes.max_set,
        "stopped": certificate.votes.stopped,
        "tested": certificate.tested,
        "abstain": certificate.abstain_rate,
        "cig": None if scores is None or math.isnan(scores.cig) else scores.cig,
        "accuracy": None if scores is None or math.isnan(scores.accuracy) else scores.accuracy,
        "root_share": float(shares[0]) / certificate.tested,
        "shares": [float(count) / certificate.tested for count in shares[2:]],
    }


def layers_of(
    certificate: Certificate, names: list[str], highlight: tuple[int, str] | None = None
) -> dict[str, NDArray[Any]]:
    """The maps that were asked for, by name; `mask` marks the highlighted pixels."""
    made: dict[str, NDArray[Any]] = {}
    for name in names:
        if name == "vertex":
            made[name] = certificate.vertex
        elif name == "radius":
            made[name] = np.nan_to_num(certificate.radius_map).astype(np.float32)
        elif name == "reason":
            made[name] = reason_map(certificate)
        else:
            raise InputError(f"layers must be among {', '.join(LAYERS)}, got {name[:40]!r}")
    if highlight is not None:
        vertex, side = highlight
        certified = certificate.within if side == "within" else certificate.excludes
        made["mask"] = certified(vertex).astype(np.uint8)
    return made


def label_layer(label: NDArray[np.integer]) -> NDArray[np.int16]:
    """A map of classes as vertices, -1 where void."""
    return np.where(label == VOID, np.int16(-1), label.astype(np.int16))


def pack(facts: Mapping[str, Any], layers: Mapping[str, NDArray[Any]]) -> bytes:
    """The answer as bytes."""
    listed, parts, offset = [], [], 0
    for name, array in layers.items():
        little = np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
        content = little.tobytes()
        listed.append({"name": name, "type": little.dtype.str, "offset": offset, "bytes": len(content)})
        parts += [content, b"\0" * (-len(content) % 8)]
        offset += len(content) + -len(content) % 8
    height, width = next(iter(layers.values())).shape if layers else (0, 0)
    text = json.dumps({**facts, "height": height, "width": width, "layers": listed}, allow_nan=False).encode()
    text += b" " * (-(4 + len(text)) % 8)
    return b"".join([struct.pack("<I", len(text)), text, *parts])
