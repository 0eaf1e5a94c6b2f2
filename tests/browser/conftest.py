"""A real browser on a real server; collected only by `make test-browser`, which installs both."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from tests.viewer import tiny

collect_ignore_glob = [] if os.environ.get("CERTISEG_BROWSER") else ["test_*.py"]

CHROMIUM = "/usr/bin/chromium"
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@contextlib.contextmanager
def serving(app: Any) -> Any:
    """An application on a free port of this process."""
    import uvicorn

    from certiseg.viewer.server import open_socket

    taken = open_socket("127.0.0.1", 0)
    server = uvicorn.Server(uvicorn.Config(app, log_level="error", lifespan="off", ws="none"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [taken]}, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    try:
        yield f"http://127.0.0.1:{taken.getsockname()[1]}/"
    finally:
        server.should_exit = True
        thread.join(timeout=10)
        taken.close()


@contextlib.contextmanager
def chromium() -> Any:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield browser
        browser.close()


class Visit:
    """A tab on the page, and what it must never do: log errors, or ask another host."""

    def __init__(self, browser: Any, url: str, **options: Any) -> None:
        self.url, self.errors, self.foreign = url, [], []
        self.context = browser.new_context(**{"viewport": {"width": 1440, "height": 960}, **options})
        self.context.set_default_timeout(120_000)
        self.page = self.context.new_page()
        self.page.on("console", lambda message: message.type == "error" and self.errors.append(message.text))
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("request", self._check)
        self.page.goto(url)
        self.settle()

    def _check(self, request: Any) -> None:
        if not request.url.startswith((self.url, "blob:", "data:")):
            self.foreign.append(request.url)

    def wait(self, condition: str, seconds: float = 120) -> None:
        """Until an expression of the page holds (asked from outside: the page allows no eval)."""
        end = time.monotonic() + seconds
        while not self.page.evaluate(f"Boolean({condition})"):
            assert time.monotonic() < end, f"never: {condition}"
            time.sleep(0.02)

    def settle(self) -> None:
        """Until every question is answered and painted."""
        self.wait("globalThis.certiseg && certiseg.answers.a")
        self.wait("Object.values(certiseg.lanes).every((lane) => lane.idle)")

    def slide(self, control: str, value: float) -> None:
        self.page.locator(f"#{control}").fill(str(value))
        self.settle()

    def pixels(self, pane: str = "a") -> Any:
        """(H, W, 4): the pixels of a canvas as they are displayed."""
        import numpy as np

        read = """(pane) => { const canvas = document.querySelector(`canvas[data-map=${pane}]`);
            const { width, height } = canvas;
            const { data } = canvas.getContext("2d").getImageData(0, 0, width, height);
            return { width, height, data: Array.from(data) } }"""
        found = self.page.evaluate(read, pane)
        return np.array(found["data"], np.uint8).reshape(found["height"], found["width"], 4)

    def hover(self, row: int, column: int, pane: str = "a") -> None:
        box = self.page.locator(f".pane-{pane} .view").bounding_box()
        size = self.page.evaluate("certiseg.stage.size")
        x = box["x"] + (column + 0.5) * box["width"] / size["width"]
        y = box["y"] + (row + 0.5) * box["height"] / size["height"]
        self.page.mouse.move(x, y)
        self.settle()

    def close(self) -> None:
        self.context.close()
        assert self.errors == []
        assert self.foreign == []


@pytest.fixture(scope="session")
def browser():
    with chromium() as opened:
        yield opened


@pytest.fixture(scope="session")
def data(tmp_path_factory):
    return tiny.write_images(tmp_path_factory.mktemp("data") / "set", 3)


@pytest.fixture
def run(tmp_path, data):
    return tiny.make_run(tmp_path / "run", data, settings=((100, 0.75), (60, 0.75)))


@pytest.fixture
def app(run, data):
    from certiseg.viewer.app import make_app

    return make_app(run, root=str(data), load_model=tiny.model)


@pytest.fixture
def open_page(browser, app):
    """Opens tabs; at the end each must have been quiet and at home."""
    with serving(app) as url:
        visits = []

        def visit(**options: Any) -> Visit:
            visits.append(Visit(browser, url, **options))
            return visits[-1]

        yield visit
        for opened in visits:
            opened.close()


def axe() -> str:
    """The source of axe-core, where `make test-browser` put it."""
    path = Path(__file__).parents[2] / ".venv/axe/node_modules/axe-core/axe.min.js"
    assert path.is_file(), "make test-browser installs axe-core"
    return path.read_text("utf-8")
