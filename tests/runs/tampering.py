"""Run folders that somebody has tampered with: every file x flip, truncate, delete, swap with one of another origin."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from certiseg.errors import InputError
from certiseg.runs.evaluate import evaluate_dataset
from certiseg.runs.folder import RunFolder
from certiseg.runs.merge import merge_runs
from certiseg.runs.run import open_run
from certiseg.runs.verify import verify_run
from tests.runs.small import Images, build, hashes, manifest_of

IMAGES = Images(3, broken=2)
SETTINGS = {"sigmas": (0.1,), "settings": ((60, 0.75),), "methods": ("segcertify", "sets:2")}
ORIGINS = {
    "seed": {"seed": 7},
    "run": {"alpha": 0.02},
    "settings": {"n0": 6},
    "model": {"model_sha256": build(0, seed=1).fingerprint()},
}
"""What other runs, whose files are put in place of the right ones, differ in."""


@dataclass(frozen=True)
class Case:
    """A file of the run, and what is done to it."""

    file: str
    act: str

    def __str__(self) -> str:
        return f"{self.act} {self.file}"


def manifest(**changes: object):
    return manifest_of(IMAGES, **SETTINGS, **changes)


def cases() -> list[Case]:
    """Every file of a finished run, with everything that can be done to it."""
    folder = RunFolder("", manifest())
    about_all = ["manifest.json", "table.parquet", "left_out.json"]
    of_images = [str(path) for name in IMAGES.names[:2] for path in folder.files_of(name)]
    acts = ["flip first", "flip middle", "flip last", "truncate", "empty", "delete", *(f"swap {o}" for o in ORIGINS)]
    found = [Case(file, act) for file in (*about_all, *of_images) for act in acts]
    found += [Case(file, "swap image") for file in of_images]
    # Votes do not depend on alpha: those of the other run are the very same bytes.
    return [case for case in found if not (case.act == "swap run" and case.file.startswith("votes/"))]


def make_runs(place: Path) -> dict[str, RunFolder]:
    """The run itself, and one of each other origin."""
    runs = {}
    for origin, changes in {"own": {}, **ORIGINS}.items():
        runs[origin] = RunFolder(place / origin)
        model = build(0, seed=1) if origin == "model" else build(0)
        evaluate_dataset(runs[origin], manifest(**changes), IMAGES, model)
    return runs


def tamper(case: Case, runs: dict[str, RunFolder], folder: Path) -> None:
    """Copy the run, and do it."""
    shutil.copytree(runs["own"].path, folder)
    path = folder / case.file
    content = bytearray(path.read_bytes())
    what, _, detail = case.act.partition(" ")
    if what == "flip":
        content[{"first": 0, "middle": len(content) // 2, "last": -1}[detail]] ^= 1
    elif what == "truncate":
        content = content[: len(content) // 2]
    elif what == "empty":
        content = bytearray()
    elif what == "swap":
        content = bytearray(_other(case, runs, detail).read_bytes())
    path.unlink()
    if what != "delete":
        path.write_bytes(content)


def _other(case: Case, runs: dict[str, RunFolder], origin: str) -> Path:
    if origin != "image":
        return runs[origin].path / case.file
    own, (first, second) = runs["own"], IMAGES.names[:2]
    swapped = dict(zip(own.files_of(first), own.files_of(second), strict=True))
    swapped |= {b: a for a, b in swapped.items()}
    return swapped[own.path / case.file]


def caught_by(folder: Path, expected: dict[str, str]) -> list[str]:
    """Who notices: the check of the run, whoever reads it, whoever joins it, the next start."""
    found = []
    readers = {"verify": partial(_verify, folder), "merge": partial(_merge, folder), "read": partial(_read, folder)}
    for name, reader in readers.items():
        try:
            noticed = not reader()
        except InputError:
            noticed = True
        found += [name] if noticed else []
    try:
        evaluate_dataset(RunFolder(folder), manifest(), IMAGES, build(0))
        assert hashes(folder) == expected, "a start must refuse, or end with the bytes of the run"
        found.append("start, which writes it again")
    except InputError:
        found.append("start")
    return found


def _verify(folder: Path) -> bool:
    return verify_run(RunFolder(folder)).passed


def _read(folder: Path) -> bool:
    """Read all that an analysis may read."""
    run = open_run(folder)
    run.scores()
    for image in run:
        _ = image.label, image.prediction, image.votes()
        for method in run.manifest.methods:
            image.certificate(method)
    return len(run) == 2 and list(run.left_out) == [IMAGES.names[2]]


def _merge(folder: Path) -> bool:
    """Join it, as if it were the only shard of a run."""
    merge_runs([RunFolder(folder)], RunFolder(folder.with_name("joined")))
    return True
