"""Certified recall and precision by hand, from rows that are known."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from certiseg.analysis import objects
from certiseg.analysis.pieces import object_pieces
from certiseg.runs.folder import RunFolder
from tests.runs.small import Images, manifest_of, plain_run
from tests.runs.test_measured import ASKED


def row(setting: object, **cells: Any) -> dict[str, Any]:
    plain = {"setting": str(setting), "kind": "share", "name": "x", "label": "vehicle", "pixels": 500, "bound": 0.6}
    return plain | cells


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    images, path = Images(1), tmp_path_factory.mktemp("objects") / "run"
    plain_run(path, images, manifest_of(images, **ASKED))
    return RunFolder(path)


def test_recall_and_precision_are_shares_of_objects(folder: RunFolder) -> None:
    setting, other = folder.manifest.each_setting()
    rows = [
        row(setting, name="true vehicle 1", bound=0.9),
        row(setting, name="true vehicle 2", bound=0.5),
        row(setting, name="true vehicle 3", bound=0.49),
        row(setting, name="true vehicle 4", bound=1.0, pixels=1600),
        row(other, name="true vehicle 1", bound=1.0),
        row(setting, bound=0.9, iou=0.5),
        row(setting, bound=0.85, iou=0.49),
        row(setting, bound=0.5, iou=0.9),
        row(setting, bound=0.1, iou=0.0),
        row(setting, kind="kept", name="the image", bound=0.8),
        row(setting, kind="accuracy", name="the image", bound=0.7),
        row(setting, kind="dice", bound=0.5),
        row(setting, kind="free", name="elsewhere", bound=0.97),
    ]
    name = folder.manifest.images[0]
    folder.write_receipt(name, folder.receipt(name).rows, rows)
    recall = objects.recall_table(folder, setting).rows
    assert [(r["size"], r["objects"], r["recall_0.5"], r["recall_0.8"]) for r in recall] == [
        ("400 to 1,599", 3, 2 / 3, 1 / 3),
        ("1,600 to 6,399", 1, 1.0, 1.0),
        ("all", 4, 0.75, 0.5),
    ]
    precision = objects.precision_table(folder, setting).rows
    assert [(r["what"], r["objects"], r["real"]) for r in precision] == [
        ("all found", 4, 0.5),
        ("bound >= 0.5", 3, 2 / 3),
        ("bound >= 0.8", 2, 0.5),
    ]


def test_pieces_of_a_real_run_have_tables_and_a_figure(tmp_path: Path) -> None:
    images = Images(2)
    plain_run(tmp_path / "run", images, manifest_of(images, **ASKED))
    folder = RunFolder(tmp_path / "run")
    setting = folder.manifest.each_setting()[0]
    recall, precision, whole = object_pieces(folder, setting)
    assert recall.draw is not None
    assert recall.draw().axes
    assert precision.table is not None
    assert whole.table is not None
    kept = [r["bound"] for r in objects.measured(folder, setting) if r["kind"] == "kept"]
    assert whole.table.rows[0]["q0"] == min(kept)
    assert folder.manifest.alpha == 0.01
    assert "both together 0.98." in whole.table.note
