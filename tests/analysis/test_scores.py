"""Tables, classes, levels, boundaries: each equals a brute-force statement per pixel, pooled over images."""

import csv
import io
import json
import math

import numpy as np
import pytest

import certiseg as cs
from certiseg.analysis import boundaries, levels, per_class, tables
from certiseg.analysis.exports import Column, Table, show
from certiseg.analysis.pooling import SCORES, Pools, percentile_interval, relative_gain, resample_weights
from certiseg.analysis.published import is_published, published_boundary, published_scores
from certiseg.runs.manifest import Setting
from certiseg.runs.table import UNCERTIFIED

from .conftest import HIERARCHY, METHODS, SETTING, make_run


def brute_force(run, method, setting, *, where=lambda label: np.ones(label.shape, bool)):
    """Every scored pixel as (class, certified, right, gain, level), one by one."""
    pixels = []
    for name in run.finished():
        label, certificate = run.label(name), run.certificate(name, setting, method)
        mask = where(label)
        for row, column in np.ndindex(label.shape):
            truth = int(label[row, column])
            if truth == 255 or not mask[row, column]:
                continue
            names = certificate.labels_at(row, column)
            leaves = {leaf for name in names for leaf in HIERARCHY.leaves(name)}
            right = truth in leaves
            gain = 1 - math.log(len(leaves)) / math.log(31) if right else 0.0
            pixels.append((truth, bool(names), right, gain, int(certificate.level[row, column])))
    return pixels


def mean_by_class(pixels, value):
    by_class = {}
    for pixel in pixels:
        by_class.setdefault(pixel[0], []).append(value(pixel))
    return {truth: sum(values) / len(values) for truth, values in by_class.items()}


def average(values):
    values = list(values)
    return sum(values) / len(values)


@pytest.mark.parametrize("method", METHODS)
def test_table_rows_equal_brute_force_over_all_pixels(run, method):
    pixels = brute_force(run, method, SETTING)
    row = next(r for r in tables.score_rows(Pools(run), draws=20) if r["method"] == method and r["n"] == SETTING.n)
    assert row["cig"] == pytest.approx(average(p[3] for p in pixels))
    assert row["ccig"] == pytest.approx(average(mean_by_class(pixels, lambda p: p[3]).values()))
    assert row["abstain"] == pytest.approx(average(not p[1] for p in pixels))
    assert row["class_abstain"] == pytest.approx(average(mean_by_class(pixels, lambda p: not p[1]).values()))
    assert row["accuracy"] == pytest.approx(average(p[2] for p in pixels))
    for name in SCORES:
        assert row[name] is None or (row[f"{name}_low"] <= row[f"{name}_high"] and math.isfinite(row[name]))


def test_scores_are_pooled_over_pixels_not_averaged_over_images(run):
    pool = Pools(run).pool("nested", SETTING)
    single = [pool.only([name]).scores() for name in pool.images]
    counts = np.array([s.pixels for s in single])
    assert counts.min() == 1  # the image that is nearly all void
    weighted = np.sum([s.cig * s.pixels for s in single]) / counts.sum()
    assert pool.scores().cig == pytest.approx(weighted)
    assert abs(np.mean([s.cig for s in single]) - weighted) > 0.01


def test_resampled_scores_equal_scores_of_the_drawn_images(run):
    for method in (*METHODS, UNCERTIFIED):
        pool = Pools(run).pool(method, SETTING if method != UNCERTIFIED else None)
        samples = pool.resampled(draws=25, seed=3)
        for draw, weights in enumerate(resample_weights(4, draws=25, seed=3)):
            expected = pool.scores(weights)
            for name in SCORES:
                value = getattr(expected, name)
                if value is not None:
                    assert samples[name][draw] == pytest.approx(value)


def test_gains_are_relative_to_segcertify_at_the_same_setting(run):
    rows = tables.score_rows(Pools(run), draws=50)
    for row in rows[1:]:
        baseline = next(r for r in rows[1:] if r["method"] == "segcertify" and r["n"] == row["n"])
        if row["method"] == "segcertify":
            assert "cig_gain" not in row
        else:
            assert row["cig_gain"] == pytest.approx(row["cig"] / baseline["cig"] - 1)
            assert row["abstain_gain"] == pytest.approx(row["abstain"] / baseline["abstain"] - 1)
            assert row["cig_gain_low"] <= row["cig_gain_high"]


def test_a_baseline_of_zero_has_no_relative_gain():
    assert np.isnan(relative_gain(0.3, 0.0))
    assert relative_gain(0.3, 0.2) == pytest.approx(0.5)
    assert all(np.isnan(percentile_interval(np.array([np.nan, np.nan]))))
    assert percentile_interval(np.array([np.nan, 2.0, 2.0])) == (2.0, 2.0)


def test_tables_say_the_promise_in_every_format(run, tmp_path):
    paths = tables.write(run, tmp_path, draws=20)
    assert sorted(p.name for p in paths) == [f"{s}.{e}" for s in ("gains", "scores") for e in ("csv", "md", "tex")]
    for stem in ("scores", "gains"):
        assert run.manifest.promise() in (tmp_path / f"{stem}.md").read_text()
        assert run.manifest.promise() in (tmp_path / f"{stem}.tex").read_text()
    rows = list(csv.DictReader(io.StringIO((tmp_path / "scores.csv").read_text())))
    assert len(rows) == 1 + 2 * len(METHODS)
    assert "nan" not in "".join(p.read_text() for p in paths).lower().replace("nano", "")
    assert float(rows[1]["cig_low"]) <= float(rows[1]["cig"]) <= float(rows[1]["cig_high"])
    assert [r["miou"] == "" for r in rows[1:4]] == [False, True, True]


def test_exports_quote_what_their_formats_would_read_otherwise():
    columns = (Column("a", "a_b & 50%"), Column("x", "x", "score"))
    table = Table("t_1", "50% of $n", columns, ({"a": "p|q, r_s", "x": 0.5, "x_low": 0.25, "x_high": 0.75}, {"a": "-"}))
    assert "| p\\|q, r_s | 0.500 [0.250, 0.750] |" in table.markdown()
    assert r"a\_b \& 50\%" in table.latex()
    assert r"\caption{t\_1. 50\% of \$n}" in table.latex()
    assert list(csv.reader(io.StringIO(table.csv())))[1:] == [["p|q, r_s", "0.5", "0.25", "0.75"], ["-", "", "", ""]]
    assert show(float("nan"), "score") == show(None, "percent") == "-"


def test_published_figures_stand_beside_ours_only_for_the_papers_data_sets():
    setting = Setting(0.25, 100, 0.75)
    assert is_published("coco_stuff")
    assert not is_published("camvid")
    assert published_scores("cityscapes", "segcertify", setting) == {
        "cig": 0.89,
        "ccig": 0.65,
        "miou": 0.37,
        "abstain": 0.07,
        "class_abstain": 0.21,
    }
    assert published_scores("cityscapes", "adaptive:0,0,0.25", setting)["cig"] == 0.90
    assert published_scores("cityscapes", UNCERTIFIED) == {"cig": 0.9, "ccig": 0.47, "miou": 0.39}
    assert published_scores("cityscapes", "nested", setting) == {}
    assert published_scores("cityscapes", "segcertify", Setting(0.25, 200, 0.75)) == {}
    assert published_boundary("acdc", "adaptive")["abstain_boundary"] == pytest.approx(0.25)
    assert published_boundary("camvid", "adaptive") == {}


def test_published_columns_appear_in_a_run_of_the_papers_setting(run, tmp_path):
    folder = make_run(
        tmp_path, dataset="acdc", sigmas=(0.25,), settings=((100, 0.75),), methods=("segcertify", "adaptive")
    )
    table = tables.score_table(folder, draws=10)
    assert [r.get("published_cig") for r in table.rows] == [0.61, 0.67, 0.68]
    assert "no targets" in table.note
    near = boundaries.boundary_table(folder, Setting(0.25, 100, 0.75), draws=10)
    assert [r["published_abstain"] for r in near.rows] == pytest.approx([0.218, 0.35, 0.202, 0.164, 0.25, 0.154])
    assert "published_cig" not in tables.score_rows(Pools(run), draws=10)[1]


def test_class_deltas_equal_brute_force_and_skip_classes_that_never_occur(run):
    deltas = per_class.class_deltas(Pools(run), "nested", SETTING)
    ours, theirs = (brute_force(run, method, SETTING) for method in ("nested", "segcertify"))
    gains = [mean_by_class(pixels, lambda p: p[3]) for pixels in (ours, theirs)]
    rates = [mean_by_class(pixels, lambda p: p[1]) for pixels in (ours, theirs)]
    assert [d.name for d in deltas.classes] == [HIERARCHY.classes[c] for c in sorted(gains[0])]
    assert len(deltas.classes) < 31
    for delta, truth in zip(deltas.classes, sorted(gains[0]), strict=True):
        assert delta.cig == pytest.approx(gains[0][truth] - gains[1][truth])
        assert delta.certified == pytest.approx(rates[0][truth] - rates[1][truth])
    assert deltas.overall.cig == pytest.approx(average(d.cig for d in deltas.classes))
    assert deltas.overall.certified == pytest.approx(average(d.certified for d in deltas.classes))
    assert per_class.to_table(deltas).rows[0]["name"] == "Overall"


def test_level_shares_equal_brute_force_and_add_up_to_one(run):
    found = levels.level_shares(Pools(run), SETTING)
    assert found.methods == [m for m in METHODS if m != "sets:3"]
    for method in found.methods:
        pixels = brute_force(run, method, SETTING)
        shares = [s for s in found.shares if s.method == method]
        assert sum(s.certified + s.abstained for s in shares) == pytest.approx(1)
        for share in shares:
            here = [p for p in pixels if p[4] == share.level]
            assert share.certified == pytest.approx(sum(p[1] for p in here) / len(pixels))
            assert share.wrong == pytest.approx(sum(p[1] and not p[2] for p in here) / len(pixels))
    assert all(row["certified"] or row["abstained"] for row in levels.to_table(found).rows)


def test_boundary_rows_equal_brute_force(run):
    rows = boundaries.boundary_rows(Pools(run), SETTING, draws=20)
    for row in (r for r in rows if r["method"] in ("segcertify", "nested")):
        near = {"all": None, "boundary": True, "non-boundary": False}[row["part"]]

        def where(label, near=near):
            return np.ones(label.shape, bool) if near is None else cs.scores.boundary(label) == near

        pixels = brute_force(run, row["method"], SETTING, where=where)
        assert row["pixels"] == len(pixels)
        assert row["cig"] == pytest.approx(average(p[3] for p in pixels))
        assert row["abstain"] == pytest.approx(average(not p[1] for p in pixels))


def test_images_without_a_boundary_leave_no_nan_anywhere_but_in_their_own_part(run, tmp_path):
    pool = Pools(run).pool("nested", SETTING, boundary=True).only(["drive/2"])
    assert pool.scores().pixels == 0
    assert all(np.isnan(end) for end in pool.interval("cig", draws=10))
    whole = Pools(run).pool("nested", SETTING, boundary=True)
    assert all(math.isfinite(end) for end in whole.interval("ccig", draws=200))
    text = boundaries.boundary_table(run, SETTING, draws=10).csv()
    assert "nan" not in text
    assert json.dumps(tables.score_rows(Pools(run), draws=10), allow_nan=False)


def test_what_a_run_does_not_hold_is_refused(run):
    with pytest.raises(cs.InputError, match="must be of the run"):
        Pools(run).pool("level:3", SETTING)
    with pytest.raises(cs.InputError, match="must be of the run"):
        Pools(run).pool("nested", Setting(0.03, 61, 0.75))
