"""Attacks in tables: what was tried, what was refuted, and what the model without noise did meanwhile."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from certiseg.attack.run import Outcome, within_radius
from certiseg.claims import in_file_units

if TYPE_CHECKING:
    from certiseg.attack.settings import AttackSettings
    from certiseg.certificate import Certificate

_HEADS = (
    *("target", "ball", "l2 size", "attacks that refuted", "refuted certificates", "lost", "lowest share"),
    *("base model lost", "base accuracy"),
)

_PAGE = """# Trying to refute certificates

{verdict}

{facts}

## What was tried

For every image and every target a perturbation delta with |delta|_2 <= k R is searched for by projected gradient
ascent in expectation over the noise: fresh noise in every step, momentum, {restarts} restarts of {steps} steps, the
gradient taken through the whole torch model with its up-sampling. The loss is -log of the probability inside the
certified label, weighted as in SegPGD so that pixels that still hold count most. Each search starts from what the next
smaller ball gave; an attack that refuted everything is not repeated in larger balls, which hold the same
perturbation. The perturbed image stays in [0, 1]. Targets: all certified pixels; the single certified pixel
with the fewest votes; the 16x16 patch with the fewest votes; and where objects have bounds, the {most_objects} with the
lowest ones, each to lower its share under its label below its bound.

Then the noise is drawn afresh at x + delta with another seed ({draws} draws for all pixels, {few_draws} for a pixel,
a patch or an object). A certificate is **refuted** where the Clopper-Pearson upper bound, at alpha / N with alpha =
{alpha:g} and N the certificates under attack, of the share of predictions inside the original label (for an object, of
those that reach its bound) is below 1/2. Within R none may be; beyond R nothing is promised, and the attack should be
seen to succeed.

R is an l2 size: {grey}

## What came of it

{table}

- *refuted*: certificates refuted, of all that were attacked; *attacks that refuted*: those that refuted at least one.
- *lost*: share of the attacked pixels with fewer than half of the fresh draws inside their label (an estimate, no
  test).
- *lowest share*: the smallest share of fresh draws inside a label that any attacked pixel had; the promise says that
  the true one is above 1/2 within R.
- *base model*: without noise, on the same perturbed image: share of the attacked pixels whose prediction leaves the
  certified label, and accuracy on the whole image. Without any perturbation the accuracy is {clean}.
{images}"""


def rows_of(outcomes: Sequence[Outcome]) -> list[dict[str, Any]]:
    """One row per target and multiple, over all images."""
    rows = []
    for target, multiple in dict.fromkeys((o.target, o.multiple) for o in outcomes):
        chosen = [o for o in outcomes if (o.target, o.multiple) == (target, multiple)]
        tested = sum(o.tested for o in chosen)
        rows.append(
            {
                "target": target,
                "multiple": multiple,
                "attacks": len(chosen),
                "attacks_that_refuted": sum(o.refuted > 0 for o in chosen),
                "size": float(np.mean([o.size for o in chosen])),
                "tested": tested,
                "refuted": sum(o.refuted for o in chosen),
                "lost": sum(o.lost * o.tested for o in chosen) / tested,
                "lowest_share": min(o.lowest_share for o in chosen),
                "base_lost": sum(o.base_lost * o.tested for o in chosen) / tested,
                "accuracy": _mean([o.accuracy for o in chosen]),
            }
        )
    return rows


def table_lines(outcomes: Sequence[Outcome]) -> list[str]:
    """The rows as a Markdown table."""
    lines = [f"| {' | '.join(_HEADS)} |", "|" + "---|" * len(_HEADS)]
    for row in rows_of(outcomes):
        accuracy = "-" if row["accuracy"] is None else f"{row['accuracy']:.3f}"
        lines.append(
            f"| {row['target']} | {row['multiple']:g} R | {row['size']:.3f} "
            f"| {row['attacks_that_refuted']} of {row['attacks']} "
            f"| {row['refuted']:,} of {row['tested']:,} ({row['refuted'] / row['tested']:.2%}) | {row['lost']:.2%} "
            f"| {row['lowest_share']:.2f} | {row['base_lost']:.2%} | {accuracy} |"
        )
    return lines


def verdict(outcomes: Sequence[Outcome]) -> str:
    """How many certificates were refuted inside R, and whether the attack worked anywhere."""
    inside = [o for o in outcomes if o.multiple <= 1]
    broken = within_radius(outcomes)
    tested, refuted = sum(o.tested for o in inside), sum(o.refuted for o in broken)
    beyond = sum(o.refuted > 0 for o in outcomes if o.multiple > 1)
    many = sum(o.multiple > 1 for o in outcomes)
    first = (
        f"**{refuted:,} certificates were refuted within R**"
        if broken
        else f"None of {tested:,} attacked certificates was refuted within R"
    )
    return f"{first} ({len(inside)} attacks); beyond R, {beyond} of {many} attacks refuted at least one."


def page(
    outcomes: Sequence[Outcome],
    attack: AttackSettings,
    certificate: Certificate,
    *,
    clean: Sequence[float | None],
    minutes: float,
) -> str:
    """The document of all attacks.

    certificate: one of those under attack, for the settings. clean: accuracies without any perturbation.
    """
    names = list(dict.fromkeys(o.image for o in outcomes))
    votes, settings = certificate.votes, certificate.settings
    drawn, accuracy = votes.provenance, _mean(clean)
    facts = (
        f"Model {drawn.get('model')} (run by {drawn.get('backend')}), {len(names)} image{'s' * (len(names) > 1)}, "
        f"method {settings.method}, sigma = {votes.sigma:g}, {votes.noise} noise, n = {votes.n}, "
        f"tau = {settings.tau:g}, alpha = {settings.alpha:g}, correction {settings.correction}; the attacks took "
        f"{minutes:.1f} minutes."
    )
    return _PAGE.format(
        verdict=verdict(outcomes),
        facts=facts,
        restarts=attack.restarts,
        steps=attack.steps,
        draws=attack.draws,
        most_objects=attack.most_objects,
        few_draws=min(attack.draws, attack.few_draws),
        alpha=attack.attack_alpha,
        grey=" ".join(in_file_units(votes, certificate.radius)),
        table="\n".join(table_lines(outcomes)),
        clean="not known" if accuracy is None else f"{accuracy:.3f}",
        images=f"\nImages: {', '.join(names)}.\n",
    )


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return float(np.mean(known)) if known else None
