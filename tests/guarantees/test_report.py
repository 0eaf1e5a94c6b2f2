"""The long run writes what it measured, and its exit code says whether everything held."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from . import report
from .broken import Broken, broken_variants
from .scenarios import fixed_scenarios


@pytest.fixture
def short_run(monkeypatch: pytest.MonkeyPatch) -> Broken:
    """A run of one scenario and one broken variant, which is returned."""
    broken = next(b for b in broken_variants() if b.name == "alpha instead of alpha / N")
    scenario = replace(fixed_scenarios()[0], spends=())
    monkeypatch.setattr(report, "all_scenarios", lambda: [scenario])
    monkeypatch.setattr(report, "broken_variants", lambda: [replace(broken, images=60)])
    return broken


def test_report_is_written_and_passes(short_run: Broken, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "docs" / "guarantee.md"
    assert report.main(["--images", "50", "--out", str(out)]) == 0
    text = out.read_text("utf-8")
    assert "<!--" not in text
    assert "| segcertify | bonferroni | fixed | leaf at tau | 100 |" in text
    assert short_run.name in text
    assert "--images 50 --seed" in text
    assert text.strip() in capsys.readouterr().out


def test_exit_code_tells_of_a_broken_promise(
    short_run: Broken, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    own = report.measure
    monkeypatch.setattr(report, "measure", lambda *a, **options: own(*a, **options, certify=short_run.certify))
    assert report.main(["--images", "50", "--out", str(tmp_path / "guarantee.md")]) == 1
    assert "exceeds" in capsys.readouterr().err
    assert "**exceeds**" in (tmp_path / "guarantee.md").read_text("utf-8")


def test_exit_code_tells_of_a_broken_variant_that_passes(
    short_run: Broken, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    harmless = replace(short_run, certify=report.cs.certify, images=60)
    monkeypatch.setattr(report, "broken_variants", lambda: [harmless])
    assert report.main(["--images", "50", "--out", str(tmp_path / "guarantee.md")]) == 1
    assert "not caught" in capsys.readouterr().err
