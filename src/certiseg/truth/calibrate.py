"""Labelled images -> calibration: one noisy pass of each, its score, and what the scores make of it."""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Callable, Iterable, Iterator, Sequence, Sized
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from certiseg.errors import InputError
from certiseg.hierarchy import load_hierarchy
from certiseg.images import ImageLike, open_image
from certiseg.images.values import as_values, values_words
from certiseg.models.segmenter import ModelLike, Segmenter, as_segmenter
from certiseg.noise import image_key
from certiseg.settings import takes
from certiseg.truth.calibration import SEED_BITS, Calibration, require_enough, require_seed
from certiseg.truth.draw import noisy_image, over_images, posterior_of
from certiseg.truth.identity import data_digest, identity_of, unit_digest
from certiseg.truth.scores import image_scores, labelled
from certiseg.truth.settings import CalibrationSettings

if TYPE_CHECKING:
    from certiseg.hierarchy import Hierarchy

Pair = tuple[ImageLike, NDArray[np.integer[Any]] | None]
Scored = tuple[str, str, list[int], dict[str, list[int]]]
"""The hashes of an image and of its labels with it, its scores, and those of its pixels of every chosen class."""


@takes(CalibrationSettings)
def calibrate(
    model: ModelLike,
    images: Iterable[ImageLike],
    labels: Iterable[NDArray[np.integer] | None],
    *,
    seed: int | None = None,
    hierarchy: str | Hierarchy | None = None,
    values: Sequence[Any] | None = None,
    progress: Callable[[int], object] = lambda _: None,
    **settings: Any,
) -> Calibration:
    """Thresholds from labelled images (labels: (H, W) ints, 255 = void) by one noisy pass of each.

    With probability >= 1 - risk over calibration images, image and noise, for every |delta|_2 <= radius chosen without
    knowing the noise, the sets of a new image hold the true class of at least the share `pixels` of its labelled
    pixels. Condition: calibration images and new image are exchangeable; each pass of a new image has fresh noise.
    Further keyword arguments are the fields of `truth.CalibrationSettings`: sigma, radius, risk, pixels, score, ...
    seed: of the noise of the calibration images, fresh by default; recorded. hierarchy: the model's own by default.
    values: what 0 and 1 stand for in the images, as for `cs.sample`; new images are read by it, too.
    """
    chosen = CalibrationSettings(**settings)
    if isinstance(images, Sized):
        require_enough(len(images), chosen)
    pairs = _pairs(images, labels)
    return calibrate_pairs(model, pairs, chosen, seed=seed, hierarchy=hierarchy, values=values, progress=progress)


def calibrate_pairs(
    model: ModelLike,
    pairs: Iterable[Pair],
    settings: CalibrationSettings,
    *,
    seed: int | None = None,
    hierarchy: str | Hierarchy | None = None,
    values: Sequence[Any] | None = None,
    progress: Callable[[int], object] = lambda _: None,
) -> Calibration:
    """The same for pairs of images and labels, each read when it is its turn."""
    segmenter = as_segmenter(model)
    tree = _tree(segmenter, hierarchy)
    if settings.score == "vertex" and tree is None:
        raise InputError("hierarchy must be given for the score vertex, got none")
    scorer = _Scorer(segmenter, settings, tree, seed, values)
    with contextlib.closing(over_images(segmenter, scorer.score, scorer.read(pairs))) as scored:
        for each in scored:
            scorer.take(*each)
            progress(1)
    return scorer.calibration()


class _Scorer:
    """Reads labelled images, scores them and takes the scores, each in their order; no image is kept."""

    def __init__(
        self,
        segmenter: Segmenter,
        settings: CalibrationSettings,
        hierarchy: Hierarchy | None,
        seed: int | None,
        values: Sequence[Any] | None,
    ) -> None:
        self.segmenter, self.settings, self.hierarchy = segmenter, settings, hierarchy
        require_seed(seed)
        self.seed, self.fresh = secrets.randbits(SEED_BITS) if seed is None else int(seed), seed is None
        self.stated, self.values = values, as_values(values)
        self.channels = segmenter.settings.channels
        self.keys: list[str] = []
        self.units: list[str] = []
        self.scores: list[list[int]] = []
        self.of_classes: dict[str, list[list[int]]] = {name: [] for name in settings.classes}
        self.sizes: list[tuple[int, int]] = []

    def read(self, pairs: Iterable[Pair]) -> Iterator[tuple[NDArray[np.float32], NDArray[np.integer], int]]:
        """Pixels, labels and number of every image; all must stand for the same numbers, in as many channels."""
        for number, (image, label) in enumerate(pairs, 1):
            if label is None:
                raise InputError(f"labels must be given for every calibration image, got none for image {number}")
            picture = open_image(image, values=self.stated, channels=self.channels)
            self.values, self.channels = self.values or picture.values, picture.pixels.shape[2]
            if picture.values != self.values:
                known, found = values_words(self.values), values_words(picture.values)
                raise InputError(f"values must be the same for all images, {known}, got {found} for image {number}")
            self.sizes.append((picture.pixels.shape[0], picture.pixels.shape[1]))
            yield picture.pixels, np.array(label), number  # a copy: whoever gives it may use its memory again

    def score(self, pixels: NDArray[np.float32], label: NDArray[np.integer], number: int) -> Scored:
        """Score one image: at several anchors every class of a pixel fits as well as at the worst of them."""
        key, size = image_key(pixels), (pixels.shape[0], pixels.shape[1])
        scores, of_classes = [], []
        for anchor in self.settings.places:
            noisy = noisy_image(pixels, self.settings, seed=self.seed, key=key, anchor=anchor)
            posterior = posterior_of(self.segmenter, noisy, temperature=self.settings.temperature)
            known = labelled(label, size, posterior.num_classes, f"label of image {number}")
            if not known.any():
                raise InputError(
                    f"labels must have a labelled pixel in every image, got none in image {number}; leave it out"
                )
            truth = posterior.scored(self.settings.score, self.hierarchy).of_truth(label, known)
            scores.append(image_scores(truth, self.settings.pixels))
            of_classes.append(self._of_classes(truth, label[known]))
        worst = {name: np.min([at[name] for at in of_classes], axis=0).tolist() for name in of_classes[0]}
        return key, unit_digest(key, label), np.min(scores, axis=0).tolist(), worst

    def take(self, key: str, unit: str, scores: list[int], of_classes: dict[str, list[int]]) -> None:
        """Keep what `score` found of the next image."""
        self.keys.append(key)
        self.units.append(unit)
        self.scores.append(scores)
        for name, found in of_classes.items():
            if found:
                self.of_classes[name].append(found)

    def _of_classes(self, truth: NDArray[np.uint32], label: NDArray[np.integer]) -> dict[str, list[int]]:
        """The scores of the image for its pixels of every chosen class; none where it has no such pixel."""
        found = {}
        for name in self.settings.classes:
            own = truth[label == self._class(name)]
            found[name] = image_scores(own, self.settings.pixels) if len(own) else []
        return found

    def _class(self, name: str) -> int:
        names = self.hierarchy.classes if self.hierarchy is not None else self.segmenter.class_names
        if names is None or name not in names:
            known = "classes that the model names" if names is None else f"one of {', '.join(names[:4])}, ..."
            raise InputError(f"classes must be {known}, got {name!r}")
        return names.index(name)

    def calibration(self) -> Calibration:
        """What the scores make, refused if they are too few or if an image came twice."""
        if not self.sizes or self.channels is None or self.values is None:
            raise InputError("images must be labelled images to calibrate with, got none")
        if len(set(self.keys)) < len(self.keys):  # whatever its labels: the same pixels have the same noise
            raise InputError("images must be different, got one twice: a copy is no further evidence; leave it out")
        if self.hierarchy is not None and self.segmenter.num_classes is not None:
            self.hierarchy.require_classes(self.segmenter.class_names or self.segmenter.num_classes)
        levels = len(self.settings.pixels)
        made = Calibration(
            self.settings,
            identity_of(self.segmenter, self.sizes[0], self.channels),
            data_digest(self.units),
            self.seed,
            np.array(self.scores, np.uint32).reshape(-1, levels),
            {name: np.array(rows, np.uint32).reshape(-1, levels) for name, rows in self.of_classes.items()},
            self.hierarchy,
            self.values,
            tuple(self.keys),
            tuple(sorted(set(self.sizes))),
            self.fresh,
        )
        require_enough(made.images, self.settings, {name: len(rows) for name, rows in made.class_scores.items()})
        return made


def _tree(segmenter: Segmenter, hierarchy: str | Hierarchy | None) -> Hierarchy | None:
    name = segmenter.hierarchy if hierarchy is None else hierarchy
    tree = load_hierarchy(name) if isinstance(name, str) else name
    if tree is not None and (segmenter.class_names or segmenter.num_classes):
        tree.require_classes(segmenter.class_names or segmenter.num_classes or 0)
    return tree


def _pairs(images: Iterable[ImageLike], labels: Iterable[NDArray[np.integer] | None]) -> Iterator[Pair]:
    try:
        yield from zip(images, labels, strict=True)
    except ValueError as error:
        if "zip()" not in str(error):
            raise
        raise InputError("images and labels must be equally many, got more of one; give one label map each") from None
