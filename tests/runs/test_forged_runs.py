"""Runs rewritten with every hash made right: what only drawing again, or the data set, can find."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import certiseg as cs
from certiseg.runs.folder import RunFolder
from certiseg.runs.identity import label_key
from certiseg.runs.manifest import Manifest
from certiseg.runs.table import write_table
from certiseg.runs.verify import redraw_run, verify_run
from certiseg.runs.write_image import write_image
from tests.runs.small import Images, build, manifest_of, plain_run

IMAGES = Images(2)
ASKED: dict[str, Any] = {
    "sigmas": (0.1,),
    "settings": ((60, 0.75), (40, 0.6)),
    "methods": ("segcertify",),
    "objects": ("construction", "ground"),
    "least_area": 20,
    "keep_maps": True,
}


@pytest.fixture
def run(tmp_path: Path) -> RunFolder:
    plain_run(tmp_path / "run", IMAGES, manifest_of(IMAGES, **ASKED))
    return RunFolder(tmp_path / "run")


def rewrite(
    folder: RunFolder,
    *,
    manifest: Manifest | None = None,
    votes: Callable[[cs.Votes], cs.Votes] = lambda drawn: drawn,
    label: Callable[[np.ndarray], np.ndarray] = lambda truth: truth,
) -> RunFolder:
    """The run with other votes or ground truth, written as the project writes it: all of its hashes are right."""
    names = folder.manifest.images
    kept = {
        name: (label(folder.label(name)), folder.prediction(name), votes(folder.all_votes(name, 0.1))) for name in names
    }
    for path in (path for name in names for path in folder.files_of(name)):
        path.unlink(missing_ok=True)
    new = RunFolder(folder.path, manifest or folder.manifest)
    new.manifest.save(new.manifest_path)
    for name, (truth, prediction, drawn) in kept.items():
        drawn.save(new.votes_path(name, 0.1))
        write_image(new, name, truth, prediction, None)
    write_table(new.table_path, (new.receipt(name).rows for name in names), run=new.manifest.run_key)
    return RunFolder(folder.path)


def redraw(folder: RunFolder) -> list[str]:
    """What drawing the run again finds."""
    places = {name: index for index, name in enumerate(IMAGES.names)}
    return [problem.what for problem in redraw_run(folder, build(0), lambda name: IMAGES[places[name]])]


def test_an_honest_run_is_drawn_again_without_a_difference(run: RunFolder) -> None:
    assert redraw(run) == []
    assert redraw(rewrite(run)) == []


def test_counts_of_fewer_draws_are_drawn_again(run: RunFolder) -> None:
    def all_for_the_candidate(drawn: cs.Votes) -> cs.Votes:
        sure = np.zeros_like(drawn.counts)
        np.put_along_axis(sure, drawn.candidate[..., None].astype(np.int64), 40, axis=2)
        return replace(drawn, snapshots={40: sure})

    plain = {name: value for name, value in ASKED.items() if name not in ("objects", "least_area", "keep_maps")}
    path = run.path.parent / "plain"
    plain_run(path, IMAGES, manifest_of(IMAGES, **plain))
    forged = rewrite(RunFolder(path), votes=all_for_the_candidate)
    assert verify_run(forged).passed
    assert all("`counts` differs" in told and "n40" in told for told in redraw(forged))
    assert len(redraw(forged)) == len(IMAGES.names)


def test_the_ground_truth_is_that_of_the_data_set(run: RunFolder) -> None:
    def kinder(truth: np.ndarray) -> np.ndarray:
        return np.zeros_like(truth)

    manifest = run.manifest
    keys = tuple(label_key(kinder(run.label(name))) for name in manifest.images)
    forged = rewrite(run, manifest=replace(manifest, label_keys=keys), label=kinder)
    assert sum("must be the ground truth of the data set" in told for told in redraw(forged)) == len(IMAGES.names)


def test_values_of_measures_are_drawn_again(run: RunFolder) -> None:
    def evened(drawn: cs.Votes) -> cs.Votes:
        assert drawn.record is not None
        numerators = drawn.record.numerators.copy()
        for column in range(numerators.shape[1]):
            moved = np.flatnonzero(np.diff(numerators[:, column].astype(np.int64)) != 0)
            if len(moved):  # two draws change places: every sum stays
                numerators[[moved[0], moved[0] + 1], column] = numerators[[moved[0] + 1, moved[0]], column]
        return replace(drawn, record=replace(drawn.record, numerators=numerators, maps=None))

    forged = rewrite(run, manifest=replace(run.manifest, keep_maps=False), votes=evened)
    assert any("its map gives" in told for told in redraw(forged))


def test_the_hierarchy_is_compared_where_one_is_named(run: RunFolder) -> None:
    outcome = verify_run(run, hierarchy="cityscapes")
    assert not outcome.passed
    assert "the hierarchy is not cityscapes" in outcome.problems[0].what


def test_images_that_are_not_in_the_scores_are_told(run: RunFolder) -> None:
    second = IMAGES.names[1]
    assert verify_run(run).notes == ()
    for path in run.files_of(second):
        path.unlink(missing_ok=True)
    run.write_left_out({second: "the file is damaged"})
    assert f"left out: {second}: the file is damaged" in verify_run(run).notes


def test_a_shard_has_no_table(run: RunFolder) -> None:
    run.write_note(run.shard_path, "shard", {"shard": "1/2"})
    outcome = verify_run(run)
    assert ["must not be there: a shard has no table" in problem.what for problem in outcome.problems] == [True]
    assert outcome.notes == ("shard 1 of 2: the other images are elsewhere",)
