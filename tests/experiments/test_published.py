"""The paper's figures beside those of a run."""

import pytest

import certiseg as cs
from certiseg.runs.settings import Setting
from certiseg.runs.table import UNCERTIFIED
from experiments import published
from experiments.published import is_published, published_boundary, published_scores
from tests.analysis.conftest import make_run


def test_published_figures_stand_beside_ours_only_for_the_papers_data_sets():
    setting = Setting(0.25, 100, 0.75)
    assert is_published("coco_stuff")
    assert not is_published("camvid")
    assert published_scores("cityscapes", "segcertify", setting) == {
        "cig": 0.89,
        "ccig": 0.65,
        "abstain": 0.07,
        "class_abstain": 0.21,
    }
    assert published_scores("cityscapes", "adaptive:0,0,0.25", setting)["cig"] == 0.90
    assert published_scores("cityscapes", UNCERTIFIED) == {"cig": 0.9}
    assert published_scores("cityscapes", "nested", setting) == {}
    assert published_scores("cityscapes", "segcertify", Setting(0.25, 200, 0.75)) == {}
    assert published_boundary("acdc", "adaptive")["abstain_boundary"] == pytest.approx(0.25)
    assert published_boundary("camvid", "adaptive") == {}


def test_published_columns_stand_beside_a_run_at_the_papers_setting(tmp_path, capsys):
    methods = ("segcertify", "adaptive")
    folder = make_run(tmp_path / "acdc", dataset="acdc", sigmas=(0.25,), settings=((100, 0.75),), methods=methods)
    run = published.ScoredRun(folder)
    table = published.scores_beside(published.score_table(run, draws=10), "acdc")
    assert [row["published_cig"] for row in table.rows] == [0.61, 0.67, 0.68]
    assert "no targets" in table.note
    assert "mIoU is not shown" in table.note
    assert "19 classes of 28 vertices for acdc" in table.note
    assert not any("published_miou" in row for row in table.rows)
    assert "mIoU (published)" not in table.markdown()
    near = published.boundary_table(run, published.BOUNDARY_SETTING, draws=10)
    rows = published.boundaries_beside(near, "acdc").rows
    assert [row["published_abstain"] for row in rows] == pytest.approx([0.218, 0.35, 0.202, 0.164, 0.25, 0.154])
    assert published.main([str(folder.path)]) == 0
    assert capsys.readouterr().out.count("| CIG (published) |") == 2
    with pytest.raises(cs.InputError, match="data set of the paper, got blocks"):
        published.main([str(make_run(tmp_path / "blocks").path)])
