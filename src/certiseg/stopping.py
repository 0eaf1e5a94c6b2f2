"""When to stop drawing: as soon as few enough pixels, or measures, are undecided, for each of the methods asked.

The anytime test is valid under every rule of stopping (see stats/anytime.py). So what counts as undecided here is a
matter of thrift, never of validity.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from certiseg.bounds import LEVELS, by_anchor
from certiseg.certify import make_certificate
from certiseg.chains import chains_of
from certiseg.errors import InputError
from certiseg.hierarchy import Hierarchy
from certiseg.settings import CertificateSettings
from certiseg.stats.anytime import anytime_test
from certiseg.stats.nested import finest_links
from certiseg.stats.order import hits_above

if TYPE_CHECKING:
    from certiseg.votes import Votes

ASKED_EVERY = 20
"""Draws between two questions: about 2 % of the time of `compact` goes into the answers."""
LOOK_EVERY = 32
"""The same where images of a run are drawn: usual batch sizes divide it, so that no batch ends half full."""


@dataclass(frozen=True)
class Standing:
    """How the tested pixels stand after some of the draws."""

    certified: int
    hopeless: int
    """Not certified, and after n_max draws at their present share they would not be either."""
    undecided: int
    """Not certified yet, but after n_max draws at their present share they would be."""

    @property
    def tested(self) -> int:
        return self.certified + self.hopeless + self.undecided

    def shares(self) -> dict[str, str]:
        """The three counts as they are shown while drawing."""
        return {name: f"{value / self.tested:.1%}" for name, value in vars(self).items()}


@dataclass(frozen=True)
class MeasureRule:
    """Stops as soon as at most a share of "this measure reaches 0.5, 0.8, 0.95" is undecided; for `cs.sample`."""

    share: float
    n_max: int
    tau: float = 0.75
    alpha: float = 0.001
    watch: Callable[[Standing], None] = lambda _: None
    """Called with every standing."""

    def __post_init__(self) -> None:
        _require_share(self.share, "measures")

    def __call__(self, votes: Votes) -> bool:
        standing = self.standing(votes)
        self.watch(standing)
        return standing.undecided <= self.share * standing.tested

    @property
    def rule(self) -> dict[str, Any]:
        """The rule as it is recorded with the votes."""
        return {"rule": "undecided measures", "share": self.share, "n_max": self.n_max, "tau": self.tau}

    def standing(self, votes: Votes) -> Standing:
        """How many levels of how many measures are proven, hopeless and undecided after these votes."""
        if votes.record is None or not votes.measures:
            raise InputError("votes must hold measures for this rule, got none; sample with measures=[...]")
        values = by_anchor(votes.record, votes.anchors, tuple(range(len(votes.anchors))))
        hits = np.minimum.reduce([hits_above(of_anchor, LEVELS) for of_anchor in values])
        error = self.alpha / len(votes.measures)
        now, end = (anytime_test(n, self.tau).critical(error) for n in (votes.n, self.n_max))
        proven = np.zeros(hits.shape, bool) if now is None else hits >= now
        hopeless = ~proven if end is None else ~proven & (hits * self.n_max // votes.n < end)
        counts = int(proven.sum()), int(hopeless.sum())
        return Standing(*counts, hits.size - sum(counts))


@dataclass(frozen=True)
class UndecidedRule:
    """Stops as soon as at most a share of the tested pixels is undecided; for `cs.sample(stop=...)`."""

    share: float
    n_max: int
    hierarchy: Hierarchy | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Of `cs.certify`; the test is anytime."""
    region: NDArray[np.bool_] | None = None
    watch: Callable[[Standing], None] = lambda _: None
    """Called with every standing."""
    measures: MeasureRule | None = None
    """What the measures of the votes must fulfil as well."""

    def __post_init__(self) -> None:
        _require_share(self.share, "pixels")

    def __call__(self, votes: Votes) -> bool:
        standing = self.standing(votes)
        self.watch(standing)
        return standing.undecided <= self.share * standing.tested and (self.measures is None or self.measures(votes))

    @property
    def rule(self) -> dict[str, Any]:
        """The rule as it is recorded with the votes."""
        method = self.settings.get("method", "nested")
        too = {} if self.measures is None else {"measures": True}
        return {"rule": "undecided", "share": self.share, "n_max": self.n_max, "method": method, **too}

    def standing(self, votes: Votes) -> Standing:
        """How many pixels are certified, hopeless and undecided after these votes."""
        asked = CertificateSettings(**{**self.settings, "test": "anytime"})
        now = make_certificate(votes, self.hierarchy, asked, self.region)
        inside = None if self.region is None else self.region.reshape(-1)
        hits = chains_of(votes, now.hierarchy, now.settings, inside).hits
        at_the_end = (hits.astype(np.uint32) * np.uint32(self.n_max) // np.uint32(votes.n)).astype(np.uint16)
        used, test = now.settings, anytime_test(self.n_max, now.settings.tau)
        found = finest_links(at_the_end, test, alpha=used.alpha, correction=used.correction, k=used.k)
        open_ = now.abstained.reshape(-1)
        open_ = open_ if inside is None else open_[inside]
        undecided = int(((found.link < len(hits)) & open_).sum())
        return Standing(int((~open_).sum()), int(open_.sum()) - undecided, undecided)


@dataclass(frozen=True)
class EveryRule:
    """Stops as soon as each of several rules would: methods, vote shares and measures that share their draws."""

    rules: tuple[UndecidedRule | MeasureRule, ...]

    def __call__(self, votes: Votes) -> bool:
        return all(rule(votes) for rule in self.rules)

    @property
    def rule(self) -> dict[str, Any]:
        """The rules as they are recorded with the votes."""
        return {"rule": "every", "of": [rule.rule for rule in self.rules]}


def looks(n_max: int) -> tuple[int, ...]:
    """The numbers of draws at which a run asks its rule, a function of n_max alone: after 64, 96, 128, ... draws.

    From 640 on they lie about 10 % apart, so that long draws are not asked about more often than short ones.
    """
    found = [min(2 * LOOK_EVERY, n_max)]
    while found[-1] < n_max:
        found.append(min(found[-1] + LOOK_EVERY * max(1, found[-1] // (10 * LOOK_EVERY)), n_max))
    return tuple(found)


def _require_share(share: float, of: str) -> None:
    if not 0 <= share < 1:
        raise InputError(f"share of undecided {of} must lie in [0, 1), got {share}")
