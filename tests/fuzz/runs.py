"""Run folders in which somebody changed bytes, and that are then resumed, tuned or reported."""

from __future__ import annotations

import json
import random
import shutil
from pathlib import Path

from certiseg.cli import COMMANDS
from certiseg.errors import InputError
from certiseg.runs.folder import ROWS
from certiseg.runs.sealed import read_sealed, sha256_of, write_sealed
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
            _seal_oddly(rng, path)
        elif path.suffix == ".npz" and choice < 3:
            _reseal(rng, path)
        else:
            path.write_bytes(damage(rng, path.read_bytes()))
    if rng.random() < 0.5:
        _hash_again(run)
    resume = ["evaluate", "folder", "--root", "data", "--out", "out", *MODEL, *OPTIONS]
    commands = [resume, ["tune", "out", "--json"], ["verify", "out"], ["merge", "out", "--out", "out/joined"]]
    if "report" in COMMANDS:
        commands.append(["report", "out"])
    return rng.choice(commands)


def _seal_oddly(rng: random.Random, path: Path) -> None:
    """Odd content under a right seal."""
    content = json.loads(path.read_bytes())
    sort = content.pop("kind")
    for name in ("format_version", "sha256"):
        content.pop(name)
    odd = odd_value(rng, content)
    write_sealed(path, sort, odd if isinstance(odd, dict) else {"odd": odd})


def _hash_again(run: Path) -> None:
    """Make the rows of every image agree with its files, as a careful forger would."""
    for path in (run / "rows").glob("*.json"):
        try:
            content = read_sealed(path, ROWS)
            content["files"] = {name: sha256_of(run / name) for name in content["files"] if (run / name).is_file()}
        except (InputError, KeyError, TypeError, AttributeError):
            continue
        write_sealed(path, ROWS, content)


def _reseal(rng: random.Random, path: Path) -> None:
    for sort in ("votes", "certificate"):
        try:
            return reseal(rng, path, path, sort)
        except InputError:
            continue
