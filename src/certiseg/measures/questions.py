"""Questions: what a user asks about objects, areas and the whole image.

A question becomes one or more measures when the selection draws are made, and before any estimation draw.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from certiseg.errors import InputError
from certiseg.hierarchy import VOID, Hierarchy, flat_hierarchy
from certiseg.measures.measure import Kind, Measure, Source
from certiseg.measures.region import checked_mask, nothing, region_of, whole_image, widened
from certiseg.settings import is_whole

Label: TypeAlias = str | int | Sequence[str | int]
"""A class or vertex, by name or id, or a list of them."""

MARGIN = 10
"""Pixels around a region in which phantom pixels count against its overlap, unless said otherwise."""
MOST_MEASURES = 20_000
MOST_OBJECTS = 10_000


@dataclass(frozen=True)
class Scene:
    """What questions are resolved by: the candidate map of the selection draws, and the names of labels."""

    candidate: NDArray[np.integer]
    hierarchy: Hierarchy

    @property
    def size(self) -> tuple[int, int]:
        """Height and width."""
        return self.candidate.shape[0], self.candidate.shape[1]

    def vertices(self, label: Label) -> list[int]:
        """The ids of the vertices that a label names."""
        parts = [label] if isinstance(label, str | int | np.integer) else list(label)
        if not parts:
            raise InputError("label must be a class, a vertex or a list of them, got an empty list")
        for part in parts:
            if isinstance(part, str) and part not in self.hierarchy.vertices:
                known = f"a class or vertex of {self.hierarchy.name}"
                raise InputError(f"label must be {known}, got {part!r}; vertices need hierarchy=")
        return [self.hierarchy.id(part) for part in parts]

    def members(self, label: Label) -> NDArray[np.bool_]:
        """(C,): the classes under a label."""
        return np.asarray(self.hierarchy.members[self.vertices(label)].any(axis=0))

    def words(self, label: Label) -> str:
        """A label as it is read."""
        return " or ".join(self.hierarchy.vertices[vertex] for vertex in self.vertices(label))


def scene_of(candidate: NDArray[np.integer], hierarchy: Hierarchy | None, classes: Sequence[str] | int) -> Scene:
    """The scene of a candidate map; without a hierarchy the labels are the model's classes."""
    if hierarchy is None:
        names = [f"class {index}" for index in range(classes)] if isinstance(classes, int) else classes
        return Scene(candidate, flat_hierarchy(names))
    hierarchy.require_classes(classes)
    return Scene(candidate, hierarchy)


@dataclass(frozen=True, eq=False)
class Question:
    """Something to measure in every noisy label map."""

    kind: Kind | Literal["area", "objects"]
    label: Label = ()
    region: ArrayLike | None = None
    truth: NDArray[np.integer] | None = None
    level: int = 0
    margin: int = MARGIN
    least: int = 100
    name: str | None = None

    def resolve(self, scene: Scene) -> tuple[Measure, ...]:
        """The measures that the question stands for in a scene."""
        return tuple(_RESOLVED[self.kind](self, scene))


def share(region: ArrayLike, label: Label, *, name: str = "the region") -> Question:
    """Part of a region labelled under a label: how much of this car is still vehicle."""
    return Question("share", label, region, name=name)


def free(region: ArrayLike, label: Label, *, name: str = "the region") -> Question:
    """1 - share: how free of phantom pedestrians the lane is."""
    return Question("free", label, region, name=name)


def overlap(region: ArrayLike, label: Label, *, margin: int = MARGIN, name: str = "the region") -> Question:
    """IoU of a region with the pixels under a label, inside the region widened by a margin."""
    if not (is_whole(margin) and margin >= 0):
        raise InputError(f"margin must be a whole number >= 0, got {margin!r}")
    return Question("overlap", label, region, margin=int(margin), name=name)


def kept(level: int = 0) -> Question:
    """Part of all pixels whose label lies under K(candidate, level): the whole image at once."""
    return Question("kept", level=level)


def area(label: Label) -> Question:
    """Part of the image under a label, from below; `free` of the whole image bounds it from above."""
    return Question("area", label)


def steady(label: Label) -> Question:
    """1 - abs(area - area in the candidate map): bounds an area from both sides in one statement."""
    return Question("steady", label)


def accuracy(truth: NDArray[np.integer]) -> Question:
    """Part of the pixels with ground truth (255: none) that are labelled rightly."""
    return Question("accuracy", truth=np.asarray(truth))


def dice(truth: NDArray[np.integer], label: Label) -> Question:
    """Dice score of a label against ground truth (255: none), 1 where both are empty."""
    return Question("dice", label, truth=np.asarray(truth))


def objects(*labels: str | int, least: int = 100, margin: int = MARGIN) -> Question:
    """Share and overlap of every connected part (8 neighbours) of the candidate map under each of the labels.

    least: the area from which a part is an object. What is found is fixed by the selection draws.
    """
    if not labels:
        raise InputError("objects must be asked with at least one label, got none")
    if not (is_whole(least) and least >= 1):
        raise InputError(f"least must be a whole number of pixels >= 1, got {least!r}")
    return Question("objects", labels, least=int(least), margin=margin)


def resolve(questions: Iterable[Question | Measure], scene: Scene) -> tuple[Measure, ...]:
    """The measures of all questions, in order; measures stand for themselves."""
    found: list[Measure] = []
    for question in questions:
        if isinstance(question, Measure):
            if question.size != scene.size or len(question.members) != scene.hierarchy.num_classes:
                raise InputError(f"measure {question.name} must be of an image of the size {scene.size}")
            found.append(question)
        elif isinstance(question, Question):
            found += question.resolve(scene)
        else:
            raise InputError(f"measures must be those of certiseg.measures, got {type(question).__name__}")
    if len(found) > MOST_MEASURES:
        raise InputError(f"measures must be at most {MOST_MEASURES:,}, got {len(found):,}")
    return tuple(found)


# -- one short function per question -----------------------------------------------------------------------------


def _in_region(question: Question, scene: Scene) -> Iterable[Measure]:
    assert question.region is not None
    name = question.name or "the region"
    mask = checked_mask(question.region, scene.size)
    yield _about(question.kind, mask, question.label, scene, name=name, margin=question.margin)  # type: ignore[arg-type]


def _about(
    kind: Kind,
    mask: NDArray[np.bool_],
    label: Label,
    scene: Scene,
    *,
    name: str,
    margin: int,
    source: Source = "given",
    least: int = 0,
) -> Measure:
    wide = kind == "overlap" and margin > 0
    outer = region_of(widened(mask, margin) & ~mask) if wide else nothing(scene.size)
    return Measure(
        kind,
        name,
        scene.words(label),
        region_of(mask),
        outer,
        scene.members(label),
        margin=margin if kind == "overlap" else 0,
        source=source,
        least=least,
    )


def _area(question: Question, scene: Scene) -> Iterable[Measure]:
    whole, label = whole_image(scene.size), question.label
    yield Measure("share", "the image", scene.words(label), whole, nothing(scene.size), scene.members(label))


def _steady(question: Question, scene: Scene) -> Iterable[Measure]:
    members = scene.members(question.label)
    now = int(members[scene.candidate].sum())
    whole, words = whole_image(scene.size), scene.words(question.label)
    yield Measure("steady", "the image", words, whole, nothing(scene.size), members, reference=now, source="candidate")


def _kept(question: Question, scene: Scene) -> Iterable[Measure]:
    tree, level = scene.hierarchy, question.level
    if not (is_whole(level) and 0 <= level < tree.num_levels):
        raise InputError(f"level must be in 0..{tree.num_levels - 1} for this hierarchy, got {level!r}")
    targets = tree.ancestors[scene.candidate, level].astype(np.uint16)
    words = "their class" if level == 0 else f"their label at level {level}"
    yield Measure(
        "kept",
        "the image",
        words,
        whole_image(scene.size),
        nothing(scene.size),
        np.ones(tree.num_classes, bool),
        level=int(level),
        targets=targets,
        table=tree.members,
        source="candidate",
    )


def _truth(question: Question, scene: Scene) -> NDArray[np.integer]:
    truth = question.truth
    assert truth is not None
    if truth.dtype.kind not in "iu" or truth.shape != scene.size:
        raise InputError(f"truth must hold classes, with the size {scene.size}, got {truth.dtype} {truth.shape}")
    known = truth[truth != VOID]
    if known.size == 0 or known.min() < 0 or known.max() >= scene.hierarchy.num_classes:
        raise InputError(f"truth must hold classes 0..{scene.hierarchy.num_classes - 1}, or {VOID} for none")
    return truth


def _accuracy(question: Question, scene: Scene) -> Iterable[Measure]:
    truth, classes = _truth(question, scene), scene.hierarchy.num_classes
    void = truth == VOID
    yield Measure(
        "accuracy",
        "the image",
        "the truth",
        region_of(~void),
        nothing(scene.size),
        np.ones(classes, bool),
        targets=np.where(void, classes, truth).astype(np.uint16),
        table=np.eye(classes + 1, classes, dtype=bool),
    )


def _dice(question: Question, scene: Scene) -> Iterable[Measure]:
    truth, members = _truth(question, scene), scene.members(question.label)
    known = truth != VOID
    true = known & members[np.where(known, truth, 0)]
    words = scene.words(question.label)
    yield Measure("dice", "the image", words, region_of(true), region_of(known & ~true), members)


def _objects(question: Question, scene: Scene) -> Iterable[Measure]:
    labels: Sequence[str | int] = question.label  # type: ignore[assignment]
    found = [
        (label, mask) for label in labels for mask in parts_of(scene.members(label)[scene.candidate], question.least)
    ]
    if len(found) > MOST_OBJECTS:
        raise InputError(f"objects must be at most {MOST_OBJECTS:,}, got {len(found):,}; ask for a larger least area")
    number: dict[str | int, int] = {}
    for label, mask in found:
        number[label] = number.get(label, 0) + 1
        name = f"{scene.words(label)} {number[label]}"
        for kind in ("share", "overlap"):
            yield _about(
                kind, mask, label, scene, name=name, margin=question.margin, source="candidate", least=question.least
            )


def parts_of(mask: NDArray[np.bool_], least: int) -> list[NDArray[np.bool_]]:
    """Masks of the connected parts (8 neighbours) of a mask from a least area on, from the top left."""
    from scipy.ndimage import label as connected

    numbered, count = connected(mask, np.ones((3, 3), bool))
    areas = np.bincount(numbered.reshape(-1), minlength=count + 1)
    large = [part for part in range(1, count + 1) if areas[part] >= least]
    if len(large) > MOST_OBJECTS:
        raise InputError(f"objects must be at most {MOST_OBJECTS:,}, got {len(large):,}; ask for a larger least area")
    return [numbered == part for part in large]


_RESOLVED: dict[str, Callable[[Question, Scene], Iterable[Measure]]] = {
    "share": _in_region,
    "free": _in_region,
    "overlap": _in_region,
    "area": _area,
    "steady": _steady,
    "kept": _kept,
    "accuracy": _accuracy,
    "dice": _dice,
    "objects": _objects,
}
