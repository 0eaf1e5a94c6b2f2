"""Several runs in one table and one figure: the figures of each run, its promise marked, damage refused."""

import shutil

import pytest

import certiseg as cs
from certiseg.analysis import side_by_side
from certiseg.analysis.exports import Table
from certiseg.analysis.levels import level_table
from certiseg.analysis.side_by_side import open_beside
from certiseg.analysis.tables import gain_table, score_table
from certiseg.render.figures import figure_bytes
from certiseg.report.side_by_side import side_by_side_report
from certiseg.runs.settings import Setting
from tests.analysis.conftest import make_run

METHODS = ("adaptive:0,0.1,0.4", "segcertify")


@pytest.fixture(scope="module")
def runs(run, tmp_path_factory):
    """The run of all analyses, one of another data set with two methods, and one like it of another seed."""
    home = tmp_path_factory.mktemp("beside")
    small = {"dataset": "bricks", "methods": METHODS, "settings": ((100, 0.75),)}
    return [run, make_run(home / "bricks", **small), make_run(home / "again", seed=1, **small)]


def test_every_row_is_that_of_its_run_with_its_promise_marked(runs):
    beside = open_beside([folder.path for folder in runs])
    names = [each.name for each in beside]
    assert names == [f"{folder.manifest.dataset}, {folder.path}" for folder in runs]
    table = side_by_side.scores_beside(beside, draws=10)
    for each in beside:
        mine = [row for row in table.rows if row["run"] == each.name]
        alone = score_table(each.run, settings=[each.setting], draws=10).rows
        assert [row["cig"] for row in mine] == [row["cig"] for row in alone]
        assert [row["name"] for row in mine if row["role"] == "promise"] == (
            ["SegCertify"] if each is beside[0] else ["Adaptive (0, 0.1, 0.4)"]
        )
        assert each.run.describe() in table.note
    assert "Nothing is promised about differences between runs" in table.note
    changes = side_by_side.changes_beside(beside, draws=10)
    alone = [row["cig_gain"] for each in beside for row in gain_table(each.run, settings=[each.setting], draws=10).rows]
    assert changes is not None
    assert [row["cig_gain"] for row in changes.rows] == alone
    levels = side_by_side.levels_beside(beside)
    alone = [(row["name"], row["certified"]) for each in beside for row in level_table(each.run, each.setting).rows]
    assert [(row["name"], row["certified"]) for row in levels.rows] == alone
    assert levels.csv().splitlines()[0].startswith("run,role,images,name,level")


def test_a_setting_that_all_have_may_be_named(runs):
    paths = [folder.path for folder in runs]
    table = side_by_side.scores_beside(open_beside(paths, Setting(0.03, 100, 0.75)), draws=10)
    assert {row["n"] for row in table.rows if "n" in row} == {100}
    assert [row["run"] for row in table.rows if row["role"] == "promise"] == [
        row["run"] for row in table.rows[-4::3]
    ], "the first run promised at n = 60"
    with pytest.raises(cs.InputError, match=r"one that every run has, got 0.03:60:0.75; .*bricks has 0.03:100:0.75"):
        open_beside(paths, Setting(0.03, 60, 0.75))


def test_the_page_and_its_files(runs, tmp_path):
    beside = open_beside([folder.path for folder in runs[:2]])
    assert [each.name for each in beside] == ["blocks", "bricks"], "no longer than needed"
    page = side_by_side_report(beside, tables=tmp_path / "tables")
    for text in ("What is promised", "Each run has a promise of its own", "SegCertify *", "blocks, H0", "bricks, H0"):
        assert text in page or text in (tmp_path / "tables/levels.svg").read_text()
    assert {path.name for path in (tmp_path / "tables").iterdir()} == {
        *(f"{stem}.{ending}" for stem in ("scores", "gains", "levels") for ending in ("csv", "md", "tex")),
        *("levels.png", "levels.svg"),
    }


def test_more_runs_than_fit_in_a_row_go_below(runs):
    table = side_by_side.levels_beside(open_beside([runs[1].path, runs[2].path]))
    rows = [{**row, "run": f"{number} {row['run']}"} for number in range(3) for row in table.rows]
    drawn = side_by_side.draw_levels(Table("x", "y", table.columns, tuple(rows)))
    titles = [axes.get_title(loc="left") for axes in drawn.axes if axes.axison]
    assert sum(", H0" in title for title in titles) == 6
    assert figure_bytes(drawn, "svg")


def test_runs_that_cannot_be_shown(runs, tmp_path):
    first, second, _ = (str(folder.path) for folder in runs)
    with pytest.raises(cs.InputError, match="must be 2 to 12 different folders"):
        open_beside([first])
    with pytest.raises(cs.InputError, match="must be 2 to 12 different folders"):
        open_beside([first, second, f"{second}/../bricks"])
    with pytest.raises(cs.InputError, match="must be a run folder, but it has no manifest"):
        open_beside([first, tmp_path])
    broken = tmp_path / "broken"
    shutil.copytree(second, broken)
    votes = next((broken / "votes").iterdir())
    votes.write_bytes(votes.read_bytes()[:-1] + b"x")
    with pytest.raises(cs.InputError, match=r"verify .*broken --repair"):
        open_beside([first, broken])
    shutil.rmtree(broken)
    shutil.copytree(second, broken)
    (broken / "table.parquet").unlink()
    with pytest.raises(cs.InputError, match="must be the table of a finished run"):
        open_beside([first, broken])
    shutil.copy(f"{second}/table.parquet", broken)
    for path in (broken / "rows").glob("drive__3*"):
        path.unlink()
    with pytest.raises(cs.InputError, match="its table must be of its finished images"):
        open_beside([first, broken])
