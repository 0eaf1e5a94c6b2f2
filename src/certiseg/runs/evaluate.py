"""A run: one sampling pass per image and sigma, every setting and method from the same votes.

Everything is written atomically, the rows of an image last. A run that was killed goes on with the first image without
rows; what was drawn of it is kept as partial votes. Neither that nor the engine that draws changes a byte.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from certiseg.archive import parse_json, write_atomically
from certiseg.errors import InputError
from certiseg.runs.folder import RunFolder
from certiseg.runs.manifest import Manifest, require_same
from certiseg.runs.table import write_table
from certiseg.scores import PixelSums

if TYPE_CHECKING:
    from certiseg.engines.drive import Engine


class Samples(Protocol):
    """A data set as a run needs it."""

    def __len__(self) -> int: ...

    def __getitem__(self, index: int) -> Any: ...


@dataclass(frozen=True)
class Shard:
    """Every k-th image of a run, from the i-th: a run of its own in a folder of its own, to be merged."""

    number: int
    count: int

    def __post_init__(self) -> None:
        if not 1 <= self.number <= self.count:
            raise InputError(f"shard must be i/k with i in 1..k, got {self}; for example 1/4, 2/4, 3/4 and 4/4")

    def __str__(self) -> str:
        return f"{self.number}/{self.count}"

    def holds(self, index: int) -> bool:
        """Whether the image at this place belongs to the shard."""
        return index % self.count == self.number - 1


def parse_shard(text: str) -> Shard:
    """A shard from what was typed: i/k."""
    number, _, count = text.partition("/")
    try:
        return Shard(int(number), int(count))
    except InputError:
        raise
    except ValueError:
        raise InputError(f"shard must be i/k, for example 1/4, got {text!r}") from None


WHOLE = Shard(1, 1)


@dataclass
class Progress:
    """What a running evaluation can tell."""

    draws: Callable[[int], None] = lambda _: None
    """Called with the number of draws just made, or found made."""
    image: Callable[[str, Progress], None] = lambda _, __: None
    """Called after each image."""
    sums: dict[str, PixelSums] = field(default_factory=dict)
    """Running sums of each method at the first setting, over the images of this process."""


def evaluate_dataset(
    folder: RunFolder,
    manifest: Manifest,
    samples: Samples,
    segmenter: Any = None,
    *,
    engine: Engine | None = None,
    progress: Progress | None = None,
    shard: Shard = WHOLE,
) -> dict[str, str]:
    """Run, or resume, an evaluation; returns the images that were left out, with the reason.

    engine: what draws; without one, this process does, with the segmenter.
    shard: which images are taken here; the table is written when all images of the manifest are done.
    """
    from certiseg.engines.drive import drive
    from certiseg.engines.here import Here

    if shard.count > len(manifest.images):
        raise InputError(
            f"shard must be of at most as many shards as images, {len(manifest.images)}, got {shard}; use fewer"
        )
    folder.create()
    with folder.locked():
        folder.sweep()
        _enter(folder, manifest, shard)
        engine = engine or Here(segmenter, folder)
        left_out = drive(folder, samples, engine, progress or Progress(), takes=shard.holds)
        _finish(folder, left_out, shard)
    return left_out


def _enter(folder: RunFolder, manifest: Manifest, shard: Shard) -> None:
    """Write manifest and shard before anything else, or compare them with what is there."""
    if not folder.manifest_path.exists():
        manifest.save(folder.manifest_path)
        if shard != WHOLE:
            with write_atomically(folder.shard_path) as file:
                file.write(json.dumps({"format_version": 1, "shard": str(shard)}).encode())
        return
    require_same(folder.manifest, manifest, folder.manifest_path)
    if (there := shard_of(folder)) != shard:
        raise InputError(
            f"{folder.path}: must be resumed as the shard that it is, {there}, got {shard}; use a new --out"
        )


def shard_of(folder: RunFolder) -> Shard:
    """The shard that a folder holds; 1/1 for a whole run."""
    if not folder.shard_path.is_file():
        return WHOLE
    try:
        return parse_shard(parse_json(folder.shard_path.read_text("utf-8"))["shard"])
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(f"{folder.shard_path}: must name a shard, got: {error}") from None


def _finish(folder: RunFolder, left_out: dict[str, str], shard: Shard) -> None:
    """The list of images that were left out and, for a whole run, the table."""
    if left_out:
        with write_atomically(folder.left_out_path) as file:
            file.write(json.dumps(left_out, indent=1).encode())
    else:
        folder.left_out_path.unlink(missing_ok=True)
    if shard == WHOLE:
        finished = folder.finished()
        if finished:
            write_table(folder.table_path, (folder.rows_path(name) for name in finished))
