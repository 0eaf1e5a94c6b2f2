"""What a setting can achieve before anything is drawn: the least n, the misses allowed, what R means."""

from __future__ import annotations

from dataclasses import dataclass

from certiseg.errors import InputError
from certiseg.stats.anytime import anytime_test
from certiseg.stats.binomial import MAX_DRAWS, binomial_test
from certiseg.stats.radius import radius


@dataclass(frozen=True)
class Plan:
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

    @property
    def misses(self) -> int | None:
        """Votes out of n that may go elsewhere."""
        return None if self.critical is None else self.n - self.critical


def plan(
    *, pixels: int, n: int, tau: float = 0.75, alpha: float = 0.001, sigma: float = 0.25, test: str = "fixed"
) -> Plan:
    """What n draws can certify when `pixels` are tested together with bonferroni at error alpha."""
    if not 0.5 <= tau < 1:
        raise InputError(f"tau must lie in [0.5, 1), got {tau}")
    if not 0 < alpha < 1:
        raise InputError(f"alpha must lie in (0, 1), got {alpha}")
    if not 0 < sigma < float("inf"):
        raise InputError(f"sigma must be a positive number, got {sigma}")
    if pixels < 1:
        raise InputError(f"pixels must be at least 1, got {pixels}")
    if not 1 <= n <= MAX_DRAWS:
        raise InputError(f"n must be in 1..{MAX_DRAWS}, got {n}")
    if test not in ("fixed", "anytime"):
        raise InputError(f"test must be fixed or anytime, got {test!r}")
    make, level = (binomial_test if test == "fixed" else anytime_test), alpha / pixels
    return Plan(
        pixels,
        n,
        tau,
        alpha,
        sigma,
        test,
        least_draws(make, tau, level),
        make(n, tau).critical(level),
        radius(sigma, tau),
    )


def least_draws(make_test, tau: float, level: float) -> int | None:  # type: ignore[no-untyped-def]
    """Fewest draws whose unanimous vote rejects, by bisection: unanimity of more draws is more evidence."""
    low, high = 0, MAX_DRAWS
    if make_test(high, tau).critical(level) is None:
        return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if make_test(middle, tau).critical(level) is not None else (middle, high)
    return high


def require_certifiable(*, pixels: int, n: int, tau: float, alpha: float, sigma: float, test: str) -> None:
    """Refuse, before anything is drawn, an n that cannot certify a single pixel."""
    planned = plan(pixels=pixels, n=n, tau=tau, alpha=alpha, sigma=sigma, test=test)
    if planned.critical is None:
        least = f"at least {planned.least_n}" if planned.least_n else "more than 65535, which is not supported"
        raise InputError(
            f"n must be {least} to certify anything at tau = {tau}, alpha = {alpha} for {pixels:,} pixels, got {n}"
        )
