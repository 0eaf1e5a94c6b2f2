"""When an image of a run has been drawn enough: after all n draws, or at the first look that finds little undecided.

Looks are at fixed numbers of draws, and each sees exactly the draws before it, so where an image ends depends neither
on who draws nor on when a run was interrupted. Draws beyond a look are made before it only by workers that would
otherwise wait; they are kept apart, and dropped where the look ends the image.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from certiseg.partial_votes import DrawRange
from certiseg.settings import given
from certiseg.stopping import EveryRule, MeasureRule, UndecidedRule, looks

if TYPE_CHECKING:
    from certiseg.runs.manifest import Manifest


def looks_of(manifest: Manifest) -> tuple[int, ...]:
    """The numbers of draws at which an image may end."""
    return (manifest.draws[-1],) if manifest.stop_undecided is None else looks(manifest.draws[-1])


def rule_of(manifest: Manifest, sigma: float) -> EveryRule | None:
    """What must be decided at a sigma: the pixels by every method at every tau, and the measures at every tau."""
    share, n_max = manifest.stop_undecided, manifest.draws[-1]
    if share is None:
        return None
    rules: list[UndecidedRule | MeasureRule] = []
    for one in (each for each in manifest.each_setting() if each.sigma == sigma):
        for method in manifest.methods:
            rules.append(UndecidedRule(share, n_max, manifest.tree, given(manifest.certificate(one, method))))
        if manifest.objects is not None:
            rules.append(MeasureRule(share, n_max, one.tau, manifest.alpha_per_image))
    return EveryRule(tuple(rules))


def recorded_rule(manifest: Manifest) -> dict[str, Any]:
    """The rule as the votes of a run record it; nothing where n is fixed."""
    if manifest.stop_undecided is None:
        return {}
    rule = {"rule": "undecided", "share": manifest.stop_undecided, "n_max": manifest.draws[-1]}
    asked = {"methods": list(manifest.methods), "taus": [tau for _, tau in manifest.settings]}
    return {"stop": rule | asked | {"measures": manifest.objects is not None, "looks": list(looks_of(manifest))}}


def block(manifest: Manifest, missing: list[DrawRange]) -> list[DrawRange]:
    """The missing draws of the first sigma up to the next look: what several workers may share."""
    mine = [part for part in missing if part.sigma == missing[0].sigma]
    first = next(part.first for part in mine if part.stage == "estimation")
    anchors = len(manifest.sampling(missing[0].sigma).anchors)
    end = next(look * anchors for look in looks_of(manifest) if look * anchors > first)
    return [part for part in mine if part.stage == "selection"] + cut(mine, 0, end)


def cut(ranges: list[DrawRange], first: int, last: int) -> list[DrawRange]:
    """What ranges hold of the estimation draws first, ..., last - 1."""
    inside = [replace(part, first=max(part.first, first), last=min(part.last, last)) for part in ranges]
    return [part for part in inside if part.stage == "estimation" and part.first < part.last]
