"""A run as Python sees it: its images, their certificates, and the scores."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certiseg.certificate import Certificate
from certiseg.errors import InputError
from certiseg.runs.folder import RunFolder
from certiseg.runs.manifest import Manifest
from certiseg.runs.pooling import HEADS, LEGEND, SCORES, ScoredRun
from certiseg.runs.settings import RunSettings, Setting
from certiseg.runs.table import UNCERTIFIED
from certiseg.stats.radius import radius
from certiseg.votes import Votes
from certiseg.words import LOW_AGREEMENT, agreement_words


@dataclass(frozen=True)
class RunImage:
    """A finished image of a run."""

    folder: RunFolder
    name: str

    @property
    def label(self) -> NDArray[np.integer]:
        """(H, W): the ground truth, 255 where there is none."""
        return self.folder.label(self.name)

    @property
    def prediction(self) -> NDArray[np.integer]:
        """(H, W): the model's labels without noise; nothing is certified about them."""
        return self.folder.prediction(self.name)

    def votes(self, setting: Setting | None = None) -> Votes:
        """The votes at a setting, by default that of the promise."""
        return self.folder.votes(self.name, setting or self.folder.manifest.promised[1])

    def certificate(self, method: str | None = None, setting: Setting | None = None) -> Certificate:
        """The certificate of a method at a setting, by default those of the promise."""
        manifest = self.folder.manifest
        method, setting = method or manifest.promised[0], setting or manifest.promised[1]
        if method not in manifest.methods or setting not in manifest.each_setting():
            known = f"{', '.join(manifest.methods)} at {', '.join(map(str, manifest.each_setting()))}"
            raise InputError(f"method and setting must be of the run ({known}), got {method} at {setting}")
        return self.folder.certificate(self.name, setting, method)


STOPPED = "Draws: the mean over the images, the least and the most; n is the most that was allowed."


class ScoreTable(list[dict[str, Any]]):
    """Rows of scores, one per method and setting, the uncertified model first; printed as a table.

    `role` says which row is the promise of the run; all others are a comparison.
    """

    def __init__(self, title: str, rows: list[dict[str, Any]]) -> None:
        super().__init__(rows)
        self.title = title

    def __str__(self) -> str:
        lines = [self.title]
        stopped = any("draws" in row for row in self)
        draws = f"  {'draws':<20}" if stopped else ""
        lines.append(
            f"{'sigma':>6}{'n':>6}{'tau':>6}{draws}  {'method':<22}" + "".join(f"{head:>11}" for head in HEADS.values())
        )
        for row in self:
            key = f"{row['sigma']:>6g}{row['n']:>6}{row['tau']:>6g}" if "sigma" in row else " " * 18
            key += f"  {_draws(row):<20}" if stopped else ""
            scores = "".join(f"{_shown(row.get(name)):>11}" for name in SCORES)
            lines.append(f"{key}  {row['method']:<22}{scores}  {row.get('role', '')}".rstrip())
        legend = f"{LEGEND} {STOPPED}" if stopped else LEGEND
        return "\n".join([*lines, legend, *self.warnings])

    @property
    def warnings(self) -> list[str]:
        """A line per row whose certified labels are not what the model answers without noise."""
        return [
            f"{row['method']} at sigma {row['sigma']:g}, n {row['n']}, tau {row['tau']:g}: "
            + agreement_words(row["agreement"])
            for row in self
            if row.get("agreement") is not None and row["agreement"] < LOW_AGREEMENT
        ]


class Run:
    """A run folder: iterate its finished images, or take one by its name."""

    def __init__(self, folder: RunFolder) -> None:
        self.folder = folder

    @property
    def path(self) -> Path:
        """Where the folder is."""
        return self.folder.path

    @property
    def manifest(self) -> Manifest:
        """Everything that decides the run."""
        return self.folder.manifest

    @property
    def left_out(self) -> dict[str, str]:
        """Images that could not be used, with the reason."""
        return self.folder.left_out()

    def __repr__(self) -> str:
        manifest = self.manifest
        done = f"{len(self)} of {len(manifest.images)} images of {manifest.dataset}"
        return f"<Run {str(self.path)!r}: {done}, {manifest.model}, {', '.join(manifest.methods)}>"

    def __len__(self) -> int:
        return len(self.folder.finished())

    def __iter__(self) -> Iterator[RunImage]:
        return (RunImage(self.folder, name) for name in self.folder.finished())

    def __getitem__(self, name: str) -> RunImage:
        if name not in self.folder.finished():
            raise InputError(f"image must be a finished one of {self.path}, got {name!r}")
        return RunImage(self.folder, name)

    def certificate(self, name: str, method: str | None = None, setting: Setting | None = None) -> Certificate:
        """The certificate of an image, by default the one that the run promises."""
        return self[name].certificate(method, setting)

    def scores(self) -> ScoreTable:
        """The scores of every method at every setting, pooled over the pixels of all images."""
        manifest, scored = self.manifest, ScoredRun(self.folder)
        model = scored.sums(UNCERTIFIED).scores()
        rows: list[dict[str, Any]] = [{"method": UNCERTIFIED, "accuracy": model.accuracy, "miou": model.miou}]
        for setting in manifest.each_setting():
            for method in manifest.methods:
                found = scored.sums(method, setting).scores()
                cells = setting_cells(setting, manifest) | {"method": method, "role": manifest.role(method, setting)}
                cells |= scored.draws(setting.sigma)
                rows.append(cells | {name: _or_none(getattr(found, name)) for name in SCORES})
        count = len(scored.images)
        images = f"{count} image{'s' if count != 1 else ''} of {manifest.dataset}"
        method, setting = manifest.promised
        return ScoreTable(
            f"{images}; promise: {method} at {manifest.words(setting)}, {manifest.guarantee()}{manifest.along()}", rows
        )


def open_run(path: str | Path) -> Run:
    """A run folder of `cs.evaluate` or `certiseg evaluate`, finished or not."""
    run = Run(RunFolder(path))
    _ = run.manifest
    return run


def setting_cells(setting: Setting, run: RunSettings | None = None) -> dict[str, Any]:
    """What a row of scores says about its setting: R, or what a run along a threat covers."""
    if run is None or run.threat.law == "none":
        return vars(setting) | {"radius": radius(setting.sigma, setting.tau)}
    return vars(setting) | {"radius": run.radius or 0.0, "covered": run.extent(setting)}


def _or_none(value: float | None) -> float | None:
    """None instead of NaN, as JSON wants it."""
    return None if value is None or value != value else value


def _draws(row: dict[str, Any]) -> str:
    """The draws of a row of stopped images: their mean, least and most."""
    return f"{row['draws']:.0f} ({row['draws_least']} to {row['draws_most']})" if "draws" in row else ""


def _shown(value: float | None) -> str:
    return "-" if _or_none(value) is None else f"{value:.3f}"
