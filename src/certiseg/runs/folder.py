"""The run folder: which file is where, and that only one process writes at a time.

manifest.json                          what decides the run
votes/NAME.sigma0.25.npz               votes of one image, with snapshots
predictions/NAME.png                   the model's labels without noise (not certified)
labels/NAME.png                        the ground truth, so that a run can be analysed where the data set is not
certificates/NAME.SETTING.METHOD.npz   certificates, referring to the votes
rows/NAME.json                         the sums of one image; written last, so its presence means "done"
partial/NAME/RANGES.npz                votes of some draws of an image that is not done yet
table.parquet                          all rows
left_out.json                          images that could not be used, and why
shard.json                             in the folder of a shard: which one
"""

from __future__ import annotations

import contextlib
import fcntl
import shutil
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certiseg.archive import UNFINISHED, parse_json, write_atomically
from certiseg.certificate import Certificate, load_certificate
from certiseg.errors import InputError
from certiseg.runs.manifest import Manifest, MethodChoice, Setting, load_manifest
from certiseg.votes import Votes, load_votes

PARTS = ("votes", "predictions", "labels", "certificates", "rows", "partial")


class RunFolder:
    """Paths and files of one run."""

    def __init__(self, path: str | Path, manifest: Manifest | None = None) -> None:
        self.path = Path(path)
        if manifest is not None:
            self.manifest = manifest

    @cached_property
    def manifest(self) -> Manifest:
        return load_manifest(self.manifest_path)

    @property
    def manifest_path(self) -> Path:
        return self.path / "manifest.json"

    @property
    def table_path(self) -> Path:
        return self.path / "table.parquet"

    @property
    def left_out_path(self) -> Path:
        return self.path / "left_out.json"

    @property
    def shard_path(self) -> Path:
        return self.path / "shard.json"

    def create(self) -> None:
        """Make the folder and its parts."""
        for part in PARTS:
            (self.path / part).mkdir(parents=True, exist_ok=True)

    def sweep(self) -> None:
        """Remove what writers that were killed left unfinished; only with the lock held."""
        for left in self.path.rglob(f".*{UNFINISHED}"):
            left.unlink()

    def votes_path(self, name: str, sigma: float) -> Path:
        return self.path / "votes" / f"{file_name(name)}.sigma{sigma:g}.npz"

    def partial_folder(self, name: str) -> Path:
        return self.path / "partial" / file_name(name)

    def parts(self, name: str, sigma: float) -> list[Path]:
        """Partial votes of an image, in a settled order."""
        return sorted(self.partial_folder(name).glob(f"sigma{sigma:g}_*.npz"))

    def remove_parts(self, name: str) -> None:
        """Remove what is not needed once an image is done."""
        shutil.rmtree(self.partial_folder(name), ignore_errors=True)

    def certificate_path(self, name: str, setting: Setting, method: str) -> Path:
        plain = method.replace(":", "").replace(",", "-")
        return self.path / "certificates" / f"{file_name(name)}.{setting}.{plain}.npz"

    def rows_path(self, name: str) -> Path:
        return self.path / "rows" / f"{file_name(name)}.json"

    def prediction_path(self, name: str) -> Path:
        return self.path / "predictions" / f"{file_name(name)}.png"

    def label_path(self, name: str) -> Path:
        return self.path / "labels" / f"{file_name(name)}.png"

    def files_of(self, name: str) -> list[Path]:
        """Every file of a finished image, the rows last."""
        manifest = self.manifest
        found = [self.prediction_path(name), self.label_path(name)]
        found += [self.votes_path(name, sigma) for sigma in manifest.sigmas]
        certificates = [(setting, method) for setting in manifest.each_setting() for method in manifest.methods]
        found += [self.certificate_path(name, setting, method) for setting, method in certificates]
        return [*found, self.rows_path(name)]

    def finished(self) -> list[str]:
        """Images whose rows are there, in the manifest's order."""
        return [name for name in self.manifest.images if self.rows_path(name).is_file()]

    def votes(self, name: str, setting: Setting) -> Votes:
        """The stored votes of an image for a setting."""
        return load_votes(self.votes_path(name, setting.sigma)).first(setting.n)

    def certificate(self, name: str, setting: Setting, method: str) -> Certificate:
        """The stored certificate of an image."""
        return load_certificate(self.certificate_path(name, setting, method))

    def certify(self, votes: Votes, setting: Setting, method: str) -> Certificate:
        """A certificate from votes as the run computes it."""
        from certiseg.certify import certify

        m = self.manifest
        options = {**MethodChoice(method).options, "correction": m.correction, "k": m.k, "test": m.test}
        return certify(votes, m.tree, tau=setting.tau, alpha=m.alpha_per_image, **options)

    def label(self, name: str) -> NDArray[np.uint8]:
        return read_map(self.label_path(name))

    def prediction(self, name: str) -> NDArray[np.uint8]:
        return read_map(self.prediction_path(name))

    def left_out(self) -> dict[str, str]:
        """Images that could not be used, with the reason."""
        if not self.left_out_path.is_file():
            return {}
        try:
            return {str(name): str(why) for name, why in parse_json(self.left_out_path.read_text("utf-8")).items()}
        except (ValueError, AttributeError) as error:
            raise InputError(f"{self.left_out_path}: must tell what was left out, got: {error}; remove it") from None

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the folder for one writer; a second one is refused at once. The lock goes with its process."""
        with open(self.path / ".lock", "w") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise InputError(f"{self.path}: must be free, but another process is writing this run") from None
            yield


def file_name(name: str) -> str:
    """An image's name as part of a file name."""
    return name.replace("/", "__").replace("\\", "__")


def write_map(path: Path, values: NDArray[Any]) -> None:
    """A map of class ids as a greyscale PNG."""
    from PIL import Image

    with write_atomically(path) as file:
        Image.fromarray(values.astype(np.uint8 if values.max(initial=0) < 256 else np.uint16)).save(file, "PNG")


def read_map(path: Path) -> NDArray[np.uint8]:
    from PIL import Image

    try:
        with Image.open(path) as image:
            return np.asarray(image)
    except (OSError, ValueError, SyntaxError) as error:
        raise InputError(f"{path}: must be a readable map of class ids, got: {error}") from None
