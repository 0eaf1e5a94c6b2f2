"""The manifest: everything that decides a run, written before the first draw and compared on every resume."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from certiseg.archive import parse_json, write_atomically
from certiseg.errors import InputError
from certiseg.hierarchy import Hierarchy, hierarchy_from_dict
from certiseg.noise import Noise

FORMAT_VERSION = 1
Family = Literal["image", "dataset"]


@dataclass(frozen=True)
class Setting:
    """A pair n:tau of a run, for one sigma."""

    sigma: float
    n: int
    tau: float

    def __str__(self) -> str:
        return f"sigma{self.sigma:g}-n{self.n}-tau{self.tau:g}"


@dataclass(frozen=True)
class MethodChoice:
    """A method of a run as it is typed: segcertify, level:2, adaptive, adaptive:0,0,0.25, nested, sets, sets:3."""

    text: str

    @property
    def options(self) -> dict[str, Any]:
        """The keyword arguments of `certify` that it stands for."""
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


@dataclass(frozen=True)
class Manifest:
    """What a run computes. The same manifest, images and weights give the same bytes in every file of the run."""

    dataset: str
    split: str | None
    images: tuple[str, ...]
    """Names of the images, in order."""
    model: str
    model_sha256: str
    classes: tuple[str, ...] | None
    hierarchy: dict[str, Any]
    sigmas: tuple[float, ...]
    settings: tuple[tuple[int, float], ...]
    """Pairs (n, tau)."""
    methods: tuple[str, ...]
    alpha: float
    correction: str
    k: int
    test: str
    family: Family
    """Whether alpha is spent per image, or divided by the number of images so that it covers the whole run."""
    n0: int
    seed: int
    temperature: float
    batch_size: int
    threads: int
    backend: str
    device: str
    versions: dict[str, str]
    noise: Noise = "gaussian"

    def each_setting(self) -> list[Setting]:
        """Every sigma with every pair n:tau."""
        return [Setting(sigma, n, tau) for sigma in self.sigmas for n, tau in self.settings]

    @property
    def draws(self) -> tuple[int, ...]:
        """The distinct n, rising: the largest is drawn, the others are kept as snapshots."""
        return tuple(sorted({n for n, _ in self.settings}))

    @property
    def alpha_per_image(self) -> float:
        return self.alpha / len(self.images) if self.family == "dataset" else self.alpha

    @property
    def tree(self) -> Hierarchy:
        levels = {int(level): vertices for level, vertices in self.hierarchy["levels"].items()}
        return hierarchy_from_dict({**self.hierarchy, "levels": levels}, source="manifest.json")

    def promise(self) -> str:
        """For how much the guarantee holds at once, as every table says."""
        if self.family == "image":
            return f"guaranteed per image with probability {1 - self.alpha:g}"
        return f"guaranteed for all {len(self.images)} images at once with probability {1 - self.alpha:g}"

    def save(self, path: Path) -> None:
        with write_atomically(path) as file:
            file.write(json.dumps({"format_version": FORMAT_VERSION, **asdict(self)}, indent=1).encode())


def load_manifest(path: Path) -> Manifest:
    """Read a manifest; a folder without one is no run."""
    if not path.is_file():
        raise InputError(f"{path.parent}: must be a run folder, but it has no {path.name}")
    try:
        stored = parse_json(path.read_text("utf-8"))
        if stored.pop("format_version") != FORMAT_VERSION:
            raise InputError(f"{path}: `format_version` must be {FORMAT_VERSION}; use the certiseg that wrote it")
        lists = ("images", "methods", *(["classes"] if stored["classes"] is not None else []))
        for name in lists:
            stored[name] = tuple(stored[name])
        texts = ("dataset", "model", "model_sha256", "correction", "test", "family", "backend", "device")
        for name, value in [*((n, stored[n]) for n in texts), *((n, text) for n in lists for text in stored[n])]:
            if not isinstance(value, str):
                raise TypeError(f"{name} must be text")
        for name in ("alpha", "temperature"):
            stored[name] = float(stored[name])
        for name in ("k", "n0", "seed", "batch_size", "threads"):
            stored[name] = int(stored[name])
        stored["sigmas"] = tuple(float(sigma) for sigma in stored["sigmas"])
        stored["settings"] = tuple((int(n), float(tau)) for n, tau in stored["settings"])
        return Manifest(**stored)
    except InputError:
        raise
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, OverflowError) as error:
        raise InputError(f"{path}: must be the manifest of a run, got: {error}") from None


def require_same(found: Manifest, asked: Manifest, path: Path) -> None:
    """Refuse to go on in a folder whose run was made with other settings, and show the difference."""
    if shown := describe_difference(found, asked, "there", "asked"):
        raise InputError(f"{path.parent}: must be resumed with its own settings, got others ({shown}); use a new --out")


def describe_difference(first: Manifest, second: Manifest, of_first: str, of_second: str) -> str:
    """What differs between two manifests, in words; empty if nothing does."""
    differing = [name for name, value in asdict(second).items() if getattr(first, name) != value]
    return "; ".join(
        f"{n}: {_short(getattr(first, n))} {of_first}, {_short(getattr(second, n))} {of_second}" for n in differing
    )


def parse_settings(texts: Sequence[str]) -> tuple[tuple[int, float], ...]:
    """Pairs n:tau from what was typed."""
    pairs = []
    for text in texts:
        n, _, tau = text.partition(":")
        try:
            pairs.append((int(n), float(tau)))
        except ValueError:
            raise InputError(f"setting must be n:tau, for example 100:0.75, got {text!r}") from None
    if len(set(pairs)) < len(pairs):
        raise InputError(f"settings must differ, got {' '.join(texts)}")
    return tuple(pairs)


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
