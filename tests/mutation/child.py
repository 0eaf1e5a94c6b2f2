"""One mutant in a process of its own: the reference, then tests until one fails. Prints one line of JSON.

python -m tests.mutation.child REFERENCE.npz TEST...; without tests the reference is written.
"""

from __future__ import annotations

import contextlib
import io
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

from tests.mutation.reference import changes, reference


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


def main(stored: Path, tests: list[str]) -> None:
    found = reference()
    if not tests:
        texts = {name: value for name, value in found.items() if isinstance(value, str)}
        arrays = {name: value for name, value in found.items() if not isinstance(value, str)}
        np.savez(stored, __texts__=np.array(json.dumps(texts)), **arrays)
        print("ANSWER", json.dumps({"parts": len(found), "texts": texts}))
        return
    with np.load(stored, allow_pickle=False) as archive:
        before: dict[str, Any] = {name: archive[name] for name in archive.files if name != "__texts__"}
        before |= json.loads(str(archive["__texts__"]))
    changed = changes(before, found)
    print("ANSWER", json.dumps({"changed": changed, **_first_failure(tests)}))


def _first_failure(tests: list[str]) -> dict[str, Any]:
    import pytest

    watcher = FirstFailure()
    with contextlib.redirect_stdout(io.StringIO()):
        pytest.main(["-x", "-q", "-p", "no:cacheprovider", "--no-header", *tests], plugins=[watcher])
    return {"test": watcher.test, "reason": watcher.reason}


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
