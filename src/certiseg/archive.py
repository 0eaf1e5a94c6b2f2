"""Archives: named arrays and JSON in one zip file, written whole or not at all, checked byte by byte on reading.

The arrays are plain .npy members (numpy.load opens them too) and `meta.json` carries kind, `format_version` and a
SHA-256 of every array. The zip comment ends the file with a SHA-256 of all bytes before it, so that no changed byte
goes unnoticed, not even in the parts of a zip file that no reader looks at. Nothing in an archive is ever executed.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import tempfile
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from certiseg.errors import InputError

MAX_ARRAY_BYTES = 16 << 30
UNFINISHED = ".part"
"""Ending of a file that is being written; such a file begins with a dot and is never read."""
_DEFLATE_LEVEL = 4
_SEAL = b"certiseg sha256 "
_SEAL_DIGITS = 64


class DamagedArchiveError(InputError):
    """An archive whose bytes are not what was written."""


@dataclass(frozen=True)
class Archive:
    """The content of one file."""

    kind: str
    meta: dict[str, Any]
    arrays: dict[str, NDArray[Any]]


def digest(array: NDArray[Any]) -> str:
    """SHA-256 of an array: type, shape and bytes."""
    array = np.ascontiguousarray(array)
    return hashlib.sha256(f"{array.dtype.str}{array.shape}".encode() + array.tobytes()).hexdigest()


def write_archive(
    path: str | Path, *, kind: str, version: int, meta: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]
) -> None:
    """Write an archive in one step: readers see the old file or the whole new one. The same content, the same bytes."""
    header = {
        "kind": kind,
        "format_version": version,
        "meta": meta,
        "sha256": {name: digest(array) for name, array in arrays.items()},
    }
    with write_atomically(path) as file:
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.comment = _SEAL + b"0" * _SEAL_DIGITS
            _add(archive, "meta.json", json.dumps(header, indent=1).encode())
            for name, array in arrays.items():
                content = io.BytesIO()
                np.lib.format.write_array(content, np.ascontiguousarray(array), allow_pickle=False)
                _add(archive, f"{name}.npy", content.getvalue())
        seal = _sealed_digest(file)
        file.seek(-_SEAL_DIGITS, os.SEEK_END)
        file.write(seal)


def read_archive(path: str | Path, *, kind: str, version: int) -> Archive:
    """Read an archive of the given kind; damage, another kind or a newer format is one sentence."""
    path = Path(path)
    if not path.is_file():
        raise InputError(f"{kind} must be a file, got {str(path)!r}, which is not there")
    with path.open("rb") as file:
        if not b"PK".startswith(file.read(2)) and _SEAL not in _end_of(file):
            raise InputError(f"{path}: must be a {kind} file of certiseg, got another kind of file")
        sealed = _sealed_digest(file) == file.read()
    if not sealed:
        raise DamagedArchiveError(f"{path}: must be an undamaged {kind} file, but its bytes do not match its SHA-256")
    try:
        with zipfile.ZipFile(path) as archive:
            header = json.loads(archive.read("meta.json"))
            _check_header(header, path, kind, version)
            arrays = {name: _read_array(archive, path, name) for name in header["sha256"]}
    except (zipfile.BadZipFile, zlib.error, KeyError, EOFError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise DamagedArchiveError(f"{path}: must be an undamaged {kind} file, got: {error}") from None
    except (RuntimeError, ValueError, OverflowError, TypeError, AttributeError, OSError) as error:
        if isinstance(error, InputError):
            raise
        raise DamagedArchiveError(f"{path}: must be an undamaged {kind} file, got: {error}") from None
    for name, array in arrays.items():
        if digest(array) != header["sha256"][name]:
            raise DamagedArchiveError(f"{path}: `{name}` must match its recorded SHA-256; the file was changed")
    return Archive(kind, header["meta"], arrays)


def parse_json(text: str | bytes) -> Any:
    """What a JSON text says; ValueError for everything that is none, deep nesting included."""
    try:
        return json.loads(text, object_pairs_hook=_once)
    except RecursionError:
        raise ValueError("JSON must not be nested that deeply") from None


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A reader would see the first of two values, a program the last."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("JSON must name every key once")
    return found


@contextlib.contextmanager
def write_atomically(path: str | Path) -> Iterator[IO[bytes]]:
    """A file that takes its name only when it is complete and on disk; on any error nothing is left behind."""
    path = Path(path)
    if not path.parent.is_dir():
        raise InputError(f"{path}: its folder must exist")
    if path.is_dir():
        raise InputError(f"{path}: must be a file name, got a folder")
    handle, temporary = tempfile.mkstemp(prefix=f".{path.name}.", suffix=UNFINISHED, dir=path.parent)
    try:
        with os.fdopen(handle, "w+b") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, 0o666 & ~_umask())
        os.replace(temporary, path)
    except BaseException as error:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        if isinstance(error, OSError) and error.filename is None:  # a full disk does not say where
            error.filename = str(path)
        raise


def _end_of(file: IO[bytes]) -> bytes:
    """The last bytes of a file, where an archive has its seal."""
    size = file.seek(0, os.SEEK_END)
    file.seek(max(size - 2 * _SEAL_DIGITS, 0))
    return file.read()


def _sealed_digest(file: IO[bytes]) -> bytes:
    """Hash of all bytes before the seal, in hexadecimal; leaves the file at the seal."""
    size, hashed = file.seek(0, os.SEEK_END), hashlib.sha256()
    file.seek(0)
    while (left := max(size - _SEAL_DIGITS, 0) - file.tell()) > 0 and (part := file.read(min(left, 1 << 20))):
        hashed.update(part)
    return hashed.hexdigest().encode()


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _add(archive: zipfile.ZipFile, name: str, content: bytes) -> None:
    member = zipfile.ZipInfo(name, date_time=(1980, 1, 1, 0, 0, 0))
    archive.writestr(member, content, zipfile.ZIP_DEFLATED, _DEFLATE_LEVEL)


def _check_header(header: Any, path: Path, kind: str, version: int) -> None:
    if not isinstance(header, dict) or not all(isinstance(header.get(key), dict) for key in ("sha256", "meta")):
        raise DamagedArchiveError(f"{path}: `meta.json` must be a certiseg header")
    if header.get("kind") != kind:
        raise InputError(f"{path}: must be a {kind} file, got a {header.get('kind')!r} file")
    if header.get("format_version") != version:
        raise InputError(
            f"{path}: `format_version` must be {version}, got {header.get('format_version')!r}; "
            "use the version of certiseg that wrote it"
        )


def _read_array(archive: zipfile.ZipFile, path: Path, name: str) -> NDArray[Any]:
    """One array, refused before any memory is taken if its declared size is absurd or not that of the member."""
    member = archive.getinfo(f"{name}.npy")
    with archive.open(member) as file:
        major = np.lib.format.read_magic(file)
        read_header = np.lib.format.read_array_header_1_0 if major == (1, 0) else np.lib.format.read_array_header_2_0
        shape, fortran, dtype = read_header(file)
        size = int(np.prod(shape, dtype=object)) * dtype.itemsize
        if dtype.hasobject or fortran or size > MAX_ARRAY_BYTES or not 0 <= member.file_size - size < 1024:
            raise DamagedArchiveError(f"{path}: `{name}` must be a plain array of its declared size")
        data = file.read(size)
        if len(data) != size:
            raise DamagedArchiveError(f"{path}: `{name}` must have {size} bytes, got {len(data)}")
        file.read(1)  # at the end zipfile compares the CRC
    return np.frombuffer(data, dtype).reshape(shape)
