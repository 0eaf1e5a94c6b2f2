"""Numbers in promises, rounded so that the text never says more than was proven."""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal

_EXACT = 1e-6

PROMISE, COMPARISON, EXPLORATION = "promise", "comparison", "exploration"
"""What was fixed beforehand and spends alpha; what is shown from the same draws; what was chosen by looking at them."""
LOW_AGREEMENT = 0.8
"""Below it a certificate says little about the model that people know: noise has changed what it answers."""


def rounded_down(value: float, digits: int) -> str:
    """A number with so many digits behind the point, never above its value."""
    return str(Decimal(value).quantize(Decimal(1).scaleb(-digits), ROUND_FLOOR))


def no_more(value: float, digits: int = 0) -> str:
    """A largest value as people read it, rounded down unless it is the rounded one but for floating point."""
    return f"{math.floor(value * 10**digits + _EXACT) / 10**digits:g}"


def no_less(value: float, digits: int = 0) -> str:
    """A least value as people read it, rounded up."""
    return f"{math.ceil(value * 10**digits - _EXACT) / 10**digits:g}"


def one_digit_above(value: float) -> str:
    """A tiny number with one digit, never below its value: 1.2e-30 is 2e-30."""
    return f"{Context(prec=1, rounding=ROUND_CEILING).create_decimal(Decimal(value)):e}"


def confidence(alpha: float) -> str:
    """1 - alpha without rounding: a probability that is below one is never printed as one."""
    return format((Decimal(1) - Decimal(repr(float(alpha)))).normalize(), "f")


def promise_for(correction: str, *, alpha: float, k: int, images: int | None = None) -> str:
    """What a correction promises about the certified pixels per image, or of so many images at once, in a few words."""
    scope = "per image" if images is None else f"for all {images} images at once"
    if correction == "by":
        return f"expected share of false ones among the certified at most {alpha:g} {scope}"
    if correction == "kfwer" and k > 1:
        few = f"fewer than {k} false ones per image{'' if images is None else f', {scope},'}"
        return f"{few} with probability {confidence(alpha)}"
    return f"guaranteed {scope} with probability {confidence(alpha)}"


def agreement_words(agreement: float | None) -> str:
    """How far certified labels agree with the prediction without noise, and a warning where that is little."""
    if agreement is None or math.isnan(agreement):
        return "agreement with the noise-free prediction: not known"
    told = f"{rounded_down(100 * agreement, 1)} % of the certified pixels agree with the noise-free prediction"
    if agreement >= LOW_AGREEMENT:
        return told
    return (
        f"{told}. WARNING: noise of this size changes what the model answers; the certificate holds for the answers "
        "under noise, which are not those you know. Train with noise, use --denoiser or a smaller sigma"
    )
