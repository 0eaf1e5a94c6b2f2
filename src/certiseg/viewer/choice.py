"""What somebody chose on the page: parsed strictly, and compared with what the run fixed beforehand."""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from certiseg.certificate import METHODS, Certificate, Settings
from certiseg.errors import InputError
from certiseg.stats.correction import CORRECTIONS
from certiseg.viewer.shelf import Promise, Shelf, is_dropped

_LONGEST = 200
"""Characters of a value."""
NAMES = ("image", "sigma", "n", "method", "tau", "alpha", "correction", "k", "test", "thresholds", "level", "max_set")


@dataclass(frozen=True)
class Choice:
    """An image, its votes, and the settings to certify them with; hashable, so that results can be kept."""

    image: str
    sigma: float
    n: int
    options: tuple[tuple[str, Any], ...]
    """Keyword arguments of `certify`."""


def parse_choice(query: Mapping[str, str], *, also: Sequence[str] = ()) -> Choice:
    """The choice of a query; anything unknown, over-long or odd is one sentence."""
    for name, value in query.items():
        if name not in NAMES and name not in also:
            raise InputError(f"query must use known names, got {name[:40]!r}")
        if len(value) > _LONGEST:
            raise InputError(f"{name} must be at most {_LONGEST} characters, got {len(value)}")
    options: dict[str, Any] = {
        "method": one_of(query, "method", METHODS),
        "tau": number(query, "tau"),
        "alpha": number(query, "alpha"),
        "correction": one_of(query, "correction", CORRECTIONS),
        "test": one_of(query, "test", ("fixed", "anytime")),
    }
    for name in ("k", "level", "max_set"):
        if name in query:
            options[name] = whole(query, name)
    if "thresholds" in query:
        parts = query["thresholds"].split(",")
        options["thresholds"] = tuple(number({"thresholds": part}, "thresholds") for part in parts)
    return Choice(text(query, "image"), number(query, "sigma"), whole(query, "n"), tuple(sorted(options.items())))


def text(query: Mapping[str, str], name: str) -> str:
    if name not in query:
        raise InputError(f"query must have {name}, got none")
    return query[name]


def number(query: Mapping[str, str], name: str) -> float:
    try:
        value = float(text(query, name))
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise InputError(f"{name} must be a number, got {query[name][:40]!r}")
    return value


def whole(query: Mapping[str, str], name: str) -> int:
    value = text(query, name)
    if not (value.isascii() and value.isdigit() and len(value) <= 9):
        raise InputError(f"{name} must be a whole number, got {value[:40]!r}")
    return int(value)


def one_of(query: Mapping[str, str], name: str, allowed: Sequence[str]) -> str:
    value = text(query, name)
    if value not in allowed:
        raise InputError(f"{name} must be one of {', '.join(allowed)}, got {value[:40]!r}")
    return value


def differences(certificate: Certificate, promises: Sequence[Promise]) -> list[str]:
    """How a certificate differs from the nearest one that was fixed beforehand; empty if it is one of those."""
    votes, settings = certificate.votes, certificate.settings
    here = {"sigma": votes.sigma, "n": votes.n, **vars(settings)}
    lists = []
    for promise in promises:
        there = {"sigma": promise.sigma, "n": promise.n, **vars(promise.settings)}
        lists.append([_difference(name, here[name], there[name]) for name in here if here[name] != there[name]])
    return min(lists, key=lambda found: (any(words.startswith("method") for words in found), len(found)))


def _difference(name: str, here: Any, there: Any) -> str:
    if there is None or here is None:
        return f"{name} {_shown(here if there is None else there)}"
    return f"{name} {_shown(here)} instead of {_shown(there)}"


def _shown(value: Any) -> str:
    if isinstance(value, tuple):
        return f"({', '.join(f'{part:g}' for part in value)})"
    return f"{value:g}" if isinstance(value, float) else str(value)


def method_text(settings: Settings) -> str:
    """A method as `certiseg evaluate --methods` takes it."""
    if settings.method == "level":
        return f"level:{settings.level}"
    if settings.method == "adaptive" and settings.thresholds:
        return f"adaptive:{','.join(f'{t:g}' for t in settings.thresholds)}"
    return f"sets:{settings.max_set}" if settings.method == "sets" else settings.method


def command(
    shelf: Shelf, name: str, certificate: Certificate, *, selection: Sequence[str], model: Sequence[str]
) -> str:
    """The command that turns an exploration into a certificate: the same settings on draws that nobody has seen.

    selection: the options that choose the run's images. model: those that choose its model.
    """
    votes, settings, manifest = certificate.votes, certificate.settings, shelf.manifest
    common = ["--sigma", f"{votes.sigma:g}", "--alpha", f"{settings.alpha:g}", "--correction", settings.correction]
    if settings.correction == "kfwer":
        common += ["--kfwer-k", str(settings.k)]
    common += ["--test", settings.test, "--n0", str(votes.n0), "--seed", str(manifest.seed + 1)]
    common += ["--batch-size", str(manifest.batch_size), "--temperature", f"{manifest.temperature:g}"]
    common += ["--noise", votes.noise, *model]
    if not is_dropped(name):
        run = ["certiseg", "evaluate", *selection, "--setting", f"{votes.n}:{settings.tau:g}"]
        return shlex.join([*run, "--methods", method_text(settings), *common, "--out", f"{shelf.folder.path}-chosen"])
    one = ["certiseg", "certify", str(shelf.dropped_path(name, ".png")), "--method", settings.method]
    one += ["-n", str(votes.n), "--tau", f"{settings.tau:g}"]
    if settings.thresholds:
        one += ["--thresholds", ",".join(f"{t:g}" for t in settings.thresholds)]
    for flag, value in (("--level", settings.level), ("--max-set", settings.max_set)):
        one += [] if value is None else [flag, str(value)]
    return shlex.join([*one, *common, "--out", "certified"])
