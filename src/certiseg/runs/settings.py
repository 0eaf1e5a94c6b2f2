"""What is set for a run: how every image is drawn and certified, and who draws."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from certiseg.errors import InputError
from certiseg.images.values import Values, as_values
from certiseg.settings import (
    CertificateSettings,
    Noise,
    SamplingSettings,
    default_sigma,
    is_whole,
    make_plain,
    require,
    require_one_of,
    same_as,
    setting,
)
from certiseg.stats.binomial import Test
from certiseg.stats.correction import Correction
from certiseg.stats.radius import deviation
from certiseg.threats import Threat
from certiseg.threats.anchors import covered, place_anchors

Family = Literal["image", "dataset"]
EngineName = Literal["local", "ray"]


@dataclass(frozen=True)
class Setting:
    """A pair n:tau of a run, for one sigma."""

    sigma: float
    n: int
    tau: float

    def __str__(self) -> str:
        return f"sigma{number(self.sigma)}-n{self.n}-tau{number(self.tau)}"

    @property
    def words(self) -> str:
        """As titles show it."""
        return f"sigma = {self.sigma:g}, n = {self.n}, tau = {self.tau:g}"

    @property
    def typed(self) -> str:
        """As it is typed: SIGMA:N:TAU."""
        return f"{number(self.sigma)}:{self.n}:{number(self.tau)}"


def number(value: float) -> str:
    """A number as it stands in file names: other numbers are other names."""
    return repr(float(value)).removesuffix(".0")


@dataclass(frozen=True)
class MethodChoice:
    """A method of a run as it is typed: segcertify, level:2, adaptive, adaptive:0,0,0.25, nested, sets, sets:3."""

    text: str

    @property
    def options(self) -> dict[str, Any]:
        """The fields of `CertificateSettings` that it stands for."""
        name, _, value = self.text.partition(":")
        try:
            if name == "level":
                return {"method": name, "level": int(value)}
            if name == "adaptive" and value:
                return {"method": name, "thresholds": tuple(float(part) for part in value.split(","))}
            if name == "sets" and value:
                return {"method": name, "max_set": int(value)}
        except ValueError:
            raise InputError(f"method must be like level:2, adaptive:0,0,0.25 or sets:3, got {self.text!r}") from None
        if name not in ("segcertify", "adaptive", "nested", "sets") or value:
            raise InputError(
                f"method must be segcertify, level:L, adaptive[:T,T,T], nested or sets[:M], got {self.text!r}"
            )
        return {"method": name}


@dataclass(frozen=True, kw_only=True)
class RunSettings:
    """How every image of a run is certified: one sampling pass per sigma, every n, tau and method from its votes."""

    sigmas: tuple[float, ...] = setting(
        (),
        flag="--sigma",
        words=True,
        help="levels of pixel noise, in [0, 1] pixel units (default: 0.25, or 0 with a threat)",
    )
    settings: tuple[tuple[int, float], ...] = setting(
        ((100, 0.75),),
        flag="--setting",
        metavar="N:TAU",
        words=True,
        help="pairs of n and tau (default: 100:0.75, or N_MAX:0.75 with --stop-undecided)",
    )
    methods: tuple[str, ...] = setting(
        (),
        metavar="METHOD",
        words=True,
        help="segcertify, level:L, adaptive[:T,T,T], nested, sets[:M] (default: all of them)",
    )
    promise: str | None = setting(
        None,
        metavar="METHOD@[SIGMA:]N:TAU",
        help="the one method and setting that spends alpha; all others are comparisons (default: the first of each)",
    )
    alpha: float = same_as(CertificateSettings, "alpha", help="allowed error")
    family: Family = setting("image", help="what alpha covers: each image, or all images of the data set at once")
    correction: Correction = same_as(CertificateSettings, "correction")
    k: int = same_as(CertificateSettings, "k")
    test: Test = same_as(CertificateSettings, "test")
    stop_undecided: float | None = setting(
        None,
        metavar="SHARE",
        help="draw each image until at most this share of its pixels, say 0.03, is neither certified nor hopeless, for "
        "every method and tau; n is the most, and the test is anytime",
    )
    n0: int = same_as(SamplingSettings, "n0")
    seed: int = same_as(SamplingSettings, "seed")
    temperature: float = same_as(SamplingSettings, "temperature")
    noise: Noise = same_as(SamplingSettings, "noise")
    threat: Threat = same_as(SamplingSettings, "threat")
    up_to: float | None = setting(None, metavar="T", help="cover t up to here, by draws at several anchors")
    radius: float | None = same_as(CertificateSettings, "radius")
    objects: tuple[str, ...] | None = setting(
        None,
        metavar="LABEL",
        words=True,
        help="bound objects of these labels, found and true, and the whole image (no label: things of the hierarchy)",
    )
    least_area: int = setting(100, metavar="PIXELS", help="the least area of an object")
    instances: bool = setting(
        False, help="true objects are those that the data set marks one by one, where it does, not connected parts"
    )
    keep_maps: bool = setting(False, help="keep the label map of every draw, for questions in `certiseg view`")
    values: Values = setting(
        (), metavar="LOW:HIGH", help="numbers in image files that 0 and 1 stand for: one range, or one per channel"
    )
    batch_size: int | None = setting(
        None, metavar="B", help="draws per model call (default: 1, or with --memory what a short measurement says)"
    )

    def __post_init__(self) -> None:
        make_plain(self)
        object.__setattr__(self, "settings", tuple((n, tau) for n, tau in self.settings))
        object.__setattr__(self, "values", as_values(self.values) or ())
        object.__setattr__(self, "sigmas", self.sigmas or (default_sigma(self.threat),))
        for name in ("sigmas", "settings"):
            values = getattr(self, name)
            require(len(values) > 0 and len(set(values)) == len(values), name, "be there and differ", values)
        require(len(set(self.methods)) == len(self.methods), "methods", "differ", self.methods)
        require_one_of("family", self.family, get_args(Family))
        self._check_threat()
        require(not self.instances or self.objects is not None, "instances", "come with objects", self.instances)
        require(is_whole(self.least_area) and self.least_area >= 1, "least_area", "be at least 1", self.least_area)
        self._check_stopping()
        for sigma in self.sigmas:
            self.sampling(sigma)
        for one in self.each_setting():
            for method in self.methods or ("segcertify",):
                self.certificate(one, method)
            self.end(one)
        if self.promise is not None:
            _ = self.promised

    @property
    def promised(self) -> tuple[str, Setting]:
        """The method and the setting of the promise, by default the first ones."""
        if self.promise is None:
            return (self.methods or ("",))[0], self.each_setting()[0]
        method, _, typed = self.promise.partition("@")
        setting = next((one for one in self.each_setting() if one == parse_setting(typed, self.sigmas)), None)
        if setting is None or (self.methods and method not in self.methods):
            known = ", ".join(one.typed for one in self.each_setting())
            raise InputError(
                f"promise must be METHOD@SIGMA:N:TAU, of the run's methods ({', '.join(self.methods) or 'all'}) and "
                f"settings ({known}), got {self.promise!r}"
            )
        return method, setting

    def each_setting(self) -> list[Setting]:
        """Every sigma with every pair n:tau."""
        return [Setting(sigma, n, tau) for sigma in self.sigmas for n, tau in self.settings]

    @property
    def recorded(self) -> bool:
        """Whether something is read from every draw besides its votes: measures, or the label map itself."""
        return self.objects is not None or self.keep_maps

    @property
    def draws(self) -> tuple[int, ...]:
        """The distinct n, rising: the largest is drawn, the others are kept as snapshots."""
        return tuple(sorted({n for n, _ in self.settings}))

    @property
    def draws_per_image(self) -> int:
        """All draws of one image."""
        plans = [self.sampling(sigma) for sigma in self.sigmas]
        return sum(plan.draws("selection") + plan.draws("estimation") for plan in plans)

    @property
    def alpha_per_image(self) -> float:
        """What an image may spend; the manifest knows how many images there are."""
        return self.alpha

    def sampling(self, sigma: float) -> SamplingSettings:
        """How every image is drawn at one sigma."""
        ranked = [MethodChoice(method).options.get("max_set", 1) for method in self.methods]
        return SamplingSettings(
            sigma=sigma,
            n0=self.n0,
            n=max(self.draws),
            seed=self.seed,
            batch_size=1 if self.batch_size is None else self.batch_size,
            max_set=max(5, *ranked) if ranked else 5,
            snapshots=self.draws[:-1],
            temperature=self.temperature,
            noise=self.noise,
            threat=self.threat,
            anchors=self._anchors(sigma),
        )

    def _anchors(self, sigma: float) -> tuple[float, ...]:
        """Where votes are drawn: the least tau has the shortest range, so its anchors leave no hole at the others."""
        if self.up_to is None:
            return (0.0,)
        least = min(tau for _, tau in self.settings)
        return place_anchors(self.threat, self.up_to, tau=least, radius=self.radius or 0.0, sigma=sigma)

    def _check_threat(self) -> None:
        """Refuse a threat that is of one image only, and what nothing is promised about, before anything is drawn."""
        if self.threat.pack()[1]:
            raise InputError(
                "threat must be the same for all images of a run, got a depth map, which belongs to one; use certify"
            )
        if self.radius is not None and self.threat.law == "none":
            raise InputError(f"radius must come with a threat, got {self.radius}; for l2 it follows from sigma and tau")

    def _check_stopping(self) -> None:
        """Refuse a test that allows no looking, and prefixes of draws that nobody knows the number of."""
        if self.stop_undecided is None:
            return
        share = self.stop_undecided
        good = isinstance(share, int | float) and not isinstance(share, bool) and 0 <= share < 1
        require(good, "stop_undecided", "lie in [0, 1)", share)
        if self.test != "anytime":
            raise InputError(
                f"test must be anytime with stop_undecided, got {self.test!r}: it allows no looking at the votes"
            )
        if len(self.draws) > 1:
            raise InputError(
                f"settings must have one n with stop_undecided, got {self.draws}: each image ends where its votes say, "
                "and no other n is kept; make a run for each"
            )

    def words(self, setting: Setting) -> str:
        """A setting as sentences say it: where draws stop early, n is the most."""
        return setting.words if self.stop_undecided is None else setting.words.replace("n = ", "n up to ")

    def end(self, setting: Setting) -> float:
        """The largest parameter of the threat that certificates at a setting cover; for l2, R."""
        high = self.threat.range(setting.tau, self.radius or 0.0, deviation(setting.sigma))
        return covered(self._anchors(setting.sigma), *high).high

    def along(self) -> str:
        """The threat of a run, as its tables state it after the promise; nothing for l2."""
        if self.threat.law == "none":
            return ""
        each = sorted({self.extent(one) for one in self.each_setting()})
        return f", for {' or '.join(each)} ({self.threat.describe()}, scale {self.threat.scale:g})"

    def extent(self, setting: Setting) -> str:
        """What certificates at a setting cover, in a few words."""
        end = self.end(setting)
        return self.threat.extent(end, end if self.threat.law == "none" else self.radius or 0.0)

    def certificate(self, setting: Setting, method: str) -> CertificateSettings:
        """How the certificates of a method at a setting are computed."""
        return CertificateSettings(
            tau=setting.tau,
            alpha=self.alpha_per_image,
            correction=self.correction,
            k=self.k,
            test=self.test,
            radius=self.radius,
            **MethodChoice(method).options,
        )


def parse_settings(given: Sequence[str | tuple[int, float]]) -> tuple[tuple[int, float], ...]:
    """Pairs (n, tau), typed as n:tau or given as such."""
    pairs = []
    for each in given:
        try:
            n, tau = each.split(":") if isinstance(each, str) else each
            pairs.append((int(n), float(tau)))
        except (ValueError, TypeError):
            raise InputError(f"setting must be n:tau, for example 100:0.75, got {each!r}") from None
    return tuple(pairs)


MOST_DRAWS = 1000
"""n_max where none is given."""


def settle_settings(
    given: str | Sequence[str | tuple[int, float]] | None, *, n_max: int | None, stop_undecided: float | None
) -> tuple[tuple[int, float], ...]:
    """The pairs (n, tau) of a run as typed, or 100:0.75; with stop_undecided their n is n_max."""
    if stop_undecided is None and n_max is not None:
        raise InputError(f"n_max must come with stop_undecided, got {n_max} alone; use setting for a fixed number")
    if given is None:
        return ((100 if stop_undecided is None else MOST_DRAWS if n_max is None else n_max, 0.75),)
    pairs = parse_settings([given] if isinstance(given, str) else given)
    for n, tau in pairs:
        if n_max not in (None, n):
            raise InputError(f"setting must have n = n_max = {n_max}, got {n}:{tau:g}; leave one of them out")
    return pairs


def parse_setting(text: str, sigmas: Sequence[float] = ()) -> Setting:
    """A setting typed as SIGMA:N:TAU, or N:TAU where there is a single sigma."""
    parts = text.split(":")
    try:
        (sigma,) = parts[:-2] or sigmas
        return Setting(float(sigma), int(parts[-2]), float(parts[-1]))
    except (ValueError, IndexError):
        raise InputError(f"setting must be SIGMA:N:TAU, for example 0.25:100:0.75, got {text!r}") from None


@dataclass(frozen=True, kw_only=True)
class EngineSettings:
    """Who draws. This changes no byte of the result; see docs/scale.md."""

    engine: EngineName = setting("local", help="who draws: processes of this machine, or a Ray cluster")
    workers: int | None = setting(None, metavar="W", help="processes (default: 1), or Ray actors (default: all)")
    threads: int | None = setting(
        None,
        metavar="T",
        help="threads of each model, kept with the run (default: as in the run folder, else the cores divided by W, or "
        "by the calls of a model that can run side by side)",
    )
    device: str = setting("cpu", help="cpu, cuda, cuda:1, ...; workers take turns")
    address: str = setting("auto", metavar="HOST:PORT", help="the Ray cluster")
    cpus_per_worker: float = setting(1.0, metavar="C", help="for Ray")
    gpus_per_worker: float = setting(0.0, metavar="G", help="for Ray")
    draws_per_task: int | None = setting(
        None, metavar="D", help="spread every image (default: only if there are fewer images than workers)"
    )
    timeout: float = setting(600.0, metavar="S", help="seconds until a silent worker is replaced")

    def __post_init__(self) -> None:
        require_one_of("engine", self.engine, get_args(EngineName))
        for name in ("workers", "threads", "draws_per_task"):
            value = getattr(self, name)
            require(value is None or (is_whole(value) and value >= 1), name, "be at least 1", value)
        require(self.timeout > 0, "timeout", "be a positive number of seconds", self.timeout)
        asked = (self.cpus_per_worker, self.gpus_per_worker)
        if min(asked) < 0 or sum(asked) == 0:
            raise InputError(f"a worker must ask for cpus or gpus, got {asked[0]:g} and {asked[1]:g}")

    @property
    def alone(self) -> bool:
        """Whether this process draws, and no other."""
        return self.engine == "local" and (self.workers or 1) == 1

    @property
    def chooses_lanes(self) -> bool:
        """Whether this process may divide its threads among several calls of the model at once."""
        return self.alone and self.threads is None


@dataclass(frozen=True)
class Shard:
    """Every k-th image of a run, from the i-th: a run of its own in a folder of its own, to be merged."""

    number: int = 1
    count: int = 1

    def __post_init__(self) -> None:
        if not 1 <= self.number <= self.count:
            raise InputError(f"shard must be i/k with i in 1..k, got {self}; for example 1/4, 2/4, 3/4 and 4/4")

    def __str__(self) -> str:
        return f"{self.number}/{self.count}"

    def holds(self, index: int) -> bool:
        """Whether the image at this place belongs to the shard."""
        return index % self.count == self.number - 1


WHOLE = Shard()


def parse_shard(text: str) -> Shard:
    """A shard from what was typed: i/k."""
    first, _, count = text.partition("/")
    try:
        numbers = int(first), int(count)
    except ValueError:
        raise InputError(f"shard must be i/k, for example 1/4, got {text!r}") from None
    return Shard(*numbers)
