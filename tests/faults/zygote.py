"""A process that has everything loaded and forks: each command then starts at once, as a process of its own.

Reads JSON lines [folder, file for what is printed, arguments]; answers with the process id, then with how it ended.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any


def main() -> None:
    import faulty_networks  # noqa: F401 - of the scene, in the present folder

    from certiseg.cli import main as certiseg
    from certiseg.runs import evaluate  # noqa: F401

    for line in sys.stdin:
        folder, log, arguments = json.loads(line)
        child = os.fork()
        if child == 0:
            _become(folder, log)
            os._exit(_code(certiseg, arguments))
        print(child, flush=True)
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


def _become(folder: str, log: str) -> None:
    os.chdir(folder)
    handle = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    for stream in (0, 1, 2):
        os.dup2(handle, stream)


def _code(certiseg: Any, arguments: list[str]) -> int:
    """What a shell would see."""
    import traceback

    try:
        return int(certiseg(arguments))
    except SystemExit as stop:
        return int(stop.code or 0)
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt) and not error.__traceback__.tb_next:
            return 130  # before certiseg began
        traceback.print_exc()
        return 1
    finally:
        sys.stdout.flush()
        sys.stderr.flush()


class Zygote:
    """The other end: starts commands, one after the other."""

    def __init__(self, scene: Path, root: Path) -> None:
        paths = os.pathsep.join([str(root), str(root / "src"), str(scene)])
        environment = {**os.environ, "PYTHONPATH": paths, "OMP_NUM_THREADS": "1", "FAULT": "slow"}
        pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        command = [sys.executable, "-m", "tests.faults.zygote"]
        self.process = subprocess.Popen(command, cwd=scene, env=environment, text=True, **pipes)
        self.scene, self.log = scene, scene / "zygote.log"

    def start(self, arguments: list[str]) -> int:
        """The id of a process that runs the command."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps([str(self.scene), str(self.log), arguments]) + "\n")
        self.process.stdin.flush()
        return int(self.process.stdout.readline())

    def finish(self) -> tuple[int, str]:
        """How the command ended (negative: by which signal), and what it printed."""
        assert self.process.stdout is not None
        code = int(self.process.stdout.readline())
        return code, self.log.read_text(errors="replace")

    def close(self) -> None:
        self.process.communicate(timeout=60)


if __name__ == "__main__":
    main()
