"""The class hierarchy H: a tree over the leaf classes, its levels, the map K and the generality G.

K(y, l), `Hierarchy.ancestor`, is the highest vertex on the path from leaf y to the root whose level is at most l.
It is defined for ragged trees and monotone: the leaves under K(y, l) only grow with l. Every guarantee of the chain
methods rests on that.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from importlib.resources import files
from itertools import pairwise
from pathlib import Path
from reprlib import Repr
from typing import Any

import numpy as np
import yaml
from numpy.typing import NDArray

from certiseg.errors import InputError

ABSTAIN = -1
"""Vertex id of a pixel without a certificate."""
ROOT = -2
"""Vertex id that stands for the omitted root, "everything"."""
VOID = 255
"""Label of a pixel without ground truth."""

PRESETS = {
    "cityscapes": "cityscapes",
    "acdc": "cityscapes",
    "pascal_context": "pascal_context",
    "coco_stuff": "coco_stuff",
    "camvid": "camvid",
}
"""Name of a preset -> the YAML file that holds its tree (ACDC shares the classes of Cityscapes)."""

MAX_CLASSES = 4096
MAX_LEVELS = 255
"""The leaves included; levels are kept in 8 bits."""
MAX_VERTICES = 32767
"""Certified maps hold vertex ids in 16 bits, with two negative values for abstentions and the root."""
MAX_FILE_BYTES = 1 << 20
_KEYS = ("name", "classes", "levels", "thresholds", "things")


@dataclass(frozen=True, eq=False, repr=False)
class Hierarchy:
    """A checked tree. Vertex ids: leaves first (0 .. |Y|-1, file order), then level 1, 2, ... in file order."""

    name: str
    vertices: tuple[str, ...]
    level_of: tuple[int, ...]
    parents: tuple[int, ...]
    """Parent id of every vertex, ROOT for those directly under the omitted root."""
    thresholds: tuple[float, ...] | None = None
    """The thresholds of `adaptive` for this data set, coarsest first, where somebody chose some."""
    things: tuple[str, ...] = ()
    """The vertices whose connected parts are objects: vehicles, humans, ..."""

    def __repr__(self) -> str:
        return f"Hierarchy({self.name}, {self.size})"

    @property
    def size(self) -> str:
        """How large it is, in words."""
        return f"{self.num_classes} classes in {self.num_levels} level{'s' if self.num_levels > 1 else ''}"

    @property
    def num_classes(self) -> int:
        """|Y|, the number of leaves."""
        return self.level_of.count(0)

    @property
    def num_levels(self) -> int:
        """L, the number of levels, the leaves included."""
        return max(self.level_of) + 1

    @property
    def classes(self) -> tuple[str, ...]:
        """Names of the leaves, in the order of the model's scores."""
        return self.vertices[: self.num_classes]

    def id(self, vertex: str | int) -> int:
        """The id of a vertex given by name or by id."""
        if isinstance(vertex, str):
            if vertex not in self._ids:
                raise InputError(f"vertex must be one of {self.name}'s, got {vertex!r}; see `certiseg hierarchy show`")
            return self._ids[vertex]
        if not 0 <= vertex < len(self.vertices):
            raise InputError(f"vertex must be in 0..{len(self.vertices) - 1}, got {vertex}")
        return int(vertex)

    def ancestor(self, leaf: str | int, level: int) -> int:
        """K(y, l): the vertex that stands for leaf y at level l."""
        leaf = self.id(leaf)
        if self.level_of[leaf] != 0 or not 0 <= level < self.num_levels:
            raise InputError(
                f"K(leaf, level) must be asked for a class and a level in 0..{self.num_levels - 1}, "
                f"got {self.vertices[leaf]!r} and {level}"
            )
        return int(self.ancestors[leaf, level])

    def generality(self, vertex: str | int) -> int:
        """G(v): the number of leaf descendants of v, 1 for a leaf."""
        return len(self.leaves(vertex))

    def leaves(self, vertex: str | int) -> tuple[int, ...]:
        """The classes under a vertex (a leaf is under itself)."""
        return tuple(int(leaf) for leaf in np.flatnonzero(self.members[self.id(vertex)]))

    def children(self, vertex: int) -> tuple[int, ...]:
        """The direct children of a vertex, or of the omitted root (ROOT)."""
        return tuple(child for child, parent in enumerate(self.parents) if parent == vertex)

    def cover(self, classes: Iterable[int]) -> int:
        """The lowest vertex with all the classes under it, ROOT where only the omitted root has."""
        wanted = list(classes)
        covering = np.flatnonzero(self.members[:, wanted].all(axis=1))
        return ROOT if covering.size == 0 else int(covering[np.argmin(self.members[covering].sum(axis=1))])

    @cached_property
    def ancestors(self) -> NDArray[np.int32]:
        """(|Y|, L): K(y, l) of every leaf and level."""
        table = np.empty((self.num_classes, self.num_levels), np.int32)
        for leaf in range(self.num_classes):
            for vertex in self._path(leaf):
                table[leaf, self.level_of[vertex] :] = vertex
        return table

    @cached_property
    def agreement(self) -> NDArray[np.uint8]:
        """(|Y|, |Y|): the first level l at which K(y, l) holds another class, L where none does."""
        under = self.members[self.ancestors]
        first = np.where(under.any(axis=1), under.argmax(axis=1), self.num_levels)
        return first.astype(np.uint8)

    @cached_property
    def members(self) -> NDArray[np.bool_]:
        """(vertices, |Y|): which leaves are under which vertex."""
        under = np.zeros((len(self.vertices), self.num_classes), bool)
        for leaf in range(self.num_classes):
            under[self._path(leaf), leaf] = True
        return under

    def _path(self, leaf: int) -> list[int]:
        """From a leaf upwards to the vertex under the omitted root; levels only grow along it."""
        path = [leaf]
        while (parent := self.parents[path[-1]]) != ROOT:
            path.append(parent)
        return path

    def require_classes(self, classes: Sequence[str] | int) -> None:
        """Refuse a model whose class count, or whose class names where it knows them, are not this hierarchy's."""
        count = classes if isinstance(classes, int) else len(classes)
        if count != self.num_classes:
            raise InputError(f"hierarchy must have the model's {count} classes, got {self.num_classes} ({self.name})")
        if isinstance(classes, int):
            return
        for index, (theirs, ours) in enumerate(zip(classes, self.classes, strict=True)):
            if plain_name(theirs) != plain_name(ours):
                raise InputError(
                    f"hierarchy must list the model's classes in the model's order, got {ours!r} for class {index} "
                    f"of {self.name} where the model has {theirs!r}; reorder `classes` in the hierarchy file"
                )

    def as_dict(self) -> dict[str, Any]:
        """The tree in the structure of its YAML file, for storing beside a certificate."""
        levels = {
            level: {
                self.vertices[v]: [self.vertices[child] for child in self.children(v)]
                for v in range(len(self.vertices))
                if self.level_of[v] == level
            }
            for level in range(1, self.num_levels)
        }
        tree: dict[str, Any] = {"name": self.name, "classes": list(self.classes), "levels": levels}
        if self.thresholds is not None:
            tree["thresholds"] = list(self.thresholds)
        return tree

    @cached_property
    def _ids(self) -> dict[str, int]:
        return {name: index for index, name in enumerate(self.vertices)}


class _StrictLoader(yaml.SafeLoader):
    """PyYAML's safe loader, but a key given twice is an error instead of the last one winning."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        mapping = super().construct_mapping(node, deep)
        if len(mapping) < len(node.value):
            keys = Counter(self.construct_object(key, deep=True) for key, _ in node.value)
            twice, _ = keys.most_common(1)[0]
            raise yaml.constructor.ConstructorError(None, None, f"the key {twice!r} twice", node.start_mark)
        return mapping


def flat_hierarchy(classes: Sequence[str], *, name: str = "flat") -> Hierarchy:
    """The hierarchy with one level: every class stands for itself."""
    return hierarchy_from_dict({"name": name, "classes": list(classes)}, source=name)


def load_hierarchy(name_or_path: str | Path) -> Hierarchy:
    """A preset by name (cityscapes, acdc, pascal_context, coco_stuff, camvid) or a YAML file by path, checked."""
    name = str(name_or_path)
    if name in PRESETS:
        text = files("certiseg").joinpath(f"presets/{PRESETS[name]}.yaml").read_text("utf-8")
        return replace(hierarchy_from_dict(yaml.load(text, _StrictLoader), source=name, data_set=name), name=name)
    path = Path(name)
    if not path.is_file():
        raise InputError(f"hierarchy must be one of {', '.join(PRESETS)} or a YAML file, got {name!r}")
    if path.stat().st_size > MAX_FILE_BYTES:
        raise InputError(f"{path}: a hierarchy file must be smaller than 1 MiB, got {path.stat().st_size} bytes")
    try:
        document = yaml.load(path.read_text("utf-8"), _StrictLoader)
    except (yaml.YAMLError, RecursionError, ValueError, LookupError, AttributeError) as error:
        reason = next(iter(str(error).strip().splitlines()), type(error).__name__)
        if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark is not None:
            reason = f"{error.problem} in line {error.problem_mark.line + 1}"
        raise InputError(f"{path}: must be readable YAML, got {reason}") from None
    return hierarchy_from_dict(document, source=str(path))


def hierarchy_from_dict(document: object, *, source: str, data_set: str | None = None) -> Hierarchy:
    """Check a parsed hierarchy and number its vertices; every complaint names the source and the key."""
    if not isinstance(document, Mapping):
        raise InputError(f"{source}: must be a mapping with the keys `classes` and `levels`")
    unknown = set(document) - set(_KEYS)
    if unknown:
        raise InputError(f"{source}: `{sorted(map(str, unknown))[0]}` must be one of {', '.join(_KEYS)}")
    classes = _checked_names(document.get("classes"), f"{source}: `classes`")
    if not 2 <= len(classes) <= MAX_CLASSES:
        raise InputError(f"{source}: `classes` must name 2 to {MAX_CLASSES} classes, got {len(classes)}")
    vertices, level_of, parents = _number_vertices(classes, document.get("levels") or {}, source)
    name = document.get("name", Path(source).stem)
    if not isinstance(name, str):
        raise InputError(f"{source}: `name` must be text, got {_short(name)}")
    things = _checked_names(document.get("things") or [], f"{source}: `things`")
    if strange := [thing for thing in things if thing not in vertices]:
        raise InputError(f"{source}: `things` must list classes or vertices, got {strange[0]!r}")
    tree = Hierarchy(name, tuple(vertices), tuple(level_of), tuple(parents), things=tuple(things))
    thresholds = document.get("thresholds")
    if isinstance(thresholds, Mapping):
        thresholds = thresholds.get(data_set or name)
    if thresholds is not None:
        tree = replace(tree, thresholds=check_thresholds(thresholds, tree.num_levels, f"{source}: `thresholds`"))
    return tree


def hierarchy_from_json(document: object, *, source: str) -> Hierarchy:
    """The tree of a file of ours: what `as_dict` gave, after JSON made text of the numbers of the levels."""
    if isinstance(document, Mapping) and isinstance(document.get("levels"), Mapping):
        levels = {int(key) if str(key).isdecimal() else key: below for key, below in document["levels"].items()}
        document = {**document, "levels": levels}
    return hierarchy_from_dict(document, source=source)


def check_thresholds(thresholds: object, num_levels: int, what: str = "thresholds") -> tuple[float, ...]:
    """At most L-1 non-decreasing numbers in [0, 1], coarsest level first."""
    if not isinstance(thresholds, Sequence) or isinstance(thresholds, str) or not all(map(_is_number, thresholds)):
        raise InputError(f"{what} must be a list of numbers, coarsest level first, got {_short(thresholds)}")
    values = tuple(float(t) for t in thresholds)
    if len(values) > num_levels - 1:
        raise InputError(f"{what} must be at most {num_levels - 1}, one fewer than levels, got {len(values)}")
    if not all(0 <= t <= 1 for t in values):
        raise InputError(f"{what} must lie in [0, 1], got {values}")
    if any(first > second for first, second in pairwise(values)):
        raise InputError(f"{what} must not decrease (coarsest level first), got {values}")
    return values


def _number_vertices(classes: list[str], levels: object, source: str) -> tuple[list[str], list[int], list[int]]:
    """Vertex names, levels and parents in id order, with every rule of a tree checked."""
    if not isinstance(levels, Mapping):
        raise InputError(f"{source}: `levels` must map 1, 2, ... to vertices, got {_short(levels)}")
    numbers = [level for level in levels if isinstance(level, int) and not isinstance(level, bool)]
    if sorted(numbers) != list(range(1, len(levels) + 1)):
        raise InputError(f"{source}: `levels` must be numbered 1, 2, ... without gaps, got {_short(list(levels))}")
    if len(levels) >= MAX_LEVELS:
        raise InputError(f"{source}: `levels` must be at most {MAX_LEVELS - 1}, got {len(levels)}")
    vertices, level_of, known = list(classes), [0] * len(classes), set(classes)
    for level in sorted(levels):
        if not isinstance(levels[level], Mapping) or not levels[level]:
            raise InputError(f"{source}: `levels: {level}` must map vertex names to lists of children")
        for name in _checked_names(list(levels[level]), f"{source}: `levels: {level}`"):
            if name in known:
                raise InputError(f"{source}: `levels: {level}: {name}` must be a new name, got one that is used before")
            vertices.append(name)
            level_of.append(level)
            known.add(name)
    if len(vertices) > MAX_VERTICES:
        raise InputError(f"{source}: `levels` must leave at most {MAX_VERTICES} vertices in all, got {len(vertices)}")
    ids = {name: index for index, name in enumerate(vertices)}
    parents = [ROOT] * len(vertices)
    for level in sorted(levels):
        for name, children in levels[level].items():
            _adopt(ids, level_of, parents, ids[name], children, f"{source}: `levels: {level}: {name}`")
    return vertices, level_of, parents


def _adopt(
    ids: Mapping[str, int], level_of: list[int], parents: list[int], parent: int, children: object, key: str
) -> None:
    """Enter `parent` as the parent of its children, unless that breaks the tree."""
    names = _checked_names(children, key)
    if not names:
        raise InputError(f"{key} must have at least one child, got none")
    for child in names:
        if child not in ids:
            raise InputError(f"{key} must list known vertices, got {child!r}")
        if level_of[ids[child]] >= level_of[parent]:
            raise InputError(
                f"{key} must be above its children, got {child!r} of level {level_of[ids[child]]} under level "
                f"{level_of[parent]}; otherwise there may be a cycle"
            )
        if parents[ids[child]] != ROOT:
            raise InputError(f"{key} must not share a child with another vertex, got {child!r}, which has a parent")
        parents[ids[child]] = parent


def _checked_names(names: object, what: str) -> list[str]:
    if not isinstance(names, list) or not all(isinstance(name, str) and name.strip() for name in names):
        raise InputError(f"{what} must be a list of names (quote names that YAML reads as yes, no or a number)")
    for name, times in Counter(names).most_common(1):
        if times > 1:
            raise InputError(f"{what} must not repeat names, got {name!r} twice")
    return names


def _is_number(value: object) -> bool:
    return isinstance(value, int | float | np.floating | np.integer) and not isinstance(value, bool)


def plain_name(name: str) -> str:
    """A class name without the differences that spelling conventions make."""
    return " ".join(name.casefold().replace("_", " ").replace("-", " ").split())


def _short(value: object) -> str:
    """The value in a few words: what YAML's aliases double again and again is never written out."""
    shortener = Repr()
    shortener.maxlevel = 2
    return shortener.repr(value)
