"""Local processes: the same bytes as one process, whoever dies or hangs, and sentences for what cannot be."""

from functools import partial

import pytest

import certiseg as cs
from certiseg.runs import worker_pool
from certiseg.runs.evaluate import evaluate_dataset
from certiseg.runs.folder import RunFolder
from certiseg.runs.local import Processes
from certiseg.runs.progress import Progress
from certiseg.runs.settings import EngineSettings, Shard
from tests.runs.small import Images, build, hashes, manifest_of, plain_run


def run(path, images, manifest, build=build, *, progress=None, shard=None, **options):
    """An evaluation by two processes; returns what was left out and the draws by place."""
    engine = Processes(build, manifest, EngineSettings(workers=2, **options))
    try:
        more = {} if shard is None else {"shard": shard}
        left_out = evaluate_dataset(RunFolder(path), manifest, images, engine=engine, progress=progress, **more)
    finally:
        engine.close()
    return left_out, engine


def test_two_processes_give_the_bytes_of_one_and_report_every_draw_once(tmp_path):
    images = Images(5, broken=3)
    manifest = manifest_of(images)
    expected = plain_run(tmp_path / "one", images, manifest)
    progress = Progress()
    left_out, engine = run(tmp_path / "two", images, manifest, progress=progress, draws_per_task=40)
    assert list(left_out) == ["drive/003"]
    assert hashes(tmp_path / "two") == expected
    draws = 4 * len(manifest.sigmas) * (manifest.n0 + 100)
    assert progress.new_draws == draws == sum(engine.places.values())
    assert len(engine.places) == 2
    assert (progress.new_images, list(progress.left_out)) == (5, ["drive/003"])
    assert progress.draws == draws, "what will never be drawn is not waited for"


def test_workers_that_die_or_hang_change_no_byte(tmp_path):
    images = Images(4)
    manifest = manifest_of(images, sigmas=(0.1,))
    expected = plain_run(tmp_path / "one", images, manifest)
    trouble = tmp_path / "trouble"
    trouble.mkdir()
    (trouble / "kill").touch()
    (trouble / "hang").touch()
    _, engine = run(tmp_path / "two", images, manifest, partial(build, trouble=str(trouble)), timeout=20.0)
    assert list(trouble.iterdir()) == []
    assert engine.hired >= 4
    assert sum(engine.losses.values()) >= 2
    assert hashes(tmp_path / "two") == expected
    assert sum(engine.places.values()) == 4 * 105


def test_an_image_that_costs_too_many_workers_is_left_out(tmp_path, monkeypatch):
    monkeypatch.setattr(worker_pool, "ATTEMPTS", 2)
    images = Images(1)
    manifest = manifest_of(images, sigmas=(0.1,))
    trouble = tmp_path / "trouble"
    trouble.mkdir()
    for number in range(2):
        (trouble / f"kill{number}").touch()
    left_out, _ = run(tmp_path / "run", images, manifest, partial(build, trouble=str(trouble)), draws_per_task=200)
    assert "2 were lost over it" in left_out["drive/000"]
    assert not list((tmp_path / "run").rglob("*.npz"))


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"model_sha256": "0" * 64}, r"weights and preparation of the model .* must be 000000000000\.\.\."),
        ({"versions": {"certiseg": "0.0.1"}}, r"certiseg must be 0\.0\.1 as in the manifest, got .*; install"),
        ({"backend": "onnxruntime"}, "backend must be onnxruntime as in the manifest, got torch"),
        ({"device": "cuda"}, "device must be cuda as in the manifest, got cpu"),
    ],
)
def test_a_worker_that_does_not_fit_the_manifest_is_one_sentence(change, sentence, tmp_path):
    from certiseg.runs.worker import check

    with pytest.raises(cs.InputError, match=sentence):
        check(manifest_of(Images(1), **change), build(0), "process 1")
    check(manifest_of(Images(1)), build(0), "process 1")


def test_other_weights_stop_the_run_before_the_first_draw(tmp_path):
    images = Images(2)
    with pytest.raises(cs.InputError, match="weights and preparation"):
        run(tmp_path, images, manifest_of(images), partial(build, seed=1))
    assert not list(tmp_path.rglob("*.npz"))


def test_a_shard_is_refused_in_another_shards_folder_and_beyond_the_images(tmp_path):
    images = Images(3)
    manifest = manifest_of(images, sigmas=(0.1,))
    evaluate_dataset(RunFolder(tmp_path), manifest, images, build(0), shard=Shard(1, 3))
    assert RunFolder(tmp_path).finished() == ["drive/000"]
    assert not RunFolder(tmp_path).table_path.exists()
    with pytest.raises(cs.InputError, match="must be resumed as the shard that it is, 1/3, got 2/3"):
        evaluate_dataset(RunFolder(tmp_path), manifest, images, build(0), shard=Shard(2, 3))
    with pytest.raises(cs.InputError, match="at most as many shards as images, 3, got 1/4"):
        evaluate_dataset(RunFolder(tmp_path / "more"), manifest, images, build(0), shard=Shard(1, 4))


def test_threads_of_workers_are_those_of_the_manifest(tmp_path):
    images = Images(2)
    manifest = manifest_of(images, sigmas=(0.1,), threads=2)
    run(tmp_path / "two", images, manifest)
    expected = plain_run(tmp_path / "one", images, manifest)
    assert hashes(tmp_path / "two") == expected
    votes = cs.load_votes(RunFolder(tmp_path / "two").votes_path(images.names[0], 0.1))
    assert votes.provenance["threads"] == 2
