"""Calibrated sets on the page: their sizes as map B, their members on a click, and what is promised."""

import numpy as np
import pytest

from certiseg.render.pictures import SIZE_BANDS, size_colour
from tests.browser.test_axe import serious_findings
from tests.viewer import tiny


@pytest.fixture
def app(run, data, tmp_path):
    from certiseg.viewer.app import make_app

    tiny.write_sets(tmp_path / "truth", data, "scene 0")
    return make_app(run, root=str(data), load_model=tiny.model, truth=str(tmp_path / "truth"))


def test_sets_that_hold_the_truth(open_page, data, tmp_path):
    sets = tiny.write_sets(tmp_path / "truth", data, "scene 0")
    visit = open_page()
    assert visit.page.locator("#truth").is_hidden()
    visit.page.locator("#other").select_option("calibrated")
    visit.wait("document.querySelector('#truth-words').textContent.includes('With probability at least 0.9')")
    band = np.searchsorted([low for low, _ in SIZE_BANDS], sets.size, side="right") - 1
    colours = np.array([size_colour(k) for k in range(len(SIZE_BANDS))])[band]
    np.testing.assert_array_equal(visit.pixels("b")[..., :3], colours)
    assert visit.page.locator("#truth-role").get_attribute("class") == "chip promise"
    assert visit.page.locator("#truth-role").inner_text() == "Promise about the truth"
    visit.hover(9, 30, "b")
    visit.wait("document.querySelector('#truth-members').textContent")
    assert " or ".join(sets.labels_at(9, 30)) in visit.page.locator("#truth-members").inner_text()
    visit.page.locator("#truth-claim").click()
    assert visit.page.locator("#words-text").inner_text() == sets.claim()
    visit.page.keyboard.press("Escape")
    assert serious_findings(visit) == []
    visit.page.locator("#other").select_option("segcertify")
    visit.settle()
    assert visit.page.locator("#truth").is_hidden()


def test_an_image_without_sets_says_so(open_page):
    visit = open_page()
    visit.page.locator("#other").select_option("calibrated")
    visit.wait("document.querySelector('#truth-words').textContent.includes('With probability at least 0.9')")
    visit.page.evaluate("certiseg.change({ image: 'scene 1', pin: null, view: null })")
    visit.wait("document.querySelector('#truth-role').textContent === 'None for this image'")
    assert "no calibrated sets" in visit.page.locator("#truth-words").inner_text()
    visit.errors.clear()  # the browser notes the 404
