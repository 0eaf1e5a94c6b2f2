"""Tables, classes, levels, boundaries: each equals a brute-force statement per pixel, pooled over images."""

import csv
import io
import json
import math

import numpy as np
import pytest

import certiseg as cs
from certiseg.analysis import boundaries, levels, per_class, tables
from certiseg.analysis.drawing import method_name
from certiseg.analysis.exports import Column, Table, show
from certiseg.runs import pooling
from certiseg.runs.pooling import SCORES, ScoredRun, percentile_interval, relative_gain, resample_weights
from certiseg.runs.settings import Setting
from certiseg.runs.table import UNCERTIFIED

from .conftest import HIERARCHY, METHODS, SETTING


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
    rows = tables.score_table(ScoredRun(run), settings=[SETTING], draws=20).rows
    row = next(r for r in rows if r["method"] == method)
    assert row["cig"] == pytest.approx(average(p[3] for p in pixels))
    assert row["ccig"] == pytest.approx(average(mean_by_class(pixels, lambda p: p[3]).values()))
    assert row["abstain"] == pytest.approx(average(not p[1] for p in pixels))
    assert row["class_abstain"] == pytest.approx(average(mean_by_class(pixels, lambda p: not p[1]).values()))
    assert row["accuracy"] == pytest.approx(average(p[2] for p in pixels))
    for name in SCORES:
        assert row[name] is None or math.isfinite(row[name])
        assert row[f"{name}_low"] is row[f"{name}_high"] is None


def test_scores_are_pooled_over_pixels_not_averaged_over_images(run):
    pool = ScoredRun(run).sums("nested", SETTING)
    single = [pool.only([name]).scores() for name in pool.images]
    counts = np.array([s.pixels for s in single])
    assert counts.min() == 1  # the image that is nearly all void
    weighted = np.sum([s.cig * s.pixels for s in single]) / counts.sum()
    assert pool.scores().cig == pytest.approx(weighted)
    assert abs(np.mean([s.cig for s in single]) - weighted) > 0.01


def test_resampled_scores_equal_scores_of_the_drawn_images(run):
    for method in (*METHODS, UNCERTIFIED):
        pool = ScoredRun(run).sums(method, SETTING if method != UNCERTIFIED else None)
        samples = pool.resampled(draws=25, seed=3)
        for draw, weights in enumerate(resample_weights(4, draws=25, seed=3)):
            expected = pool.scores(weights)
            for name in SCORES:
                value = getattr(expected, name)
                if value is not None:
                    assert samples[name][draw] == pytest.approx(value, nan_ok=True)


def test_gains_are_relative_to_segcertify_at_the_same_setting(run):
    scored = ScoredRun(run)
    rows = tables.score_table(scored, draws=5).rows[1:]
    gains = tables.gain_table(scored, draws=50).rows
    assert len(gains) == 2 * (len(METHODS) - 1)
    for gain in gains:
        ours, baseline = (
            next(r for r in rows if r["method"] == method and r["n"] == gain["n"])
            for method in (gain["method"], "segcertify")
        )
        for name in tables.GAINS:
            assert gain[f"{name}_gain"] == pytest.approx(ours[name] / baseline[name] - 1)
        assert gain["cig_gain_low"] is gain["cig_gain_high"] is None


def test_few_images_have_no_intervals_and_many_have(run, monkeypatch):
    scored = ScoredRun(run)
    assert len(scored.images) < pooling.LEAST_IMAGES
    table = tables.score_table(scored, draws=20)
    assert "No intervals: they need at least 20 images." in table.note
    monkeypatch.setattr(pooling, "LEAST_IMAGES", len(scored.images))
    table = tables.score_table(scored, draws=20)
    assert "Brackets: 95% intervals" in table.note
    assert all(row["cig_low"] <= row["cig_high"] for row in table.rows)
    gains = tables.gain_table(scored, draws=20).rows
    assert all(row["cig_gain_low"] <= row["cig_gain_high"] for row in gains)


def test_a_baseline_of_zero_has_no_relative_gain():
    assert np.isnan(relative_gain(0.3, 0.0))
    assert relative_gain(0.3, 0.2) == pytest.approx(0.5)
    assert all(np.isnan(percentile_interval(np.array([np.nan, np.nan]))))
    assert percentile_interval(np.array([np.nan, 2.0, 2.0])) == (2.0, 2.0)


def test_tables_say_the_promise_in_every_format(run, tmp_path):
    table = tables.score_table(ScoredRun(run), draws=20)
    table.write(tmp_path / "new" / "scores")
    texts = {path.suffix: path.read_text() for path in (tmp_path / "new").iterdir()}
    assert sorted(texts) == [".csv", ".md", ".tex"]
    assert run.manifest.guarantee() in texts[".md"]
    assert run.manifest.guarantee() in texts[".tex"]
    assert run.manifest.guarantee() in tables.gain_table(ScoredRun(run), draws=20).note
    rows = list(csv.DictReader(io.StringIO(texts[".csv"])))
    assert len(rows) == 1 + 2 * len(METHODS)
    assert "nan" not in "".join(texts.values()).lower()
    assert rows[1]["cig"]
    assert rows[1]["cig_low"] == rows[1]["cig_high"] == ""
    assert [r["miou"] == "" for r in rows[1:4]] == [False, True, True]


def test_exports_quote_what_their_formats_would_read_otherwise():
    columns = (Column("a", "a_b & 50%"), Column("x", "x", "score"))
    table = Table("t_1", "50% of $n", columns, ({"a": "p|q, r_s", "x": 0.5, "x_low": 0.25, "x_high": 0.75}, {"a": "-"}))
    assert "| p\\|q, r_s | 0.500 [0.250, 0.750] |" in table.markdown()
    assert r"a\_b \& 50\%" in table.latex()
    assert r"\caption{t\_1. 50\% of \$n}" in table.latex()
    assert list(csv.reader(io.StringIO(table.csv())))[1:] == [["p|q, r_s", "0.5", "0.25", "0.75"], ["-", "", "", ""]]
    assert show(float("nan"), "score") == show(None, "percent") == "-"


def test_class_differences_equal_brute_force_and_skip_classes_that_never_occur(run):
    overall, *rows = per_class.class_table(ScoredRun(run), "nested", SETTING).rows
    ours, theirs = (brute_force(run, method, SETTING) for method in ("nested", "segcertify"))
    gains = [mean_by_class(pixels, lambda p: p[3]) for pixels in (ours, theirs)]
    rates = [mean_by_class(pixels, lambda p: p[1]) for pixels in (ours, theirs)]
    assert {row["name"] for row in rows} == {HIERARCHY.classes[c] for c in gains[0]}
    assert len(rows) < 31
    for row in rows:
        truth = HIERARCHY.classes.index(row["name"])
        assert row["cig"] == pytest.approx(gains[0][truth] - gains[1][truth])
        assert row["certified"] == pytest.approx(100 * (rates[0][truth] - rates[1][truth]))
    assert [row["cig"] for row in rows] == sorted((row["cig"] for row in rows), reverse=True)
    assert overall["name"] == "Overall"
    for key in ("cig", "certified"):
        assert overall[key] == pytest.approx(average(row[key] for row in rows))


def test_level_shares_equal_brute_force_and_add_up_to_one(run):
    rows = levels.level_table(ScoredRun(run), SETTING).rows
    assert {row["name"] for row in rows} == {method_name(m) for m in METHODS if m != "sets:3"}
    assert all(row["certified"] or row["abstained"] for row in rows)
    for method in (m for m in METHODS if m != "sets:3"):
        pixels = brute_force(run, method, SETTING)
        shares = {row["level"]: row for row in rows if row["name"] == method_name(method)}
        assert sum(s["certified"] + s["abstained"] for s in shares.values()) == pytest.approx(1)
        for level, share in shares.items():
            here = [p for p in pixels if f"H{p[4]}" == level]
            assert share["certified"] == pytest.approx(sum(p[1] for p in here) / len(pixels))
            assert share["wrong"] == pytest.approx(sum(p[1] and not p[2] for p in here) / len(pixels))


def test_boundary_rows_equal_brute_force(run):
    rows = boundaries.boundary_table(ScoredRun(run), SETTING, draws=20).rows
    flat = {row["part"]: row for row in rows if row["method"] == "segcertify"}
    for row in (r for r in rows if r["method"] in ("segcertify", "nested")):
        near = {"all": None, "boundary": True, "non-boundary": False}[row["part"]]

        def where(label, near=near):
            return np.ones(label.shape, bool) if near is None else cs.scores.boundary(label) == near

        pixels = brute_force(run, row["method"], SETTING, where=where)
        assert row["pixels"] == len(pixels)
        assert row["cig"] == pytest.approx(average(p[3] for p in pixels))
        assert row["abstain"] == pytest.approx(average(not p[1] for p in pixels))
        if row["method"] == "nested":
            baseline = flat[row["part"]]["cig"]
            assert row["cig_gain"] == (pytest.approx(row["cig"] / baseline - 1) if baseline else None)


def test_images_without_a_boundary_leave_no_nan_anywhere_but_in_their_own_part(run, monkeypatch):
    monkeypatch.setattr(pooling, "LEAST_IMAGES", 1)
    scored = ScoredRun(run)
    whole = scored.sums("nested", SETTING, boundary=True)
    single = whole.only(["drive/2"])
    assert single.scores().pixels == 0
    assert all(np.isnan(value) for value in single.row(["cig"], draws=10).values())
    assert all(math.isfinite(value) for value in whole.row(["ccig"], draws=200).values())
    assert "nan" not in boundaries.boundary_table(scored, SETTING, draws=10).csv()
    assert json.dumps(tables.score_table(scored, draws=10).rows, allow_nan=False)


def test_what_a_run_does_not_hold_is_refused(run):
    with pytest.raises(cs.InputError, match="must be of the run"):
        ScoredRun(run).sums("level:3", SETTING)
    with pytest.raises(cs.InputError, match="must be of the run"):
        ScoredRun(run).sums("nested", Setting(0.03, 61, 0.75))
