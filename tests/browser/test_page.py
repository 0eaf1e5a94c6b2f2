"""The page in a real browser: what it shows is what the library certifies, read from the canvas's own pixels."""

import numpy as np
import pytest

import certiseg as cs
from certiseg.render.colours import colour_labels, colour_vertices, palette
from certiseg.viewer.pixel import why
from certiseg.viewer.reasons import REASONS, reason_map
from certiseg.words import rounded_down
from tests.viewer.test_map import certificate_of

HATCH = {(255, 255, 255), (206, 206, 214)}
CHOICE = {"image": "scene 0", "sigma": 0.25, "n": 100, "method": "nested", "tau": 0.75, "alpha": 0.01}


def expected(run, **changes):
    return certificate_of(run, {**CHOICE, "correction": "bonferroni", "test": "fixed", **changes})


def abstained(pixels):
    return np.isin(pixels[..., :3].astype(int) @ [1, 256, 65536], [np.dot(c, [1, 256, 65536]) for c in HATCH])


def check_map(visit, certificate, pane="a", colours="classes"):
    """Every pixel of the canvas: hatched where abstained, else in its vertex's colour and texture."""
    pixels = visit.pixels(pane)
    np.testing.assert_array_equal(abstained(pixels), certificate.abstained)
    painted = colour_vertices(certificate.vertex, certificate.hierarchy, colours=colours)
    certified = ~certificate.abstained
    np.testing.assert_array_equal(pixels[certified][:, :3], painted[certified])


def test_open_shows_images_maps_and_scores(open_page, run):
    visit = open_page()
    names = visit.page.locator(".image-name").all_text_contents()
    assert names == ["scene 0", "scene 1", "scene 2"]
    check_map(visit, expected(run))
    check_map(visit, expected(run, method="segcertify"), "b")
    scores = cs.score(expected(run), run.label("scene 0"))
    row = visit.page.locator("#numbers-a").inner_text()
    assert f"{scores.cig:.4f}" in row
    assert f"{scores.abstain * 100:.2f} %" in row or f"{expected(run).abstain_rate * 100:.2f} %" in row
    assert visit.page.locator("#banner-title").inner_text() == "The promise of this run"
    truth = run.label("scene 0")
    shown = visit.pixels("truth")[..., :3]
    np.testing.assert_array_equal(shown[truth != 255], palette(run.manifest.tree)[truth[truth != 255]])
    assert {tuple(colour) for colour in shown[truth == 255]} == {(60, 60, 66)}


def test_safety_groups_colour_every_map_and_the_legend(open_page, run):
    visit = open_page()
    visit.page.select_option("#colours", "group")
    visit.settle()
    check_map(visit, expected(run), colours="groups")
    check_map(visit, expected(run, method="segcertify"), "b", colours="groups")
    truth = run.label("scene 0")
    np.testing.assert_array_equal(
        visit.pixels("truth")[..., :3], colour_labels(truth, run.manifest.tree, colours="groups")
    )
    words = visit.page.locator("#legend").inner_text()
    assert "people, riders, animals" in words
    assert "several groups" in words
    assert "Pedestrian" not in words
    visit.page.select_option("#colours", "label")
    visit.settle()
    check_map(visit, expected(run))
    assert visit.page.locator("#legend .texture-1, #legend .texture-2, #legend .texture-3").count() > 0


def test_moving_tau_moves_the_abstained_pixels_exactly(open_page, run):
    visit = open_page()
    counts = []
    for tau in (0.9, 0.8, 0.7, 0.6, 0.5):
        visit.slide("tau", tau)
        certificate = expected(run, tau=tau) if tau < 0.9 else None
        if certificate is not None:
            check_map(visit, certificate)
            check_map(visit, expected(run, method="segcertify", tau=tau), "b")
            assert rounded_down(certificate.radius, 4) in visit.page.locator("#numbers-a").inner_text()
        counts.append(int(abstained(visit.pixels()).sum()))
        assert visit.page.locator("#banner-title").inner_text() == "Exploration: not a certificate"
        assert f"tau {tau:g} instead of 0.75" in visit.page.locator("#banner-text").inner_text()
    assert counts == sorted(counts, reverse=True)
    assert counts[0] > counts[-1]


@pytest.mark.parametrize(
    ("keys", "changes"),
    [
        ("1", {"method": "segcertify"}),
        ("3", {"method": "adaptive", "thresholds": "0,0,0.25"}),
        ("5", {"method": "sets", "max_set": 3}),
    ],
)
def test_methods_by_key(open_page, run, keys, changes):
    visit = open_page()
    visit.page.keyboard.press(keys)
    visit.settle()
    check_map(visit, expected(run, **changes))


def test_sliders_of_the_methods(open_page, run):
    visit = open_page()
    visit.page.keyboard.press("l")
    visit.settle()
    visit.page.keyboard.press("l")
    visit.settle()
    check_map(visit, expected(run, method="level", level=2))
    visit.page.keyboard.press("5")
    visit.slide("max_set", 2)
    check_map(visit, expected(run, method="sets", max_set=2))
    visit.page.keyboard.press("3")
    visit.slide("threshold-0", 0.3)
    check_map(visit, expected(run, method="adaptive", thresholds="0.3,0.3,0.3"))
    visit.slide("alpha", -4)
    check_map(visit, expected(run, method="adaptive", thresholds="0.3,0.3,0.3", alpha=0.0001))
    visit.page.locator("#correction").select_option("by")
    visit.settle()
    check_map(visit, expected(run, method="adaptive", thresholds="0.3,0.3,0.3", alpha=0.0001, correction="by"))
    visit.page.get_by_role("button", name="Back to the run's settings").click()
    visit.settle()
    assert visit.page.locator("#banner-title").inner_text() == "A comparison, not the promise"


def test_hovering_tells_the_library_s_numbers(open_page, run):
    visit = open_page()
    visit.page.keyboard.press("1")
    visit.settle()
    certificate = expected(run, method="segcertify")
    for row, column in [np.argwhere(certificate.abstained)[0], np.argwhere(~certificate.abstained)[-1]]:
        visit.hover(int(row), int(column))
        assert visit.page.locator("#pixel-why").inner_text() == why(certificate, row, column)
        counts = certificate.votes.counts[row, column]
        path = visit.page.locator(".chain").first.locator(".count").all_inner_texts()
        tree, candidate = certificate.hierarchy, int(certificate.votes.candidate[row, column])
        vertices = list(dict.fromkeys(int(v) for v in tree.ancestors[candidate]))
        assert [text.split()[0] for text in path] == [str(counts[tree.members[v]].sum()) for v in vertices]
        radius = visit.page.locator(".facts").inner_text()
        assert rounded_down(certificate.radius_map[row, column], 4) in radius


def test_a_pinned_pixel_stays_and_moves_by_key(open_page):
    visit = open_page()
    visit.hover(3, 4)
    visit.page.mouse.down()
    visit.page.mouse.up()
    visit.hover(10, 10)
    assert "row 3, column 4, pinned" in visit.page.locator("#inspector").inner_text()
    visit.page.keyboard.press("Shift+ArrowDown")
    visit.settle()
    assert "row 4, column 4, pinned" in visit.page.locator("#inspector").inner_text()
    visit.page.keyboard.press("Escape")
    visit.settle()
    assert "row 10, column 10" in visit.page.locator("#inspector").inner_text()
    assert "pinned" not in visit.page.locator("#inspector").inner_text()
    visit.page.mouse.move(1, 1)
    visit.settle()
    assert not visit.page.locator(".inspector").is_visible()


def test_highlight_what_is_certified_not_to_be(open_page, run):
    visit = open_page()
    certificate = expected(run)
    for side, vertex in (("within", "obstacle"), ("excludes", "Pedestrian")):
        number = certificate.hierarchy.id(vertex)
        visit.page.locator(f"[data-side={side}]").click()
        visit.page.locator(f"[data-vertex='{number}']").click()
        visit.settle()
        mask = getattr(certificate, side)(vertex)
        np.testing.assert_array_equal(visit.pixels()[..., 3] > 0, mask)
        assert f"{mask.mean() * 100:.1f} %" in visit.page.locator("#tree-answer").inner_text()
    visit.page.keyboard.press("Escape")
    visit.settle()
    check_map(visit, certificate)


def test_reasons_and_radii_in_colours(open_page, run):
    visit = open_page()
    certificate = expected(run)
    visit.page.locator("#colours").select_option("reason")
    visit.settle()
    codes, pixels = reason_map(certificate), visit.pixels()
    np.testing.assert_array_equal(pixels[..., 3] > 0, certificate.abstained)
    for reason in REASONS:
        colour = tuple(int(reason.colour[i : i + 2], 16) for i in (1, 3, 5))
        assert {tuple(shown) for shown in pixels[codes == reason.code][:, :3]} <= {colour}
    visit.page.locator("#colours").select_option("radius")
    visit.settle()
    np.testing.assert_array_equal(abstained(visit.pixels()), certificate.radius_map == 0)
    assert f"R = {rounded_down(certificate.radius, 3)}" in visit.page.locator("#legend").inner_text()


def test_zoom_and_pan_in_step(open_page):
    visit = open_page()
    transforms = "[...document.querySelectorAll('.sheet')].map((sheet) => sheet.style.transform).filter(Boolean)"
    before = visit.page.evaluate(transforms)
    visit.hover(5, 5)
    visit.page.mouse.wheel(0, -400)
    visit.wait("certiseg.stage.view.zoom > 1.5")
    after = visit.page.evaluate(transforms)
    assert len(set(after)) == 1
    assert after != before
    visit.page.mouse.down()
    visit.page.mouse.move(600, 420, steps=4)
    visit.page.mouse.up()
    moved = visit.page.evaluate(transforms)
    assert len(set(moved)) == 1
    assert moved != after
    visit.page.keyboard.press("0")
    assert visit.page.evaluate(transforms) == before


def test_swipe_between_two_methods(open_page, run):
    visit = open_page()
    visit.page.keyboard.press("g")
    visit.slide("split", 0.25)
    clip = visit.page.evaluate("getComputedStyle(document.querySelector('.pane-a .view')).clipPath")
    assert "75%" in clip
    certificate = expected(run, method="segcertify")
    row, column = np.argwhere(certificate.abstained & (np.arange(32) > 16))[0]
    visit.hover(int(row), int(column), "b")
    assert visit.page.locator("#pixel-why").inner_text() == why(certificate, row, column)


def test_images_by_key_filter_and_sort(open_page, run):
    visit = open_page()
    visit.page.keyboard.press("ArrowRight")
    visit.settle()
    assert visit.page.evaluate("certiseg.state.image") == "scene 1"
    check_map(visit, expected(run, image="scene 1"))
    visit.page.keyboard.press("ArrowLeft")
    visit.page.keyboard.press("ArrowLeft")
    visit.settle()
    check_map(visit, expected(run, image="scene 2"))
    visit.page.locator("#sort").select_option("cig-up")
    told = visit.page.locator(".image-words").all_inner_texts()
    gains = [float(text.split("CIG ")[1].split()[0]) for text in told]
    assert gains == sorted(gains)
    visit.page.locator("#filter").fill("1")
    assert visit.page.locator(".image-name").all_text_contents() == ["scene 1"]
    assert visit.page.locator("#image-count").inner_text() == "1 of 3 images"


def test_reload_comes_back(open_page, run):
    visit = open_page()
    visit.page.keyboard.press("ArrowRight")
    visit.page.keyboard.press("5")
    visit.slide("tau", 0.65)
    visit.page.reload()
    visit.settle()
    certificate = expected(run, image="scene 1", method="sets", max_set=3, tau=0.65)
    check_map(visit, certificate)
    assert "tau 0.65 instead of 0.75" in visit.page.locator("#banner-text").inner_text()
    visit.page.keyboard.press("c")
    visit.page.keyboard.press("g")
    visit.page.reload()
    visit.settle()
    np.testing.assert_array_equal(abstained(visit.pixels()), certificate.radius_map == 0)
    assert visit.page.locator("#colours").input_value() == "radius"
    assert visit.page.locator("[data-layout=swipe]").get_attribute("aria-pressed") == "true"


def test_the_recipe_is_shown(open_page):
    visit = open_page()
    visit.slide("tau", 0.7)
    visit.page.get_by_role("button", name="How to make it one").click()
    visit.wait("document.getElementById('words').open")
    command = visit.page.locator("#words-command").inner_text()
    assert command.startswith("certiseg evaluate folder --root ")
    assert "--setting 100:0.7 --methods nested" in command
    assert "--seed 6" in command
    visit.page.get_by_role("button", name="Close").click()
    visit.page.get_by_role("button", name="Back to the run's settings").click()
    visit.settle()
    visit.page.get_by_role("button", name="What is promised").click()
    assert "With probability at least 0.99" in visit.page.locator("#words-text").inner_text()


def test_help_by_key(open_page):
    visit = open_page()
    visit.page.keyboard.press("?")
    assert visit.page.locator("#help").is_visible()
    visit.page.keyboard.press("Escape")
    assert not visit.page.locator("#help").is_visible()


@pytest.mark.parametrize("width", [400, 800, 1100])
def test_narrow_windows_do_not_scroll_sideways(open_page, width):
    visit = open_page(viewport={"width": width, "height": 800})
    for keys in ("3", "g"):
        visit.page.keyboard.press(keys)
        visit.settle()
        visit.page.keyboard.press("Shift+ArrowUp")
        visit.settle()
        assert visit.page.evaluate("document.documentElement.scrollWidth") <= width


def test_two_tabs_of_fifty_moves_a_second(open_page, app):
    import psutil

    tabs = [open_page(), open_page()]
    newest = app.state.viewer.latest_only
    drag = """async () => { for (let move = 0; move < 100; move++) {
        const slider = document.getElementById("tau");
        slider.value = 0.5 + (move % 50) / 105; slider.dispatchEvent(new Event("input"));
        await new Promise((resolve) => setTimeout(resolve, 20)); }
        document.body.dataset.dragged = Number(document.body.dataset.dragged ?? 0) + 1; }"""
    sizes = []
    for turn in range(1, 4):
        for tab in tabs:
            tab.page.evaluate(f"void ({drag})()")
        for tab in tabs:
            tab.wait(f"document.body.dataset.dragged == {turn}", seconds=240)
        for tab in tabs:
            tab.settle()
        sizes.append(psutil.Process().memory_info().rss)
    assert 12 < newest.computed <= 2 * 2 * 301 + 2
    assert sizes[-1] - sizes[0] < 40 << 20
    tau = tabs[0].page.evaluate("certiseg.state.tau")
    shown = tabs[0].page.evaluate("Number(document.querySelector('canvas[data-map=a]').dataset.tau)")
    assert shown == tau
