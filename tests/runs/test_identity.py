"""A start goes on only with what belongs to the run: settings, images, votes and partial votes."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import certiseg as cs
from certiseg.images import read_image
from certiseg.partial_votes import DrawRange
from certiseg.runs.evaluate import evaluate_dataset
from certiseg.runs.folder import RunFolder
from certiseg.runs.names import file_name
from certiseg.runs.settings import Setting
from certiseg.sampling import draw, start
from tests.runs.small import Images, build, hashes, manifest_of
from tests.runs.test_evaluate import HIERARCHY

SMALL = {"sigmas": (0.1,), "settings": ((60, 0.75),), "methods": ("segcertify", "sets:2")}


def run(folder, images=None, model=None, **changes):
    """An evaluation of two images."""
    images = images or Images(2)
    manifest = manifest_of(images, **(SMALL | changes))
    evaluate_dataset(RunFolder(folder), manifest, images, model or build(0))


@pytest.fixture
def finished(tmp_path):
    run(tmp_path / "run")
    return RunFolder(tmp_path / "run")


@pytest.mark.parametrize(
    "change",
    [{"alpha": 0.05}, {"seed": 3}, {"n0": 6}, {"temperature": 2.0}, {"noise": "grid"}, {"methods": ("segcertify",)}],
    ids=str,
)
def test_without_its_manifest_a_run_goes_on_only_with_its_own_settings(change, finished):
    before = hashes(finished.path)
    finished.manifest_path.unlink()
    with pytest.raises(cs.InputError, match=r"must have its manifest\.json, which is missing"):
        run(finished.path, **change)
    assert not finished.manifest_path.exists()
    run(finished.path)
    assert hashes(finished.path) == before


def test_without_its_manifest_a_run_goes_on_only_with_its_own_model(finished):
    finished.manifest_path.unlink()
    other = build(0, seed=1)
    with pytest.raises(cs.InputError, match="its run is"):
        run(finished.path, model=other, model_sha256=other.fingerprint())


def test_a_folder_of_other_images_without_a_manifest_is_refused(finished):
    finished.manifest_path.unlink()
    images = Images(2)
    images.names = ("elsewhere/0", "elsewhere/1")
    with pytest.raises(cs.InputError, match="must belong to an image of the run"):
        run(finished.path, images)


class Replaced(Images):
    """The same names, but another image or another label."""

    def __init__(self, count, what):
        super().__init__(count)
        self.what = what

    def __getitem__(self, index):
        sample = super().__getitem__(index)
        if index == 1:
            changed = getattr(sample, self.what).copy()
            changed[5, 5] ^= 1
            return type(sample)(**(vars(sample) | {self.what: changed}))
        return sample


@pytest.mark.parametrize("what", ["image", "label"])
def test_images_and_labels_that_were_replaced_between_two_starts_are_named(what, finished):
    words = {"image": "pixels", "label": "labels"}[what]
    with pytest.raises(cs.InputError, match=rf"got other {words} for 1 of them \('drive/001'\)"):
        run(finished.path, Replaced(2, what))


def test_an_image_that_could_not_be_read_is_drawn_when_it_can_be(tmp_path):
    run(tmp_path / "once", Images(2, broken=1))
    assert list(RunFolder(tmp_path / "once").left_out()) == ["drive/001"]
    run(tmp_path / "once")
    run(tmp_path / "plain")
    assert hashes(tmp_path / "once") == hashes(tmp_path / "plain")


def test_an_image_that_fails_in_the_middle_leaves_no_file(tmp_path):
    class Failing(Images):
        def __getitem__(self, index):
            sample = super().__getitem__(index)
            if index == 1 and self.reading > 1:
                raise cs.InputError("drive/001: must be readable, got half of it")
            self.reading += index == 1
            return sample

    images = Failing(2)
    images.reading = 0
    run(tmp_path / "run")
    folder = RunFolder(tmp_path / "run")
    folder.rows_path("drive/001").unlink()
    assert folder.votes_path("drive/001", 0.1).is_file()
    images.reading = 1
    run(tmp_path / "run", images)
    assert list(RunFolder(tmp_path / "run").left_out()) == ["drive/001"]
    assert [path for path in folder.files_of("drive/001") if path.exists()] == []


def unfinished(folder, name):
    """Take the rows away, so that the votes of the image are all that is left of it."""
    for path in folder.files_of(name):
        if path.parent.name != "votes":
            path.unlink()


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"seed": 7}, "seed is 7, not 0"),
        ({"n0": 6}, "n0 is 6, not 5"),
        ({"settings": ((60, 0.75), (70, 0.75))}, "snapshots"),
        ({"temperature": 2.0}, "temperature is 2.0"),
        ({"noise": "grid"}, "noise is grid"),
        ({"batch_size": 2}, "batch_size is 2"),
        ("image", "image_key is"),
        ("model", "model_sha256 is"),
    ],
    ids=str,
)
def test_votes_of_another_image_seed_model_or_setting_are_refused(change, word, finished, tmp_path):
    name, other = finished.manifest.images[0], tmp_path / "other"
    if change == "model":
        model = build(0, seed=1)
        run(other, model=model, model_sha256=model.fingerprint())
    elif isinstance(change, dict):
        run(other, **change)
    source = finished.manifest.images[1] if change == "image" else name
    lender = finished if change == "image" else RunFolder(other)
    content = lender.votes_path(source, 0.1).read_bytes()
    unfinished(finished, name)
    finished.votes_path(name, 0.1).write_bytes(content)
    with pytest.raises(cs.InputError, match=word):
        run(finished.path)


@pytest.mark.parametrize("what", ["right", "seed", "image", "model", "flip", "truncate"])
def test_partial_votes_are_used_only_where_they_belong(what, finished, tmp_path):
    before, images = hashes(finished.path), Images(2)
    name = images.names[0]
    for path in finished.files_of(name):
        path.unlink()
    settings = manifest_of(images, **(SMALL | ({"seed": 7} if what == "seed" else {}))).sampling(0.1)
    model, pixels = build(0, seed=int(what == "model")), read_image(images[int(what == "image")].image)
    partial = start(model, pixels, settings)
    draw(model, pixels, partial, "estimation", DrawRange(0.1, "estimation", 0, 40).draws)
    partial.model["threads"] = 1
    path = finished.save_part(name, partial)
    if what in ("flip", "truncate"):
        content = bytearray(path.read_bytes())
        content[len(content) // 2] ^= 1
        path.write_bytes(content if what == "flip" else content[:-9])
    if what == "right":
        run(finished.path)
        assert hashes(finished.path) == before
        return
    with pytest.raises(cs.InputError, match=r"sets such images back"):
        run(finished.path)


NAMES = st.text(st.sampled_from("ab_/\\.%=:* A\u00e9"), min_size=1, max_size=7)


@given(NAMES, NAMES)
@example("a/b", "a__b")
@example("a_/b", "a/_b")
@example("a\\b", "a__b")
@example("a=5F", "a_")
@example("x" * 300, "x" * 299 + "y")
def test_no_two_names_give_the_same_file(first, second):
    assert (file_name(first) == file_name(second)) == (first == second)
    assert len(file_name(first).encode()) <= 200
    assert not set(file_name(first)) & set('/\\:*?"<>|')
    assert not file_name(first).startswith(".")


@given(st.floats(0.001, 10), st.floats(0.001, 10), st.floats(0.5, 0.99), st.floats(0.5, 0.99))
@example(0.1, 0.1000001, 0.75, 0.7500001)
def test_no_two_settings_give_the_same_file(sigma, other_sigma, tau, other_tau):
    folder = RunFolder("run", manifest_of(Images(1)))
    same = folder.votes_path("a", sigma) == folder.votes_path("a", other_sigma)
    assert same == (sigma == other_sigma)
    first, second = Setting(sigma, 60, tau), Setting(other_sigma, 60, other_tau)
    same = folder.certificate_path("a", first, "nested") == folder.certificate_path("a", second, "nested")
    assert same == (first == second)


def test_close_settings_and_confusable_names_live_side_by_side_in_one_run(tmp_path):
    images = Images(2)
    images.names = ("a/b", "a__b")
    settings = {"sigmas": (0.1, 0.1000001), "settings": ((60, 0.75), (60, 0.7500001)), "methods": ("segcertify",)}
    run(tmp_path, images, **settings)
    folder = RunFolder(tmp_path)
    assert folder.finished() == ["a/b", "a__b"]
    for name in images.names:
        for setting in folder.manifest.each_setting():
            certificate = folder.certificate(name, setting, "segcertify")
            assert (certificate.settings.tau, certificate.votes.sigma) == (setting.tau, setting.sigma)
    assert len(list((tmp_path / "certificates").iterdir())) == 8


def test_what_the_manifest_says_about_drawing_and_certifying_is_done(tmp_path):
    asked = {"noise": "grid", "temperature": 1.5, "correction": "kfwer", "k": 3, "test": "anytime", "seed": 4}
    run(tmp_path, methods=("segcertify",), **asked)
    folder = RunFolder(tmp_path)
    setting = folder.manifest.each_setting()[0]
    certificate = folder.certificate(folder.finished()[0], setting, "segcertify")
    votes = cs.sample(build(0), Images(2)[0].image, sigma=0.1, n0=5, n=60, seed=4, temperature=1.5, noise="grid")
    again = cs.certify(
        votes, HIERARCHY, method="segcertify", tau=0.75, alpha=0.01, correction="kfwer", k=3, test="anytime"
    )
    assert certificate.settings == again.settings
    assert np.array_equal(certificate.vertex, again.vertex)
    assert np.array_equal(certificate.votes.gap, votes.gap)
    assert (certificate.votes.noise, certificate.votes.provenance["temperature"]) == ("grid", 1.5)
