"""The body of a request, refused as soon as it is too long."""

from __future__ import annotations

from typing import TYPE_CHECKING

from certiseg.errors import InputError

if TYPE_CHECKING:
    from starlette.requests import Request


class TooLarge(InputError):
    """More bytes than are taken."""


async def read_body(request: Request, name: str, most: int) -> bytes:
    """The body; its declared length alone may refuse it."""
    declared, received = request.headers.get("content-length", "0"), bytearray()
    limit = f"{most >> 20} MB" if most >= 1 << 20 else f"{most >> 10} kB"
    if not declared.isdigit() or int(declared) > most:
        raise TooLarge(f"{name}: must be at most {limit}, got {declared[:20]} bytes")
    async for part in request.stream():
        received += part
        if len(received) > most:
            raise TooLarge(f"{name}: must be at most {limit}, got more")
    return bytes(received)
