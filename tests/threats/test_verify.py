"""The checker restates threats, ranges and anchors, and names what was tampered with."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import certiseg as cs
from certiseg import threats
from certiseg.archive import read_archive, write_archive
from tests.threats.small import picture
from tests.threats.test_sampling import model

Change = Callable[[dict[str, Any], dict[str, Any]], None]


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("cert") / "cert.npz"
    asked: dict[str, Any] = {"sigma": 0.1, "n0": 4, "n": 60, "up_to": 0.5, "radius": 0.02}
    depth = np.full((9, 12), 1.5)
    votes = cs.sample(model(), picture(), threat=threats.fog(0.5, depth=depth), **asked)
    cs.certify(votes, method="sets", alpha=0.2, radius=0.02).save(path)
    return path


def repack(path: Path, change: Change) -> Path:
    """The certificate with something changed, and with digests that fit, as a forger would leave it."""
    archive = read_archive(path, kind="certificate", version=1)
    meta = json.loads(json.dumps(archive.meta))
    arrays = {name: array.copy() for name, array in archive.arrays.items()}
    change(meta, arrays)
    from certiseg.verify import _votes_digest

    of_votes = {name.removeprefix("votes."): array for name, array in arrays.items() if name.startswith("votes.")}
    meta["votes_digest"] = _votes_digest(meta["votes"], of_votes)
    out = path.with_name("changed.npz")
    write_archive(out, kind="certificate", version=1, meta=meta, arrays=arrays)
    return out


def _set(*place: str, value: Any) -> Change:
    def change(meta: dict[str, Any], arrays: dict[str, Any]) -> None:
        inner = meta
        for name in place[:-1]:
            inner = inner[name]
        inner[place[-1]] = value

    return change


def _fewer_anchors(meta: dict[str, Any], arrays: dict[str, Any]) -> None:
    """The worst anchor left out, and the range kept."""
    meta["votes"]["anchors"] = meta["votes"]["anchors"][:1]


def _other_far_anchor(meta: dict[str, Any], arrays: dict[str, Any]) -> None:
    arrays["votes.counts_anchor_1"] = np.roll(arrays["votes.counts_anchor_1"], 1, axis=-1)


def _another_depth(meta: dict[str, Any], arrays: dict[str, Any]) -> None:
    arrays["votes.depth"] = arrays["votes.depth"] / 2


TAMPERED: dict[str, tuple[Change, str, str]] = {
    "a longer range": (_set("range", value=[0.0, 5.0]), "radius", "the range must be"),
    "a larger radius": (_set("radius", value=0.05), "radius", "chosen point"),
    "a larger radius in the settings, too": (
        lambda m, a: (_set("radius", value=0.05)(m, a), _set("settings", "radius", value=0.05)(m, a)),
        "radius",
        "the range must be",
    ),
    "a larger scale": (_set("votes", "threat", "scale", value=1.0), "radius", "the range must be"),
    "no radius": (_set("settings", "radius", value=None), "radius", "chosen point"),
    "fewer anchors": (_fewer_anchors, "radius", "the range must be"),
    "another far anchor": (_other_far_anchor, "vertex", "pixels differ"),
    "another depth map": (_another_depth, "votes", "depth map is not the recorded one"),
    "an airlight that is none": (_set("votes", "threat", "airlight", value=1.5), "votes", "airlight"),
    "a threat that is none": (_set("votes", "threat", "name", value="rain"), "votes", "no threat 'rain'"),
    "another threat with these numbers": (_set("votes", "threat", "name", value="dark"), "votes", "other numbers"),
    "grid noise": (_set("votes", "noise", value="grid"), "votes", "nothing is proven"),
    "negative anchor": (_set("votes", "anchors", value=[0.0, -1.0]), "votes", "parameters of fog"),
    "l2 instead": (_set("votes", "threat", value={"name": "l2"}), "votes", "neither scale nor anchors"),
}


def test_an_honest_certificate_passes(saved: Path) -> None:
    found = cs.verify(saved, model=model(), image=picture())
    assert found.passed, found.checks
    assert any("fog for t in [0.0000, " in check.detail and "2 anchors" in check.detail for check in found.checks)
    assert any("at each anchor gave the same votes" in check.detail for check in found.checks)


@pytest.mark.parametrize("case", TAMPERED)
def test_what_was_tampered_with_is_named(case: str, saved: Path) -> None:
    change, name, words = TAMPERED[case]
    failed = [check for check in cs.verify(repack(saved, change)).checks if not check.passed]
    assert failed, case
    assert failed[0].name == name or name == "vertex", failed
    assert any(words in check.detail for check in failed), failed


def test_another_airlight_is_found_by_redrawing(saved: Path) -> None:
    changed = repack(saved, _set("votes", "threat", "airlight", value=0.2))
    assert cs.verify(changed).passed, "nothing but the draws can tell"
    found = cs.verify(changed, model=model(), image=picture())
    assert [check.name for check in found.checks if not check.passed] == ["redraw"]
