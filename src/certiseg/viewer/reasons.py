"""What would certify an abstained pixel: a coarser level, a larger set, more draws and how many, or nothing."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from certiseg.certify import make_certificate
from certiseg.render.colours import BLUE, GREEN, ORANGE, RED, YELLOW
from certiseg.stats.anytime import anytime_test
from certiseg.stats.binomial import MAX_DRAWS, binomial_test
from certiseg.stats.correction import CHAIN_CORRECTIONS

if TYPE_CHECKING:
    from certiseg.certificate import Certificate
    from certiseg.settings import Method

TIMES = (2, 4, 16)
"""Multiples of the draws that are tried."""


@dataclass(frozen=True)
class Reason:
    """A kind of abstention: its number in the map, its colour and its words."""

    code: int
    colour: str
    words: str


REASONS = (
    Reason(1, GREEN, "a coarser level would certify it"),
    Reason(2, BLUE, "a larger set would certify it"),
    Reason(3, YELLOW, "up to 2 times the draws, if the shares stay"),
    Reason(4, ORANGE, "up to 4 times the draws, if the shares stay"),
    Reason(5, RED, "up to 16 times the draws, if the shares stay"),
    Reason(6, "#3c3c46", "nothing: the model itself wavers under noise"),
)
"""0 stands for a certified pixel."""


def reason_map(certificate: Certificate) -> NDArray[np.uint8]:
    """(H, W): the code of every abstained pixel's reason, 0 where certified."""
    codes = np.where(certificate.abstained, np.uint8(6), np.uint8(0))
    hits = last_hits(certificate)
    needed = np.array([_code_of_draws(certificate, k) for k in range(certificate.votes.n + 1)], np.uint8)
    codes[certificate.abstained] = needed[hits]
    codes[certificate.abstained & ~_by(certificate, "sets").abstained] = 2
    codes[certificate.abstained & ~_by(certificate, "nested").abstained] = 1
    return codes


def last_hits(certificate: Certificate) -> NDArray[np.int64]:
    """Votes of every abstained pixel for the broadest label that was tested there."""
    votes, chosen = certificate.votes, certificate.abstained
    apart = votes.by_anchor
    counts = np.array([apart[k].counts[chosen] for k in certificate.covered.used], np.int64)
    if certificate.settings.method == "sets":
        members = votes.ranking[chosen][:, : certificate.settings.max_set].astype(np.intp)
        return np.asarray(np.take_along_axis(counts, members[None], axis=2).sum(axis=2).min(axis=0))
    tree = certificate.hierarchy
    tested = tree.ancestors[votes.candidate[chosen], certificate.level[chosen]]
    return np.asarray((counts * tree.members[tested]).sum(axis=2).min(axis=0))


def draws_needed(certificate: Certificate, hits: int, *, most: int = MAX_DRAWS) -> int | None:
    """About how many draws would certify a label with this share of the votes; None above `most`."""
    low, high = certificate.votes.n, certificate.votes.n
    while not _enough(certificate, hits, high):
        if high >= most:
            return None
        low, high = high, min(2 * high, most)
    while high - low > max(1, low // 100):
        middle = (low + high) // 2
        low, high = (low, middle) if _enough(certificate, hits, middle) else (middle, high)
    return high


def _code_of_draws(certificate: Certificate, hits: int) -> int:
    n = certificate.votes.n
    for code, times in enumerate(TIMES, start=3):
        if times * n <= MAX_DRAWS and _enough(certificate, hits, times * n):
            return code
    return 6


def _enough(certificate: Certificate, hits: int, draws: int) -> bool:
    """Whether the same share of so many draws would pass with bonferroni."""
    settings, n = certificate.settings, certificate.votes.n
    if hits <= settings.tau * n:
        return False
    make = binomial_test if settings.test == "fixed" else anytime_test
    critical = make(draws, settings.tau).critical(settings.alpha / certificate.tested)
    return critical is not None and hits * draws >= critical * n


def _by(certificate: Certificate, method: Method) -> Certificate:
    """The same votes at the same tau and alpha by a chain method, over all its labels."""
    settings = certificate.settings
    correction = settings.correction if settings.correction in CHAIN_CORRECTIONS else "bonferroni"
    chosen = replace(settings, method=method, correction=correction, max_set=None)
    return make_certificate(certificate.votes, certificate.hierarchy, chosen, certificate.region)
