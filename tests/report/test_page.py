"""The page: it holds all it shows, loads nothing, and takes no text for markup."""

import base64
import io

import numpy as np
import pytest
from jinja2 import UndefinedError
from PIL import Image

import certiseg as cs
from certiseg.analysis.exports import Column, Table
from certiseg.render.colours import colour_labels, colour_vertices
from certiseg.report.bars import outcome_bar, outcome_strip, outcome_table
from certiseg.report.gallery import Card, ShownMap
from certiseg.report.page import LONG_TABLE, Chip, Section, map_uri, page, part, photograph_uri, table

from .conftest import Page

LOADING = ("src", "href", "srcset", "data", "action", "poster", "background", "ping", "formaction")
NASTY = "<script>alert(1)</script>\"'><img src=x onerror=alert(2)>&amp;"


def assert_self_contained(page):
    for tag, attributes in page.elements:
        for name in LOADING:
            value = attributes.get(name)
            assert value is None or value.startswith(("data:", "#")), (tag, name, value[:60])
        assert not any(name.startswith("on") for name in attributes), tag
    assert not {"link", "iframe", "object", "embed", "base"} & {tag for tag, _ in page.elements}
    for word in ("http:", "https:", "@import", "url(", "fetch(", "XMLHttp", "WebSocket", "import("):
        assert word not in page.source, word
    policy = [m["content"] for m in page.all("meta") if m.get("http-equiv") == "Content-Security-Policy"]
    assert len(policy) == 1
    assert policy[0].startswith("default-src 'none'")


def test_a_run_and_a_certificate_load_nothing(run_page, certificate_page):
    assert_self_contained(run_page)
    assert_self_contained(certificate_page)


def test_the_policy_allows_just_the_script_of_the_page(run_page):
    import hashlib

    script = run_page.source.split("<script>")[1].split("</script>")[0]
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in run_page.source
    assert run_page.source.count("<script") == 1


def test_every_picture_says_what_it_shows_and_every_control_has_a_label(run_page, certificate_page):
    for found in (run_page, certificate_page):
        pictures = [p for p in found.all("img") if p["src"] != "data:,"]
        assert pictures
        assert all(p["alt"].strip() for p in pictures)
        assert found.all("html")[0]["lang"] == "en"
        assert any(m.get("name") == "viewport" for m in found.all("meta"))
    labels = run_page.source.split('<div class="controls">')[1].split("</div>")[0]
    assert labels.count("<label>") == labels.count("<select") == 2


def test_links_of_the_contents_lead_somewhere(run_page):
    places = {attributes["id"] for _, attributes in run_page.elements if "id" in attributes}
    assert {a["href"][1:] for a in run_page.all("a")} <= places
    assert len(places) == len([1 for _, attributes in run_page.elements if "id" in attributes])


def test_text_is_never_markup():
    body = table(Table(NASTY, NASTY, (Column(NASTY, NASTY),), ({NASTY: NASTY},)))
    body += part("facts", [(NASTY, NASTY)]) + part("paragraphs", NASTY) + part("chips", [Chip((1, 2, 3), NASTY, NASTY)])
    body += part("promise", NASTY) + part("left_out", {NASTY: NASTY}) + part("picture", "data:,", NASTY, NASTY)
    card = Card(NASTY, NASTY, [ShownMap("data:,", NASTY, NASTY)])
    body += part("gallery", [card], [NASTY], NASTY, NASTY, [Chip((1, 2, 3), NASTY, NASTY)])
    body += part("points", [NASTY]) + part("commands", [(NASTY, NASTY)])
    bars = [outcome_bar(NASTY, (0.5, 0.25, 0.25), more=[NASTY], note=NASTY)]
    body += outcome_table(NASTY, NASTY, bars, more=[NASTY], note=NASTY) + outcome_strip(bars)
    found = Page(page(NASTY, NASTY, [Section(NASTY, NASTY, body)]))
    assert found.source.count("<script") == 1
    assert found.text.count(NASTY) >= 18
    assert_self_contained(found)


@pytest.mark.parametrize("macro", ["paragraphs", "promise"])
def test_a_name_missing_in_a_template_is_an_error(macro):
    with pytest.raises(UndefinedError):
        part(macro)


def test_long_tables_are_folded_and_short_ones_are_not():
    rows = [{"a": i} for i in range(LONG_TABLE + 1)]
    columns = (Column("a", "A", "count"),)
    assert "<details" in table(Table("t", "n", columns, tuple(rows)))
    assert "<details" not in table(Table("t", "n", columns, tuple(rows[1:])))


def test_intervals_stand_beside_their_values():
    content = Table("t", "n", (Column("a", "A", "score"),), ({"a": 0.5, "a_low": 0.25, "a_high": 0.75},))
    assert "0.500 <small>[0.250, 0.750]</small>" in table(content)


@pytest.mark.parametrize(("width", "expected"), [(40, 40), (480, 480), (1000, 480)])
def test_maps_keep_their_colours_and_fit_the_page(width, expected):
    rng = np.random.default_rng(0)
    colours = rng.integers(0, 256, (12, 3), dtype=np.uint8)[rng.integers(0, 12, (width // 2, width))]
    kind, content = map_uri(colours).split(",")
    assert kind == "data:image/png;base64"
    with Image.open(io.BytesIO(base64.b64decode(content))) as picture:
        assert picture.size == (expected, expected // 2)
        shown = np.asarray(picture.convert("RGB"))
    if width == expected:
        assert np.array_equal(shown, colours)
    assert {tuple(c) for c in shown.reshape(-1, 3)} <= {tuple(c) for c in colours.reshape(-1, 3)}


def test_twenty_images_of_the_usual_size_fit_into_a_mail():
    from certiseg.datasets import open_dataset

    tree, scenes = cs.load_hierarchy("camvid"), open_dataset("streets", first=4)
    shown = []
    for sample in scenes:
        coarse = np.where(np.indices(sample.label.shape).sum(axis=0) % 40 < 20, tree.id("obstacle"), sample.label % 31)
        shown += [photograph_uri(sample.image), *4 * [map_uri(colour_labels(sample.label, tree))]]
        shown += 3 * [map_uri(colour_vertices(coarse, tree))]
    assert sum(map(len, shown)) * 20 / len(scenes) <= 5.5e6


def test_maps_of_many_colours_are_kept_too():
    colours = np.random.default_rng(0).integers(0, 256, (30, 40, 3), dtype=np.uint8)
    content = base64.b64decode(map_uri(colours).split(",")[1])
    with Image.open(io.BytesIO(content)) as picture:
        assert np.array_equal(np.asarray(picture.convert("RGB")), colours)
