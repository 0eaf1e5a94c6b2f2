"""What many tests share: settings of Hypothesis, random ragged trees, random votes."""

from __future__ import annotations

import ctypes
import signal
import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

ROOT_FOLDER = Path(__file__).resolve().parent.parent
if str(ROOT_FOLDER) not in sys.path:
    sys.path.insert(0, str(ROOT_FOLDER))

torch.set_num_threads(1)
# In the background of a shell SIGINT is ignored, and so it would be by every process that a test starts and interrupts.
signal.signal(signal.SIGINT, signal.default_int_handler)

settings.register_profile(
    "certiseg",
    derandomize=True,
    deadline=None,
    database=None,
    max_examples=60,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.load_profile("certiseg")


class _Stack(ctypes.Structure):
    """stack_t of signal.h."""

    _fields_ = (("start", ctypes.c_void_p), ("flags", ctypes.c_int), ("size", ctypes.c_size_t))


def pytest_runtest_teardown() -> None:
    """Undo what libraries leave behind in this process, and what ends it together.

    faulthandler, which Ray turns on, gives signal handlers a small stack; torch's DataLoader handles the end of child
    processes. Once OpenVINO has asked for the matrix registers, which are saved on that stack, the next child that ends
    overwrites memory.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).sigaltstack(ctypes.byref(_Stack(None, 2, 0)), None)  # SS_DISABLE
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)


@st.composite
def tree_documents(draw: Any, *, max_classes: int = 7, max_levels: int = 4) -> dict[str, Any]:
    """A hierarchy file as a mapping: leaves directly under higher levels, skipped levels, unary vertices, any order."""
    classes = [f"class {i}" for i in range(draw(st.integers(2, max_classes)))]
    levels: dict[int, dict[str, list[str]]] = {}
    orphans = list(classes)
    for level in range(1, draw(st.integers(1, max_levels))):
        groups: dict[int, list[str]] = {}
        for name in orphans:
            group = draw(st.integers(-1, 2))
            if group >= 0:
                groups.setdefault(group, []).append(name)
        groups = groups or {0: orphans[: draw(st.integers(1, len(orphans)))]}
        levels[level] = {f"vertex {level}.{group}": children for group, children in groups.items()}
        taken = {name for children in groups.values() for name in children}
        orphans = [name for name in orphans if name not in taken] + list(levels[level])
    return {"name": "random", "classes": classes, "levels": levels}


def random_votes(seed: int, *, num_classes: int, n: int, size: tuple[int, int], classes: Any = None) -> Any:
    """Votes with sure and unsure pixels, gaps on and off usual thresholds, and ranks that mostly follow the votes."""
    import certiseg as cs

    rng = np.random.default_rng(seed)
    shares = rng.dirichlet(np.full(num_classes, rng.choice([0.1, 0.3, 1.0])), size)
    counts = np.array([[rng.multinomial(n, share) for share in row] for row in shares], np.uint16)
    mean = shares + rng.choice([0.0, 0.05, 0.3]) * rng.random(shares.shape)
    max_set = int(rng.integers(1, num_classes + 1))
    ranking = np.argsort(-mean, axis=-1, kind="stable")[..., :max_set].astype(np.uint8)
    gap = rng.choice([0.0, 0.1, 0.25, 0.2500001, 0.5, 1.0], size)
    return cs.Votes(
        candidate=ranking[..., 0].copy(),
        gap=gap,
        ranking=ranking,
        counts=counts,
        n0=5,
        n=n,
        sigma=0.25,
        classes=classes,
    )
