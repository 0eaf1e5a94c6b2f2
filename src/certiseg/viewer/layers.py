"""What the page draws of a certificate: numbers as JSON and maps as raw bytes, in one answer.

An answer is the length of the JSON (4 bytes), the JSON, and the maps that its `layers` lists, row by row. Everything is
little endian, and each part is padded to a multiple of 8 bytes. The browser colours the maps.
"""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from starlette.responses import Response

from certiseg.analysis.drawing import method_name
from certiseg.errors import InputError
from certiseg.hierarchy import VOID
from certiseg.scores import scores_of, sum_pixels, verdict_map
from certiseg.viewer.choice import method_text
from certiseg.viewer.reasons import reason_map
from certiseg.viewer.verdict import by_class
from certiseg.words import LOW_AGREEMENT, agreement_words

if TYPE_CHECKING:
    from certiseg.certificate import Certificate

LAYERS: dict[str, Callable[[Certificate], NDArray[Any]]] = {
    "vertex": lambda certificate: certificate.vertex,
    "radius": lambda certificate: np.nan_to_num(certificate.radius_map).astype(np.float32),
    "reason": reason_map,
}
SIDES = ("within", "excludes")


def numbers(certificate: Certificate, truth: NDArray[np.integer] | None) -> dict[str, Any]:
    """What the page says about a certificate besides its map."""
    vertices = len(certificate.hierarchy.vertices)
    shares = np.bincount(certificate.vertex.reshape(-1).astype(np.intp) + 2, minlength=vertices + 2)
    sums = None if truth is None else sum_pixels(certificate, truth)
    scores = None if sums is None else scores_of(sums)
    return {
        "name": method_name(method_text(certificate.settings)),
        "radius": certificate.radius,
        "end": certificate.range[1],
        "threat": certificate.votes.threat.name,
        "extent": certificate.extent,
        "critical": certificate.critical,
        "n": certificate.votes.n,
        "n0": certificate.votes.n0,
        "sigma": certificate.votes.sigma,
        "max_set": certificate.votes.max_set,
        "stopped": certificate.votes.stopped,
        "tested": certificate.tested,
        "abstain": certificate.abstain_rate,
        **{name: _known(getattr(scores, name, None)) for name in ("cig", "accuracy", "wrong", "set_size")},
        "by_class": [] if sums is None else by_class(sums),
        "agreement": certificate.agreement,
        "agreement_words": agreement_words(certificate.agreement),
        "agrees_little": certificate.agreement is not None and certificate.agreement < LOW_AGREEMENT,
        "root_share": float(shares[0]) / certificate.tested,
        "shares": [float(count) / certificate.tested for count in shares[2:]],
    }


def _known(value: float | None) -> float | None:
    return None if value is None or math.isnan(value) else value


def layers_of(
    certificate: Certificate,
    names: list[str],
    highlight: tuple[int, str] | None = None,
    truth: NDArray[np.integer] | None = None,
) -> dict[str, NDArray[Any]]:
    """The maps that were asked for, by name; `mask` marks the highlighted pixels; `verdict` needs the truth."""
    for name in names:
        if name not in (*LAYERS, "verdict"):
            raise InputError(f"layers must be among {', '.join(LAYERS)}, verdict, got {name[:40]!r}")
    made = {name: LAYERS[name](certificate) for name in names if name in LAYERS}
    if "verdict" in names:
        empty = np.zeros(certificate.vertex.shape, np.uint8)
        made["verdict"] = empty if truth is None else verdict_map(certificate, truth)
    if highlight is not None:
        vertex, side = highlight
        certified = certificate.within if side == "within" else certificate.excludes
        made["mask"] = certified(vertex).astype(np.uint8)
    return made


def label_layer(label: NDArray[np.integer]) -> NDArray[np.int16]:
    """A map of classes as vertices, -1 where void."""
    return np.where(label == VOID, np.int16(-1), label.astype(np.int16))


def packed(facts: Mapping[str, Any], layers: Mapping[str, NDArray[Any]]) -> Response:
    """Numbers and maps as one answer."""
    return Response(pack(facts, layers), media_type="application/octet-stream")


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
