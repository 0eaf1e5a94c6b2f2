"""certiseg merge: join the shards of a run."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from tqdm import tqdm

from certiseg.cli import COMMANDS
from certiseg.cli.evaluate import show_run
from certiseg.errors import InputError


def add_parser(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "merge",
        help=COMMANDS["merge"],
        description="Joins run folders of `certiseg evaluate --shard` into the folder that one run would have made, "
        "byte for byte. The manifests must be the same, and every image must be in exactly one folder. Files are "
        "linked where the disk allows it, so that nothing is stored twice. Exit code 3 if some images were left out.",
        epilog="example: certiseg merge runs/shard-1 runs/shard-2 --out runs/camvid",
    )
    parser.add_argument("runs", nargs="+", metavar="RUN", help="folders of shards")
    parser.add_argument("--out", required=True, metavar="RUN", help="the joined run folder")
    parser.add_argument("--json", action="store_true", help="print the scores as JSON")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    from certiseg.runs.folder import RunFolder
    from certiseg.runs.merge import merge_runs
    from certiseg.runs.run import Run

    out = RunFolder(args.out)
    runs = [RunFolder(path) for path in args.runs]
    if len({Path(path).resolve() for path in (*args.runs, args.out)}) <= len(runs):
        raise InputError("RUN and --out must be different folders, got one of them twice")
    with tqdm(total=len(runs[0].manifest.images), unit="image", desc="merge", disable=None) as bar:
        merge_runs(runs, out, progress=bar.update)
    return show_run(Run(out), as_json=args.json)
