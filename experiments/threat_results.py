"""What a model certifies against light and weather on CamVid test, as a table. Started again, it goes on.

python -m experiments.threat_results --model compact --every 8

A model that normalises every image undoes dark, flat and fog before rounding: see docs/threats.md on what that means.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from math import log
from pathlib import Path

from certiseg.errors import InputError
from certiseg.models.load import load_model
from certiseg.runs.evaluate import evaluate
from certiseg.runs.run import Run
from certiseg.stats.radius import reach
from certiseg.threats import Threat, blur, dark, flat, fog, gamma

TAU = 0.75
METHODS = ("nested", "sets")


@dataclass(frozen=True)
class Case:
    """A threat whose scale makes one range, or several from anchors, end where it should."""

    threat: Threat
    up_to: float | None = None


def cases() -> dict[str, Case]:
    """Halved light, contrast and sight, blur of 2 pixels, gamma in [0.6, 1.6], and fog of 75 % by anchors."""
    half, normal = log(2), float(reach(1.0, TAU))  # the ends of ranges of scale 1 at tau = 0.75
    return {
        "dark": Case(dark(1.0)),
        "flat": Case(flat(1.0)),
        "fog": Case(fog(1.0)),
        "blur": Case(blur(2.0 / half)),
        "gamma": Case(gamma(-log(0.6) / normal)),
        "fog-anchors": Case(fog(1.0), up_to=log(4)),
    }


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m experiments.threat_results", description=__doc__)
    parser.add_argument("--root", type=Path, default=Path("../shared/data/camvid"), help="where CamVid lies")
    parser.add_argument("--runs", type=Path, default=Path("runs/threats"), help="where the runs are kept")
    parser.add_argument("--model", default="compact", help="what `certiseg evaluate --model` takes")
    parser.add_argument("--backend", help="how the model is run, as for `certiseg evaluate`")
    parser.add_argument("--every", type=int, default=8, metavar="K", help="every K-th image (default: 8)")
    parser.add_argument("--only", nargs="+", choices=list(cases()), help="some of the threats")
    parser.add_argument("-n", type=int, default=100, help="estimation draws at each anchor (default: 100)")
    args = parser.parse_args(arguments)
    kept = args.runs / f"{load_model(args.model).fingerprint()[:8]}-every{args.every}-n{args.n}"
    lines = ["| certified for | images | " + " | ".join(f"{m}: abstain | {m}: CIG" for m in METHODS) + " |"]
    lines.append("|---" * (2 + 2 * len(METHODS)) + "|")
    for name, case in cases().items():
        if args.only and name not in args.only:
            continue
        run = evaluate(
            "camvid",
            root=args.root,
            split="test",
            every=args.every,
            out=kept / name,
            model=args.model,
            backend=args.backend,
            methods=METHODS,
            setting=[(args.n, TAU)],
            threat=case.threat,
            up_to=case.up_to,
        )
        lines.append(row_of(run))
        print(lines[-1], flush=True)
    print(
        "\n".join(
            ["", f"`{args.model}`, every {args.every}th test image of CamVid, n = {args.n}, tau = {TAU}", "", *lines]
        )
    )
    return 0


def row_of(run: Run) -> str:
    """One row of the table: what is covered, and how much is certified."""
    found = {row["method"]: row for row in run.scores()}
    cells = [run.manifest.extent(run.manifest.each_setting()[0]), str(len(run))]
    for method in METHODS:
        cells += [f"{found[method]['abstain']:.1%}", f"{found[method]['cig']:.3f}"]
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    try:
        sys.exit(main())
    except InputError as error:
        sys.exit(f"threat_results: error: {error}")
