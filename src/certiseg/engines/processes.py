"""Several processes of this machine, each with a model of its own."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import threading
import traceback
from multiprocessing.connection import Connection, wait
from typing import Any

from certiseg.engines.pool import Event, Handle, Lost, Pool, Ready, Unfit
from certiseg.engines.work import Task
from certiseg.engines.worker import BuildModel, Worker
from certiseg.errors import InputError
from certiseg.runs.manifest import Manifest


class Processes(Pool):
    """Workers in processes that are started afresh, so that nothing is shared with this one."""

    def __init__(
        self,
        build: BuildModel,
        manifest: Manifest,
        *,
        workers: int,
        timeout: float = 600.0,
        draws_per_task: int | None = None,
    ) -> None:
        super().__init__(workers=workers, timeout=timeout, draws_per_task=draws_per_task)
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
        self.process.start()
        theirs.close()
        self.place = f"process {self.process.pid}"

    def give(self, task: Task) -> None:
        with contextlib.suppress(OSError):  # it is gone; the pipe says so when it is read
            self.pipe.send(task)

    def hear(self) -> Event:
        try:
            return self.pipe.recv()
        except (EOFError, OSError):
            self.process.join(5)
            return Lost(f"its process ended with exit code {self.process.exitcode}")

    def end(self) -> None:
        self.process.kill()
        self.process.join()
        self.pipe.close()


def _serve(pipe: Connection, build: BuildModel, manifest: Manifest, number: int) -> None:
    """The life of a worker process: make the model, then one task after the other until the pipe is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that writes
    threading.Thread(target=_end_with_parent, daemon=True).start()
    try:
        worker = Worker(build, manifest, number=number, place=f"process {os.getpid()}")
        answer: Any = Ready()
        while True:
            pipe.send(answer)
            answer = worker.work(pipe.recv())
    except (EOFError, BrokenPipeError):
        return
    except InputError as error:
        pipe.send(Unfit(str(error)))
    except BaseException:
        pipe.send(Unfit(f"a worker failed\n{traceback.format_exc()}", is_input=False))


def _end_with_parent() -> None:
    """A worker whose parent was killed has nobody to answer to."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
