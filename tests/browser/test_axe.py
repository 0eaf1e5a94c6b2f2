"""axe-core finds nothing serious, in light and dark, wide and narrow, with a pixel pinned and a dialog open."""

import pytest

from tests.browser.conftest import axe

STATES = {
    "as it opens": [],
    "exploring adaptive with a pinned pixel": ["3", "Shift+ArrowDown"],
    "swiping, coloured by radius": ["g", "c"],
    "why it abstains": ["c", "c"],
    "help": ["?"],
}


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [400, 1440])
@pytest.mark.parametrize("state", STATES)
def test_no_serious_finding(open_page, scheme, width, state):
    visit = open_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
    for key in STATES[state]:
        visit.page.keyboard.press(key)
        visit.settle()
    assert serious_findings(visit) == []


def serious_findings(visit):
    """What axe-core finds on the page as it is now."""
    visit.page.evaluate(axe())
    found = visit.page.evaluate("axe.run().then(({ violations }) => violations)")
    return [
        f"{violation['id']}: {violation['help']}: {node['target']} {node.get('failureSummary', '')}"
        for violation in found
        for node in violation["nodes"]
        if violation["impact"] in ("serious", "critical")
    ]


def test_focus_goes_through_the_page_in_reading_order(open_page):
    visit = open_page()
    seen = []
    for _ in range(60):
        visit.page.keyboard.press("Tab")
        seen.append(visit.page.evaluate("document.activeElement.id || document.activeElement.className || ''"))
        if seen[-1] == "tau":
            break
    order = ["skip", "help-button", "filter", "sort", "image", "colours", "other", "opacity", "tau"]
    places = [seen.index(name) for name in order]
    assert places == sorted(places)


def test_every_control_has_a_name(open_page):
    visit = open_page()
    nameless = """() => [...document.querySelectorAll("button, input, select")].filter((element) =>
        !(element.labels?.length || element.getAttribute("aria-label") || element.textContent.trim())).map(
        (element) => element.outerHTML)"""
    assert visit.page.evaluate(nameless) == []
