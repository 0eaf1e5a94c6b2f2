"""The slider of a threat and perturbations of size R: the picture is the library's, and the range is marked."""

import numpy as np
import pytest

from certiseg import threats
from certiseg.images import read_image
from tests.browser.test_axe import serious_findings
from tests.viewer import tiny

FOG = threats.fog(0.5)


def photograph(visit):
    """The pixels of the canvas of the photograph, (H, W, 3)."""
    read = """() => { const canvas = document.querySelector(".pane-photo .photo");
        const { width, height } = canvas;
        return { width, height, data: Array.from(canvas.getContext("2d").getImageData(0, 0, width, height).data) } }"""
    found = visit.page.evaluate(read)
    return np.array(found["data"], np.uint8).reshape(found["height"], found["width"], 4)[..., :3]


def stored(data):
    return np.rint(read_image(data / "images" / "scene 0.png") * 255)


class TestFog:
    @pytest.fixture(scope="class")
    def run(self, tmp_path_factory, data):
        along = {"threat": FOG, "sigmas": (0.0,), "settings": ((100, 0.75),), "promise": None}
        return tiny.make_run(tmp_path_factory.mktemp("fog") / "run", data, **along)

    def test_the_slider_shows_fog_and_where_the_promise_ends(self, open_page, data):
        visit = open_page()
        visit.wait("document.body.dataset.photo")
        np.testing.assert_array_equal(photograph(visit), stored(data))
        assert "fog of density up to 29 %" in visit.page.locator("#look-range").inner_text()
        part = visit.page.locator("#look-certified")
        assert "promise" in part.get_attribute("class")
        assert part.evaluate("(part) => [part.style.left, part.style.width]") == ["0%", "50%"]
        visit.slide("look-amount", 0.3)
        slid = float(visit.page.locator("#look-amount").input_value())
        changed = np.rint(FOG.apply(read_image(data / "images" / "scene 0.png"), slid) * 255)
        np.testing.assert_array_equal(photograph(visit), changed)
        words = visit.page.locator("#look-words").inner_text()
        assert "inside what is certified (fog of density up to 29 %)" in words
        assert visit.page.locator(".stage.beyond").count() == 0
        visit.slide("look-amount", 0.6)
        assert "nothing is promised here" in visit.page.locator("#look-words").inner_text()
        assert visit.page.locator(".stage.beyond").count() == 1
        assert serious_findings(visit) == []
        visit.slide("tau", 0.9)
        assert "inside what is certified" in visit.page.locator("#look-words").inner_text()
        assert "exploration" in part.get_attribute("class")
        visit.page.locator("[data-look=photo]").click()
        np.testing.assert_array_equal(photograph(visit), stored(data))

    def test_another_image_begins_with_its_photograph(self, open_page):
        visit = open_page()
        visit.slide("look-amount", 0.6)
        visit.page.keyboard.press("Escape")
        visit.page.evaluate("document.activeElement.blur()")
        visit.page.keyboard.press("ArrowRight")
        visit.settle()
        assert visit.page.locator("#look-amount").input_value() == "0"
        assert visit.page.locator(".stage.beyond").count() == 0


class TestL2:
    @pytest.fixture(scope="class")
    def run(self, tmp_path_factory, data):
        settings = {"settings": ((100, 0.75),), "promise": None}
        return tiny.make_run(tmp_path_factory.mktemp("plain") / "run", data, **settings)

    def test_draws_random_and_attacked_images(self, open_page, data):
        visit = open_page(color_scheme="dark", viewport={"width": 400, "height": 900})
        visit.wait("document.body.dataset.photo")
        visit.page.locator("[data-look=draw]").click()
        visit.settle()
        first = photograph(visit)
        assert np.abs(first - stored(data)).mean() > 5
        visit.page.locator("#look-next").click()
        visit.settle()
        assert "draw 2 of 100" in visit.page.locator("#look-words").inner_text()
        assert (photograph(visit) != first).any()
        visit.page.locator("[data-look=random]").click()
        visit.settle()
        assert "inside what is certified (R = 0.1686)" in visit.page.locator("#look-words").inner_text()
        visit.slide("look-amount", 8)
        assert "(256 R)" in visit.page.locator("#look-words").inner_text()
        assert visit.page.locator(".stage.beyond").count() == 1
        visit.page.locator("[data-look=attack]").click()
        visit.slide("look-amount", 0)
        visit.page.locator("#look-search").click()
        visit.wait("document.querySelector('#look-words').textContent.includes('found by gradients')")
        words = visit.page.locator("#look-words").inner_text()
        assert "inside what is certified" in words
        assert "changes the answer of the model without noise at" in words
        assert serious_findings(visit) == []
