"""Hostile votes, certificates and tallies: damaged bytes, and odd content under an intact seal."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import numpy as np

from certiseg.archive import read_archive, write_archive
from certiseg.partial_votes import FORMAT_VERSION as PARTIAL_VERSION
from tests.fuzz.cases import CHEAP, MODEL, damage, kind

ODD: tuple[Any, ...] = (
    *(None, True, False, 0, 1, -1, 2, 255, 256, 65535, 65536, 2**31, 2**63, 10**400, 0.5, -0.0, 1e308, 1e-320),
    *(float("nan"), float("inf"), "", "x", "../../../etc/passwd", "/etc/passwd", "..", "nested", "sets", "by", "\0"),
    *([], [0], [None], {}, {"1": {}}, {"a": [1]}, [[]], ["a", "a"]),
)


def odd_value(rng: random.Random, value: Any) -> Any:
    """Another value of the same kind, or of none."""
    if isinstance(value, dict) and value and rng.random() < 0.8:
        changed, key = dict(value), rng.choice(list(value))
        if rng.random() < 0.2:
            del changed[key]
        elif rng.random() < 0.1:
            changed[str(rng.choice(ODD))] = changed.pop(key)
        else:
            changed[key] = odd_value(rng, value[key])
        return changed
    if isinstance(value, list) and value and rng.random() < 0.8:
        changed_list = list(value)
        at = rng.randrange(len(value))
        changed_list[at : at + rng.randrange(2)] = [odd_value(rng, value[at])] * rng.randrange(3)
        return changed_list
    if isinstance(value, int | float) and not isinstance(value, bool) and rng.random() < 0.4:
        return value + rng.choice([-1, 1, 0.5, 1e-9])
    return rng.choice(ODD)


def odd_array(rng: random.Random, array: Any) -> Any:
    """Another type, shape or content."""
    choice = rng.randrange(8)
    if not array.size:
        return np.zeros(3, array.dtype)
    if choice == 0:
        return array.astype(rng.choice(["u1", "i1", "u2", "i8", "f4", "f8", "?", "S3", "c16", "M8[s]", ">i4"]))
    if choice == 1:
        return array[: rng.randrange(len(array))] if array.ndim else array
    if choice == 2:
        return array.reshape(-1) if rng.random() < 0.5 else array[None]
    if choice == 3:
        return np.empty((0, *array.shape[1:]), array.dtype)
    if choice == 4:
        return np.asarray(rng.choice([0, -1, 1e9, float("nan")]))
    changed = array.copy().reshape(-1)
    with np.errstate(all="ignore"):
        for _ in range(rng.choice([1, 3, 50])):
            value = rng.choice([0, 1, 3, 4, 40, 255, -1, 65535, 1e9, float("nan")])
            changed[rng.randrange(len(changed))] = np.asarray(value).astype(array.dtype)
    return changed.reshape(array.shape)


def reseal(rng: random.Random, source: Path, target: Path, sort: str) -> None:
    """A file with odd content that nevertheless has right hashes."""
    right = PARTIAL_VERSION if sort == "partial votes" else 1
    archive = read_archive(source, kind=sort, version=right)
    meta, arrays = archive.meta, dict(archive.arrays)
    for _ in range(rng.choice([1, 1, 2, 4])):
        if rng.random() < 0.6:
            meta = odd_value(rng, meta)
            meta = meta if isinstance(meta, dict) else {}
        elif arrays:
            name = rng.choice(list(arrays))
            if rng.random() < 0.15:
                del arrays[name]
            else:
                arrays[name] = odd_array(rng, arrays[name])
    if sort == "certificate" and "votes" in meta and rng.random() < 0.5:
        meta = _with_digest(meta, arrays)
    kept = json.loads(json.dumps(meta, default=str))
    write_archive(
        target,
        kind=rng.choice([sort] * 9 + ["votes"]),
        version=rng.choice([right] * 9 + [right + 1]),
        meta=kept,
        arrays=arrays,
    )


def _with_digest(meta: dict[str, Any], arrays: dict[str, Any]) -> dict[str, Any]:
    """The digest of the changed votes, as a careful forger would write it."""
    from certiseg.verify import _votes_digest

    votes = {name.removeprefix("votes."): a for name, a in arrays.items() if name.startswith("votes.")}
    try:
        return {**meta, "votes_digest": _votes_digest(meta["votes"], votes)}
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError):
        return meta


@kind
def certificate(rng: random.Random, folder: Path) -> list[str]:
    source = folder / rng.choice(["whole.certificate.npz", "sets.certificate.npz"])
    target = folder / "hostile.npz"
    if rng.random() < 0.25:
        target.write_bytes(damage(rng, source.read_bytes(), (b"PK\x03\x04", b"PK\x05\x06", b"{", b"[" * 5000)))
    else:
        reseal(rng, source, target, "certificate")
    return rng.choice([["verify", "hostile.npz"], ["API", "load_certificate", "hostile.npz"]])


@kind
def votes(rng: random.Random, folder: Path) -> list[str]:
    target = folder / "hostile.npz"
    if rng.random() < 0.25:
        target.write_bytes(damage(rng, (folder / "whole.votes.npz").read_bytes()))
    else:
        reseal(rng, folder / "whole.votes.npz", target, "votes")
    return ["API", "load_votes", "hostile.npz"]


@kind
def partial_votes(rng: random.Random, folder: Path) -> list[str]:
    """A checkpoint of a run that is to be resumed."""
    partial = folder / "out/partial/a.sigma0.1.npz"
    partial.parent.mkdir(parents=True)
    if rng.random() < 0.3:
        partial.write_bytes(damage(rng, (folder / "whole.partial.npz").read_bytes()))
    else:
        reseal(rng, folder / "whole.partial.npz", partial, "partial votes")
    options = ["--sigma", "0.1", "--setting", "50:0.75", "--n0", CHEAP[-1], "--methods", "nested", "--first", "1"]
    return ["evaluate", "folder", "--root", "data", "--out", "out", *MODEL, *options]
