"""The site: every tutorial runs from the top, every public name is on the page of names."""

from __future__ import annotations

import importlib.util
import json
import re
from pathlib import Path
from types import ModuleType

import pytest
import yaml

import certiseg as cs
from certiseg.cli import COMMANDS

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
NOTEBOOKS = sorted((DOCS / "tutorials").glob("*.ipynb"))


def _hook(path: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(Path(path).stem, DOCS / path)
    assert spec is not None
    assert spec.loader is not None
    hook = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(hook)
    return hook


tutorials, commands = _hook("tutorials/run.py"), _hook("commands.py")


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_tutorial_runs_and_shows_pictures(notebook: Path) -> None:
    text, pictures = tutorials.page_of(notebook)
    assert text.startswith("# ")
    assert "```text" in text
    assert len(pictures) >= 1
    assert all(picture.startswith(b"\x89PNG") and len(picture) < 500_000 for picture in pictures.values())


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_kept_without_what_it_printed(notebook: Path) -> None:
    code = [cell for cell in json.loads(notebook.read_text("utf-8"))["cells"] if cell["cell_type"] == "code"]
    assert code
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in code)


def test_a_tutorial_that_fails_is_seen(tmp_path: Path) -> None:
    cell = {"cell_type": "code", "source": ["1 / 0"]}
    (tmp_path / "wrong.ipynb").write_text(json.dumps({"cells": [cell]}))
    with pytest.raises(ZeroDivisionError):
        tutorials.page_of(tmp_path / "wrong.ipynb")


def test_every_tutorial_is_in_the_menu() -> None:
    menu = yaml.safe_load((ROOT / "mkdocs.yml").read_text("utf-8"))["nav"]
    named = re.findall(r"tutorials/([\w-]+)\.md", str(menu))
    assert sorted(named) == [path.stem for path in NOTEBOOKS]


def test_every_public_name_is_on_the_page_of_names() -> None:
    shown = re.findall(r"^::: certiseg\.([\w.]+)$", (DOCS / "api.md").read_text("utf-8"), flags=re.MULTILINE)
    missing = [name for name, home in cs._HOMES.items() if f"{home}.{name}" not in shown]
    assert missing == []


def test_every_command_is_on_the_page_of_commands_with_its_options() -> None:
    page = commands.page()
    headings = re.findall(r"^## certiseg (.+)$", page, flags=re.MULTILINE)
    assert [name for name in COMMANDS if name not in headings] == []
    assert "hierarchy show" in headings
    assert "--kfwer-k" in page
    assert "--class-weight-power" in page


def test_every_page_is_in_the_menu() -> None:
    menu = str(yaml.safe_load((ROOT / "mkdocs.yml").read_text("utf-8"))["nav"])
    pages = [*DOCS.glob("*.md"), *(DOCS / "decisions").glob("*.md")]
    assert [str(path) for path in pages if str(path.relative_to(DOCS)) not in menu] == []
