"""The report in a real browser, from disk: it loads nothing, sorts its gallery, fits a phone, prints."""

from __future__ import annotations

import re

import numpy as np
import pytest

from certiseg.report.run_report import run_report
from tests.analysis.conftest import HIERARCHY, Images, make_run


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    folder = tmp_path_factory.mktemp("report")
    path = folder / "report.html"
    path.write_text(
        run_report(make_run(folder / "run", methods=("segcertify", "adaptive:0,0.1,0.4", "nested"))), "utf-8"
    )
    return path


@pytest.mark.parametrize(("width", "scheme"), [(390, "dark"), (1280, "light")])
def test_the_report_opens_from_disk_and_sorts_its_gallery(report, browser, width, scheme):
    page = browser.new_context(viewport={"width": width, "height": 844}, color_scheme=scheme).new_page()
    asked, said = [], []
    page.on("request", lambda request: asked.append(request.url))
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.goto(report.as_uri(), timeout=120_000)
    assert [url for url in asked if not url.startswith("data:")] == [report.as_uri()]
    assert said == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    dark = page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(23, 24, 27)"
    assert dark == (scheme == "dark")

    def gains(method):
        every = page.eval_on_selector_all(".card", "cards => cards.map(card => card.dataset.gains)")
        return [float(of_card.split()[method]) for of_card in every]

    assert gains(1) == sorted(gains(1), reverse=True)
    page.select_option("#gain-order", "worst")
    assert gains(1) == sorted(gains(1))
    page.select_option("#gain-of", index=0)
    assert gains(0) == sorted(gains(0))
    assert len(set(gains(0))) > 1
    page.locator(".zoom").first.click()
    assert page.locator("dialog[open] img").get_attribute("src").startswith("data:image/png")


def test_the_report_prints_with_its_tables_unfolded(report, browser, tmp_path):
    page = browser.new_page()
    page.goto(report.as_uri(), timeout=120_000)
    page.emulate_media(media="print")
    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    assert page.evaluate("[...document.querySelectorAll('details')].every(folded => folded.open)")
    printed = page.pdf(path=str(tmp_path / "report.pdf"))
    assert printed.startswith(b"%PDF")


@pytest.mark.parametrize(("count", "most"), [(3, 5), (20, 12)])
def test_a_printed_report_has_few_pages_and_whole_tables(browser, tmp_path, monkeypatch, count, most):
    monkeypatch.setattr(Images, "names", tuple(f"drive/{index}" for index in range(count)))
    folder = make_run(tmp_path / "run", settings=((60, 0.75),), objects=("vehicle", "human"), least_area=4)
    photograph = np.zeros((360, 480, 3), np.uint8)
    (tmp_path / "report.html").write_text(run_report(folder, photograph=lambda _: photograph), "utf-8")
    page = browser.new_page()
    page.goto((tmp_path / "report.html").as_uri(), timeout=120_000)
    printed = page.pdf(prefer_css_page_size=True)
    assert 1 < len(re.findall(rb"/Type\s*/Page\b", printed)) <= most
    page.set_viewport_size({"width": 688, "height": 1000})  # what A4 leaves between its margins
    page.emulate_media(media="print")
    wide = page.eval_on_selector_all("table", "tables => tables.map(t => t.getBoundingClientRect().right)")
    assert len(wide) >= 5
    assert max(wide) <= 689
    shown = page.eval_on_selector_all(".maps figure", "all => all.filter(f => f.offsetWidth > 0).length / all.length")
    assert 0 < shown < 1


def test_bars_and_maps_tell_their_names_on_hover(report, browser):
    page = browser.new_page()
    page.goto(report.as_uri(), timeout=120_000)
    titles = page.eval_on_selector_all("svg.bar title", "all => all.map(title => title.textContent)")
    assert any("certified and wrong" in title for title in titles)
    picture = page.locator(".maps img[alt*='ground truth']").first
    picture.scroll_into_view_if_needed()

    def told(across, down):
        box = picture.bounding_box()
        for shift in range(50):  # the picture is loaded when it comes into sight
            page.mouse.move(box["x"] + box["width"] * across + shift % 2, box["y"] + box["height"] * down)
            page.wait_for_timeout(20)
        return picture.get_attribute("title")

    name = told(0.9, 0.9)
    assert name in HIERARCHY.vertices
    legend = page.locator(f"[data-name='{name}']")
    assert legend.count() == 1
    assert told(0.02, 0.02) == "void"
