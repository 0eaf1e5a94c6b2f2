"""The independent checker of calibrated sets: thresholds from the scores, and the sets from one pass drawn again.

This file restates section 13 of docs/design.md with SciPy's distributions and plain sorting. It shares the noise, the
pass and the readers of files with the code that made the sets; ranks, thresholds and sets are its own. Calibration
images are scored again by the code that scored them: that finds other images and numbers, not an error in it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from certiseg.errors import InputError
from certiseg.hierarchy import hierarchy_from_json
from certiseg.models.segmenter import as_segmenter
from certiseg.noise import image_key
from certiseg.truth.answer import TruthSets
from certiseg.truth.calibrate import calibrate_pairs
from certiseg.truth.draw import noisy_image, posterior_of
from certiseg.truth.files import load_calibration, load_sets
from certiseg.verify import Check, Verification
from certiseg.words import PROMISE

if TYPE_CHECKING:
    from certiseg.images import ImageLike
    from certiseg.models.segmenter import ModelLike, Segmenter
    from certiseg.truth.calibration import Calibration

Samples = Iterable[tuple["ImageLike", NDArray[np.integer[Any]] | None]]
"""Images and labels."""
UNIT = 2**31
_NEAR = Fraction(1, 10**9)
"""Relative distance from a whole rank within which floating point does not decide."""


def verify_truth(
    path: str | Path,
    *,
    model: ModelLike | None = None,
    image: ImageLike | None = None,
    samples: Samples | None = None,
) -> Verification:
    """Check the calibrated sets of an image, or a calibration.

    With the model and the image the pass is drawn again. samples: labelled images, those of the calibration among them,
    which are scored again.
    """
    path, notes = Path(path), list[str]()
    try:
        found = load_sets(path) if path.suffix == ".npz" else load_calibration(path)
    except InputError as error:
        return Verification(str(path), (Check("file", False, str(error)),), False)
    segmenter = None if model is None else as_segmenter(model)
    checks = tuple(_checks(found, segmenter, image, samples, notes))
    done = {check.name for check in checks}
    believed = [] if "redraw" in done or not isinstance(found, TruthSets) else ["the sets are what was drawn"]
    believed += [] if "scores" in done else ["scores, hashes and sizes of the calibration images are theirs"]
    return Verification(str(path), checks, "redraw" in done, tuple(notes), ", and ".join(believed))


def _checks(
    found: TruthSets | Calibration,
    segmenter: Segmenter | None,
    image: ImageLike | None,
    samples: Samples | None,
    notes: list[str],
) -> Iterator[Check]:
    yield Check("file", True, "every byte matches its recorded SHA-256")
    calibration = found.calibration if isinstance(found, TruthSets) else found
    content = calibration.content()
    count = len(content["thresholds"])
    right = sum(_follows(row, content, calibration.class_names) for row in content["thresholds"])
    yield Check("thresholds", right == count, f"{right} of {count} levels follow from {calibration.images} scores")
    if segmenter is not None:
        yield _same_model(calibration, segmenter, notes)
    if segmenter is not None and samples is not None:
        yield _scored_again(calibration, segmenter, samples)
    else:
        notes.append(
            "scores, hashes and sizes of the calibration images are taken as they are stored: give the model and the "
            "data set to score them again"
        )
    if content["settings"]["score"] == "vertex" or calibration.model.class_names is None:
        notes.append("the hierarchy is taken as it is stored, except that it is over the classes of the model")
    if not isinstance(found, TruthSets):
        if image is not None:
            notes.append("the image was not used: a calibration is of no single one")
        return
    if found.role != PROMISE:
        notes.append(f"these sets are {found.role}, not a promise; their claim says why")
    elif calibration.settings.sigma or calibration.settings.up_to:
        notes.append("that nobody knew the seed before the image was fixed is taken as it is stored")
    if segmenter is None or image is None:
        notes.append("the pass was not redrawn: give the model and the image to do that")
    else:
        yield _redrawn(found, content, segmenter, image)


def _same_model(calibration: Calibration, segmenter: Segmenter, notes: list[str]) -> Check:
    if segmenter.name != calibration.model.name:
        notes.append(f"the file calls the model {calibration.model.name!r}, here it is {segmenter.name!r}")
    try:
        calibration.require_model(segmenter)
    except InputError as error:
        return Check("model", False, str(error))
    return Check("model", True, f"weights, preparation and classes are those of {calibration.model.sha256[:12]}")


def _scored_again(calibration: Calibration, segmenter: Segmenter, samples: Samples) -> Check:
    """Score the calibration images again from the seed, and compare what the calibration says of them."""
    name = "scores"
    opened = ((calibration.open(image), label) for image, label in samples)
    pairs = ((picture, label) for picture, label in opened if image_key(picture.pixels) in calibration.keys)
    try:
        again = calibrate_pairs(
            segmenter, pairs, calibration.settings, seed=calibration.seed, hierarchy=calibration.hierarchy
        )
    except InputError as error:
        return Check(name, False, str(error))
    stored, found = (dict(zip(made.keys, made.scores.tolist(), strict=True)) for made in (calibration, again))
    same = sum(found.get(key) == scores for key, scores in stored.items())
    rest = all(
        of(calibration) == of(again)
        for of in (
            lambda made: made.sizes,
            lambda made: made.data_sha256,
            lambda made: {name: sorted(scores.tolist()) for name, scores in made.class_scores.items()},
        )
    )
    told = f"{same} of {len(stored)} calibration images have the same scores"
    return Check(name, rest and same == len(stored), told if rest else f"{told}; labels, sizes or classes are others")


def _follows(row: Mapping[str, Any], content: Mapping[str, Any], names: tuple[str, ...]) -> bool:
    """Whether the thresholds of a level are those that its scores make."""
    settings, place = content["settings"], content["settings"]["pixels"].index(row["pixels"])
    overall = _threshold(content["scores"], place, _miss(settings, row["risk"]))
    expected = [overall] * len(names)
    for name, scores in content["class_scores"].items():
        own = _threshold(scores, place, _miss(settings, row["risk"] / len(settings["classes"])))
        expected[names.index(name)] = {min(a, b) for a in own for b in overall}
    return len(row["thresholds"]) == len(names) and all(
        round(value * UNIT) in allowed for value, allowed in zip(row["thresholds"], expected, strict=True)
    )


def _miss(settings: Mapping[str, Any], risk: float) -> Fraction:
    """The chance of a miss without attack that no covered attack raises above the risk."""
    from scipy.stats import norm

    threat = settings["threat"]
    along = settings["up_to"] / (settings["anchors"] * threat["scale"]) if settings["up_to"] else 0.0
    moved = (
        settings["radius"] / min(settings["sigma"], float(np.float32(settings["sigma"]))) if settings["radius"] else 0
    )
    if not (along or moved):
        return Fraction(repr(float(risk)))
    if _normal(threat):
        return Fraction(float(norm.sf(norm.isf(risk) + along)))
    return Fraction(math.exp(-along) * float(norm.sf(norm.isf(risk) + moved)))


def _normal(threat: Mapping[str, Any]) -> bool:
    """Gamma goes both ways, by a normal law; fog and the like go one way, by an exponential one."""
    return bool(threat["name"] == "gamma")


def _threshold(scores: list[list[int]], place: int, miss: Fraction) -> set[int]:
    """The score of rank floor((J + 1) miss), and the one before where that is a whole number but for rounding."""
    ordered = sorted(row[place] for row in scores)
    exact = (len(ordered) + 1) * miss
    ranks = {math.floor(exact), math.floor(exact * (1 - _NEAR))}
    return {ordered[rank - 1] for rank in ranks if rank >= 1}


def _redrawn(found: TruthSets, content: Mapping[str, Any], segmenter: Segmenter, image: ImageLike) -> Check:
    """Compare every set with one of a pass that is drawn again from the seed."""
    calibration, name = found.calibration, "redraw"
    try:
        calibration.require_model(segmenter)
        pixels = calibration.open(image).pixels
    except InputError as error:
        return Check(name, False, str(error))
    if image_key(pixels) != found.image_key:
        return Check(name, False, "the image is not the one the sets are of")
    if pixels.shape[:2] != found.size.shape:
        return Check(name, False, f"the image has {pixels.shape[:2]} pixels, and there are sets for {found.size.shape}")
    noisy = noisy_image(pixels, calibration.settings, seed=found.seed, key=found.image_key)
    posterior = posterior_of(segmenter, noisy, temperature=calibration.settings.temperature).everywhere()
    level = next(row for row in content["thresholds"] if (row["risk"], row["pixels"]) == found.level)
    least = np.array([round(value * UNIT) for value in level["thresholds"]], np.int64)
    same = (_fits(posterior.astype(np.int64), content) >= least) == found.members
    right = int(same.all(axis=2).sum())
    told = f"the sets of {right:,} of {found.size.size:,} pixels are the same"
    return Check(name, right == found.size.size, told)


def _fits(posterior: NDArray[np.int64], content: Mapping[str, Any]) -> NDArray[np.int64]:
    """How well every class fits, from the posteriors, by plain sorting."""
    score = content["settings"]["score"]
    if score == "posterior":
        return posterior
    if score == "adaptive":
        order = np.argsort(-posterior, axis=2, kind="stable")
        ranked = np.take_along_axis(posterior, order, 2)
        before = np.empty_like(posterior)
        np.put_along_axis(before, order, np.cumsum(ranked, axis=2) - ranked, 2)
        return UNIT - np.minimum(before, UNIT)
    return _vertex_fits(posterior, content["hierarchy"])


def _vertex_fits(posterior: NDArray[np.int64], tree: Mapping[str, Any]) -> NDArray[np.int64]:
    """1 - the posterior of the largest vertex on the path of the best class that leaves a class out."""
    hierarchy = hierarchy_from_json(dict(tree), source="the calibration")
    flat = posterior.reshape(-1, posterior.shape[2])
    fits, best = np.empty_like(flat), flat.argmax(axis=1)
    for leaf in np.unique(best).tolist():
        rows = best == leaf
        paths = [set(np.flatnonzero(hierarchy.members[vertex]).tolist()) for vertex in hierarchy.ancestors[leaf]]
        for index in range(flat.shape[1]):
            without = [members for members in paths if index not in members]
            largest = max(without, key=len, default=set())
            fits[rows, index] = UNIT - np.minimum(flat[rows][:, sorted(largest)].sum(axis=1), UNIT)
    return fits.reshape(posterior.shape)
