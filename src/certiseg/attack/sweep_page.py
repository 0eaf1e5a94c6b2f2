"""What a sweep came to: a sentence, a table, a figure and the page around them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from certiseg.attack.sweep import Step, Sweep, refuted_inside
from certiseg.hierarchy import ABSTAIN
from certiseg.images import Picture, shown
from certiseg.render.colours import hex_colour, palette
from certiseg.render.figures import new_figure, show_map

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from certiseg.attack.run import Victim

_SHOWN = 5
"""Pictures of the strip."""
_MOST_CLASSES = 8


def table_lines(steps: Sequence[Step], words: Callable[[float], str]) -> list[str]:
    """One row per parameter, over all images, as a Markdown table; words: of the threat, for a parameter."""
    lines = [
        "| t | meaning | promised | refuted | lost | lowest share | refuted, 8 bits | lost, 8 bits |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for t in dict.fromkeys(step.t for step in steps):
        plain, eight = ([s for s in steps if s.t == t and s.rounded == rounded] for rounded in (False, True))
        cells = [f"{t:.3f}", words(t), "yes" if plain[0].inside else "no"]
        cells += [f"{sum(s.refuted for s in plain):,} of {sum(s.tested for s in plain):,}", f"{_lost(plain):.2%}"]
        cells += [
            f"{min(s.lowest_share for s in plain):.2f}",
            f"{sum(s.refuted for s in eight):,}",
            f"{_lost(eight):.2%}",
        ]
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def verdict(steps: Sequence[Step]) -> str:
    """What the sweep came to."""
    plain = [step for step in steps if not step.rounded]
    broken, inside = refuted_inside(steps), [step for step in plain if step.inside]
    eight = sum(step.refuted for step in steps if step.rounded and step.inside)
    images, per_image = len({s.image for s in steps}), len(inside) // len({s.image for s in steps})
    beyond = [step for step in plain if not step.inside]
    first = (
        f"**{sum(s.refuted for s in broken):,} certificates were refuted inside the range**"
        if broken
        else f"None of {sum(s.tested for s in inside) // per_image:,} certificates was refuted inside the range"
    )
    return (
        f"{first} ({images} image{'s' if images > 1 else ''}, {per_image} parameters each); rounded to 8 bits, which "
        f"is not promised, {eight:,} were; beyond the range, {sum(s.refuted > 0 for s in beyond)} of {len(beyond)} "
        "steps refuted at least one."
    )


def _lost(steps: Sequence[Step]) -> float:
    return sum(step.lost * step.tested for step in steps) / sum(step.tested for step in steps)


def page(steps: Sequence[Step], victim: Victim, sweep: Sweep, *, picture: str | None) -> str:
    """The document of a sweep; victim: the last of its images, for the settings."""
    certificate = victim.certificate
    threat, facts = certificate.votes.threat, certificate.votes.provenance
    lines = [
        f"# Sweeping {threat.name} over certificates",
        verdict(steps),
        f"The threat is {threat.describe()}, scale {threat.scale:g}, sigma = {certificate.votes.sigma:g}; model "
        f"{facts.get('model')}, method {certificate.settings.method}, tau = {certificate.settings.tau:g}; certified: "
        f"{certificate.extent}. At every parameter t the model is asked {sweep.draws} times about T_(t + beta) x, with "
        "fresh beta. A certificate is refuted where the Clopper-Pearson upper bound of the share under its label, at "
        f"{sweep.alpha:g} over all pixels and all parameters inside the range, is below 1/2.",
        *([f"![Share of draws under the certified label]({picture})"] if picture else []),
        "\n".join(table_lines(steps, threat.words)),
        "*lost*: share of the certified pixels with fewer than half of the draws under their label, an estimate. *8 "
        "bits*: the image at t was rounded first, as a camera would; no certificate speaks of that.",
    ]
    return "\n\n".join(lines) + "\n"


def draw_sweep(steps: Sequence[Step], victim: Victim) -> Figure:
    """The image from clear to the end of the range; below, the share under the label over the parameter, by class."""
    threat, (low, high) = victim.certificate.votes.threat, victim.certificate.range
    figure, axes = new_figure(2.6 * _SHOWN, 6.5, rows=2, columns=_SHOWN, height_ratios=(1, 2.2))
    for place, t in zip(axes[0], np.linspace(low, high, _SHOWN), strict=True):
        words = threat.words(float(t)) if threat.law == "exponential" else f"t = {t:.2f}"
        moved = shown(Picture(threat.apply(victim.pixels, float(t))))
        show_map(place, moved, words if abs(t) > 1e-12 else "as it is")
    for place in axes[1, 1:]:
        place.remove()
    axes[1, 0].set_subplotspec(axes[1, 0].get_gridspec()[1, :])
    _draw_shares(axes[1, 0], [step for step in steps if step.image == victim.name], victim)
    return figure


def _draw_shares(axes: Axes, steps: Sequence[Step], victim: Victim) -> None:
    certificate = victim.certificate
    tree, (low, high) = certificate.hierarchy, certificate.range
    plain, eight = ([step for step in steps if step.rounded == rounded] for rounded in (False, True))
    axes.axvspan(low, high, color="0.9", label="certified range")
    sizes = np.bincount(certificate.votes.candidate[certificate.vertex != ABSTAIN].astype(np.int64))
    for k in np.argsort(-sizes)[:_MOST_CLASSES]:
        if sizes[k]:
            shares = [step.by_class[tree.classes[k]] for step in plain]
            axes.plot([s.t for s in plain], shares, color=hex_colour(palette(tree)[k]), label=tree.classes[k])
    axes.plot([s.t for s in plain], [s.lowest_share for s in plain], "k:", label="worst pixel")
    axes.plot([s.t for s in eight], [s.lowest_share for s in eight], color="0.5", ls=":", label="worst, 8 bits")
    axes.axhline(0.5, color="0.4", lw=0.8)
    name = certificate.votes.threat.name
    axes.set(xlabel=f"t of {name}", ylabel="share of draws under the certified label", ylim=(0, 1.02))
    axes.legend(loc="lower left", fontsize=8, ncols=2)
