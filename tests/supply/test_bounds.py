"""Dependencies: bounded above where new releases have broken this field, and pinned inside their bounds."""

import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from tests.supply.audit import CONSTRAINTS, plain, read_pins

PROJECT = tomllib.loads((Path(CONSTRAINTS).parent / "pyproject.toml").read_text("utf-8"))["project"]
EXTRAS = PROJECT["optional-dependencies"]
RUNTIME = [Requirement(text) for text in PROJECT["dependencies"]]
OPTIONAL = [Requirement(t) for name, texts in EXTRAS.items() if name not in ("all", "test") for t in texts]
EVERY = [*RUNTIME, *OPTIONAL, *(Requirement(text) for text in EXTRAS["test"])]
PINS = dict(read_pins(CONSTRAINTS.read_text("utf-8")))
BREAKS = ("numpy", "torch", "pillow", "transformers", "openvino", "onnx", "onnxruntime", "onnxscript", "datasets")


@pytest.mark.parametrize("requirement", EVERY, ids=lambda requirement: requirement.name)
def test_each_dependency_is_pinned_inside_its_bounds(requirement):
    if requirement.name == PROJECT["name"]:
        pytest.skip("the package's own extras")
    version = PINS.get(plain(requirement.name))
    assert version is not None, f"constraints.txt must pin {requirement.name}"
    assert requirement.specifier.contains(version), f"{requirement} must admit the tested {version}"


@pytest.mark.parametrize("requirement", RUNTIME, ids=lambda requirement: requirement.name)
def test_what_every_user_installs_has_an_upper_bound(requirement):
    assert any(clause.operator == "<" for clause in requirement.specifier), str(requirement)


@pytest.mark.parametrize("name", BREAKS)
def test_what_has_broken_this_field_has_an_upper_bound(name):
    found = [requirement for requirement in (*RUNTIME, *OPTIONAL) if plain(requirement.name) == name]
    assert found, f"{name} must be a dependency"
    assert all(any(clause.operator in ("<", "==", "~=") for clause in r.specifier) for r in found)


def test_the_pins_never_let_torchvision_in():
    assert "torchvision" not in PINS
