"""Sealed JSON: no changed byte goes unnoticed, wherever it is."""

import pytest

import certiseg as cs
from certiseg.runs.sealed import read_sealed, write_sealed

CONTENT = {"alpha": 0.001, "images": ["a", "b"], "nothing": None}


@pytest.fixture
def path(tmp_path):
    write_sealed(tmp_path / "note.json", "note", CONTENT)
    return tmp_path / "note.json"


def test_what_was_written_is_read(path):
    assert read_sealed(path, "note") == CONTENT


def test_every_flipped_bit_is_noticed(path):
    written = path.read_bytes()
    for place in range(len(written)):
        for bit in range(8):
            changed = bytearray(written)
            changed[place] ^= 1 << bit
            path.write_bytes(changed)
            with pytest.raises(cs.InputError, match=r"note\.json"):
                read_sealed(path, "note")


def test_every_truncation_and_addition_is_noticed(path):
    written = path.read_bytes()
    for changed in (*(written[:end] for end in range(len(written))), written + b"\n", b" " + written):
        path.write_bytes(changed)
        with pytest.raises(cs.InputError, match=r"note\.json"):
            read_sealed(path, "note")


def test_a_file_of_another_kind_or_none_is_one_sentence(path):
    with pytest.raises(cs.InputError, match="must be a manifest of format 2, got note"):
        read_sealed(path, "manifest")
    with pytest.raises(cs.InputError, match="is missing"):
        read_sealed(path.with_name("none.json"), "note")
