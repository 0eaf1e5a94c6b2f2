"""The scene, and a run of it that nothing happened to."""

import pytest

from tests.faults.scene import evaluate, hashes, make_scene, run


@pytest.fixture(scope="package")
def scene(tmp_path_factory):
    return make_scene(tmp_path_factory.mktemp("faults"))


@pytest.fixture(scope="package")
def whole(scene):
    """The hashes of an undisturbed run."""
    code, text = run(scene, evaluate("whole"))
    assert code == 0, text
    return hashes(scene / "whole")
