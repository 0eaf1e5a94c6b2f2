"""When to stop drawing: as soon as few enough pixels are undecided.

The anytime test is valid under every rule of stopping (see stats/anytime.py). So what counts as undecided here is a
matter of thrift, never of validity.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certiseg.certify import NothingCertifiable, certify, chains_of
from certiseg.errors import InputError
from certiseg.hierarchy import Hierarchy
from certiseg.stats.anytime import anytime_test
from certiseg.stats.nested import finest_links
from certiseg.votes import Votes

ASKED_EVERY = 20
"""Draws between two questions: about 2 % of the time of `compact` goes into the answers."""


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

    def __post_init__(self) -> None:
        if not 0 <= self.share < 1:
            raise InputError(f"share of undecided pixels must lie in [0, 1), got {self.share}")

    def __call__(self, votes: Votes) -> bool:
        standing = self.standing(votes)
        self.watch(standing)
        return standing.undecided <= self.share * standing.tested

    @property
    def rule(self) -> dict[str, Any]:
        """The rule as it is recorded with the votes."""
        method = self.settings.get("method", "nested")
        return {"rule": "undecided", "share": self.share, "n_max": self.n_max, "method": method}

    def standing(self, votes: Votes) -> Standing:
        """How many pixels are certified, hopeless and undecided after these votes."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NothingCertifiable)  # so it is at first
            now = certify(votes, self.hierarchy, **{**self.settings, "test": "anytime"}, region=self.region)
        inside = None if self.region is None else self.region.reshape(-1)
        hits = chains_of(votes, now.hierarchy, now.settings, inside).hits
        at_the_end = (hits.astype(np.uint32) * np.uint32(self.n_max) // np.uint32(votes.n)).astype(np.uint16)
        used, test = now.settings, anytime_test(self.n_max, now.settings.tau)
        found = finest_links(at_the_end, test, alpha=used.alpha, correction=used.correction, k=used.k)
        open_ = now.abstained.reshape(-1)
        open_ = open_ if inside is None else open_[inside]
        undecided = int(((found.link < len(hits)) & open_).sum())
        return Standing(int((~open_).sum()), int(open_.sum()) - undecided, undecided)
