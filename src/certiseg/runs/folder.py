"""The run folder: which file is where, and that only one process writes at a time.

manifest.json                          what decides the run, and the hash of every image
votes/NAME.sigma0.25.npz               votes of one image, with snapshots
predictions/NAME.png                   the model's labels without noise (not certified)
labels/NAME.png                        the ground truth, so that a run can be analysed where the data set is not
instances/NAME.png                     its marked objects, where the run uses them
certificates/NAME.SETTING.METHOD.npz   certificates, referring to the votes
rows/NAME.json                         the sums of one image and the hash of every file of it; written last: "done"
partial/NAME/sigma0.25_RANGES.npz      votes of some draws of an image that is not done yet
table.parquet                          all rows
left_out.json                          images that could not be used, and why
shard.json                             in the folder of a shard: which one

Nothing is trusted because of its name. JSON files and archives end with a hash of their bytes; the rows of an image
name run and image and hold the hash of all its other files, which is compared whenever one of them is read.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from filelock import FileLock, Timeout
from numpy.typing import NDArray
from PIL import Image
from PIL.PngImagePlugin import PngInfo

from certiseg.archive import UNFINISHED, DamagedArchiveError, write_atomically
from certiseg.certificate import Certificate, load_certificate
from certiseg.certify import make_certificate
from certiseg.errors import InputError
from certiseg.images import IdMap, read_ids
from certiseg.partial_votes import STAGES, DrawRange, PartialVotes, flagged_ranges
from certiseg.runs.identity import require_votes
from certiseg.runs.manifest import Manifest, load_manifest
from certiseg.runs.names import file_name
from certiseg.runs.sealed import read_sealed, require_bytes, sha256_of, write_sealed
from certiseg.runs.settings import WHOLE, Setting, Shard, number, parse_shard
from certiseg.settings import Stage
from certiseg.votes import Votes, load_votes

SUBFOLDERS = ("votes", "predictions", "labels", "instances", "certificates", "rows", "partial")
UPLOADED = "dropped"
"""The folder of a run for images dropped onto the page of the viewer; their names begin with it."""
ROWS = "rows of an image"
_SPAN = re.compile(r"(selection|estimation)(\d+)-(\d+)")


@dataclass(frozen=True)
class Receipt:
    """What a finished image consists of: the rows of the table, and the SHA-256 of each of its other files."""

    rows: list[dict[str, Any]]
    files: dict[str, str]
    """Path inside the run folder -> SHA-256."""
    measures: list[dict[str, Any]]
    """Bounds of measures, where the run has objects."""


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
        for name in SUBFOLDERS:
            (self.path / name).mkdir(parents=True, exist_ok=True)

    def sweep(self) -> None:
        """Remove what writers that were killed left unfinished; only with the lock held."""
        for left in self.path.rglob(f".*{UNFINISHED}"):
            left.unlink()

    def votes_path(self, name: str, sigma: float) -> Path:
        return self.path / "votes" / f"{file_name(name)}.sigma{number(sigma)}.npz"

    def partial_folder(self, name: str) -> Path:
        return self.path / "partial" / file_name(name)

    def parts(self, name: str, sigma: float) -> list[Path]:
        """Partial votes of an image, in a settled order, without those whose draws another one holds as well."""
        found = self._all_parts(name, sigma)
        draws = {path: _draws_in(self.ranges_in(path)) for path in found}
        return [path for path in found if not any(draws[path] < draws[other] for other in found)]

    def _all_parts(self, name: str, sigma: float) -> list[Path]:
        return sorted(self.partial_folder(name).glob(f"sigma{number(sigma)}_*.npz"))

    def tidy_parts(self, name: str) -> None:
        """Remove partial votes that were added to others."""
        for sigma in self.manifest.sigmas:
            for path in set(self._all_parts(name, sigma)) - set(self.parts(name, sigma)):
                path.unlink()

    def ranges_in(self, path: Path) -> list[DrawRange]:
        """The draws that partial votes hold, as their name says."""
        sigma, _, spans = path.stem.removeprefix("sigma").partition("_")
        found = _SPAN.findall(spans)
        if not found:
            raise InputError(f"{path}: must be partial votes of a run, got another file; remove it and resume")
        return [DrawRange(float(sigma), stage, int(first), int(last)) for stage, first, last in found]

    def save_part(self, name: str, partial: PartialVotes) -> Path:
        """Store partial votes under a name that says which draws they hold, so that a resume need not open them."""
        folder = self.partial_folder(name)
        folder.mkdir(exist_ok=True)
        spans = "".join(f"_{part.stage}{part.first}-{part.last}" for part in partial.held_ranges())
        path = folder / f"sigma{number(partial.settings.sigma)}{spans}.npz"
        partial.save(path)
        return path

    def remove_parts(self, name: str) -> None:
        """Remove what is not needed once an image is done."""
        shutil.rmtree(self.partial_folder(name), ignore_errors=True)

    def missing_draws(self, name: str, sigma: float) -> list[DrawRange]:
        """The draws of an image at a sigma that neither its votes nor its partial votes hold."""
        if self.votes_path(name, sigma).is_file():
            return []
        settings = self.manifest.sampling(sigma)
        wanted: dict[Stage, NDArray[np.bool_]] = {stage: np.ones(settings.draws(stage), bool) for stage in STAGES}
        for part in (part for path in self.parts(name, sigma) for part in self.ranges_in(path)):
            wanted[part.stage][part.first : part.last] = False
        return flagged_ranges(sigma, wanted)

    def certificate_path(self, name: str, setting: Setting, method: str) -> Path:
        plain = method.replace(":", "").replace(",", "-")
        return self.path / "certificates" / f"{file_name(name)}.{setting}.{plain}.npz"

    def rows_path(self, name: str) -> Path:
        return self.path / "rows" / f"{file_name(name)}.json"

    def prediction_path(self, name: str) -> Path:
        return self.path / "predictions" / f"{file_name(name)}.png"

    def label_path(self, name: str) -> Path:
        return self.path / "labels" / f"{file_name(name)}.png"

    def instances_path(self, name: str) -> Path:
        return self.path / "instances" / f"{file_name(name)}.png"

    def files_of(self, name: str) -> list[Path]:
        """Every file of a finished image, the rows last."""
        manifest = self.manifest
        found = [self.prediction_path(name), self.label_path(name)]
        found += [self.instances_path(name)] if manifest.instances else []
        found += [self.votes_path(name, sigma) for sigma in manifest.sigmas]
        certificates = [(setting, method) for setting in manifest.each_setting() for method in manifest.methods]
        found += [self.certificate_path(name, setting, method) for setting, method in certificates]
        return [*found, self.rows_path(name)]

    def finished(self) -> list[str]:
        """Images whose rows are there, in the manifest's order."""
        return [name for name in self.manifest.images if self.rows_path(name).is_file()]

    def write_receipt(self, name: str, rows: list[dict[str, Any]], measures: list[dict[str, Any]]) -> None:
        """Write the rows of an image, with the hash of each of its other files: from now on it is done."""
        files = {self.relative(path): sha256_of(path) for path in self.files_of(name)[:-1]}
        content = {**self.manifest.identity(name), "files": files, "rows": rows, "measures": measures}
        write_sealed(self.rows_path(name), ROWS, content)

    def receipt(self, name: str) -> Receipt:
        """What is written about a finished image; that of another image or run is refused."""
        path = self.rows_path(name)
        found = read_sealed(path, ROWS)
        for what, value in self.manifest.identity(name).items():
            if found.get(what) != value:
                got, wanted = str(found.get(what))[:12], str(value)[:12]
                raise InputError(f"{path}: must belong to this run and image, but its {what} is {got}, not {wanted}")
        expected = {self.relative(each) for each in self.files_of(name)[:-1]}
        rows, files, measures = found.get("rows"), found.get("files"), found.get("measures")
        if not isinstance(rows, list) or not isinstance(measures, list):
            raise DamagedArchiveError(f"{path}: must hold the rows and bounds of the image, got others")
        if not isinstance(files, dict) or set(files) != expected:
            raise DamagedArchiveError(f"{path}: must list the files of the image, got others")
        return Receipt(rows, files, measures)

    def draws(self, name: str) -> dict[float, int]:
        """How many estimation draws a finished image had at each sigma, at each anchor."""
        manifest = self.manifest
        if manifest.stop_undecided is None:
            return dict.fromkeys(manifest.sigmas, manifest.draws[-1])
        return {row["sigma"]: row["draws"] for row in self.receipt(name).rows if row["draws"]}

    def drawn(self, name: str) -> int:
        """All draws of a finished image."""
        plans = {sigma: self.manifest.sampling(sigma) for sigma in self.manifest.sigmas}
        made = self.draws(name)
        return sum((plan.n0 + made[sigma]) * len(plan.anchors) for sigma, plan in plans.items())

    def checked(self, name: str, path: Path) -> Path:
        """The path of a file of a finished image, if its bytes are those that were written."""
        require_bytes(path, self.receipt(name).files[self.relative(path)])
        return path

    def relative(self, path: Path) -> str:
        """A path inside the folder, as it is written down."""
        return path.relative_to(self.path).as_posix()

    def votes(self, name: str, setting: Setting) -> Votes:
        """The stored votes of an image for a setting."""
        return self.cut(self.all_votes(name, setting.sigma), setting.n)

    def cut(self, votes: Votes, n: int) -> Votes:
        """The first n draws of an image; where draws stop early, n is the most, and all that were made are meant."""
        return votes.first(n) if self.manifest.stop_undecided is None else votes

    def all_votes(self, name: str, sigma: float) -> Votes:
        """The stored votes of an image, all draws of them; those of another image or run are refused."""
        path = self.votes_path(name, sigma)
        votes = load_votes(self.checked(name, path) if self.rows_path(name).is_file() else path)
        require_votes(self.manifest, name, sigma, votes, str(path))
        return votes

    def certificate(self, name: str, setting: Setting, method: str) -> Certificate:
        """The stored certificate of an image."""
        self.checked(name, self.votes_path(name, setting.sigma))
        return load_certificate(self.checked(name, self.certificate_path(name, setting, method)))

    def certify(self, votes: Votes, setting: Setting, method: str) -> Certificate:
        """A certificate from votes as the run computes it."""
        return make_certificate(votes, self.manifest.tree, self.manifest.certificate(setting, method))

    def label(self, name: str) -> IdMap:
        """The ground truth of a finished image."""
        return read_ids(self.checked(name, self.label_path(name)))

    def instances(self, name: str) -> IdMap | None:
        """The marked objects of a finished image; None where the run does not use them."""
        return read_ids(self.checked(name, self.instances_path(name))) if self.manifest.instances else None

    def prediction(self, name: str) -> IdMap:
        """The labels of a finished image without noise."""
        return read_ids(self.checked(name, self.prediction_path(name)))

    def write_map(self, path: Path, name: str, values: NDArray[Any]) -> None:
        """A map of class ids of an image as a greyscale PNG that says to whom it belongs."""
        note = PngInfo()
        note.add_text("certiseg", self.map_note(path, name))
        stored = values.astype(np.uint8 if values.max(initial=0) < 256 else np.uint16)
        with write_atomically(path) as file:
            Image.fromarray(stored).save(file, "PNG", pnginfo=note)

    def map_note(self, path: Path, name: str) -> str:
        """The words inside a map."""
        return json.dumps({"kind": path.parent.name, **self.manifest.identity(name)})

    def write_note(self, path: Path, kind: str, content: dict[str, Any]) -> None:
        """A small JSON file about the whole run."""
        write_sealed(path, kind, {"run": self.manifest.run_key, **content})

    def read_note(self, path: Path, kind: str) -> dict[str, Any]:
        """The content of such a file; one of another run is refused."""
        found = read_sealed(path, kind)
        if found.pop("run", None) != self.manifest.run_key:
            raise InputError(f"{path}: must belong to this run, but it was written for other settings")
        return found

    def shard(self) -> Shard:
        """The shard that the folder holds; 1/1 for a whole run."""
        if not self.shard_path.is_file():
            return WHOLE
        return parse_shard(str(self.read_note(self.shard_path, "shard").get("shard")))

    def write_left_out(self, left_out: dict[str, str]) -> None:
        """Note which images could not be used."""
        if left_out:
            self.write_note(self.left_out_path, "list of images left out", {"images": left_out})
        else:
            self.left_out_path.unlink(missing_ok=True)

    def left_out(self) -> dict[str, str]:
        """Images that could not be used, with the reason."""
        if not self.left_out_path.is_file():
            return {}
        found = self.read_note(self.left_out_path, "list of images left out").get("images")
        if not isinstance(found, dict) or not set(found) <= set(self.manifest.images):
            raise InputError(f"{self.left_out_path}: must list images of the run, got others; remove it and resume")
        return {str(name): str(why) for name, why in found.items()}

    def require_there(self) -> None:
        """End the run if its folder was removed: nothing that is drawn could be kept."""
        if not self.manifest_path.is_file() or not all((self.path / name).is_dir() for name in SUBFOLDERS):
            raise FolderRemoved(f"{self.path}: must stay where it is during the run, but it was removed")

    def require_usable(self) -> None:
        """Refuse a path that cannot be a run folder, or one that is being written, before any work is done."""
        if self.path.exists() and not self.path.is_dir():
            raise InputError(f"{self.path}: must be a folder, got a file; use another --out")
        above = next(path for path in (self.path, *self.path.resolve().parents) if path.exists())
        if not os.access(above, os.W_OK):
            raise InputError(f"{above}: must be writable for the run folder {self.path}; use another --out")
        if (self.path / ".lock").exists():
            with self.locked():
                pass

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the folder for one writer; a second one is refused at once. The lock goes with its process."""
        lock = FileLock(self.path / ".lock")
        try:
            lock.acquire(blocking=False)
        except Timeout:
            raise InputError(f"{self.path}: must be free, but another process is writing this run") from None
        try:
            yield
        finally:
            lock.release()


def _draws_in(ranges: list[DrawRange]) -> frozenset[tuple[str, int]]:
    return frozenset((part.stage, draw) for part in ranges for draw in part.draws)


class FolderRemoved(InputError):
    """The run folder has gone while it was written."""
