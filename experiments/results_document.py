"""docs/results.md: every table and figure of the runs of a plan, and what they show."""

from __future__ import annotations

import io
import os
import time
from collections.abc import Iterable
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path

from PIL import Image

from benchmarks.measure import machine
from certiseg.analysis import pieces, thresholds
from certiseg.analysis.drawing import method_name, setting_text
from certiseg.analysis.exports import Column, Table
from certiseg.analysis.pieces import Piece, main_methods
from certiseg.analysis.tables import SETTING_COLUMNS
from certiseg.analysis.tuned_comparison import TunedComparison, compare_with_tuned
from certiseg.analysis.tuned_comparison import to_table as tuned_table
from certiseg.archive import write_atomically
from certiseg.render.figures import figure_bytes
from certiseg.runs.pooling import BASELINE, ScoredRun
from certiseg.runs.run import setting_cells
from certiseg.runs.settings import Setting
from certiseg.runs.table import UNCERTIFIED
from experiments import findings
from experiments.published import left_out, published_scores
from experiments.results_plan import ResultsPlan

FOLDED = 14
"""Longer tables are folded."""
FEW = 20
"""Images below which intervals from them are called rough."""
PUBLISHED = "cityscapes"
HALF = " (every second one of the 233 of the usual split)"
TUNING = (
    "The thresholds of adaptive are chosen among 120 functions (non-decreasing triples of 0, 0.05, 0.1, 0.25, 0.3, "
    "0.4, 0.5, 0.7) by CIG on one half of the images and scored on the other, both ways round. Nested and sets have "
    "nothing to choose; all are scored on the same images."
)


def write_document(plan: ResultsPlan, out: Path) -> Path:
    """results.md and the folder results/ beside it; figures of label maps show no photograph."""
    begun = time.time()
    (out / "results").mkdir(parents=True, exist_ok=True)
    comparisons = [_comparison(plan, setting) for setting in plan.paper_settings]
    parts = [_head(plan), _summary(plan, comparisons)]
    for title, text, under in _chapters(plan, comparisons):
        print(f"writing: {title}", flush=True)
        parts.append(f"## {title}\n\n{text}\n" if text else f"## {title}\n")
        parts += [_written(piece, out, under=title) for piece in under]
    parts.append(_foot(plan, time.time() - begun))
    path = out / "results.md"
    with write_atomically(path) as file:
        file.write("\n".join(parts).encode())
    print(f"written: {path}")
    return path


def _comparison(plan: ResultsPlan, setting: Setting) -> TunedComparison:
    folder = plan.folder_of(setting)
    return compare_with_tuned(ScoredRun(folder), thresholds.search_thresholds(folder, setting))


def _chapters(plan: ResultsPlan, comparisons: list[TunedComparison]) -> Iterable[tuple[str, str, Iterable[Piece]]]:
    """Headings, their text, and the pieces under them."""
    whole, some, noisy, setting = plan.all_images, plan.some_images, plan.more_noise, plan.main
    run, over_n = ScoredRun(whole), ScoredRun(some)
    every = _every(plan)
    yield "Scores on all images", "", pieces.score_pieces(run, stem=f"-{setting}")
    text = f"The other settings, on {every} image: {len(over_n.images)} images."
    shown = tuple(s for s in plan.paper_settings if s.sigma == plan.sigmas[0])
    others = [*pieces.score_pieces(over_n, settings=shown, stem="-some")]
    others += pieces.score_pieces(ScoredRun(noisy), stem="-more-noise")
    yield f"Scores on {every} image", text, others
    text = (
        "CamVid is not among the paper's data sets, so nothing was published to stand beside these figures. For "
        "orientation, the paper's figures for Cityscapes: another network, other images and classes, and code that "
        f"tests against fewer draws than it counts (docs/guarantee.md). They are no targets. {left_out(PUBLISHED)}"
    )
    yield "The paper's figures", text, [Piece("published", "", "", _published(plan))]
    table = findings.difference_table(comparisons, _ours(plan), [c.parts[0] + c.parts[1] for c in comparisons])
    tuned = [Piece("tuned-everywhere", "", "", table), Piece("tuned", "", "", tuned_table(comparisons[0]))]
    yield "Against tuned thresholds", TUNING, tuned
    yield "By class", "", pieces.class_pieces(run, setting)
    yield "By level and set size", "", pieces.level_pieces(whole, run, setting)
    yield "Boundaries", "", pieces.boundary_pieces(whole, run, setting)
    yield "Fluctuations where SegCertify abstains", "", [pieces.vote_piece(whole, setting)]
    text = f"On {every} image, at the draws that the runs kept."
    yield "Over the number of draws", text, pieces.tradeoff_pieces(some, setting)
    grid = [p for p in pieces.tuned_pieces(some, over_n, setting) if p.stem.startswith("thresholds")]
    yield "Threshold functions", text, grid
    text = "Ground truth, the uncertified model and each method; no photographs, for CamVid's terms."
    yield "Visual results", text, pieces.visual_pieces(whole, run, setting)
    yield "Hierarchy", "", [pieces.hierarchy_piece(whole)]


def _ours(plan: ResultsPlan) -> list[str]:
    """The methods without thresholds."""
    return [m for m in main_methods(plan.all_images.manifest.methods) if not m.startswith("adaptive")]


def _every(plan: ResultsPlan) -> str:
    return {2: "every second", 3: "every third", 4: "every fourth"}.get(plan.every, f"every {plan.every}th")


def _make(plan: ResultsPlan) -> str:
    """The command that writes this page."""
    return "make results" if plan.every == ResultsPlan.every else f"make results EVERY={plan.every}"


def _head(plan: ResultsPlan) -> str:
    manifest, setting = plan.all_images.manifest, plan.main
    few, some = len(plan.all_images.finished()), len(plan.some_images.finished())
    others = "; ".join(setting_text(s) for s in plan.paper_settings[1:])
    return f"""# Results

`{manifest.model}` on CamVid {plan.split}, certified by every method from the same draws. Written by `{_make(plan)}`;
every number and every sentence of this page follows from that run. alpha = {manifest.alpha:g} for each image,
{manifest.correction}, {manifest.test} n, {manifest.n0} selection draws.

- {setting_text(setting)}: all {few} images{HALF if (plan.split, few) == ("test", 117) else ""}.
- {others}: {_every(plan)} image ({some} images).

One sampling pass per image and sigma: n = {plan.few[0]} are the first draws of n = {plan.many[0]}. Several methods side
by side are a comparison; only one that is chosen beforehand is a promise. CIG, the certified
information gain, is 1 if every pixel is certified as its class. The two drives of CamVid {plan.split} are videos, so
their images resemble each other and bootstrap intervals over images are narrower than they would be over drives.
{f"Intervals from {some} images are rough." if some < FEW else ""}
"""


def _summary(plan: ResultsPlan, comparisons: list[TunedComparison]) -> str:
    """The paragraphs on what the tables show."""
    manifest = plan.all_images.manifest
    run = ScoredRun(plan.all_images)
    model = run.sums(UNCERTIFIED).scores()
    first, setting = comparisons[0], plan.main
    flat = run.sums(BASELINE, setting).scores()
    lines = [
        "## What they show\n",
        f"Without noise the model gets {model.accuracy:.1%} of the pixels right (mIoU {model.miou or 0:.3f}). At "
        f"{setting_text(setting)} SegCertify certifies {1 - flat.abstain:.1%} of the pixels and {flat.accuracy:.1%} "
        "rightly.\n",
    ]
    for method in _ours(plan):
        sentences = [
            *findings.over_settings(comparisons, method),
            findings.against_hindsight(comparisons, method),
            *findings.over_settings(comparisons, method, "ccig"),
            *findings.over_settings(comparisons, method, "accuracy"),
            f"On all images at the first setting: {findings.price(first, method)}",
            findings.by_class(first, method, manifest.tree.classes),
        ]
        lines.append(" ".join(sentences) + "\n")
    for one, other in pairwise(reversed(_ours(plan))):
        sentences = [*findings.over_settings(comparisons, one, against=other)]
        sentences += findings.over_settings(comparisons, one, "accuracy", against=other)
        lines.append(" ".join(sentences) + "\n")
    lines.append(
        "A certificate speaks of the model under noise: where the model is steadily wrong, so is its certificate.\n"
    )
    return "\n".join(lines)


def _published(plan: ResultsPlan) -> Table:
    rows = []
    for setting in plan.paper_settings:
        run = ScoredRun(plan.folder_of(setting))
        for method in (m for m in run.manifest.methods if m.partition(":")[0] in ("segcertify", "adaptive")):
            theirs = published_scores(PUBLISHED, method, setting)
            scores = run.sums(method, setting).scores()
            row = setting_cells(setting) | {"name": method_name(method), "cig": scores.cig, "abstain": scores.abstain}
            rows.append(row | {f"their_{name}": theirs.get(name) for name in ("cig", "abstain")})
    columns = (
        *SETTING_COLUMNS,
        Column("name", "method"),
        Column("cig", "CIG, ours on CamVid", "score"),
        Column("abstain", "abstain, ours on CamVid", "percent"),
        Column("their_cig", "CIG, the paper's on Cityscapes", "score"),
        Column("their_abstain", "abstain, the paper's on Cityscapes", "percent"),
    )
    note = "Two data sets: the columns are not to be compared in size, only in how they move with the setting."
    return Table("Ours on CamVid and the paper's on Cityscapes", note, columns, tuple(rows))


def _written(piece: Piece, out: Path, *, under: str) -> str:
    """A piece as Markdown, with its figure as PNG and, for charts, as SVG."""
    parts = [f"### {piece.title}\n"] if piece.title not in ("", under) else []
    if piece.text:
        parts.append(f"{piece.text}\n")
    if piece.draw is not None:
        figure, stem = piece.draw(), out / "results" / piece.stem
        _write(stem.with_name(f"{piece.stem}.png"), _small_png(figure_bytes(figure, "png", dpi=100)))
        link = f"![{piece.title}](results/{piece.stem}.png)\n"
        if not piece.maps:
            _write(stem.with_name(f"{piece.stem}.svg"), figure_bytes(figure, "svg"))
            link += f"\n[SVG](results/{piece.stem}.svg)\n"
        parts.append(link)
    if piece.table is not None:
        _write(out / "results" / f"{piece.stem}.csv", piece.table.csv().encode())
        text = f"{piece.table.markdown()}\n[CSV](results/{piece.stem}.csv)\n"
        title = f"{piece.table.title}, {len(piece.table.rows)} rows"
        folded = f"<details><summary>{title}</summary>\n\n{text}\n</details>\n"
        parts.append(folded if len(piece.table.rows) > FOLDED else text)
    return "\n".join(parts)


def _small_png(content: bytes) -> bytes:
    """The picture in 256 colours: label maps and charts have few."""
    small = io.BytesIO()
    with Image.open(io.BytesIO(content)) as picture:
        reduced = picture.convert("RGB").quantize(256, dither=Image.Dither.NONE)
        reduced.save(small, "PNG", optimize=True)
    return small.getvalue()


def _write(path: Path, content: bytes) -> None:
    with write_atomically(path) as file:
        file.write(content)


def _foot(plan: ResultsPlan, seconds: float) -> str:
    manifest = plan.all_images.manifest
    versions = ", ".join(f"{name} {version}" for name, version in manifest.versions.items())
    lines = [
        "## How it was made\n",
        f"- Machine: {machine()}; {_memory()}, {versions}; backend {manifest.backend}, {manifest.threads} threads.",
        f"- With a load above {os.cpu_count()}, times are those of a busy machine.",
        f"- Date: {datetime.now(UTC):%Y-%m-%d}. Seeds: {manifest.seed} for the noise, 0 for the bootstrap.",
        f"- Model: {manifest.model}, fingerprint `{manifest.model_sha256}`.",
        _times(plan),
        f"- Tables and figures from the runs: {seconds / 60:.1f} minutes.",
        "",
        f"`{_make(plan)}` runs these commands, resumes them where they stopped, and writes this page:\n",
        *(f"    certiseg {' '.join(command)}" for command in plan.commands().values()),
        "",
    ]
    return "\n".join(lines)


def _times(plan: ResultsPlan) -> str:
    """How many passes the votes took, and how long all starts together that came to their end."""
    starts = [(float(begun), end) for step in plan.times().values() for begun, end in step.items()]
    minutes, until = 0.0, 0.0
    for begun, end in sorted((begun, end) for begun, end in starts if end is not None):
        minutes += max(end - max(begun, until), 0) / 60  # where two ran side by side, once
        until = max(until, end)
    broken = sum(end is None for _, end in starts)
    more = f"; {broken} interrupted start{'s' if broken > 1 else ''} not counted" if broken else ""
    return f"- Sampling and certifying, {_passes(plan):,} passes of the model: {minutes:.0f} minutes{more}."


def _passes(plan: ResultsPlan) -> int:
    """Passes that the votes of the three runs took; what one lent another counts once."""
    some, whole = (len(folder.finished()) for folder in (plan.some_images, plan.all_images))
    n0 = plan.all_images.manifest.n0
    return some * len(plan.sigmas) * (n0 + plan.many[0]) + (whole - some) * (n0 + plan.few[0])


def _memory() -> str:
    return f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 2**30:.0f} GiB"
