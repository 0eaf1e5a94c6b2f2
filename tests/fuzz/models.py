"""Hostile models: ONNX graphs, weights, and pickles that would run a command."""

from __future__ import annotations

import io
import os
import pickle
import random
import struct
import zipfile
from pathlib import Path
from typing import Any

from tests.fuzz.cases import CHEAP, damage, kind

IMAGE = "data/images/a.png"


class _Command:
    """Pickles to a call of os.system, as attackers write it."""

    def __init__(self, command: str) -> None:
        self.command = command

    def __reduce__(self) -> Any:
        return os.system, (self.command,)


@kind
def onnx(rng: random.Random, folder: Path) -> list[str]:
    content = (folder / "tiny.onnx").read_bytes()
    if rng.random() < 0.3:
        content = _other_graph(rng, content)
    else:
        content = damage(rng, content, (b"Conv", b"Loop", b"../../../../etc/passwd", b"\xff" * 9, b"image"))
    (folder / "hostile.onnx").write_bytes(content)
    return ["certify", IMAGE, "--model", "hostile.onnx", "--hierarchy", "tiny.yaml", *CHEAP, "--out", "out"]


def _other_graph(rng: random.Random, content: bytes) -> bytes:
    """A graph that parses, with other shapes, types, notes or weights outside its folder."""
    import onnx as library

    model = library.load_from_string(content)
    choice = rng.randrange(5)
    if choice == 0:
        tensor = rng.choice(model.graph.initializer)
        tensor.ClearField("raw_data")
        tensor.data_location = library.TensorProto.EXTERNAL
        place = rng.choice(["/etc/passwd", "../../../../../etc/passwd", "data/images/a.png", "missing", ""])
        tensor.external_data.add(key="location", value=place)
    elif choice == 1:
        sides = rng.choice([*model.graph.input, *model.graph.output]).type.tensor_type.shape.dim
        rng.choice(list(sides)).dim_value = rng.choice([0, -1, 1, 7, 2**20, 2**62])
    elif choice == 2:
        rng.choice([*model.graph.input, *model.graph.output]).type.tensor_type.elem_type = rng.randrange(24)
    elif choice == 3:
        notes = {"certiseg": "[[[", "classes": "[" * 5000, "names": "{0: 'a', 0: 'b'}"}
        key = rng.choice(list(notes))
        text = rng.choice([notes[key], "{}", "null", '{"mean": "x"}', '{"input_size": [100000, 100000]}', "\0"])
        library.helper.set_model_props(model, {key: text})
    else:
        tensor = rng.choice(model.graph.initializer)
        tensor.raw_data = rng.choice([b"", tensor.raw_data[:-1], b"\xff" * len(tensor.raw_data)])
    return bytes(model.SerializeToString())


@kind
def weights(rng: random.Random, folder: Path) -> list[str]:
    choice = rng.randrange(5)
    if choice == 0:
        (folder / "hostile.pth").write_bytes(_bomb(rng))
        return ["API", "read_weights", "hostile.pth"]
    if choice == 1:
        (folder / "hostile.pth").write_bytes(damage(rng, (folder / "tiny.pth").read_bytes(), (b"cos\nsystem\n", b"R.")))
        return ["API", "read_weights", "hostile.pth"]
    content = (folder / "tiny.safetensors").read_bytes()
    if choice == 2:
        size = rng.choice([0, 1, 2**31, 2**63, 2**64 - 1])
        content = struct.pack("<Q", size) + content[8:]
    elif choice == 3:
        offsets = rng.choice(["[0, 99999999999]", "[-1, 4]", "[4, 0]", '"x"', "null"])
        header = f'{{"head.weight": {{"dtype": "F32", "shape": [2, {2**40}], "data_offsets": {offsets}}}}}'.encode()
        content = struct.pack("<Q", len(header)) + header + bytes(16)
    else:
        content = damage(rng, content)
    (folder / "hostile.safetensors").write_bytes(content)
    spec = "compact:hostile.safetensors"
    if rng.random() < 0.5:
        return ["API", "read_weights", "hostile.safetensors"]
    return ["certify", IMAGE, "--model", spec, "--hierarchy", "tiny.yaml", *CHEAP, "--out", "out"]


def _bomb(rng: random.Random) -> bytes:
    """A checkpoint that would leave a file `owned` behind if anybody ran it."""
    payload = pickle.dumps({"state_dict": _Command("touch owned")}, protocol=rng.choice([0, 2, 4]))
    if rng.random() < 0.5:
        return payload
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("archive/data.pkl", payload)
        archive.writestr("archive/version", "3")
        if rng.random() < 0.5:
            archive.writestr("archive/data/0", bytes(200_000_000))
    return file.getvalue()


@kind
def trusted(rng: random.Random, folder: Path) -> list[str]:
    """Program files without the user's word: refused before a byte of them is run."""
    name = f"hostile{rng.choice(['.pt', '.ts', '.pt2', '.torchscript', '.PT'])}"
    (folder / name).write_bytes(rng.choice([_bomb(rng), b"", (folder / "tiny.pth").read_bytes()]))
    return ["certify", IMAGE, "--model", name, "--hierarchy", "tiny.yaml", *CHEAP, "--out", "out"]
