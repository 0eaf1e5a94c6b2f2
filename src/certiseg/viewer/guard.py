"""Who may ask: only pages of this server, from hosts that are this server, with the token where there is one."""

from __future__ import annotations

import hmac
import ipaddress
import logging
import socket
from http.cookies import CookieError, SimpleCookie
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse

from certiseg.viewer.server import check_token, is_loopback

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

_LONGEST_ADDRESS = 4096
_SAFE_METHODS = ("GET", "HEAD")
ASKED_BY_PAGE = "x-certiseg"
"""A header that other sites cannot send without asking first."""
HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "cache-control": "no-store",
}


class Guard:
    """ASGI middleware in front of everything."""

    def __init__(self, app: ASGIApp, *, host: str = "127.0.0.1", token: str | None = None) -> None:
        check_token(host, token)
        self.app, self.host, self.token = app, host, token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        app, refusal = self.app, self._refusal(scope, Headers(scope=scope))
        if refusal is not None:
            status, sentence = refusal
            app = JSONResponse({"error": sentence}, status, {"connection": "close"})
        elif self._entering(scope):
            cookie = f"{_cookie_name(scope)}={self.token}; HttpOnly; SameSite=Strict; Path=/"
            app = JSONResponse(None, 303, {"connection": "close", "location": "/", "set-cookie": cookie})
        await _answer(app, scope, receive, _with_headers(send))

    def _refusal(self, scope: Scope, headers: Headers) -> tuple[int, str] | None:
        """Status and sentence of a request that is not let in."""
        if len(scope.get("raw_path", b"")) + len(scope["query_string"]) > _LONGEST_ADDRESS:
            return 414, f"the address must be at most {_LONGEST_ADDRESS} characters"
        if not self._is_ours(headers.get("host", "")):
            return 421, "the Host header must name this server; open the address that `certiseg view` printed"
        foreign = headers.get("sec-fetch-site", "none") not in ("same-origin", "none")
        if foreign and headers.get("sec-fetch-mode") != "navigate":
            return 403, "requests must come from this server's own page, got one from another site"
        if scope["method"] not in _SAFE_METHODS:
            origin = headers.get("origin")
            if origin is not None and urlsplit(origin).netloc != headers.get("host"):
                return 403, "requests must come from this server's own page, got one from another site"
            if headers.get(ASKED_BY_PAGE) != "1" or foreign:
                return 403, f"requests that change something must carry the header {ASKED_BY_PAGE}: 1"
        if self.token is not None and not self._entering(scope) and not self._knows_token(scope, headers):
            return 401, "the token must be given once; open the address with ?token=... that `certiseg view` printed"
        return None

    def _is_ours(self, value: str) -> bool:
        """Whether a Host header names this server: names that an attacker's DNS could point here do not."""
        try:
            name = urlsplit(f"//{value}").hostname or ""
        except ValueError:
            return False
        if is_loopback(name):
            return True
        if is_loopback(self.host):
            return False
        return name in (self.host, socket.gethostname().lower()) or _is_address(name)

    def _entering(self, scope: Scope) -> bool:
        """Whether this is the first visit, with the token in the address."""
        if self.token is None or scope["path"] != "/" or scope["method"] != "GET":
            return False
        given = parse_qs(scope["query_string"].decode("latin-1")).get("token", [""])[0]
        return _same(given, self.token)

    def _knows_token(self, scope: Scope, headers: Headers) -> bool:
        try:
            cookie = SimpleCookie(headers.get("cookie", "")).get(_cookie_name(scope))
        except CookieError:
            return False
        return cookie is not None and _same(cookie.value, self.token or "")


def _cookie_name(scope: Scope) -> str:
    """Cookies are shared by the ports of a host: each server has its own."""
    return f"certiseg-{(scope.get('server') or ('', 0))[1]}"


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _same(given: str, token: str) -> bool:
    return hmac.compare_digest(given.encode("utf-8", "replace"), token.encode())


async def _answer(app: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
    """The answer of an application; what it did not foresee is one sentence for the page, and a trace in the log."""
    begun = False

    async def noted(message: Message) -> None:
        nonlocal begun
        begun = True
        await send(message)

    try:
        await app(scope, receive, noted)
    except Exception:
        logging.getLogger(__name__).exception("%s %s", scope["method"], scope["path"])
        if begun:
            raise
        await JSONResponse({"error": "the server failed; its log says where"}, 500)(scope, receive, send)


def _with_headers(send: Send) -> Send:
    async def wrapped(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in HEADERS.items():
                headers.setdefault(name, value)
        await send(message)

    return wrapped
