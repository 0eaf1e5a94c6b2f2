"""One rendered street at the ends of its certified ranges, and what is certified all the way there.

python -m experiments.threat_picture --out docs/images/threats.png
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from PIL import Image

from certiseg.archive import write_atomically
from certiseg.certificate import Certificate
from certiseg.certify import certify
from certiseg.datasets import open_dataset
from certiseg.errors import InputError
from certiseg.images import read_image
from certiseg.models.load import load_model
from certiseg.render.colours import colour_vertices
from certiseg.render.pictures import beside, captioned, legend, legend_panel, photograph, stacked
from certiseg.sampling import sample
from experiments.threat_results import TAU, cases

SHOWN = ("dark", "fog", "flat", "blur")
WIDTH = 320


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m experiments.threat_picture", description=__doc__)
    parser.add_argument("--model", default="compact", help="what `certiseg certify --model` takes")
    parser.add_argument("--scene", type=int, default=0, help="number of a test scene of streets (default: 0)")
    parser.add_argument("-n", type=int, default=100, help="estimation draws (default: 100)")
    parser.add_argument("--out", required=True, help="PNG file to write")
    args = parser.parse_args(arguments)
    scenes = open_dataset("streets", split="test")
    if not 0 <= args.scene < len(scenes):
        raise InputError(f"--scene must be in 0..{len(scenes) - 1}, got {args.scene}")
    pixels, model = read_image(scenes[args.scene].image), load_model(args.model)
    columns, last = [captioned(_small(photograph(pixels)), "as it is")], None
    for name in SHOWN:
        threat = cases()[name].threat
        last = certify(sample(model, pixels, sigma=0.0, threat=threat, n=args.n), model.hierarchy, tau=TAU)
        end = photograph(threat.apply(pixels, last.range[1]))
        told = f"certified on the way: {rounded_share(last)}"
        columns.append(stacked([captioned(_small(end), last.extent), captioned(_small(_labels(last)), told)]))
    assert last is not None
    key = legend_panel(legend(last.label_shares(), last.hierarchy, most=10), height=columns[0].height - 16, width=WIDTH)
    columns[0] = stacked([columns[0], captioned(key, f"labels of the last column ({last.votes.threat.name})")])
    with write_atomically(args.out) as file:
        beside(columns).save(file, "PNG", optimize=True)
    return 0


def rounded_share(certificate: Certificate) -> str:
    """The share of the pixels that are certified, rounded down."""
    return f"{int(1000 * (1 - certificate.abstain_rate)) / 10:.1f} %"


def _labels(certificate: Certificate) -> Image.Image:
    return Image.fromarray(colour_vertices(certificate.vertex, certificate.hierarchy))


def _small(picture: Image.Image) -> Image.Image:
    return picture.resize((WIDTH, round(WIDTH * picture.height / picture.width)), Image.Resampling.BILINEAR)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except InputError as error:
        sys.exit(f"threat_picture: error: {error}")
