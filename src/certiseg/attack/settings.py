"""How hard certificates are attacked: the options of `certiseg attack` derive from here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from certiseg.settings import make_plain, require, require_one_of, setting

TargetName = Literal["all", "pixel", "patch", "object"]


@dataclass(frozen=True, kw_only=True)
class AttackSettings:
    """What is tried on each certificate."""

    multiples: tuple[float, ...] = setting(
        (1, 2, 4, 8, 16, 32, 64), metavar="K", words=True, help="sizes of the ball, in radii R, smallest first"
    )
    targets: tuple[TargetName, ...] = setting(
        get_args(TargetName),
        metavar="TARGET",
        words=True,
        help="all certified pixels, the weakest pixel or patch, objects",
    )
    most_objects: int = setting(3, help="objects that are attacked in an image, those of the lowest bounds")
    steps: int = setting(20, help="gradient steps")
    restarts: int = setting(2, help="searches per ball")
    samples: int = setting(2, help="noises per step")
    judges: int = setting(4, help="noises on which the restarts are compared")
    draws: int = setting(100, help="fresh draws at x + delta, for all certified pixels at once")
    few_draws: int = setting(40, help="the same for a pixel, patch or object: a test of few certificates needs fewer")
    attack_alpha: float = setting(0.001, help="chance that an attack refutes a certificate that holds")
    attack_seed: int = setting(1, help="added to the seed of the votes: none of their noise is used again")

    def __post_init__(self) -> None:
        make_plain(self)
        object.__setattr__(self, "targets", tuple(dict.fromkeys(self.targets)))
        rising = all(a < b for a, b in zip((0, *self.multiples), self.multiples, strict=False))
        require(bool(self.multiples) and rising, "multiples", "be positive and rise", list(self.multiples))
        for target in self.targets:
            require_one_of("targets", target, get_args(TargetName))
        for name in ("steps", "restarts", "samples", "judges", "draws", "few_draws", "most_objects", "attack_seed"):
            require(getattr(self, name) >= 1, name, "be at least 1", getattr(self, name))
        require(0 < self.attack_alpha < 1, "attack_alpha", "lie in (0, 1)", self.attack_alpha)

    def draws_for(self, target: TargetName) -> int:
        return self.draws if target == "all" else min(self.draws, self.few_draws)
