"""The command, its socket, and a real server under odd clients."""

import socket
import time
from urllib.request import urlopen

import pytest

import certiseg as cs
from certiseg.cli import main
from certiseg.viewer.server import address, open_socket
from tests.viewer.test_uploads import SETTING


def test_a_free_port_on_loopback():
    with open_socket("127.0.0.1", 0) as one, open_socket("127.0.0.1", 0) as two:
        ports = {taken.getsockname()[1] for taken in (one, two)}
        assert len(ports) == 2
        assert address("127.0.0.1", one, None) == f"http://127.0.0.1:{one.getsockname()[1]}/"
        assert address("127.0.0.1", one, "abcdefghijkl").endswith("/?token=abcdefghijkl")
        with pytest.raises(cs.InputError, match="must be free to listen on"):
            open_socket("127.0.0.1", one.getsockname()[1])
    with pytest.raises(cs.InputError, match="--port must be in"):
        open_socket("127.0.0.1", 70000)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ([], "must be a run folder"),
        (["--host", "0.0.0.0"], "--token must be given for --host 0.0.0.0"),
        (["--token", "abc"], "--token must be at least 12"),
    ],
)
def test_bad_arguments_are_one_sentence(tmp_path, capsys, arguments, sentence):
    assert main(["view", str(tmp_path), "--no-browser", *arguments]) == 2
    told = capsys.readouterr().err
    assert sentence in told
    assert told.count("\n") == 1


def raw(url, lines, body=b"", seconds=10.0):
    """What a server answers to bytes on a socket."""
    port = int(url.rstrip("/").rsplit(":", 1)[1])
    with socket.create_connection(("127.0.0.1", port), timeout=seconds) as connection:
        connection.sendall("\r\n".join([*lines, "", ""]).encode() + body)
        received = b""
        while part := connection.recv(65536):
            received += part
            if b"}" in received:
                break
    return received.decode("latin-1")


def target(**changes):
    query = "&".join(f"{name}={value}" for name, value in {"name": "x.png", **SETTING, **changes}.items())
    return f"POST /api/drop?{query} HTTP/1.1"


def test_three_gigabytes_are_refused_before_they_are_sent(served):
    url, _ = served
    started = time.monotonic()
    host = url.removeprefix("http://").rstrip("/")
    answer = raw(url, [target(), f"Host: {host}", "X-Certiseg: 1", f"Content-Length: {3 << 30}"])
    assert answer.startswith("HTTP/1.1 413")
    assert "64 MB" in answer
    assert time.monotonic() - started < 5
    assert urlopen(url, timeout=10).status == 200


def test_garbage_on_the_socket_does_not_end_the_server(served):
    url, _ = served
    for lines in (
        ["\0\1\2"],
        ["GET / HTTP/1.1", "Host: a", "Host: b"],
        ["POST /api/drop HTTP/1.1", "Content-Length: -4"],
    ):
        raw(url, lines)
    assert urlopen(url, timeout=10).status == 200
