"""make threats: what a model certifies against light and weather on CamVid test, and what a sweep says of it.

Writes docs/threats-results.md. Every image and every sweep is kept in runs/threats/: started again it goes on, and with
a smaller --every it draws only what is missing.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from math import log
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certiseg.archive import write_atomically
from certiseg.attack.run import Victim
from certiseg.attack.sweep import Step, Sweep, sweep_certificate
from certiseg.certificate import Certificate
from certiseg.certify import certify
from certiseg.datasets import Dataset, open_dataset
from certiseg.errors import InputError
from certiseg.images import read_image
from certiseg.models.choice import ChosenModel, choose_model
from certiseg.models.settings import ModelChoice
from certiseg.sampling import sample
from certiseg.scores import score
from certiseg.stats.radius import reach
from certiseg.threats import Threat, blur, dark, flat, fog, gamma
from experiments.threat_page import write_page

TAU = 0.75
METHODS = ("nested", "sets")
SIZE = (360, 480)
HORIZON, HEIGHT, FAR = 0.45, 1.5, 100.0
"""A flat road: the horizon as a part of the height, metres from road to camera, and the distance of all above it."""


@dataclass(frozen=True)
class Case:
    """A threat whose scale makes one range, or several from anchors, end where it should."""

    threat: Threat
    up_to: float | None = None


def road_depth(size: tuple[int, int] = SIZE) -> NDArray[np.float32]:
    """Metres (H, W) over a flat road, by a camera whose focal length is the width; no object stands on it."""
    below = np.arange(size[0]) + 0.5 - HORIZON * size[0]
    metres = np.where(below > 0, HEIGHT * size[1] / np.maximum(below, 1e-9), FAR)
    return np.ascontiguousarray(np.broadcast_to(np.minimum(metres, FAR)[:, None], size), np.float32)


def cases(size: tuple[int, int] = SIZE) -> dict[str, Case]:
    """Halved light, contrast and sight, blur of 2 pixels, gamma in [0.6, 1.6], fog of 75 % by anchors, and by depth."""
    half, normal = log(2), float(reach(1.0, TAU))  # the ends of ranges of scale 1 at tau = 0.75
    seen = {f"fog-{metres}m": Case(fog(-log(0.02) / metres / half, depth=road_depth(size))) for metres in (300, 150)}
    return {
        "dark": Case(dark(1.0)),
        "flat": Case(flat(1.0)),
        "fog": Case(fog(1.0)),
        "fog-anchors": Case(fog(1.0), up_to=log(4)),
        **seen,
        "blur": Case(blur(2.0 / half)),
        "gamma": Case(gamma(-log(0.6) / normal)),
    }


def certificates(chosen: ChosenModel, case: Case, pixels: NDArray[np.float32], n: int) -> dict[str, Certificate]:
    """The certificate of each method, from the same draws."""
    votes = sample(chosen.segmenter, pixels, sigma=0.0, threat=case.threat, up_to=case.up_to, tau=TAU, n=n)
    return {method: certify(votes, chosen.hierarchy, method=method, tau=TAU) for method in METHODS}  # type: ignore[arg-type]


def scored(certificate: Certificate, label: NDArray[np.integer]) -> dict[str, float]:
    """What is kept of a certificate."""
    found = score(certificate, label)
    names = ("abstain", "cig", "accuracy", "wrong", "agreement", "pixels")
    return {name: float(getattr(found, name)) for name in names}


def remembered(path: Path, make: Callable[[], Any]) -> Any:
    """What a file holds; what it should hold is made and written first where it is not there."""
    if not path.is_file():
        made = make()
        path.parent.mkdir(parents=True, exist_ok=True)
        with write_atomically(path) as file:
            file.write(json.dumps(made).encode())
    return json.loads(path.read_text("utf-8"))


def certified(chosen: ChosenModel, case: Case, data: Dataset, index: int, n: int) -> dict[str, Any]:
    """The scores of every method on one image, and the extent of what is covered."""
    entry = data[index]
    assert entry.label is not None
    found = certificates(chosen, case, read_image(entry.image), n)
    rows = {method: scored(each, entry.label) for method, each in found.items()}
    first = found[METHODS[0]]
    return {"name": entry.name, "extent": first.extent, "anchors": len(first.votes.anchors), "methods": rows}


def swept(chosen: ChosenModel, case: Case, data: Dataset, index: int, n: int, sweep: Sweep) -> list[dict[str, Any]]:
    """A sweep over the certificate of the first method on one image."""
    entry = data[index]
    pixels = read_image(entry.image)
    certificate = certificates(chosen, case, pixels, n)[METHODS[0]]
    return [
        asdict(step) for step in sweep_certificate(chosen.segmenter, Victim(entry.name, pixels, certificate), sweep)
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    args = _parse(arguments)
    chosen = choose_model(ModelChoice(model=args.model, backend=args.backend), size=SIZE)
    data = open_dataset("camvid", args.root, split="test")
    kept = args.runs / f"{chosen.segmenter.fingerprint()[:8]}-{chosen.segmenter.backend}-n{args.n}"
    asked = {name: case for name, case in cases(data[0].image.shape[:2]).items() if not args.only or name in args.only}
    sweep = Sweep(args.sweep_steps, args.beyond, args.draws)
    images, some = list(range(0, len(data), args.every)), list(range(0, len(data), args.sweep_every))
    found: dict[str, list[dict[str, Any]]] = {}
    sweeps: dict[str, list[Step]] = {}
    far = f"sweep-{sweep.steps}-{sweep.beyond:g}-{sweep.draws}"
    for name, case in asked.items():
        found[name], sweeps[name] = [], []
        for index in images:
            make = partial(certified, chosen, case, data, index, args.n)
            found[name].append(row := remembered(kept / name / f"{data.names[index]}.json", make))
            told = ", ".join(f"{m}: {row['methods'][m]['abstain']:.1%}" for m in METHODS)
            print(f"{row['extent']}, {row['name']}: abstained by {told}", flush=True)
        for index in some:
            again = partial(swept, chosen, case, data, index, args.n, sweep)
            rows = remembered(kept / far / name / f"{data.names[index]}.json", again)
            sweeps[name] += [Step(**row) for row in rows]
            print(f"{name}, {data.names[index]}: swept", flush=True)
    title = f"`{args.model}` in {chosen.segmenter.backend} (fingerprint {chosen.segmenter.fingerprint()[:12]})"
    write_page(
        args.out, title, {name: case.threat for name, case in asked.items()}, found, sweeps, sweep, n=args.n, tau=TAU
    )
    return 0


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m experiments.threat_results", description=__doc__)
    parser.add_argument("--root", type=Path, default=Path("../shared/data/camvid"), help="where CamVid lies")
    parser.add_argument("--runs", type=Path, default=Path("runs/threats"), help="where results are kept")
    parser.add_argument("--out", type=Path, default=Path("docs/threats-results.md"), help="the page to write")
    parser.add_argument("--model", default="compact", help="what `certiseg evaluate --model` takes")
    parser.add_argument("--backend", help="how the model is run, as for `certiseg evaluate`")
    parser.add_argument("--every", type=int, default=24, metavar="K", help="every K-th image (24)")
    parser.add_argument("--only", nargs="+", choices=list(cases()), help="some of the threats")
    parser.add_argument("-n", type=int, default=100, help="estimation draws at each anchor (default: 100)")
    parser.add_argument("--sweep-every", type=int, default=117, metavar="K", help="every K-th image is swept (117)")
    parser.add_argument("--sweep-steps", type=int, default=5, metavar="K", help="parameters inside a range (5)")
    parser.add_argument("--beyond", type=float, default=2.0, metavar="K", help="how far, in ranges (2)")
    parser.add_argument("--draws", type=int, default=32, help="fresh draws at each parameter (32)")
    args = parser.parse_args(arguments)
    for name in ("every", "sweep_every"):
        if getattr(args, name) < 1:
            raise InputError(f"--{name.replace('_', '-')} must be at least 1, got {getattr(args, name)}")
    return args


if __name__ == "__main__":
    try:
        sys.exit(main())
    except InputError as error:
        sys.exit(f"threat_results: error: {error}")
