"""What a setting can achieve before anything is drawn: the least n, the misses allowed, what R means."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from certiseg.errors import InputError
from certiseg.settings import require_noise
from certiseg.stats.anytime import anytime_test
from certiseg.stats.binomial import MAX_DRAWS, CountTest, binomial_test
from certiseg.threats import Threat, l2
from certiseg.threats.anchors import covered


@dataclass(frozen=True)
class Prospect:
    """The consequences of (image size, n, tau, alpha, sigma)."""

    pixels: int
    n: int
    tau: float
    alpha: float
    sigma: float
    test: str
    least_n: int | None
    """Fewest draws that can certify a pixel, None above 65535."""
    critical: int | None
    """Votes needed out of n."""
    radius: float
    """R, or beside a threat the l2 radius that is covered with it."""
    range: tuple[float, float] = (0.0, 0.0)
    """The least and the largest parameter of the threat that are covered; for l2, (0, R)."""
    covered: str = ""
    """The range in words."""
    anchors: int = 1
    """Places along the threat at which n draws are made each."""

    @property
    def misses(self) -> int | None:
        """Votes out of n that may go elsewhere."""
        return None if self.critical is None else self.n - self.critical


def plan(
    *,
    pixels: int,
    n: int,
    tau: float = 0.75,
    alpha: float = 0.001,
    sigma: float = 0.25,
    test: str = "fixed",
    threat: Threat | None = None,
    anchors: tuple[float, ...] = (0.0,),
    radius: float | None = None,
) -> Prospect:
    """What n draws can certify when `pixels` are tested together with bonferroni at error alpha.

    threat, anchors: what the draws move along, and from where; radius: the l2 radius beside it.
    """
    threat = threat or l2()
    if not 0.5 <= tau < 1:
        raise InputError(f"tau must lie in [0.5, 1), got {tau}")
    if not 0 < alpha < 1:
        raise InputError(f"alpha must lie in (0, 1), got {alpha}")
    require_noise(sigma, "gaussian", threat)
    if pixels < 1:
        raise InputError(f"pixels must be at least 1, got {pixels}")
    if not 1 <= n <= MAX_DRAWS:
        raise InputError(f"n must be in 1..{MAX_DRAWS}, got {n}")
    if test not in ("fixed", "anytime"):
        raise InputError(f"test must be fixed or anytime, got {test!r}")
    make, significance = (binomial_test if test == "fixed" else anytime_test), alpha / pixels
    found = covered(anchors, *threat.range(tau, radius or 0.0, sigma))
    return Prospect(
        pixels,
        n,
        tau,
        alpha,
        sigma,
        test,
        least_draws(make, tau, significance),
        make(n, tau).critical(significance),
        found.high if threat.law == "none" else radius or 0.0,
        (found.low, found.high),
        threat.words(found.high),
        len(anchors),
    )


def least_draws(make_test: Callable[[int, float], CountTest], tau: float, significance: float) -> int | None:
    """Fewest draws whose unanimous vote rejects, by bisection: unanimity of more draws is more evidence."""
    low, high = 0, MAX_DRAWS
    if make_test(high, tau).critical(significance) is None:
        return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if make_test(middle, tau).critical(significance) is not None else (middle, high)
    return high


def require_certifiable(*, pixels: int, n: int, tau: float, alpha: float, **settings: Any) -> None:
    """Refuse, before anything is drawn, an n that cannot certify a single pixel; further settings as for `plan`."""
    planned = plan(pixels=pixels, n=n, tau=tau, alpha=alpha, **settings)
    if planned.critical is None:
        least = f"at least {planned.least_n}" if planned.least_n else "more than 65535, which is not supported"
        raise InputError(
            f"n must be {least} to certify anything at tau = {tau}, alpha = {alpha} for {pixels:,} pixels, got {n}"
        )
