"""The class hierarchy H: a tree over the leaf classes, its levels, the map K and the generality G.

K(y, l), `Hierarchy.ancestor`, is the highest vertex on the path from leaf y to the root whose level is at most l.
It is defined for ragged trees and monotone: the leaves under K(y, l) only grow with l. Every guarantee of the chain
methods rests on that.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from importlib.resources import files
from itertools import pairwise
from pathlib import Path
from reprlib import Repr
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certiseg.errors import InputError

ABSTAIN = -1
"""Vertex id of a pixel without a certificate."""
ROOT = -2
"""Vertex id that stands for the omitted root, "everything"."""

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
MAX_VERTICES = 32767
"""Certified maps hold vertex ids in 16 bits, with two negative values for abstentions and the root."""
"""The leaves included; levels are kept in 8 bits."""
MAX_FILE_BYTES = 1 << 20


@dataclass(frozen=True, eq=False)
class Hierarchy:
    """A checked tree. Vertex ids: leaves first (0 .. |Y|-1, file order), then level 1, 2, ... in file order."""

    name: str
    vertices: tuple[str, ...]
    level_of: tuple[int, ...]
    parents: tuple[int, ...]
    """Parent id of every vertex, ROOT for those directly under the omitted root."""
    thresholds: tuple[float, ...] | None = None
    """The thresholds of `adaptive` for this data set, coarsest first, where somebody chose some."""

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
            vertex = leaf
            for level in range(self.num_levels):
                while self.parents[vertex] != ROOT and self.level_of[self.parents[vertex]] <= level:
                    vertex = self.parents[vertex]
                table[leaf, level] = vertex
        return table

    @cached_property
    def members(self) -> NDArray[np.bool_]:
        """(vertices, |Y|): which leaves are under which vertex."""
        under = np.zeros((len(self.vertices), self.num_classes), bool)
        for leaf in range(self.num_classes):
            vertex = leaf
            while vertex != ROOT:
                under[vertex, leaf] = True
                vertex = self.parents[vertex]
        return under

    def require_classes(self, classes: Sequence[str] | int) -> None:
        """Refuse a model whose class count, or whose class names where it knows them, are not this hierarchy's."""
        count = classes if isinstance(classes, int) else len(classes)
        if count != self.num_classes:
            raise InputError(f"hierarchy must have the model's {count} classes, got {self.num_classes} ({self.name})")
        if isinstance(classes, int):
            return
        for index, (theirs, ours) in enumerate(zip(classes, self.classes, strict=True)):
            if _plain(theirs) != _plain(ours):
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


def flat_hierarchy(classes: Sequence[str], *, name: str = "flat") -> Hierarchy:
    """The hierarchy with one level: every class stands for itself."""
    return hierarchy_from_dict({"name": name, "classes": list(classes)}, source=name)


def load_hierarchy(name_or_path: str | Path) -> Hierarchy:
    """A preset by name (cityscapes, acdc, pascal_context, coco_stuff, camvid) or a YAML file by path, checked."""
    import yaml

    name = str(name_or_path)
    if name in PRESETS:
        text = files("certiseg").joinpath(f"presets/{PRESETS[name]}.yaml").read_text("utf-8")
        tree = replace(hierarchy_from_dict(yaml.load(text, _strict_loader()), source=name, data_set=name), name=name)
        return tree
    path = Path(name)
    if not path.is_file():
        raise InputError(f"hierarchy must be one of {', '.join(PRESETS)} or a YAML file, got {name!r}")
    if path.stat().st_size > MAX_FILE_BYTES:
        raise InputError(f"{path}: a hierarchy file must be smaller than 1 MiB, got {path.stat().st_size} bytes")
    try:
        document = yaml.load(path.read_text("utf-8"), _strict_loader())
    except (yaml.YAMLError, RecursionError, ValueError, LookupError, AttributeError) as error:
        raise InputError(f"{path}: must be readable YAML, got {_first_line(error)}") from None
    return hierarchy_from_dict(document, source=str(path))


def hierarchy_from_dict(document: Any, *, source: str, data_set: str | None = None) -> Hierarchy:
    """Check a parsed hierarchy and number its vertices; every complaint names the source and the key."""
    if not isinstance(document, Mapping):
        raise InputError(f"{source}: must be a mapping with the keys `classes` and `levels`")
    unknown = set(document) - {"name", "classes", "levels", "thresholds"}
    if unknown:
        raise InputError(f"{source}: `{sorted(map(str, unknown))[0]}` must be one of name, classes, levels, thresholds")
    classes = _checked_names(document.get("classes"), f"{source}: `classes`")
    if not 2 <= len(classes) <= MAX_CLASSES:
        raise InputError(f"{source}: `classes` must name 2 to {MAX_CLASSES} classes, got {len(classes)}")
    vertices, level_of, parents = _number_vertices(classes, document.get("levels") or {}, source)
    name = document.get("name", Path(source).stem)
    if not isinstance(name, str):
        raise InputError(f"{source}: `name` must be text, got {_short(name)}")
    tree = Hierarchy(name, tuple(vertices), tuple(level_of), tuple(parents))
    thresholds = document.get("thresholds")
    if isinstance(thresholds, Mapping):
        thresholds = thresholds.get(data_set or name)
    if thresholds is not None:
        tree = replace(tree, thresholds=check_thresholds(thresholds, tree.num_levels, f"{source}: `thresholds`"))
    return tree


def check_thresholds(thresholds: Any, num_levels: int, what: str = "thresholds") -> tuple[float, ...]:
    """At most L-1 non-decreasing numbers in [0, 1], coarsest level first."""
    numeric = isinstance(thresholds, Sequence) and all(
        isinstance(t, int | float | np.floating | np.integer) and not isinstance(t, bool) for t in thresholds
    )
    if not numeric or isinstance(thresholds, str):
        raise InputError(f"{what} must be a list of numbers, coarsest level first, got {_short(thresholds)}")
    values = tuple(float(t) for t in thresholds)
    if len(values) > num_levels - 1:
        raise InputError(f"{what} must be at most {num_levels - 1} for {num_levels} levels, got {len(values)}")
    if not all(0 <= t <= 1 for t in values):
        raise InputError(f"{what} must lie in [0, 1], got {values}")
    if any(first > second for first, second in pairwise(values)):
        raise InputError(f"{what} must not decrease (coarsest level first), got {values}")
    return values


def _number_vertices(classes: list[str], levels: Any, source: str) -> tuple[list[str], list[int], list[int]]:
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
                raise InputError(f"{source}: `levels: {level}: {name}` must be a new name, but it is used before")
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
    ids: Mapping[str, int], level_of: list[int], parents: list[int], parent: int, children: Any, key: str
) -> None:
    """Enter `parent` as the parent of its children, unless that breaks the tree."""
    names = _checked_names(children, key)
    if not names:
        raise InputError(f"{key} must have at least one child, or it has no leaf")
    for child in names:
        if child not in ids:
            raise InputError(f"{key} must list known vertices, got {child!r}")
        if level_of[ids[child]] >= level_of[parent]:
            raise InputError(
                f"{key} must be above its children (a cycle otherwise), but {child!r} is at level "
                f"{level_of[ids[child]]}, not below {level_of[parent]}"
            )
        if parents[ids[child]] != ROOT:
            raise InputError(f"{key} must not share a child with another vertex, but {child!r} has two parents")
        parents[ids[child]] = parent


def _checked_names(names: Any, what: str) -> list[str]:
    if not isinstance(names, list) or not all(isinstance(name, str) and name.strip() for name in names):
        raise InputError(f"{what} must be a list of names (quote names that YAML reads as yes, no or a number)")
    repeated = {name for name in names if names.count(name) > 1} if len(set(names)) < len(names) else set()
    if repeated:
        raise InputError(f"{what} must not repeat names, got {sorted(repeated)[0]!r} twice")
    return names


def _plain(name: str) -> str:
    """A class name without the differences that spelling conventions make."""
    return " ".join(name.casefold().replace("_", " ").replace("-", " ").split())


def _short(value: Any) -> str:
    """The value as it is written, cut short: what YAML's aliases double again and again is never written out."""
    shortener = Repr()
    shortener.maxlevel = 2
    return shortener.repr(value)


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__


def _strict_loader() -> type:
    """PyYAML's safe loader, but a key given twice is an error instead of the last one winning."""
    import yaml

    class StrictLoader(yaml.SafeLoader):
        def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
            mapping = super().construct_mapping(node, deep)
            if len(mapping) < len(node.value):
                seen: set[Any] = set()
                keys = (self.construct_object(key, deep=True) for key, _ in node.value)
                twice = next(key for key in keys if key in seen or seen.add(key))  # type: ignore[func-returns-value]
                raise yaml.constructor.ConstructorError(None, None, f"the key {twice!r} twice", node.start_mark)
            return mapping

    return StrictLoader
