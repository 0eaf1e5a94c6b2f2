"""Pixels near a label boundary against the others, and where abstentions lie in one image."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from certiseg.analysis.drawing import method_name
from certiseg.analysis.exports import Column, Table, without_nan
from certiseg.analysis.visual import show_certificate
from certiseg.hierarchy import VOID
from certiseg.render.colours import BLUE, RED, colour_labels
from certiseg.render.figures import new_figure, show_map, vertex_legend
from certiseg.runs.folder import RunFolder
from certiseg.runs.pooling import BASELINE, ScoredRun, brackets, relative_gain
from certiseg.runs.settings import Setting
from certiseg.scores import boundary

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_SCORES = ("cig", "accuracy", "wrong", "abstain")
PARTS: dict[str, bool | None] = {"all": None, "boundary": True, "non-boundary": False}
_COLUMNS = (
    Column("name", "method"),
    Column("part", "pixels of"),
    Column("pixels", "pixels", "count"),
    Column("cig", "CIG", "score"),
    Column("cig_gain", "CIG change", "gain"),
    Column("accuracy", "right", "percent"),
    Column("wrong", "wrong", "percent"),
    Column("abstain", "abstain", "percent"),
    Column("abstain_gain", "abstain change", "gain"),
)


def boundary_table(run: ScoredRun, setting: Setting, *, draws: int = 1000) -> Table:
    """A row per method and part of the pixels: CIG and abstain rate with intervals, changes against segcertify."""
    rows = []
    for method in run.manifest.methods:
        for part, flag in PARTS.items():
            sums = run.sums(method, setting, boundary=flag)
            row: dict[str, Any] = {"method": method, "name": method_name(method), "part": part}
            row |= {"pixels": int(sums.total().pixels.sum())} | sums.row(_SCORES, draws=draws)
            if BASELINE in run.manifest.methods and method != BASELINE:
                flat = run.sums(BASELINE, setting, boundary=flag).scores()
                row |= {f"{key}_gain": float(relative_gain(row[key], getattr(flat, key))) for key in ("cig", "abstain")}
            rows.append(without_nan(row))
    note = f"{run.describe()} Boundary: another label within 10 pixels. {brackets(len(run.images), draws)}"
    return Table(f"Boundary and other pixels, {run.manifest.words(setting)}", note, _COLUMNS, tuple(rows))


def draw_example(folder: RunFolder, name: str, setting: Setting, *, method: str) -> Figure:
    """Six panels of one image: ground truth and two certified maps; boundary map and where both abstain."""
    tree, label = folder.manifest.tree, folder.label(name)
    near, known = boundary(label), label != VOID
    height = 7.2 * label.shape[0] / label.shape[1] + 2.2
    figure, ((truth, *maps), (edges, *places)) = new_figure(13, height, rows=2, columns=3)
    show_map(truth, colour_labels(label, tree), "ground truth")
    show_map(edges, np.where(near & known, 0, 255)[..., None].repeat(3, axis=2), "boundary (black)")
    seen = set(np.unique(label[known]).tolist())
    for which, upper, lower in zip((BASELINE, method), maps, places, strict=True):
        certificate = folder.certificate(name, setting, which)
        show_certificate(upper, certificate, folder, name, which)
        missing = certificate.abstained & known
        picture = np.full((*label.shape, 3), 255, np.uint8)
        for colour, where in ((RED, missing & near), (BLUE, missing & ~near)):
            picture[where] = [int(colour[i : i + 2], 16) for i in (1, 3, 5)]
        rates = _rate(missing, near & known), _rate(missing, ~near & known)
        show_map(lower, picture, f"abstained: boundary {rates[0]}, elsewhere {rates[1]}")
        seen |= set(certificate.vertex[certificate.vertex >= 0].tolist())
    also = [(RED, "abstained at a boundary"), (BLUE, "abstained elsewhere")]
    vertex_legend(figure, tree, sorted(seen), also=also)
    return figure


def _rate(missing: NDArray[np.bool_], where: NDArray[np.bool_]) -> str:
    return f"{(missing & where).sum() / where.sum():.1%}" if where.any() else "no pixels"
