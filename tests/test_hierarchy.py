"""The tree: K on ragged trees, G, covers, presets, and one sentence for every way a file can be wrong."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from hypothesis import given

import certiseg as cs
from certiseg.hierarchy import PRESETS, check_thresholds, flat_hierarchy, hierarchy_from_dict
from tests.conftest import tree_documents


def path_upward(document: dict[str, Any], leaf: str) -> list[tuple[str, int]]:
    """(vertex, its level) from a leaf to the top, read off the file's structure."""
    path = [(leaf, 0)]
    while True:
        above = [
            (vertex, level)
            for level, vertices in document["levels"].items()
            for vertex, children in vertices.items()
            if path[-1][0] in children
        ]
        if not above:
            return path
        path += above


def leaves_under(document: dict[str, Any], vertex: str) -> set[str]:
    return {leaf for leaf in document["classes"] if vertex in [name for name, _ in path_upward(document, leaf)]}


@given(tree_documents())
def test_k_is_the_highest_vertex_on_the_path_whose_level_is_at_most_l(document: dict[str, Any]) -> None:
    tree = hierarchy_from_dict(document, source="random")
    assert tree.num_levels == len(document["levels"]) + 1
    for leaf in document["classes"]:
        for level in range(tree.num_levels):
            expected = [name for name, at in path_upward(document, leaf) if at <= level][-1]
            assert tree.vertices[tree.ancestor(leaf, level)] == expected
            assert tree.ancestors[tree.id(leaf), level] == tree.id(expected)


@given(tree_documents())
def test_k_is_monotone_and_every_leaf_is_under_its_own_ancestors(document: dict[str, Any]) -> None:
    tree = hierarchy_from_dict(document, source="random")
    for leaf in range(tree.num_classes):
        assert tree.ancestor(leaf, 0) == leaf
        for level in range(tree.num_levels):
            members = set(tree.leaves(tree.ancestor(leaf, level)))
            assert leaf in members
            if level:
                assert set(tree.leaves(tree.ancestor(leaf, level - 1))) <= members


@given(tree_documents())
def test_generality_leaves_and_members_agree_with_the_file(document: dict[str, Any]) -> None:
    tree = hierarchy_from_dict(document, source="random")
    assert tree.vertices == (*document["classes"], *(v for level in document["levels"].values() for v in level))
    for vertex, name in enumerate(tree.vertices):
        expected = leaves_under(document, name)
        assert {tree.vertices[leaf] for leaf in tree.leaves(name)} == expected
        assert tree.generality(vertex) == len(expected)
        assert {tree.vertices[leaf] for leaf in np.flatnonzero(tree.members[vertex])} == expected


@given(tree_documents(max_classes=5))
def test_cover_is_the_lowest_vertex_over_a_set(document: dict[str, Any]) -> None:
    tree = hierarchy_from_dict(document, source="random")
    for size in range(1, tree.num_classes + 1):
        for classes in combinations(range(tree.num_classes), size):
            over = [v for v in range(len(tree.vertices)) if set(classes) <= set(tree.leaves(v))]
            lowest = min(over, key=lambda v: (tree.generality(v), tree.level_of[v]), default=cs.ROOT)
            assert tree.cover(classes) == lowest


@given(tree_documents())
def test_a_tree_survives_its_own_dictionary(document: dict[str, Any]) -> None:
    tree = hierarchy_from_dict(document, source="random")
    again = hierarchy_from_dict(tree.as_dict(), source="again")
    assert (again.name, again.vertices, again.level_of, again.parents) == (
        tree.name,
        tree.vertices,
        tree.level_of,
        tree.parents,
    )


@given(tree_documents())
def test_agreement_is_the_first_level_at_which_one_class_stands_for_another(document: dict[str, Any]) -> None:
    tree = hierarchy_from_dict(document, source="random")
    for own in range(tree.num_classes):
        for other in range(tree.num_classes):
            levels = [at for at in range(tree.num_levels) if other in tree.leaves(tree.ancestor(own, at))]
            assert tree.agreement[own, other] == min(levels, default=tree.num_levels)


@pytest.mark.parametrize(
    ("tree", "words"),
    [(flat_hierarchy(["a", "b"]), "2 classes in 1 level"), (cs.load_hierarchy("camvid"), "31 classes in 4 levels")],
)
def test_the_size_in_words_counts_its_levels(tree: cs.Hierarchy, words: str) -> None:
    assert tree.size == words
    assert repr(tree) == f"Hierarchy({tree.name}, {words})"


def test_design_examples_of_k() -> None:
    cityscapes, pascal = cs.load_hierarchy("cityscapes"), cs.load_hierarchy("pascal_context")
    assert cityscapes.vertices[cityscapes.ancestor("road", cityscapes.num_levels - 1)] == "road"
    assert pascal.vertices[pascal.ancestor("aeroplane", 2)] == "vehicle"


@pytest.mark.parametrize("name", sorted(PRESETS))
def test_presets_load_with_thresholds_that_fit(name: str) -> None:
    tree = cs.load_hierarchy(name)
    assert tree.name == name
    assert tree.num_levels == 4
    assert len(set(tree.vertices)) == len(tree.vertices)
    if tree.thresholds is not None:
        assert check_thresholds(tree.thresholds, tree.num_levels) == tree.thresholds


def test_presets_have_their_data_sets_class_counts() -> None:
    counts = {name: cs.load_hierarchy(name).num_classes for name in ("cityscapes", "acdc", "pascal_context")}
    assert counts == {"cityscapes": 19, "acdc": 19, "pascal_context": 59}


def test_a_file_and_a_preset_of_the_same_text_are_the_same_tree(tmp_path: Path) -> None:
    tree = cs.load_hierarchy("camvid")
    path = tmp_path / "camvid.yaml"
    path.write_text(yaml.safe_dump(tree.as_dict(), sort_keys=False))
    again = cs.load_hierarchy(path)
    assert (again.vertices, again.parents, again.thresholds) == (tree.vertices, tree.parents, tree.thresholds)


def test_flat_hierarchy_has_one_level_and_no_cover_of_two() -> None:
    tree = flat_hierarchy(["a", "b", "c"])
    assert (tree.num_levels, tree.num_classes, tree.generality("b")) == (1, 3, 1)
    assert tree.cover([2]) == 2
    assert tree.cover([0, 1]) == cs.ROOT


GOOD = {
    "name": "small",
    "classes": ["road", "grass", "car", "bus"],
    "levels": {1: {"vehicle": ["car", "bus"]}, 2: {"thing": ["vehicle", "grass"]}},
}

WRONG = {
    "not a mapping": (["road"], "must be a mapping"),
    "empty": (None, "must be a mapping"),
    "unknown key": ({**GOOD, "level": {}}, "`level` must be one of"),
    "no classes": ({"levels": {}}, "`classes` must be a list of names"),
    "one class": ({"classes": ["road"]}, "`classes` must name 2 to"),
    "class repeated": (
        {**GOOD, "classes": ["road", "grass", "car", "car"]},
        "`classes` must not repeat names, got 'car'",
    ),
    "class that is no text": ({"classes": ["road", True]}, "`classes` must be a list of names"),
    "class without letters": ({"classes": ["road", "  "]}, "`classes` must be a list of names"),
    "name that is no text": ({**GOOD, "name": 3}, "`name` must be text"),
    "levels that are a list": ({**GOOD, "levels": ["vehicle"]}, "`levels` must map 1, 2, ..."),
    "gap in the levels": (
        {**GOOD, "levels": {1: {"vehicle": ["car"]}, 3: {"x": ["bus"]}}},
        "`levels` must be numbered",
    ),
    "level zero": ({**GOOD, "levels": {0: {"vehicle": ["car"]}}}, "`levels` must be numbered"),
    "level true": ({**GOOD, "levels": {True: {"vehicle": ["car"]}}}, "`levels` must be numbered"),
    "level as text": ({**GOOD, "levels": {"1": {"vehicle": ["car"]}}}, "`levels` must be numbered"),
    "empty level": ({**GOOD, "levels": {1: {}}}, "`levels: 1` must map vertex names"),
    "unknown child": (
        {**GOOD, "levels": {1: {"vehicle": ["tram"]}}},
        "`levels: 1: vehicle` must list known vertices, got 'tram'",
    ),
    "vertex named like a class": ({**GOOD, "levels": {1: {"car": ["bus"]}}}, "`levels: 1: car` must be a new name"),
    "vertex named twice": (
        {**GOOD, "levels": {1: {"vehicle": ["car"]}, 2: {"vehicle": ["bus"]}}},
        "`levels: 2: vehicle` must be a new name",
    ),
    "two parents": (
        {**GOOD, "levels": {1: {"vehicle": ["car"], "red": ["car"]}}},
        "`levels: 1: red` must not share a child with another vertex, got 'car'",
    ),
    "child listed twice": ({**GOOD, "levels": {1: {"vehicle": ["car", "car"]}}}, "must not repeat names, got 'car'"),
    "child at its parent's level": (
        {**GOOD, "levels": {1: {"vehicle": ["car"], "thing": ["vehicle"]}}},
        "`levels: 1: thing` must be above its children",
    ),
    "child of itself": ({**GOOD, "levels": {1: {"vehicle": ["vehicle"]}}}, "`levels: 1: vehicle` must be above"),
    "cycle": (
        {**GOOD, "levels": {1: {"vehicle": ["thing"]}, 2: {"thing": ["vehicle"]}}},
        "`levels: 1: vehicle` must be above its children",
    ),
    "no leaf": ({**GOOD, "levels": {1: {"vehicle": []}}}, "`levels: 1: vehicle` must have at least one child"),
    "children that are a word": (
        {**GOOD, "levels": {1: {"vehicle": "car"}}},
        "`levels: 1: vehicle` must be a list of names",
    ),
    "vertex that is no text": ({**GOOD, "levels": {1: {7: ["car"]}}}, "`levels: 1` must be a list of names"),
    "thresholds out of order": ({**GOOD, "thresholds": [0.5, 0.2]}, "`thresholds` must not decrease"),
    "too many thresholds": ({**GOOD, "thresholds": [0, 0, 0.2]}, "`thresholds` must be at most 2"),
    "threshold beyond one": ({**GOOD, "thresholds": [0, 1.5]}, "`thresholds` must lie in"),
    "threshold that is no number": ({**GOOD, "thresholds": ["low"]}, "`thresholds` must be a list of numbers"),
    "threshold nan": ({**GOOD, "thresholds": [float("nan")]}, "`thresholds` must lie in"),
    "thresholds as text": ({**GOOD, "thresholds": "0"}, "`thresholds` must be a list of numbers"),
    "more levels than a byte": (
        {"classes": ["a", "b"], "levels": {1: {"v1": ["a"]}} | {i: {f"v{i}": [f"v{i - 1}"]} for i in range(2, 300)}},
        "`levels` must be at most",
    ),
}


@pytest.mark.parametrize("case", sorted(WRONG))
def test_every_mistake_is_one_sentence_with_file_and_key(case: str, tmp_path: Path) -> None:
    document, words = WRONG[case]
    path = tmp_path / "wrong.yaml"
    path.write_text(yaml.safe_dump(document, sort_keys=False))
    with pytest.raises(cs.InputError) as caught:
        cs.load_hierarchy(path)
    message = str(caught.value)
    assert words in message
    assert message.startswith(f"{path}: ")
    assert "\n" not in message
    assert len(message) < len(str(path)) + 300


def test_the_good_file_of_these_cases_is_good() -> None:
    assert hierarchy_from_dict(GOOD, source="good").num_levels == 3


@pytest.mark.parametrize(
    "text",
    [
        "classes: [a, b",
        "classes: [a, b]\nclasses: [c, d]",
        "classes: [a, b]\nlevels: {1: {x: [a]}, 1: {y: [b]}}",
        "classes: [a, b]\nlevels: {1: {x: [a], x: [b]}}",
        "classes: !!python/object/apply:os.system ['true']",
        "name: !!timestamp soon\nclasses: [a, b]",
        "name: !!bool maybe\nclasses: [a, b]",
        "name: !!int many\nclasses: [a, b]",
        "? [a]\n: b",
        "\x00",
        "[" * 5000,
        "&a [*a]",
    ],
)
@pytest.mark.timeout(30)
def test_text_that_is_no_plain_yaml_is_one_sentence(text: str, tmp_path: Path) -> None:
    path = tmp_path / "odd.yaml"
    path.write_text(text)
    with pytest.raises(cs.InputError) as caught:
        cs.load_hierarchy(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert "\n" not in str(caught.value)


def test_bytes_that_are_no_text_and_huge_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "odd.yaml"
    path.write_bytes(b"\xff\xfe\x00\x01\x80")
    with pytest.raises(cs.InputError, match=r"odd\.yaml"):
        cs.load_hierarchy(path)
    path.write_bytes(b"#" * (1 << 20) + b"\n#")
    with pytest.raises(cs.InputError, match="smaller than 1 MiB"):
        cs.load_hierarchy(path)


@pytest.mark.timeout(30)
@pytest.mark.parametrize("key", ["thresholds", "levels", "name"])
def test_aliases_that_double_and_double_again_cost_nothing(key: str, tmp_path: Path) -> None:
    path = tmp_path / "bomb.yaml"
    lines = ["a0: &a0 [x, x]"] + [f"a{i}: &a{i} [*a{i - 1}, *a{i - 1}]" for i in range(1, 40)]
    inside = ", ".join(line.split(": ", 1)[1] for line in lines)
    path.write_text(f"classes: [a, b]\n{key}: [{inside}]\n")
    with pytest.raises(cs.InputError, match=rf"bomb\.yaml: `{key}`"):
        cs.load_hierarchy(path)


def test_missing_files_and_unknown_names_are_refused(tmp_path: Path) -> None:
    for name in ("cityscape", tmp_path / "no.yaml", tmp_path, ""):
        with pytest.raises(cs.InputError, match="hierarchy must be one of cityscapes"):
            cs.load_hierarchy(name)


def test_class_count_and_permuted_names_of_a_model_are_refused() -> None:
    tree = hierarchy_from_dict(GOOD, source="good")
    tree.require_classes(4)
    tree.require_classes(["Road", "GRASS", "car", "bus"])
    with pytest.raises(cs.InputError, match="hierarchy must have the model's 5 classes, got 4"):
        tree.require_classes(5)
    with pytest.raises(cs.InputError, match="must have the model's 3 classes"):
        tree.require_classes(["road", "grass", "car"])
    with pytest.raises(cs.InputError, match="got 'grass' for class 1 of small where the model has 'car'"):
        tree.require_classes(["road", "car", "grass", "bus"])


def test_names_are_matched_beyond_spelling_conventions() -> None:
    flat_hierarchy(["traffic light", "Side-Walk"]).require_classes(["Traffic_Light", "side walk"])


def test_more_vertices_than_sixteen_bits_hold_are_refused() -> None:
    classes = [f"class {index}" for index in range(4000)]
    levels, below = {}, classes
    for level in range(1, 10):
        levels[level] = {f"{level} {index}": [child] for index, child in enumerate(below)}
        below = list(levels[level])
    with pytest.raises(cs.InputError, match=r"big: `levels` must leave at most 32767 vertices in all, got 40000"):
        hierarchy_from_dict({"classes": classes, "levels": levels}, source="big")


def test_unknown_vertices_and_levels_are_refused() -> None:
    tree = hierarchy_from_dict(GOOD, source="good")
    for vertex in ("tram", 99, -1, cs.ROOT):
        with pytest.raises(cs.InputError, match="vertex must be"):
            tree.id(vertex)
    for leaf, level in (("vehicle", 0), ("car", 3), ("car", -1)):
        with pytest.raises(cs.InputError, match="K\\(leaf, level\\) must be asked for a class"):
            tree.ancestor(leaf, level)


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ((0.3, 0.2), "thresholds must not decrease"),
        ((0, 0, 0, 0), "thresholds must be at most 3, one fewer than levels, got 4"),
        ((-0.1,), "thresholds must lie in"),
        ((float("nan"),), "thresholds must lie in"),
        ((True,), "thresholds must be a list of numbers"),
        ("0,0", "thresholds must be a list of numbers"),
        ("", "thresholds must be a list of numbers"),
        (0.25, "thresholds must be a list of numbers"),
    ],
)
def test_thresholds_are_checked(values: Any, words: str) -> None:
    with pytest.raises(cs.InputError, match=words):
        check_thresholds(values, 4)
    assert check_thresholds((0, 0, 0.25), 4) == (0.0, 0.0, 0.25)
    assert check_thresholds([], 1) == ()


@pytest.mark.parametrize(
    ("text", "line"),
    [("name: x\nclasses: [a, b\nlevels: {}\n", 3), ("classes:\n\t- a\n", 2), ("a: 1\nb: 2\na: 3\n", 1)],
)
def test_a_file_that_is_no_yaml_is_refused_with_the_line(text: str, line: int, tmp_path: Path) -> None:
    path = tmp_path / "bad.yaml"
    path.write_text(text)
    with pytest.raises(cs.InputError, match=rf"bad\.yaml: must be readable YAML, got .* in line {line}$"):
        cs.load_hierarchy(path)
