"""The runs behind docs/results.md: which images, settings and commands, and how long they took."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from certiseg.archive import write_atomically
from certiseg.runs.folder import RunFolder
from certiseg.runs.settings import Setting

Pair = tuple[int, float]
"""n and tau."""


@dataclass(frozen=True)
class ResultsPlan:
    """What is run. The defaults are those of docs/results.md."""

    root: Path
    runs: Path
    backend: str
    dataset: str = "camvid"
    split: str = "test"
    sigmas: tuple[float, ...] = (0.25, 0.33, 0.5)
    few: Pair = (100, 0.75)
    many: Pair = (500, 0.95)
    between: tuple[int, ...] = (200, 300)
    """Further n, for the plots over n, at the tau of `few`."""
    every: int = 4
    first: int | None = None

    @property
    def main(self) -> Setting:
        """The setting at which all images are certified."""
        return Setting(self.sigmas[0], *self.few)

    @property
    def paper_settings(self) -> list[Setting]:
        return [Setting(sigma, *pair) for sigma in self.sigmas for pair in (self.few, self.many)]

    @property
    def all_images(self) -> RunFolder:
        return RunFolder(self.runs / "all")

    @property
    def some_images(self) -> RunFolder:
        return RunFolder(self.runs / f"some-{self.every}")

    @property
    def more_noise(self) -> RunFolder:
        return RunFolder(self.runs / f"more-noise-{self.every}")

    def folder_of(self, setting: Setting) -> RunFolder:
        """The run with the most images that holds a setting of the paper."""
        if setting == self.main:
            return self.all_images
        return self.some_images if setting.sigma == self.sigmas[0] else self.more_noise

    def commands(self) -> dict[str, list[str]]:
        """The `certiseg` commands of the runs, in order."""
        tau, last = self.few[1], self.many[0]
        over_n = [self.few, *((n, tau) for n in self.between), (last, tau), self.many]
        some = ["--every", str(self.every)]
        return {
            self.some_images.path.name: self._evaluate(self.some_images, self.sigmas[:1], over_n, some),
            self.all_images.path.name: self._evaluate(self.all_images, self.sigmas[:1], [self.few], []),
            self.more_noise.path.name: self._evaluate(self.more_noise, self.sigmas[1:], [self.few, self.many], some),
        }

    def _evaluate(self, folder: RunFolder, sigmas: tuple[float, ...], pairs: list[Pair], more: list[str]) -> list[str]:
        limit = [] if self.first is None else ["--first", str(self.first)]
        where = ["--root", str(self.root), "--split", self.split, *limit, *more]
        settings = [f"{n}:{tau:g}" for n, tau in pairs]
        what = ["--sigma", *(f"{sigma:g}" for sigma in sigmas), "--setting", *settings]
        how = ["--model", "compact", "--backend", self.backend, "--out", str(folder.path)]
        return ["evaluate", self.dataset, *where, *what, *how]

    def note_time(self, name: str, begun: float, ended: float | None) -> None:
        """Keep when a start of a run began and ended; one without an end was interrupted."""
        self.runs.mkdir(parents=True, exist_ok=True)
        starts = self.times()
        starts.setdefault(name, {})[str(begun)] = ended
        with write_atomically(self.runs / "times.json") as file:
            file.write(json.dumps(starts, indent=1).encode())

    def times(self) -> dict[str, dict[str, float | None]]:
        """Run -> begin of each start -> its end."""
        path = self.runs / "times.json"
        found: dict[str, dict[str, float | None]] = json.loads(path.read_text("utf-8")) if path.is_file() else {}
        return found
