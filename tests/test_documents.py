"""The documents tell the truth: their snippets run, their commands parse, their links and names lead somewhere."""

from __future__ import annotations

import argparse
import importlib
import json
import re
import shlex
from pathlib import Path

import pytest
import yaml
from PIL import Image

import certiseg as cs
from certiseg.cli import COMMANDS, build_parser, main
from certiseg.datasets import open_dataset

ROOT = Path(__file__).parents[1]


def written_words(notebook: Path) -> str:
    """What a notebook says between its cells of code, which have a test of their own."""
    cells = json.loads(notebook.read_text("utf-8"))["cells"]
    return "\n\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")


PAGES = {
    str(path.relative_to(ROOT)): path.read_text("utf-8")
    for path in [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), *(ROOT / "docs/decisions").glob("*.md")]
}
PAGES |= {str(path.relative_to(ROOT)): written_words(path) for path in (ROOT / "docs/tutorials").glob("*.ipynb")}
SNIPPET = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)
RUN_HERE = ("docs/python.md", "docs/datasets.md")
"""Pages whose snippets are run below; those of the README and of docs/models.md are files of examples/."""


@pytest.fixture
def street(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a small street and its labels, in which snippets and commands are at home."""
    sample = open_dataset("streets", first=1)[0]
    assert sample.label is not None
    Image.fromarray(sample.image[100:228, 100:260]).save(tmp_path / "street.png")
    Image.fromarray(sample.label[100:228, 100:260]).save(tmp_path / "street-labels.png")
    monkeypatch.chdir(tmp_path)
    return tmp_path


# -- Python ------------------------------------------------------------------------------------------------------


def test_every_public_name_is_on_the_page_with_examples() -> None:
    text = PAGES["docs/python.md"]
    assert [name for name in cs.__all__ if not re.search(rf"\bcs\.{name}\b", text)] == []


def test_documents_name_nothing_that_is_not_there() -> None:
    named = {(page, name) for page, text in PAGES.items() for name in re.findall(r"\bcs\.(\w+)", text)}
    assert sorted((page, name) for page, name in named if name not in cs.__all__ and page != "CHANGELOG.md") == []


def test_every_snippet_is_on_a_page_that_is_run() -> None:
    assert {page for page, text in PAGES.items() if "```python" in text} == {*RUN_HERE, "README.md", "docs/models.md"}


@pytest.mark.parametrize("page", RUN_HERE)
def test_the_snippets_of_a_page_run_in_order(page: str, street: Path) -> None:
    snippets = SNIPPET.findall(PAGES[page])
    assert snippets
    names: dict[str, object] = {}
    for number, snippet in enumerate(snippets):
        exec(compile(snippet, f"{page}, snippet {number}", "exec"), names)
    assert names.keys() > {"__builtins__"}


# -- the command line --------------------------------------------------------------------------------------------


def command_lines() -> list[tuple[str, str]]:
    """(page, command) of every line of code that calls certiseg, with its continuation lines."""
    pattern = re.compile(r"^    (?:srun )?(certiseg (?:[^\n\\]|\\\n)*)", flags=re.MULTILINE)
    return [(page, line.replace("\\\n", " ")) for page, text in PAGES.items() for line in pattern.findall(text)]


def words_of(page: str, command: str) -> list[str]:
    """The arguments of a command, without its comment; variables stand for what their page sets them to."""
    values = dict(re.findall(r"^    (\w+)=\"([^\"]*)\"", PAGES[page], flags=re.MULTILINE))
    for _ in range(3):
        command = re.sub(r"\$([A-Z]+)\b", lambda found: values.get(found[1], found[0]), command)
    return shlex.split(command.split(" #")[0])[1:]


@pytest.mark.parametrize(("page", "command"), command_lines())
def test_every_command_is_one_that_the_parser_takes(page: str, command: str) -> None:
    words = words_of(page, command)
    assert build_parser().parse_args(words).command == words[0]


def parser_of(name: str) -> argparse.ArgumentParser:
    """The parser of one command."""
    actions = build_parser()._actions
    choices = next(a.choices for a in actions if isinstance(a, argparse._SubParsersAction))
    return choices[name]


def test_every_command_that_is_named_exists_with_its_options() -> None:
    wrong = []
    for page, text in PAGES.items():
        for name, rest in re.findall(r"`certiseg (\w+)([^`]*)`", text):
            assert name in COMMANDS, f"{page}: certiseg {name}"
            known = parser_of(name)._option_string_actions
            wrong += [f"{page}: {name} {o}" for o in re.findall(r"(?<!\S)--?[a-z][a-z0-9-]*", rest) if o not in known]
    assert wrong == []


TINY = ("--sigma", "0.1", "-n", "70", "--backend", "torch")
"""Enough draws to certify something on the small street, and no more."""


def test_the_commands_of_the_readme_certify_verify_and_report(street: Path) -> None:
    assert main(["certify", "street.png", "--out", "certified/", *TINY]) == 0
    assert main(["verify", "certified/street.certificate.npz"]) == 0
    assert main(["report", "certified/street.certificate.npz"]) == 0
    assert main(["plan", "--size", "360x480"]) == 0
    assert main(["hierarchy", "show", "cityscapes"]) == 0


# -- links, paths, names -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("page", sorted(PAGES))
def test_links_lead_somewhere(page: str) -> None:
    for link in re.findall(r"\]\(([^)\s]+)\)", PAGES[page]):
        if link.startswith("http"):
            continue
        path, _, heading = link.partition("#")
        target = (ROOT / page).parent / path if path else ROOT / page
        assert target.exists(), link
        if heading:
            headings = re.findall(r"^#+ (.*)$", target.read_text("utf-8"), flags=re.MULTILINE)
            assert heading in [re.sub(r"[^\w -]", "", h).lower().replace(" ", "-") for h in headings], link


def test_the_way_from_the_paper_leads_to_code() -> None:
    named = re.findall(r"`(\w+(?:\.\w+)+)`", PAGES["docs/algorithm.md"])
    assert len(named) > 25
    for name in named:
        if not name.startswith("cs.") and not name.endswith(".py"):
            assert_is_there(name.removeprefix("certiseg."))


@pytest.mark.parametrize("page", sorted(PAGES.keys() - {"CHANGELOG.md"}))
def test_names_of_the_package_lead_to_code(page: str) -> None:
    for name in re.findall(r"\bcertiseg\.(\w+(?:\.\w+)*)", PAGES[page]):
        assert_is_there(name)


def assert_is_there(name: str) -> None:
    """Check that a dotted name below certiseg is a module or something in one."""
    parts = name.split(".")
    module = max(length for length in range(len(parts) + 1) if is_module(parts[:length]))
    value: object = importlib.import_module(".".join(["certiseg", *parts[:module]]))
    for part in parts[module:]:
        assert hasattr(value, part), name
        value = getattr(value, part)


def is_module(parts: list[str]) -> bool:
    place = Path(cs.__file__).parent.joinpath(*parts)
    return place.with_suffix(".py").is_file() or (place / "__init__.py").is_file()


def test_every_algorithm_equation_table_and_figure_of_the_paper_has_its_row() -> None:
    text = PAGES["docs/algorithm.md"]
    numbers = {"Algorithm": 5, "Table": 7, "Figure": 17}
    for word, last in numbers.items():
        found: set[int] = set()
        for row in re.findall(rf"{word}s? [\d a-z,]+", text):
            for first, second in re.findall(r"(\d+)(?: to (\d+))?", row):
                found |= set(range(int(first), int(second or first) + 1))
        assert found >= set(range(1, last + 1)), word
    assert {int(number) for number in re.findall(r"\((\d)\)", text)} == set(range(1, 10))


def test_files_that_are_named_exist() -> None:
    for page, text in PAGES.items():
        for name in re.findall(r"`((?:src|tests|docs|examples|benchmarks|experiments)/[\w/.-]+)`", text):
            assert (ROOT / name).exists(), f"{page}: {name}"


def test_the_citation_is_of_this_version_and_licence() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
    assert citation["version"] == cs.__version__
    assert f'license = "{citation["license"]}"' in (ROOT / "pyproject.toml").read_text("utf-8")
    assert (ROOT / "LICENSE").read_text("utf-8").startswith("MIT License")
