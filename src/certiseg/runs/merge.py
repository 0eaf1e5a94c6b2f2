"""Joining shards: run folders with the same manifest become one, the same as if it had been one run.

Every image must be in exactly one of the folders, finished or left out with a reason.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

from certiseg.errors import InputError
from certiseg.runs.folder import RunFolder
from certiseg.runs.manifest import Manifest, describe_difference, join_keys
from certiseg.runs.table import write_table
from certiseg.runs.verify import damage_of


def merge_runs(
    runs: Sequence[RunFolder], out: RunFolder, *, progress: Callable[[int], None] = lambda _: None
) -> dict[str, str]:
    """Join run folders into `out`; returns the images that were left out. Nothing is written unless all fits."""
    manifest, homes, left_out = _checked(runs, out)
    out.create()
    with out.locked():
        out.sweep()
        out.manifest = manifest
        manifest.save(out.manifest_path)
        for name, run in homes.items():
            for source, target in zip(run.files_of(name), out.files_of(name), strict=True):
                _place(source, target)
            progress(1)
        out.write_left_out(left_out)
        if homes:
            write_table(out.table_path, (out.receipt(name).rows for name in homes), run=manifest.run_key)
    return left_out


def _checked(runs: Sequence[RunFolder], out: RunFolder) -> tuple[Manifest, dict[str, RunFolder], dict[str, str]]:
    """The manifest of the whole, where each image is, in its order, and what was left out."""
    first, manifest = runs[0], runs[0].manifest
    for other in (*runs[1:], *([out] if out.manifest_path.exists() else [])):
        if difference := describe_difference(first.manifest, other.manifest, str(first.path), str(other.path)):
            raise InputError(f"runs must have the same manifest to be joined, got others ({difference})")
        manifest = join_keys(manifest, other.manifest, other.path)
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
        for problem in damage_of(run, name):
            raise InputError(problem.what)
    ordered = {name: homes[name] for name in images if name in homes}
    return manifest, ordered, {name: left_out[name] for name in images if name in left_out}


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
