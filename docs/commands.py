"""Writes what every command says of itself as a page of the site: a hook of mkdocs.yml."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from typing import TYPE_CHECKING
from unittest.mock import patch

from certiseg.cli import build_parser

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files

HEAD = """# Commands

Every command with all its options, as `certiseg COMMAND --help` prints it.
"""


def page() -> str:
    """All commands, each with its help."""
    with patch.dict(os.environ, COLUMNS="100"):
        told = [f"## {parser.prog}\n\n```text\n{parser.format_help()}```" for parser in _commands(build_parser())]
    return "\n\n".join([HEAD, *told]) + "\n"


def _commands(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    """The commands of a parser; those that have commands of their own are followed by them."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for command in action.choices.values():
                yield command
                yield from _commands(command)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """mkdocs: the page is made anew with every site."""
    from mkdocs.structure.files import File

    files.append(File.generated(config, "commands.md", content=page()))
    return files
