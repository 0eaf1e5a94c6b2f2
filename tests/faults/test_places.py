"""Places that fail: a full disk, lost permission, a folder that is removed, a folder that is taken."""

import os
import shutil
import subprocess
from contextlib import contextmanager

import pytest

from tests.faults.scene import (
    DRAWS,
    MODEL,
    assert_nothing_half,
    assert_one_sentence,
    evaluate,
    finish,
    hashes,
    rows_of,
    run,
    start,
    wait_for,
)

OBEY = ("setpriv", "--bounding-set", "-dac_override,-dac_read_search")
"""Root, but bound by permissions like anybody."""


@pytest.fixture(autouse=True)
def nobody_goes_yet(scene):
    for name in ("go", "went on"):
        (scene / name).unlink(missing_ok=True)


@contextmanager
def small_disk(folder, size):
    """A file system of a few kilobytes."""
    folder.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", folder], capture_output=True)
    if mounted.returncode:
        pytest.skip(f"a small disk needs the right to mount: {mounted.stderr.decode().strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", folder], check=True)


@pytest.mark.parametrize("size", ["40k", "60k", "80k", "120k"] if "FAULTS" in os.environ else ["80k"])
def test_a_full_disk_is_one_sentence_and_the_run_goes_on_when_there_is_room(size, scene, whole):
    with small_disk(scene / f"full{size}", size) as disk:
        code, text = run(scene, evaluate(disk / "run"))
        assert code == 2, text
        assert_one_sentence(text, "No space left on device", str(disk / "run"))
        assert_nothing_half(disk)
        subprocess.run(["mount", "-o", "remount,size=32m", disk], check=True)
        code, text = run(scene, evaluate(disk / "run"))
        assert code == 0, text
        assert hashes(disk / "run") == whole


def test_certify_on_a_full_disk_leaves_no_half_file(scene):
    with small_disk(scene / "tiny_disk", "8k") as disk:
        code, text = run(
            scene, ["certify", "data/images/a.png", *MODEL, *DRAWS, "-n", "60", "--out", str(disk / "out")]
        )
        assert code == 2, text
        assert_one_sentence(text, "No space left on device")
        assert_nothing_half(disk)
        assert not list(disk.rglob(".*"))


def test_lost_permission_is_one_sentence_and_the_run_goes_on_with_it(scene, whole):
    prefix = OBEY if os.geteuid() == 0 else ()
    if prefix and not shutil.which("setpriv"):
        pytest.skip("root ignores permissions, and there is no setpriv to change that")
    out = scene / "forbidden"
    process = start(scene, evaluate(out), fault="waiting", prefix=prefix)
    wait_for(lambda: bool(rows_of(out)))
    (out / "votes").chmod(0o555)
    (scene / "go").touch()
    code, text = finish(process)
    (out / "votes").chmod(0o755)
    assert code == 2, text
    assert_one_sentence(text, "Permission denied")
    assert_nothing_half(out)
    assert len(rows_of(out)) < 4
    code, text = run(scene, evaluate(out))
    assert code == 0, text
    assert hashes(out) == whole


def test_a_folder_removed_meanwhile_ends_the_run_at_once(scene):
    out = scene / "removed"
    process = start(scene, evaluate(out), fault="waiting")
    wait_for(lambda: bool(rows_of(out)))
    shutil.rmtree(out)
    (scene / "go").touch()
    code, text = finish(process)
    assert code == 2, text
    assert_one_sentence(text, str(out), "removed")
    assert not out.exists() or not rows_of(out)
    assert not (scene / "went on").exists()


def test_of_two_runs_on_one_folder_the_second_is_refused(scene, whole):
    out = scene / "twice"
    first = start(scene, evaluate(out), fault="waiting")
    wait_for(lambda: bool(rows_of(out)))
    code, text = run(scene, evaluate(out))
    assert (code, first.poll()) == (2, None), text
    (scene / "go").touch()
    assert_one_sentence(text, "another process")
    code, text = finish(first)
    assert code == 0, text
    assert hashes(out) == whole
