"""Container and workflow, which cannot run here: every command, file, extra and version that they name exists."""

from __future__ import annotations

import json
import re
import shlex
import tomllib
from pathlib import Path

import yaml

from certiseg.cli import build_parser

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
LINES = (ROOT / "Containerfile").read_text("utf-8").splitlines()
WORKFLOW = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text("utf-8"))
STEPS = [step["run"] for job in WORKFLOW["jobs"].values() for step in job["steps"] if "run" in step]


def instruction(name: str) -> str:
    (line,) = (line for line in LINES if line.startswith(f"{name} "))
    return line.removeprefix(f"{name} ")


def extras_of(command: str) -> list[str]:
    found = re.search(r"\.\[([\w,]+)\]", command)
    assert found is not None, command
    return found[1].split(",")


def assert_takes(words: list[str]) -> None:
    assert build_parser().parse_args(words).command == words[0]


def test_the_container_runs_the_demo() -> None:
    assert json.loads(instruction("ENTRYPOINT")) == list(PROJECT["scripts"])
    assert_takes(json.loads(instruction("CMD")))
    (install,) = (line for line in LINES if "pip install" in line)
    assert set(extras_of(install)) <= set(PROJECT["optional-dependencies"])
    assert (ROOT / shlex.split(install)[shlex.split(install).index("-c") + 1]).is_file()
    assert "USER certiseg" in LINES


def test_the_container_holds_what_the_package_is_built_from() -> None:
    left_out = (ROOT / ".dockerignore").read_text("utf-8").split()
    needed = ["src", "pyproject.toml", "constraints.txt", PROJECT["readme"], *PROJECT["license-files"]]
    found = {name: [path.relative_to(ROOT) for path in ROOT.glob(name)] for name in needed}
    assert [name for name, paths in found.items() if not paths] == []
    assert not {path.parts[0] for paths in found.values() for path in paths} & set(left_out)


def test_the_workflow_covers_every_system_and_python() -> None:
    matrix = WORKFLOW["jobs"]["test"]["strategy"]["matrix"]
    assert {name.split("-")[0] for name in matrix["os"]} == {"ubuntu", "macos", "windows"}
    assert matrix["python"] == ["3.11", "3.12", "3.13", "3.14"]
    assert PROJECT["requires-python"] == f">={matrix['python'][0]}"


def test_the_commands_of_the_workflow_exist() -> None:
    makefile = (ROOT / "Makefile").read_text("utf-8")
    kinds = set()
    for step in STEPS:
        words = shlex.split(step)
        kinds.add(words[0] if words[0] == "make" else words[2])
        if words[0] == "make":
            assert f"\n{words[1]}:" in makefile
        elif words[2] == "certiseg":
            assert_takes(words[3:])
        elif words[2] == "pytest":
            assert all((ROOT / path).exists() for path in words[3:])
        else:
            assert set(extras_of(step)) <= set(PROJECT["optional-dependencies"])
    assert kinds == {"make", "pip", "certiseg", "pytest"}
