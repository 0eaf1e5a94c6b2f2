"""Images that are not 8-bit RGB, from the file to the checked certificate: a microscope's and a satellite's."""

from __future__ import annotations

import io
import json
import shlex
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tifffile
import torch
from numpy.typing import NDArray
from PIL import Image

import certiseg as cs
from certiseg.certify import NothingCertifiable
from certiseg.cli import main
from certiseg.datasets import Dataset, open_dataset
from certiseg.images import open_image
from certiseg.models.choice import given_model
from certiseg.noise import noise_stream, perturbation
from certiseg.runs.folder import RunFolder
from certiseg.runs.prepare import over_classes_of
from certiseg.truth.files import load_calibration
from certiseg.viewer.pictures import Pictures
from certiseg.viewer.run_reader import RunReader

SIZE = (24, 32)
RUN = ("--sigma", "0.1", "-n", "80", "--batch-size", "4", "--method", "segcertify")


def microscope() -> cs.Segmenter:
    """Cells are bright: one channel in, one logit out."""
    network = torch.nn.Conv2d(1, 1, 1)
    network.weight.data[:] = 8.0
    network.bias.data[:] = -4.0
    return cs.Segmenter(network, channels=1, class_names=("ground", "cell"))


def satellite() -> cs.Segmenter:
    """Water, soil or plants by four bands, normalised by as many numbers."""
    network = torch.nn.Conv2d(4, 3, 1, bias=False)
    network.weight.data = torch.tensor([[40.0, 0, 0, 0], [0, 40, 0, 0], [0, 0, 0, 40]])[..., None, None]
    return cs.Segmenter(network, mean=(0.2,) * 4, std=(0.5,) * 4, class_names=("water", "soil", "plants"))


def cells() -> NDArray[np.uint16]:
    rows, columns = np.mgrid[: SIZE[0], : SIZE[1]]
    inside = (rows - 12) ** 2 + (columns - 14) ** 2 < 50
    return np.where(inside, 60_000, 3_000).astype(np.uint16)


def tile() -> NDArray[np.float32]:
    bands = np.full((*SIZE, 4), 500.0, np.float32)
    bands[:, :10, 0] = bands[:, 10:22, 3] = bands[:, 22:, 1] = 8000.0
    return bands


def run(*words: object) -> int:
    return main([str(word) for word in words])


def refused(capsys: pytest.CaptureFixture[str], *words: object) -> str:
    assert run(*words) == 2
    return capsys.readouterr().err


def certified(out: Path, stem: str) -> tuple[dict[str, Any], cs.Certificate]:
    return json.loads((out / f"{stem}.json").read_text()), cs.load_certificate(out / f"{stem}.certificate.npz")


def test_a_sixteen_bit_microscope_image_from_file_to_report(tmp_path, capsys):
    (tmp_path / "images").mkdir()
    tifffile.imwrite(tmp_path / "images" / "cells.tif", cells())
    image, out, model = tmp_path / "images" / "cells.tif", tmp_path / "out", "torch:tests.test_channels:microscope"
    assert run("certify", tmp_path / "images", "--model", model, *RUN, "--out", out) == 0
    told = capsys.readouterr().out
    assert "values 0 to 65535 of the image stand for 0 to 1: sigma is 6553.5, R is 4420" in told
    assert "pictures show channel 1 of 1 as grey" in told
    summary, certificate = certified(out, "cells")
    assert (summary["channels"], summary["values"]) == (1, [[0.0, 65535.0]])
    assert certificate.abstain_rate == 0
    np.testing.assert_array_equal(certificate.vertex, cells() > 30_000)
    assert run("verify", out / "cells.certificate.npz", "--model", model, "--image", image) == 0
    assert run("report", out / "cells.certificate.npz", "--image", image) == 0
    assert "channel 1 of 1 as grey" in (out / "cells.report.html").read_text()

    votes = cs.sample(microscope(), cells(), sigma=0.1, n=80, batch_size=4)
    np.testing.assert_array_equal(votes.counts, certificate.votes.counts)
    assert votes.digest() == certificate.votes.digest()


def test_a_four_band_tile_of_floats_from_file_to_report(tmp_path, capsys):
    image, out, model = tmp_path / "tile.npy", tmp_path / "out", "torch:tests.test_channels:satellite"
    np.save(image, tile())
    words = (image, "--model", model, *RUN, "--out", out)
    assert run("certify", *words) == 2
    assert "--values LOW:HIGH" in capsys.readouterr().err
    assert run("certify", *words, "--values", "0:10000", "--show", "4,3,2") == 0
    told = capsys.readouterr().out
    assert "values 0 to 10000 of each channel stand for 0 to 1: sigma is 1000," in told
    assert "pictures show channels 4, 3, 2 of 4 as red, green and blue" in told
    _, certificate = certified(out, "tile")
    assert {label.text for label in certificate.label_shares() if label.share > 0.2} == {"water", "soil", "plants"}
    assert run("verify", out / "tile.certificate.npz", "--model", model, "--image", image) == 0
    assert run("report", out / "tile.certificate.npz", "--image", image, "--show", "4,3,2") == 0
    np.save(image, tile() + 1)
    assert run("verify", out / "tile.certificate.npz", "--model", model, "--image", image) == 1

    votes = cs.sample(satellite(), tile(), sigma=0.1, n=80, batch_size=4, values=(0, 10_000))
    assert (votes.channels, votes.image_values) == (4, ((0.0, 10_000.0),))
    assert votes.digest() == certificate.votes.digest()


def test_another_range_or_number_of_channels_is_another_digest_and_no_checkpoint(tmp_path):
    asked = {"sigma": 0.1, "n": 5, "n0": 2}
    doubled = cs.sample(satellite(), tile() * 2, values=(0, 20_000), **asked)
    votes = cs.sample(satellite(), tile(), values=(0, 10_000), **asked)
    assert doubled.image_key == votes.image_key, "the same pixels in [0, 1]"
    assert doubled.digest() != votes.digest(), "in other numbers of the file"
    per_channel = cs.sample(satellite(), tile(), values=((0, 10_000),) * 4, **asked)
    with pytest.warns(NothingCertifiable):
        certificate = cs.certify(per_channel, method="sets")
    assert "of channel 4 stand for 0 to 1: sigma is 1000" in certificate.claim()


def test_the_noise_of_each_channel_is_independent():
    pixels = np.zeros((64, 64, 4), np.float32)
    noisy = np.empty_like(pixels)
    stream = noise_stream(seed=0, image_key="tile", stage="estimation")
    drawn = []
    for draw in range(8):
        perturbation(pixels, sigma=0.5, noise="gaussian")(stream, draw, noisy)
        drawn.append(noisy.reshape(-1, 4).copy())
    correlation = np.corrcoef(np.concatenate(drawn).T)
    np.testing.assert_allclose(correlation, np.eye(4), atol=5 / np.sqrt(8 * 64 * 64))
    np.testing.assert_allclose(np.concatenate(drawn).std(axis=0), 0.5, rtol=0.02)


def test_a_single_score_is_a_sigmoid_of_two_classes():
    logits = torch.linspace(-3, 3, 12).reshape(1, 1, 3, 4)
    one = cs.Segmenter(lambda images: logits.expand(len(images), -1, -1, -1))
    np.testing.assert_array_equal(one.predict(np.zeros((3, 4, 3), np.uint8)), (logits[0, 0] > 0).int())
    assert one.num_classes == 2
    sums = np.zeros((3, 4, 2), np.uint32)
    one(torch.zeros(1, 3, 3, 4)).add_posteriors(sums, unit=1 << 20, temperature=1.0)
    np.testing.assert_allclose(sums[..., 1] / (1 << 20), torch.sigmoid(logits)[0, 0], atol=1e-5)
    sure = cs.Segmenter(lambda images: torch.sigmoid(logits).expand(len(images), -1, -1, -1), scores="probabilities")
    np.testing.assert_array_equal(sure.predict(np.zeros((3, 4, 3), np.uint8)), (logits[0, 0] > 0).int())
    with pytest.raises(cs.InputError, match="must return 5 scores per pixel, got 2"):
        one.adjusted(num_classes=5).predict(np.zeros((3, 4, 3), np.uint8))


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("rgb.npy",), "rgb.npy must have 4 channels as the model takes, got 3"),
        (("nan.npy", "--values", "0:1"), "nan.npy must be finite, got NaN"),
        (("tile.npy",), "tile.npy must lie in [0, 1]"),
        (("tile.npy", "--values", "9:1"), "must be LOW:HIGH such as 0:4095"),
        (("tile.npy", "--values", "0:10000", "--noise", "grid"), "--noise must be gaussian for"),
        (("tile.npy", "--values", "0:10000", "--show", "5"), "channels to show must be one or three of 1..4, got 5"),
        (("first.npy", "--values", "0:10000"), "which looks like channels first; permute it"),
        (("nothing*.tif",), "IMAGE must be a file, a folder or a pattern of images"),
    ],
)
def test_bad_images_are_one_sentence_before_any_draw(tmp_path, monkeypatch, capsys, words, told):
    monkeypatch.chdir(tmp_path)
    np.save("rgb.npy", np.zeros((*SIZE, 3), np.uint8))
    np.save("nan.npy", np.full((*SIZE, 4), np.nan, np.float32))
    np.save("tile.npy", tile())
    np.save("first.npy", np.moveaxis(tile(), -1, 0))
    monkeypatch.setattr("certiseg.sampling.draw", lambda *_, **__: pytest.fail("nothing must be drawn"))
    try:
        code = run("certify", *words, "--model", "torch:tests.test_channels:satellite", *RUN, "--out", "out")
    except SystemExit as error:  # argparse's own
        code = error.code
    assert code == 2
    message = capsys.readouterr().err.strip().splitlines()[-1]
    assert told in message
    assert not Path("out").exists()


def test_a_picture_that_was_read_keeps_its_range():
    picture = open_image(tile(), values=(0, 10_000))
    votes = cs.sample(satellite(), picture, sigma=0.1, n=2, n0=1)
    assert votes.image_values == ((0.0, 10_000.0),)
    with pytest.raises(cs.InputError, match="noise must be gaussian for images with values 0:10000, got grid"):
        cs.sample(satellite(), picture, sigma=0.1, n=2, noise="grid")


@pytest.fixture
def tiles(tmp_path: Path) -> Path:
    """A folder of two tiles with their labels."""
    root = tmp_path / "tiles"
    (root / "images").mkdir(parents=True)
    (root / "labels").mkdir()
    (root / "classes.txt").write_text("water\nsoil\nplants\n")
    truth = np.zeros(SIZE, np.uint8)
    truth[:, 10:22], truth[:, 22:] = 2, 1
    for place, name in enumerate("ab"):
        bands = (tile() + place).astype(np.uint16)
        tifffile.imwrite(root / "images" / f"{name}.tif", bands, photometric="minisblack", planarconfig="contig")
        Image.fromarray(truth).save(root / "labels" / f"{name}.png")
    (root / "land.yaml").write_text("name: land\nclasses: [water, soil, plants]\nlevels: {1: {dry: [soil, plants]}}\n")
    return root


@pytest.fixture
def asked(tiles: Path, tmp_path: Path) -> dict[str, Any]:
    """A run over them."""
    words = {"root": tiles, "out": tmp_path / "run", "sigma": 0.1, "setting": "80:0.75", "methods": ("segcertify",)}
    return words | {"hierarchy": str(tiles / "land.yaml"), "values": (0, 10_000), "progress": False}


def test_a_run_of_such_images_is_scored_verified_reported_and_viewed(asked, tiles, tmp_path, capsys):
    out, model = tmp_path / "run", satellite()
    made = cs.evaluate("folder", model=model, **asked)
    assert made.scores()[0]["accuracy"] > 0.99
    folder = RunFolder(out)
    votes = folder.all_votes("a", 0.1)
    assert (votes.channels, votes.image_values) == (4, ((0.0, 10_000.0),))
    assert run("verify", out) == 0
    assert run("report", out, "--root", tiles, "--out", tmp_path / "run.html") == 0
    shown_pixels = np.asarray(Image.open(io.BytesIO(Pictures(RunReader(folder), str(tiles)).png("a"))))
    np.testing.assert_array_equal(shown_pixels, np.rint(tile()[..., :3] / 10_000 * 255).astype(np.uint8))
    with pytest.raises(cs.InputError, match=r"must be resumed with its own settings, got others \(values"):
        cs.evaluate("folder", model=model, **{**asked, "values": (0, 20_000)})


def test_such_images_are_dropped_onto_the_page(asked, tiles, tmp_path):
    pytest.importorskip("starlette", reason="needs certiseg[view]")
    from certiseg.viewer.app import make_app
    from tests.viewer.conftest import Client
    from tests.viewer.test_uploads import drop, follow

    cs.evaluate("folder", model=satellite(), **asked)
    folder, model = RunFolder(tmp_path / "run"), ["--model", "torch:tests.test_channels:satellite"]
    client = Client(make_app(folder, root=str(tiles), load_model=satellite, model_options=model))
    words = {"sigma": 0.1, "n": 80, "tau": 0.75, "method": "segcertify"}
    for name, content in (("new.npy", array_file(tile())), ("new.tif", (tiles / "images" / "a.tif").read_bytes())):
        facts, maps = follow(client, drop(client, content, name, **words).json()["id"])[-1]
        assert facts["state"] == "done", facts["error"]
        assert set(np.unique(maps["vertex"])) >= {0, 1, 2}
        dropped = f"dropped/{facts['name']}"
        choice = client.choice(image=dropped, **words, test="anytime")
        command = shlex.split(client.http.get("/api/recipe", params=choice).json()["command"])
        assert run(*command[1:-1], tmp_path / "again") == 0
        assert run("verify", folder.path / f"{dropped}.certificate.npz", "--image", command[2], *model) == 0
        shown_pixels = client.http.get("/api/picture", params={"image": dropped}).content
        wanted = np.rint(tile()[..., :3] / 10_000 * 255)
        np.testing.assert_array_equal(np.asarray(Image.open(io.BytesIO(shown_pixels))), wanted)
    rgb, nan = array_file(np.zeros((*SIZE, 3), np.uint8)), array_file(np.full((*SIZE, 4), np.nan, np.float32))
    for content, told in ((rgb, "x.npy must have 4 channels"), (nan, "x.npy must be finite, got NaN")):
        assert told in drop(client, content, "x.npy", **words).json()["error"]
    assert "whole or real numbers" in drop(client, array_file(np.full(SIZE, "a")), "x.npy", **words).json()["error"]


def array_file(array: NDArray[Any]) -> bytes:
    written = io.BytesIO()
    np.save(written, array)
    return written.getvalue()


def test_sets_that_hold_the_truth_of_such_images(tiles, tmp_path, capsys):
    words = ("--root", tiles, "--model", "torch:tests.test_channels:satellite", "--sigma", "0.1", "--radius", "0.01")
    file, out, image = tmp_path / "c.json", tmp_path / "out", tiles / "images" / "a.tif"
    assert run("calibrate", "folder", *words, "--risk", "0.4", "--values", "0:10000", "--out", file) == 0
    made = load_calibration(file)
    assert (made.model.channels, made.values) == (4, ((0.0, 10_000.0),))
    certify = ("certify", image, "--model", words[3], "--calibration", file, "--out", out, "--show", "4,3,2")
    assert run(*certify) == 0
    told = capsys.readouterr().out
    assert "values 0 to 10000 of each channel stand for 0 to 1: sigma is 1000, R is 100" in told
    assert run("report", out / "a.truth.npz", "--image", image) == 0
    assert "--values must be as calibrated, 0:10000, or left out, got 0:20000" in refused(
        capsys, *certify, "--values", "0:20000"
    )
    images, labels = [tile(), tile() + 1], [np.zeros(SIZE, np.uint8)] * 2
    again = cs.calibrate(satellite(), images, labels, sigma=0.1, risk=0.4, values=(0, 10_000), seed=1)
    assert again.sets(satellite(), tile(), seed=2).shape == (*SIZE, 3)
    with pytest.raises(cs.InputError, match="must have 4 channels as the model takes, got 3"):
        again.sets(satellite(), np.zeros((*SIZE, 3), np.uint8))
    with pytest.raises(cs.InputError, match="values must be the same for all images, 0:255, got 0:65535 for image 2"):
        cs.calibrate(microscope(), [np.zeros(SIZE, np.uint8), cells()], labels, sigma=0.1, risk=0.4)


def test_training_takes_other_images_and_says_so(tiles, tmp_path, capsys):
    told = refused(capsys, "train", "folder", "--root", tiles, "--out", tmp_path / "trained", "--epochs", "1")
    assert "must be an 8-bit RGB image for training, got uint16 of shape (24, 32, 4)" in told
    assert told.count("\n") == 1


def test_a_run_of_sixteen_bit_images_is_viewed(tmp_path):
    for name, array in (("images", cells()), ("labels", (cells() > 30_000).astype(np.uint8))):
        (tmp_path / "set" / name).mkdir(parents=True)
        Image.fromarray(array).save(tmp_path / "set" / name / "a.png")
    (tmp_path / "set" / "classes.txt").write_text("ground\ncell\n")
    words = {"root": tmp_path / "set", "out": tmp_path / "run", "sigma": 0.1, "setting": "80:0.75", "progress": False}
    tree = cs.flat_hierarchy(("ground", "cell"))
    made = cs.evaluate("folder", model=microscope(), hierarchy=tree, methods=("segcertify",), **words)
    assert made.scores()[0]["accuracy"] > 0.99
    folder = RunFolder(tmp_path / "run")
    assert folder.all_votes("a", 0.1).image_values == ((0.0, 65535.0),)
    shown_pixels = np.asarray(Image.open(io.BytesIO(Pictures(RunReader(folder), str(tmp_path / "set")).png("a"))))
    np.testing.assert_array_equal(shown_pixels, np.rint(cells()[..., None] / 65535 * 255).repeat(3, axis=2))


def test_certificates_of_such_images_are_attacked(tmp_path, capsys):
    small = ("--steps", "2", "--restarts", "1", "--samples", "1", "--judges", "1", "--draws", "40", *RUN)
    tifffile.imwrite(tmp_path / "cells.tif", cells())
    np.save(tmp_path / "tile.npy", tile())
    page = tmp_path / "page.md"
    microscope_model, tile_model = (
        ("--model", f"torch:tests.test_channels:{of}") for of in ("microscope", "satellite")
    )
    assert run("attack", tmp_path / "cells.tif", *microscope_model, *small, "--multiples", "1", "--out", page) == 0
    assert "values 0 to 65535 of the image stand for 0 to 1" in page.read_text()
    words = ("attack", tmp_path / "tile.npy", *tile_model, *small, "--multiples", "1")
    assert "--values LOW:HIGH" in refused(capsys, *words)
    assert run(*words, "--values", "0:10000") == 0
    assert (
        run(
            "attack",
            tmp_path / "cells.tif",
            *microscope_model,
            *RUN,
            "--threat",
            "dark",
            "--scale",
            "0.1",
            "--draws",
            "40",
            "--sweep-steps",
            "1",
            "--beyond",
            "1",
            "--out",
            page,
        )
        == 0
    )
    assert page.with_suffix(".png").is_file()


def test_the_hierarchy_of_the_data_set_is_the_default_and_other_classes_are_refused(tiles):
    network = cs.Segmenter(torch.nn.Conv2d(3, 19, 1), hierarchy="cityscapes", num_classes=19)
    chosen = given_model(network)
    streets = Dataset("acdc", (), classes=cs.load_hierarchy("acdc").classes, hierarchy="acdc")
    assert chosen.hierarchy is not None
    assert chosen.hierarchy.thresholds == (0, 0, 0.25)
    found = over_classes_of(chosen, streets, as_said=False).hierarchy
    assert found is not None
    assert (found.name, found.thresholds) == ("acdc", (0, 0.05, 0.3))
    assert over_classes_of(chosen, streets, as_said=True) is chosen
    with pytest.raises(cs.InputError, match=r"must have the same classes, got 19 of .* and 3 of folder"):
        over_classes_of(chosen, open_dataset("folder", tiles), as_said=False)
    swapped = Dataset("acdc", (), classes=cs.load_hierarchy("acdc").classes[::-1])
    with pytest.raises(cs.InputError, match="the same classes in the same order"):
        over_classes_of(chosen, swapped, as_said=False)


def test_without_any_hierarchy_every_class_stands_for_itself(asked):
    del asked["hierarchy"], asked["methods"]
    run = cs.evaluate("folder", model=satellite(), **asked)
    assert run.manifest.hierarchy["classes"] == ["water", "soil", "plants"]
    assert run.manifest.methods == ("segcertify", "nested", "sets")
    certificate = run.certificate("a")
    assert not certificate.abstained.any()


def test_a_model_that_cannot_take_the_images_is_refused_before_the_first(asked, tmp_path):
    asked["model"] = cs.Segmenter(torch.nn.Conv2d(3, 3, 1), class_names=("water", "soil", "plants"))
    with pytest.raises(cs.InputError, match=r"must accept .* images of shape \(1, 4, 24, 32\).* set channels"):
        cs.evaluate("folder", **asked)
    assert not (tmp_path / "run" / "manifest.json").exists()


class Bands:
    """The satellite's network as a model that several threads may ask at once."""

    reentrant = True

    def __init__(self) -> None:
        self.network, self.asked = satellite().model, set[threading.Thread]()

    def __call__(self, images: torch.Tensor) -> torch.Tensor:
        self.asked.add(threading.current_thread())
        time.sleep(0.002)
        return self.network(images)


def test_a_run_in_lanes_is_the_run_of_one(asked, tmp_path):
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    found = {}
    try:
        for name, threads in (("lanes", None), ("one", 1)):
            model = Bands()
            segmenter = cs.Segmenter(model, class_names=("water", "soil", "plants"), name="bands")
            run = cs.evaluate("folder", model=segmenter, **asked | {"out": tmp_path / name, "threads": threads})
            assert run.manifest.threads == 1
            assert (len(model.asked) > 1) == (name == "lanes")
            found[name] = [run.certificate(image).votes.digest() for image in "ab"]
    finally:
        torch.set_num_threads(before)
    assert found["lanes"] == found["one"]
