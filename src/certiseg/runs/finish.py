"""The end of an image: certificates of every setting and method from its votes, and the rows of the table."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from certiseg.errors import InputError
from certiseg.runs.folder import RunFolder, write_map
from certiseg.runs.manifest import Manifest
from certiseg.runs.table import certificate_rows, prediction_rows, write_rows
from certiseg.scores import PixelSums, sum_pixels
from certiseg.tally import SamplingPlan
from certiseg.votes import Votes, load_votes


def plan_of(manifest: Manifest, sigma: float) -> SamplingPlan:
    """The draws of every image of a run at one sigma."""
    return SamplingPlan(
        sigma=sigma,
        n0=manifest.n0,
        n=max(manifest.draws),
        seed=manifest.seed,
        batch_size=manifest.batch_size,
        max_set=_longest_set(manifest),
        snapshots=manifest.draws[:-1],
        temperature=manifest.temperature,
        noise=manifest.noise,
    )


def finish_image(
    folder: RunFolder,
    name: str,
    label: NDArray[np.integer],
    prediction: NDArray[np.integer],
    *,
    at_hand: Votes | None = None,
) -> dict[str, PixelSums]:
    """Write all that follows from the stored votes of an image, the rows last; returns sums of the first setting.

    at_hand: votes that need not be read again.
    """
    manifest = folder.manifest
    write_map(folder.prediction_path(name), prediction)
    write_map(folder.label_path(name), label)
    rows = prediction_rows(name, prediction, label, manifest.tree.num_classes)
    sums: dict[str, PixelSums] = {}
    for sigma in manifest.sigmas:
        path = folder.votes_path(name, sigma)
        votes = at_hand if at_hand is not None and at_hand.sigma == sigma else load_votes(path)
        for setting in (s for s in manifest.each_setting() if s.sigma == sigma):
            of_setting = votes.first(setting.n)
            for method in manifest.methods:
                certificate = folder.certify(of_setting, setting, method)
                certificate.save(folder.certificate_path(name, setting, method), votes_path=f"../votes/{path.name}")
                rows += certificate_rows(name, setting, method, certificate, label)
                if setting == manifest.each_setting()[0]:
                    sums[method] = sum_pixels(certificate, label)
    write_rows(folder.rows_path(name), rows)
    return sums


def checked_label(sample: Any) -> NDArray[np.integer]:
    """The ground truth of a sample, refused before any draw if nothing can be scored with it."""
    if sample.label is None:
        raise InputError("label must be there to evaluate, got none")
    if not (sample.label != 255).any():
        raise InputError("label must have a pixel that is not void, got none")
    return sample.label


def _longest_set(manifest: Manifest) -> int:
    sizes = [int(method.partition(":")[2]) for method in manifest.methods if method.startswith("sets:")]
    return min(max([5, *sizes]), manifest.tree.num_classes)
