"""Joining shards: run folders with the same manifest become one, the same as if it had been one run.

Every image must be in exactly one of the folders, finished or left out with a reason.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

from certiseg.archive import write_atomically
from certiseg.errors import InputError
from certiseg.runs.folder import RunFolder
from certiseg.runs.manifest import describe_difference
from certiseg.runs.table import write_table


def merge_runs(
    runs: Sequence[RunFolder], out: RunFolder, *, progress: Callable[[int], None] = lambda _: None
) -> dict[str, str]:
    """Join run folders into `out`; returns the images that were left out. Nothing is written unless all fits."""
    homes, left_out = _checked(runs, out)
    out.create()
    with out.locked():
        out.sweep()
        if not out.manifest_path.exists():
            runs[0].manifest.save(out.manifest_path)
        for name, run in homes.items():
            for source, target in zip(run.files_of(name), out.files_of(name), strict=True):
                _place(source, target)
            progress(1)
        if left_out:
            with write_atomically(out.left_out_path) as file:
                file.write(json.dumps(left_out, indent=1).encode())
        if homes:
            write_table(out.table_path, (out.rows_path(name) for name in homes))
    return left_out


def _checked(runs: Sequence[RunFolder], out: RunFolder) -> tuple[dict[str, RunFolder], dict[str, str]]:
    """Where each image is, in the manifest's order, and what was left out."""
    first = runs[0]
    for other in (*runs[1:], *([out] if out.manifest_path.exists() else [])):
        if difference := describe_difference(first.manifest, other.manifest, str(first.path), str(other.path)):
            raise InputError(f"runs must have the same manifest to be joined, got others ({difference})")
    homes: dict[str, RunFolder] = {}
    left_out: dict[str, str] = {}
    for run in runs:
        for name in run.finished():
            if name in homes:
                raise InputError(f"each image must be in one run, got {name!r} in {homes[name].path} and {run.path}")
            homes[name] = run
    for run in runs:
        left_out |= {name: reason for name, reason in run.left_out().items() if name not in homes}
    images = first.manifest.images
    missing = [name for name in images if name not in homes and name not in left_out]
    if missing:
        raise InputError(
            f"every image must be in one of the runs, got {len(missing)} of {len(images)} in none (first: "
            f"{missing[0]!r}); finish all shards first, and name all of them"
        )
    for name, run in homes.items():
        absent = [path for path in run.files_of(name) if not path.is_file()]
        if absent:
            raise InputError(f"{run.path}: must hold all files of {name!r}, but {absent[0].name} is missing")
    ordered = {name: homes[name] for name in images if name in homes}
    return ordered, {name: left_out[name] for name in images if name in left_out}


def _place(source: Path, target: Path) -> None:
    """The same file under another name where the disk allows it, otherwise a copy; whole or not at all."""
    if target.exists() and os.path.samefile(source, target):
        return
    temporary = target.with_name(f".{target.name}.merge.part")
    temporary.unlink(missing_ok=True)
    try:
        os.link(source, temporary)
    except OSError:
        shutil.copyfile(source, temporary)
    os.replace(temporary, target)
