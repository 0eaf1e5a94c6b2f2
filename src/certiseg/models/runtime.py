"""Models that run outside torch: one callable for all runtimes, and the segmenter around it."""

from __future__ import annotations

import platform
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from certiseg.errors import InputError
from certiseg.models.segmenter import Segmenter
from certiseg.models.settings import merge_settings

if TYPE_CHECKING:
    from certiseg.models.tensor_io import ImageInput, ScoreOutput

Run = Callable[[NDArray[Any]], NDArray[Any]]
Content = Path | bytes


class RuntimeModel(ABC):
    """A model in a runtime of its own: (B, channels, H, W) images in, scores (B, C, h, w) or labels (B, h, w) out.

    The runtime gets as many threads as torch has at the time of the call, so that `verify` can set them. Callers that
    come at once get a connection each.
    """

    reentrant = True

    def __init__(
        self,
        content: Any,
        source: str,
        ports: tuple[ImageInput, ScoreOutput],
        sha256: str,
        *,
        quantised: bool = False,
    ) -> None:
        self.content, self.source, self.sha256, self.quantised = content, source, sha256, quantised
        self.port, self.output = ports
        self._idle: list[Run] = []
        self._threads = 0
        self._lock = threading.Lock()

    @abstractmethod
    def connect(self, threads: int) -> Run:
        """A function from one input array to the output array, at that number of threads."""

    @property
    def arithmetic(self) -> str | None:
        """What multiplies, where that is not 32 bits everywhere: processors differ in how 8 bits are added up."""
        return f"int8 on {instructions()}" if self.quantised else None

    def fingerprint(self) -> str:
        """The hash of the bytes of the model's files."""
        return self.sha256

    def __call__(self, images: Tensor) -> Tensor:
        array = self.port.feed(images)
        batch = self.port.batch or len(array)
        try:
            with self._borrowed() as run:
                found = [run(_filled(array[i : i + batch], batch)) for i in range(0, len(array), batch)]
        except InputError:
            raise
        except Exception as error:  # each runtime has its own types
            raise InputError(
                f"{self.source}: must run on input of shape {array.shape}, got: {reason(error)}"
            ) from error
        return self.output.read(found[0] if len(found) == 1 else np.concatenate(found)[: len(array)])

    @contextmanager
    def _borrowed(self) -> Iterator[Run]:
        """A connection at torch's number of threads that nobody else uses; those at another number are given up."""
        threads = torch.get_num_threads()
        with self._lock:
            if threads != self._threads:
                self._idle, self._threads = [], threads
            run = self._idle.pop() if self._idle else None
        run = run or self.connect(threads)
        yield run
        with self._lock:
            if threads == self._threads:
                self._idle.append(run)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name not in ("_idle", "_threads", "_lock")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._idle, self._threads, self._lock = [], 0, threading.Lock()


def runtime_segmenter(
    model: RuntimeModel, of_file: Mapping[str, Any], settings: Mapping[str, Any], *, backend: str
) -> Segmenter:
    """The segmenter around a model in another runtime: what its ports insist on is done to the image."""
    facts: dict[str, Any] = {"scores": "labels" if model.output.labels else "logits", **of_file}
    if model.output.num_classes is not None:
        facts["num_classes"] = max(model.output.num_classes, 2)  # a single score stands for two classes
    if model.port.channels is not None:
        facts["channels"] = model.port.channels
    merged = merge_settings(facts, settings)
    fixed, asked = model.port.size, merged.get("input_size")
    if fixed is not None and asked is not None and asked not in (fixed, list(fixed)):
        raise InputError(f"{model.source}: input_size must be the model's own, {fixed}, got {asked}")
    merged["input_size"] = fixed if asked is None else asked
    try:
        return Segmenter(
            model, **merged, integer_input=model.port.integer, name=Path(model.source).name, backend=backend
        )
    except InputError as error:
        raise InputError(f"{model.source}: {error}") from None


def instructions() -> str:
    """The instructions of this processor for products of 8 bits, the best one."""
    try:
        flags = Path("/proc/cpuinfo").read_text("utf-8").partition("\nflags")[2].partition("\n")[0].split()
    except OSError:
        flags = []
    known = ("amx_int8", "avx512_vnni", "avx_vnni", "avx2")
    return next((name for name in known if name in flags), platform.machine() or "unknown")


def reason(error: Exception) -> str:
    """The first line of what a library complained about."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return (lines[0] if lines else type(error).__name__)[:300].removesuffix(".")


def require_file(path: str | Path, what: str = "model") -> Path:
    """The path of a file that is there and not empty."""
    path = Path(path)
    if not path.is_file():
        raise InputError(
            f"{what} must be a file, got {str(path)!r}, which is {'a folder' if path.is_dir() else 'missing'}"
        )
    if path.stat().st_size == 0:
        raise InputError(f"{path}: must be a {what}, got an empty file")
    return path


def _filled(array: NDArray[Any], batch: int) -> NDArray[Any]:
    """A last incomplete batch filled up with its first image."""
    if len(array) == batch:
        return array
    return np.concatenate([array, np.repeat(array[:1], batch - len(array), axis=0)])
