"""Two real images and `compact`: no certificate falls within R to a short attack, and many do far beyond."""

from __future__ import annotations

from pathlib import Path

import pytest

import certiseg as cs
from certiseg.attack.run import Victim, attack_certificate, within_radius
from certiseg.attack.settings import AttackSettings
from certiseg.datasets import open_dataset
from certiseg.images import read_image

ROOT = Path(__file__).resolve().parents[3] / "shared" / "data" / "camvid"
pytestmark = [
    pytest.mark.shared,
    pytest.mark.skipif(not ROOT.is_dir(), reason="needs the CamVid images of ../shared"),
]
WINDOW = (slice(100, 228), slice(150, 310))
SHORT = AttackSettings(multiples=(1, 64), targets=("all", "pixel"), steps=6, restarts=1, samples=1, judges=1, draws=60)


@pytest.mark.parametrize("index", [20, 90])
def test_certificates_hold_within_the_radius_and_fall_far_beyond(index: int) -> None:
    model, sample = cs.load_model("compact"), open_dataset("camvid", ROOT)[index]
    image, label = sample.image[WINDOW], sample.label[WINDOW]
    votes = cs.sample(model, image, sigma=0.25, n=70)
    certificate = cs.certify(votes, cs.load_hierarchy("camvid"), method="nested", alpha=0.01)
    outcomes = attack_certificate(model, Victim("camvid", read_image(image), certificate, label), SHORT)
    assert not within_radius(outcomes)
    by_name = {(o.target, o.multiple): o for o in outcomes}
    near, far = by_name["all", 1], by_name["all", 64]
    assert near.tested > 2_000
    assert far.refuted > 0.1 * far.tested
    assert far.accuracy is not None
    assert near.accuracy is not None
    assert far.accuracy < near.accuracy - 0.1
