"""One mutant in a forked process: the reference with its source, then tests until one fails.

The parent has the heavy libraries loaded, but never certiseg, so that each child loads the source it was told to.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import sys
import traceback
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from tests.mutation.reference import changes, reference

TESTS = Path(__file__).resolve().parents[1]
WARNED = "ignore::pytest.PytestAssertRewriteWarning"
"""Libraries that were loaded before pytest."""


def preload() -> None:
    """Load what every child needs, and nothing of certiseg."""
    import torch

    for name in (
        "hypothesis.strategies",
        "numba",
        "PIL.Image",
        "pytest",
        "scipy.ndimage",
        "scipy.special",
        "scipy.stats",
    ):
        import_module(name)
    torch.set_num_threads(1)
    assert "certiseg" not in sys.modules, "a child must load its own source"


def in_child(source: Path, work: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """What `work` answers in a fork that imports certiseg from `source`; one that dies has answered, too."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        sys.path.insert(0, str(source))
        try:
            answer = work()
        except BaseException:
            answer = {"error": traceback.format_exc()[-1500:]}
        with os.fdopen(writer, "w") as file:
            file.write(json.dumps(answer))
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as file:
        text = file.read()
    _, status = os.waitpid(child, 0)
    found: dict[str, Any] = json.loads(text) if text else {"error": f"the process died ({status})"}
    return found


def store_reference(stored: Path) -> dict[str, Any]:
    """Write what the source says on the reference input."""
    found = reference()
    texts = {name: value for name, value in found.items() if isinstance(value, str)}
    arrays = {name: value for name, value in found.items() if not isinstance(value, str)}
    np.savez(stored, __texts__=np.array(json.dumps(texts)), **arrays)
    return {"texts": texts}


def judge(stored: Path, tests: list[str]) -> dict[str, Any]:
    """What differs from the stored reference, and the first test that fails."""
    with np.load(stored, allow_pickle=False) as archive:
        before: dict[str, Any] = {name: archive[name] for name in archive.files if name != "__texts__"}
        before |= json.loads(str(archive["__texts__"]))
    return {"changed": changes(before, reference()), **first_failure(tests)}


def first_failure(tests: list[str]) -> dict[str, Any]:
    import pytest

    watcher = FirstFailure()
    options = ["-x", "-q", "-p", "no:cacheprovider", "--no-header", "--tb=short", "-W", WARNED]
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        pytest.main([*options, *(str(TESTS / name) for name in tests)], plugins=[watcher])
    return {"test": watcher.test, "reason": watcher.reason}


class FirstFailure:
    """Notes the first test that fails, and why."""

    test: str | None = None
    reason = ""

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.failed and self.test is None:
            self.test = report.nodeid
            crash = getattr(report.longrepr, "reprcrash", None)
            self.reason = str(getattr(crash, "message", report.longrepr)).splitlines()[0][:160]

    def pytest_collectreport(self, report: Any) -> None:
        if report.failed and self.test is None:
            self.test, self.reason = report.nodeid, "cannot be collected"
