"""What helps a network that never saw noise: certified shares with and without each remedy, on the same images.

python -m experiments.remedies --weights runs/clean/last.safetensors --root ../shared/data/camvid
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from certiseg.archive import write_atomically
from certiseg.certificate import Certificate
from certiseg.certify import certify
from certiseg.datasets import open_dataset
from certiseg.errors import InputError
from certiseg.hierarchy import load_hierarchy
from certiseg.models.load import load_model
from certiseg.models.segmenter import Segmenter
from certiseg.sampling import sample
from certiseg.scores import score
from certiseg.settings import Method
from certiseg.training.adapt import adapt_normalisation, noisy_accuracy

SIGMAS = (0.1, 0.25)
TAU, ALPHA = 0.75, 0.001
ADAPTED_FROM = 64


@dataclass(frozen=True)
class Outcome:
    """One network at one sigma: accuracy of single noisy predictions, and what of the images is certified."""

    network: str
    sigma: float
    accuracy: float
    segcertify: float
    nested: float
    cig: float


@dataclass(frozen=True)
class Scene:
    """A test image in [0, 1] with its label map."""

    pixels: NDArray[np.float32]
    label: NDArray[np.uint8]


def networks(
    weights: str, unlabelled: Sequence[NDArray[np.float32]], *, sigma: float
) -> Iterator[tuple[str, Segmenter]]:
    """The clean network as it is, behind the denoiser, adapted at this sigma; and `compact` to compare with."""
    yield "clean network", load_model(f"compact:{weights}")
    yield "with `--denoiser`", load_model(f"compact:{weights}").denoised(sigma=sigma)
    adapted = load_model(f"compact:{weights}")
    for _ in adapt_normalisation(adapted, unlabelled, sigma=sigma):
        pass
    yield "after `adapt`", adapted
    yield "`compact`, trained under noise", load_model("compact")


def measure(name: str, segmenter: Segmenter, scenes: Sequence[Scene], *, sigma: float, n: int) -> Outcome:
    """Accuracy under noise, the share that segcertify and nested certify, and the gain of nested."""
    hierarchy = load_hierarchy("camvid")
    certificates: dict[Method, list[Certificate]] = {"segcertify": [], "nested": []}
    for seed, scene in enumerate(scenes):
        votes = sample(segmenter, scene.pixels, sigma=sigma, n=n, seed=seed)
        for method, made in certificates.items():
            made.append(certify(votes, hierarchy, method=method, tau=TAU, alpha=ALPHA))
    labels = [scene.label for scene in scenes]
    scores = {method: score(made, labels) for method, made in certificates.items()}
    return Outcome(
        network=name,
        sigma=sigma,
        accuracy=noisy_accuracy(segmenter, [scene.pixels for scene in scenes], labels, sigma=sigma),
        segcertify=1 - scores["segcertify"].abstain,
        nested=1 - scores["nested"].abstain,
        cig=scores["nested"].cig,
    )


def table(outcomes: Sequence[Outcome]) -> str:
    """The outcomes as a Markdown table."""
    lines = ["| sigma | network | accuracy under noise | certified, segcertify | certified, nested | CIG, nested |"]
    lines.append("|---|---|---|---|---|---|")
    for row in outcomes:
        shares = " | ".join(f"{share:.1%}" for share in (row.accuracy, row.segcertify, row.nested))
        lines.append(f"| {row.sigma:g} | {row.network} | {shares} | {row.cig:.3f} |")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure all, print the table, and write the page if asked."""
    parser = argparse.ArgumentParser(prog="python -m experiments.remedies", description=__doc__)
    parser.add_argument("--weights", required=True, help="compact weights trained with --sigma 0")
    parser.add_argument("--root", required=True, help="CamVid")
    parser.add_argument("--every", type=int, default=15, help="take every so many test images (default 15)")
    parser.add_argument("-n", type=int, default=100, help="draws (default 100)")
    parser.add_argument("--out", help="write the page here")
    args = parser.parse_args(arguments)
    test = open_dataset("camvid", args.root, split="test")
    test = test.subset(range(0, len(test), args.every))
    train = open_dataset("camvid", args.root, split="train")
    spread = np.unique(np.linspace(0, len(train) - 1, ADAPTED_FROM).astype(int))
    unlabelled = [_unit(train[int(index)].image) for index in spread]
    scenes = [Scene(_unit(found.image), found.label) for found in test if found.label is not None]
    outcomes = []
    with tqdm(total=4 * len(SIGMAS), unit="network", disable=None) as bar:
        for sigma in SIGMAS:
            for name, segmenter in networks(args.weights, unlabelled, sigma=sigma):
                outcomes.append(measure(name, segmenter, scenes, sigma=sigma, n=args.n))
                bar.update()
    print(table(outcomes))
    if args.out:
        with write_atomically(Path(args.out)) as file:
            file.write(page(outcomes, images=len(scenes), every=args.every, n=args.n).encode())
    return 0


def page(outcomes: Sequence[Outcome], *, images: int, every: int, n: int) -> str:
    """docs/noise.md."""
    return f"""# Networks that never saw noise

One network with the architecture of `compact`, trained on CamVid without noise from the same ImageNet weights in 700
steps, and three ways to make it certifiable: the small denoiser in front of it (`--denoiser`; no training, no data),
its normalisation statistics re-estimated under noise from {ADAPTED_FROM} unlabelled training images (`certiseg adapt`),
and training under noise (`certiseg train`; here the weights that ship).

{images} CamVid test images (every {every}th), n = {n}, tau = {TAU}, alpha = {ALPHA}. Certified: share of the
labelled pixels, at any level of the hierarchy for nested. A network that answers the same wrong class everywhere is
certified everywhere, so read the shares beside the accuracy and the certified information gain.

{table(outcomes)}

The accuracy is that of single predictions under noise. The table is what `make remedies` printed.
"""


def _unit(image: NDArray[np.uint8]) -> NDArray[np.float32]:
    return image.astype(np.float32) / np.float32(255)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)
