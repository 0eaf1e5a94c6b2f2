"""Colours that stand side by side differ for nearly everybody, and what is coarser is textured."""

import numpy as np
import pytest

import certiseg as cs
from certiseg.hierarchy import flat_hierarchy
from certiseg.render.colours import (
    ABSTAIN_COLOUR,
    APART,
    ROOT_COLOUR,
    TILE,
    VOID_COLOUR,
    colour_labels,
    colour_vertices,
    line_colour,
    palette,
    texture_of,
    textures,
)
from certiseg.render.groups import SEVERAL_COLOUR, groups_of
from certiseg.render.pictures import LegendEntry, swatch
from certiseg.render.vision import VISIONS, distances, seen

BESIDE = [ABSTAIN_COLOUR, ROOT_COLOUR, VOID_COLOUR]
GROUPS_APART = 20
# Vienot, Brettel and Mollon (1999), another simulation than the one the palette is made with.
VIENOT = {
    "protanopia": [[0.11238, 0.88762, 0], [0.11238, 0.88762, 0], [0.00401, -0.00401, 1]],
    "deuteranopia": [[0.29275, 0.70725, 0], [0.29275, 0.70725, 0], [-0.02234, 0.02234, 1]],
}


def least(colours):
    looks = seen(np.array(colours))
    return (distances(looks, looks) + 1e9 * np.eye(len(colours))).min()


def test_distances_are_those_of_cie76():
    lab = seen([[255, 0, 0], [0, 255, 0], [255, 255, 255], [0, 0, 0]])[0]
    assert lab == pytest.approx(
        np.array([[53.24, 80.09, 67.20], [87.73, -86.18, 83.18], [100, 0, 0], [0, 0, 0]]), abs=0.03
    )
    red_and_green = distances(seen([[200, 70, 0]]), seen([[120, 120, 0]]))[0, 0]
    alone = np.linalg.norm(seen([200, 70, 0])[0] - seen([120, 120, 0])[0])
    assert red_and_green < alone / 2


@pytest.mark.parametrize(("name", "apart"), [("camvid", APART), ("cityscapes", APART), ("pascal_context", 7)])
def test_all_that_a_legend_may_hold_differs_for_nearly_everybody(name, apart):
    tree = cs.load_hierarchy(name)
    assert least([*palette(tree), *BESIDE]) >= apart


def test_what_differs_by_one_simulation_differs_by_another(monkeypatch):
    colours = [*palette(cs.load_hierarchy("camvid")), *BESIDE]
    for name, matrix in VIENOT.items():
        monkeypatch.setitem(VISIONS, name, np.array(matrix))
    assert least(colours) >= APART / 4


@pytest.mark.parametrize("name", ["camvid", "cityscapes", "acdc"])
def test_six_safety_groups_differ_for_everybody_by_far(name):
    tree = cs.load_hierarchy(name)
    groups = groups_of(tree)
    assert len(groups.names) == 6
    assert least([*groups.colours, *BESIDE]) >= GROUPS_APART
    shown = palette(tree, "groups")
    assert len(np.unique(shown, axis=0)) == 7
    assert tuple(shown[tree.id("obstacle")]) == SEVERAL_COLOUR
    people = shown[tree.id("Pedestrian" if name == "camvid" else "person")]
    assert np.array_equal(people, shown[tree.id("human")])
    assert not np.array_equal(people, shown[tree.id("vehicle")])


def test_other_trees_are_grouped_by_their_top_and_large_flat_ones_not_at_all():
    assert groups_of(cs.load_hierarchy("coco_stuff")).names == ("things", "stuff")
    assert groups_of(flat_hierarchy(["a", "b"])).names == ("a", "b")
    crowd = flat_hierarchy([f"class {i}" for i in range(9)])
    assert groups_of(crowd) is None
    with pytest.raises(cs.InputError, match="colours must be classes"):
        palette(crowd, "groups")


@pytest.mark.parametrize("colours", ["classes", "groups"])
def test_levels_have_textures_of_their_own_and_classes_none(colours):
    tree = cs.load_hierarchy("camvid")
    shown = {}
    for name in ("Truck_Bus", "vehicle", "dynamic obstacle", "obstacle"):
        vertex = tree.id(name)
        lines = textures()[texture_of(tree.level_of[vertex])]
        painted = colour_vertices(np.full((TILE, TILE), vertex), tree, colours=colours)
        plain = palette(tree, colours)[vertex]
        assert (painted[~lines] == plain).all()
        assert (painted[lines] == line_colour(plain)).all()
        assert least([plain, line_colour(plain)]) >= GROUPS_APART
        shown[name] = lines
    assert not shown["Truck_Bus"].any()
    assert len({lines.tobytes() for lines in shown.values()}) == 4
    drawn = np.asarray(swatch(LegendEntry((200, 100, 50), "x", 0.1, texture=2), 18))[1:-1, 1:-1].reshape(-1, 3)
    assert {tuple(c) for c in drawn.tolist()} == {(200, 100, 50), tuple(line_colour(np.array((200, 100, 50))).tolist())}


def test_void_has_its_colour_in_either_palette():
    tree = cs.load_hierarchy("camvid")
    assert colour_labels(np.array([[255]]), tree, colours="groups")[0, 0].tolist() == list(VOID_COLOUR)
