"""The tables of the paper: every method at every setting, pooled over the images of a run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from certiseg.analysis.drawing import method_name
from certiseg.analysis.exports import Column, Table, show, without_nan
from certiseg.analysis.pooling import LEVEL, SCORES, Pool, Pools, percentile_interval, relative_gain
from certiseg.analysis.published import is_published, published_scores
from certiseg.runs.folder import RunFolder
from certiseg.runs.manifest import Manifest, Setting
from certiseg.runs.table import UNCERTIFIED
from certiseg.stats.radius import radius

COLUMNS = SCORES
BASELINE = "segcertify"
GAINS = ("cig", "ccig", "abstain", "class_abstain")
"""Scores whose relative change against the baseline is reported."""
_HEADS = {
    "cig": "CIG",
    "ccig": "cCIG",
    "abstain": "abstain",
    "class_abstain": "c-abstain",
    "accuracy": "cert. acc.",
    "miou": "mIoU",
}


def summary_table(folder: RunFolder) -> list[dict[str, Any]]:
    """A row per setting and method with all scores, the uncertified model first."""
    pools = Pools(folder)
    model = pools.pool(UNCERTIFIED).scores()
    rows: list[dict[str, Any]] = [{"method": UNCERTIFIED, "accuracy": model.accuracy, "miou": model.miou}]
    for setting in folder.manifest.each_setting():
        for method in folder.manifest.methods:
            scores = pools.pool(method, setting).scores()
            rows.append({**_key(method, setting), **{name: getattr(scores, name) for name in COLUMNS}})
    return rows


def summary_lines(folder: RunFolder, table: list[dict[str, Any]]) -> list[str]:
    """The table as text."""
    lines = [f"{len(folder.finished())} images of {folder.manifest.dataset}, {folder.manifest.promise()}"]
    lines.append(f"{'sigma':>6}{'n':>6}{'tau':>6}  {'method':<22}" + "".join(f"{name:>14}" for name in COLUMNS))
    for row in table:
        key = f"{row['sigma']:>6g}{row['n']:>6}{row['tau']:>6g}" if "sigma" in row else " " * 18
        cells = "".join(f"{show(row.get(name), 'score'):>14}" for name in COLUMNS)
        lines.append(f"{key}  {row['method']:<22}{cells}")
    return lines


def score_rows(
    pools: Pools, *, settings: Sequence[Setting] | None = None, draws: int = 1000, seed: int = 0
) -> list[dict[str, Any]]:
    """The rows of the summary with bootstrap intervals, gains over segcertify and the paper's figures.

    settings: those of the run to show (default: all). Keys: a score NAME with NAME_low and NAME_high; NAME_gain,
    relative to segcertify at the same setting, with its interval from the same resampled images; published_NAME where
    the paper prints one for this data set.
    """
    manifest, options = pools.manifest, {"draws": draws, "seed": seed}
    rows = [_row(manifest, UNCERTIFIED, None, pools.pool(UNCERTIFIED), None, **options)]
    for setting in settings or manifest.each_setting():
        baseline = pools.pool(BASELINE, setting) if BASELINE in manifest.methods else None
        for method in manifest.methods:
            against = baseline if method != BASELINE else None
            rows.append(_row(manifest, method, setting, pools.pool(method, setting), against, **options))
    return rows


def score_table(
    folder: RunFolder, *, settings: Sequence[Setting] | None = None, draws: int = 1000, seed: int = 0
) -> Table:
    """All scores with intervals, the paper's beside them where the data set is one of its."""
    pools = Pools(folder)
    rows = score_rows(pools, settings=settings, draws=draws, seed=seed)
    columns = [*_key_columns(), *(_score_column(name) for name in SCORES)]
    note = describe(pools)
    if is_published(folder.manifest.dataset):
        columns += [_score_column(name, prefix="published_") for name in SCORES if name != "accuracy"]
        note += " Published figures are the paper's, for its own network, images and test; they are no targets."
    note += f" Brackets: {LEVEL:.0%} intervals from {draws} bootstrap samples of the images."
    return Table(f"Certified segmentation of {folder.manifest.dataset}", note, tuple(columns), tuple(rows))


def gain_table(
    folder: RunFolder, *, settings: Sequence[Setting] | None = None, draws: int = 1000, seed: int = 0
) -> Table:
    """Relative change of every method against segcertify; for abstain rates less is better."""
    pools = Pools(folder)
    rows = [row for row in score_rows(pools, settings=settings, draws=draws, seed=seed) if "cig_gain" in row]
    columns = (*_key_columns(), *(Column(f"{name}_gain", f"{_HEADS[name]} change", "gain") for name in GAINS))
    note = (
        f"{describe(pools)} Brackets: {LEVEL:.0%} intervals from {draws} bootstrap samples, both methods on the same."
    )
    return Table(f"Change against SegCertify on {folder.manifest.dataset}", note, columns, tuple(rows))


def describe(pools: Pools) -> str:
    """What stands under every table and figure: how many images, what is promised, and that methods do not add up."""
    manifest, count = pools.manifest, len(pools.images)
    images = f"{count} image{'s' if count != 1 else ''}, pixels pooled"
    correction = manifest.correction + (f" with k = {manifest.k}" if manifest.correction == "kfwer" else "")
    single = " for one method and setting chosen beforehand" if len(manifest.methods) > 1 else ""
    return f"{images}; {manifest.promise()}{single} ({correction}, {manifest.test} test)."


def write(folder: RunFolder, out: Any, *, draws: int = 1000) -> list[Any]:
    """scores.* and gains.* in the folder `out`."""
    paths = score_table(folder, draws=draws).write(f"{out}/scores")
    if BASELINE in folder.manifest.methods and len(folder.manifest.methods) > 1:
        paths += gain_table(folder, draws=draws).write(f"{out}/gains")
    return paths


def _row(
    manifest: Manifest,
    method: str,
    setting: Setting | None,
    pool: Pool,
    baseline: Pool | None,
    *,
    draws: int,
    seed: int,
) -> dict[str, Any]:
    row = _key(method, setting) | {"name": method_name(method)}
    scores, samples = pool.scores(), pool.resampled(draws=draws, seed=seed)
    names = SCORES if setting is not None else ("cig", "ccig", "accuracy", "miou")
    for name in names:
        row[name] = getattr(scores, name)
        row[f"{name}_low"], row[f"{name}_high"] = percentile_interval(samples[name])
    if baseline is not None:
        theirs, their_samples = baseline.scores(), baseline.resampled(draws=draws, seed=seed)
        for name in GAINS:
            key = f"{name}_gain"
            row[key] = float(relative_gain(row[name], getattr(theirs, name)))
            row[f"{key}_low"], row[f"{key}_high"] = percentile_interval(
                relative_gain(samples[name], their_samples[name])
            )
    published = published_scores(manifest.dataset, method, setting)
    return without_nan(row | {f"published_{name}": value for name, value in published.items()})


def _key(method: str, setting: Setting | None) -> dict[str, Any]:
    if setting is None:
        return {"method": method}
    return {
        "sigma": setting.sigma,
        "n": setting.n,
        "tau": setting.tau,
        "radius": radius(setting.sigma, setting.tau),
        "method": method,
    }


def _key_columns() -> list[Column]:
    keys = [Column("sigma", "sigma", "plain"), Column("n", "n", "count"), Column("tau", "tau", "plain")]
    return [*keys, Column("radius", "R", "score"), Column("name", "method")]


def _score_column(name: str, *, prefix: str = "") -> Column:
    head = f"{_HEADS[name]} (published)" if prefix else _HEADS[name]
    return Column(f"{prefix}{name}", head, "percent" if "abstain" in name else "score")
