"""The report of one certificate: its claim, its labels with their shares, its radius map."""

import numpy as np
import pytest

import certiseg as cs
from certiseg.report.certificate_report import certificate_report

from .conftest import Page
from .test_page import NASTY, assert_self_contained


@pytest.mark.parametrize("method", ["nested", "sets", "segcertify"])
def test_claim_labels_and_settings_are_those_of_the_certificate(certificates, method):
    certificate = certificates[method]
    page = Page(certificate_report(certificate, "scene"))
    for line in certificate.claim().splitlines():
        assert line in page.text
    assert certificate.radius_map_statement in page.text
    assert f"{1 - certificate.abstain_rate:.1%} of {certificate.tested:,} pixels certified" in page.text
    assert f"{certificate.critical} of 100" in page.text
    vertex, counts = np.unique(certificate.vertex[certificate.vertex >= 0], return_counts=True)
    if method != "sets":
        name = certificate.hierarchy.vertices[int(vertex[counts.argmax()])]
        assert f"{name} {counts.max() / certificate.tested:.1%}" in page.text
    assert len(page.all("img")) == 4  # labels, radius, hierarchy, and the empty one that enlarges
    assert_self_contained(page)


def test_shares_of_set_sizes_are_counted(certificates, certificate_page):
    sizes = certificates["sets"].set_size
    for size in (1, 2):
        assert f"{(sizes == size).mean():.1%}" in certificate_page.text


def test_a_region_is_named_and_the_photograph_shown(certificates):
    votes = certificates["nested"].votes
    region = np.zeros(votes.size, bool)
    region[10:40, 20:90] = True
    certificate = cs.certify(votes, cs.load_hierarchy("camvid"), region=region, method="nested")
    image = np.zeros((*votes.size, 3), np.uint8)
    page = Page(certificate_report(certificate, NASTY, image=image))
    assert "outside the region" in page.text
    assert sum(p["src"].startswith("data:image/jpeg") for p in page.all("img")) == 1
    assert page.source.count("<script") == 1
    with pytest.raises(cs.InputError, match="size of the certificate"):
        certificate_report(certificate, "scene", image=image[:-1])
