"""What leaves the page: pictures with a legend and a line that says what they are, and certificates of uploads."""

import base64
import io
import xml.etree.ElementTree as ElementTree

import numpy as np
from PIL import Image

from certiseg.words import rounded_down
from tests.browser.test_drop import drop
from tests.browser.test_page import expected
from tests.viewer.test_uploads import picture


def saved(visit, pane, kind):
    visit.page.locator("#export-button").click()
    visit.page.locator("#export-pane").select_option(pane)
    with visit.page.expect_download() as download:
        visit.page.locator(f"#export-{kind}").click()
    visit.page.locator("#export").get_by_role("button", name="Close").click()
    assert download.value.suggested_filename == f"run-scene-0-{pane}.{kind}"
    return download.value.path().read_bytes()


def words(svg):
    return " ".join(
        element.text or "" for element in ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")
    )


def image_of(svg):
    element = next(ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}image"))
    content = element.get("href").removeprefix("data:image/png;base64,")
    return np.array(Image.open(io.BytesIO(base64.b64decode(content))).convert("RGB"))


def test_an_svg_says_what_it_is(open_page, run):
    visit = open_page()
    visit.page.locator("#opacity").fill("1")
    certificate = expected(run)
    svg = saved(visit, "a", "svg")
    told = words(svg)
    assert "Promise: guaranteed per image with probability 0.99" in told
    assert f"R = {rounded_down(certificate.radius, 4)}" in told
    assert "sigma = 0.25, n0 = 8, n = 100, tau = 0.75, alpha = 0.01, bonferroni, fixed test" in told
    assert f"model {run.manifest.model}" in told
    assert "agree with the noise-free prediction" in told
    assert "certified and wrong" in told
    assert f"abstained {certificate.abstain_rate * 100:.1f} %" in told
    assert all(entry in told for entry in visit.page.locator("#legend .entry").all_inner_texts())
    shown = image_of(svg)
    rows = ((np.arange(24) + 0.5) * shown.shape[0] / 24).astype(int)
    columns = ((np.arange(32) + 0.5) * shown.shape[1] / 32).astype(int)
    np.testing.assert_array_equal(shown[np.ix_(rows, columns)], visit.pixels()[..., :3])
    assert "Comparison, not the promise of its run" in words(saved(visit, "b", "svg"))
    assert "Ground truth: nothing is certified here" in words(saved(visit, "truth", "svg"))
    visit.slide("tau", 0.7)
    visit.page.keyboard.press("d")
    visit.settle()
    told = words(saved(visit, "a", "svg"))
    assert "Exploration, not a certificate: tau 0.7 instead of 0.75" in told
    assert "Promise" not in told
    assert "Exploration, not a certificate" in words(saved(visit, "difference", "svg"))
    visit.page.locator("#colours").select_option("radius")
    visit.page.get_by_role("button", name="Back to the run's settings").click()
    visit.settle()
    assert "Radii: a statement of their own, not the certificate" in words(saved(visit, "a", "svg"))


def test_a_png_has_the_map_and_its_legend(open_page):
    visit = open_page(viewport={"width": 390, "height": 844})
    visit.page.locator("#opacity").evaluate(
        "(slider) => { slider.value = 1; slider.dispatchEvent(new Event('input')); }"
    )
    shown = np.array(Image.open(io.BytesIO(saved(visit, "a", "png"))).convert("RGB"))
    assert shown.shape[1] == 960
    colours = {tuple(colour) for colour in visit.pixels()[..., :3].reshape(-1, 3)}
    ends = np.flatnonzero((shown[:, 930] != 255).any(axis=-1))[-1]  # of the map: no legend reaches as far to the right
    below = shown[ends + 1 :].reshape(-1, 3)
    seen = {tuple(colour) for colour in np.unique(shown.reshape(-1, 3), axis=0)}
    assert colours <= seen
    assert any(tuple(colour) in colours - {(255, 255, 255)} for colour in np.unique(below, axis=0))  # the legend


def test_certificates_of_uploads_are_there_later_too(open_page, run):
    visit = open_page()
    drop(visit, picture())
    visit.wait("certiseg.state.image.startsWith('dropped/')")
    visit.page.reload()
    visit.settle()
    visit.page.locator("#export-button").click()
    with visit.page.expect_download() as download:
        visit.page.locator("#export-certificate").click()
    stored = next((run.path / "dropped").glob("*.certificate.npz"))
    assert download.value.path().read_bytes() == stored.read_bytes()
    assert visit.page.locator("#export-link").input_value() == visit.page.url
