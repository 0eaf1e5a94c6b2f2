"""One rendered street: its objects with their certified bounds, under perturbations and as the focus is lost.

Blur, since `compact` undoes uniform fog by bringing every image to one contrast.

python -m experiments.street_picture --out docs/images/street.png
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
from PIL import Image

import certiseg as cs
from certiseg import measures, threats
from certiseg.archive import write_atomically
from certiseg.bounds import Bounds
from certiseg.datasets import open_dataset
from certiseg.errors import InputError
from certiseg.images import read_image
from certiseg.render.colours import colour_vertices
from certiseg.render.objects import outlined
from certiseg.render.pictures import beside, captioned, legend, legend_panel, photograph, stacked

TAU, ALPHA, SIGMA = 0.75, 0.001, 0.25
UP_TO = 2.0
"""Where the blur has a deviation of 2 pixels."""
BLUR = threats.blur(scale=UP_TO / float(np.log(1 / (2 * (1 - TAU)))))
LEAST = 0.5
"""Objects with a smaller bound have a question mark."""


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m experiments.street_picture", description=__doc__)
    parser.add_argument("--model", default="compact", help="what `certiseg certify --model` takes")
    parser.add_argument("--scene", type=int, default=4, help="number of a test scene of streets (default: 4)")
    parser.add_argument("-n", type=int, default=100, help="estimation draws (default: 100)")
    parser.add_argument("--least", type=int, default=200, help="least area of an object, in pixels (default: 200)")
    parser.add_argument("--out", required=True, help="PNG file to write")
    args = parser.parse_args(arguments)
    scenes = open_dataset("streets", split="test")
    if not 0 <= args.scene < len(scenes):
        raise InputError(f"--scene must be in 0..{len(scenes) - 1}, got {args.scene}")
    pixels, model = read_image(scenes[args.scene].image), cs.load_model(args.model)
    hierarchy = cs.load_hierarchy("camvid")
    asked = [measures.kept(), measures.objects(*hierarchy.things, least=args.least)]
    common: dict[str, Any] = {"n": args.n, "hierarchy": hierarchy, "measures": asked}
    rows = [
        _row(pixels, cs.sample(model, pixels, sigma=SIGMA, **common), "any perturbation of l2 size up to"),
        _row(
            BLUR.apply(pixels, UP_TO),
            cs.sample(model, pixels, sigma=0.0, threat=BLUR, up_to=UP_TO, tau=TAU, **common),
            "all the way to",
        ),
    ]
    with write_atomically(args.out) as file:
        stacked(rows).save(file, "PNG", optimize=True)
    return 0


def _row(shown: np.ndarray, votes: cs.Votes, words: str) -> Image.Image:
    """The image with its objects, the certified labels, and their legend."""
    hierarchy = cs.load_hierarchy("camvid")
    certificate = cs.certify(votes, hierarchy, method="nested", tau=TAU, alpha=ALPHA)
    bounds = cs.bound(votes, tau=TAU, alpha=ALPHA)
    objects = captioned(outlined(photograph(shown), _objects(bounds)), f"{words} {certificate.extent}: objects kept")
    kept = next(value for measure, value in zip(bounds.measures, bounds.lower, strict=True) if measure.kind == "kept")
    told = f"labels that hold; {int(1000 * kept) / 10:.1f} % of the pixels keep their class at once"
    labels = captioned(Image.fromarray(colour_vertices(certificate.vertex, hierarchy)), told)
    entries = legend(certificate.label_shares(), hierarchy, most=11)
    key = legend_panel(entries, height=labels.height)
    return beside([objects, labels, key])


def _objects(bounds: Bounds) -> list[tuple[np.ndarray, str]]:
    """The mask of every object that is found, and how much of it keeps its label."""
    found = [
        (measure, value)
        for measure, value in zip(bounds.measures, bounds.lower.tolist(), strict=True)
        if measure.kind == "share" and measure.source == "candidate"
    ]
    return [
        (measure.inside.mask, f"{measure.label} {int(100 * value)} %" if value >= LEAST else "?")
        for measure, value in found
    ]


if __name__ == "__main__":
    try:
        sys.exit(main())
    except InputError as error:
        sys.exit(f"street_picture: error: {error}")
