"""Sets that hold the truth on CamVid: many random splits of the frames, by drive, and under attack; resumable.

`python -m experiments.truth --root ../shared/data/camvid --out docs/truth-results.md` asks the model about every frame
once at each sigma, and about every K-th again after a search for the worst perturbation within each r. What that said
is kept in runs/truth/. Coverage and sizes of every split follow from it.
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
from certiseg.attack.settings import AttackSettings
from certiseg.datasets import Sample, open_dataset
from certiseg.images import read_image
from certiseg.noise import image_key
from certiseg.stats.conformal import share_score, threshold, threshold_rank
from certiseg.truth.draw import noisy_image, posterior_of
from certiseg.truth.evaluate import attacked
from certiseg.truth.scores import labelled
from certiseg.truth.settings import SCORES, CalibrationSettings, Score

RADII = (0.0, 0.085, 0.169)
SIGMA = 0.25
MORE_NOISE = (0.25, 0.33, 0.5)
"""The larger sigma is beside r, the less extreme is the score that becomes the threshold."""
STEPS = 20
"""Gradient steps of the attack."""
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


ByScore = dict[str, list[Frame]]


def bins_of(fits: NDArray[np.integer]) -> NDArray[np.int64]:
    """The bin of every fit; it rises with the fit."""
    octaves: NDArray[np.float64] = np.log2(np.maximum(fits, 1).astype(np.float64))
    return np.floor(PER_OCTAVE * octaves).astype(np.int64)


def ask(
    model: cs.Segmenter,
    root: str,
    split: str,
    scores: Sequence[Score],
    folder: Path,
    *,
    sigma: float = SIGMA,
    radius: float = 0.0,
    every: int = 1,
) -> dict[str, list[Frame]]:
    """Every K-th frame once by each score, under noise, after an attack within the radius; what was asked is read."""
    found: ByScore = {score: [] for score in scores}
    place = folder / f"{model.fingerprint()[:12]}-{sigma:g}{f'-attacked-{radius:g}-{STEPS}' if radius else ''}"
    place.mkdir(parents=True, exist_ok=True)
    entries = open_dataset("camvid", root, split=split).entries[::every]
    for entry in tqdm(entries, desc=f"{split}, sigma = {sigma:g}, r = {radius:g}", disable=None):
        if not all((place / f"{entry.name}.{score}.npz").exists() for score in scores):
            _ask_frame(model, entry.read(), scores, place, CalibrationSettings(sigma=sigma, radius=radius))
        for score in scores:
            kept = read_archive(place / f"{entry.name}.{score}.npz", kind="frame", version=2)
            found[score].append(Frame(entry.name, kept.meta["score"], kept.arrays["counts"], kept.meta["pixels"]))
    return found


def _ask_frame(
    model: cs.Segmenter, sample: Sample, scores: Sequence[Score], place: Path, settings: CalibrationSettings
) -> None:
    """One pass, with noise that neither the search nor, under attack, the calibration has seen."""
    tree = cs.load_hierarchy("camvid")
    assert sample.label is not None
    pixels = read_image(sample.image)
    key, known = image_key(pixels), labelled(sample.label, pixels.shape[:2], tree.num_classes, sample.name)
    if settings.radius:
        search = AttackSettings(steps=STEPS, restarts=1, samples=1, judges=1)
        pixels = attacked(settings, model, pixels, sample.label, known, 1.0, search, seed=2)
    noisy = noisy_image(pixels, settings, seed=int(settings.radius > 0), key=key)
    posterior = posterior_of(model, noisy, temperature=1.0)
    for score in scores:
        fits = posterior.scored(score, tree)
        counts = np.bincount(bins_of(fits.everywhere().reshape(-1)), minlength=BINS)
        found = share_score(fits.of_truth(sample.label, known), settings.pixels[0])
        meta = {"score": found, "pixels": int(known.size)}
        path = place / f"{sample.name}.{score}.npz"
        write_archive(path, kind="frame", version=2, meta=meta, arrays={"counts": counts})


def reached(
    calibrated: Sequence[Frame], tested: Sequence[Frame], radius: float, risk: float, sigma: float = SIGMA
) -> Split | None:
    """What thresholds from some frames reach on others; None where they are too few."""
    miss = CalibrationSettings(sigma=sigma, radius=radius).miss(risk)
    if threshold_rank(len(calibrated), miss) < 1:
        return None
    q = threshold(np.array([frame.score for frame in calibrated], np.uint32), miss)
    covered = np.mean([frame.score >= q for frame in tested])
    return Split(float(covered), float(np.mean([frame.mean_size(q) for frame in tested])))


def random_splits(
    frames: Sequence[Frame],
    radius: float,
    risk: float,
    *,
    splits: int,
    sigma: float = SIGMA,
    attacked: Sequence[Frame] | None = None,
) -> list[Split]:
    """Halves of the frames, at random: one calibrates, the other is tested, as it is or as it was attacked."""
    rng, found = np.random.default_rng(0), []
    tested = {frame.name: frame for frame in (frames if attacked is None else attacked)}
    for _ in range(splits):
        order = [frames[index] for index in rng.permutation(len(frames))]
        others = [tested[frame.name] for frame in order[len(order) // 2 :] if frame.name in tested]
        half = reached(order[: len(order) // 2], others, radius, risk, sigma) if others else None
        found += [] if half is None else [half]
    return found


Noisier = dict[tuple[str, float], list[Frame]]
"""Frames by their sets of images and by sigma."""


def page(
    frames: ByScore,
    attacks: dict[float, ByScore],
    noisier: Noisier,
    model: cs.Segmenter,
    *,
    risk: float,
    splits: int,
) -> str:
    """The tables of all scores."""
    first = next(iter(frames.values()))
    told = (
        f"Written by `make truth`. Model {model.name} in {model.backend} (fingerprint {model.fingerprint()[:12]}); "
        f"{len(first)} frames that it was not trained on; sigma {SIGMA:g} if not said otherwise, "
        f"risk {risk:g}, 95 % of the labelled pixels. One "
        "noisy pass per frame."
    )
    lines = ["# Sets that hold the truth, on CamVid", "", told, "", *_by_splits(frames, risk, splits)]
    lines += ["", *_by_noise(noisier, risk, splits), "", *_under_attack(frames, attacks, risk, splits)]
    return "\n".join([*lines, "", *_by_drive(frames, risk), ""])


def _by_splits(frames: ByScore, risk: float, splits: int) -> list[str]:
    lines = [f"## {splits} random halves of the frames", ""]
    lines += [
        "They speak for further frames of the same drives. Coverage: mean over the splits, 5 % and 95 % quantiles."
    ]
    lines += ["", "| score | r | promised | covered | 5 % - 95 % | mean set size |", "|---|---|---|---|---|---|"]
    for score, of_score in frames.items():
        for radius in RADII:
            if found := random_splits(of_score, radius, risk, splits=splits):
                lines.append(f"| {score} | {radius:g} | {1 - risk:g} | {_cells(found)} |")
    return lines


def _cells(found: Sequence[Split]) -> str:
    """Coverage, its quantiles, and the mean size of sets, over many splits."""
    covered, sizes = (np.array([getattr(split, name) for split in found]) for name in ("coverage", "mean_size"))
    low, high = np.quantile(covered, [0.05, 0.95])
    return f"{covered.mean():.3f} | {low:.3f} - {high:.3f} | {sizes.mean():.2f}"


def _by_noise(noisier: Noisier, risk: float, splits: int) -> list[str]:
    lines = ["## More noise, more frames", ""]
    lines += [
        "The threshold is the m-th smallest score of the calibration frames. At m = 1 one odd frame decides the sets "
        "of all others. Two things make m larger: more frames, and more noise beside the same r. Score `posterior`, "
        "halves as above. The validation frames lie in a training drive; weights were chosen by them.",
        "",
        "| frames | sigma | r | m | promised | covered | 5 % - 95 % | mean set size |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for (name, sigma), frames in noisier.items():
        for radius in RADII:
            rank = threshold_rank(len(frames) // 2, CalibrationSettings(sigma=sigma, radius=radius).miss(risk))
            if found := random_splits(frames, radius, risk, splits=splits, sigma=sigma):
                cells = f"{name} ({len(frames)}) | {sigma:g} | {radius:g} | {rank} | {1 - risk:g} | {_cells(found)}"
                lines.append(f"| {cells} |")
    return lines


def _under_attack(frames: ByScore, attacks: dict[float, ByScore], risk: float, splits: int) -> list[str]:
    """Coverage of attacked frames by thresholds of frames as they are, with the error of so few frames."""
    lines = ["## Under attack within r", ""]
    lines += [
        f"Every tested frame is moved by up to r against its true classes ({STEPS} gradient steps in expectation over "
        "the noise, SegPGD), then asked about once with fresh noise; thresholds come from other frames as they are. "
        "Interval: what so few frames leave open (Wilson, two standard errors). The promise is broken where all of it "
        "lies below; a search that misses the worst perturbation proves nothing about it.",
        "",
        "| score | r | attacked frames | promised | covered as is | under attack | interval | mean set size |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for score, of_score in frames.items():
        for radius in RADII:
            moved = attacks[radius][score] if radius else of_score
            names = {frame.name for frame in moved}
            still = [frame for frame in of_score if frame.name in names]
            plain, hit = (random_splits(of_score, radius, risk, splits=splits, attacked=a) for a in (still, moved))
            if hit:
                before, after, size = (
                    float(np.mean(v))
                    for v in ([s.coverage for s in plain], [s.coverage for s in hit], [s.mean_size for s in hit])
                )
                low, high = sampling_error(after, len(moved))
                cells = f"{before:.3f} | {after:.3f} | {low:.3f} - {high:.3f} | {size:.2f}"
                lines.append(f"| {score} | {radius:g} | {len(moved) if radius else 0} | {1 - risk:g} | {cells} |")
    return lines


def sampling_error(share: float, frames: int, errors: float = 2.0) -> tuple[float, float]:
    """The interval of a share of so many frames, by Wilson."""
    middle, square = share + errors**2 / (2 * frames), errors**2 / frames
    half = errors * np.sqrt(share * (1 - share) / frames + square / (4 * frames))
    return float((middle - half) / (1 + square)), float((middle + half) / (1 + square))


def _by_drive(frames: ByScore, risk: float) -> list[str]:
    lines = ["## By drive", "", "Frames of one drive are not exchangeable with another: nothing is promised here."]
    lines += ["", "| score | r | calibrated on | tested on | covered | mean set size |", "|---|---|---|---|---|---|"]
    for score, of_score in frames.items():
        for radius in RADII:
            for drive in sorted({frame.drive for frame in of_score}):
                others = [frame for frame in of_score if frame.drive != drive]
                own = [frame for frame in of_score if frame.drive == drive]
                got = reached(own, others, radius, risk)
                told = "too few frames | " if got is None else f"{got.coverage:.3f} | {got.mean_size:.2f}"
                lines.append(f"| {score} | {radius:g} | {drive} ({len(own)}) | the others ({len(others)}) | {told} |")
    return lines


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", required=True)
    parser.add_argument("--split", default="test")
    parser.add_argument("--model", default="compact")
    parser.add_argument("--risk", type=float, default=0.1)
    parser.add_argument("--splits", type=int, default=500)
    parser.add_argument("--every", type=int, default=4, metavar="K", help="attack every K-th frame (default: 4)")
    parser.add_argument("--scores", nargs="+", default=list(SCORES))
    parser.add_argument("--runs", type=Path, default=Path("runs/truth"))
    parser.add_argument("--out", type=Path, default=Path("docs/truth-results.md"))
    options = parser.parse_args(arguments)
    model = cs.load_model(options.model)
    asked = model, options.root, options.split, options.scores, options.runs
    frames = ask(*asked)
    noisier: Noisier = {}
    for sigma in MORE_NOISE:
        of_test, of_val = (
            ask(model, options.root, split, ["posterior"], options.runs, sigma=sigma)["posterior"]
            for split in (options.split, "val")
        )
        noisier |= {(options.split, sigma): of_test, (f"{options.split} and val", sigma): of_test + of_val}
    attacks = {radius: ask(*asked, radius=radius, every=options.every) for radius in RADII if radius}
    options.out.write_text(page(frames, attacks, noisier, model, risk=options.risk, splits=options.splits), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
