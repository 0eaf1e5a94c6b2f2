"""Objects and areas on the page: outlines and bounds of the run, and regions that are drawn on the maps."""

import json

import pytest

from tests.browser.test_axe import serious_findings
from tests.viewer import tiny

BOX = "4,3 20,3 20,15 4,15"


@pytest.fixture(scope="module")
def run(tmp_path_factory, data):
    changes = {"objects": ("obstacle", "ground"), "least_area": 10, "keep_maps": True, "settings": ((100, 0.75),)}
    return tiny.make_run(tmp_path_factory.mktemp("asked") / "run", data, **{**changes, "promise": None})


def at(visit, x, y, pane="a"):
    """Where a point of the image is on the screen."""
    box = visit.page.locator(f".pane-{pane} .view").bounding_box()
    size = visit.page.evaluate("certiseg.stage.size")
    return box["x"] + x * box["width"] / size["width"], box["y"] + y * box["height"] / size["height"]


def test_objects_are_listed_and_outlined_and_green_only_as_a_promise(open_page):
    visit = open_page()
    assert visit.page.locator("#objects-role").get_attribute("class") == "chip promise"
    rows = visit.page.locator("#objects-rows .object").all_text_contents()
    assert any(name.startswith("true ") for name in rows)
    assert visit.page.locator(".pane-a .shapes .objects.promise path.line").count() > 0
    assert visit.page.locator(".pane-truth .shapes path.line").count() > 0
    named = visit.page.locator(".pane-a .shapes text").first.text_content()
    assert "≥" in named
    first = visit.page.locator("#objects-rows .object").first
    first.click()
    assert first.get_attribute("aria-pressed") == "true"
    assert (
        "at least" in visit.page.locator("#objects-says").inner_text()
        or "nothing is proven" in visit.page.locator("#objects-says").inner_text()
    )
    assert visit.page.locator(".shapes path.line.chosen").count() > 0
    visit.slide("tau", 0.6)
    assert visit.page.locator("#objects-role").get_attribute("class") == "chip exploration"
    assert visit.page.locator(".shapes .objects.promise").count() == 0


def test_a_box_that_is_drawn_is_bounded_as_exploration(open_page):
    visit = open_page()
    visit.page.locator("[data-tool=box]").click()
    visit.page.mouse.move(*at(visit, 4, 3))
    visit.page.mouse.down()
    visit.page.mouse.move(*at(visit, 12, 9))
    visit.page.mouse.move(*at(visit, 20, 15))
    visit.page.mouse.up()
    visit.settle()
    drawn = [[float(v) for v in c.split(",")] for c in visit.page.locator("#ask-corners").input_value().split()]
    assert [[round(v) for v in corner] for corner in drawn] == [[4, 3], [20, 3], [20, 15], [4, 15]]
    answer = visit.page.locator("#ask-answer").inner_text()
    assert "Exploration, not a promise" in answer
    assert "at least" in answer or "nothing is proven" in answer
    assert visit.page.locator(".pane-b .region path.line").count() == 1
    assert visit.page.evaluate("certiseg.stage.view.zoom") == 1
    with visit.page.expect_download() as saved:
        visit.page.locator("#ask-file").click()
    stored = json.loads(saved.value.path().read_text())
    assert stored["polygon"] == drawn
    visit.page.locator("#ask-command").click()
    assert "--instances region.json" in visit.page.locator("#words-command").inner_text()
    visit.page.keyboard.press("Escape")
    assert serious_findings(visit) == []
    visit.page.locator("#ask-kind").select_option("free")
    visit.settle()
    assert "is not labelled" in visit.page.locator("#ask-answer").inner_text()


def test_a_polygon_is_clicked_and_an_object_too(open_page):
    visit = open_page(color_scheme="dark")
    visit.page.locator("[data-tool=polygon]").click()
    for corner in ((4, 3), (20, 3), (12, 20)):
        visit.page.mouse.click(*at(visit, *corner))
    visit.page.locator("#ask-close").click()
    visit.settle()
    assert len(visit.page.locator("#ask-corners").input_value().split()) == 3
    assert "in the region of" in visit.page.locator("#ask-answer").inner_text()
    visit.page.locator("[data-tool=object]").click()
    visit.page.mouse.click(*at(visit, 16, 12))
    visit.settle()
    assert "in the object of" in visit.page.locator("#ask-answer").inner_text()
    assert visit.page.locator("#inspector").is_hidden()
    assert serious_findings(visit) == []


def test_corners_can_be_typed_and_bad_ones_are_one_sentence(open_page):
    visit = open_page()
    field = visit.page.locator("#ask-corners")
    field.fill(BOX)
    field.press("Enter")
    visit.settle()
    assert "of 221 pixels" in visit.page.locator("#ask-answer").inner_text()
    visit.errors.clear()
    field.fill("1,1 2,2 x")
    field.press("Enter")
    assert "corners must be numbers" in visit.page.locator("#ask-error").inner_text()


class TestWithoutMaps:
    @pytest.fixture(scope="class")
    def run(self, tmp_path_factory, data):
        settings = {"settings": ((100, 0.75),), "promise": None}
        return tiny.make_run(tmp_path_factory.mktemp("plain") / "run", data, **settings)

    def test_no_bound_is_invented(self, open_page):
        visit = open_page()
        assert "Nothing was measured" in visit.page.locator("#objects-why").inner_text()
        visit.page.locator("#ask-corners").fill(BOX)
        visit.page.locator("#ask-corners").press("Enter")
        visit.settle()
        answer = visit.page.locator("#ask-answer").inner_text()
        assert "kept no label maps" in answer
        assert "at least" not in answer
        visit.page.locator("#ask-command").click()
        assert visit.page.locator("#words-command").inner_text().startswith("certiseg certify")
