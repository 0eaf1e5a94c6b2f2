"""What a run measures in every image where objects are asked for, and the rows that its bounds give.

Found objects are connected parts of the candidate map. True objects are the instances that the data set marks, where
the run uses them, and connected parts of the ground truth elsewhere.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from certiseg.bounds import bound
from certiseg.hierarchy import VOID
from certiseg.measures.measure import Measure
from certiseg.measures.questions import (
    MARGIN,
    Question,
    Scene,
    accuracy,
    dice,
    free,
    kept,
    objects,
    parts_of,
    resolve,
    share,
)
from certiseg.measures.region import widened
from certiseg.runs.manifest import Manifest
from certiseg.runs.settings import Setting
from certiseg.votes import Votes

Marked: TypeAlias = NDArray[np.integer] | None
"""(H, W): a number for each object that the data set marks, 0 where there is none."""
TRUE, ELSEWHERE = "true ", "elsewhere"
"""How the names of true objects begin; the area that is free of a label in the ground truth."""


def questions_of(manifest: Manifest, label: NDArray[np.integer], instances: Marked = None) -> list[Question]:
    """What is asked about an image with this ground truth; nothing where the run has no objects."""
    if manifest.objects is None:
        return []
    asked = [kept(), accuracy(label)]
    for name in manifest.objects:
        asked.append(dice(label, name))
        true = _under(manifest, label, name)
        parts = enumerate(_true_objects(true, instances, manifest.least_area), 1)
        asked += [share(part, name, name=f"{TRUE}{name} {place}") for place, part in parts]
        elsewhere = (label != VOID) & ~(widened(true, MARGIN) if true.any() else true)
        if elsewhere.any():
            asked.append(free(elsewhere, name, name=ELSEWHERE))
    return [*asked, objects(*manifest.objects, least=manifest.least_area)]


def _true_objects(true: NDArray[np.bool_], instances: Marked, least: int) -> list[NDArray[np.bool_]]:
    """Masks of the objects among the true pixels of a label: those that are marked, then parts of what is not."""
    if instances is None:
        return parts_of(true, least)
    numbers, areas = np.unique(instances[true], return_counts=True)
    marked = [true & (instances == number) for number in numbers[(numbers > 0) & (areas >= least)]]
    return [*marked, *parts_of(true & (instances == 0), least)]


def measures_of(
    manifest: Manifest, label: NDArray[np.integer], candidate: NDArray[np.integer], instances: Marked = None
) -> tuple[Measure, ...]:
    """The measures of an image, settled by the candidate map of its selection draws."""
    return resolve(questions_of(manifest, label, instances), Scene(candidate, manifest.tree))


def measure_rows(manifest: Manifest, setting: Setting, votes: Votes) -> list[dict[str, Any]]:
    """The bound of every measure at a setting; votes: those of the setting. Found objects say how well a true one fits.

    A promise of its own: alpha per image for all its measures, beside the alpha of the certificate of its pixels.
    """
    if not votes.measures:
        return []
    settings = manifest.certificate(setting, manifest.methods[0])
    found = bound(votes, tau=settings.tau, alpha=settings.alpha, test=settings.test, radius=settings.radius)
    true = [(m.label, m.inside.mask) for m in found.measures if m.name.startswith(TRUE)]
    rows = []
    for measure, value in zip(found.measures, found.lower.tolist(), strict=True):
        row: dict[str, Any] = {
            "setting": str(setting),
            "kind": measure.kind,
            "name": measure.name,
            "label": measure.label,
        }
        row |= {"pixels": measure.inside.area, "found": measure.source == "candidate", "bound": value}
        if measure.kind == "share" and measure.source == "candidate":
            mask = measure.inside.mask
            row["iou"] = max((_iou(mask, other) for of, other in true if of == measure.label), default=0.0)
        rows.append(row)
    return rows


def _under(manifest: Manifest, label: NDArray[np.integer], name: str) -> NDArray[np.bool_]:
    known = label != VOID
    members = manifest.tree.members[manifest.tree.id(name)]
    return np.asarray(known & members[np.where(known, label, 0)])


def _iou(first: NDArray[np.bool_], second: NDArray[np.bool_]) -> float:
    return float((first & second).sum() / (first | second).sum())
