"""How images are called in file names: readable, and no two of them alike."""

from __future__ import annotations

import hashlib
import re

_LONGEST = 150
"""Bytes of an image's name in a file name."""


def file_name(name: str) -> str:
    """An image's name as part of a file name: a/b is a__b, and no two names give the same one.

    Characters that some file systems refuse, and underscores that could be taken for a slash, become =XX.
    """
    escaped = re.sub(r"_(?=[_/\\])|(?<=[/\\])_|[^\w./ ()+,@#~!-]|^\.|^_(?=_)", lambda m: _escaped(m[0]), name)
    plain = escaped.replace("/", "__")
    return plain if len(plain.encode()) <= _LONGEST else f"{plain[:60]}=~{hashlib.sha256(name.encode()).hexdigest()}"


def _escaped(text: str) -> str:
    return "".join(f"={byte:02X}" for byte in text.encode())
