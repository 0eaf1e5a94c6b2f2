"""Calibrated sets beside the maps of a run: a promise about the truth, from files of `certify` or `evaluate`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from certiseg.errors import InputError
from certiseg.render.pictures import SIZE_BANDS, size_colour, size_words
from certiseg.runs.folder import UPLOADED
from certiseg.runs.names import file_name
from certiseg.truth.answer import TruthSets
from certiseg.truth.files import load_sets
from certiseg.viewer import layers
from certiseg.viewer.cache import BoundedCache
from certiseg.viewer.choice import text, whole
from certiseg.viewer.run_reader import NotFound, is_upload

if TYPE_CHECKING:
    from certiseg.viewer.app import Viewer

ENDING = ".truth.npz"


class Calibrated:
    """The sets of the images of one viewer, found by name and bound to their pixels."""

    def __init__(self, viewer: Viewer, folder: str | None) -> None:
        self.viewer, self.folder = viewer, None if folder is None else Path(folder)
        if self.folder is not None and not any(self.folder.glob(f"*{ENDING}")):
            raise InputError(
                f"--truth must be a folder with files NAME{ENDING}, got {folder}; write them with `certiseg certify "
                "--calibration` or `certiseg evaluate --calibration`"
            )
        self._sets = BoundedCache[TruthSets](256 << 20, lambda sets: sets.packed.nbytes + sets.size.nbytes)

    def facts(self) -> dict[str, Any]:
        """What the page needs to know once."""
        return {"calibrated": self.folder is not None}

    def find(self, name: str) -> TruthSets:
        """The sets of an image; those of another model, other pixels or classes are refused."""
        reader = self.viewer.reader
        plain = file_name(reader.require(name).removeprefix(f"{UPLOADED}/"))
        if self.folder is None or not (path := self.folder / f"{plain}{ENDING}").is_file():
            raise NotFound(f"{name}: no calibrated sets; write {plain}{ENDING} with `certiseg certify --calibration`")
        sets = self._sets.get((name, path.stat().st_mtime_ns), lambda: load_sets(path))
        key = reader.upload_certificate(name).votes.image_key if is_upload(name) else reader.key(name)
        if sets.image_key != key:
            raise InputError(f"{path.name}: must be of the pixels of {name}, got sets of another image")
        first = reader.votes(name, reader.manifest.sigmas[0], reader.manifest.draws[-1])
        if sets.size.shape != first.candidate.shape:
            raise InputError(f"{path.name}: must have a set for every pixel of {name}, got {sets.size.shape}")
        if sets.calibration.model.sha256 != reader.manifest.model_sha256:
            raise InputError(f"{path.name}: must be of the model of the run, got sets of another one")
        if sets.class_names != reader.tree.classes:
            raise InputError(f"{path.name}: must be over the classes of the run, got others")
        return sets

    def sets(self, request: Request) -> Response:
        """The size of every set, in bands, and what is promised about them."""
        name = text(request.query_params, "image")
        sets = self.find(name)
        truth, (risk, pixels) = self.viewer.reader.truth(name), sets.level
        lows = [low for low, _ in SIZE_BANDS if low <= max(int(sets.size.max()), 1)]
        band = (np.searchsorted(lows, sets.size, side="right") - 1).astype(np.uint8)
        legend = [
            {"colour": list(size_colour(k)), "words": size_words(*SIZE_BANDS[k]), "share": float((band == k).mean())}
            for k in range(len(lows))
        ]
        facts = {"role": sets.role, "claim": sets.claim(), "mean_size": sets.mean_size, "legend": legend}
        facts |= {"risk": risk, "pixels": pixels, "singletons": sets.singletons, "held": _held(sets, truth)}
        packed = layers.pack(facts, {"band": band})
        return Response(packed, media_type="application/octet-stream")

    def members(self, request: Request) -> Response:
        """The classes in the set of one pixel, and the true one."""
        query = request.query_params
        name, row, column = text(query, "image"), whole(query, "row"), whole(query, "column")
        names = self.find(name).labels_at(row, column)
        truth = self.viewer.reader.truth(name)
        true = None if truth is None else int(truth[row, column])
        known = true is not None and true < len(self.viewer.reader.tree.classes)
        return JSONResponse({"members": names, "truth": self.viewer.reader.tree.classes[true or 0] if known else None})

    def routes(self) -> list[Route]:
        return [Route("/api/truth", self.sets), Route("/api/truth/pixel", self.members)]


def _held(sets: TruthSets, truth: Any) -> float | None:
    """The share of the labelled pixels whose set holds the true class."""
    known = None if truth is None else truth < len(sets.class_names)
    if known is None or not known.any():
        return None
    return float(sets.holds(truth)[known].mean())
