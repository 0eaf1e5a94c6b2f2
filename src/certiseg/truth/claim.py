"""The promise of calibrated sets in plain words: what holds, with which probability, over what, and what it needs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from certiseg.claims import file_units
from certiseg.images.values import BYTES, Values
from certiseg.words import confidence, no_more, rounded_down

if TYPE_CHECKING:
    from certiseg.truth.settings import CalibrationSettings


def claim_of(
    settings: CalibrationSettings,
    *,
    level: tuple[float, float],
    images: int,
    of_classes: Mapping[str, int],
    against: Sequence[str] = (),
    doubts: Sequence[str] = (),
    shape: tuple[int, int, int] | None = None,
    values: Values = BYTES,
) -> str:
    """What is promised about the sets of an image to come, with all conditions.

    against: why these sets are no promise; doubts: what speaks against the conditions. shape: height, width and
    channels of the image, where it is known; values: what 0 and 1 stand for in its file.
    """
    risk, pixels = level
    opening = "" if against else "This is a promise about the truth. "
    lines = [
        *against,
        f"{opening}With probability at least {confidence(risk)} - over the {images} calibration images, the "
        f"image and the noise together - the sets hold the true class of at least {no_more(100 * pixels, 4)} % of "
        f"the image's labelled pixels{_whatever(settings)}.",
        *_covered(settings, shape, values),
        *_of_classes(settings, risk, pixels, of_classes),
        _conditions(settings),
        *doubts,
        "It says nothing about a single pixel, about a single image, or about pixels that nobody would label; the "
        "images that are missed may be missed by much.",
    ]
    return "\n".join(lines)


def _whatever(settings: CalibrationSettings) -> str:
    """The attack that is covered."""
    l2 = f"perturbation of l2 size up to R = {rounded_down(settings.radius, 4)} (pixel values in [0, 1])"
    unseen = "chosen without knowing the noise"
    if settings.threat.law == "none":
        return f", whatever the {l2}, {unseen}" if settings.radius else ""
    low = f"-{rounded_down(settings.up_to, 4)}" if settings.threat.law == "normal" else "0"
    moved = f"{settings.threat.words(settings.up_to)} (every t in [{low}, {rounded_down(settings.up_to, 4)}])"
    return (
        f", under {moved}" + (f" and whatever the {l2} before or after it" if settings.radius else "") + f", {unseen}"
    )


def _covered(settings: CalibrationSettings, shape: tuple[int, int, int] | None, values: Values) -> list[str]:
    lines = []
    if settings.radius and shape is not None:
        lines += file_units(settings.radius, settings.sigma, shape, values)
    if settings.threat.law != "none":
        lines.append(
            f"The threat is {settings.threat.describe()}: this and nothing else happens to the image, before it is "
            "rounded to 8 bits."
        )
    return lines


def _of_classes(settings: CalibrationSettings, risk: float, pixels: float, of_classes: Mapping[str, int]) -> list[str]:
    if not of_classes:
        return []
    each = confidence(settings.class_risk(risk))
    named = ", ".join(f"{name} ({count} calibration images)" for name, count in of_classes.items())
    return [
        f"A second promise, with probability {each} each, among the images that contain the class: the sets hold it at "
        f"no less than {no_more(100 * pixels, 4)} % of its own pixels, for {named}. Each of the two promises spends a "
        f"risk of {risk:g}."
    ]


def _conditions(settings: CalibrationSettings) -> str:
    noisy = settings.sigma > 0 or settings.threat.law != "none"
    noise = " The noise of each image is fresh, and nobody knows it before the image is fixed." if noisy else ""
    return (
        "Conditions: the image and the calibration images are exchangeable - drawn alike from one source, not chosen. "
        "Frames of the same drives speak for further frames of those drives; for new drives whole drives must be the "
        f"units.{noise} Model, score and settings were chosen without looking at the calibration images; trying "
        "several and keeping the best is exploration. The risk is a mean over calibrations, too: what one calibration "
        "reaches over many images scatters around it."
    )
