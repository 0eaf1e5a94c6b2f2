"""JSON files of a run: each says what it is and ends with a SHA-256 of all bytes before."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from certiseg.archive import DamagedArchiveError, parse_json, write_atomically
from certiseg.errors import InputError

FORMAT_VERSION = 2
_END = b'"\n}\n'
_DIGITS = 64


def write_sealed(path: Path, kind: str, content: dict[str, Any]) -> None:
    """Write a JSON file with a seal, whole or not at all."""
    text = json.dumps({"kind": kind, "format_version": FORMAT_VERSION, **content, "sha256": ""}, indent=1)
    body = text.encode()[: -len(_END.strip(b"\n"))]
    with write_atomically(path) as file:
        file.write(body + hashlib.sha256(body).hexdigest().encode() + _END)


def read_sealed(path: Path, kind: str) -> dict[str, Any]:
    """The content of a sealed file; a changed byte, another kind or another format is one sentence."""
    if not path.is_file():
        raise InputError(f"{path}: must be there, but is missing")
    data = path.read_bytes()
    body, seal, end = data[: -len(_END) - _DIGITS], data[-len(_END) - _DIGITS : -len(_END)], data[-len(_END) :]
    if end != _END:
        raise DamagedArchiveError(
            f"{path}: must be a {kind} with the seal of certiseg, got a file without one, or cut off"
        )
    if hashlib.sha256(body).hexdigest().encode() != seal:
        raise DamagedArchiveError(f"{path}: must be undamaged, but its bytes do not match its SHA-256")
    try:
        content = parse_json(data)
        found = content.pop("kind"), content.pop("format_version")
        del content["sha256"]
    except (ValueError, KeyError, AttributeError, TypeError) as error:
        raise DamagedArchiveError(f"{path}: must be a {kind}, got: {error}") from None
    if found != (kind, FORMAT_VERSION):
        raise InputError(f"{path}: must be a {kind} of format {FORMAT_VERSION}, got {found[0]} of format {found[1]}")
    return dict(content)


def sha256_of(path: Path) -> str:
    """SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def require_bytes(path: Path, sha256: str) -> None:
    """Refuse a file that is missing or not as it was written."""
    if not path.is_file():
        raise DamagedArchiveError(f"{path}: must be there, but is missing")
    if sha256_of(path) != sha256:
        raise DamagedArchiveError(f"{path}: must be undamaged, but its bytes are not those that were written")
