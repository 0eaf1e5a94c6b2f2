"""Hostile images and label maps: odd modes and sizes, lying headers, damaged bytes."""

from __future__ import annotations

import io
import random
import struct
import zlib
from pathlib import Path

import numpy as np
from PIL import Image

from tests.fuzz.cases import CHEAP, MODEL, damage, kind

MODES = ("1", "L", "P", "RGB", "RGBA", "CMYK", "YCbCr", "LAB", "HSV", "I", "F", "I;16", "LA", "PA", "RGBX")
FORMATS = ("PNG", "JPEG", "GIF", "TIFF", "BMP", "WEBP", "PPM", "TGA", "ICO", "PCX", "SGI", "JPEG2000")


def encoded(rng: random.Random, *, modes: tuple[str, ...] = MODES, formats: tuple[str, ...] = FORMATS) -> bytes:
    """An image in some mode and format, as far as the two go together."""
    height, width = rng.choice([(24, 32), (8, 8), (1, 1), (1, 40), (33, 7)])
    pixels = np.frombuffer(rng.randbytes(height * width * 3), np.uint8).reshape(height, width, 3)
    picture = Image.fromarray(pixels)
    file, options = io.BytesIO(), _options(rng, picture)
    try:
        picture.convert(rng.choice(modes)).save(file, rng.choice(formats), **options)
    except (OSError, ValueError, KeyError, TypeError):
        file = io.BytesIO()
        picture.save(file, "PNG")
    return file.getvalue()


def _options(rng: random.Random, picture: Image.Image) -> dict[str, object]:
    choice = rng.randrange(6)
    if choice == 0:
        exif = Image.Exif()
        exif[0x0112] = rng.choice([0, 1, 2, 3, 5, 6, 8, 9, 65535])
        return {"exif": exif}
    if choice == 1:
        return {"save_all": True, "append_images": [picture.rotate(90)] * rng.choice([1, 3])}
    if choice == 2:
        return {"transparency": 0}
    return {}


def lying_png(rng: random.Random) -> bytes:
    """A PNG whose header declares any size, depth and colour type over a short body."""
    width, height = (rng.choice([0, 1, 30, 10_000, 60_000, 2**31 - 1, 2**32 - 1]) for _ in range(2))
    depth, colour = rng.choice([1, 2, 4, 8, 16, 3, 255]), rng.choice([0, 2, 3, 4, 6, 1, 9])
    header = struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, rng.choice([0, 1]))
    body = zlib.compress(bytes(rng.choice([0, 100, 5_000_000])))
    parts = [(b"IHDR", header), *([(b"PLTE", b"\1\2\3")] if colour == 3 else []), (b"IDAT", body), (b"IEND", b"")]
    if rng.random() < 0.2:
        parts.insert(1, (b"iTXt", b"k\0\1\0\0\0" + zlib.compress(bytes(50_000_000))))
    chunks = (struct.pack(">I", len(d)) + n + d + struct.pack(">I", zlib.crc32(n + d)) for n, d in parts)
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)


def hostile_image(rng: random.Random) -> bytes:
    choice = rng.randrange(4)
    if choice == 0:
        return lying_png(rng)
    if choice == 1:
        return encoded(rng)
    if choice == 2:
        return damage(rng, encoded(rng), (b"\xff\xd8", b"IHDR", b"\xff\xff\xff\xff", b"GIF89a", b"II*\0"))
    content = encoded(rng)
    return content[: rng.randrange(len(content) + 1)]


@kind
def image(rng: random.Random, folder: Path) -> list[str]:
    name = rng.choice(["hostile.png", "hostile.jpg", "hostile", "hostile.tif"])
    (folder / name).write_bytes(hostile_image(rng))
    return ["certify", name, *MODEL, *CHEAP, "--out", "out"]


@kind
def region(rng: random.Random, folder: Path) -> list[str]:
    (folder / "mask.png").write_bytes(hostile_image(rng))
    return ["certify", "data/images/a.png", "--region", "mask.png", *MODEL, *CHEAP, "--out", "out"]


@kind
def label(rng: random.Random, folder: Path) -> list[str]:
    path = folder / "data/labels/a.png"
    if rng.random() < 0.5:
        path.write_bytes(hostile_image(rng))
    else:
        ids = np.frombuffer(rng.randbytes(24 * 32), np.uint8).reshape(24, 32) % np.int64(rng.choice([4, 5, 255, 256]))
        mode = rng.choice(["L", "P", "I;16", "1", "RGB", "LA"])
        file = io.BytesIO()
        Image.fromarray(ids.astype(np.uint8)).convert(mode).save(file, "PNG")
        path.write_bytes(damage(rng, file.getvalue()) if rng.random() < 0.3 else file.getvalue())
    options = ["--sigma", "0.1", "--setting", "50:0.75", "--n0", "2", "--methods", "segcertify", "--first", "1"]
    return ["evaluate", "folder", "--root", "data", "--out", "out", *MODEL, *options]
