"""The options of evaluate that say who draws: the same bytes, Ctrl-C, and sentences for bad input."""

import os
import signal
import subprocess
import sys
import time

import pytest

from tests.cli.test_evaluate import data, evaluate  # noqa: F401 - a fixture
from tests.runs.test_evaluate import hashes

OPTIONS = ["--setting", "60:0.75", "--sigma", "0.1", "0.2", "--threads", "1"]


def test_workers_change_no_byte_and_a_run_may_be_resumed_with_others(data, capsys):  # noqa: F811
    assert evaluate(*OPTIONS) == 0
    assert evaluate(*OPTIONS, "--out", "two", "--workers", "2", "--draws-per-task", "16") == 0
    assert "draws by worker: process" in capsys.readouterr().err
    assert hashes("two") == hashes("run")
    assert evaluate(*OPTIONS[:-2], "--out", "two", "--workers", "3") == 0  # threads are those of the folder
    assert hashes("two") == hashes("run")


def test_ctrl_c_leaves_a_folder_to_go_on_with(data, capsys):  # noqa: F811
    (data / "slow_networks.py").write_text(
        "import time\nimport evaluated_networks\ndef small():\n"
        " net = evaluated_networks.small()\n"
        " net.register_forward_pre_hook(lambda *_: time.sleep(0.03))\n return net\n"
    )
    command = [sys.executable, "-m", "certiseg", "evaluate", "folder", "--root", "data", "--hierarchy", "tiny.yaml"]
    command += ["--model", "torch:slow_networks:small", *OPTIONS, "--out", "stopped", "--workers", "2"]
    process = subprocess.Popen([*command, "--draws-per-task", "10"], stderr=subprocess.PIPE, start_new_session=True)
    until = time.monotonic() + 300
    while not list((data / "stopped").rglob("partial/*/*.npz")) and time.monotonic() < until:
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert b"Traceback" not in errors
    assert b"interrupted; " in errors
    assert b"the same command goes on from there" in errors
    assert not (data / "stopped/table.parquet").exists()
    assert subprocess.run(command, capture_output=True).returncode == 0
    plain = [*command, "--out", "plain"]
    plain[plain.index("--workers") + 1] = "1"
    assert subprocess.run(plain, capture_output=True).returncode == 0
    assert hashes("stopped") == hashes("plain")


@pytest.mark.parametrize(
    ("arguments", "key"),
    [
        (["--shard", "3"], "i/k"),
        (["--shard", "5/4"], "i in 1..k"),
        (["--shard", "1/4"], "at most as many shards as images, 3"),
        (["--workers", "0"], "workers must be at least 1"),
        (["--threads", "0"], "threads must be at least 1"),
        (["--workers", "2", "--draws-per-task", "-1"], "draws_per_task must be at least 1"),
        (["--workers", "2", "--timeout", "0"], "timeout must be a positive number"),
        (["--device", "warp"], "device must be one of this machine"),
        (["--device", "cuda"], "device must be one of this machine"),
        (["--engine", "ray", "--address", "127.0.0.1:9"], "address must be that of a running Ray cluster"),
    ],
)
def test_bad_input_is_one_sentence_before_anything_is_written(arguments, key, data, capsys):  # noqa: F811
    import torch

    if arguments == ["--device", "cuda"] and torch.cuda.is_available():
        pytest.skip("this machine has an accelerator")
    assert evaluate(*arguments) == 2
    message = [line for line in capsys.readouterr().err.splitlines() if not line.startswith("note:")]
    assert len(message) == 1
    assert key in message[0]
    assert not (data / "run").exists()
