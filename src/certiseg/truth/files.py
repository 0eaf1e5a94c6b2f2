"""The files of calibrations and of calibrated sets: read again only if all they say follows from what they hold."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certiseg.archive import read_archive
from certiseg.errors import InputError
from certiseg.hierarchy import hierarchy_from_json
from certiseg.images import BYTES
from certiseg.images.values import as_values
from certiseg.runs.sealed import read_sealed
from certiseg.settings import from_stored
from certiseg.truth.answer import FORMAT_VERSION, TruthSets
from certiseg.truth.answer import KIND as SETS
from certiseg.truth.calibration import KIND, POSTERIORS, Calibration, require_enough
from certiseg.truth.identity import ModelIdentity
from certiseg.truth.settings import CalibrationSettings


def load_calibration(path: str | Path) -> Calibration:
    """Read a calibration; one that was changed, or whose numbers do not follow from its scores, is refused."""
    path = Path(path)
    if not path.is_file():
        raise InputError(f"calibration must be a file, got {str(path)!r}, which is not there; make one with calibrate")
    return calibration_from(read_sealed(path, KIND), str(path))


def load_sets(path: str | Path) -> TruthSets:
    """Read the sets of an image, with the calibration that they were made by."""
    found = read_archive(path, kind=SETS, version=FORMAT_VERSION)
    try:
        meta, packed = found.meta, found.arrays["members"]
        calibration = calibration_from(meta["calibration"], str(path))
        count = len(calibration.class_names)
        if packed.ndim != 3 or packed.dtype != np.uint8 or packed.shape[2] != -(-count // 8):
            raise ValueError(f"`members` of shape {packed.shape} for {count} classes")
        if count % 8 and (packed[..., -1] & (0xFF >> count % 8)).any():
            raise ValueError(f"`members` beyond the {count} classes")
        risk, pixels = meta["level"]
        level = calibration.settings.level(risk, pixels)
        seed, fresh, key = meta["seed"], meta["fresh"], meta["image_key"]
        if type(seed) is not int or type(fresh) is not bool or not isinstance(key, str):
            raise ValueError("a seed, its origin or a hash of another type")
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"{path}: must hold the sets of an image, got: {error}") from None
    return TruthSets(packed, calibration, seed, fresh, key, level)


def calibration_from(content: Mapping[str, Any], source: str) -> Calibration:
    """A calibration from what its file holds; source: the file, for messages."""
    if not isinstance(content, Mapping) or content.get("posteriors") != POSTERIORS or "keys" not in content:
        raise InputError(
            f"{source}: must be a calibration that names its images and has {POSTERIORS} posteriors, got an older one; "
            "make it anew"
        )
    try:
        found = _from_content(content, source)
        same = json.loads(json.dumps(found.content())) == content
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise InputError(f"{source}: must be a whole calibration, got: {error}") from None
    if not same:
        raise InputError(f"{source}: must be as it was written, but its thresholds do not follow from its scores")
    return found


def _from_content(content: Mapping[str, Any], source: str) -> Calibration:
    settings, model, tree = (
        from_stored(CalibrationSettings, content["settings"]),
        content["model"],
        content["hierarchy"],
    )
    named = model["class_names"]
    identity = ModelIdentity(
        **{**model, "class_names": None if named is None else tuple(named), "size": tuple(model["size"])}
    )
    levels, of_classes = len(settings.pixels), content["class_scores"]
    if set(of_classes) != set(settings.classes):
        raise ValueError("class_scores must be of the classes in its settings")
    require_enough(len(content["scores"]), settings, {name: len(of_classes[name]) for name in settings.classes})
    return Calibration(
        settings,
        identity,
        content["data_sha256"],
        content["seed"],
        _scores(content["scores"], levels),
        {name: _scores(rows, levels) for name, rows in of_classes.items()},
        None if tree is None else hierarchy_from_json(tree, source=source),
        as_values(content["values"]) or BYTES,
        _keys(content["keys"], len(content["scores"])),
        tuple((height, width) for height, width in content["sizes"]),
        bool(content["fresh"]),
    )


def _keys(keys: Any, images: int) -> tuple[str, ...]:
    if len(set(keys)) != images or not all(isinstance(key, str) for key in keys):
        raise ValueError(f"keys must be {images} different hashes")
    return tuple(keys)


def _scores(rows: Any, levels: int) -> NDArray[np.uint32]:
    return np.array(rows, np.uint32).reshape(-1, levels)
