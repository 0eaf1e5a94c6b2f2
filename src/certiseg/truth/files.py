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
from certiseg.hierarchy import MAX_CLASSES, hierarchy_from_json
from certiseg.images import BYTES
from certiseg.images.values import MAX_CHANNELS, MAX_PIXELS, as_values
from certiseg.runs.sealed import read_sealed
from certiseg.settings import from_stored
from certiseg.truth.answer import FORMAT_VERSION, TruthSets
from certiseg.truth.answer import KIND as SETS
from certiseg.truth.calibration import KIND, POSTERIORS, SEED_BITS, Calibration, require_enough
from certiseg.truth.identity import ModelIdentity
from certiseg.truth.scores import UNIT
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
        if not packed.size:
            raise ValueError("no pixel")
        if count % 8 and (packed[..., -1] & (0xFF >> count % 8)).any():
            raise ValueError(f"`members` beyond the {count} classes")
        risk, pixels = meta["level"]
        level = calibration.settings.level(risk, pixels)
        seed, fresh, key = _seed(meta["seed"]), meta["fresh"], _text(meta["image_key"])
        if type(fresh) is not bool or (fresh and not 0 <= seed < 2**SEED_BITS):
            raise ValueError(
                f"a seed of {SEED_BITS} bits that is fresh, or another one that is not, got {seed}, {fresh}"
            )
    except (KeyError, TypeError, ValueError, OverflowError) as error:
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
        again = json.loads(json.dumps(found.content()))
    except (KeyError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError) as error:
        raise InputError(f"{source}: must be a whole calibration, got: {error}") from None
    if again != content:
        odd = next(name for name in {**again, **content} if again.get(name) != content.get(name))
        raise InputError(f"{source}: must be as it was written, but its {odd} does not follow from the rest")
    return found


def _from_content(content: Mapping[str, Any], source: str) -> Calibration:
    settings, model, tree = (
        from_stored(CalibrationSettings, content["settings"]),
        content["model"],
        content["hierarchy"],
    )
    identity = _identity(model)
    sizes = _sizes(content["sizes"])
    if identity.size not in sizes or identity.channels > MAX_CHANNELS or identity.num_classes > MAX_CLASSES:
        raise ValueError("the size of the model's picture and its classes must be those of images")
    if settings.score == "vertex" and tree is None:
        raise ValueError("the score vertex needs a hierarchy")
    hierarchy = None if tree is None else hierarchy_from_json(tree, source=source)
    if hierarchy is not None:
        hierarchy.require_classes(identity.class_names or identity.num_classes)
    levels, of_classes = len(settings.pixels), content["class_scores"]
    images = len(content["scores"])
    if set(of_classes) != set(settings.classes) or any(len(rows) > images for rows in of_classes.values()):
        raise ValueError("class_scores must be of the classes in its settings, and of its images")
    require_enough(images, settings, {name: len(of_classes[name]) for name in settings.classes})
    return Calibration(
        settings,
        identity,
        _text(content["data_sha256"]),
        _seed(content["seed"]),
        _scores(content["scores"], levels),
        {name: _scores(rows, levels) for name, rows in of_classes.items()},
        hierarchy,
        as_values(content["values"]) or BYTES,
        _keys(content["keys"], images),
        sizes,
        bool(content["fresh"]),
    )


def _identity(model: Mapping[str, Any]) -> ModelIdentity:
    named, size = model["class_names"], tuple(model["size"])
    found = ModelIdentity(**{**model, "class_names": None if named is None else tuple(named), "size": size})
    texts = (found.name, found.sha256, *(found.class_names or ()))
    fits = all(isinstance(text, str) for text in texts) and isinstance(found.probe, str | None)
    fits = fits and all(_counts(count) for count in (found.num_classes, found.channels, *size))
    if not (fits and len(size) == 2 and isinstance(found.preparation, Mapping)):
        raise ValueError("the model must have a name, a hash, a preparation, classes and a size")
    if found.class_names is not None and len(found.class_names) != found.num_classes:
        raise ValueError("the model must have as many names as classes")
    return found


def _keys(keys: Any, images: int) -> tuple[str, ...]:
    if not len(set(keys)) == len(keys) == images or not all(isinstance(key, str) for key in keys):
        raise ValueError(f"keys must be {images} different hashes")
    return tuple(keys)


def _sizes(sizes: Any) -> tuple[tuple[int, int], ...]:
    if not sizes or not all(
        len(size) == 2 and all(map(_counts, size)) and size[0] * size[1] <= MAX_PIXELS for size in sizes
    ):
        raise ValueError("sizes must be heights and widths of images")
    return tuple((height, width) for height, width in sizes)


def _counts(value: Any) -> bool:
    return type(value) is int and value > 0


def _seed(value: Any) -> int:
    if type(value) is not int:
        raise ValueError(f"a seed is a whole number, not {value!r}")
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(f"text is needed, not {value!r}")
    return value


def _scores(rows: Any, levels: int) -> NDArray[np.uint32]:
    scores = np.array(rows, np.uint32).reshape(-1, levels)
    if scores.max(initial=0) > UNIT:
        raise ValueError("scores must be posteriors")
    return scores
