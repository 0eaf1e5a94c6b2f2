"""Runs the cells of a notebook, and writes them with all that they print and show as a page of the site.

A hook of mkdocs.yml; `python docs/tutorials/run.py docs/tutorials/fog.ipynb` prints one page.
"""

from __future__ import annotations

import ast
import contextlib
import io
import json
import os
import re
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files

HERE = Path(__file__).parent


@contextlib.contextmanager
def own_folder() -> Iterator[None]:
    """A new folder to work in, gone afterwards."""
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            yield
        finally:
            os.chdir(before)


def run_cell(source: str, names: dict[str, Any], title: str) -> tuple[str, object]:
    """What a cell prints, and the value of its last expression."""
    tree, value, said = ast.parse(source), None, io.StringIO()
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    with contextlib.redirect_stdout(said):
        exec(compile(tree, title, "exec"), names)
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), title, "eval"), names)
    return said.getvalue(), value


def page_of(notebook: Path) -> tuple[str, dict[str, bytes]]:
    """A notebook, run from the top, as Markdown, and its pictures by name."""
    parts: list[str] = []
    pictures: dict[str, bytes] = {}
    names: dict[str, Any] = {"__name__": notebook.stem}
    with own_folder():
        for number, cell in enumerate(json.loads(notebook.read_text("utf-8"))["cells"]):
            source = "".join(cell["source"])
            if cell["cell_type"] == "markdown":
                parts.append(source)
                continue
            said, value = run_cell(source, names, f"{notebook.name}, cell {number}")
            parts.append(f"```python\n{source}\n```")
            if hasattr(value, "_repr_png_"):
                name = f"{notebook.stem}-{number}.png"
                pictures[name] = value._repr_png_()
                parts.append(f"![what the cell shows]({name})")
            elif value is not None:
                said += repr(value)
            if said.strip():
                parts.append(f"```text\n{said.strip()}\n```")
    parts.append(f"[This page as a notebook]({notebook.name})")
    return "\n\n".join(parts) + "\n", pictures


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """mkdocs: every notebook becomes a page, with its pictures beside it."""
    from mkdocs.structure.files import File

    for notebook in sorted(HERE.glob("*.ipynb")):
        text, pictures = page_of(notebook)
        files.append(File.generated(config, f"tutorials/{notebook.stem}.md", content=text))
        for name, content in pictures.items():
            files.append(File.generated(config, f"tutorials/{name}", content=content))
    return files


def on_page_markdown(markdown: str, **_: object) -> str:
    """mkdocs: links to notebooks, which work in a checkout, lead to their pages on the site."""
    return re.sub(r"\((tutorials/[\w-]+)\.ipynb\)", r"(\1.md)", markdown)


if __name__ == "__main__":
    print(page_of(Path(sys.argv[1]).resolve())[0])
