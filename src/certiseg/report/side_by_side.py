"""The page of several runs: what each promises, their tables as one, and their levels in one figure."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from markupsafe import Markup

from certiseg.analysis.drawing import method_name, save_figure
from certiseg.analysis.exports import Column, Table
from certiseg.analysis.pieces import Piece
from certiseg.analysis.side_by_side import NOTE, Beside, all_pieces
from certiseg.report.page import Section, figure, page, part, table
from certiseg.words import agreement_words


def side_by_side_report(runs: Sequence[Beside], *, tables: Path | None = None) -> str:
    """The page; `tables`: a folder for the tables as CSV, Markdown and LaTeX and the figure as PNG and SVG."""
    pieces = list(all_pieces(runs))
    sections = [
        Section("promise", "What is promised", part("paragraphs", NOTE) + table(_promises(runs))),
        Section("settings", "Settings", part("facts", [(each.name, _facts(each)) for each in runs])),
        *(Section(piece.stem, piece.title, _body(piece, tables)) for piece in pieces),
    ]
    names = ", ".join(each.name for each in runs)
    return page("certiseg: runs side by side", f"{len(runs)} runs: {names}", sections)


def _promises(runs: Sequence[Beside]) -> Table:
    """A row for each run: its promise, and how far it is to be read."""
    rows = []
    for each in runs:
        manifest = each.run.manifest
        method, setting = manifest.promised
        scores = each.run.sums(method, setting).scores()
        rows.append(
            {
                "run": each.name,
                "promise": f"{method_name(method)} at {setting.words}, for {manifest.extent(setting)}",
                "guarantee": manifest.guarantee(),
                "right": scores.accuracy,
                "wrong": scores.wrong,
                "agreement": agreement_words(scores.agreement),
            }
        )
    columns = (
        *(Column("run", "run"), Column("promise", "promise"), Column("guarantee", "guaranteed")),
        *(Column("right", "certified and right", "percent"), Column("wrong", "certified and wrong", "percent")),
        Column("agreement", "agreement"),
    )
    note = "A certificate speaks of the smoothed model's answers, never of the scene: a certified label can be wrong."
    return Table("The promise of each run", note, columns, tuple(rows))


def _facts(each: Beside) -> str:
    manifest = each.run.manifest
    left_out = len(each.folder.left_out())
    facts = [
        f"{each.folder.path}: {len(each.run.images)} of {len(manifest.images)} images ({left_out} left out)",
        f"{manifest.model} ({manifest.model_sha256[:12]})",
        f"shown at {each.setting.words}",
        f"hierarchy {manifest.tree.name}, {manifest.tree.size}",
        f"correction {manifest.correction}, {manifest.test} test, seed {manifest.seed}",
    ]
    return "; ".join(facts)


def _body(piece: Piece, tables: Path | None) -> Markup:
    body, drawn = part("paragraphs", piece.text), piece.draw() if piece.draw is not None else None
    if drawn is not None:
        body += figure(drawn, f"{piece.title}. {piece.text}")
        if tables is not None:
            save_figure(drawn, tables / piece.stem)
    if piece.table is not None:
        body += table(piece.table)
        if tables is not None:
            piece.table.write(tables / piece.stem)
    return body
