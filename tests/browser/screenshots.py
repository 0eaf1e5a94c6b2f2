"""The pictures of the viewer in the documents, taken from the real page on street scenes.

python -m tests.browser.screenshots [RUN RUN2]   (make screenshots; without runs two of four streets are made)
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from certiseg.cli import main
from certiseg.runs.folder import RunFolder
from certiseg.viewer.app import make_app
from tests.browser.conftest import Visit, chromium, serving

OUT = Path(__file__).parents[2] / "docs/images"


def grid(visit: Visit) -> None:
    """Image, ground truth, nested and segcertify, with a pixel that one of them certifies."""
    visit.page.keyboard.press("ArrowRight")
    visit.settle()
    visit.hover(196, 380, "b")


def swipe(visit: Visit) -> None:
    """Sets against segcertify, while exploring tau."""
    visit.page.keyboard.press("ArrowRight")
    visit.page.keyboard.press("ArrowRight")
    visit.page.keyboard.press("5")
    visit.page.keyboard.press("g")
    visit.slide("tau", 0.8)


def no_pedestrian(visit: Visit) -> None:
    """Where it is proven that there is no pedestrian."""
    visit.page.keyboard.press("ArrowRight")
    visit.page.locator("[data-side=excludes]").click()
    pedestrian = visit.page.locator(".vertex", has_text="Pedestrian")
    pedestrian.scroll_into_view_if_needed()
    pedestrian.click()
    visit.settle()
    visit.page.evaluate("scrollTo(0, 0)")


def reasons(visit: Visit) -> None:
    """What would certify the abstained pixels."""
    visit.page.keyboard.press("ArrowRight")
    visit.page.keyboard.press("1")
    visit.page.locator("#other").select_option("nested")
    visit.page.locator("#colours").select_option("reason")
    visit.settle()
    visit.hover(230, 395)


def wrong(visit: Visit) -> None:
    """What is certified and wrong: by class, over all images, and where it is most."""
    visit.page.keyboard.press("ArrowRight")
    visit.page.locator("#colours").select_option("verdict")
    visit.settle()
    visit.page.evaluate("document.querySelector('.below').scrollIntoView()")


def two(visit: Visit) -> None:
    """Two sigmas and their difference."""
    visit.page.keyboard.press("ArrowRight")


PICTURES: dict[str, tuple[Callable[[Visit], None], str]] = {
    "view-grid": (grid, "light"),
    "view-swipe": (swipe, "dark"),
    "view-no-pedestrian": (no_pedestrian, "light"),
    "view-reasons": (reasons, "dark"),
    "view-wrong": (wrong, "light"),
    "view-two": (two, "light"),
}
TWO = "view-two"
"""The one with both runs."""


def take(run: Path, second: Path, out: Path) -> None:
    """Open the page once per picture, bring it into its state, and photograph it."""
    with chromium() as browser:
        for name, (act, scheme) in PICTURES.items():
            options: dict[str, Any] = {"viewport": {"width": 1440, "height": 1080}, "color_scheme": scheme}
            with serving(make_app(RunFolder(run), RunFolder(second) if name == TWO else None)) as url:
                visit = Visit(browser, url, **options)
                act(visit)
                visit.settle()
                visit.wait("document.body.dataset.photo === certiseg.state.image")
                visit.wait("[...document.images].every((image) => image.complete)")
                visit.page.wait_for_timeout(300)
                visit.page.screenshot(path=out / f"{name}.png")
                visit.close()
            print(out / f"{name}.png")


if __name__ == "__main__":
    if len(sys.argv) > 2:
        take(Path(sys.argv[1]), Path(sys.argv[2]), OUT)
    else:
        with tempfile.TemporaryDirectory() as folder:
            runs = [Path(folder) / "streets", Path(folder) / "streets-sigma0.5"]
            for path, sigma in zip(runs, ("0.25", "0.5"), strict=True):
                options = ["--first", "4", "--model", "compact", "--sigma", sigma, "--promise", "nested@100:0.75"]
                main(["evaluate", "streets", *options, "--out", str(path)])
            take(*runs, OUT)
