"""What can be set, stated once: Python arguments, command-line options, manifests and viewer queries derive from here.

Each field carries its help text and how it is typed on a command line. A rule that needs nothing but the settings
themselves is checked when they are made; what needs an image, votes or a hierarchy is checked where those are known.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal, TypeVar, get_args

import numpy as np
from numpy.typing import NDArray

from certiseg.errors import InputError
from certiseg.stats.binomial import MAX_DRAWS, Test
from certiseg.stats.correction import CHAIN_CORRECTIONS, CORRECTIONS, Correction
from certiseg.threats import Threat, l2
from certiseg.threats import unpack as unpack_threat
from certiseg.threats.anchors import require_anchors

MOST_SIGMA = 2.0
"""Noise that leaves nothing of an image in [0, 1]: whoever asks for more means another scale."""
INSIST = "take sigma, mean and std as they are, even where they look like values of another scale"
Stage = Literal["selection", "estimation"]
Noise = Literal["gaussian", "grid"]
Method = Literal["segcertify", "level", "adaptive", "nested", "sets"]
METHODS: tuple[Method, ...] = get_args(Method)
CHAIN_METHODS: tuple[Method, ...] = ("nested", "sets")
"""Methods that test a chain of growing labels at each pixel."""
FLAT_METHODS: tuple[Method, ...] = ("segcertify", "sets")
"""Methods that need no hierarchy."""


def setting(
    default: Any = dataclasses.MISSING,
    *,
    help: str,
    flag: str | None = None,
    metavar: str | tuple[str, ...] | None = None,
    words: bool = False,
) -> Any:
    """A field of a settings class.

    flag: how it is called on a command line, where not --like-the-field; words: several values are typed as words.
    """
    return field(default=default, metadata={"help": help, "flag": flag, "metavar": metavar, "words": words})


def same_as(cls: Any, name: str, **other: Any) -> Any:
    """A field with the default and the help of a field of another settings class."""
    found = cls.__dataclass_fields__[name]
    return field(default=found.default, metadata={**found.metadata, **other})


@dataclass(frozen=True, kw_only=True)
class SamplingSettings:
    """All that fixes the draws of an image, settled before the first of them."""

    sigma: float = setting(0.25, help="pixel noise, in [0, 1] pixel units")
    n0: int = setting(10, help="selection draws")
    n: int = setting(100, help="estimation draws", flag="-n")
    seed: int = setting(0, help="seed of the noise")
    batch_size: int = setting(1, help="draws per model call", metavar="B")
    max_set: int = setting(5, help="how many classes are ranked at each pixel", metavar="M")
    snapshots: tuple[int, ...] = setting((), help="keep the counts of the first so many draws, too", metavar="N,N")
    temperature: float = setting(
        1.0, help="divides the logits of the selection draws; the paper's authors took 1.335 for Cityscapes and ACDC"
    )
    noise: Noise = setting(
        "gaussian",
        help="grid: rounded to whole grey levels, a promise between 8-bit images without a floating-point gap",
    )
    threat: Threat = setting(l2(), help="what happens to the image: l2, or a threat of light and weather")
    anchors: tuple[float, ...] = setting((0.0,), help="parameters of the threat at which votes are drawn")

    insist: bool = setting(False, help=INSIST)

    def __post_init__(self) -> None:
        make_plain(self)
        require_noise(self.sigma, self.noise, self.threat)
        require_anchors(self.threat, self.anchors)
        if self.sigma > MOST_SIGMA and not self.insist:
            raise InputError(
                f"sigma must be in [0, 1] pixel units, got {self.sigma:g}, probably meant as grey levels: "
                f"{self.sigma / 255:.4g}; insist=True (--insist) takes it as it is"
            )
        for name in ("n0", "n"):
            value = getattr(self, name)
            require(is_whole(value) and 1 <= value <= MAX_DRAWS, name, f"be in 1..{MAX_DRAWS}", value)
        require(is_whole(self.seed) and self.seed >= 0, "seed", "be a whole number >= 0", self.seed)
        for name in ("batch_size", "max_set"):
            value = getattr(self, name)
            require(is_whole(value) and value >= 1, name, "be at least 1", value)
        good = np.isfinite(self.temperature) and self.temperature > 0
        require(good, "temperature", "be > 0", self.temperature)
        require_one_of("noise", self.noise, get_args(Noise))
        rising = all(a < b for a, b in zip((0, *self.snapshots), self.snapshots, strict=False))
        whole = all(is_whole(s) for s in self.snapshots)
        inside = not self.snapshots or self.snapshots[-1] <= self.n
        require(whole and rising and inside, "snapshots", f"rise and be at most n = {self.n}", self.snapshots)

    @property
    def cuts(self) -> tuple[int, ...]:
        """Where the estimation draws are parted: the snapshots and n."""
        return self.snapshots if self.snapshots and self.snapshots[-1] == self.n else (*self.snapshots, self.n)

    @property
    def unit(self) -> int:
        """What stands for a posterior of one, so that the sum over all selection draws fits 32 bits."""
        return (2**32 - 1) // self.draws("selection")

    def draws(self, stage: Stage) -> int:
        """All draws of a stage: n0 or n at each anchor. Draw d is draw d // K at the anchor d % K."""
        return (self.n0 if stage == "selection" else self.n) * len(self.anchors)


@dataclass(frozen=True, kw_only=True)
class CertificateSettings:
    """How a certificate is computed from votes."""

    method: Method = setting("nested", help="how labels are chosen")
    tau: float = setting(0.75, help="vote share to exceed, in [0.5, 1)")
    alpha: float = setting(0.001, help="allowed error for the whole image")
    correction: Correction = setting(
        "bonferroni", help="how many pixels share alpha; kfwer and by promise less, see the printed claim"
    )
    k: int = setting(1, help="for kfwer: fewer than K false certifications", flag="--kfwer-k", metavar="K")
    test: Test = setting("fixed", help="anytime allows early stopping")
    thresholds: tuple[float, ...] | None = setting(
        None, help="for adaptive, coarsest level first, e.g. 0,0,0.25", metavar="T,T,T"
    )
    level: int | None = setting(None, help="hierarchy level, for the method level")
    max_set: int | None = setting(None, help="largest label set, for the method sets (as many as are ranked)")
    radius: float | None = setting(
        None, help="l2 size of perturbation that is covered beside a threat, by pixel noise; it shortens the range"
    )

    def __post_init__(self) -> None:
        make_plain(self)
        require_one_of("method", self.method, METHODS)
        if self.method == "level" and self.level is None:
            raise InputError("level must be given for the method level, got none; 0 are the classes themselves")
        require(0.5 <= self.tau < 1, "tau", "lie in [0.5, 1)", self.tau)
        require(0 < self.alpha < 1, "alpha", "lie in (0, 1)", self.alpha)
        require_one_of("correction", self.correction, CORRECTIONS)
        if self.method in CHAIN_METHODS and self.correction not in CHAIN_CORRECTIONS:
            raise InputError(
                f"correction must be {' or '.join(CHAIN_CORRECTIONS)} for {self.method}, got {self.correction!r}: the "
                "proof for chains of labels covers no other"
            )
        require(is_whole(self.k) and self.k >= 1, "k", "be a whole number >= 1", self.k)
        require_one_of("test", self.test, get_args(Test))
        good = self.radius is None or (np.isfinite(self.radius) and self.radius >= 0)
        require(good, "radius", "be a number >= 0", self.radius)

    def refuse_idle(self) -> None:
        """Refuse what the method does not look at: whoever gave it expects an effect."""
        for name, needed, used in (
            ("level", "method level", self.method == "level"),
            ("thresholds", "method adaptive", self.method == "adaptive"),
            ("max_set", "method sets", self.method == "sets"),
        ):
            if getattr(self, name) is not None and not used:
                raise InputError(f"{name} must be left out, got {getattr(self, name)!r}: only the {needed} looks at it")
        if self.k != 1 and self.correction != "kfwer":
            raise InputError(f"k must be left out, got {self.k}: only the correction kfwer looks at it")


Settings = TypeVar("Settings", bound=Any)


def make_plain(settings: Any) -> None:
    """Turn NumPy's numbers, which do not fit into JSON, into Python's."""
    for each in fields(settings):
        value = getattr(settings, each.name)
        if isinstance(value, list | tuple):
            value = tuple(_plain(part) for part in value)
        object.__setattr__(settings, each.name, _plain(value))


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def is_whole(value: object) -> bool:
    """Whether a value is an integer, and not True or False."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def require(condition: bool | np.bool_, name: str, rule: str, value: object) -> None:
    """Refuse a value in the usual words."""
    if not condition:
        raise InputError(f"{name} must {rule}, got {value!r}")


def require_one_of(name: str, value: object, allowed: tuple[str, ...]) -> None:
    """Refuse a value that is not one of a few names."""
    if value not in allowed:
        raise InputError(f"{name} must be one of {', '.join(allowed)}, got {value!r}")


def flag_of(each: dataclasses.Field[Any]) -> str:
    """What a field is called on a command line."""
    return each.metadata["flag"] or f"--{each.name.replace('_', '-')}"


def typed(settings: Any, *, without: tuple[str, ...] = ()) -> list[str]:
    """Settings as options of a command line, except some fields; what is not set is left out."""
    words = []
    for each in fields(settings):
        if each.name not in without:
            words += typed_field(each, getattr(settings, each.name))
    return words


def typed_field(each: dataclasses.Field[Any], value: Any) -> list[str]:
    """One field as an option of a command line."""
    if value is None or value is False:
        return []
    if value is True:
        return [flag_of(each)]
    if isinstance(value, tuple):
        value = ("x" if each.metadata["metavar"] == "HxW" else ",").join(map(_typed, value))
    return [flag_of(each), _typed(value)]


def _typed(value: object) -> str:
    return repr(value).removesuffix(".0") if isinstance(value, float) else str(value)


def default_sigma(threat: Threat) -> float:
    """Pixel noise where none is chosen: the usual for l2, none beside a threat."""
    return 0.25 if threat.law == "none" else 0.0


def require_noise(sigma: float, noise: Noise, threat: Threat) -> None:
    """Refuse noise that is none, or that the threat does not go with."""
    finite = isinstance(sigma, int | float) and np.isfinite(sigma)
    if threat.law == "none":
        require(finite and sigma > 0, "sigma", "be a positive number", sigma)
        return
    require(finite and sigma >= 0, "sigma", "be a number >= 0", sigma)
    if noise == "grid":
        raise InputError(f"noise must be gaussian with the threat {threat.name}, got grid: T moves off the grid")
    threat.reach(0.5, sigma=sigma)  # gamma refuses pixel noise


def stored(settings: Any) -> dict[str, Any]:
    """Settings as they are written to JSON; the arrays of a threat are stored by whoever stores arrays."""
    return {each.name: _as_json(getattr(settings, each.name)) for each in fields(settings)}


def _as_json(value: Any) -> Any:
    if isinstance(value, Threat):
        return value.pack()[0]
    return list(value) if isinstance(value, tuple) else value


def from_stored(
    cls: type[Settings], values: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]] | None = None
) -> Settings:
    """Settings as they were read from JSON; unknown and missing names are refused."""
    names = {each.name for each in fields(cls)}
    if odd := sorted(names ^ set(values)):
        raise InputError(f"settings must be {', '.join(sorted(names))}, got others or too few: {odd[0]!r}")
    plain: dict[str, Any] = {name: tuple(v) if isinstance(v, list) else v for name, v in values.items()}
    if "threat" in plain:
        plain["threat"] = unpack_threat(plain["threat"], arrays or {})
    made: Settings = cls(**plain)
    return made


Function = TypeVar("Function", bound=Callable[..., Any])


def takes(cls: type[Any]) -> Callable[[Function], Function]:
    """Show the fields of a settings class in the signature of a function that takes them as **settings."""

    def show(function: Function) -> Function:
        own = inspect.signature(function)
        others = [p for p in own.parameters.values() if p.kind is not inspect.Parameter.VAR_KEYWORD]
        derived = [
            inspect.Parameter(each.name, inspect.Parameter.KEYWORD_ONLY, default=each.default, annotation=each.type)
            for each in fields(cls)
            if each.name not in own.parameters
        ]
        function.__signature__ = own.replace(parameters=[*others, *derived])  # type: ignore[attr-defined]
        return function

    return show


def given(settings: Any) -> dict[str, Any]:
    """Settings as keyword arguments."""
    return {each.name: getattr(settings, each.name) for each in fields(settings)}
