"""What is asked about objects and areas: bounds of measures, promised by the run or read from kept label maps.

Counts of pixels cannot bound a measure. Where no label maps are kept, only the command that draws anew is given.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from certiseg.bounds import OF_BOUNDS, Bounds, BoundSettings, make_bounds
from certiseg.certify import settle
from certiseg.errors import InputError
from certiseg.measures.files import polygon_mask
from certiseg.measures.measure import percent
from certiseg.measures.questions import Question, kept, overlap, parts_of, share
from certiseg.measures.questions import free as free_of
from certiseg.planning import least_draws
from certiseg.runs.measured import ELSEWHERE
from certiseg.settings import typed
from certiseg.stats.anytime import anytime_test
from certiseg.stats.binomial import binomial_test
from certiseg.viewer.choice import OF_VOTES, Choice, typed_threat, typed_values
from certiseg.words import COMPARISON, EXPLORATION, PROMISE

if TYPE_CHECKING:
    from certiseg.certificate import Certificate
    from certiseg.hierarchy import Hierarchy
    from certiseg.viewer.run_reader import RunReader
    from certiseg.votes import Votes

MOST_BYTES = 64 << 10
"""Of a question."""
MOST_CORNERS = 500
MOST_OUTLINES = 300
KINDS = ("share", "free")
FILE = "region.json"
NO_MAPS = (
    "This run kept no label maps, and the counts of its pixels cannot bound a region: a run of `certiseg evaluate "
    "--keep-maps` answers here, and the command below draws anew and promises."
)
NO_MEASURES = "Nothing was measured while these votes were drawn: `certiseg evaluate --objects` bounds objects."


# -- measures that were fixed before the draws --------------------------------------------------------------------


def bounds_at(choice: Choice, votes: Votes) -> Bounds:
    """The bounds of the measures of votes at the tau, alpha, test and radius of a choice."""
    return make_bounds(votes, BoundSettings(**{name: getattr(choice.settings, name) for name in OF_BOUNDS}))


def role_of(reader: RunReader, choice: Choice, votes: Votes) -> str:
    """What bounds at a choice are: those of the setting that spends alpha, of another one of the run, or neither."""
    settings = settle(choice.settings, votes, reader.tree)
    here = (votes.sigma, votes.n, *(getattr(settings, name) for name in OF_BOUNDS))
    fixed = [tuple(each[name] for name in ("sigma", "n", *OF_BOUNDS)) for each in reader.fixed(choice.image, votes)]
    return EXPLORATION if here not in fixed else PROMISE if here == fixed[0] else COMPARISON


def objects_of(choice: Choice, votes: Votes, role: str) -> dict[str, Any]:
    """Every object and area that was measured, with its bounds and its outline."""
    if not votes.measures:
        return {"role": None, "rows": [], "why": NO_MEASURES}
    bounds = bounds_at(choice, votes)
    rows: dict[tuple[str, str], dict[str, Any]] = {}
    for measure, value in zip(bounds.measures, bounds.lower.tolist(), strict=True):
        row = rows.setdefault((measure.name, measure.label), _row(measure))
        row["bounds"][measure.kind] = percent(value)
        row["says"].append(measure.sentence(value))
    ordered = sorted(rows.values(), key=_order)
    drawn = [row for row in ordered if not row["whole"]]
    for row in drawn[:MOST_OUTLINES]:
        row["outline"], row["at"] = _outline(row["region"].mask)
    plain = [{name: value for name, value in row.items() if name != "region"} for row in ordered]
    few = None if bounds.critical is not None else f"{votes.n} draws are too few to bound {len(bounds.lower)} measures"
    return {"role": role, "rows": plain, "why": few, "extent": bounds.extent, "claim": bounds.claim()}


def _order(row: dict[str, Any]) -> tuple[int, int]:
    """Found objects, the whole image, true objects; the largest first."""
    return 1 if row["whole"] else 0 if row["found"] else 2, -row["pixels"]


def _row(measure: Any) -> dict[str, Any]:
    return {
        "name": measure.name,
        "label": measure.label,
        "pixels": measure.inside.area,
        "found": measure.source == "candidate",
        "whole": measure.kind not in ("share", "free", "overlap") or measure.name in ("the image", ELSEWHERE),
        "bounds": {},
        "says": [],
        "outline": None,
        "region": measure.inside,
    }


def _outline(mask: NDArray[np.bool_]) -> tuple[str, list[int]]:
    """The edge of a mask as an SVG path along the sides of pixels, and its highest point."""
    padded = np.pad(mask, 1).astype(np.int8)
    across, down = np.diff(padded, axis=0)[:, 1:-1] != 0, np.diff(padded, axis=1)[1:-1].T != 0
    path = "".join(f"M{first} {line}h{last - first}" for line, first, last in _runs(across))
    path += "".join(f"M{line} {first}v{last - first}" for line, first, last in _runs(down))
    row = int(mask.any(axis=1).argmax())
    return path, [int(mask[row].argmax()), row]


def _runs(lines: NDArray[np.bool_]) -> list[tuple[int, int, int]]:
    """Where each run of True begins and ends, line by line."""
    steps = np.diff(np.pad(lines, ((0, 0), (1, 1))).astype(np.int8), axis=1)
    (rows, first), (_, last) = np.nonzero(steps == 1), np.nonzero(steps == -1)
    return list(zip(rows.tolist(), first.tolist(), last.tolist(), strict=True))


# -- what is asked on the page -------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Asked:
    """A region and what is asked about it."""

    kind: str
    label: str
    mask: NDArray[np.bool_]
    corners: tuple[tuple[float, float], ...] | None
    """None for a part of the candidate map."""

    @property
    def name(self) -> str:
        return "the region" if self.corners else "the object"

    def questions(self) -> list[Question]:
        """What the command measures, too: so many measures share alpha."""
        if self.kind == "free":
            return [kept(), free_of(self.mask, self.label, name=self.name)]
        return [kept(), share(self.mask, self.label, name=self.name), overlap(self.mask, self.label, name=self.name)]

    def file(self) -> dict[str, Any]:
        """The region as a file for `certify --area` (its polygon) and `--instances` (COCO)."""
        if self.corners is None:
            segmentation: Any = {"size": list(self.mask.shape), "counts": _column_runs(self.mask)}
        else:
            segmentation = [[value for corner in self.corners for value in corner]]
        found = {} if self.corners is None else {"polygon": [list(corner) for corner in self.corners]}
        return found | {
            "images": [{"id": 1, "file_name": "image"}],
            "categories": [{"id": 1, "name": self.label}],
            "annotations": [{"image_id": 1, "category_id": 1, "segmentation": segmentation}],
        }


def parse_question(content: bytes, votes: Votes, tree: Hierarchy) -> Asked:
    """A question of the page: {kind, label, corners: [[x, y], ...]} or {kind, label, at: [row, column]}."""
    try:
        asked = json.loads(content)
        kind, label = asked["kind"], asked["label"]
    except (ValueError, KeyError, TypeError, RecursionError):
        raise InputError("question must be JSON with kind, label and corners or at, got something else") from None
    if kind not in KINDS:
        raise InputError(f"kind must be {' or '.join(KINDS)}, got {str(kind)[:40]!r}")
    if label is not None and label not in tree.vertices:
        raise InputError(f"label must be a class or vertex of the run, got {str(label)[:40]!r}")
    if "at" in asked:
        return _object_at(asked["at"], kind, label, votes, tree)
    if label is None:
        raise InputError("label must be chosen for a drawn region, got none")
    corners = _corners(asked.get("corners"), votes.size)
    return Asked(kind, label, polygon_mask([corners], votes.size, "region"), corners)


def _corners(given: Any, size: tuple[int, int]) -> tuple[tuple[float, float], ...]:
    """Corners inside the image, or one sentence."""
    if not isinstance(given, list) or not 3 <= len(given) <= MOST_CORNERS:
        count = len(given) if isinstance(given, list) else "none"
        raise InputError(f"corners must be 3 to {MOST_CORNERS} points [x, y], got {count}")
    numbers = all(isinstance(c, list) and len(c) == 2 and all(type(v) in (int, float) for v in c) for c in given)
    height, width = size
    if not numbers or not all(0 <= x <= width and 0 <= y <= height for x, y in given):
        raise InputError(f"corners must be points [x, y] inside the image, {width} wide and {height} high, got others")
    return tuple((float(x), float(y)) for x, y in given)


def _object_at(at: Any, kind: str, label: str | None, votes: Votes, tree: Hierarchy) -> Asked:
    """The connected part of the candidate map that holds a pixel, under a label or the pixel's own class."""
    height, width = votes.size
    good = isinstance(at, list) and len(at) == 2 and all(type(value) is int for value in at)
    if not good or not (0 <= at[0] < height and 0 <= at[1] < width):
        raise InputError(f"at must be a pixel [row, column] of the image, {height} x {width}, got others")
    if kind != "share":
        raise InputError("kind must be share for an object, got free; draw a region to ask how free it is")
    row, column = at
    here = int(votes.candidate[row, column])
    label = label or tree.vertices[here]
    under = tree.members[tree.id(label)][votes.candidate]
    if not under[row, column]:
        raise InputError(f"label must fit the object, got {label!r}: the selection draws say {tree.vertices[here]!r}")
    return Asked(kind, label, next(part for part in parts_of(under, 1) if part[row, column]), None)


def answer(
    asked: Asked, choice: Choice, certificate: Certificate, prediction: NDArray[np.integer] | None
) -> dict[str, Any]:
    """What is seen of a label in a region, and where label maps are kept, the bounds: always exploration."""
    votes, tree, area = certificate.votes, certificate.hierarchy, int(asked.mask.sum())
    members, inside = tree.members[tree.id(asked.label)], asked.mask
    seen = {
        "in the draws, on average": float(votes.counts[inside][:, members].sum(dtype=np.int64) / (area * votes.n)),
        f"certified to be {asked.label}": float((certificate.within(asked.label) & inside).sum() / area),
    }
    if prediction is not None:
        seen["in the prediction without noise"] = float(members[prediction[inside]].mean())
    found: dict[str, Any] = {"label": asked.label, "kind": asked.kind, "name": asked.name, "pixels": area}
    found |= {"role": EXPLORATION, "seen": seen, "bounds": [], "why": None, "file": asked.file()}
    if asked.corners is None:
        found["outline"], _ = _outline(inside)
    if votes.record is None or votes.record.maps is None:
        return found | {"why": NO_MAPS}
    bounds = bounds_at(choice, votes.ask(*asked.questions(), hierarchy=tree))
    says = zip(bounds.measures[1:], bounds.lower.tolist()[1:], strict=True)
    found["bounds"] = [{"says": measure.sentence(value), "bound": value} for measure, value in says]
    return found | {"extent": bounds.extent, "critical": bounds.critical, "claim": bounds.claim()}


def _column_runs(mask: NDArray[np.bool_]) -> list[int]:
    """Run lengths down the columns, the first outside, as COCO has them."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], mask.T.reshape(-1)]).astype(np.int8)))
    return [int(run) for run in np.diff([0, *edges, mask.size])]


def question_command(
    reader: RunReader, asked: Asked, choice: Choice, votes: Votes, *, picture: str, model: tuple[str, ...]
) -> str:
    """The command that makes a question a promise: the same region, on draws that nobody has seen."""
    settings, manifest = choice.settings, reader.manifest
    make: Callable[..., Any] = binomial_test if settings.test == "fixed" else anytime_test
    least = least_draws(make, settings.tau, settings.alpha / len(asked.questions()))
    if least is None:
        raise InputError(f"tau and alpha must allow a bound, got {settings.tau:g} and {settings.alpha:g}")
    n = max(votes.n, least)
    sampling = replace(manifest.sampling(votes.sigma), n=n, snapshots=(), seed=manifest.seed + 1)
    words = ["certiseg", "certify", picture]
    words += ["--area", f"{FILE}:{asked.label}"] if asked.kind == "free" else ["--instances", FILE]
    words += ["--measures-only", *typed(settings, without=_OF_PIXELS), *typed(sampling, without=OF_VOTES)]
    return shlex.join(
        [*words, *typed_threat(manifest), *typed_values(manifest), *model, "--out", f"asked-{Path(picture).stem}"]
    )


_OF_PIXELS = ("method", "correction", "k", "thresholds", "level", "max_set")
"""Settings of a certificate that bounds of measures do not have."""
