"""The table and the picture of threats: ranges end where they say, and both commands run on small data."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from certiseg.errors import InputError
from experiments import threat_picture, threat_results

MODEL = "torch:tests.viewer.tiny:model"


def test_ranges_end_where_the_table_says() -> None:
    told = {}
    for name, case in threat_results.cases().items():
        end = case.threat.range(threat_results.TAU)[1] if case.up_to is None else case.up_to
        told[name] = case.threat.extent(end, 0.0)
    assert told == {
        "dark": "light down to 50 %",
        "flat": "contrast down to 50 %",
        "fog": "fog of density up to 50 %",
        "fog-anchors": "fog of density up to 75 %",
        "fog-300m": "visibility down to 300 m",
        "fog-150m": "visibility down to 150 m",
        "blur": "blur of up to 2 pixels",
        "gamma": "gamma between 0.6 and 1.66",
    }


def test_the_road_lies_flat_below_the_horizon() -> None:
    depth = threat_results.road_depth((360, 480))[:, 0]
    assert (depth[:162] == 100).all()
    assert (np.diff(depth) <= 0).all()
    row = 300  # a ray that falls 138.5 pixels over 480 meets the road, 1.5 m below, after so many metres
    assert depth[row] == pytest.approx(1.5 * 480 / 138.5)


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


def test_the_page_is_written_and_resumed(
    root: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    out = root / "docs" / "threats-results.md"
    asked = ["--root", str(root), "--runs", str(root / "runs"), "--out", str(out), "--model", MODEL, "--every", "1"]
    asked += ["-n", "60", "--sweep-every", "2", "--sweep-steps", "2", "--beyond", "1.5", "--draws", "40"]
    asked += ["--only", "dark", "fog-anchors", "fog-150m", "gamma"]
    assert threat_results.main(asked) == 0
    first = out.read_text()
    assert "2 test images of CamVid, n = 60" in first
    assert [line.split(" | ")[1] for line in first.splitlines() if line.startswith("| fog of density")] == ["2", "1"]
    assert "| visibility down to 150 m | 1 |" in first
    assert (out.parent / "images" / "threats-sweep.png").is_file()
    monkeypatch.setattr(threat_results, "certificates", None)  # all is there: nothing is drawn again
    assert threat_results.main(asked) == 0
    assert out.read_text() == first
    assert "swept" in capsys.readouterr().out
    with pytest.raises(InputError, match="--every must be at least 1"):
        threat_results.main([*asked, "--every", "0"])


def test_the_picture_has_a_column_per_threat(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threat_picture, "SHOWN", ("dark", "blur"))
    out = tmp_path / "threats.png"
    assert threat_picture.main(["--model", MODEL, "-n", "80", "--out", str(out)]) == 0
    with Image.open(out) as picture:
        assert picture.width == 3 * threat_picture.WIDTH + 12
    with pytest.raises(threat_picture.InputError, match=r"--scene must be in 0\.\."):
        threat_picture.main(["--scene", "999", "--out", str(out)])
