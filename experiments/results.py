"""make results: runs `compact` on CamVid and writes docs/results.md. Killed and started again, it goes on.

Three runs share their draws: every fourth image at all settings of the first noise level, from whose votes the run
over all images takes the first draws of these images; then every fourth image at the other noise levels. With
`--every 12` fewer images are taken there, and a later start without it draws only what is missing.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

from certiseg.archive import write_atomically
from certiseg.datasets import open_dataset
from certiseg.errors import InputError
from certiseg.models.backends import fastest
from certiseg.models.load import load_model
from certiseg.runs.folder import RunFolder
from certiseg.votes import load_votes
from experiments.results_document import write_document
from experiments.results_plan import ResultsPlan


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m experiments.results", description=__doc__.splitlines()[0])
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
        write_document(plan, args.out)
    except InputError as error:
        print(f"results: error: {error}", file=sys.stderr)
        return 2
    return 0


def make_plan(args: argparse.Namespace) -> ResultsPlan:
    """The plan, in a folder named by model and backend: other weights begin anew."""
    model = load_model("compact")
    runs = args.runs / f"{'trial-' if args.trial else ''}{model.fingerprint()[:8]}"
    runs.mkdir(parents=True, exist_ok=True)
    remembered = runs / "backend.txt"
    if not args.backend and not remembered.is_file():  # a run is resumed with the backend it began with
        with write_atomically(remembered) as file:
            file.write(fastest(model, (360, 480), passes=10).backend.encode())
    backend = args.backend or remembered.read_text("utf-8").strip()
    plan = ResultsPlan(args.root, runs / backend, backend, every=args.every)
    return replace(plan, few=(30, 0.5), many=(60, 0.6), between=(40,), first=8) if args.trial else plan


def run_step(plan: ResultsPlan, name: str, command: list[str]) -> None:
    """One `certiseg evaluate`, unless it is finished; how long each start took is kept."""
    if (plan.runs / name / "table.parquet").is_file():
        return
    print(f"certiseg {' '.join(command)}", flush=True)
    begun = time.time()
    plan.note_time(name, begun, None)
    done = subprocess.run([sys.executable, "-m", "certiseg", *command], check=False)
    if done.returncode != 0:
        raise InputError(f"the run {name} must end well, got exit code {done.returncode}; see above and start again")
    plan.note_time(name, begun, time.time())


def lend_votes(plan: ResultsPlan, target: RunFolder) -> int:
    """Give a run the votes that other runs of the plan drew of its images, or the first of them.

    Returns of how many images. Noise depends on seed, image and index of the draw alone, so these are the very votes
    that it would draw.
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


def image_names(plan: ResultsPlan) -> tuple[str, ...]:
    return tuple(open_dataset(plan.dataset, plan.root, split=plan.split, first=plan.first).names)


if __name__ == "__main__":
    raise SystemExit(main())
