"""What happens before the first draw: the help loads nothing, and no loop is compiled twice."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from certiseg.cli import COMMANDS

HELP = """
import contextlib, io, sys
from certiseg.cli import main
with contextlib.redirect_stdout(io.StringIO()) as shown, contextlib.suppress(SystemExit):
    main([{word!r}])
print(shown.getvalue())
print(sorted(name for name in sys.modules if name in ("numpy", "yaml", "PIL", "tqdm") or name.startswith("certiseg.")))
"""

COUNT = """
import numpy as np
from certiseg.kernels.counts import count_labels
for _ in range(2):
    count_labels(np.zeros((2, 3, 4), np.uint8), np.zeros((3, 4, 5), np.uint16))
print(sum(count_labels.stats.cache_hits.values()), sum(count_labels.stats.cache_misses.values()))
"""


def run(program: str, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env=os.environ | environment, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.parametrize("word", ["--help", "--version"])
def test_help_loads_no_command_and_no_library(word: str) -> None:
    shown, _, loaded = run(HELP.format(word=word)).rpartition("\n")
    assert loaded == "['certiseg.cli', 'certiseg.cli.codes', 'certiseg.errors']"
    if word == "--help":
        words = " ".join(shown.split())
        assert all(f"{name} {does}" in words for name, does in COMMANDS.items())


def test_a_loop_is_compiled_once_and_read_by_the_next_process(tmp_path: Path) -> None:
    first, second = (run(COUNT, NUMBA_CACHE_DIR=str(tmp_path)) for _ in range(2))
    assert (first, second) == ("0 1", "1 0")
