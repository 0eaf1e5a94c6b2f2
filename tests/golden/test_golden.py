"""No certificate may change by a bit: digests of votes, certificates and tables, made once and never again."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from certiseg.cli import main
from tests.golden import combinations as made


@pytest.mark.parametrize("combination", made.SAMPLED, ids=lambda c: "-".join(map(str, c)))
def test_sampled_votes_and_their_certificates(combination: tuple[str, str, str, bool]) -> None:
    name = "sampled/" + "/".join(map(str, combination))
    assert made.digests_of_sampled(*combination) == made.stored()[name]


@pytest.mark.parametrize("combination", made.GENERATED, ids=lambda c: "-".join(c))
def test_certificates_of_generated_votes(combination: tuple[str, str]) -> None:
    assert made.digests_of_generated(*combination) == made.stored()["generated/" + "/".join(combination)]


def test_there_are_many_combinations_and_they_differ() -> None:
    stored = made.stored()
    certificates = [value for entry in stored.values() for key, value in entry.items() if key != "votes"]
    assert len(certificates) >= 400
    assert len(set(certificates)) > len(certificates) / 4


FACTORY = """
from tests.golden.combinations import Stripes
def stripes():
    return Stripes(4, labels=False)
"""
HIERARCHY = """
name: tiny
classes: [road, car, bus, tree]
levels:
  1:
    vehicle: [car, bus]
thresholds: [0.25]
"""
COLUMNS = ("method", "sigma", "n", "tau", "cig", "ccig", "abstain", "class_abstain", "accuracy")


def small_run(folder: Path, capsys: pytest.CaptureFixture[str]) -> list[dict[str, object]]:
    rng = np.random.default_rng(0)
    for name in ("images", "labels"):
        (folder / "data" / name).mkdir(parents=True)
    for index in range(3):
        Image.fromarray(rng.integers(0, 256, (24, 32, 3), dtype=np.uint8)).save(folder / f"data/images/{index}.png")
        Image.fromarray(rng.integers(0, 4, (24, 32), dtype=np.uint8)).save(folder / f"data/labels/{index}.png")
    (folder / "data/classes.txt").write_text("road\ncar\nbus\ntree\n")
    (folder / "golden_networks.py").write_text(FACTORY)
    (folder / "tiny.yaml").write_text(HIERARCHY)
    model = ["--model", "torch:golden_networks:stripes", "--hierarchy", "tiny.yaml", "--sigma", "0.05", "0.1"]
    main(["evaluate", "folder", "--root", "data", "--out", "run", *model, "--setting", "60:0.75", "90:0.8", "--json"])
    rows = json.loads(capsys.readouterr().out)["scores"]
    return [
        {k: (round(row[k], 9) if isinstance(row[k], float) else row[k]) for k in COLUMNS if k in row} for row in rows
    ]


def test_the_table_of_a_small_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    assert small_run(tmp_path, capsys) == json.loads(made.DIGESTS.with_name("table.json").read_text())
