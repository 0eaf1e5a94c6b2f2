"""Sets that hold the truth on CamVid: many random splits of the frames, and by drive; resumable.

`python -m experiments.truth --root ../shared/data/camvid --out docs/truth-results.md` asks the model about every frame
once, keeps what that said in runs/truth/, and writes the page. Coverage and sizes of every split follow from it.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

import certiseg as cs
from certiseg.archive import read_archive, write_archive
from certiseg.datasets import open_dataset
from certiseg.images import read_image
from certiseg.noise import image_key
from certiseg.stats.conformal import share_score, threshold, threshold_rank
from certiseg.truth.draw import noisy_image, posterior_of
from certiseg.truth.scores import fits_of, fits_of_truth, labelled
from certiseg.truth.settings import SCORES, CalibrationSettings

RADII = (0.0, 0.085, 0.169)
PER_OCTAVE = 64
"""Bins in which fits are counted: sizes of sets are told from above, by 1 % of q at most."""
BINS = 32 * PER_OCTAVE


@dataclass(frozen=True)
class Frame:
    """One frame: its score, and how many classes of how many pixels fit how well."""

    name: str
    score: int
    counts: NDArray[np.int64]
    pixels: int

    @property
    def drive(self) -> str:
        return self.name.split("_")[0]

    def mean_size(self, q: int) -> float:
        """Classes in a set at q, on average."""
        return float(self.counts[int(bins_of(np.array([q]))[0]) :].sum() / self.pixels)


@dataclass(frozen=True)
class Split:
    """What one calibration reached on other frames."""

    coverage: float
    mean_size: float


def bins_of(fits: NDArray[np.integer]) -> NDArray[np.int64]:
    """The bin of every fit; it rises with the fit."""
    return np.floor(PER_OCTAVE * np.log2(np.maximum(fits, 1).astype(np.float64))).astype(np.int64)


def ask(model: cs.Segmenter, root: str, split: str, score: str, folder: Path) -> list[Frame]:
    """Every frame once, under noise; what was asked before is read."""
    settings, frames = CalibrationSettings(score=score), []  # type: ignore[arg-type]
    tree = cs.load_hierarchy("camvid")
    place = folder / f"{score}-{model.fingerprint()[:12]}"
    place.mkdir(parents=True, exist_ok=True)
    for entry in tqdm(open_dataset("camvid", root, split=split).entries, desc=f"{split}, {score}", disable=None):
        path = place / f"{entry.name}.npz"
        if not path.exists():
            sample = entry.read()
            assert sample.label is not None
            pixels = read_image(sample.image)
            noisy = noisy_image(pixels, settings, seed=0, key=image_key(pixels))
            fits = fits_of(posterior_of(model, noisy, temperature=1.0), settings.score, tree)
            known = labelled(sample.label, pixels.shape[:2], tree.num_classes, entry.name)
            counts = np.bincount(bins_of(fits.reshape(-1)), minlength=BINS)
            found = share_score(fits_of_truth(fits, sample.label, known), settings.pixels[0])
            meta = {"score": found, "pixels": int(known.size)}
            write_archive(path, kind="frame", version=1, meta=meta, arrays={"counts": counts})
        kept = read_archive(path, kind="frame", version=1)
        frames.append(Frame(entry.name, kept.meta["score"], kept.arrays["counts"], kept.meta["pixels"]))
    return frames


def reached(calibrated: Sequence[Frame], tested: Sequence[Frame], radius: float, risk: float) -> Split | None:
    """What thresholds from some frames reach on others; None where they are too few."""
    miss = CalibrationSettings(radius=radius).miss(risk)
    if threshold_rank(len(calibrated), miss) < 1:
        return None
    q = threshold(np.array([frame.score for frame in calibrated], np.uint32), miss)
    covered = np.mean([frame.score >= q for frame in tested])
    return Split(float(covered), float(np.mean([frame.mean_size(q) for frame in tested])))


def random_splits(frames: Sequence[Frame], radius: float, risk: float, *, splits: int) -> list[Split]:
    """Halves of the frames, at random."""
    rng, found = np.random.default_rng(0), []
    for _ in range(splits):
        order = [frames[index] for index in rng.permutation(len(frames))]
        half = reached(order[: len(order) // 2], order[len(order) // 2 :], radius, risk)
        found += [] if half is None else [half]
    return found


def page(frames: dict[str, list[Frame]], model: cs.Segmenter, *, risk: float, splits: int) -> str:
    """The tables of all scores."""
    first = next(iter(frames.values()))
    lines = [
        "# Sets that hold the truth, on CamVid",
        "",
        f"Written by `make truth`. Model {model.name}, weights {model.fingerprint()[:12]}; {len(first)} frames that "
        f"it was not trained on; sigma 0.25, risk {risk:g}, 95 % of the labelled pixels. One pass per frame.",
        "",
        f"## {splits} random halves of the frames",
        "",
        "They speak for further frames of the same drives. Coverage: mean over the splits, 5 % and 95 % quantiles.",
        "",
        "| score | r | promised | covered | 5 % - 95 % | mean set size |",
        "|---|---|---|---|---|---|",
    ]
    for score, of_score in frames.items():
        for radius in RADII:
            found = random_splits(of_score, radius, risk, splits=splits)
            if found:
                covered, sizes = (np.array([getattr(s, k) for s in found]) for k in ("coverage", "mean_size"))
                low, high = np.quantile(covered, [0.05, 0.95])
                lines.append(
                    f"| {score} | {radius:g} | {1 - risk:g} | {covered.mean():.3f} | {low:.3f} - {high:.3f} | "
                    f"{sizes.mean():.2f} |"
                )
    lines += ["", "## By drive", "", "Frames of one drive are not exchangeable with another: nothing is promised here."]
    lines += ["", "| score | r | calibrated on | tested on | covered | mean set size |", "|---|---|---|---|---|---|"]
    drives = sorted({frame.drive for frame in first})
    for score, of_score in frames.items():
        for radius in RADII:
            for drive in drives:
                others = [frame for frame in of_score if frame.drive != drive]
                own = [frame for frame in of_score if frame.drive == drive]
                got = reached(own, others, radius, risk)
                told = "too few frames | " if got is None else f"{got.coverage:.3f} | {got.mean_size:.2f}"
                lines.append(f"| {score} | {radius:g} | {drive} ({len(own)}) | the others ({len(others)}) | {told} |")
    return "\n".join([*lines, ""])


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", required=True)
    parser.add_argument("--split", default="test")
    parser.add_argument("--model", default="compact")
    parser.add_argument("--risk", type=float, default=0.1)
    parser.add_argument("--splits", type=int, default=500)
    parser.add_argument("--scores", nargs="+", default=list(SCORES))
    parser.add_argument("--runs", type=Path, default=Path("runs/truth"))
    parser.add_argument("--out", type=Path, default=Path("docs/truth-results.md"))
    options = parser.parse_args(arguments)
    model = cs.load_model(options.model)
    frames = {score: ask(model, options.root, options.split, score, options.runs) for score in options.scores}
    options.out.write_text(page(frames, model, risk=options.risk, splits=options.splits), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
