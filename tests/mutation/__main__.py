"""`make mutants`: applies each mutant to a copy of the package, shows its effect, and finds the test that kills it.

python -m tests.mutation [--only NAME...] [--log FILE]; what the log holds for the same edit is not run again.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.mutation.child import in_child, judge, preload, store_reference
from tests.mutation.mutant import Mutant
from tests.mutation.mutants import MUTANTS
from tests.mutation.table import write_table

ROOT = Path(__file__).resolve().parents[2]
KERNELS = ("counts", "hits", "noise", "scores")
"""Files whose compiled code may have loops of another file inside: numba does not notice when those change."""


def main() -> int:
    parser = argparse.ArgumentParser(description="Mutation check of the tests of the guarantee.")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="just these mutants")
    parser.add_argument("--log", type=Path, default=ROOT / "runs/mutants.jsonl", help="where results are kept")
    parser.add_argument("--again", action="store_true", help="run even what the log holds")
    args = parser.parse_args()
    chosen = [mutant for mutant in MUTANTS if not args.only or mutant.name in args.only]
    known = {} if args.again else read_log(args.log)
    args.log.parent.mkdir(exist_ok=True)
    preload()
    with tempfile.TemporaryDirectory() as folder:
        pristine: Path | None = None
        for mutant in chosen:
            if key(mutant) in known:
                continue
            if pristine is None:
                pristine = make_pristine(Path(folder) / "pristine")
            result = {"key": key(mutant), "name": mutant.name, **try_mutant(mutant, pristine, Path(folder) / "mutant")}
            with args.log.open("a") as log:
                log.write(json.dumps(result) + "\n")
            known[result["key"]] = result
            print(f"{mutant.name:<26} {len(result['changed']):>3} parts changed; {result['test']}", flush=True)
    results = [(mutant, known[key(mutant)]) for mutant in MUTANTS if key(mutant) in known]
    if len(results) == len(MUTANTS):
        write_table(ROOT / "docs/mutants.md", results)
    return report([pair for pair in results if pair[0] in chosen])


def report(results: Sequence[tuple[Mutant, dict[str, Any]]]) -> int:
    """Exit code 1 if a mutant survives or does nothing."""
    survivors = [mutant.name for mutant, result in results if result["test"] is None]
    idle = [mutant.name for mutant, result in results if not result["changed"]]
    print(f"{len(results)} mutants: {len(results) - len(survivors)} killed")
    for what, names in (("survived", survivors), ("changed nothing", idle)):
        if names:
            print(f"{what}: {', '.join(names)}")
    return 1 if survivors or idle else 0


def key(mutant: Mutant) -> str:
    """The edit and the tests: a result is good for nothing else."""
    text = repr((mutant.file, mutant.old, mutant.new, mutant.tests))
    return f"{mutant.name}-{hashlib.sha256(text.encode()).hexdigest()[:12]}"


def read_log(path: Path) -> dict[str, dict[str, Any]]:
    lines = path.read_text().splitlines() if path.is_file() else []
    return {result["key"]: result for result in map(json.loads, lines)}


def make_pristine(folder: Path) -> Path:
    """A copy of the package, with the reference's answers beside it."""
    shutil.copytree(ROOT / "src", folder / "src")
    answer = in_child(folder / "src", lambda: store_reference(folder / "reference.npz"))
    if "error" in answer:
        raise SystemExit(f"the reference must work before anything is broken, got {answer['error']}")
    refused = {name: text for name, text in answer["texts"].items() if "Error" in text and not text.startswith("Input")}
    if refused:
        raise SystemExit(f"the reference must work before anything is broken, got {refused}")
    return folder


def try_mutant(mutant: Mutant, pristine: Path, folder: Path) -> dict[str, Any]:
    """What an edit changes, and the first test that fails for it."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(pristine / "src", folder / "src")
    path = folder / "src/certiseg" / mutant.file
    text = path.read_text("utf-8")
    if text.count(mutant.old) != 1:
        raise SystemExit(f"{mutant.name}: its text must occur once in {mutant.file}, got {text.count(mutant.old)}")
    path.write_text(text.replace(mutant.old, mutant.new), "utf-8")
    for module in KERNELS if mutant.file.startswith("kernels/") else ():
        for compiled in path.parent.glob(f"__pycache__/{module}.*.nb?"):
            compiled.unlink()
    started = time.monotonic()
    answer = in_child(folder / "src", lambda: judge(pristine / "reference.npz", list(dict.fromkeys(mutant.tests))))
    if "error" in answer:
        raise SystemExit(f"{mutant.name}: the child must answer, got {answer['error']}")
    return {**answer, "seconds": round(time.monotonic() - started, 1)}


if __name__ == "__main__":
    sys.exit(main())
