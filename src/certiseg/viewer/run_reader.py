"""The images of a run as the viewer shows them: votes, labels and scores, read only from inside the run folder."""

from __future__ import annotations

import zipfile
from dataclasses import asdict
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certiseg.archive import parse_json
from certiseg.certificate import Certificate, load_certificate
from certiseg.certify import settle
from certiseg.errors import InputError
from certiseg.hierarchy import Hierarchy
from certiseg.images import read_ids
from certiseg.runs.folder import UPLOADED, RunFolder
from certiseg.runs.identity import require_of_run
from certiseg.runs.manifest import Manifest
from certiseg.runs.table import UNCERTIFIED
from certiseg.runs.verify import read_summary
from certiseg.viewer.cache import BoundedCache
from certiseg.votes import Votes

_MAX_VOTES_BYTES = 768 << 20


class NotFound(InputError):
    """Something was asked for that the run does not have."""


class RunReader:
    """One run folder, read only; the votes used last are kept in memory."""

    def __init__(self, folder: RunFolder) -> None:
        self.folder = folder
        self.root = folder.path.resolve()
        self._votes = BoundedCache[Votes](_MAX_VOTES_BYTES, _votes_bytes)
        self._uploads = BoundedCache[Certificate](_MAX_VOTES_BYTES // 2, lambda made: _votes_bytes(made.votes))
        self._labels = BoundedCache[NDArray[np.integer]](64 << 20, lambda label: label.nbytes)
        self._scores: dict[str, dict[str, list[float]]] = {}

    @property
    def manifest(self) -> Manifest:
        return self.folder.manifest

    @cached_property
    def tree(self) -> Hierarchy:
        return self.manifest.tree

    @cached_property
    def channels(self) -> int:
        """Of the run's images."""
        return self.votes(self.folder.finished()[0], self.manifest.sigmas[0], self.manifest.draws[-1]).channels

    def images(self) -> list[str]:
        """Every finished image of the run, then the uploads."""
        if not self.root.is_dir():
            raise NotFound(f"{self.root}: the run folder must be there, but it is gone; bring it back, then reload")
        return [*self.folder.finished(), *self.uploads()]

    def uploads(self) -> list[str]:
        files = (self.root / UPLOADED).glob("*.certificate.npz")
        return sorted(f"{UPLOADED}/{file.name.removesuffix('.certificate.npz')}" for file in files)

    def require(self, name: str) -> str:
        """The name itself, if the run lists such an image; no other name ever becomes a path."""
        if name not in self.images():
            raise NotFound(f"image must be one of the run's, got {name[:80]!r}; see the list")
        return name

    def inside(self, path: Path) -> Path:
        """The path, if it lies in the run folder once every symbolic link is followed."""
        if not path.resolve().is_relative_to(self.root):
            raise InputError(f"{path.name}: must lie inside the run folder, but it leads out of it; remove the link")
        return path

    def uploaded_image(self, name: str) -> Path:
        """The file of an upload that `certify` takes: its numbers, or its picture where that holds all of them."""
        array = self.upload_path(name, ".npy")
        return array if array.is_file() else self.upload_path(name, ".png")

    def upload_path(self, name: str, ending: str) -> Path:
        return self.root / UPLOADED / f"{name.removeprefix(f'{UPLOADED}/')}{ending}"

    def votes(self, name: str, sigma: float, n: int) -> Votes:
        """The votes of an image; an upload has a single sigma and n."""
        if is_upload(self.require(name)):
            return self.upload_certificate(name).votes
        if sigma not in self.manifest.sigmas or n not in self.manifest.draws:
            raise InputError(
                f"sigma and n must be of the run ({_listed(self.manifest.sigmas)}; {_listed(self.manifest.draws)}), "
                f"got {sigma:g} and {n}"
            )
        self.inside(self.folder.votes_path(name, sigma))
        return self._votes.get((name, sigma, n), lambda: self.folder.cut(self.folder.all_votes(name, sigma), n))

    def upload_certificate(self, name: str) -> Certificate:
        """The certificate of an upload; one of another model or hierarchy than the run's is refused."""
        path = self.inside(self.upload_path(name, ".certificate.npz"))
        return self._uploads.get((name, path.stat().st_mtime_ns), lambda: self._whole(path))

    def _whole(self, path: Path) -> Certificate:
        found = _load_whole(path)
        require_of_run(self.manifest, found, path.name)
        return found

    def truth(self, name: str) -> NDArray[np.integer] | None:
        """The ground truth, None for uploads."""
        return None if is_upload(self.require(name)) else self._map(name, self.folder.label_path(name))

    def prediction(self, name: str) -> NDArray[np.integer] | None:
        """The model's labels without noise, None for uploads."""
        return None if is_upload(self.require(name)) else self._map(name, self.folder.prediction_path(name))

    def _map(self, name: str, path: Path) -> NDArray[np.integer]:
        return self._labels.get(path, lambda: read_ids(self.folder.checked(name, self.inside(path))))

    def fixed(self, name: str, votes: Votes) -> list[dict[str, Any]]:
        """sigma, n and settings of all that was fixed before the votes of an image were seen, the promise first."""
        if is_upload(name):
            return [{"sigma": votes.sigma, "n": votes.n, **asdict(self.upload_certificate(name).settings)}]
        found, promised = [], self.manifest.promised
        for method, setting in sorted(
            product(self.manifest.methods, self.manifest.each_setting()), key=promised.__ne__
        ):
            settings = settle(self.manifest.certificate(setting, method), votes, self.tree)
            n = setting.n if self.manifest.stop_undecided is None else votes.n
            found.append({"sigma": setting.sigma, "n": n, **asdict(settings)})
        return found

    def scores(self, name: str) -> dict[str, list[float]]:
        """`SETTING METHOD` -> [CIG, abstained, wrong] of an image as the run computed them; empty for uploads."""
        if is_upload(name):
            return {}
        if name not in self._scores:
            self._scores[name] = _scores(self.rows(name))
        return self._scores[name]

    def rows(self, name: str) -> list[dict[str, Any]]:
        """The rows that the run wrote about an image of its own."""
        self.inside(self.folder.rows_path(name))
        return self.folder.receipt(name).rows

    def key(self, name: str) -> str | None:
        """The hash of the pixels of an image of the run."""
        return self.manifest.identity(name)["key"]

    def uploads_of(self, key: str) -> int:
        """How many of the uploads are of the image with this key; one that does not tell counts, too."""
        count = 0
        for name in self.uploads():
            try:
                count += self.summary(name).get("image_key", key) == key
            except InputError:
                count += 1
        return count

    def summary(self, name: str) -> dict[str, Any]:
        """What was noted about an upload."""
        return read_summary(self.inside(self.upload_path(name, ".json")))


def is_upload(name: str) -> bool:
    """Whether a name is that of an uploaded image."""
    return name.startswith(f"{UPLOADED}/")


def _load_whole(path: Path) -> Certificate:
    """A certificate that holds its votes; one that names another file is refused before that file is opened."""
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
        wrong = row["pixels"] - row["right"] - row["abstained"]
        added = (row["gain"], row["abstained"], wrong, row["pixels"])
        sums[key] = [a + b for a, b in zip(sums.get(key, [0, 0, 0, 0]), added, strict=True)]
    return {key: [part / pixels for part in parts] for key, (*parts, pixels) in sums.items() if pixels}


def _votes_bytes(votes: Votes) -> int:
    of_one = (votes.counts, *votes.snapshots.values())
    anchors = len(votes.anchors)
    return sum(a.nbytes for a in (votes.candidate, votes.gap, votes.ranking)) + anchors * sum(a.nbytes for a in of_one)


def _listed(values: tuple[Any, ...]) -> str:
    return ", ".join(f"{value:g}" for value in values)
