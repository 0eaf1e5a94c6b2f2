"""Nothing is accepted silently: what each of many tampered run folders is caught by."""

import shutil
from collections import Counter

import pytest

import certiseg as cs
from certiseg.runs.evaluate import evaluate_dataset
from certiseg.runs.folder import RunFolder
from certiseg.runs.manifest import KIND
from certiseg.runs.merge import merge_runs
from certiseg.runs.sealed import write_sealed
from certiseg.runs.verify import repair_run, verify_run
from certiseg.settings import stored
from tests.runs.small import build, hashes
from tests.runs.tampering import IMAGES, Case, cases, caught_by, make_runs, manifest, tamper

CASES = cases()
FOUND: dict[Case, list[str]] = {}


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    made = make_runs(tmp_path_factory.mktemp("runs"))
    yield made
    tally = Counter(who for whos in FOUND.values() for who in whos)
    print(f"\n{len(FOUND)} tampered folders, caught by: {dict(tally)}")


@pytest.fixture(scope="module")
def expected(runs):
    """The bytes of the run, which nothing is wrong with."""
    assert verify_run(runs["own"]).passed
    return hashes(runs["own"].path)


@pytest.fixture
def copied(runs, tmp_path):
    """A copy of the run to do something to."""
    return RunFolder(shutil.copytree(runs["own"].path, tmp_path / "run"))


def resume(folder):
    """Start the run again with its own settings."""
    evaluate_dataset(RunFolder(folder.path), manifest(), IMAGES, build(0))


def test_there_are_many_cases():
    assert len(CASES) >= 60
    assert len(set(CASES)) == len(CASES)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_tampered_run_is_noticed_by_verify_and_by_a_start(case, runs, expected, tmp_path):
    folder = tmp_path / "run"
    tamper(case, runs, folder)
    assert hashes(folder) != expected
    FOUND[case] = caught_by(folder, expected)
    assert "verify" in FOUND[case]
    assert any(who.startswith("start") for who in FOUND[case])
    if "/" in case.file or case.file == "manifest.json":
        assert {"merge", "read"} & set(FOUND[case]), "nobody must use it unseen"


@pytest.mark.parametrize("case", [case for case in CASES if case.file.startswith(("votes/", "rows/"))], ids=str)
def test_repair_sets_a_damaged_image_back_and_a_resume_draws_the_same_bytes(case, runs, expected, tmp_path):
    folder = RunFolder(tmp_path / "run")
    tamper(case, runs, folder.path)
    damaged = IMAGES.names["drive__001" in case.file]
    found = verify_run(folder)
    set_back = repair_run(folder, found)
    assert set_back == ([] if found.unfinished else [damaged])
    assert verify_run(RunFolder(folder.path)).unfinished == (damaged,)
    resume(folder)
    assert hashes(folder.path) == expected
    assert verify_run(RunFolder(folder.path)).passed


def test_repair_refuses_to_remove_the_images_of_another_manifest(runs, tmp_path):
    folder = RunFolder(tmp_path / "run")
    tamper(Case("manifest.json", "swap run"), runs, folder.path)
    before = hashes(folder.path)
    with pytest.raises(cs.InputError, match=r"must have its own manifest\.json to be repaired"):
        repair_run(folder, verify_run(folder))
    assert hashes(folder.path) == before


def reseal(folder, **change):
    """Change the manifest and seal it again, as somebody would who knows how."""
    write_sealed(folder.manifest_path, KIND, stored(folder.manifest) | change)


@pytest.mark.parametrize(
    "change",
    [
        {"alpha": 1e-9},
        {"settings": [[60, 0.9]]},
        {"seed": 1},
        {"threat": {"name": "dark", "scale": 0.5}, "up_to": 0.5},
        {"n0": 9},
        {"model_sha256": "0" * 64},
        {"correction": "holm", "methods": ["segcertify", "nested"]},
        {"images": ["drive/000", "drive/001"], "keys": [], "label_keys": []},
        {"methods": ["sets:2", "segcertify"]},
    ],
    ids=str,
)
def test_a_manifest_that_was_changed_and_sealed_again_is_not_believed(change, copied, tmp_path):
    reseal(copied, **change)
    with pytest.raises(cs.InputError, match="must belong to this run"):
        cs.open_run(copied.path).scores()
    with pytest.raises(cs.InputError, match="must belong to this run"):
        merge_runs([RunFolder(copied.path)], RunFolder(tmp_path / "joined"))
    assert not verify_run(RunFolder(copied.path)).passed
    with pytest.raises(cs.InputError, match="must be resumed with its own settings"):
        resume(copied)


@pytest.mark.parametrize("alpha", [float("nan"), 0.0, 1.0, 2.0, -1.0, "0.01", None])
def test_a_manifest_whose_alpha_is_no_probability_is_refused_by_everybody(alpha, copied, tmp_path):
    reseal(copied, alpha=alpha)
    for use in (cs.open_run, lambda path: verify_run(RunFolder(path)), lambda path: resume(RunFolder(path))):
        with pytest.raises(cs.InputError, match=r"manifest\.json"):
            use(copied.path)
    with pytest.raises(cs.InputError, match=r"manifest\.json"):
        merge_runs([RunFolder(copied.path)], RunFolder(tmp_path / "joined"))


@pytest.mark.parametrize("field", ["keys", "label_keys"])
def test_the_keys_of_two_images_exchanged_in_the_manifest_are_noticed(field, copied):
    first, second, third = getattr(copied.manifest, field)
    reseal(copied, **{field: (second, first, third)})
    assert not verify_run(RunFolder(copied.path)).passed
    with pytest.raises(cs.InputError, match="must be resumed with its own images"):
        resume(copied)


def test_all_files_of_one_image_under_the_name_of_another_are_noticed(copied):
    first, second = IMAGES.names[:2]
    for source, target in zip(copied.files_of(first), copied.files_of(second), strict=True):
        shutil.copyfile(source, target)
    assert {problem.image for problem in verify_run(copied).problems} == {second}
    with pytest.raises(cs.InputError, match="its image is drive/000, not drive/001"):
        resume(copied)


def test_all_images_of_another_run_are_noticed(runs, copied):
    for name in IMAGES.names[:2]:
        for source, target in zip(runs["seed"].files_of(name), copied.files_of(name), strict=True):
            shutil.copyfile(source, target)
    assert not verify_run(copied).passed
    with pytest.raises(cs.InputError, match="must belong to this run and image, but its run is"):
        resume(copied)


def test_files_that_belong_to_no_image_are_named_and_removed_by_repair(copied, expected):
    (copied.path / "votes/stray.npz").write_bytes(b"?")
    found = verify_run(copied)
    assert ["stray.npz" in problem.what for problem in found.problems] == [True]
    assert repair_run(copied, found) == []
    assert hashes(copied.path) == expected
