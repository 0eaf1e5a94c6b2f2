"""Right and wrong, the table, the histograms and two runs side by side, on the page, against the library."""

import csv
import io

import numpy as np
import pytest

from certiseg.render.colours import palette
from certiseg.render.verdict import VERDICTS
from certiseg.scores import verdict_map
from certiseg.viewer.app import make_app
from certiseg.viewer.difference import DIFFERENCES, difference_map
from certiseg.viewer.pixel import why
from certiseg.words import LOW_AGREEMENT
from tests.browser.conftest import serving
from tests.browser.test_axe import serious_findings
from tests.browser.test_page import check_map, expected
from tests.viewer import tiny
from tests.viewer.test_map import certificate_of

WIDE = [(1440, 900), (1024, 768), (390, 844)]
WRONG = tuple(int(VERDICTS[1].colour[i : i + 2], 16) for i in (1, 3, 5))
NAMES = "[...document.querySelectorAll('.image-name')].map((name) => name.textContent)"
B = {"image": "scene 0", "sigma": 0.5, "n": 60, "method": "nested", "alpha": 0.01}


@pytest.fixture(scope="module")
def second(tmp_path_factory, data):
    path = tmp_path_factory.mktemp("runs") / "other"
    settings = {"sigmas": (0.5,), "settings": ((60, 0.7),), "promise": "nested@0.5:60:0.7"}
    return tiny.make_run(path, data, methods=("nested", "sets:3"), **settings)


@pytest.fixture
def open_both(browser, run, second, data):
    """The page of two runs."""
    from tests.browser.conftest import Visit

    with serving(make_app(run, second, root=str(data), load_model=tiny.model)) as url:
        visits = []
        yield lambda **options: visits.append(Visit(browser, url, **options)) or visits[-1]
        for visit in visits:
            visit.close()


def wrong_share(run, image, **changes):
    codes = verdict_map(expected(run, image=image, **changes), run.label(image))
    return (codes == 2).sum() / (codes > 0).sum()


def test_what_is_certified_and_wrong_is_shown_and_counted(open_page, run):
    visit = open_page()
    visit.page.locator("#colours").select_option("verdict")
    visit.settle()
    truth, codes = run.label("scene 0"), verdict_map(expected(run), run.label("scene 0"))
    pixels = visit.pixels()
    shown = (pixels[..., :3] == WRONG).all(axis=-1) & (pixels[..., 3] == 255)
    np.testing.assert_array_equal(shown, codes == 2)
    np.testing.assert_array_equal(pixels[..., 3] == 0, codes == 0)
    wrong = int((codes == 2).sum())
    assert f"{wrong} of {int((codes > 0).sum())} labelled pixels are certified and wrong" in visit.page.locator(
        "#classes-sum"
    ).inner_text().replace(",", "")
    assert "a certificate speaks of the smoothed model's answers alone" in visit.page.locator("#legend").inner_text()
    first = visit.page.locator("#classes-rows button").first
    leaf = int(first.get_attribute("data-of"))
    counts = np.bincount(truth[codes == 2], minlength=31)
    assert counts[leaf] == counts.max()
    first.click()
    visit.settle()
    assert not visit.pixels()[truth != leaf, 3].any()
    np.testing.assert_array_equal(visit.pixels()[truth == leaf], pixels[truth == leaf])
    name = run.manifest.tree.classes[leaf]
    assert f"of {name}" in visit.page.locator(".image-words").first.inner_text()
    visit.page.go_back()
    visit.settle()
    np.testing.assert_array_equal(visit.pixels(), pixels)


def test_images_are_sorted_and_brushed_by_what_is_wrong(open_page, run):
    visit = open_page()
    visit.page.locator("#sort").select_option("wrong-down")
    shares = {name: wrong_share(run, name) for name in ("scene 0", "scene 1", "scene 2")}
    order = sorted(shares, key=shares.get, reverse=True)
    assert visit.page.evaluate(NAMES) == order
    worst = visit.page.locator("#histograms [role=group][aria-label='certified and wrong'] button").last
    worst.click()
    kept = [name for name in order if shares[name] >= shares[order[0]] * 11 / 12 - 1e-9]
    assert visit.page.evaluate(NAMES) == kept
    assert len(kept) < 3
    rows = visit.page.locator("#table-rows th").all_inner_texts()
    assert set(rows) == set(kept)
    visit.page.reload()
    visit.settle()
    assert visit.page.evaluate(NAMES) == kept
    visit.page.go_back()
    visit.settle()
    assert visit.page.locator("#image-count").inner_text() == "3 of 3 images"
    bars = visit.page.locator("#histograms [role=group][aria-label=abstained] button")
    boxes = [bars.nth(place).bounding_box() for place in (11, 0)]
    visit.page.mouse.move(boxes[0]["x"] + 2, boxes[0]["y"] + 40)
    visit.page.mouse.down()
    visit.page.mouse.move(boxes[1]["x"] + 2, boxes[1]["y"] + 40, steps=30)
    visit.page.mouse.up()
    assert visit.page.locator("#image-count").inner_text() == "3 of 3 images"
    assert visit.page.evaluate("certiseg.state.brush.from") == 0
    visit.page.locator("#brush-all").click()
    assert visit.page.evaluate("certiseg.state.brush") is None


def test_the_table_is_worst_first_leads_to_the_image_and_is_saved(open_page, run):
    visit = open_page()
    visit.page.locator("#table-class").select_option("-1")
    shares = {name: wrong_share(run, name) for name in ("scene 0", "scene 1", "scene 2")}
    visit.page.locator("#table-order").select_option("wrong")
    told = visit.page.locator("#table-rows tr").all_inner_texts()
    names = [text.split("\t")[0].strip() for text in told]
    assert names == sorted(shares, key=shares.get, reverse=True)
    assert all(f"{shares[name] * 100:.1f} %" in text for name, text in zip(names, told, strict=True))
    visit.page.locator("#table-method").select_option("")
    visit.page.locator("#table-class").select_option("")
    with visit.page.expect_download() as download:
        visit.page.locator("#table-csv").click()
    rows = list(csv.DictReader(io.StringIO(download.value.path().read_text("utf-8"))))
    assert {row["method"] for row in rows} == set(tiny.METHODS)
    assert {row["role"] for row in rows if row["method"] == "nested"} == {"promise"}
    assert {row["role"] for row in rows if row["method"] != "nested"} == {"comparison"}
    mine = [row for row in rows if row["image"] == "scene 1" and row["method"] == "nested"]
    counts = np.bincount(
        run.label("scene 1")[verdict_map(expected(run, image="scene 1"), run.label("scene 1")) == 2], minlength=31
    )
    assert {row["class"]: int(row["wrong"]) for row in mine} == {
        run.manifest.tree.classes[c]: counts[c] for c in np.unique(run.label("scene 1")) if c != 255
    }
    visit.page.keyboard.press("ArrowRight")
    visit.settle()
    assert set(visit.page.locator("#table-rows tr[aria-current] th").all_inner_texts()) == {"scene 1"}
    row = visit.page.locator("#table-rows tr", has_text="scene 2").filter(has_text="SegCertify").first
    leaf = run.manifest.tree.id(row.locator("td").first.inner_text())
    row.locator("button").click()
    visit.settle()
    assert visit.page.evaluate(
        "(({ image, method, of, colours }) => [image, method, of, colours])(certiseg.state)"
    ) == [*("scene 2", "segcertify", leaf, "verdict")]


@pytest.mark.parametrize(("width", "height"), WIDE)
def test_no_table_is_cut_and_every_legend_is_whole(open_both, width, height):
    visit = open_both(viewport={"width": width, "height": height})
    visit.page.locator("#colours").select_option("verdict")
    visit.settle()
    assert visit.page.evaluate("document.documentElement.scrollWidth") <= width
    cut = "(selector) => { const { scrollWidth, clientWidth } = document.querySelector(selector);"
    cut += " return scrollWidth - clientWidth; }"
    assert visit.page.evaluate(cut, ".numbers") <= 0
    assert visit.page.evaluate(cut, "[aria-label='Classes of this image']") <= 0
    if width > 720:
        assert visit.page.evaluate(cut, "[aria-label='Images, classes and methods']") <= 0
        for legend in ("legend", "difference-legend"):
            entries = visit.page.locator(f"#{legend} .entry")
            assert all(each.bounding_box()["width"] > 20 for each in entries.all())
            assert visit.page.evaluate(cut.replace("Width", "Height"), f"#{legend}") <= 0


def test_two_runs_side_by_side(open_both, run, second):
    visit = open_both()
    check_map(visit, expected(run))
    theirs = certificate_of(second, {**B, "tau": 0.7})
    check_map(visit, theirs, "b")
    warned = visit.page.evaluate("document.getElementById('warning').textContent")
    for pane, certificate in (("A", expected(run)), ("B", theirs)):
        assert (f"Map {pane}: " in warned) == (certificate.agreement < LOW_AGREEMENT)
    caption = visit.page.locator(".pane-b figcaption").inner_text()
    assert caption.startswith("B: Nested, other promise")
    assert visit.page.locator(".pane-a figcaption").inner_text().startswith("A: Nested, run promise")
    codes, pixels = difference_map(expected(run), theirs), visit.pixels("difference")
    for each in DIFFERENCES:
        colour = tuple(int(each.colour[i : i + 2], 16) for i in (1, 3, 5))
        assert {tuple(shown) for shown in pixels[codes == each.code][:, :3]} <= {colour}
    assert len(np.unique(codes)) > 2
    assert visit.page.locator(".pane-difference figcaption").inner_text() == "B against A comparison"
    row, column = (int(place) for place in np.argwhere(theirs.abstained)[0])
    visit.hover(row, column, "b")
    assert visit.page.locator("#pixel-why").inner_text() == why(theirs, row, column)
    visit.slide("tau", 0.6)
    check_map(visit, expected(run, tau=0.6))
    check_map(visit, certificate_of(second, {**B, "tau": 0.6}), "b")
    assert visit.page.locator(".pane-difference .pane-role").inner_text() == "exploration"
    visit.page.locator("#other").select_option("second/sets:3@0.5:60:0.7")
    visit.settle()
    check_map(visit, certificate_of(second, {**B, "method": "sets", "max_set": 3, "tau": 0.6}), "b")
    visit.page.reload()
    visit.settle()
    assert visit.page.locator("#other").input_value() == "second/sets:3@0.5:60:0.7"
    visit.page.go_back()
    visit.settle()
    check_map(visit, certificate_of(second, {**B, "tau": 0.6}), "b")


def test_two_methods_of_one_run_differ_too(open_page, run):
    visit = open_page()
    assert not visit.page.locator(".pane-difference").is_visible()
    visit.page.keyboard.press("d")
    visit.settle()
    assert visit.page.locator(".pane-difference").is_visible()
    assert not visit.page.locator(".pane-truth").is_visible()
    codes = difference_map(expected(run), expected(run, method="segcertify"))
    np.testing.assert_array_equal((visit.pixels("difference")[..., :3] == palette_of(6)).all(axis=-1), codes == 6)
    assert (codes == 6).any()
    visit.page.locator("#other").select_option("truth")
    visit.settle()
    assert visit.page.locator(".pane-difference .note").inner_text() == "choose a map for B to see how it differs"
    visit.page.go_back()
    visit.page.go_back()
    visit.settle()
    assert visit.page.locator(".pane-truth").is_visible()
    shown, truth = visit.pixels("truth")[..., :3], run.label("scene 0")
    np.testing.assert_array_equal(shown[truth != 255], palette(run.manifest.tree)[truth[truth != 255]])


def palette_of(code):
    colour = next(each.colour for each in DIFFERENCES if each.code == code)
    return [int(colour[i : i + 2], 16) for i in (1, 3, 5)]


@pytest.mark.parametrize(("width", "scheme"), [(1440, "light"), (390, "dark")])
def test_axe_has_no_finding(open_both, width, scheme):
    visit = open_both(viewport={"width": width, "height": 900}, color_scheme=scheme)
    visit.page.locator("#colours").select_option("verdict")
    visit.page.locator("#classes-rows button").first.click()
    visit.settle()
    assert serious_findings(visit) == []
    visit.page.locator("#export-button").click()
    assert serious_findings(visit) == []
