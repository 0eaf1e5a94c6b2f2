"""A small Hugging Face Hub on loopback: repositories are folders, each with one commit."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

COMMIT = "c0ffee" + "0" * 34


class SmallHub(ThreadingHTTPServer):
    """Answers for the folders ORG/NAME under `root`; `asked` lists the files that were fetched."""

    def __init__(self, root: Path) -> None:
        super().__init__(("127.0.0.1", 0), _Answers)
        self.root = root
        self.gated: set[str] = set()
        self.asked: list[str] = []
        self.address = f"http://127.0.0.1:{self.server_port}"


@contextmanager
def serving(root: Path) -> Iterator[SmallHub]:
    hub = SmallHub(root)
    thread = threading.Thread(target=hub.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield hub
    finally:
        hub.shutdown()
        thread.join()
        hub.server_close()


class _Answers(BaseHTTPRequestHandler):
    server: SmallHub
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self._answer(body=True)

    def do_HEAD(self) -> None:
        self._answer(body=False)

    def log_message(self, *_: Any) -> None:
        """Nothing."""

    def _answer(self, *, body: bool) -> None:
        parts = unquote(urlsplit(self.path).path).strip("/").split("/")
        of_api = parts[:2] == ["api", "models"]
        name, rest = "/".join(parts[2:4] if of_api else parts[:2]), parts[4:] if of_api else parts[2:]
        folder = self.server.root / name
        if not folder.is_dir():
            self._refuse(404, "RepoNotFound")
        elif name in self.server.gated:
            self._refuse(403, "GatedRepo")
        elif len(rest) > 1 and rest[1] not in ("main", COMMIT):
            self._refuse(404, "RevisionNotFound")
        elif of_api:
            files = sorted(path for path in folder.rglob("*") if path.is_file())
            found = [
                {"type": "file", "path": str(path.relative_to(folder)), "oid": _hash(path), "size": path.stat().st_size}
                for path in files
            ]
            facts = {"id": name, "sha": COMMIT, "siblings": [{"rfilename": entry["path"]} for entry in found]}
            self._send(json.dumps(found if rest[0] == "tree" else facts).encode(), body, {})
        else:
            path = folder / "/".join(rest[2:])
            if body:
                self.server.asked.append(path.name)
            self._send(path.read_bytes(), body, {"ETag": f'"{_hash(path)}"', "X-Repo-Commit": COMMIT})

    def _send(self, content: bytes, body: bool, headers: dict[str, str]) -> None:
        self.send_response(200)
        for key, value in {"Content-Length": str(len(content)), "Content-Type": "application/json", **headers}.items():
            self.send_header(key, value)
        self.end_headers()
        if body:
            self.wfile.write(content)

    def _refuse(self, status: int, code: str) -> None:
        self.send_response(status)
        self.send_header("X-Error-Code", code)
        self.send_header("Content-Length", "0")
        self.end_headers()


def _hash(path: Path) -> str:
    return hashlib.sha1(path.read_bytes()).hexdigest()
