"""Pixels near a label boundary against the others, and where abstentions lie in one image."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from certiseg.analysis.drawing import (
    BLUE,
    RED,
    colour_labels,
    colour_vertices,
    method_name,
    new_figure,
    save_figure,
    show_map,
    vertex_legend,
)
from certiseg.analysis.exports import Column, Table, without_nan
from certiseg.analysis.pooling import LEVEL, Pools, percentile_interval, relative_gain
from certiseg.analysis.published import published_boundary
from certiseg.analysis.tables import BASELINE, describe
from certiseg.runs.folder import RunFolder
from certiseg.runs.manifest import Setting
from certiseg.runs.table import UNCERTIFIED
from certiseg.scores import VOID, boundary, evaluate

PARTS: dict[str, bool | None] = {"all": None, "boundary": True, "non_boundary": False}
PAPER_SETTING = Setting(0.25, 100, 0.75)


def boundary_rows(pools: Pools, setting: Setting, *, draws: int = 1000) -> list[dict[str, Any]]:
    """A row per method and part of the pixels: pixels, abstain and CIG with intervals, changes against segcertify."""
    rows = []
    has_baseline = BASELINE in pools.manifest.methods
    for method in pools.manifest.methods:
        for part, flag in PARTS.items():
            pool = pools.pool(method, setting, boundary=flag)
            scores, samples = pool.scores(), pool.resampled(draws=draws)
            row: dict[str, Any] = {"method": method, "name": method_name(method), "part": part.replace("_", "-")}
            row["pixels"] = scores.pixels
            for key in ("cig", "abstain"):
                row[key] = getattr(scores, key)
                row[f"{key}_low"], row[f"{key}_high"] = percentile_interval(samples[key])
            if has_baseline and method != BASELINE:
                baseline = pools.pool(BASELINE, setting, boundary=flag).scores()
                row |= {f"{k}_gain": float(relative_gain(row[k], getattr(baseline, k))) for k in ("cig", "abstain")}
            rows.append(without_nan(row | _published(pools.manifest.dataset, method, part, setting)))
    return rows


def boundary_table(folder: RunFolder, setting: Setting, *, draws: int = 1000) -> Table:
    """Boundary against non-boundary pixels, the paper's figures beside ours at its setting."""
    pools = Pools(folder)
    rows = boundary_rows(pools, setting, draws=draws)
    columns = [Column("name", "method"), Column("part", "pixels of"), Column("pixels", "pixels", "count")]
    columns += [Column("cig", "CIG", "score"), Column("cig_gain", "CIG change", "gain")]
    columns += [Column("abstain", "abstain", "percent"), Column("abstain_gain", "abstain change", "gain")]
    if any("published_cig" in row for row in rows):
        columns += [Column("published_cig", "CIG (published)", "score")]
        columns += [Column("published_abstain", "abstain (published)", "percent")]
    note = f"{describe(pools)} Boundary: another label within 10 pixels. Brackets: {LEVEL:.0%} bootstrap intervals."
    return Table(f"Boundary and other pixels, {setting}", note, tuple(columns), tuple(rows))


def draw_example(folder: RunFolder, name: str, setting: Setting, *, method: str, baseline: str = BASELINE) -> Any:
    """Six panels of one image: ground truth, both certified maps; boundary map, abstentions of both by place."""
    tree, label = folder.manifest.tree, folder.label(name)
    near, known = boundary(label), label != VOID
    figure, ((truth, *maps), (edges, *places)) = new_figure(
        13, 7.2 * label.shape[0] / label.shape[1] + 2.2, rows=2, columns=3
    )
    show_map(truth, colour_labels(label, tree), "ground truth")
    show_map(edges, np.where(near & known, 0, 255)[..., None].repeat(3, axis=2), "boundary (black)")
    seen = set(np.unique(label[known]).tolist())
    for which, upper, lower in zip((baseline, method), maps, places, strict=True):
        certificate = folder.certificate(name, setting, which)
        scores = evaluate(certificate, label)
        title = f"{method_name(which)}\nCIG {scores.cig:.3f}, abstain {scores.abstain:.1%}"
        show_map(upper, colour_vertices(certificate.vertex, tree), title)
        missing = certificate.abstained & known
        parts = [_rate(missing, near & known), _rate(missing, ~near & known)]
        picture = np.full((*label.shape, 3), 255, np.uint8)
        for colour, where in ((RED, missing & near), (BLUE, missing & ~near)):
            picture[where] = [int(colour[i : i + 2], 16) for i in (1, 3, 5)]
        show_map(lower, picture, f"abstained: boundary {parts[0]}, elsewhere {parts[1]}")
        seen |= set(certificate.vertex[certificate.vertex >= 0].tolist())
    also = [(RED, "abstained at a boundary"), (BLUE, "abstained elsewhere")]
    vertex_legend(figure, tree, sorted(seen), also=also)
    return figure


def write(folder: RunFolder, out: str | Path, *, setting: Setting, example: str | None = None) -> list[Path]:
    """boundaries-SETTING.* and, for an image of the run, boundary-example.* (label maps only) in the folder `out`."""
    paths = boundary_table(folder, setting).write(f"{out}/boundaries-{setting}")
    others = [m for m in folder.manifest.methods if m != BASELINE]
    if example is not None and BASELINE in folder.manifest.methods and others:
        method = next((m for m in others if m.startswith("adaptive")), others[-1])
        figure = draw_example(folder, example, setting, method=method)
        paths += save_figure(figure, f"{out}/boundary-example-{setting}")
    return paths


def _published(dataset: str, method: str, part: str, setting: Setting) -> dict[str, float]:
    figures = published_boundary(dataset, method) if setting == PAPER_SETTING and method != UNCERTIFIED else {}
    ending = "" if part == "all" else f"_{part}"
    return {f"published_{key}": figures[f"{key}{ending}"] for key in ("cig", "abstain") if figures}


def _rate(missing: np.ndarray, where: np.ndarray) -> str:
    return f"{(missing & where).sum() / where.sum():.1%}" if where.any() else "no pixels"
