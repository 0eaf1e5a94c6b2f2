"""What was chosen on the page: parsed strictly, and compared with what the run fixed beforehand."""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, get_args, get_type_hints

from certiseg.errors import InputError
from certiseg.images.values import values_words
from certiseg.planning import least_draws
from certiseg.settings import CertificateSettings, typed
from certiseg.stats.anytime import anytime_test
from certiseg.stats.binomial import MAX_DRAWS, binomial_test
from certiseg.viewer.run_reader import RunReader, is_upload
from certiseg.words import COMPARISON, EXPLORATION, PROMISE

if TYPE_CHECKING:
    from certiseg.certificate import Certificate
    from certiseg.runs.manifest import Manifest

_LONGEST = 200
"""Characters of a value."""
_KINDS = get_type_hints(CertificateSettings)
OF_VOTES = ("max_set", "snapshots", "threat", "anchors")
"""Settings of the draws that a recipe does not name: they follow from its certificate, or from its own options."""


@dataclass(frozen=True)
class Choice:
    """An image, its votes, and the settings to certify them with; hashable, so that results can be kept."""

    image: str
    sigma: float
    n: int
    settings: CertificateSettings


def parse_choice(query: Mapping[str, str], *, also: Sequence[str] = ()) -> Choice:
    """The choice of a query; unknown names and values that are too long or break a rule are refused."""
    for name, value in query.items():
        if name not in ("image", "sigma", "n", *_KINDS, *also):
            raise InputError(f"query must use known names, got {name[:40]!r}")
        if len(value) > _LONGEST:
            raise InputError(f"{name} must be at most {_LONGEST} characters, got {len(value)}")
    settings = CertificateSettings(**{name: _value(query, name) for name in _KINDS if name in query})
    return Choice(text(query, "image"), number(query, "sigma"), whole(query, "n"), settings)


def _value(query: Mapping[str, str], name: str) -> Any:
    """A setting as the type of its field says."""
    kinds = get_args(_KINDS[name]) or (_KINDS[name],)
    if int in kinds:
        return whole(query, name)
    if float in kinds:
        return number(query, name)
    if tuple[float, ...] in kinds:
        return tuple(number({name: part}, name) for part in query[name].split(","))
    return query[name]


def text(query: Mapping[str, str], name: str) -> str:
    """A value of the query, which must be there."""
    if name not in query:
        raise InputError(f"query must have {name}, got none")
    return query[name]


def number(query: Mapping[str, str], name: str) -> float:
    """A finite number of the query."""
    given = text(query, name)
    try:
        value = float(given)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise InputError(f"{name} must be a number, got {given[:40]!r}")
    return value


def whole(query: Mapping[str, str], name: str) -> int:
    """A whole number of the query, of nine digits at most."""
    value = text(query, name)
    if not (value.isascii() and value.isdigit() and len(value) <= 9):
        raise InputError(f"{name} must be a whole number, got {value[:40]!r}")
    return int(value)


def one_of(query: Mapping[str, str], name: str, allowed: Sequence[str]) -> str:
    """A value of the query that is one of a few."""
    value = text(query, name)
    if value not in allowed:
        raise InputError(f"{name} must be one of {', '.join(allowed)}, got {value[:40]!r}")
    return value


def role(certificate: Certificate, fixed: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """What a certificate is, and how it differs from the nearest of those that were fixed, the promise first."""
    here = {"sigma": certificate.votes.sigma, "n": certificate.votes.n, **asdict(certificate.settings)}
    lists = [[_difference(k, here[k], there[k]) for k in here if here[k] != there[k]] for there in fixed]
    nearest = min(lists, key=lambda found: (any(words.startswith("method") for words in found), len(found)))
    return {"role": EXPLORATION if nearest else COMPARISON if lists[0] else PROMISE, "differs": nearest}


def _difference(name: str, here: Any, there: Any) -> str:
    if there is None or here is None:
        return f"{name} {_shown(here if there is None else there)}"
    return f"{name} {_shown(here)} instead of {_shown(there)}"


def _shown(value: Any) -> str:
    if isinstance(value, tuple):
        return f"({', '.join(f'{part:g}' for part in value)})"
    return f"{value:g}" if isinstance(value, float) else str(value)


def method_text(settings: CertificateSettings) -> str:
    """A method as `certiseg evaluate --methods` takes it."""
    if settings.method == "level":
        return f"level:{settings.level}"
    if settings.method == "adaptive" and settings.thresholds:
        return f"adaptive:{','.join(f'{t:g}' for t in settings.thresholds)}"
    return f"sets:{settings.max_set}" if settings.method == "sets" else settings.method


def typed_threat(manifest: Manifest) -> list[str]:
    """The options of the run's threat; nothing for l2."""
    if manifest.threat.law == "none":
        return []
    facts = {name: value for name, value in manifest.threat.pack()[0].items() if value is not None}
    words = [
        "--threat",
        facts.pop("name"),
        *(word for name, value in facts.items() for word in (f"--{name}", repr(value))),
    ]
    return words if manifest.up_to is None else [*words, "--up-to", repr(manifest.up_to)]


def typed_values(manifest: Manifest) -> list[str]:
    """How the run read its images, where that was stated."""
    return ["--values", values_words(manifest.values)] if manifest.values else []


def command(
    reader: RunReader, name: str, certificate: Certificate, *, selection: Sequence[str], model: Sequence[str]
) -> str:
    """The command that turns an exploration into a certificate: the same settings on draws that nobody has seen.

    selection: the options that choose the run's images. model: those that choose its model.
    """
    votes, settings, manifest = certificate.votes, certificate.settings, reader.manifest
    model = [*typed_threat(manifest), *typed_values(manifest), *model]
    n = _enough_draws(certificate)
    sampling = replace(manifest.sampling(votes.sigma), n=n, snapshots=(), seed=manifest.seed + 1)
    if is_upload(name):
        words = ["certiseg", "certify", str(reader.uploaded_image(name)), *typed(settings)]
        return shlex.join([*words, *typed(sampling, without=OF_VOTES), *model, "--out", "certified"])
    stops = [] if manifest.stop_undecided is None else ["--stop-undecided", repr(manifest.stop_undecided)]
    n = max(n, manifest.draws[-1]) if stops else n
    words = ["certiseg", "evaluate", *selection, "--setting", f"{n}:{settings.tau!r}", *stops]
    words += ["--methods", method_text(settings)]
    words += typed(settings, without=("method", "tau", "thresholds", "level", "max_set"))
    words += [*typed(sampling, without=("n", *OF_VOTES)), *model]
    return shlex.join([*words, "--out", f"{reader.folder.path}-chosen"])


def _enough_draws(certificate: Certificate) -> int:
    """The draws of a certificate, or the fewest with which its settings could certify anything."""
    votes, settings = certificate.votes, certificate.settings
    make = binomial_test if settings.test == "fixed" else anytime_test
    least = least_draws(make, settings.tau, settings.alpha / certificate.tested)
    if least is None:
        raise InputError(
            f"tau and alpha must allow a certificate, got {settings.tau!r} and {settings.alpha!r}; "
            f"not even {MAX_DRAWS} draws give one, so lower tau"
        )
    return max(votes.n, least)
