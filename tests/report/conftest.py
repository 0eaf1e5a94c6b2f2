"""Pages of a small run and of one certificate, as they are and as a reader takes them apart."""

from html.parser import HTMLParser

import pytest

import certiseg as cs
from certiseg.models.synthetic import synthetic_scene
from certiseg.report.certificate_report import certificate_report
from certiseg.report.run_report import run_report

from ..analysis.conftest import make_run


class Page(HTMLParser):
    """Every element with its attributes, and all text outside scripts and styles."""

    def __init__(self, source):
        super().__init__()
        self.source, self.elements, self.text, self.inside = source, [], "", []
        self.feed(source)

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))
        self.inside.append(tag)

    def handle_endtag(self, tag):
        while self.inside and self.inside.pop() != tag:
            pass

    def handle_data(self, data):
        if not {"script", "style"} & set(self.inside):
            self.text += data

    def all(self, tag):
        return [attributes for name, attributes in self.elements if name == tag]


@pytest.fixture(scope="session")
def small_run(tmp_path_factory):
    return make_run(tmp_path_factory.mktemp("report") / "run")


@pytest.fixture(scope="session")
def run_page(small_run):
    return Page(run_report(small_run, full=True))


@pytest.fixture(scope="session")
def short_page(small_run):
    return Page(run_report(small_run))


@pytest.fixture(scope="session")
def certificates():
    model = synthetic_scene()
    votes = cs.sample(model, model.image, sigma=0.25, n=100)
    tree = cs.load_hierarchy("camvid")
    return {method: cs.certify(votes, tree, method=method) for method in ("nested", "sets", "segcertify")}


@pytest.fixture(scope="session")
def certificate_page(certificates):
    return Page(certificate_report(certificates["sets"], "scene"))
