"""Pictures: colours stand for vertices, legends add up, abstentions are white."""

import numpy as np
import pytest

import certiseg as cs
from certiseg.models.synthetic import synthetic_scene
from certiseg.palette import palette
from certiseg.report.pictures import (
    beside,
    captioned,
    colour_map,
    comparison,
    draw_hierarchy,
    label_image,
    legend,
    legend_panel,
    overlay,
    stacked,
)


@pytest.fixture(scope="module")
def votes():
    model = synthetic_scene()
    return cs.sample(model, model.image, sigma=0.25, n=100), model.image


@pytest.mark.parametrize("name", ["cityscapes", "pascal_context", "coco_stuff", "camvid"])
def test_every_vertex_has_a_colour_of_its_own_that_is_not_white(name):
    colours = palette(cs.load_hierarchy(name)).astype(int)
    distance = np.abs(colours[:, None] - colours[None]).sum(-1)
    assert np.median(distance) > 60
    leaves = cs.load_hierarchy(name).num_classes
    assert len(np.unique(colours[:leaves], axis=0)) >= 0.95 * leaves
    assert colours.min(axis=1).max() < 250


def test_siblings_are_nearer_in_hue_than_strangers():
    hierarchy = cs.load_hierarchy("cityscapes")
    colours = palette(hierarchy) / 255
    hue = np.degrees(
        np.arctan2(np.sqrt(3) * (colours[:, 1] - colours[:, 2]), 2 * colours[:, 0] - colours[:, 1:].sum(1))
    )

    def apart(a, b):
        return abs((hue[hierarchy.id(a)] - hue[hierarchy.id(b)] + 180) % 360 - 180)

    assert apart("car", "truck") < apart("car", "building")
    assert apart("person", "rider") < apart("person", "sky")


@pytest.mark.parametrize("method", ["segcertify", "nested", "sets"])
def test_legend_shares_add_up_and_name_every_label(votes, method):
    certificate = cs.certify(votes[0], cs.load_hierarchy("camvid"), method=method)
    entries = legend(certificate, most=10**6)
    assert sum(entry.share for entry in entries) == pytest.approx(1)
    assert entries[-1].text == "abstained"
    assert entries[-1].share == certificate.abstain_rate
    row, column = np.argwhere(~certificate.abstained)[0]
    assert {" or ".join(sorted(entry.text.split(" or "))) for entry in entries} >= {
        " or ".join(sorted(certificate.labels_at(row, column)))
    }
    short = legend(certificate, most=3)
    assert len(short) <= 4
    assert sum(entry.share for entry in short) == pytest.approx(1)


def test_maps_are_in_the_palette_and_white_where_abstained(votes):
    hierarchy = cs.load_hierarchy("camvid")
    certificate = cs.certify(votes[0], hierarchy, method="sets")
    colours = colour_map(certificate.vertex, hierarchy)
    assert (colours[certificate.abstained] == 255).all()
    inside = certificate.vertex >= 0
    assert np.array_equal(colours[inside], palette(hierarchy)[certificate.vertex[inside]])
    assert np.array_equal(np.asarray(label_image(certificate).convert("RGB")), colours)
    assert overlay(votes[1], certificate).size[0] > certificate.vertex.shape[1]


def test_pictures_are_put_together_without_losing_any(votes):
    certificate = cs.certify(votes[0], cs.load_hierarchy("camvid"), method="nested")
    picture = label_image(certificate).convert("RGB")
    assert beside([picture, picture], gap=4).size == (2 * picture.width + 4, picture.height)
    assert stacked([picture, picture], gap=4).size == (picture.width, 2 * picture.height + 4)
    assert captioned(picture, "text", size=12).size == (picture.width, picture.height + 20)
    assert comparison({str(i): picture for i in range(5)}, columns=3).size[0] == 3 * picture.width + 12
    assert legend_panel(legend(certificate), height=90).size == (230, 90)
    tree = draw_hierarchy(cs.load_hierarchy("pascal_context"))
    assert tree.height > 59 * 20
