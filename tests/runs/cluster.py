"""A real Ray cluster on loopback: every node is a `ray start --block` of its own, ended by its process group.

Ray replaces 127.0.0.1 by the address of the machine's network card; 127.0.0.2 and 127.0.0.3 stay on loopback.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

RAY = Path(sys.executable).with_name("ray")
QUIET = {"RAY_USAGE_STATS_ENABLED": "0", "OMP_NUM_THREADS": "1", "RAY_DISABLE_METRICS_COLLECTION": "1"}


def free_port() -> int:
    with socket.socket() as opened:
        opened.bind(("127.0.0.2", 0))
        return int(opened.getsockname()[1])


class Cluster:
    """A head and further nodes of one cpu each."""

    def __init__(self) -> None:
        self.port, self.nodes = free_port(), list[subprocess.Popen[bytes]]()
        self.folder = tempfile.mkdtemp(prefix="ray-", dir="/tmp")
        self.client_port = free_port()
        self.address = f"127.0.0.2:{self.port}"
        head = ["--head", f"--port={self.port}", "--include-dashboard=false", f"--temp-dir={self.folder}"]
        self._start(*head, "--node-ip-address=127.0.0.2", f"--ray-client-server-port={self.client_port}")
        self._wait_for_port()

    def add_node(self, number: int = 3, **environment: str) -> subprocess.Popen[bytes]:
        """One more node, at 127.0.0.NUMBER."""
        return self._start(f"--address={self.address}", f"--node-ip-address=127.0.0.{number}", **environment)

    def wait_for(self, nodes: int, seconds: float = 120.0) -> None:
        """Wait until so many nodes have joined."""
        ask = f"import ray; ray.init({self.address!r}, log_to_driver=False); print('CPUS', ray.cluster_resources())"
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            assert all(node.poll() is None for node in self.nodes), f"nodes must stay up, see {self.folder}"
            asked = subprocess.run(
                [sys.executable, "-c", ask], capture_output=True, text=True, env=os.environ | QUIET, timeout=seconds
            )
            if f"'CPU': {nodes}.0" in asked.stdout:
                return
        raise AssertionError(f"the cluster must have {nodes} nodes: {asked.stdout} {asked.stderr}")

    def end(self, node: subprocess.Popen[bytes]) -> None:
        """End a node with all its processes, without warning."""
        with contextlib.suppress(ProcessLookupError):  # it may have ended by itself
            os.killpg(node.pid, signal.SIGKILL)
        node.wait()
        self.nodes.remove(node)

    def close(self) -> None:
        for node in list(self.nodes):
            self.end(node)
        shutil.rmtree(self.folder, ignore_errors=True)

    def _start(self, *arguments: str, **environment: str) -> subprocess.Popen[bytes]:
        common = ["--num-cpus=1", "--object-store-memory=100000000", "--disable-usage-stats", "--min-worker-port=0"]
        command = [str(RAY), "start", "--block", *common, "--max-worker-port=0", *arguments]
        with open(f"{self.folder}/node-{len(self.nodes)}.log", "wb") as log:
            node = subprocess.Popen(
                command, env=os.environ | QUIET | environment, stdout=log, stderr=log, process_group=0
            )
        self.nodes.append(node)
        return node

    def _wait_for_port(self, seconds: float = 120.0) -> None:
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            try:
                socket.create_connection(("127.0.0.2", self.port), 1).close()
                return
            except OSError:
                assert self.nodes[0].poll() is None, Path(f"{self.folder}/node-0.log").read_text()
                time.sleep(0.2)
        raise AssertionError("the head must answer")
