"""Serve the application on a socket of one's own choice, and open a browser there."""

from __future__ import annotations

import socket
import threading
import webbrowser
from typing import Any

from certiseg.errors import InputError
from certiseg.viewer.guard import is_loopback


def open_socket(host: str, port: int) -> socket.socket:
    """A listening socket; port 0 takes a free one."""
    if not 0 <= port <= 65535:
        raise InputError(f"--port must be in 0..65535, got {port}")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    taken = socket.socket(family, socket.SOCK_STREAM)
    taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        taken.bind((host, port))
        taken.listen(64)
    except OSError as error:
        taken.close()
        raise InputError(f"--host and --port must be free to listen on, got {host}:{port} ({error.strerror})") from None
    return taken


def address(host: str, taken: socket.socket, token: str | None) -> str:
    """What to open in a browser."""
    name = f"[{host}]" if ":" in host else host
    if not is_loopback(host) and host in ("0.0.0.0", "::"):
        name = socket.gethostname()
    return f"http://{name}:{taken.getsockname()[1]}/" + (f"?token={token}" if token else "")


def serve(app: Any, taken: socket.socket, *, url: str, browser: bool) -> None:
    """Run until interrupted."""
    import uvicorn

    config = uvicorn.Config(
        app, log_level="warning", access_log=False, lifespan="off", ws="none", server_header=False, proxy_headers=False
    )
    server = uvicorn.Server(config)
    if browser:
        threading.Timer(0.4, webbrowser.open, [url]).start()
    try:
        server.run(sockets=[taken])
    except KeyboardInterrupt:
        pass
    finally:
        taken.close()
