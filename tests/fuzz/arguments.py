"""Hostile command lines: any value at any option, of commands that are cheap to run."""

from __future__ import annotations

import argparse
import random
from pathlib import Path

from certiseg.cli import build_parser
from tests.fuzz.cases import CHEAP, MODEL, kind

NUMBERS = ("0", "1", "2", "-1", "40", "0.5", "0.75", "0.999999", "1e-300", "1e308", "nan", "inf", "-inf", "65535000")
WORDS = (
    *(
        "",
        " ",
        "x",
        "--",
        "-",
        "é\u202e",
        "a\nb",
        "a\0b",
        "../..",
        "/",
        "/dev/null",
        "data",
        "data/images/a.png",
        "tiny.yaml",
    ),
    *("%s", "{}", "$(touch owned)", "; touch owned", "*", "~", "9" * 400, "0x10", "1,2,3", "0,0,0.25", "1x1", "0x0"),
    *("100000x100000", "-1x5", "8x8", "level:1", "nested", "sets:2", "torch:os:system", "hf:data", "compact:tiny.yaml"),
)
START = {
    "certify": ["data/images/a.png", *MODEL, *CHEAP, "--out", "out"],
    "verify": ["whole.certificate.npz"],
    "plan": [],
    "hierarchy": ["show", "tiny.yaml"],
    "tune": ["run", "--out", "out"],
    "evaluate": [
        "folder",
        "--root",
        "data",
        "--out",
        "out",
        *MODEL,
        "--sigma",
        "0.1",
        "--setting",
        "50:0.75",
        "--n0",
        "2",
    ],
}
SLOW = ("-h", "--help", "--version", "--backend", "--out", "--trust-model", "--engine", "--workers")
"""Left out: exits at once, exports models, or decides where files may go."""


def _options(command: str) -> list[argparse.Action]:
    parser = build_parser()
    (commands,) = (action for action in parser._actions if isinstance(action, argparse._SubParsersAction))
    actions = commands.choices[command]._actions
    return [a for a in actions if a.option_strings and not set(a.option_strings) & set(SLOW)]


@kind
def arguments(rng: random.Random, folder: Path) -> list[str]:
    command = rng.choice([*START, "certify", "certify"])
    line = [*START[command]]
    for _ in range(rng.choice([1, 1, 1, 2, 4])):
        options = _options(command)
        if rng.random() < 0.15 or not options:
            line[rng.randrange(len(line) + 1) : 0] = [rng.choice(WORDS + NUMBERS)]
            continue
        option = rng.choice(options)
        name = rng.choice(option.option_strings)
        count = 0 if option.nargs == 0 else rng.choice([1, 1, 1, 1, 0, 2])
        values = [str(rng.choice([*NUMBERS, *WORDS, *(option.choices or ())])) for _ in range(count)]
        line += [name, *values] if rng.random() < 0.8 else [f"{name}={''.join(values)}"]
    return [command, *line]
