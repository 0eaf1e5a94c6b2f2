"""What calibrated sets reach on labelled images, without attack and under attacks inside and beyond what is covered."""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from certiseg.attack.search import find_perturbation, perturbed_image
from certiseg.attack.settings import AttackSettings
from certiseg.attack.targets import Target
from certiseg.errors import InputError
from certiseg.images import ImageLike, Picture
from certiseg.noise import image_key
from certiseg.render.colours import BLUE, FAINT, ORANGE
from certiseg.render.figures import new_figure
from certiseg.scores import boundary
from certiseg.stats.conformal import enough_of
from certiseg.truth.draw import over_images
from certiseg.truth.scores import labelled
from certiseg.words import confidence

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from certiseg.models.segmenter import Segmenter
    from certiseg.truth.answer import TruthSets
    from certiseg.truth.calibration import Calibration
    from certiseg.truth.settings import CalibrationSettings

_Answered = tuple[str, NDArray[np.integer[Any]], NDArray[np.bool_], list["TruthSets"]]
"""The name of an image, its labels, where they are known, and its sets at every multiple; none without such labels."""
REACHED = "reached"
"""Kind of the file."""
AREAS = ((0, 100), (100, 1_000), (1_000, 10_000), (10_000, None))
"""Pixels of connected parts of the ground truth that are counted together."""


@dataclass
class Group:
    """Pixels that are counted together."""

    pixels: int = 0
    held: int = 0
    """Pixels whose set holds the true class."""
    classes: int = 0
    """Classes in all their sets."""

    def add(self, held: NDArray[np.bool_], sizes: NDArray[np.integer], where: NDArray[np.bool_]) -> None:
        self.pixels += int(where.sum())
        self.held += int((held & where).sum())
        self.classes += int(sizes[where].sum())

    def row(self) -> dict[str, Any]:
        whole = max(self.pixels, 1)
        return {"pixels": self.pixels, "held": self.held / whole, "mean_set_size": self.classes / whole}


@dataclass
class Reached:
    """What was reached under one attack: `multiple` times what is covered, 0 for none."""

    multiple: float
    promised: float
    images: list[dict[str, Any]] = field(default_factory=list)
    groups: dict[str, Group] = field(default_factory=dict)
    left_out: int = 0
    """Images of the calibration, about which nothing is promised."""

    @property
    def coverage(self) -> float:
        """Share of the images with enough pixels whose set holds the true class; what the promise is about."""
        return float(np.mean([each["covered"] for each in self.images]))

    def summary(self) -> dict[str, Any]:
        means = {key: float(np.mean([each[key] for each in self.images])) for key in ("mean_set_size", "singletons")}
        groups = {name: group.row() for name, group in self.groups.items() if group.pixels}
        count = {
            "images": len(self.images),
            "left_out": self.left_out,
            "coverage": self.coverage,
            "promised": self.promised,
        }
        return {"multiple": self.multiple, **count, **means, "groups": groups, "by_image": self.images}


def evaluate_sets(
    calibration: Calibration,
    segmenter: Segmenter,
    samples: Iterable[tuple[str, ImageLike, NDArray[np.integer] | None]],
    *,
    multiples: Sequence[float] = (0.0,),
    attack: AttackSettings | None = None,
    keep: Callable[[str, TruthSets], object] = lambda _name, _sets: None,
    progress: Callable[[int], object] = lambda _: None,
) -> list[Reached]:
    """What is reached at every multiple of what the calibration covers.

    For l2 a perturbation is searched by gradients against the true classes, without the noise that judges it; along a
    threat its parameter is set. Every pass has fresh noise. Images of the calibration are left out.
    keep: takes the sets of every image without attack.
    """
    settings = calibration.settings
    if any(not (np.isfinite(m) and m >= 0) for m in multiples):
        raise InputError(f"multiples must be numbers >= 0, got {list(multiples)}")
    if max(multiples) > 0 and not (settings.radius or settings.up_to):
        raise InputError("multiples must be 0 for a calibration that covers no perturbation; calibrate with a radius")
    calibration.require_model(segmenter)
    left_out = list[str]()

    def read() -> Iterator[tuple[NDArray[np.float32], str, NDArray[np.integer]]]:
        for name, image, label in samples:
            if label is None:
                raise InputError(f"labels must be given for every image, got none for {name}")
            pixels = calibration.open(image).pixels
            if image_key(pixels) in calibration.keys:
                left_out.append(name)
                progress(1)
                continue
            yield pixels, name, np.array(label)  # a copy, as in calibrate

    def work(pixels: NDArray[np.float32], name: str, label: NDArray[np.integer]) -> _Answered:
        known = labelled(label, pixels.shape[:2], calibration.model.num_classes, f"label of {name}")
        if not known.any():
            return name, label, known, []
        moved = (attacked(settings, segmenter, pixels, label, known, multiple, attack) for multiple in multiples)
        sets = [calibration.answer(segmenter, Picture(each, calibration.values)) for each in moved]
        return name, label, known, sets

    found = [Reached(multiple, 1 - settings.risk[0]) for multiple in multiples]
    attacks = max(multiples) > 0  # which take all threads and much memory
    with contextlib.closing(over_images(segmenter, work, read(), alone=attacks)) as answered:
        for name, label, known, answers in answered:
            masks = _masks(label, known, calibration.class_names) if answers else {}
            for reached, sets in zip(found, answers, strict=False):
                if reached.multiple == 0:
                    keep(name, sets)
                held, sizes = sets.holds(label) & known, sets.size
                reached.images.append(_image(name, held, sizes, known, settings.pixels[0]))
                for group, where in masks.items():
                    reached.groups.setdefault(group, Group()).add(held, sizes, where)
            progress(1)
    if not found[0].images:
        of_calibration = f", and {len(left_out)} of the calibration" if left_out else ""
        raise InputError(f"images must be labelled images to evaluate, got none with a labelled pixel{of_calibration}")
    return [replace(reached, left_out=len(left_out)) for reached in found]


def _image(
    name: str, held: NDArray[np.bool_], sizes: NDArray[np.integer], known: NDArray[np.bool_], share: float
) -> dict[str, Any]:
    count = int(known.sum())
    return {
        "name": name,
        "labelled": count,
        "covered": int(held.sum()) >= enough_of(count, share),
        "held": int(held.sum()) / count,
        "mean_set_size": float(sizes.mean()),
        "singletons": float((sizes == 1).mean()),
    }


def attacked(
    settings: CalibrationSettings,
    segmenter: Segmenter,
    pixels: NDArray[np.float32],
    label: NDArray[np.integer],
    known: NDArray[np.bool_],
    multiple: float,
    attack: AttackSettings | None = None,
    *,
    seed: int | None = None,
) -> NDArray[np.float32]:
    """The image under an attack of so many times what the settings cover; seed: of the noise of the search."""
    if multiple == 0:
        return pixels
    if settings.threat.law != "none":
        return settings.threat.apply(pixels, multiple * settings.up_to)
    assert segmenter.num_classes is not None, "known after one answer"
    allowed = np.arange(segmenter.num_classes) == np.where(known, label, 0)[..., None]
    size = multiple * settings.radius
    delta = find_perturbation(
        segmenter,
        pixels,
        Target("all", known, allowed),
        size=size,
        sigma=settings.sigma,
        attack=attack or AttackSettings(restarts=1),
        seed=secrets.randbits(64) if seed is None else seed,
    )
    return perturbed_image(pixels, delta, size=size, noise="gaussian")


def _masks(label: NDArray[np.integer], known: NDArray[np.bool_], names: Sequence[str]) -> dict[str, NDArray[np.bool_]]:
    """Pixels by class, by the area of the connected part of the truth that they belong to, and near boundaries."""
    from scipy.ndimage import label as connected

    near = boundary(label)
    masks = {"within 10 pixels of a boundary": known & near, "further from boundaries": known & ~near}
    areas = np.zeros(label.shape, np.int64)
    for index in np.unique(label[known]).tolist():
        own = known & (label == index)
        masks[f"class {names[index]}" if not names[index].startswith("class ") else names[index]] = own
        parts, _ = connected(own, np.ones((3, 3)))
        areas[own] = np.bincount(parts.ravel())[parts[own]]
    for low, high in AREAS:
        words = f"parts of {low:,} pixels and more" if high is None else f"parts of {low:,} to {high - 1:,} pixels"
        masks[words] = known & (areas >= low) & ((areas < high) if high is not None else True)
    return masks


def page(found: Sequence[Reached], calibration: Calibration, *, data: str) -> str:
    """The figures in Markdown."""
    promised, left_out = confidence(calibration.settings.risk[0]), ""
    if found[0].left_out:
        left_out = f" ({found[0].left_out} were, and are left out)"
    lines = [
        f"# Sets that hold the truth: {data}",
        "",
        f"Model {calibration.model.name} ({calibration.model.sha256[:12]}), {calibration.images} calibration images, "
        f"{calibration.settings.covered}, {len(found[0].images)} images here, none of them among those"
        f"{left_out}. Coverage of one calibration scatters around the promise.",
        "",
        "| attack, in multiples of what is covered | covered images | promised | mean set size | one class |",
        "|---|---|---|---|---|",
    ]
    for each in found:
        row, inside = each.summary(), f"at least {promised}" if each.multiple <= 1 else "nothing"
        lines.append(
            f"| {each.multiple:g} | {row['coverage']:.3f} | {inside} | {row['mean_set_size']:.2f} | "
            f"{row['singletons']:.1%} |"
        )
    for each in found:
        lines += [
            "",
            f"## Attack at {each.multiple:g}",
            "",
            "| pixels | number | true class in the set | mean set size |",
        ]
        lines += ["|---|---|---|---|"]
        for name, row in each.summary()["groups"].items():
            lines.append(f"| {name} | {row['pixels']:,} | {row['held']:.1%} | {row['mean_set_size']:.2f} |")
    return "\n".join([*lines, "", calibration.claim(), ""])


def draw_coverage(found: Sequence[Reached]) -> Figure:
    """Coverage over the perturbation, with the promise as a line."""
    drawn, ((axes,),) = new_figure(6, 3.6)
    ordered = sorted(found, key=lambda each: each.multiple)
    axes.axvspan(0, 1, color=FAINT, alpha=0.15, label="covered")
    axes.plot([0, 1], [ordered[0].promised] * 2, color=ORANGE, label="promised")
    axes.plot(
        [each.multiple for each in ordered], [each.coverage for each in ordered], "o-", color=BLUE, label="reached"
    )
    axes.set(xlabel="perturbation, in multiples of what is covered", ylabel="covered images", ylim=(0, 1.02))
    axes.legend(loc="lower left")
    return drawn


def as_json(found: Sequence[Reached], calibration: Calibration) -> dict[str, Any]:
    """All of it for programs, with the whole calibration."""
    return {"calibration": calibration.content(), "reached": [each.summary() for each in found]}
