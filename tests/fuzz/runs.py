"""Run folders in which somebody changed bytes, and that are then resumed, tuned or reported."""

from __future__ import annotations

import json
import random
import shutil
from pathlib import Path

from certiseg.cli import COMMANDS
from tests.fuzz.archives import odd_value, reseal
from tests.fuzz.cases import MODEL, damage, kind

OPTIONS = ["--sigma", "0.1", "--setting", "50:0.75", "--n0", "2", "--methods", "adaptive", "nested", "sets"]


@kind
def run_folder(rng: random.Random, folder: Path) -> list[str]:
    run = folder / "out"
    shutil.copytree(folder / "run", run)
    files = sorted(path for path in run.rglob("*") if path.is_file() and path.name != ".lock")
    for _ in range(rng.choice([1, 1, 2])):
        path = rng.choice(files)
        if not path.is_file():
            continue
        choice = rng.randrange(5)
        if choice == 0:
            path.unlink()
        elif path.suffix == ".json" and choice < 4:
            path.write_text(json.dumps(odd_value(rng, json.loads(path.read_bytes() or b"{}"))))
        elif path.suffix == ".npz" and choice < 3:
            _reseal(rng, path)
        else:
            path.write_bytes(damage(rng, path.read_bytes()))
    resume = ["evaluate", "folder", "--root", "data", "--out", "out", *MODEL, *OPTIONS]
    commands = [resume, ["tune", "out", "--json"]]
    if "report" in COMMANDS:
        commands.append(["report", "out"])
    return rng.choice(commands)


def _reseal(rng: random.Random, path: Path) -> None:
    from certiseg.errors import InputError

    for sort in ("votes", "certificate"):
        try:
            return reseal(rng, path, path, sort)
        except InputError:
            continue
