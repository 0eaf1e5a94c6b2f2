"""The end of an image: certificates of every setting and method from its votes, and the rows of the table."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from certiseg.runs.folder import RunFolder
from certiseg.runs.measured import measure_rows
from certiseg.runs.table import certificate_rows, prediction_rows
from certiseg.scores import PixelSums, sum_pixels
from certiseg.votes import Votes


def write_image(
    folder: RunFolder,
    name: str,
    label: NDArray[np.integer],
    prediction: NDArray[np.integer],
    instances: NDArray[np.integer] | None = None,
    *,
    at_hand: Votes | None = None,
) -> dict[str, PixelSums]:
    """Write all that follows from the stored votes of an image, the rows last; returns sums of the first setting.

    at_hand: votes that need not be read again.
    """
    manifest = folder.manifest
    folder.write_map(folder.prediction_path(name), name, prediction)
    folder.write_map(folder.label_path(name), name, label)
    if instances is not None:
        folder.write_map(folder.instances_path(name), name, instances)
    rows = prediction_rows(name, prediction, label, manifest.tree.num_classes)
    sums: dict[str, PixelSums] = {}
    measures: list[dict[str, Any]] = []
    for sigma in manifest.sigmas:
        path = folder.votes_path(name, sigma)
        votes = at_hand if at_hand is not None and at_hand.sigma == sigma else folder.all_votes(name, sigma)
        for setting in (each for each in manifest.each_setting() if each.sigma == sigma):
            of_setting = folder.cut(votes, setting.n)
            measures += measure_rows(manifest, setting, of_setting)
            for method in manifest.methods:
                certificate = folder.certify(of_setting, setting, method)
                certificate.save(folder.certificate_path(name, setting, method), votes_path=f"../votes/{path.name}")
                rows += certificate_rows(name, setting, method, certificate, label)
                if setting == manifest.each_setting()[0]:
                    sums[method] = sum_pixels(certificate, label)
    folder.write_receipt(name, rows, measures)
    return sums
