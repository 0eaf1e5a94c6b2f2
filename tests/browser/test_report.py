"""The report in a real browser, from disk: it loads nothing, sorts its gallery, fits a phone, prints."""

from __future__ import annotations

import pytest

from certiseg.report.run_report import run_report
from tests.analysis.conftest import make_run


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
    page.pdf(path=str(tmp_path / "report.pdf"))
    assert (tmp_path / "report.pdf").read_bytes().startswith(b"%PDF")
