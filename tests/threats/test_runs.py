"""Runs along a threat: the same bytes whoever draws, every setting from the same votes, pages that say the range."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import certiseg as cs
from certiseg import threats
from certiseg.analysis.pieces import all_pieces
from certiseg.report.run_report import run_report
from certiseg.runs.evaluate import evaluate_dataset
from certiseg.runs.folder import RunFolder
from certiseg.runs.manifest import Manifest, load_manifest
from certiseg.runs.progress import Progress
from certiseg.runs.run import Run
from certiseg.runs.settings import RunSettings, Setting
from certiseg.runs.verify import verify_run
from certiseg.settings import given
from certiseg.viewer.choice import command
from certiseg.viewer.run_reader import RunReader
from tests.runs.small import Images, build, hashes, manifest_of, plain_run, sharded_run, spread_run

FOG = threats.fog(0.5, airlight=0.7)
ALONG: dict[str, Any] = {
    "threat": FOG,
    "up_to": 0.9,
    "radius": 0.02,
    "sigmas": (0.1,),
    "settings": ((60, 0.75), (90, 0.8)),
    "methods": ("segcertify", "adaptive:0,0,0.25", "nested", "sets:3"),
}
ANCHORS = 4


@pytest.fixture(scope="module")
def manifest() -> Manifest:
    made: Manifest = manifest_of(Images(3), **ALONG)
    return made


@pytest.fixture(scope="module")
def finished(manifest: Manifest, tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    folder = RunFolder(tmp_path_factory.mktemp("fog") / "run")
    progress = Progress()
    evaluate_dataset(folder, manifest, Images(3), build(0), progress=progress)
    assert progress.new_draws == progress.draws == 3 * (5 + 90) * ANCHORS == 3 * manifest.draws_per_image
    return folder


def test_votes_and_certificates_are_those_of_sample_and_certify(finished: RunFolder) -> None:
    images, name = Images(3), "drive/001"
    for setting in finished.manifest.each_setting():
        votes = cs.sample(
            build(0), images[1].image, **{**given(finished.manifest.sampling(0.1)), "snapshots": (), "n": setting.n}
        )
        assert votes.digest() == finished.votes(name, setting).digest()
        made = cs.certify(votes, "camvid", tau=setting.tau, alpha=0.01, method="nested", radius=0.02)
        stored = finished.certificate(name, setting, "nested")
        assert (made.vertex == stored.vertex).all()
        assert made.range == stored.range == (0.0, finished.manifest.end(setting))
        assert made.extent == finished.manifest.extent(setting)


def test_every_setting_covers_what_was_asked_for(finished: RunFolder) -> None:
    """Anchors are placed for the least tau; the others have longer ranges from each."""
    votes = finished.all_votes("drive/000", 0.1)
    assert len(votes.anchors) == ANCHORS
    ends = [finished.manifest.end(setting) for setting in finished.manifest.each_setting()]
    assert 0.9 <= ends[0] < ends[1]


def test_two_processes_and_shards_give_the_same_bytes(finished: RunFolder, manifest: Manifest, tmp_path: Path) -> None:
    expected, images = hashes(finished.path), Images(3)
    assert spread_run(tmp_path / "two", images, manifest, draws_per_task=40) == expected
    assert sharded_run(tmp_path / "shards", images, manifest) == expected


def test_an_interrupted_run_goes_on_to_the_same_bytes(
    finished: RunFolder, manifest: Manifest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Stop(Progress):
        def drew(self, draws: int) -> None:
            super().drew(draws)
            if self.new_draws > 150:
                raise KeyboardInterrupt

    folder, images = RunFolder(tmp_path), Images(3)
    with pytest.raises(KeyboardInterrupt):
        evaluate_dataset(folder, manifest, images, build(0), progress=Stop())
    evaluate_dataset(folder, manifest, images, build(0))
    assert hashes(tmp_path) == hashes(finished.path)


def test_batches_give_the_same_votes(finished: RunFolder, tmp_path: Path) -> None:
    batched = manifest_of(Images(1), **ALONG, batch_size=7)
    plain_run(tmp_path, Images(1), batched)
    there, here = (folder.all_votes("drive/000", 0.1) for folder in (finished, RunFolder(tmp_path)))
    assert there.digest() == here.digest()


def test_the_run_is_verified_and_another_threat_is_noticed(finished: RunFolder, tmp_path: Path) -> None:
    found = verify_run(finished)
    assert found.passed
    assert found.certificates == 3 * 2 * 4
    other = manifest_of(Images(3), **(ALONG | {"threat": threats.fog(0.5, airlight=0.71)}))
    assert other.run_key != finished.manifest.run_key
    with pytest.raises(cs.InputError, match=r"threat: \{'name': 'fog', .*'airlight': 0.7, .* there, .*0.71"):
        evaluate_dataset(RunFolder(finished.path), other, Images(3), build(0))
    moved = RunFolder(tmp_path, other)
    moved.create()
    votes = finished.votes_path("drive/000", 0.1)
    moved.votes_path("drive/000", 0.1).write_bytes(votes.read_bytes())
    with pytest.raises(cs.InputError, match=r"must be votes of this image and run, but its threat is"):
        moved.all_votes("drive/000", 0.1)


def test_manifests_keep_the_threat(finished: RunFolder) -> None:
    found = load_manifest(finished.manifest_path)
    assert found.threat == FOG
    assert (found.up_to, found.radius) == (0.9, 0.02)
    assert found.run_key == finished.manifest.run_key


def test_tables_and_pages_state_the_range(finished: RunFolder) -> None:
    first = finished.manifest.each_setting()[0]
    covered = finished.manifest.extent(first)
    assert covered.startswith("fog of density up to ")
    assert covered.endswith(" % and R = 0.0200")
    table = Run(finished).scores()
    assert covered in table.title
    assert "fog of airlight 0.7" in table.title
    assert {row["covered"] for row in table[1:]} == {
        finished.manifest.extent(s) for s in finished.manifest.each_setting()
    }
    assert {row["radius"] for row in table[1:]} == {0.02}
    pieces = {piece.stem: piece for piece in all_pieces(finished, first, draws=20)}
    assert "tuned" not in "".join(pieces)
    assert pieces["scores"].table is not None
    assert "certified for" in [column.head for column in pieces["scores"].table.columns]
    page = run_report(finished, images=0)
    assert covered in page
    assert f"drawn at {ANCHORS} anchors" in page
    assert "before it is rounded to 8 bits" in page


def test_fluctuations_look_at_every_anchor(finished: RunFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    from certiseg.analysis import fluctuations

    seen: list[Any] = []
    monkeypatch.setattr(fluctuations, "count_sets", lambda voted: seen.append(voted) or {})
    name, setting = "drive/000", finished.manifest.each_setting()[0]
    fluctuations.count_abstained_sets(finished, setting, [name])
    votes = finished.votes(name, setting)
    chosen = finished.certificate(name, setting, "segcertify").abstained & (finished.label(name) != 255)
    total = sum(apart.counts[chosen].astype(int) for apart in votes.by_anchor)
    assert (seen[0] == (total > 0)).all()
    assert (seen[0] != (votes.counts[chosen] > 0)).any()


def test_thresholds_are_not_searched_over_anchors(finished: RunFolder) -> None:
    from certiseg.analysis.thresholds import search_over_n

    with pytest.raises(cs.InputError, match="votes must be at one anchor to search thresholds"):
        search_over_n(finished, sigma=0.1, tau=0.75)


def test_the_recipe_of_the_viewer_names_the_threat(finished: RunFolder) -> None:
    reader = RunReader(finished)
    certificate = finished.certificate("drive/000", finished.manifest.each_setting()[0], "nested")
    line = command(reader, "drive/000", certificate, selection=["folder"], model=["--model", "m"])
    for words in ("--threat fog --scale 0.5 --airlight 0.7 --up-to 0.9", "--radius 0.02", "--sigma 0.1", "60:0.75"):
        assert words in line


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"threat": threats.fog(0.5, depth=np.ones((24, 32)))}, "threat must be the same for all images of a run"),
        ({"threat": threats.l2(), "up_to": None, "sigmas": (0.1,)}, "radius must come with a threat"),
        ({"threat": threats.gamma(0.5), "radius": None}, "sigma and radius must be 0 for gamma"),
        ({"up_to": 200.0}, "up_to must need at most 64 anchors, got 200, which needs .*; a scale of .* would do"),
        ({"up_to": -1.0}, "up_to must be a positive number, got -1.0"),
        ({"radius": 0.5}, r"radius must be at most sigma \* Phi\^-1\(tau\)"),
        ({"radius": 0.5, "up_to": None}, r"radius must be at most sigma \* Phi\^-1\(tau\)"),
        ({"noise": "grid"}, "noise must be gaussian with the threat fog"),
        ({"sigmas": (-0.1,), "radius": None}, "sigma must be a number >= 0, got -0.1"),
        ({"settings": ((60, 0.5),), "radius": None}, "tau must be above 0.5"),
    ],
)
def test_what_no_run_can_promise_is_refused_before_it_begins(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(cs.InputError, match=words) as caught:
        RunSettings(**{**ALONG, **changes})
    assert "\n" not in str(caught.value)


def test_without_noise_a_threat_is_all_there_is() -> None:
    assert RunSettings(threat=FOG).sigmas == (0.0,)
    assert RunSettings().sigmas == (0.25,)
    assert RunSettings(threat=FOG).extent(Setting(0.0, 100, 0.75)) == "fog of density up to 29 %"
    assert RunSettings().extent(Setting(0.25, 100, 0.75)) == "R = 0.1686"
    gamma = RunSettings(threat=threats.gamma(0.5), up_to=0.6)
    assert len(gamma.sampling(0.0).anchors) == 3


def test_an_image_of_one_colour_is_left_out_of_a_run_with_flat(tmp_path: Path) -> None:
    class Grey(Images):
        def __getitem__(self, index: int) -> Any:
            sample = super().__getitem__(index)
            return replace(sample, image=np.full_like(sample.image, 90)) if index == 0 else sample

    images = Grey(2)
    manifest = manifest_of(images, threat=threats.flat(0.5), sigmas=(0.0,), settings=((60, 0.75),))
    left_out = evaluate_dataset(RunFolder(tmp_path), manifest, images, build(0))
    assert list(left_out) == ["drive/000"]
    assert "image must not be of one colour for the threat flat" in left_out["drive/000"]
