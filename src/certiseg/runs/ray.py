"""The workers of a Ray cluster: actors that hold the model, spread over its nodes.

Images and answers go through Ray's object store. Ray is asked not to restart or retry anything by itself: the pool
knows which draws are missing, Ray does not.
"""

from __future__ import annotations

import contextlib
import logging
import socket
import time
from dataclasses import replace
from typing import Any

from certiseg.errors import InputError
from certiseg.runs.manifest import Manifest
from certiseg.runs.settings import EngineSettings
from certiseg.runs.task import Task
from certiseg.runs.worker import BuildModel, wrong_version
from certiseg.runs.worker_pool import Event, Handle, Lost, Ready, Unfit, WorkerPool

_REACH_SECONDS = 5.0


class RayPool(WorkerPool):
    """Workers as actors with `cpus` and `gpus` each; more than the cluster has now are asked of its autoscaler."""

    def __init__(self, build: BuildModel, manifest: Manifest, settings: EngineSettings) -> None:
        self.ray = connect(settings.address)
        super().__init__(settings if settings.workers else replace(settings, workers=self._as_many_as_fit(settings)))
        self.manifest, self.hired = manifest, 0
        self.payload = self.ray.put((build, manifest))
        wanted: dict[str, Any] = {"num_cpus": settings.cpus_per_worker, "num_gpus": settings.gpus_per_worker}
        options = {**wanted, "scheduling_strategy": "SPREAD", "max_restarts": 0, "max_task_retries": 0}
        self.actor = self.ray.remote(_actor_class()).options(**options)

    def hire(self) -> Handle:
        self.hired += 1
        return _Actor(self.ray, self.actor.remote(), self.hired - 1)

    def listen(self, seconds: float) -> list[tuple[Handle, Event]]:
        by_reference = {h.pending: h for h in self.handles if isinstance(h, _Actor) and h.pending is not None}
        if not by_reference:
            time.sleep(seconds)
            return []
        heard, _ = self.ray.wait(list(by_reference), num_returns=1, timeout=seconds)
        events = [(by_reference[ref], by_reference[ref].hear(self.payload, self.manifest)) for ref in heard]
        return [(handle, event) for handle, event in events if event is not None]

    def situation(self) -> str:
        there = {name: self.ray.cluster_resources().get(name, 0) for name in ("CPU", "GPU")}
        return f"the cluster has {there['CPU']:g} cpus and {there['GPU']:g} gpus in all, see `ray status`"

    def close(self) -> None:
        super().close()
        self.ray.shutdown()

    def _as_many_as_fit(self, settings: EngineSettings) -> int:
        there, cpus, gpus = self.ray.cluster_resources(), settings.cpus_per_worker, settings.gpus_per_worker
        wanted = ((there.get("CPU", 0), cpus), (there.get("GPU", 0), gpus))
        fitting = int(min(have / need for have, need in wanted if need > 0))
        if fitting < 1:
            raise InputError(
                f"the cluster must have {cpus:g} cpus and {gpus:g} gpus for a worker, but it has "
                f"{there.get('CPU', 0):g} and {there.get('GPU', 0):g}; give --workers to wait for more nodes"
            )
        return fitting


class _Actor(Handle):
    """One actor: probed, then started with the model, then given tasks. `pending` is what it works on."""

    def __init__(self, ray: Any, actor: Any, number: int) -> None:
        self.ray, self.actor, self.number = ray, actor, number
        self.stage = "probe"
        self.pending: Any = actor.probe.remote()

    def give(self, task: Task) -> None:
        self.pending = self.actor.work.remote(task)

    def hear(self, payload: Any, manifest: Manifest) -> Event | None:
        from ray.exceptions import RayError, RayTaskError

        reference, self.pending = self.pending, None
        try:
            said = self.ray.get(reference)
        except RayTaskError as error:
            return Unfit(f"{self.place} failed: {str(error).strip().splitlines()[-1]}", is_input=False)
        except RayError as error:
            return Lost(" ".join(str(error).split())[:200] or type(error).__name__)
        if self.stage == "probe":
            self.place, version = said
            if version != (wanted := manifest.versions.get("certiseg", version)) or version is None:
                return Unfit(wrong_version(self.place, "certiseg", str(wanted), version))
            self.stage, self.pending = "start", self.actor.start.remote(payload, self.number)
            return None
        if self.stage == "start":
            self.stage = "work"
            return Ready() if said is None else Unfit(said)
        answer: Event = said
        return answer

    def end(self) -> None:
        from ray.exceptions import RayError

        self.pending = None
        with contextlib.suppress(RayError, ValueError):
            self.ray.kill(self.actor, no_restart=True)


def connect(address: str) -> Any:
    """Join the cluster at an address; one that cannot be reached is one sentence, at once."""
    try:
        import ray
    except ImportError:
        raise InputError("ray must be installed for --engine ray, got none; pip install 'certiseg[ray]'") from None
    hint = "start one with `ray start --head`, or give its --address"
    if address != "auto":
        _require_reachable(address)
    try:
        ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR, configure_logging=False)
    except (ConnectionError, RuntimeError, ValueError, OSError, TimeoutError) as error:
        reason = (" ".join(str(error).split()) or type(error).__name__)[:160]
        raise InputError(f"address must be that of a running Ray cluster, got {address!r} ({reason}); {hint}") from None
    return ray


def _require_reachable(address: str) -> None:
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if not host or not port.isdigit():
        raise InputError(f"address must be auto, HOST:PORT or ray://HOST:PORT, got {address!r}")
    try:
        socket.create_connection((host, int(port)), _REACH_SECONDS).close()
    except OSError as error:
        raise InputError(
            f"address must be that of a running Ray cluster, got {address!r}, where nobody answers "
            f"({error.strerror or error}); check it, or start a cluster with `ray start --head`"
        ) from None


def _actor_class() -> type:
    """The class of the actors: defined here, so that Ray sends its code and a node without certiseg can say so."""

    class CertisegWorker:
        def probe(self) -> tuple[str, str | None]:
            """Where this is, and which certiseg is there."""
            import os

            import ray

            place = f"node {ray.get_runtime_context().get_node_id()[:8]} ({ray.util.get_node_ip_address()})"  # type: ignore[no-untyped-call]
            try:
                import certiseg
            except ImportError:
                return place, None
            self.place = f"{place} process {os.getpid()}"
            return self.place, getattr(certiseg, "__version__", None)

        def start(self, payload: Any, number: int) -> str | None:
            """Make the model; returns why this worker cannot take part, if so."""
            from certiseg.errors import InputError
            from certiseg.runs.worker import Worker

            build, manifest = payload
            try:
                self.worker = Worker(build, manifest, number=number, place=self.place)
            except InputError as error:
                return str(error)
            return None

        def work(self, task: Any) -> Any:
            return self.worker.work(task)

    return CertisegWorker
