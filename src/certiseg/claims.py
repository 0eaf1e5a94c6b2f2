"""The guarantee in plain words: what holds, for whom, with which probability, and what it does not say."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from certiseg.certificate import Certificate


def claim(certificate: Certificate) -> str:
    """What a certificate promises."""
    settings, votes = certificate.settings, certificate.votes
    label = "inside the certified set of classes" if settings.method == "sets" else "under the certified label"
    where = "pixels of the image" if certificate.region is None else "pixels of a region fixed before the votes"
    grid = votes.noise == "grid"
    event = (
        f"for every perturbation of the {'8-bit image to another 8-bit image,' if grid else 'image'} of l2 size up to "
        f"R = {certificate.radius:.4f} (pixel values in [0, 1]){',' if grid else ''} more than half of the model's "
        f"predictions under Gaussian noise of sigma = {votes.sigma:g}{' rounded to whole grey levels' if grid else ''} "
        f"lie {label}"
    )
    lines = [
        _promise(certificate, event, f"{certificate.tested:,} {where}"),
        grey_levels(certificate.radius, values=3 * votes.size[0] * votes.size[1]),
        "It speaks of the model under noise, not of the truth: a certified label can be wrong. "
        "Certifying the perturbed image anew may abstain.",
        _condition(certificate),
    ]
    if grid:
        lines.insert(2, _table_cost(certificate))
    if certificate.critical is None:
        lines.insert(0, f"Nothing is certified: {votes.n} draws are too few.")
    return "\n".join(lines)


def _table_cost(certificate: Certificate) -> str:
    """What the finite table of grid noise adds to alpha."""
    from certiseg.noise import grid_distance
    from certiseg.stats.binomial import MAX_DRAWS

    votes = certificate.votes
    draws, values = MAX_DRAWS if votes.stopped else votes.n, 3 * votes.size[0] * votes.size[1]
    cost = grid_distance(sigma=votes.sigma, draws=draws, values=values)
    return f"The noise is drawn from a table of 128 bits, which adds at most {cost:.0e} to alpha."


def grey_levels(radius: float, *, values: int) -> str:
    """What R means: on one single value, and spread over the whole image."""
    return (
        f"R is {radius * 255:.1f} grey levels of 255 if a single value changes, or {radius / values**0.5 * 255:.3f} "
        f"grey levels RMS if all {values:,} values do."
    )


def _promise(certificate: Certificate, event: str, tested: str) -> str:
    settings = certificate.settings
    confidence = f"With probability at least {1 - settings.alpha:.10g}"
    if settings.correction == "kfwer" and settings.k > 1:
        return f"{confidence}, for all but at most {settings.k - 1} of the certified among {tested}: {event}."
    if settings.correction == "by":
        return (
            f"Of the certified among {tested}, the expected share of false ones is at most {settings.alpha:.10g}, "
            f"where a certificate is true if {event}."
        )
    return f"{confidence}, at every certified pixel at once among {tested}: {event}."


def _condition(certificate: Certificate) -> str:
    votes = certificate.votes
    how = "may have been stopped by looking at the votes" if votes.stopped else "were fixed beforehand"
    return (
        f"Condition: the settings were chosen before the votes were seen (n = {votes.n} draws {how}). "
        "One certificate spends alpha once; trying several and keeping the best is exploration, and so is certifying "
        "again with the same seed after choosing something by what its draws showed."
    )
