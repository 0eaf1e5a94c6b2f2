"""docs/mutants.md: what was broken, what it changed, and which test noticed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.mutation.mutant import Mutant

HEAD = """# Mutants

Each row is one edit of the source that breaks what certiseg promises. `make mutants` applies it to a copy, shows that
it changes certified pixels (or a refusal) on the reference input of `tests/mutation/reference.py`, and runs tests until
one fails. Numbers of bounds, radii and values are counted as pixels are. A mutant that survives is a missing test. The
list is `tests/mutation/mutants.py`; `make test` checks that each edit still applies.

"""


def write_table(path: Path, results: Sequence[tuple[Mutant, dict[str, Any]]]) -> None:
    """Write the document."""
    killed = sum(result["test"] is not None for _, result in results)
    lines = [
        f"{len(results)} mutants, {killed} killed.",
        "",
        "| mutant | file | what it breaks | changes | killed by |",
    ]
    lines.append("|---|---|---|---|---|")
    lines += [row(mutant, result) for mutant, result in results]
    path.write_text(HEAD + "\n".join(lines) + "\n", "utf-8")


def row(mutant: Mutant, result: dict[str, Any]) -> str:
    test = "**survives**" if result["test"] is None else f"`{plain(result['test'].removeprefix('tests/'))}`"
    return f"| {mutant.name} | `{mutant.file}` | {mutant.breaks} | {effect(result['changed'])} | {test} |"


def plain(text: str) -> str:
    return text.replace("|", "/").partition("[")[0]


def effect(changed: dict[str, str]) -> str:
    """The largest effect, and in how many other parts there is one."""
    if not changed:
        return "nothing"
    pixels = {name: int(text.split()[0]) for name, text in changed.items() if text.endswith(" pixels")}
    if pixels:
        name = max(pixels, key=lambda part: pixels[part])
        first = f"{pixels[name]} pixels of {name}"
    else:
        name = next(iter(changed))
        first = f"{name}: {plain(changed[name])[:60]}"
    others = len(changed) - 1
    return first + (f", and {others} more parts" if others > 1 else ", and another part" if others else "")
