"""Archives: what comes out is what went in, or one sentence; what is written is whole, or not there."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import textwrap
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import certiseg as cs
from certiseg import archive
from certiseg.archive import DamagedArchiveError, read_archive, write_archive, write_atomically

META = {"name": "x", "numbers": [1, 2.5, None], "nested": {"a": True}}
ARRAYS: dict[str, Any] = {
    "counts": np.arange(60, dtype=np.uint16).reshape(3, 4, 5),
    "mask": np.eye(4, dtype=bool),
    "gap": np.linspace(0, 1, 7),
    "none": np.zeros((0, 3), np.float32),
}


def write(path: Path, **changes: Any) -> Path:
    write_archive(path, **{"kind": "thing", "version": 1, "meta": META, "arrays": ARRAYS, **changes})
    return path


def reseal(path: Path) -> None:
    """Give a changed file a valid SHA-256 of its bytes again, as a forger would."""
    body = path.read_bytes()[: -archive._SEAL_DIGITS]
    path.write_bytes(body + hashlib.sha256(body).hexdigest().encode())


def test_arrays_and_meta_survive_the_file(tmp_path: Path) -> None:
    found = read_archive(write(tmp_path / "a.npz"), kind="thing", version=1)
    assert found.meta == META
    assert list(found.arrays) == list(ARRAYS)
    for name, array in ARRAYS.items():
        assert found.arrays[name].dtype == array.dtype
        assert found.arrays[name].shape == array.shape
        np.testing.assert_array_equal(found.arrays[name], array)


def test_the_same_content_gives_the_same_bytes(tmp_path: Path) -> None:
    first, second = write(tmp_path / "a.npz"), write(tmp_path / "other name.npz")
    assert first.read_bytes() == second.read_bytes()
    changed = write(tmp_path / "c.npz", meta={**META, "name": "y"})
    assert first.read_bytes() != changed.read_bytes()


def test_numpy_opens_the_arrays_without_pickle(tmp_path: Path) -> None:
    with np.load(write(tmp_path / "a.npz"), allow_pickle=False) as opened:
        np.testing.assert_array_equal(opened["counts"], ARRAYS["counts"])
    with zipfile.ZipFile(tmp_path / "a.npz") as opened:
        assert opened.testzip() is None
        assert json.loads(opened.read("meta.json"))["format_version"] == 1


def test_arrays_in_any_memory_order_are_the_same_content(tmp_path: Path) -> None:
    turned = {**ARRAYS, "counts": np.asfortranarray(ARRAYS["counts"])}
    assert write(tmp_path / "a.npz").read_bytes() == write(tmp_path / "b.npz", arrays=turned).read_bytes()


def test_every_flipped_byte_is_refused(tmp_path: Path) -> None:
    original = write(tmp_path / "a.npz").read_bytes()
    path = tmp_path / "b.npz"
    for position in range(len(original)):
        damaged = bytearray(original)
        damaged[position] ^= 1 << (position % 8)
        path.write_bytes(damaged)
        with pytest.raises(DamagedArchiveError, match=r"b\.npz: must be an undamaged thing file"):
            read_archive(path, kind="thing", version=1)


def test_every_truncation_and_every_appendix_is_refused(tmp_path: Path) -> None:
    original = write(tmp_path / "a.npz").read_bytes()
    path = tmp_path / "b.npz"
    for content in [original[:length] for length in range(len(original))] + [original + b"0", b"x" + original]:
        path.write_bytes(content)
        with pytest.raises(DamagedArchiveError):
            read_archive(path, kind="thing", version=1)


def test_flipped_bytes_under_a_forged_seal_never_give_other_data_or_another_error(tmp_path: Path) -> None:
    original = write(tmp_path / "a.npz").read_bytes()
    path, refused = tmp_path / "b.npz", 0
    for position in range(len(original) - archive._SEAL_DIGITS):
        damaged = bytearray(original)
        damaged[position] ^= 0xFF if position % 2 else 1 << (position % 8)
        path.write_bytes(damaged)
        reseal(path)
        try:
            found = read_archive(path, kind="thing", version=1)
        except cs.InputError:
            refused += 1
            continue
        assert found.meta == META
        for name, array in ARRAYS.items():
            np.testing.assert_array_equal(found.arrays[name], array)
    assert refused > len(original) / 2


def forge(path: Path, header: Any, members: dict[str, bytes]) -> Path:
    """A well-formed zip file with a valid seal and whatever inside."""
    with zipfile.ZipFile(path, "w") as file:
        file.comment = archive._SEAL + b"0" * archive._SEAL_DIGITS
        file.writestr("meta.json", header if isinstance(header, bytes) else json.dumps(header))
        for name, content in members.items():
            file.writestr(name, content)
    reseal(path)
    return path


HEADER = {"kind": "thing", "format_version": 1, "meta": {}, "sha256": {"a": "0" * 64}}


def npy(descr: str, shape: str, data: bytes, order: str = "False") -> bytes:
    text = f"{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}, }}".ljust(117) + "\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text.encode() + data


@pytest.mark.parametrize(
    ("header", "members"),
    [
        (b"", {}),
        (b"\xff\xfe", {}),
        (b"[" * 100_000, {}),
        ([], {}),
        ({**HEADER, "sha256": None}, {}),
        ({**HEADER, "meta": None}, {}),
        ({"kind": "thing", "format_version": 1, "sha256": {}}, {}),
        (HEADER, {}),
        (HEADER, {"a.npy": b""}),
        (HEADER, {"a.npy": b"not an array"}),
        (HEADER, {"a.npy": npy("'|u1'", "(3,)", b"abc")}),
        (HEADER, {"a.npy": npy("'|u1'", "(999999999999,)", b"abc")}),
        (HEADER, {"a.npy": npy("'|u1'", "(-3,)", b"abc")}),
        (HEADER, {"a.npy": npy("'|u1'", "(9,)", b"abc")}),
        (HEADER, {"a.npy": npy("'|u1'", "(3,)", b"abc", order="True")}),
        (HEADER, {"a.npy": npy("'|O'", "(1,)", b"cos\nsystem\n(S'true'\ntR.")}),
        (HEADER, {"a.npy": npy("'|u1', 'evil': __import__('os')", "(3,)", b"abc")}),
    ],
)
def test_forged_archives_are_one_sentence(header: Any, members: dict[str, bytes], tmp_path: Path) -> None:
    path = forge(tmp_path / "f.npz", header, members)
    with pytest.raises(cs.InputError, match=r"f\.npz"):
        read_archive(path, kind="thing", version=1)


def test_the_forgery_of_these_cases_is_read_when_it_tells_the_truth(tmp_path: Path) -> None:
    array = np.frombuffer(b"abc", np.uint8)
    header = {**HEADER, "sha256": {"a": archive.digest(array)}}
    path = forge(tmp_path / "f.npz", header, {"a.npy": npy("'|u1'", "(3,)", b"abc")})
    np.testing.assert_array_equal(read_archive(path, kind="thing", version=1).arrays["a"], array)


def test_another_kind_a_newer_format_and_a_missing_file_are_named(tmp_path: Path) -> None:
    path = write(tmp_path / "a.npz")
    with pytest.raises(cs.InputError, match="must be a votes file, got a 'thing' file"):
        read_archive(path, kind="votes", version=1)
    with pytest.raises(cs.InputError, match="`format_version` must be 2, got 1"):
        read_archive(path, kind="thing", version=2)
    with pytest.raises(cs.InputError, match="thing must be a file"):
        read_archive(tmp_path / "missing.npz", kind="thing", version=1)
    with pytest.raises(cs.InputError, match="thing must be a file"):
        read_archive(tmp_path, kind="thing", version=1)


def test_the_digest_of_an_array_sees_type_shape_and_bytes() -> None:
    base = np.arange(6, dtype=np.int32)
    others = [base, base.reshape(2, 3), base.astype(np.int64), base.view(np.float32), base[::-1], base.astype(">i4")]
    assert len({archive.digest(array) for array in others}) == len(others)


# -- writing -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("there_before", [False, True])
@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_a_full_disk_leaves_nothing_behind_and_the_old_file_alone(
    call: str, there_before: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.npz"
    if there_before:
        path.write_bytes(b"old")

    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, call, full)
    with pytest.raises(OSError, match="No space left"):
        write(path)
    monkeypatch.undo()
    assert [p.name for p in tmp_path.iterdir()] == (["a.npz"] if there_before else [])
    assert not there_before or path.read_bytes() == b"old"


@pytest.mark.parametrize("limit", [0, 1000, 100_000])
def test_a_disk_that_fills_while_writing_leaves_nothing_behind(limit: int, tmp_path: Path) -> None:
    program = f"""
    import resource, signal, sys
    import numpy as np
    from certiseg.archive import write_archive
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, ({limit}, {limit}))
    noise = np.random.default_rng(0).integers(0, 2**16, 200_000).astype(np.uint16)
    try:
        write_archive("a.npz", kind="thing", version=1, meta={{}}, arrays={{"noise": noise}})
    except OSError as error:
        sys.exit(3)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 3, done.stderr
    assert list(tmp_path.iterdir()) == []


def test_an_error_or_an_interrupt_while_writing_leaves_nothing_behind(tmp_path: Path) -> None:
    def fail_half_way(error: BaseException) -> None:
        with write_atomically(tmp_path / "a.bin") as file:
            file.write(b"half")
            raise error

    for error in (ValueError("x"), KeyboardInterrupt()):
        with pytest.raises(type(error)):
            fail_half_way(error)
    with pytest.raises(TypeError):
        write(tmp_path / "a.npz", meta={"odd": object()})
    assert list(tmp_path.iterdir()) == []


def test_readers_see_the_old_file_until_the_new_one_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "a.bin"
    path.write_bytes(b"old")
    with write_atomically(path) as file:
        file.write(b"new content")
        file.flush()
        assert path.read_bytes() == b"old"
    assert path.read_bytes() == b"new content"
    assert [p.name for p in tmp_path.iterdir()] == ["a.bin"]


def test_new_files_have_the_permissions_that_others_expect(tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    plain.write_bytes(b"")
    assert write(tmp_path / "a.npz").stat().st_mode == plain.stat().st_mode


def test_folders_that_are_missing_or_in_the_way_are_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(cs.InputError, match="its folder must exist"):
        write(tmp_path / "no" / "a.npz")
    with pytest.raises(cs.InputError, match="must be a file name, got a folder"):
        write(tmp_path)


def test_a_folder_that_may_not_be_written_to_is_an_error_before_anything_is_there() -> None:
    superuser = os.geteuid() == 0
    with tempfile.TemporaryDirectory() as name:
        os.chmod(name, 0o555)
        if superuser:
            os.seteuid(65_534)
        try:
            with pytest.raises(PermissionError):
                write(Path(name) / "a.npz")
        finally:
            if superuser:
                os.seteuid(0)
        assert os.listdir(name) == []
        os.chmod(name, 0o755)
