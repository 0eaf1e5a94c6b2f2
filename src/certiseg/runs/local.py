"""The engines of this machine: this process, or several processes with a model each."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection, wait

from certiseg.errors import InputError, in_one_line
from certiseg.models.device import limited_threads
from certiseg.models.segmenter import Segmenter
from certiseg.runs.folder import RunFolder
from certiseg.runs.manifest import Manifest
from certiseg.runs.settings import EngineSettings
from certiseg.runs.task import Answer, Engine, Task
from certiseg.runs.worker import BuildModel, Worker, perform
from certiseg.runs.worker_pool import Event, Handle, Lost, Ready, Unfit, WorkerPool

CHECKPOINT_SECONDS = 20.0
"""How much of the drawing a killed process may lose."""


class ThisProcess(Engine):
    """Draws with a segmenter of this process, one task at a time, straight in the run folder.

    lanes: calls of the model at once, for one that allows it.
    """

    shares_folder = True

    def __init__(self, segmenter: Segmenter, folder: RunFolder, *, lanes: int = 1) -> None:
        super().__init__()
        self.segmenter, self.folder, self.lanes = segmenter, folder, lanes
        self.task: Task | None = None

    @property
    def seconds(self) -> float:
        return CHECKPOINT_SECONDS

    @property
    def free(self) -> int:
        return int(self.task is None)

    def submit(self, task: Task) -> None:
        """Keep the task for `next`."""
        self.task = task

    def next(self, each: Callable[[int], None]) -> tuple[Task, Answer]:
        """Do the task."""
        task, self.task = self.task, None
        assert task is not None
        with limited_threads(self.folder.manifest.threads):  # sums inside the model may depend on it
            answer = perform(task, self.segmenter, self.folder, lanes=self.lanes, each=each)
        self.places[answer.place] += answer.draws
        return task, answer

    def close(self) -> None:
        """Nothing is held."""


class Processes(WorkerPool):
    """Workers in processes that are started afresh, so that nothing is shared with this one."""

    def __init__(self, build: BuildModel, manifest: Manifest, settings: EngineSettings) -> None:
        super().__init__(settings)
        self.build, self.manifest, self.hired = build, manifest, 0

    def hire(self) -> Handle:
        self.hired += 1
        numbers = {handle.number for handle in self.handles if isinstance(handle, _Process)}
        number = next(number for number in range(self.workers) if number not in numbers)
        return _Process(self.build, self.manifest, number)

    def listen(self, seconds: float) -> list[tuple[Handle, Event]]:
        by_pipe = {handle.pipe: handle for handle in self.handles if isinstance(handle, _Process)}
        heard = [pipe for pipe in wait(list(by_pipe), seconds) if isinstance(pipe, Connection)]
        return [(by_pipe[pipe], by_pipe[pipe].hear()) for pipe in heard]


class _Process(Handle):
    """One process and the pipe to it."""

    def __init__(self, build: BuildModel, manifest: Manifest, number: int) -> None:
        fresh = multiprocessing.get_context("spawn")
        self.number = number
        self.pipe, theirs = fresh.Pipe()
        self.process = fresh.Process(target=_serve, args=(theirs, build, manifest, number), daemon=True)
        with _interrupts_blocked():
            self.process.start()
        theirs.close()
        self.place = f"process {self.process.pid}"

    def give(self, task: Task) -> None:
        with contextlib.suppress(OSError):  # it is gone; the pipe says so when it is read
            self.pipe.send(task)

    def hear(self) -> Event:
        try:
            event: Event = self.pipe.recv()
            return event
        except (EOFError, OSError):
            self.process.join(5)
            return Lost(f"its process ended with exit code {self.process.exitcode}")

    def end(self) -> None:
        self.process.kill()
        self.process.join()
        self.pipe.close()


@contextlib.contextmanager
def _interrupts_blocked() -> Iterator[None]:
    """What is started here never hears of Ctrl-C, which is for the process that writes."""
    if not hasattr(signal, "pthread_sigmask"):  # Windows: the worker ignores it once it runs
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _serve(pipe: Connection, build: BuildModel, manifest: Manifest, number: int) -> None:
    """The life of a worker process: make the model, then one task after the other until the pipe is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    try:
        worker = Worker(build, manifest, number=number, place=f"process {os.getpid()}")
        answer: Ready | Answer = Ready()
        while True:
            pipe.send(answer)
            answer = worker.work(pipe.recv())
    except (EOFError, BrokenPipeError):
        return
    except InputError as error:
        pipe.send(Unfit(str(error)))
    except BaseException as error:
        pipe.send(Unfit(f"process {os.getpid()} failed: {in_one_line(error)}", is_input=False))


def _end_with_parent() -> None:
    """A worker whose parent was killed has nobody to answer to."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
