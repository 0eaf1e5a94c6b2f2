"""How many bytes kept label maps (`keep_maps`) take, by image.

python -m experiments.kept_maps --every 40 [--root ../shared/data/camvid]
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

import numpy as np

from certiseg.datasets import open_dataset
from certiseg.errors import InputError
from certiseg.models.load import load_model
from certiseg.models.segmenter import Segmenter
from certiseg.sampling import sample


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m experiments.kept_maps", description=__doc__)
    parser.add_argument("--model", default="compact", help="what `certiseg certify --model` takes")
    parser.add_argument("--sigma", type=float, default=0.25)
    parser.add_argument("--draws", type=int, default=10, help="label maps of each image (default: 10)")
    parser.add_argument("--every", type=int, default=40, metavar="K", help="every K-th image (default: 40)")
    parser.add_argument("--root", help="where CamVid lies; left out, the street scenes alone are taken")
    args = parser.parse_args(arguments)
    model = load_model(args.model)
    print("| images | size | bytes of a label map: mean | least | most | of 100 draws |\n|---|---|---|---|---|---|")
    for name, root in (("streets", None), *((("camvid", args.root),) if args.root else ())):
        data = open_dataset(name, root, split="test")
        images = [data[index].image for index in range(0, len(data), args.every)]
        found = np.concatenate([bytes_of(model, image, args.sigma, args.draws) for image in images])
        height, width = images[0].shape[:2]
        cells = [f"{len(images)} of {name}", f"{width}x{height}", *(f"{v:,.0f}" for v in (found.mean(), found.min()))]
        print(f"| {' | '.join(cells)} | {found.max():,} | {found.mean() / 1e4:.2f} MB |")
    return 0


def bytes_of(model: Segmenter, image: np.ndarray, sigma: float, draws: int) -> list[int]:
    """Bytes of every kept label map of an image."""
    votes = sample(model, image, sigma=sigma, n0=1, n=draws, keep_maps=True)
    assert votes.record is not None
    assert votes.record.maps is not None
    return [len(content) for content in votes.record.maps.values()]


if __name__ == "__main__":
    try:
        sys.exit(main())
    except InputError as error:
        sys.exit(f"kept_maps: error: {error}")
