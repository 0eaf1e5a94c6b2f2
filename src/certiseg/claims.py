"""The guarantee in plain words: what holds, for whom, with which probability, and what it does not say."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from certiseg.images import BYTES
from certiseg.noise.grid import grid_distance
from certiseg.stats.binomial import MAX_DRAWS
from certiseg.stats.radius import radius as l2_radius
from certiseg.words import confidence, one_digit_above, rounded_down

if TYPE_CHECKING:
    from certiseg.images.values import Values
    from certiseg.settings import CertificateSettings
    from certiseg.threats import Threat
    from certiseg.threats.anchors import Covered

_CURVE = 4
"""Points of the trade-off between range and radius that a claim states, besides its own."""


class Drawn(Protocol):
    """What a claim has to know about draws: votes, or the draws that bounds rest on."""

    @property
    def n(self) -> int: ...
    @property
    def sigma(self) -> float: ...
    @property
    def noise(self) -> str: ...
    @property
    def stopped(self) -> bool: ...
    @property
    def threat(self) -> Threat: ...
    @property
    def anchors(self) -> tuple[float, ...]: ...
    @property
    def size(self) -> tuple[int, int]: ...
    @property
    def deviation(self) -> float: ...
    @property
    def channels(self) -> int: ...
    @property
    def image_values(self) -> Values: ...


def claim(
    settings: CertificateSettings,
    votes: Drawn,
    *,
    radius: float,
    critical: int | None,
    tested: int,
    whole: bool,
    covered: Covered,
) -> str:
    """What a certificate promises; whole: the whole image was tested."""
    label = "inside the certified set of classes" if settings.method == "sets" else "under the certified label"
    where = "pixels of the image" if whole else "pixels of a region fixed before the votes"
    changed = "perturbed" if votes.threat.law == "none" else "changed"
    lines = [
        _promise(settings, f"{event_of(votes, radius, covered)} lie {label}", f"{tested:,} {where}"),
        *terms_of(settings.tau, votes, radius, covered),
        "It speaks of the smoothed model's answers, not of the scene: a certified label can be wrong. "
        f"Certifying the {changed} image anew may abstain.",
        _condition(votes),
    ]
    if critical is None:
        lines.insert(0, f"Nothing is certified: {votes.n} draws are too few.")
    return "\n".join(lines)


def event_of(votes: Drawn, radius: float, covered: Covered) -> str:
    """Whatever happens to the image, more than half of which predictions."""
    return _l2_event(votes, radius) if votes.threat.law == "none" else _threat_event(votes, radius, covered)


def terms_of(tau: float, votes: Drawn, radius: float, covered: Covered) -> list[str]:
    """What the event means, and what it does not cover."""
    return _l2_terms(votes, radius) if votes.threat.law == "none" else _threat_terms(tau, votes, radius, covered)


# -- perturbations by l2 size ------------------------------------------------------------------------------------


def _l2_event(votes: Drawn, radius: float) -> str:
    grid = votes.noise == "grid"
    return (
        f"for every perturbation of the {'8-bit image to another 8-bit image,' if grid else 'image'} of l2 size up to "
        f"R = {rounded_down(radius, 4)} (pixel values in [0, 1]){',' if grid else ''} more than half of the model's "
        f"predictions under Gaussian noise of sigma = {votes.sigma:g}{' rounded to whole grey levels' if grid else ''}"
    )


def _l2_terms(votes: Drawn, radius: float) -> list[str]:
    meant = in_file_units(votes, radius)
    return [*meant, _table_cost(votes)] if votes.noise == "grid" else meant


def _table_cost(votes: Drawn) -> str:
    """What the finite table of grid noise adds to alpha."""
    draws, values = MAX_DRAWS if votes.stopped else votes.n, votes.channels * votes.size[0] * votes.size[1]
    cost = grid_distance(sigma=votes.sigma, draws=draws, values=values)
    return f"The noise is drawn from a table of 128 bits, which adds at most {one_digit_above(cost)} to alpha."


def in_file_units(votes: Drawn, radius: float) -> list[str]:
    """What R, and for other images than 8-bit ones sigma, mean in the numbers of the image's file."""
    return file_units(radius, votes.sigma, (*votes.size, votes.channels), votes.image_values)


def file_units(radius: float, sigma: float, shape: tuple[int, int, int], ranges: Values) -> list[str]:
    """The same for an image of this height, width and number of channels, whose 0 and 1 stand for `ranges`."""
    count = shape[0] * shape[1] * shape[2]
    if ranges == BYTES:
        return [grey_levels(radius, values=count)]
    lines = []
    for channel, (low, high) in enumerate(ranges, 1):
        whose = f"channel {channel}" if len(ranges) > 1 else "the image" if shape[2] == 1 else "each channel"
        lines.append(
            f"In the numbers of the file, where values {low:.10g} to {high:.10g} of {whose} stand for 0 to 1: sigma is "
            f"{sigma * (high - low):.6g}, R is {rounded_down(radius * (high - low), 4)} if a single value "
            f"changes, or {rounded_down(radius / count**0.5 * (high - low), 6)} RMS if all {count:,} values do."
        )
    return lines


def grey_levels(radius: float, *, values: int) -> str:
    """What R means: on one single value, and spread over the whole image."""
    return (
        f"R is {rounded_down(radius * 255, 1)} grey levels of 255 if a single value changes, or "
        f"{rounded_down(radius / values**0.5 * 255, 3)} grey levels RMS if all {values:,} values do."
    )


# -- threats of light and weather --------------------------------------------------------------------------------


def _threat_event(votes: Drawn, radius: float, covered: Covered) -> str:
    threat = votes.threat
    law = (
        f"Gaussian of deviation {threat.scale:g}" if threat.law == "normal" else f"exponential of mean {threat.scale:g}"
    )
    beside = (
        f", and every perturbation of l2 size up to R = {rounded_down(radius, 4)} before or after it," if radius else ""
    )
    noise = f" and Gaussian noise of sigma = {votes.sigma:g} on the pixels" if votes.sigma else ""
    between = f"[{_low_end(covered.low)}, {rounded_down(covered.high, 4)}]"
    return (
        f"for {threat.words(covered.high)} (every t in {between}){beside} more than half "
        f"of the model's predictions under a further random {threat.name} (t {law}){noise}"
    )


def _low_end(low: float) -> str:
    return f"-{rounded_down(-low, 4)}" if low < 0 else "0"


def _threat_terms(tau: float, votes: Drawn, radius: float, covered: Covered) -> list[str]:
    """What the threat is, what is given up for what, and what is not covered."""
    threat = votes.threat
    lines = [f"The threat is {threat.describe()}: this and nothing else happens to the image."]
    if len(votes.anchors) > 1:
        lines.append(
            f"The range rests on votes at {len(covered.used)} of {len(votes.anchors)} anchors; a label is certified "
            "only if it is at every one, which costs draws and no alpha."
        )
    if len(covered.used) < len(votes.anchors):
        lines.append(
            f"At tau = {tau:g} the anchors leave a hole behind t = {rounded_down(covered.high, 4)}: nothing "
            "is promised beyond it."
        )
    if votes.sigma:
        lines.append(_trade_off(tau, votes))
    rounding = "It holds for the changed scene before it is rounded to 8 bits"
    lines.append(
        f"{rounding}; only perturbations up to R = {rounded_down(radius, 4)} are covered beside it."
        if radius
        else f"{rounding}: rounding, compression and perturbations of pixels are not covered."
    )
    if not votes.sigma:
        lines.append("Without pixel noise, rounding of floating point is not covered either.")
    return lines


def _trade_off(tau: float, votes: Drawn) -> str:
    """Range against l2 radius: one point of it was to be chosen before the draws."""
    most = l2_radius(votes.deviation, tau)
    radii = [most * k / (_CURVE - 1) for k in range(_CURVE - 1)]
    ends = [votes.threat.range(tau, r, votes.deviation)[1] for r in radii]
    points = "; ".join(
        f"R = {rounded_down(r, 3)}: t up to {rounded_down(end, 3)}" for r, end in zip(radii, ends, strict=True)
    )
    return f"Range against radius, one point chosen beforehand, for each anchor: {points}; R = {most:.3f}: none."


# -- for all -----------------------------------------------------------------------------------------------------


def _promise(settings: CertificateSettings, event: str, tested: str) -> str:
    likely = f"With probability at least {confidence(settings.alpha)}"
    if settings.correction == "kfwer" and settings.k > 1:
        return f"{likely}, for all but at most {settings.k - 1} of the certified among {tested}: {event}."
    if settings.correction == "by":
        return (
            f"Of the certified among {tested}, the expected share of false ones is at most {settings.alpha:.10g}, "
            f"where a certificate is true if {event}."
        )
    return f"{likely}, at every certified pixel at once among {tested}: {event}."


def draws_of(votes: Drawn) -> str:
    """How many draws there are, and how their number came about."""
    how = "may have been stopped by looking at the votes" if votes.stopped else "were fixed beforehand"
    return f"n = {votes.n} draws{' at each anchor' if len(votes.anchors) > 1 else ''} {how}"


def _condition(votes: Drawn) -> str:
    return (
        f"Condition: the settings were chosen before the votes were seen ({draws_of(votes)}). "
        "One certificate spends alpha once; trying several and keeping the best is exploration, and so is certifying "
        "again with the same seed after choosing something by what its draws showed."
    )
