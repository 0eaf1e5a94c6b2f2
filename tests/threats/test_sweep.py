"""The sweep refutes nothing inside the range of a true certificate, everything beyond a step, and finds false ones."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import certiseg as cs
from certiseg import threats
from certiseg.attack.run import Victim
from certiseg.attack.sweep import Sweep, refuted_inside, sweep_certificate
from certiseg.attack.sweep_page import draw_sweep, page, table_lines, verdict

LIGHT = 0.8


def stepping(edge: float) -> cs.Segmenter:
    """Class 1 while the light is above e^-edge of what it was, class 0 when it is darker."""

    def scores(images: np.ndarray) -> np.ndarray:
        bright = (images.mean(axis=-1) > LIGHT * np.exp(-edge)).astype(np.float32)
        return np.stack([1 - bright, bright], axis=-1)

    return cs.Segmenter(scores, num_classes=2, arrays="numpy", name="steps")


def victim(edge: float, **options: Any) -> Victim:
    pixels = np.full((6, 8, 3), LIGHT, np.float32)
    votes = cs.sample(stepping(edge), pixels, sigma=0.0, threat=threats.dark(0.5), n=300, **options)
    return Victim("street", pixels, cs.certify(votes, method="segcertify", alpha=0.1))


SWEEP = Sweep(steps=4, beyond=8, draws=80)


@pytest.mark.parametrize("up_to", [None, 1.0])
def test_nothing_is_refuted_inside_and_much_beyond(up_to: float | None) -> None:
    edge = 1.2 if up_to is None else 2.2
    attacked = victim(edge, **({} if up_to is None else {"up_to": up_to}))
    assert (attacked.certificate.vertex == 1).all()
    steps = sweep_certificate(stepping(edge), attacked, SWEEP)
    assert refuted_inside(steps) == []
    assert {step.inside for step in steps} == {True, False}
    far = [step for step in steps if step.t > edge + 0.3]
    assert far
    assert all(step.refuted == 48 for step in far)
    assert "None of 48 certificates was refuted inside the range" in verdict(steps)


def test_a_false_certificate_is_refuted() -> None:
    """Votes of a model that never changes, judged by one that does."""
    attacked = victim(9.0)
    steps = sweep_certificate(stepping(0.1), attacked, SWEEP)
    assert refuted_inside(steps)
    assert "**" in verdict(steps)


def test_tables_pages_and_figures_tell_of_every_step() -> None:
    attacked = victim(1.2)
    steps = sweep_certificate(stepping(1.2), attacked, replace(SWEEP, beyond=2))
    assert len(table_lines(steps, threats.dark(0.5).words)) == 2 + 9
    text = page(steps, attacked, SWEEP, picture="sweep.png")
    for words in ("light down to 71 %", "![Share", "not promised", "48 certificates"):
        assert words in text
    figure = draw_sweep(steps, attacked)
    assert len(figure.axes) == 6


def test_bad_sweeps_are_one_sentence() -> None:
    with pytest.raises(cs.InputError, match="steps and seed must be at least 1"):
        Sweep(steps=0)
    l2 = cs.sample(stepping(1.0), np.full((6, 8, 3), LIGHT, np.float32), sigma=0.01, n=100)
    attacked = Victim("street", np.zeros((6, 8, 3), np.float32), cs.certify(l2, method="segcertify", alpha=0.1))
    with pytest.raises(cs.InputError, match="with a parameter to be swept, got l2"):
        sweep_certificate(stepping(1.0), attacked, SWEEP)


def test_gamma_is_swept_on_both_sides() -> None:
    assert Sweep(steps=2, beyond=2).parameters(-1.0, 1.0) == [-2.0, -1.5, -1.0, -0.5, 0.0, 0.5, 1.0, 1.5, 2.0]
