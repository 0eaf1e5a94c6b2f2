"""The house: which room may import which, no cycles, and imports inside functions for heavy libraries only.

A room is a folder or a file directly in `src/certiseg`. Imports inside functions count as much as those at the top:
they must not hide a cycle. Imports for types only (`if TYPE_CHECKING`) must point the same way, but make no cycle.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

import certiseg

SOURCE = Path(certiseg.__file__).parent

FLOORS = (
    ("errors", "words"),
    ("archive", "hierarchy", "images", "kernels"),
    ("stats", "render", "datasets"),
    ("threats",),
    ("settings",),
    ("measures",),
    ("noise", "votes", "partial_votes", "models"),
    ("probing", "on_device"),
    ("drawing",),
    ("sampling", "chains", "claims", "planning"),
    ("certificate", "verify_ranges", "verify_measures"),
    ("certify", "verify", "scores"),
    ("bounds",),
    ("stopping",),
    ("metrics", "attack", "training", "runs"),
    ("truth",),
    ("analysis",),
    ("report", "viewer"),
    ("cli",),
    ("__main__",),
)
"""From the ground up: a room may import itself and the rooms of lower floors."""

ONLY = {
    "stats": {"errors", "kernels"},
    "kernels": set(),
    "render": {"errors", "words", "hierarchy", "images"},
}
"""Rooms that know even less than their floor allows."""

HEAVY = {
    *("torch", "torchmetrics", "safetensors.torch", "tensorboard"),
    *("transformers", "onnx", "onnxruntime", "onnxscript", "openvino", "ai_edge_litert"),
    *(
        "numba",
        "scipy",
        "matplotlib",
        "pyarrow",
        "tifffile",
        "rasterio",
        "datasets",
        "ray",
        "jinja2",
        "starlette",
        "uvicorn",
    ),
}
"""Libraries that take long to load, or that not everybody has: they may be imported inside functions."""


SHIPPED = {"certiseg.runs.ray", "certiseg.verify"}
"""Ray sends the code of an actor to other nodes, where it must import what it needs by itself; and the checker loads
what it checks only in order to redraw votes."""


@dataclass(frozen=True)
class Import:
    module: str
    """The imported module, dotted; of `from a import b` it is a.b where that is a file of ours."""
    line: int
    inside: bool
    """Inside a function."""
    types_only: bool


def modules_of(root: Path) -> dict[str, Path]:
    """certiseg.a.b -> its file, packages by their own name."""
    files = sorted(root.rglob("*.py"))
    return {
        ".".join((root.name, *file.relative_to(root).with_suffix("").parts)).removesuffix(".__init__"): file
        for file in files
    }


def imports_of(text: str, known: Mapping[str, Path] | set[str]) -> Iterator[Import]:
    """Every import of a file, wherever it stands."""

    def walk(node: ast.AST, inside: bool, types_only: bool) -> Iterator[Import]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.Import):
                yield from (Import(alias.name, child.lineno, inside, types_only) for alias in child.names)
            elif isinstance(child, ast.ImportFrom):
                assert child.level == 0, f"line {child.lineno}: imports must be absolute"
                whole = [f"{child.module}.{alias.name}" for alias in child.names]
                names = {name if name in known else str(child.module) for name in whole}
                yield from (Import(name, child.lineno, inside, types_only) for name in sorted(names))
            function = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
            types = isinstance(child, ast.If) and "TYPE_CHECKING" in ast.dump(child.test)
            yield from walk(child, inside or function, types_only or types)

    return walk(ast.parse(text), False, False)


def graph_of(root: Path) -> dict[str, list[Import]]:
    known = modules_of(root)
    return {name: list(imports_of(file.read_text("utf-8"), known)) for name, file in known.items()}


def room(module: str) -> str:
    return module.split(".")[1]


def is_ours(module: str) -> bool:
    return module.startswith("certiseg.")


def cycles(edges: Mapping[str, set[str]]) -> list[list[str]]:
    """The groups of names that reach each other (Tarjan's strongly connected components of more than one)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    path: list[str] = []
    found: list[list[str]] = []

    def visit(name: str) -> None:
        index[name] = low[name] = len(index)
        path.append(name)
        for other in sorted(edges.get(name, ())):
            if other not in index:
                visit(other)
            if other in path:
                low[name] = min(low[name], low[other])
        if low[name] == index[name]:
            group = path[path.index(name) :]
            del path[path.index(name) :]
            if len(group) > 1 or name in edges.get(name, ()):
                found.append(sorted(group))

    for name in sorted(edges):
        if name not in index:
            visit(name)
    return found


def heavy_modules(graph: Mapping[str, list[Import]]) -> set[str]:
    """Files of ours that load a heavy library as soon as they are imported, themselves or by what they import."""
    heavy: set[str] = set()
    while True:
        more = {
            name
            for name, imports in graph.items()
            if any(not i.inside and not i.types_only and is_heavy(i.module, heavy) for i in imports)
        }
        if more == heavy:
            return heavy
        heavy = more


def is_heavy(module: str, ours: set[str]) -> bool:
    parts = module.split(".")
    return module in ours or any(".".join(parts[:length]) in HEAVY for length in range(1, len(parts) + 1))


GRAPH = graph_of(SOURCE)
RANK = {name: floor for floor, names in enumerate(FLOORS) for name in names}


def test_every_room_has_its_floor() -> None:
    rooms = {room(name) for name in GRAPH if is_ours(name)}
    assert rooms == set(RANK)


@pytest.mark.parametrize("name", sorted(RANK))
def test_rooms_import_lower_floors_only(name: str) -> None:
    allowed = ONLY.get(name, {other for other, floor in RANK.items() if floor < RANK[name]}) | {name}
    wrong = [
        f"{module}:{i.line} imports {i.module}"
        for module, imports in GRAPH.items()
        if is_ours(module) and room(module) == name
        for i in imports
        if is_ours(i.module) and room(i.module) not in allowed
    ]
    assert wrong == []


def test_no_cycles_between_files_nor_between_rooms() -> None:
    files = {
        name: {i.module for i in imports if is_ours(i.module) and not i.types_only} for name, imports in GRAPH.items()
    }
    assert cycles(files) == []
    rooms: dict[str, set[str]] = {}
    for name, imported in files.items():
        if is_ours(name):
            rooms.setdefault(room(name), set()).update(
                room(module) for module in imported if room(module) != room(name)
            )
    assert cycles(rooms) == []


def test_the_checker_shares_nothing_with_what_it_checks() -> None:
    assert not {room(i.module) for i in GRAPH["certiseg.verify"] if is_ours(i.module)} & {
        "stats",
        "certify",
        "planning",
    }


def test_the_public_map_is_only_asked_for_the_version() -> None:
    """`import certiseg as cs` inside the package could reach any room without a trace."""
    for name, file in modules_of(SOURCE).items():
        if name in SHIPPED:
            continue
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.Import):
                assert all(alias.name != "certiseg" for alias in node.names), f"{name}:{node.lineno}"
            if isinstance(node, ast.ImportFrom) and node.module == "certiseg":
                names = {alias.name for alias in node.names if f"certiseg.{alias.name}" not in GRAPH}
                assert names <= {"__version__"}, f"{name}:{node.lineno}"


@pytest.mark.parametrize("name", sorted(set(GRAPH) - SHIPPED))
def test_imports_inside_functions_are_of_heavy_libraries(name: str) -> None:
    """A file of ours that loads a heavy library at its top is as heavy as the library."""
    ours = heavy_modules(GRAPH)
    assert [f"line {i.line}: {i.module}" for i in GRAPH[name] if i.inside and not is_heavy(i.module, ours)] == []


# -- the search itself -------------------------------------------------------------------------------------------


def small_house(folder: Path, **files: str) -> dict[str, list[Import]]:
    root = folder / "certiseg"
    for name, text in files.items():
        path = root / f"{name.replace('__', '/')}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return graph_of(root)


def test_the_search_sees_imports_wherever_they_stand(tmp_path: Path) -> None:
    graph = small_house(
        tmp_path,
        votes="def load():\n    from certiseg import certify\n    import torch.nn\n",
        certify="from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from certiseg.votes import Votes\n",
        runs__task="class A:\n    def f(self):\n        return 1\n\n    from certiseg.runs.worker import B\n",
        runs__worker="from certiseg.votes import load",
    )
    found = {(name, i.module, i.inside, i.types_only) for name, imports in graph.items() for i in imports}
    assert found == {
        ("certiseg.votes", "certiseg.certify", True, False),
        ("certiseg.votes", "torch.nn", True, False),
        ("certiseg.certify", "typing", False, False),
        ("certiseg.certify", "certiseg.votes", False, True),
        ("certiseg.runs.task", "certiseg.runs.worker", False, False),
        ("certiseg.runs.worker", "certiseg.votes", False, False),
    }


def test_cycles_are_found_and_chains_are_none() -> None:
    assert cycles({"a": {"b"}, "b": {"c"}, "c": set(), "d": {"a", "c"}}) == []
    assert cycles({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}, "e": {"f"}, "f": {"e"}}) == [
        ["a", "b", "c"],
        ["e", "f"],
    ]
    assert cycles({"a": {"a"}}) == [["a"]]


def test_heaviness_is_inherited_through_the_top_of_files_only(tmp_path: Path) -> None:
    graph = small_house(
        tmp_path,
        kernels="import numba",
        noise="from certiseg.kernels import jit",
        stats="def p():\n    from scipy.special import betainc\n",
        votes="def draw():\n    from certiseg.noise import fill\n",
    )
    ours = heavy_modules(graph)
    assert ours == {"certiseg.kernels", "certiseg.noise"}
    assert is_heavy("scipy.special", ours)
    assert is_heavy("safetensors.torch", ours)
    assert not is_heavy("safetensors", ours)
    assert not is_heavy("rayon", ours)
