"""The images of a run as the viewer shows them: votes, labels and scores, read from inside the run folder only."""

from __future__ import annotations

import threading
import zipfile
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certiseg.archive import parse_json
from certiseg.certificate import Certificate, Settings, load_certificate
from certiseg.errors import InputError
from certiseg.hierarchy import Hierarchy
from certiseg.runs.folder import RunFolder, read_map
from certiseg.runs.manifest import Manifest, MethodChoice
from certiseg.runs.table import UNCERTIFIED, read_rows
from certiseg.votes import Votes, load_votes

DROPPED = "dropped"
"""The part of a run folder that holds images dropped onto the page, and what their names begin with."""
_MAX_VOTES_BYTES = 768 << 20


class NotFound(InputError):
    """Something was asked for that the run does not have."""


@dataclass(frozen=True)
class Promise:
    """One certificate of an image that was fixed before its votes were seen."""

    sigma: float
    n: int
    settings: Settings


class Shelf:
    """One run folder, read only, with the votes used last kept in memory."""

    def __init__(self, folder: RunFolder) -> None:
        self.folder = folder
        self.root = folder.path.resolve()
        self._votes = Bounded(_MAX_VOTES_BYTES, _votes_bytes)
        self._drops = Bounded(_MAX_VOTES_BYTES // 2, lambda certificate: _votes_bytes(certificate.votes))
        self._labels = Bounded(64 << 20, lambda array: array.nbytes)
        self._scores: dict[str, dict[str, list[float]]] = {}

    @property
    def manifest(self) -> Manifest:
        return self.folder.manifest

    @cached_property
    def tree(self) -> Hierarchy:
        return self.manifest.tree

    def images(self) -> list[str]:
        """Every finished image of the run, then those that were dropped onto the page."""
        return [*self.folder.finished(), *self.dropped()]

    def dropped(self) -> list[str]:
        files = (self.root / DROPPED).glob("*.certificate.npz")
        return sorted(f"{DROPPED}/{file.name.removesuffix('.certificate.npz')}" for file in files)

    def require(self, name: str) -> str:
        """The name itself, if the run has such an image: what is not listed is never turned into a path."""
        if name not in self.images():
            raise NotFound(f"image must be one of the run's, got {name[:80]!r}; see the list")
        return name

    def inside(self, path: Path) -> Path:
        """The path, if it is a file of the run folder after every symbolic link."""
        if not path.resolve().is_relative_to(self.root):
            raise InputError(f"{path.name}: must lie inside the run folder, but it leads out of it; remove the link")
        return path

    def dropped_path(self, name: str, ending: str) -> Path:
        return self.root / DROPPED / f"{name.removeprefix(f'{DROPPED}/')}{ending}"

    def votes(self, name: str, sigma: float, n: int) -> Votes:
        """The votes of an image; dropped ones have a single sigma and n."""
        if is_dropped(self.require(name)):
            return self.dropped_certificate(name).votes
        if sigma not in self.manifest.sigmas or n not in self.manifest.draws:
            raise InputError(
                f"sigma and n must be of the run ({_listed(self.manifest.sigmas)}; {_listed(self.manifest.draws)}), "
                f"got {sigma:g} and {n}"
            )
        path = self.folder.votes_path(name, sigma)
        return self._votes.get((name, sigma, n), lambda: load_votes(self.inside(path)).first(n))

    def dropped_certificate(self, name: str) -> Certificate:
        path = self.inside(self.dropped_path(name, ".certificate.npz"))
        return self._drops.get((name, path.stat().st_mtime_ns), lambda: _load_whole(path))

    def truth(self, name: str) -> NDArray[np.integer] | None:
        """The ground truth, None for dropped images."""
        return None if is_dropped(self.require(name)) else self._map(self.folder.label_path(name))

    def prediction(self, name: str) -> NDArray[np.integer] | None:
        """The model's labels without noise, None for dropped images."""
        return None if is_dropped(self.require(name)) else self._map(self.folder.prediction_path(name))

    def _map(self, path: Path) -> NDArray[np.integer]:
        return self._labels.get(path, lambda: read_map(self.inside(path)))

    def promises(self, name: str, votes: Votes) -> list[Promise]:
        """The certificates of an image that the run fixed beforehand."""
        if is_dropped(name):
            return [Promise(votes.sigma, votes.n, self.dropped_certificate(name).settings)]
        return [
            Promise(setting.sigma, setting.n, self.settings_of(setting.tau, method, votes.max_set))
            for setting in self.manifest.each_setting()
            for method in self.manifest.methods
        ]

    def settings_of(self, tau: float, method: str, max_set: int) -> Settings:
        """The settings that a method of the manifest stands for."""
        manifest, options = self.manifest, MethodChoice(method).options
        name = options["method"]
        return Settings(
            method=name,
            tau=tau,
            alpha=manifest.alpha_per_image,
            correction=manifest.correction,  # type: ignore[arg-type]
            k=manifest.k if manifest.correction == "kfwer" else 1,
            test=manifest.test,  # type: ignore[arg-type]
            thresholds=options.get("thresholds", self.tree.thresholds) if name == "adaptive" else None,
            level=options.get("level"),
            max_set=options.get("max_set", max_set) if name == "sets" else None,
        )

    def scores(self, name: str) -> dict[str, list[float]]:
        """`SETTING METHOD` -> [CIG, abstain rate] of an image as the run computed them; empty for dropped ones."""
        if is_dropped(name):
            return {}
        if name not in self._scores:
            self._scores[name] = _scores(read_rows(self.inside(self.folder.rows_path(name))))
        return self._scores[name]

    def summary(self, name: str) -> dict[str, Any]:
        """What was noted when an image was dropped."""
        try:
            return dict(parse_json(self.inside(self.dropped_path(name, ".json")).read_text("utf-8")))
        except (OSError, ValueError) as error:
            raise InputError(f"{name}: must have its summary, got: {error}; drop the image again") from None


class Bounded:
    """A cache that forgets what was used longest ago; the newest stays, whatever its size."""

    def __init__(self, limit: int, size_of: Callable[[Any], int]) -> None:
        self.limit, self.size_of = limit, size_of
        self._kept: OrderedDict[Hashable, tuple[Any, int]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: Hashable, make: Callable[[], Any]) -> Any:
        """The value of a key, made if it is not kept."""
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key][0]
        value = make()
        with self._lock:
            self._kept[key] = (value, self.size_of(value))
            self._kept.move_to_end(key)
            while len(self._kept) > 1 and sum(size for _, size in self._kept.values()) > self.limit:
                self._kept.popitem(last=False)
        return value


def is_dropped(name: str) -> bool:
    return name.startswith(f"{DROPPED}/")


def _load_whole(path: Path) -> Certificate:
    """A certificate that holds its votes; one that points to another file is refused before that is opened."""
    try:
        with zipfile.ZipFile(path) as archive:
            elsewhere = parse_json(archive.read("meta.json"))["meta"]["votes_path"]
    except (OSError, zipfile.BadZipFile, ValueError, KeyError, TypeError) as error:
        raise InputError(f"{path.name}: must be an undamaged certificate, got: {error}") from None
    if elsewhere is not None:
        raise InputError(f"{path.name}: must hold its votes, but it refers to {str(elsewhere)[:80]!r}")
    return load_certificate(path)


def _scores(rows: list[dict[str, Any]]) -> dict[str, list[float]]:
    sums: dict[str, list[float]] = {}
    for row in rows:
        if row["method"] == UNCERTIFIED:
            continue
        key = f"{row['sigma']:g} {row['n']} {row['tau']:g} {row['method']}"
        added = (row["gain"], row["abstained"], row["pixels"])
        sums[key] = [a + b for a, b in zip(sums.get(key, [0, 0, 0]), added, strict=True)]
    return {key: [gain / pixels, left / pixels] for key, (gain, left, pixels) in sums.items() if pixels}


def _votes_bytes(votes: Votes) -> int:
    arrays = (votes.candidate, votes.gap, votes.ranking, votes.counts, *votes.snapshots.values())
    return sum(array.nbytes for array in arrays)


def _listed(values: tuple[Any, ...]) -> str:
    return ", ".join(f"{value:g}" for value in values)
