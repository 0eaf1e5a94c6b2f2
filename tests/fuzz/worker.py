"""Runs cases in a process of its own and says what broke; whoever started it notices if it dies or hangs.

Reads `kind:number` lines, answers each with one line of JSON: {"case", "command", "code", "wrong", "seconds"}.
"""

from __future__ import annotations

import contextlib
import faulthandler
import io
import json
import os
import resource
import shutil
import signal
import sys
import time
import traceback
import warnings
from pathlib import Path
from typing import Any

from tests.fuzz.cases import Case, every_kind

SECONDS = 10
"""Of processor time: a machine that does other things, too, makes nothing hang."""
MOST_MEMORY = 2 << 30
NOTES = ("note:", "region:")


def main(base: Path, scratch: Path) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (24 << 30, 24 << 30))
    faulthandler.register(signal.SIGPROF, chain=True)
    every_kind()
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    for line in sys.stdin:
        name, _, number = line.strip().rpartition(":")
        answers.write(json.dumps(run(Case(name, int(number)), base, scratch)) + "\n")


def run(case: Case, base: Path, scratch: Path) -> dict[str, Any]:
    """Build a case in a fresh folder, run it there and list what it did wrong."""
    place = scratch / "around" / "case"
    shutil.rmtree(scratch / "around", ignore_errors=True)
    place.mkdir(parents=True)
    command = case.build(base, place)
    (place / "out").mkdir(exist_ok=True)
    before = _files(scratch)
    os.chdir(place)
    _reset_peak()
    shown, started = io.StringIO(), time.process_time()
    signal.setitimer(signal.ITIMER_PROF, 3 * SECONDS)  # ends the process, with a traceback
    try:
        with contextlib.redirect_stderr(shown), contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            code, wrong = _call(command)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        os.chdir(scratch)
    seconds = time.process_time() - started
    if seconds > SECONDS:
        wrong.append(f"took {seconds:.0f} s")
    if _peak() > MOST_MEMORY:
        wrong.append(f"took {_peak() >> 20} MB")
    wrong += _message_faults(code, shown.getvalue())
    wrong += [f"outside the output folder: {name}" for name in _changed(before, _files(scratch), place)]
    wrong += _half_files(place / "out", code)
    return {"case": str(case), "command": command, "code": code, "wrong": wrong, "seconds": round(seconds, 2)}


def _call(command: list[str]) -> tuple[int, list[str]]:
    """Exit code of a command, or of a function under API; any exception but the promised ones is wrong."""
    from certiseg.errors import InputError

    try:
        if command[0] == "API":
            _api(command[1], command[2])
            return 0, []
        from certiseg.cli import main as certiseg

        os.environ["CERTISEG_DEBUG"] = "1"  # what nobody has foreseen is not to be hidden in a sentence
        return certiseg(command), []
    except InputError as error:
        print(f"certiseg: error: {error}", file=sys.stderr)
        return 2, []
    except SystemExit as stop:
        return int(stop.code or 0), []
    except BaseException as error:
        last = traceback.extract_tb(error.__traceback__)[-3:]
        where = " < ".join(f"{Path(frame.filename).name}:{frame.lineno}" for frame in reversed(last))
        return -1, [f"{type(error).__name__}: {str(error)[:200]} at {where}"]


def _api(function: str, name: str) -> None:
    import certiseg as cs
    from certiseg.models.weight_files import read_weights

    {"load_certificate": cs.load_certificate, "load_votes": cs.load_votes, "read_weights": read_weights}[function](name)


def _message_faults(code: int, text: str) -> list[str]:
    """Bad input is exit code 2 and one sentence; success or a failed check is 0 or 1, images left out 3."""
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith(NOTES)]
    if code not in (-1, 0, 1, 2, 3):
        return [f"exit code {code}"]
    if code == 2 and (len(lines) != 1 or len(lines[0]) > 2000):
        return [f"{len(lines)} lines of {len(text)} characters instead of one sentence: {text[:200]!r}"]
    return ["a traceback was printed"] if "Traceback" in text else []


def _files(folder: Path) -> dict[str, tuple[int, int]]:
    """Every file and folder below, with size and time of change."""
    found = {}
    for path in folder.rglob("*"):
        if "__pycache__" not in path.parts:
            status = path.lstat()
            found[str(path)] = (status.st_size, status.st_mtime_ns) if path.is_file() else (0, 0)
    return found


def _changed(before: dict[str, Any], after: dict[str, Any], place: Path) -> list[str]:
    names = {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}
    return sorted(name for name in names if not name.startswith(str(place / "out")))


def _half_files(out: Path, code: int) -> list[str]:
    """Written files that look whole must be whole, however the command ended (runs hold what was damaged before)."""
    from PIL import Image

    from certiseg.archive import DamagedArchiveError, read_archive

    if code == 0 or not out.is_dir() or (out / "manifest.json").exists() or (out / "partial").exists():
        return []
    wrong = [f"left behind: {path.name}" for path in out.rglob(".*.part")]
    for path in out.rglob("*.*"):
        try:
            if path.suffix == ".npz":
                read_archive(path, kind="certificate", version=1)
            elif path.suffix == ".png":
                Image.open(path).load()
            elif path.suffix == ".json":
                json.loads(path.read_bytes())
        except (DamagedArchiveError, OSError, ValueError) as error:
            wrong.append(f"half a file: {path.name} ({error})")
    return wrong


def _reset_peak() -> None:
    Path("/proc/self/clear_refs").write_text("5")


def _peak() -> int:
    """Most memory in use since the last reset, in bytes."""
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) << 10


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
