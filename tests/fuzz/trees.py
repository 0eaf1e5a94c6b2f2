"""Hostile hierarchy files and class lists."""

from __future__ import annotations

import random
from pathlib import Path

from tests.fuzz.cases import TREE, damage, kind

TOKENS = (
    *(b"&a ", b"*a", b"- ", b"? ", b": ", b"{", b"}", b"[", b"]", b"!!python/object/apply:os.system ['touch owned']"),
    *(b"!!binary ", b"!!timestamp ", b"2001-99-99", b"<<: *a", b"---\n", b"...\n", b"%YAML 9.9\n", b"\t", b"\0"),
    *(b"0x", b"1e999", b".nan", b".inf", b"null", b"true", b"~", b"1:", b"0:", b"-1:", b"255:", b"1_0", b"\xff\xfe"),
    *(b"road", b"vehicle", b"classes:", b"levels:", b"thresholds:", "\u202e".encode(), "\u2028".encode()),
)


def _aliases(rng: random.Random) -> bytes:
    """Aliases that double again and again."""
    depth, width = rng.randrange(3, 40), rng.randrange(2, 10)
    lines = ["a0: &a0 [x, y]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * width)}]" for i in range(1, depth)]
    return "\n".join([*lines, f"classes: *a{depth - 1}", f"levels: {{1: *a{depth - 1}}}"]).encode()


def _deep(rng: random.Random) -> bytes:
    depth = rng.choice([50, 500, 5_000, 100_000])
    opened, closed = rng.choice([("[", "]"), ("{a: ", "}")])
    return f"classes: {opened * depth}{closed * depth}\n".encode()


def _levels(rng: random.Random) -> bytes:
    """A tree of many classes or many levels, near and beyond the limits."""
    count, levels = rng.choice([2, 256, 4096, 4097]), rng.choice([1, 2, 253, 254, 255, 300])
    lines = [f"classes: [{', '.join(f'c{i}' for i in range(count))}]", "levels:"]
    below = "c0"
    for level in range(1, levels + 1):
        lines.append(f"  {level}: {{v{level}: [{below}]}}")
        below = f"v{level}"
    return "\n".join(lines).encode()


def hostile_tree(rng: random.Random) -> bytes:
    """A hierarchy file that somebody damaged, or wrote to do harm."""
    choice = rng.randrange(10)
    if choice == 0:
        return _aliases(rng)
    if choice == 1:
        return _deep(rng)
    if choice == 2:
        return _levels(rng)
    if choice == 3:
        return rng.randbytes(rng.choice([0, 1, 10, 1000]))
    return damage(rng, TREE.encode(), TOKENS)


@kind
def hierarchy(rng: random.Random, folder: Path) -> list[str]:
    (folder / "hostile.yaml").write_bytes(hostile_tree(rng))
    if rng.random() < 0.2:
        (folder / "hostile.yaml").rename(folder / "hostile.txt")
        return ["hierarchy", "new", "hostile.txt", *rng.choice([[], ["--out", "out/new.yaml"]])]
    show = ["hierarchy", "show", "hostile.yaml", *rng.choice([[], ["--json"], ["--png", "out/tree.png"]])]
    return rng.choice([show, ["hierarchy", "check", "hostile.yaml"]])
