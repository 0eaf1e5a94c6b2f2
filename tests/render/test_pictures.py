"""Pictures: colours stand for vertices, legends add up, abstentions are white."""

import ast
import io
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import certiseg as cs
from certiseg import render
from certiseg.models.synthetic import synthetic_scene
from certiseg.render import pictures
from certiseg.render.colours import OUTSIDE_COLOUR, colour_vertices, palette
from certiseg.render.figures import figure_bytes
from certiseg.render.pictures import (
    beside,
    captioned,
    comparison,
    label_image,
    legend,
    legend_panel,
    stacked,
)
from certiseg.render.tree import draw_tree


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
    entries = legend(certificate.label_shares(), certificate.hierarchy, most=10**6)
    assert sum(entry.share for entry in entries) == pytest.approx(1)
    assert entries[-1].text == "abstained"
    assert entries[-1].share == certificate.abstain_rate
    row, column = np.argwhere(~certificate.abstained)[0]
    assert {" or ".join(sorted(entry.text.split(" or "))) for entry in entries} >= {
        " or ".join(sorted(certificate.labels_at(row, column)))
    }
    short = legend(certificate.label_shares(), certificate.hierarchy, most=3)
    assert len(short) <= 4
    assert sum(entry.share for entry in short) == pytest.approx(1)
    details = certificate.detail_shares()
    assert sum(details.values()) == pytest.approx(1)
    finest = certificate.set_size == 1 if method == "sets" else (certificate.level == 0) & ~certificate.abstained
    assert details["1 class" if method == "sets" else "level 0"] == finest.mean()


def test_maps_are_in_the_palette_and_white_where_abstained(votes):
    hierarchy = cs.load_hierarchy("camvid")
    certificate = cs.certify(votes[0], hierarchy, method="sets")
    colours = colour_vertices(certificate.vertex, hierarchy)
    assert (colours[certificate.abstained] == 255).all()
    inside = certificate.vertex >= 0
    plain = np.asarray(label_image(certificate.vertex, certificate.hierarchy).convert("RGB"))
    assert np.array_equal(plain[inside], palette(hierarchy)[certificate.vertex[inside]])
    leaves = inside & (certificate.vertex < hierarchy.num_classes)
    assert np.array_equal(plain[leaves], colours[leaves])
    height, width = certificate.vertex.shape
    assert np.array_equal(np.asarray(certificate.plot())[:height, :width], colours)


def test_pictures_are_put_together_without_losing_any(votes):
    certificate = cs.certify(votes[0], cs.load_hierarchy("camvid"), method="nested")
    picture = label_image(certificate.vertex, certificate.hierarchy).convert("RGB")
    assert beside([picture, picture], gap=4).size == (2 * picture.width + 4, picture.height)
    assert stacked([picture, picture], gap=4).size == (picture.width, 2 * picture.height + 4)
    assert captioned(picture, "text", size=12).size == (picture.width, picture.height + 20)
    assert comparison({str(i): picture for i in range(5)}, columns=3).size[0] == 3 * picture.width + 12
    assert legend_panel(legend(certificate.label_shares(), certificate.hierarchy), height=90).size == (230, 90)


def test_an_overlay_mixes_the_image_with_the_labels(votes):
    hierarchy = cs.load_hierarchy("camvid")
    certificate = cs.certify(votes[0], hierarchy, method="nested")
    height, width = certificate.vertex.shape
    image = (np.asarray(votes[1]) * 255).round().astype(np.uint8)
    colours = colour_vertices(certificate.vertex, hierarchy)
    for opacity in (0.0, 0.25, 1.0):
        shown = np.asarray(certificate.overlay(image, opacity=opacity))
        assert shown.shape[1] == width + 6 + 230
        expected = (1 - opacity) * image + opacity * colours
        assert np.abs(shown[:height, :width] - expected).max() <= 0.51
    with pytest.raises(cs.InputError, match="image must be the image that was certified"):
        certificate.overlay(image[1:])
    with pytest.raises(cs.InputError, match="image must be the image that was certified"):
        certificate.overlay(255 - image)
    with pytest.raises(cs.InputError, match="opacity must"):
        certificate.overlay(image, opacity=1.5)


def test_a_legend_beside_a_low_map_still_ends_with_the_abstentions(votes, monkeypatch):
    certificate, seen = cs.certify(votes[0], cs.load_hierarchy("camvid"), method="sets"), []
    panel = pictures.legend_panel
    monkeypatch.setattr(pictures, "legend_panel", lambda shown, **size: seen.extend(shown) or panel(shown, **size))
    height = certificate.plot().height
    assert len(certificate.label_shares()) > 14 > height // 10
    assert 12 + 10 * len(seen) <= height
    assert (seen[-1].text, seen[-1].share) == ("agrees with noise-free", certificate.agreement)
    assert seen[-2].text == "abstained"
    assert seen[-3].text.endswith("more labels")
    assert sum(entry.share for entry in seen[:-1]) == pytest.approx(1)


def test_a_legend_warns_where_noise_has_changed_what_the_model_answers(votes, monkeypatch):
    hierarchy = cs.load_hierarchy("camvid")
    certificate, seen = cs.certify(votes[0], hierarchy, method="segcertify"), []
    monkeypatch.setattr(pictures, "legend_panel", lambda shown, **_: seen.append(shown[-1]) or Image.new("RGB", (9, 9)))
    for prediction in (votes[0].candidate, (votes[0].candidate + 1) % 31, None):
        with_prediction = replace(votes[0], prediction=prediction)
        cs.certify(with_prediction, hierarchy, method="segcertify").overlay(votes[1])
    agrees, low, unknown = seen
    assert (agrees.text, agrees.share) == ("agrees with noise-free", 1.0)
    assert (low.text, low.share) == ("LOW: agrees with noise-free", 0.0)
    assert low.colour != agrees.colour
    assert unknown.text == "abstained"
    assert certificate.vertex.max() >= 0


def test_pixels_outside_the_region_are_grey_and_not_abstained(votes):
    region = np.zeros(votes[0].size, bool)
    region[10:40, 20:90] = True
    certificate = cs.certify(votes[0], cs.load_hierarchy("camvid"), method="nested", region=region)
    shown = np.asarray(certificate.plot())[: region.shape[0], : region.shape[1]]
    assert (shown[~region] == OUTSIDE_COLOUR).all()
    assert not (shown[region] == OUTSIDE_COLOUR).all(axis=-1).any()
    assert sum(label.share for label in certificate.label_shares()) == pytest.approx(1)


def test_a_certificate_is_one_readable_line(votes):
    certificate = cs.certify(votes[0], cs.load_hierarchy("camvid"), method="sets")
    height, width = certificate.vertex.shape
    certified = f"{1 - certificate.abstain_rate:.1%}"
    assert repr(certificate) == (
        f"Certificate(sets, {height} x {width} pixels, hierarchy camvid, R = 0.1686, {certified} certified)"
    )


def test_a_tree_too_tall_for_a_picture_is_drawn_smaller(monkeypatch):
    figure = draw_tree(cs.load_hierarchy("cityscapes"))
    width, height = figure.get_size_inches()
    with Image.open(io.BytesIO(figure_bytes(figure, "png"))) as picture:
        assert picture.size == pytest.approx((150 * width, 150 * height), abs=1)
    monkeypatch.setattr("certiseg.render.figures._MOST_PIXELS", 500)
    with Image.open(io.BytesIO(figure_bytes(figure, "png"))) as picture:
        assert 495 < max(picture.size) <= 500


def test_render_stands_below_certificates_and_runs():
    allowed = {"certiseg.errors", "certiseg.hierarchy", "certiseg.images", "certiseg.render", "certiseg.words"}
    for path in Path(render.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("certiseg"):
                assert any(node.module == room or node.module.startswith(f"{room}.") for room in allowed), path.name
            assert not (isinstance(node, ast.Import) and node.names[0].name.startswith("certiseg")), path.name
