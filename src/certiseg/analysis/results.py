"""make results: runs `compact` on CamVid and writes docs/results.md. Killed and started again, it goes on.

Three runs share their draws: every fourth image at all settings of the first noise level, from whose votes the run
over all images takes the first draws of these images; then every fourth image at the other noise levels. With
`--every 12` fewer images are taken there, and a later start without it draws only what is missing.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path

from certiseg.archive import write_atomically
from certiseg.errors import InputError
from certiseg.runs.folder import RunFolder
from certiseg.runs.manifest import Setting
from certiseg.votes import load_votes

Pair = tuple[int, float]


@dataclass(frozen=True)
class Plan:
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
        """The run in which a setting of the paper is to be found, with the most images."""
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
        settings = [f"{n}:{tau:g}" for n, tau in pairs]
        limit = [] if self.first is None else ["--first", str(self.first)]
        where = ["--root", str(self.root), "--split", self.split, *limit, *more]
        what = ["--sigma", *(f"{sigma:g}" for sigma in sigmas), "--setting", *settings]
        how = ["--model", "compact", "--backend", self.backend, "--out", str(folder.path)]
        return ["evaluate", self.dataset, *where, *what, *how]


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m certiseg.analysis.results", description=__doc__.splitlines()[0])
    parser.add_argument("--root", type=Path, default=Path("../shared/data/camvid"), help="where CamVid lies")
    parser.add_argument("--runs", type=Path, default=Path("runs/results"), help="where the runs are kept")
    parser.add_argument("--out", type=Path, default=Path("docs"), help="folder of results.md and results/")
    parser.add_argument("--backend", help="default: the fastest, measured once")
    parser.add_argument("--every", type=int, default=4, metavar="K", help="every K-th image at the other settings")
    parser.add_argument("--trial", action="store_true", help="eight images and few draws, to see that all works")
    args = parser.parse_args(arguments)
    try:
        plan = make_plan(args)
        for name, command in plan.commands().items():
            if lent := lend_votes(plan, RunFolder(plan.runs / name)):
                print(f"{name}: the votes of {lent} images are taken from another run", flush=True)
            run_step(plan, name, command)
        from certiseg.analysis.results_document import write_document

        write_document(plan, args.out)
    except InputError as error:
        print(f"results: error: {error}", file=sys.stderr)
        return 2
    return 0


def make_plan(args: argparse.Namespace) -> Plan:
    """The plan, in a folder named by model and backend: other weights begin anew."""
    from certiseg.models.load import load_model

    runs = args.runs / f"{'trial-' if args.trial else ''}{load_model('compact').fingerprint()[:8]}"
    runs.mkdir(parents=True, exist_ok=True)
    backend = args.backend or _fastest_backend(runs / "backend.txt")
    plan = Plan(args.root, runs / backend, backend, every=args.every)
    return replace(plan, few=(30, 0.5), many=(60, 0.6), between=(40,), first=8) if args.trial else plan


def _fastest_backend(remembered: Path) -> str:
    """Measured at the first start, the same afterwards: a run is resumed with the backend it began with."""
    if not remembered.is_file():
        from certiseg.models.backends import fastest
        from certiseg.models.load import load_model

        backend = fastest(load_model("compact"), (360, 480), passes=10).backend
        with write_atomically(remembered) as file:
            file.write(backend.encode())
    return remembered.read_text("utf-8").strip()


def run_step(plan: Plan, name: str, command: list[str]) -> None:
    """One `certiseg evaluate`, unless it is finished; how long each start took is kept."""
    if (plan.runs / name / "table.parquet").is_file():
        return
    print(f"certiseg {' '.join(command)}", flush=True)
    begun = time.time()
    note_time(plan, name, begun, None)
    done = subprocess.run([sys.executable, "-m", "certiseg", *command], check=False)
    if done.returncode != 0:
        raise InputError(f"the run {name} must end well, got exit code {done.returncode}; see above and start again")
    note_time(plan, name, begun, time.time())


def note_time(plan: Plan, name: str, begun: float, ended: float | None) -> None:
    """Keep when a start of a step began and ended; one without an end was interrupted."""
    plan.runs.mkdir(parents=True, exist_ok=True)
    starts = step_times(plan)
    starts.setdefault(name, {})[str(begun)] = ended
    with write_atomically(plan.runs / "times.json") as file:
        file.write(json.dumps(starts, indent=1).encode())


def step_times(plan: Plan) -> dict[str, dict[str, float | None]]:
    """Step -> begin of each start -> its end."""
    path = plan.runs / "times.json"
    return json.loads(path.read_text("utf-8")) if path.is_file() else {}


def lend_votes(plan: Plan, target: RunFolder) -> int:
    """Give a run the votes that others of the plan drew of its images, or the first of them; returns of how many.

    Noise depends on seed, image and index of the draw alone, so these are the very votes it would draw.
    """
    sigmas = plan.sigmas[1:] if target.path == plan.more_noise.path else plan.sigmas[:1]
    whole = target.path == plan.all_images.path
    n = plan.few[0] if whole else plan.many[0]
    names = image_names(plan)[:: 1 if whole else plan.every]
    lenders = [RunFolder(path) for path in sorted(plan.runs.glob("*/")) if path != target.path]
    lent = 0
    for name, sigma in ((name, sigma) for name in names for sigma in sigmas):
        path = target.votes_path(name, sigma)
        sources = [lender.votes_path(name, sigma) for lender in lenders]
        for source in (source for source in sources if source.is_file() and not path.is_file()):
            votes = load_votes(source)
            if n in (votes.n, *votes.snapshots):
                target.create()
                votes.first(n).save(path)
                lent += 1
    return lent


def image_names(plan: Plan) -> tuple[str, ...]:
    from certiseg.datasets import open_dataset

    return tuple(open_dataset(plan.dataset, plan.root, split=plan.split, first=plan.first).names)


if __name__ == "__main__":
    raise SystemExit(main())
