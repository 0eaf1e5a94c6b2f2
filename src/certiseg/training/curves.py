"""The record of a run, one row per epoch: as CSV, in TensorBoard, and as the paper's three training figures."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from certiseg.archive import write_atomically
from certiseg.errors import InputError

SCORES = ("loss", "pixel_accuracy", "mean_accuracy", "miou")
COLUMNS = (
    *("epoch", "step", "learning_rate", "train_loss"),
    *(f"{kind}_{score}" for kind in ("clean", "noisy") for score in SCORES),
    "seconds",
)
Row = Mapping[str, float]


def write_csv(path: Path, rows: Sequence[Row]) -> None:
    """All rows so far; the file is replaced as a whole."""
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS)
    writer.writeheader()
    writer.writerows(rows)
    with write_atomically(path) as file:
        file.write(text.getvalue().encode())


def read_csv(path: str | Path) -> list[dict[str, float]]:
    """The rows of a curves file."""
    try:
        with open(path, newline="", encoding="utf-8") as file:
            rows = [{name: float(value) for name, value in row.items()} for row in csv.DictReader(file)]
    except (OSError, ValueError, TypeError) as error:
        raise InputError(f"{path} must be a curves.csv of a training run, got an unreadable file") from error
    if not rows or set(rows[0]) != set(COLUMNS):
        raise InputError(f"{path} must be a curves.csv of a training run, got other columns or no rows")
    return rows


def draw_curves(rows: Sequence[Row], folder: Path) -> list[Path]:
    """Three figures (loss; mIoU; mean accuracy) as PNG and SVG in `folder`; returns the files."""
    figures = {
        "loss": {"train": "train_loss", "validation, clean": "clean_loss", "validation, noisy": "noisy_loss"},
        "miou": {"clean": "clean_miou", "noisy": "noisy_miou"},
        "mean_accuracy": {"clean": "clean_mean_accuracy", "noisy": "noisy_mean_accuracy"},
    }
    written = []
    for name, lines in figures.items():
        written += _draw(rows, lines, title=name, folder=folder)
    return written


def _draw(rows: Sequence[Row], lines: Mapping[str, str], *, title: str, folder: Path) -> list[Path]:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    words = {"loss": "cross-entropy", "miou": "mIoU", "mean_accuracy": "mean accuracy"}[title]
    figure = Figure(figsize=(4.6, 3.2), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    epochs = [row["epoch"] for row in rows]
    for label, column in lines.items():
        axes.plot(epochs, [row[column] for row in rows], marker=".", label=label)
    axes.set_xlabel("epoch")
    axes.set_ylabel(words)
    axes.grid(alpha=0.3)
    axes.legend()
    paths = [folder / f"{title}.png", folder / f"{title}.svg"]
    for path in paths:
        with write_atomically(path) as file:
            figure.savefig(file, format=path.suffix[1:], dpi=150)
    return paths


class Board:
    """TensorBoard scalars, if wanted and installed; otherwise it does nothing."""

    def __init__(self, folder: Path, *, wanted: bool, first_step: int) -> None:
        self._writer: Any = None
        if wanted:
            try:
                from torch.utils.tensorboard import SummaryWriter
            except ImportError:
                return
            self._writer = SummaryWriter(str(folder), purge_step=first_step)

    def add(self, row: Row) -> None:
        """One epoch's row, at its step."""
        if self._writer is not None:
            for name in COLUMNS[2:]:
                self._writer.add_scalar(name.replace("_", "/", 1), row[name], int(row["step"]))
            self._writer.flush()

    def close(self) -> None:
        """Write what is left."""
        if self._writer is not None:
            self._writer.close()
