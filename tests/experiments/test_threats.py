"""The table and the picture of threats: ranges end where they say, and both commands run on small data."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from certiseg.runs.settings import RunSettings
from experiments import threat_picture, threat_results

MODEL = "torch:tests.viewer.tiny:model"


def test_ranges_end_where_the_table_says() -> None:
    told = {}
    for name, case in threat_results.cases().items():
        settings = RunSettings(threat=case.threat, up_to=case.up_to)
        told[name] = settings.extent(settings.each_setting()[0])
    assert told == {
        "dark": "light down to 50 %",
        "flat": "contrast down to 50 %",
        "fog": "fog of density up to 50 %",
        "blur": "blur of up to 2 pixels",
        "gamma": "gamma between 0.6 and 1.66",
        "fog-anchors": "fog of density up to 75 %",
    }


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Two test images in the layout of CamVid."""
    rng = np.random.default_rng(0)
    for folder, high in (("images", 256), ("labels", 31)):
        (tmp_path / "test" / folder).mkdir(parents=True)
        for index in range(2):
            values = rng.integers(0, high, (24, 32, 3) if folder == "images" else (24, 32), dtype=np.uint8)
            Image.fromarray(values).save(tmp_path / "test" / folder / f"{index}.png")
    return tmp_path


def test_the_table_is_printed_and_resumed(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["--root", str(root), "--runs", str(root / "runs"), "--model", MODEL, "--every", "1", "-n", "60"]
    asked += ["--only", "dark", "fog-anchors"]
    assert threat_results.main(asked) == 0
    first = capsys.readouterr().out
    rows = [line for line in first.splitlines() if line.startswith("| light") or line.startswith("| fog")]
    assert [row.split(" | ")[1] for row in rows] == ["2"] * 4
    assert "| fog of density up to 75 % | 2 |" in first
    assert threat_results.main(asked) == 0
    assert capsys.readouterr().out == first


def test_the_picture_has_a_column_per_threat(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threat_picture, "SHOWN", ("dark", "blur"))
    out = tmp_path / "threats.png"
    assert threat_picture.main(["--model", MODEL, "-n", "80", "--out", str(out)]) == 0
    with Image.open(out) as picture:
        assert picture.width == 3 * threat_picture.WIDTH + 12
    with pytest.raises(threat_picture.InputError, match=r"--scene must be in 0\.\."):
        threat_picture.main(["--scene", "999", "--out", str(out)])
