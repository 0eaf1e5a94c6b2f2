"""A small run, and a client that asks its viewer as the page does."""

from __future__ import annotations

import json
import shutil
import struct
from typing import Any

import numpy as np
import pytest

from tests.viewer.tiny import make_run, model, write_images

pytest.importorskip("starlette", reason="needs certiseg[view]")


class Client:
    """Questions of a page, unpacked."""

    def __init__(self, app: Any, host: str = "http://127.0.0.1:8000") -> None:
        from starlette.testclient import TestClient

        self.http = TestClient(app, base_url=host, raise_server_exceptions=False)
        self.viewer = app.state.viewer
        self.asked = 0

    def choice(self, **changes: Any) -> dict[str, Any]:
        chosen = {"image": "scene 0", "sigma": 0.25, "n": 100, "method": "nested", "tau": 0.75, "alpha": 0.01}
        return {**chosen, "correction": "bonferroni", "test": "fixed", **changes}

    def map(self, **changes: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        self.asked += 1
        answer = self.http.get("/api/map", params=self.choice(lane="t", request=self.asked, **changes))
        assert answer.status_code == 200, answer.text
        return unpack(answer.content)

    def refused(self, **changes: Any) -> str:
        answer = self.http.get("/api/map", params=self.choice(**{"lane": "odd", "request": 1, **changes}))
        assert answer.status_code == 400
        return str(answer.json()["error"])


def unpack(content: bytes) -> tuple[dict[str, Any], dict[str, Any]]:
    """The JSON of an answer and its maps by name."""
    length = struct.unpack("<I", content[:4])[0]
    facts = json.loads(content[4 : 4 + length])
    assert (4 + length) % 8 == 0
    maps = {}
    for layer in facts["layers"]:
        start = 4 + length + layer["offset"]
        flat = np.frombuffer(content[start : start + layer["bytes"]], layer["type"])
        maps[layer["name"]] = flat.reshape(facts["height"], facts["width"])
    return facts, maps


@pytest.fixture(scope="session")
def data(tmp_path_factory):
    return write_images(tmp_path_factory.mktemp("data") / "set", 3)


@pytest.fixture(scope="session")
def made(tmp_path_factory, data):
    return make_run(tmp_path_factory.mktemp("runs") / "made", data)


@pytest.fixture
def run(made, tmp_path):
    """A copy of the run that a test may change."""
    from certiseg.runs.folder import RunFolder

    shutil.copytree(made.path, tmp_path / "run")
    return RunFolder(tmp_path / "run")


@pytest.fixture
def client(run, data):
    from certiseg.viewer.app import make_app

    return Client(make_app(run, root=str(data), load_model=model))


@pytest.fixture
def served(run, data):
    """The address of a real server, and its viewer."""
    import threading
    import time

    import uvicorn

    from certiseg.viewer.app import make_app
    from certiseg.viewer.server import open_socket

    app, taken = make_app(run, root=str(data), load_model=model), open_socket("127.0.0.1", 0)
    server = uvicorn.Server(uvicorn.Config(app, log_level="error", lifespan="off", ws="none"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [taken]}, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    yield f"http://127.0.0.1:{taken.getsockname()[1]}/", app.state.viewer
    server.should_exit = True
    thread.join(timeout=10)
    taken.close()
