"""The loop of a run: one sampling pass per image and sigma, every setting and method from the same votes.

Everything is written atomically and in one order, the rows of an image last. A run that was killed goes on with the
first image without rows; what it had drawn of that image is kept in a checkpoint. The result does not depend on it.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from certiseg.archive import write_atomically
from certiseg.certificate import Certificate
from certiseg.errors import InputError
from certiseg.runs.folder import RunFolder, write_map
from certiseg.runs.manifest import Manifest, require_same
from certiseg.runs.table import certificate_rows, prediction_rows, write_rows, write_table
from certiseg.scores import PixelSums, sum_pixels
from certiseg.votes import Votes, load_votes, sample


class Samples(Protocol):
    """A data set as a run needs it."""

    def __len__(self) -> int: ...

    def __getitem__(self, index: int) -> Any: ...


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
    segmenter: Any,
    *,
    progress: Progress | None = None,
    only: Callable[[int], bool] = lambda _: True,
) -> dict[str, str]:
    """Run, or resume, an evaluation; returns the images that were left out, with the reason.

    only: which images, by index, this process takes (for shards); the table is written when all rows are there.
    """
    progress = progress or Progress()
    folder.create()
    with folder.locked():
        folder.sweep()
        _enter_manifest(folder, manifest)
        left_out: dict[str, str] = {}
        for index, name in enumerate(manifest.images):
            if not only(index):
                continue
            if not folder.rows_path(name).is_file():
                try:
                    _evaluate_image(folder, manifest, name, samples[index], segmenter, progress)
                except InputError as error:
                    left_out[name] = str(error)
            else:
                progress.draws((manifest.n0 + max(manifest.draws)) * len(manifest.sigmas))
            progress.image(name, progress)
        _finish(folder, manifest, left_out)
    return left_out


def _enter_manifest(folder: RunFolder, manifest: Manifest) -> None:
    if folder.manifest_path.exists():
        require_same(folder.manifest, manifest, folder.manifest_path)
    else:
        manifest.save(folder.manifest_path)


def _evaluate_image(
    folder: RunFolder, manifest: Manifest, name: str, sample_: Any, segmenter: Any, progress: Progress
) -> None:
    label = _checked_label(sample_, manifest)
    prediction = segmenter.predict(sample_.image)
    write_map(folder.prediction_path(name), prediction)
    write_map(folder.label_path(name), label)
    rows = prediction_rows(name, prediction, label, manifest.tree.num_classes)
    for sigma in manifest.sigmas:
        votes = _votes(folder, manifest, name, sigma, sample_.image, segmenter, progress)
        for setting in (s for s in manifest.each_setting() if s.sigma == sigma):
            of_setting = votes.first(setting.n)
            for method in manifest.methods:
                certificate = folder.certify(of_setting, setting, method)
                relative = f"../votes/{folder.votes_path(name, sigma).name}"
                certificate.save(folder.certificate_path(name, setting, method), votes_path=relative)
                rows += certificate_rows(name, setting, method, certificate, label)
                if setting == manifest.each_setting()[0]:
                    _add(progress, method, certificate, label)
    write_rows(folder.rows_path(name), rows)


def _votes(
    folder: RunFolder,
    manifest: Manifest,
    name: str,
    sigma: float,
    image: NDArray[np.uint8],
    segmenter: Any,
    progress: Progress,
) -> Votes:
    """The votes of one image: those of an earlier start of the run, or freshly drawn."""
    path = folder.votes_path(name, sigma)
    if path.is_file():
        progress.draws(manifest.n0 + max(manifest.draws))
        return load_votes(path)
    votes = sample(
        segmenter,
        image,
        sigma=sigma,
        n0=manifest.n0,
        n=max(manifest.draws),
        seed=manifest.seed,
        batch_size=manifest.batch_size,
        max_set=_longest_set(manifest),
        snapshots=manifest.draws[:-1],
        temperature=manifest.temperature,
        noise=manifest.noise,
        checkpoint=folder.partial_path(name, sigma),
        progress=progress.draws,
    )
    votes.save(path)
    return votes


def _longest_set(manifest: Manifest) -> int:
    sizes = [int(method.partition(":")[2]) for method in manifest.methods if method.startswith("sets:")]
    return min(max([5, *sizes]), manifest.tree.num_classes)


def _checked_label(sample_: Any, manifest: Manifest) -> NDArray[np.integer]:
    if sample_.label is None:
        raise InputError("label must be there to evaluate, got none")
    if not (sample_.label != 255).any():
        raise InputError("label must have a pixel that is not void, got none")
    return sample_.label


def _add(progress: Progress, method: str, certificate: Certificate, label: NDArray[np.integer]) -> None:
    sums = sum_pixels(certificate, label)
    progress.sums[method] = progress.sums[method] + sums if method in progress.sums else sums


def _finish(folder: RunFolder, manifest: Manifest, left_out: dict[str, str]) -> None:
    """The table, once every image has its rows or was left out."""
    done = folder.finished()
    if len(done) + len(left_out) < len(manifest.images):
        return
    if left_out:
        with write_atomically(folder.left_out_path) as file:
            file.write(json.dumps(left_out, indent=1).encode())
    elif folder.left_out_path.exists():
        folder.left_out_path.unlink()
    if done:
        write_table(folder.table_path, (folder.rows_path(name) for name in done))
