"""The stage: maps as large as the window allows, in sight while settings move, and a state that a link carries."""

import pytest

from tests.browser.test_drop import drop, slow_model
from tests.viewer.test_uploads import picture

WIDE = [(1440, 900), (1024, 768), (390, 844)]
SHOWN = "[...document.querySelectorAll('.view')].map((view) => view.clientWidth).filter(Boolean)"


@pytest.fixture
def app(run, data):
    from certiseg.viewer.app import make_app

    return make_app(run, root=str(data), load_model=slow_model)


def box(visit, selector):
    return visit.page.locator(selector).bounding_box()


def test_panes_fill_the_width(open_page):
    visit = open_page(viewport={"width": 1440, "height": 900})
    widths = visit.page.evaluate(SHOWN)
    assert len(widths) == 4
    assert min(widths) >= 420
    visit.page.locator("[data-layout=single]").click()
    visit.settle()
    (alone,) = visit.page.evaluate(SHOWN)
    assert alone >= 840
    visit.page.locator("#pane").select_option("truth")
    assert visit.page.locator(".pane-truth").is_visible()
    assert not visit.page.locator(".pane-a").is_visible()


@pytest.mark.parametrize(("width", "height"), WIDE)
def test_the_map_is_in_sight_while_tau_moves(open_page, width, height):
    visit = open_page(viewport={"width": width, "height": height})
    for control in ("#tau", "#drop-words"):
        visit.page.locator(control).evaluate("(element) => element.scrollIntoView({ block: 'nearest' })")
        visit.page.wait_for_timeout(100)
        views = [visit.page.locator(f".pane-{pane} .view") for pane in ("photo", "a")]
        place = next(view for view in views if view.is_visible()).bounding_box()
        assert place["y"] >= 0
        assert place["y"] + place["height"] <= height
        assert box(visit, control)["y"] + 20 <= height
    covered = "(id) => { const at = document.getElementById(id).getBoundingClientRect();"
    covered += " return document.elementFromPoint(at.x + at.width / 2, at.y + at.height / 2)?.id; }"
    visit.page.evaluate("scrollTo(0, 0)")
    visit.page.evaluate("document.getElementById('tau').scrollIntoView({ block: 'end' })")
    assert visit.page.evaluate(covered, "tau") == "tau"
    assert visit.page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize(("row", "column", "pane"), [(2, 3, "photo"), (20, 3, "a"), (2, 30, "truth"), (20, 30, "b")])
def test_the_card_of_a_pixel_does_not_cover_it(open_page, row, column, pane):
    visit = open_page(viewport={"width": 1440, "height": 900})
    before = visit.page.evaluate("document.body.scrollHeight")
    visit.hover(row, column, pane)
    card, place = box(visit, ".inspector"), box(visit, f".pane-{pane} .cursor")
    apart = place["x"] + place["width"] <= card["x"] or card["x"] + card["width"] <= place["x"]
    assert apart or place["y"] + place["height"] <= card["y"] or card["y"] + card["height"] <= place["y"]
    assert visit.page.evaluate("document.body.scrollHeight") == before


def test_every_label_is_in_the_legend(open_page):
    visit = open_page()
    shares = visit.page.evaluate("certiseg.answers.a.shares")
    names = visit.page.evaluate("certiseg.answers.a.shares.flatMap((share, id) => share > 0 ? [id] : [])")
    entries = visit.page.locator("#legend .entry")
    assert entries.count() >= len(names) + 1
    assert len(names) == sum(share > 0 for share in shares)
    entries.last.scroll_into_view_if_needed()
    last, legend = entries.last.bounding_box(), box(visit, "#legend")
    assert last["y"] + last["height"] <= legend["y"] + legend["height"] + 1


def test_waiting_is_shown(open_page):
    visit = open_page()
    assert visit.page.locator("#stage").get_attribute("aria-busy") == "false"
    visit.page.route("**/api/map?*", lambda route: (visit.page.wait_for_timeout(300), route.continue_()))
    visit.page.keyboard.press("1")
    visit.wait("document.getElementById('stage').getAttribute('aria-busy') === 'true'", seconds=5)
    visit.settle()
    visit.wait("document.getElementById('stage').getAttribute('aria-busy') === 'false'", seconds=20)


@pytest.mark.parametrize(("width", "height"), WIDE)
def test_progress_of_an_upload_is_in_the_window(open_page, width, height):
    visit = open_page(viewport={"width": width, "height": height})
    drop(visit, picture())
    visit.wait("!document.getElementById('drop-progress').hidden")
    place = box(visit, "#drop-bar")
    assert 0 <= place["y"] <= height - place["height"]
    visit.page.locator("#drop-cancel").click()
    visit.wait("document.getElementById('drop-now').hidden")


def test_a_link_carries_the_whole_state(open_page):
    first = open_page()
    first.page.keyboard.press("ArrowRight")
    first.page.locator("[data-side=excludes]").click()
    first.page.locator("[data-vertex='3']").click()
    first.settle()
    first.hover(10, 12)
    first.page.mouse.down()
    first.page.mouse.up()
    first.settle()
    first.page.mouse.wheel(0, -400)
    first.wait("certiseg.stage.view.zoom > 1.5")
    first.page.locator("#opacity").fill("0.4")
    first.page.keyboard.press("g")
    first.slide("split", 0.3)
    first.wait("location.hash.includes('split=0.3')")
    second = open_page()
    second.page.goto(first.page.url)
    second.page.reload()
    second.settle()
    told = (
        "(({ image, highlight, side, pin, view, opacity, split, layout }) => JSON.stringify([image, highlight, side, "
    )
    told += "pin, view.zoom.toFixed(3), opacity, split, layout]))(certiseg.state)"
    assert second.page.evaluate(told) == first.page.evaluate(told)
    assert second.page.evaluate("certiseg.stage.view.zoom.toFixed(3) === certiseg.state.view.zoom.toFixed(3)")
    assert "row 10, column 12, pinned" in second.page.locator("#inspector").inner_text()
    assert (second.pixels() == first.pixels()).all()


def test_back_and_forward(open_page):
    visit = open_page()
    before = visit.pixels()
    visit.page.keyboard.press("ArrowRight")
    visit.settle()
    visit.page.keyboard.press("1")
    visit.settle()
    visit.slide("tau", 0.6)
    visit.page.go_back()
    visit.settle()
    assert visit.page.evaluate("[certiseg.state.image, certiseg.state.method]") == ["scene 1", "nested"]
    visit.page.go_back()
    visit.settle()
    assert visit.page.evaluate("certiseg.state.image") == "scene 0"
    assert (visit.pixels() == before).all()
    visit.page.go_forward()
    visit.page.go_forward()
    visit.settle()
    told = visit.page.evaluate("[certiseg.state.image, certiseg.state.method, certiseg.state.tau]")
    assert told == ["scene 1", "segcertify", 0.6]
