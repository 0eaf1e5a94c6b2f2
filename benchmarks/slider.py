"""From slider to picture in a real browser: python -m benchmarks.slider, after `make test-browser` has installed one.

Votes of a rendered street at 480x360 and 1024x2048; tau is moved, and the page tells how long it took until the new
map was painted. Milliseconds of this machine, so not part of `make bench`.
"""

from __future__ import annotations

import statistics
import tempfile
from pathlib import Path

from PIL import Image

from benchmarks.measure import machine
from certiseg.cli import main
from certiseg.runs.folder import RunFolder
from certiseg.viewer.app import make_app
from streets import CLASSES, street
from tests.browser.conftest import Visit, chromium, serving

SIZES = {(360, 480): 50.0, (1024, 2048): 150.0}
KEYS = {"1": "segcertify", "2": "level", "3": "adaptive", "4": "nested", "5": "sets"}
TAUS = [0.5 + 0.01 * step for step in range(1, 40)]


def make_run(folder: Path, height: int, width: int) -> Path:
    """A run of one street of that size."""
    image, label = street(1, height=height, width=width)
    for kind, pixels in (("images", image), ("labels", label)):
        (folder / kind).mkdir(parents=True)
        Image.fromarray(pixels).save(folder / kind / "street.png")
    (folder / "classes.txt").write_text("\n".join(CLASSES))
    where = ["--root", str(folder), "--out", str(folder / "run")]
    assert main(["evaluate", "folder", *where, "--model", "compact", "--backend", "auto"]) == 0
    return folder / "run"


def milliseconds(visit: Visit) -> list[float]:
    """What the page measured for each move of tau."""
    found = []
    for tau in TAUS:
        visit.slide("tau", tau)
        found.append(float(visit.page.evaluate("document.body.dataset.milliseconds")))
    return found


if __name__ == "__main__":
    print(machine())
    for (height, width), aim in SIZES.items():
        with tempfile.TemporaryDirectory() as folder:
            run = make_run(Path(folder) / "data", height, width)
            with serving(make_app(RunFolder(run), root=str(Path(folder) / "data"))) as url, chromium() as browser:
                visit = Visit(browser, url)
                for key, method in KEYS.items():
                    visit.page.keyboard.press(key)
                    visit.settle()
                    taken = milliseconds(visit)
                    median, worst = statistics.median(taken), statistics.quantiles(taken, n=20)[-1]
                    verdict = "met" if median <= aim else "MISSED"
                    what = f"{verdict:<7} {method:<11} {width}x{height}"
                    print(f"{what}: median {median:.0f} ms, 95 % below {worst:.0f} ms, aim {aim:g} ms", flush=True)
                visit.close()
