"""What can be known to fail is refused before the model is loaded, in one sentence and with exit code 2."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import certiseg as cs
from certiseg.cli import main
from certiseg.settings import CertificateSettings, SamplingSettings

CASES = {
    "grey levels as sigma": (["--sigma", "64"], "probably meant as grey levels: 0.251; insist=True (--insist)"),
    "kfwer with nested": (["--correction", "kfwer"], "correction must be bonferroni or holm for nested"),
    "level without a level": (["--method", "level"], "level must be given for the method level"),
    "a level for nested": (["--level", "2"], "level must be left out, got 2: only the method level looks at it"),
    "thresholds for nested": (["--thresholds", "0,0.2"], "thresholds must be left out"),
    "a set size for nested": (["--max-set", "3"], "max_set must be left out"),
    "k for bonferroni": (["--kfwer-k", "3"], "k must be left out, got 3: only the correction kfwer looks at it"),
    "too few draws": (["-n", "30"], "n must be at least"),
    "a file as folder": (["--out", "large.png"], "--out must be a folder"),
    "no memory": (["--memory", "10"], "--memory: must be at least 100MB"),
}


@pytest.fixture
def large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    Image.fromarray(np.zeros((120, 160, 3), np.uint8)).save(tmp_path / "large.png")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def no_model(*_: object, **__: object) -> None:
    raise AssertionError("the model was loaded before this was refused")


@pytest.mark.parametrize("case", sorted(CASES))
def test_refused_before_the_model_is_loaded(
    case: str, large: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    options, words = CASES[case]
    monkeypatch.setattr("certiseg.models.load.load_model", no_model)
    try:
        code = main(["certify", "large.png", *options])
    except SystemExit as stop:
        code = stop.code
    assert code == 2
    assert words in capsys.readouterr().err


def test_the_largest_image_decides_whether_n_is_enough(large: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Image.fromarray(np.zeros((4, 4, 3), np.uint8)).save(large / "tiny.png")
    assert main(["certify", "tiny.png", "large.png", "-n", "42"]) == 2
    assert "for 19,200 pixels" in capsys.readouterr().err


def test_means_of_another_scale_are_refused_unless_one_insists() -> None:
    with pytest.raises(cs.InputError, match=r"probably meant for grey levels: 0\.485, 0\.456, 0\.406"):
        cs.Segmenter(lambda x: x, num_classes=3, mean=(123.675, 116.28, 103.53))
    assert cs.Segmenter(lambda x: x, num_classes=3, mean=(123.675, 116.28, 103.53), insist=True)
    with pytest.raises(cs.InputError, match=r"0\.251"):
        SamplingSettings(sigma=64)
    assert SamplingSettings(sigma=64, insist=True).sigma == 64


def test_a_mistyped_command_is_answered_with_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["certfy", "street.png"])
    assert stop.value.code == 2
    assert "there is no command 'certfy'; did you mean 'certify'?" in capsys.readouterr().err


def test_names_stand_for_hierarchies_and_a_default_call_says_what_to_do() -> None:
    votes = cs.Votes.from_predictions(
        np.ones((2, 31, 2, 2)) / 31, np.zeros((50, 2, 2), int), sigma=0.25, classes=cs.load_hierarchy("camvid").classes
    )
    assert cs.certify(votes, "camvid", method="nested").hierarchy.name == "camvid"
    with pytest.raises(cs.InputError, match=r"`certiseg hierarchy new`, or take method='sets'"):
        cs.certify(votes)


def test_what_has_no_effect_is_known_without_votes() -> None:
    CertificateSettings(method="adaptive", thresholds=(0, 0.25)).refuse_idle()
    CertificateSettings(method="segcertify", correction="kfwer", k=3).refuse_idle()
    with pytest.raises(cs.InputError, match="thresholds must be left out"):
        CertificateSettings(method="sets", thresholds=(0, 0.25)).refuse_idle()
