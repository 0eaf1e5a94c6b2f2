"""python -m streets --out DIR: render street scenes as a data set that `certiseg` reads as `folder`."""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import numpy.typing as npt
from PIL import Image

from streets import CLASSES, lane, street

SHIPPED = {
    "test": (1, 2, 4, 7, 10, 21, 22, 33, 47, 63, 69, 74),
    "val": (16, 31, 68, 84),
    "train": (9, 20, 27, 39, 59, 64, 77, 80),
}
"""The seeds of the scenes that certiseg ships: sun, cloud and dusk, bare and green trees, people and vehicles."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m streets", description=__doc__)
    parser.add_argument("--out", required=True, type=Path, metavar="DIR", help="where to write")
    parser.add_argument("--count", type=int, metavar="N", help="N other scenes than the 24 shipped ones, as PNG")
    parser.add_argument("--first", type=int, default=20_000, metavar="SEED", help="seed of the first of them")
    parser.add_argument("--split", default="", metavar="NAME", help="the sub-folder for them, for example train")
    args = parser.parse_args()
    if args.count is None:
        for split, seeds in SHIPPED.items():
            for seed in seeds:
                write(args.out / split, seed, "jpg")
    else:
        for seed in range(args.first, args.first + args.count):
            write(args.out / args.split, seed, "png")
    (args.out / "classes.txt").write_text("".join(f"{name}\n" for name in CLASSES), encoding="utf-8")
    return 0


def write(folder: Path, seed: int, suffix: str) -> None:
    """One scene: its image, its label map and the mask of the camera's own lane."""
    name = f"street_{seed:05d}"
    image, label = street(seed)
    save(image, folder / "images" / f"{name}.{suffix}")
    save(label, folder / "labels" / f"{name}.png")
    save(lane(seed), folder / "lanes" / f"{name}.png")


def save(pixels: npt.NDArray[np.uint8] | npt.NDArray[np.bool_], path: Path) -> None:
    """An image file that is the same for the same pixels and the same Pillow."""
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(pixels).save(path, optimize=True, quality=95)


if __name__ == "__main__":
    raise SystemExit(main())
