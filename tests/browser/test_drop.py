"""Dropping an image onto the page: its map grows, its certificate holds, and it can be cancelled."""

import base64
import time

import numpy as np
import pytest

import certiseg as cs
from tests.browser.test_page import check_map
from tests.viewer import tiny
from tests.viewer.test_uploads import picture

DROP = """({ name, content }) => {
    const bytes = Uint8Array.from(atob(content), (letter) => letter.charCodeAt(0));
    const transfer = new DataTransfer();
    transfer.items.add(new File([bytes], name, { type: "image/png" }));
    for (const kind of ["dragenter", "dragover", "drop"]) {
        document.body.dispatchEvent(new DragEvent(kind, { bubbles: true, cancelable: true, dataTransfer: transfer }));
    } }"""


class Slow(tiny.Network):
    """Takes its time, so that there is something to see and to cancel."""

    def forward(self, images):
        time.sleep(0.05)
        return super().forward(images)


def slow_model():
    return tiny.model().adjusted(model=Slow().eval())


@pytest.fixture
def app(run, data):
    from certiseg.viewer.app import make_app

    return make_app(run, root=str(data), load_model=slow_model)


def drop(visit, content, name="a photo.png"):
    visit.page.evaluate(DROP, {"name": name, "content": base64.b64encode(content).decode()})


def test_a_dropped_image_grows_into_its_certificate(open_page, run, monkeypatch):
    monkeypatch.setattr("certiseg.viewer.uploads.secrets.randbits", lambda _: 5)  # leaves a pixel out
    visit = open_page()
    drop(visit, picture())
    visit.wait("document.querySelector('.pane-a figcaption').textContent.includes('draws')")
    titles = set()
    while "dropped/" not in str(visit.page.evaluate("certiseg.state.image")):
        titles.add(visit.page.locator(".pane-a figcaption").inner_text())
        time.sleep(0.05)
    assert len(titles) > 2
    visit.settle()
    stored = list((run.path / "dropped").glob("*.certificate.npz"))
    assert len(stored) == 1
    certificate = cs.load_certificate(stored[0])
    check_map(visit, certificate)
    assert 0 < certificate.abstain_rate < 1
    assert cs.verify(stored[0], model=tiny.model(), image=stored[0].with_name(f"{stored[0].name[:-16]}.png")).passed
    assert visit.page.locator("#banner-title").inner_text() == "The promise of this run"
    with visit.page.expect_download() as download:
        visit.page.locator("#drop-link").click()
    assert download.value.path().read_bytes() == stored[0].read_bytes()
    visit.slide("tau", 0.6)
    assert visit.page.locator("#banner-title").inner_text() == "Exploration: not a certificate"
    check_map(visit, cs.certify(certificate.votes, run.manifest.tree, tau=0.6, alpha=0.01, test="anytime"))
    visit.page.reload()
    visit.settle()
    assert visit.page.evaluate("certiseg.state.image").startswith("dropped/a-photo-")
    visit.page.keyboard.press("ArrowRight")
    visit.settle()
    assert visit.page.evaluate("[certiseg.state.image, certiseg.state.test]") == ["scene 0", "fixed"]


def test_cancel(open_page, run):
    visit = open_page()
    before = visit.pixels()
    drop(visit, picture())
    visit.wait("!document.getElementById('drop-progress').hidden")
    visit.page.locator("#drop-cancel").click()
    visit.wait("document.getElementById('drop-progress').hidden")
    visit.settle()
    visit.wait("document.querySelector('.pane-a figcaption').textContent.startsWith('A: Nested')")
    np.testing.assert_array_equal(visit.pixels(), before)
    assert list((run.path / "dropped").iterdir()) == []


def test_reload_while_drawing_goes_on_showing(open_page, run):
    visit = open_page()
    drop(visit, picture())
    visit.wait("!document.getElementById('drop-progress').hidden")
    visit.page.reload()
    visit.wait("globalThis.certiseg && certiseg.state.image?.startsWith('dropped/')")
    assert len(list((run.path / "dropped").glob("*.certificate.npz"))) == 1


def test_what_is_no_image_is_told(open_page):
    visit = open_page()
    drop(visit, b"not an image", "notes.png")
    visit.wait("document.getElementById('drop-error').textContent")
    assert visit.page.locator("#drop-error").inner_text().startswith("notes.png must be a PNG")
    assert visit.errors != []  # the browser itself notes the status 400
    visit.errors.clear()
    visit.page.locator("#file").set_input_files({"name": "b.png", "mimeType": "image/png", "buffer": picture(9)})
    visit.wait("certiseg.state.image.startsWith('dropped/b-')")
