"""The public map: every promised name, nothing heavy on import, nothing dangerous in the source."""

from __future__ import annotations

import ast
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import certiseg as cs

SOURCE = Path(cs.__file__).parent
FILES = sorted(SOURCE.rglob("*.py"))
HEAVY = (
    "torch",
    "torchmetrics",
    "torchvision",
    "scipy.stats",
    "matplotlib",
    "numba",
    "transformers",
    "onnx",
    "onnxruntime",
    "openvino",
    "tensorflow",
    "tensorboard",
    "ray",
    "rasterio",
)
PUBLIC = (
    "load_hierarchy",
    "load_model",
    "sample",
    "certify",
    "score",
    "Votes",
    "load_votes",
    "Certificate",
    "load_certificate",
    "ABSTAIN",
    "ROOT",
    "critical_count",
    "Segmenter",
    "Hierarchy",
    "InputError",
    "verify",
    "calibrate",
)


def run(program: str) -> str:
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def loaded_after(program: str) -> set[str]:
    show = f"\nimport sys\nprint('LOADED', *[name for name in {HEAVY!r} if name in sys.modules])"
    return set(run(textwrap.dedent(program) + show).split("LOADED")[1].split())


def test_importing_certiseg_loads_nothing_heavy() -> None:
    assert loaded_after("import certiseg") == set()


def test_help_loads_nothing_heavy() -> None:
    program = """
    import contextlib, io
    from certiseg.cli import main
    with contextlib.redirect_stdout(io.StringIO()) as shown, contextlib.suppress(SystemExit):
        main(["--help"])
    assert "certify" in shown.getvalue()
    """
    assert loaded_after(program) == set()


def test_help_of_every_command_loads_nothing_heavy() -> None:
    program = """
    import contextlib, io
    from certiseg.cli import COMMANDS, main
    for command in COMMANDS:
        with contextlib.redirect_stdout(io.StringIO()) as shown, contextlib.suppress(SystemExit):
            main([command, "--help"])
        assert "example" in shown.getvalue(), command
    """
    assert loaded_after(program) == set()


def test_looking_at_a_hierarchy_loads_no_torch() -> None:
    assert loaded_after("import certiseg as cs\ncs.load_hierarchy('cityscapes').ancestor('road', 1)") == set()
    assert "torch" not in loaded_after("import certiseg as cs\ncs.critical_count(100, 0.75, 1e-6)")


def test_loading_and_checking_files_loads_no_torch(tmp_path: Path) -> None:
    from tests.conftest import random_votes

    cs.certify(random_votes(0, num_classes=3, n=50, size=(2, 2)), method="sets", alpha=0.5).save(tmp_path / "c.npz")
    program = f"""
    import certiseg as cs
    path = {str(tmp_path / "c.npz")!r}
    assert cs.verify(path).passed
    cs.load_certificate(path).claim()
    """
    assert loaded_after(program).isdisjoint({"torch", "matplotlib", "torchmetrics", "transformers"})


@pytest.mark.parametrize("name", PUBLIC)
def test_every_promised_name_is_there(name: str) -> None:
    assert getattr(cs, name) is not None
    assert name in cs.__all__
    assert name in dir(cs)


def test_constants_and_members_of_the_design() -> None:
    assert (cs.ABSTAIN, cs.ROOT) == (-1, -2)
    for owner, names in (
        (cs.Hierarchy, ("ancestor", "generality", "num_levels", "classes")),
        (cs.Votes, ("from_predictions", "first", "save")),
        (cs.Certificate, ("labels_at", "radius_map", "abstained", "excludes", "within", "claim", "save")),
    ):
        for name in names:
            assert hasattr(owner, name), f"{owner.__name__}.{name}"
    for name in ("vertex", "level", "set_size", "radius"):
        assert name in cs.Certificate.__dataclass_fields__
    for name in ("candidate", "gap", "ranking", "counts", "n0", "n", "sigma"):
        assert name in cs.Votes.__dataclass_fields__
    for name in ("cig", "ccig", "abstain", "class_abstain", "accuracy", "miou"):
        assert name in cs.Scores.__dataclass_fields__


def test_the_map_is_small_and_complete() -> None:
    assert len(cs.__all__) <= 24
    assert len(set(cs.__all__)) == len(cs.__all__)
    with pytest.raises(AttributeError, match="module 'certiseg' has no attribute 'certfy'"):
        _ = cs.certfy


def test_functions_stay_functions_when_files_of_their_name_are_imported() -> None:
    program = """
    import certiseg as cs
    import certiseg.certify
    import certiseg.verify
    import certiseg.votes
    from certiseg.certify import NothingCertifiable
    from certiseg import certify, verify
    assert callable(cs.certify) and cs.certify is certify and not hasattr(cs.certify, "__path__")
    assert type(cs.certify).__name__ == type(cs.verify).__name__ == "function"
    """
    run(program)
    run("import certiseg.verify\nimport certiseg\nassert type(certiseg.verify).__name__ == 'function'")
    run("from certiseg import *\nassert type(certify).__name__ == 'function'")


# -- what the source may not hold --------------------------------------------------------------------------------


def called(tree: ast.AST) -> set[str]:
    """Names that are called, and modules that are imported."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            found.add(f"{node.func.id}()")
        if isinstance(node, ast.Call) and any(
            keyword.arg == "shell" and not (isinstance(keyword.value, ast.Constant) and keyword.value.value is False)
            for keyword in node.keywords
        ):
            found.add("shell=")
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        if isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
        if isinstance(node, ast.Attribute) and node.attr in ("loads", "load") and isinstance(node.value, ast.Name):
            found.add(f"{node.value.id}.{node.attr}")
    return found


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_no_file_pickles_evaluates_or_calls_a_shell(path: Path) -> None:
    forbidden = {"eval()", "exec()", "shell=", "pickle", "cPickle", "dill", "joblib", "shelve", "marshal", "os.system"}
    assert called(ast.parse(path.read_text("utf-8"))).isdisjoint(forbidden)


def test_the_search_for_forbidden_calls_finds_them() -> None:
    text = (
        "import pickle\nfrom os import system\neval('1')\nexec('1')\nimport subprocess\nsubprocess.run('x', shell=True)"
    )
    assert {"pickle", "os.system", "eval()", "exec()", "shell="} <= called(ast.parse(text))


def test_imports_point_one_way() -> None:
    """stats has never heard of images, models or trees; the core never of the command line, reports or training."""

    def imported(folder: str) -> dict[str, set[str]]:
        paths = [path for path in FILES if str(path.relative_to(SOURCE)).startswith(folder)]
        return {str(path.relative_to(SOURCE)): called(ast.parse(path.read_text("utf-8"))) for path in paths}

    allowed_in_stats = ("certiseg.stats", "certiseg.errors", "certiseg.kernels")
    for name, names in imported("stats/").items():
        ours = {module for module in names if module.startswith("certiseg.")}
        assert all(module.startswith(allowed_in_stats) for module in ours), name
    core = (
        "hierarchy.py",
        "noise/",
        "kernels/",
        "archive.py",
        "images.py",
        "partial_votes.py",
        "votes.py",
        "certificate.py",
    )
    for name in (*core, "certify.py", "claims.py", "scores.py", "verify.py", "planning.py"):
        for names in imported(name).values():
            beyond = ("certiseg.cli", "certiseg.report", "certiseg.training", "certiseg.datasets")
            assert not any(module.startswith(beyond) for module in names), name


def test_verify_imports_nothing_from_stats_or_certify() -> None:
    names = called(ast.parse((SOURCE / "verify.py").read_text("utf-8")))
    ours = {name for name in names if name.startswith("certiseg")}
    assert ours, "the search must see something"
    assert not any(name.startswith(("certiseg.stats", "certiseg.certify", "certiseg.planning")) for name in ours)
