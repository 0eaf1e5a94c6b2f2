"""Where the application listens, and who may reach it; serving it, and opening a browser there."""

from __future__ import annotations

import ipaddress
import socket
import threading
import webbrowser
from typing import Any

from certiseg.errors import InputError


def is_loopback(host: str) -> bool:
    """Whether a host name stands for this machine alone."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def check_token(host: str, token: str | None) -> None:
    """Refuse to be reachable from elsewhere without a token, and tokens that can be guessed."""
    if token is None and not is_loopback(host):
        raise InputError(f"--token must be given for --host {host}: the page would be open to the network")
    if token is not None and not (len(token) >= 12 and token.isascii() and token.isalnum()):
        raise InputError("--token must be at least 12 letters and digits; for example from `openssl rand -hex 16`")


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
