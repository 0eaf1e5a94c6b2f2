"""Backends: the exported function is the torch one, is recorded, and is used again by verify."""

from __future__ import annotations

import copy
import pickle
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import certiseg as cs
from certiseg.models import backends
from certiseg.models.backends import export_onnx, fastest, with_backend
from certiseg.models.compact import compact
from tests.models.tiny import (
    NAMES,
    SIZE,
    Labels,
    TinyNet,
    assert_certifies,
    assert_same_function,
    noisy_batch,
    onnx_file,
    picture,
    tiny_hierarchy,
)

RUNTIMES = ["onnxruntime", "openvino"]


def tiny(**settings: Any) -> cs.Segmenter:
    return cs.Segmenter(TinyNet(), class_names=NAMES, name="tiny", **settings)


@pytest.mark.parametrize("backend", RUNTIMES)
def test_same_function_at_every_size(backend: str) -> None:
    original = tiny(mean=(0.5, 0.4, 0.3), divisible_by=8)
    moved = with_backend(original, backend, SIZE)
    assert (moved.backend, original.backend) == (backend, "torch")
    assert moved.class_names == NAMES
    assert_same_function(moved, original)
    assert_same_function(moved, original, (19, 43))


@pytest.mark.parametrize("backend", RUNTIMES)
def test_the_compact_network(backend: str) -> None:
    torch.manual_seed(0)
    original = cs.Segmenter(compact())
    assert_same_function(with_backend(original, backend, (45, 61)), original, (45, 61))


@pytest.mark.parametrize("backend", RUNTIMES)
def test_verify_exports_again_and_agrees_bit_for_bit(backend: str, tmp_path: Path) -> None:
    certificate = assert_certifies(with_backend(tiny(), backend), tmp_path, again=tiny())
    provenance = certificate.votes.provenance
    assert provenance["backend"] == backend
    again = cs.load_certificate(tmp_path / "tiny.certificate.npz")
    assert again.votes.provenance["backend"] == backend


def test_verify_takes_the_recorded_threads(tmp_path: Path) -> None:
    moved = with_backend(tiny(), "onnxruntime")
    torch.set_num_threads(2)
    try:
        votes = cs.sample(moved, picture(), sigma=0.1, n0=3, n=60, threads=2)
    finally:
        torch.set_num_threads(1)
    assert votes.provenance["threads"] == 2
    cs.certify(votes, tiny_hierarchy()).save(tmp_path / "two.npz")
    outcome = cs.verify(tmp_path / "two.npz", model=moved, image=picture())
    assert outcome.passed, outcome.checks[-1]
    exported: Any = moved.model
    assert [model._threads for model in exported._by_size.values()] == [2]


def test_verify_goes_back_to_torch(tmp_path: Path) -> None:
    assert_certifies(tiny(), tmp_path, again=with_backend(tiny(), "onnxruntime"))


@pytest.mark.parametrize("backend", RUNTIMES)
def test_batches_change_nothing(backend: str) -> None:
    moved, image = with_backend(tiny(), backend), np.zeros((*SIZE, 3), np.uint8) + 100
    votes = [cs.sample(moved, image, sigma=0.25, n0=3, n=7, batch_size=b) for b in (1, 4)]
    assert votes[0].digest() == votes[1].digest()
    assert np.array_equal(votes[0].counts, cs.sample(moved, image, sigma=0.25, n0=3, n=7).counts)


def test_fingerprint_is_of_the_weights_and_the_backend() -> None:
    prints = {backend: with_backend(tiny(), backend).fingerprint() for backend in RUNTIMES}
    assert prints == {backend: with_backend(tiny(), backend, SIZE).fingerprint() for backend in RUNTIMES}
    prints["torch"] = tiny().fingerprint()
    assert len(set(prints.values())) == 3
    other = cs.Segmenter(TinyNet(seed=1), class_names=NAMES)
    assert with_backend(other, "openvino").fingerprint() != prints["openvino"]
    assert with_backend(with_backend(tiny(), "openvino"), "torch").fingerprint() == prints["torch"]


def test_bfloat16_is_computed_only_if_asked_and_recorded(tmp_path: Path) -> None:
    half, image = with_backend(tiny(), "torch-bfloat16"), np.zeros((*SIZE, 3), np.uint8) + 100
    images = torch.rand(1, 3, *SIZE)
    exact, rounded = tiny()(images).values, half(images).values
    assert rounded.dtype == torch.float32
    assert 0 < float((exact - rounded).abs().max()) < 0.05 * float(exact.abs().max())
    votes = cs.sample(half, image, sigma=0.25, n0=3, n=7)
    assert votes.provenance["backend"] == "torch-bfloat16"
    assert half.fingerprint() != tiny().fingerprint()
    assert with_backend(half, "torch").fingerprint() == tiny().fingerprint()
    assert "torch-bfloat16" not in backends.available_backends(tiny())
    assert_certifies(half, tmp_path, again=tiny())


def test_auto_takes_the_fastest(monkeypatch: pytest.MonkeyPatch) -> None:
    times = {"torch": 3.0, "onnxruntime": 2.0, "openvino": 1.0}
    monkeypatch.setattr(backends, "least_seconds", lambda segmenter, images, passes: times[segmenter.backend])
    assert with_backend(tiny(), "auto", SIZE).backend == "openvino"
    times["torch"] = 0.5
    assert with_backend(tiny(), "auto", SIZE).backend == "torch"


def test_auto_measures() -> None:
    assert fastest(tiny(), SIZE, passes=1).backend in ("torch", *RUNTIMES)


def test_auto_passes_over_what_cannot_be_exported() -> None:
    class Stubborn(nn.Module):
        def forward(self, images: torch.Tensor) -> torch.Tensor:
            return torch.from_numpy(np.stack([images[:, 0].numpy(), -images[:, 0].numpy()], 1))

    stubborn = cs.Segmenter(Stubborn())
    assert with_backend(stubborn, "auto", SIZE).backend == "torch"
    with pytest.raises(cs.InputError):
        with_backend(stubborn, "onnxruntime", SIZE)


def test_a_trace_that_froze_a_decision_is_refused() -> None:
    class Deciding(nn.Module):
        def forward(self, images: torch.Tensor) -> torch.Tensor:
            brightest = float(images[0, 0, 0, 0])
            return torch.stack([images[:, 0], images[:, 1] * 0 + brightest], 1)

    with pytest.raises(cs.InputError, match="must compute the module's scores, but they differ"):
        with_backend(cs.Segmenter(Deciding()), "onnxruntime", SIZE)


def test_an_export_that_differs_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backends, "onnx_of", lambda module, image, name: _other(image))
    with pytest.raises(cs.InputError, match="must compute the module's scores, but they differ by"):
        with_backend(tiny(), "onnxruntime", SIZE)


def _other(image: torch.Tensor) -> bytes:
    from certiseg.models.export import onnx_of

    return onnx_of(TinyNet(seed=5).eval(), image, "other")


def test_modules_that_return_labels_or_mappings() -> None:
    class Mapped(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.network = TinyNet()

        def forward(self, images: torch.Tensor) -> dict[str, torch.Tensor]:
            return {"aux": images, "out": self.network(images)}

    assert_same_function(with_backend(cs.Segmenter(Mapped()), "onnxruntime"), tiny())
    labels = cs.Segmenter(Labels(TinyNet()), scores="labels", num_classes=5, integer_input=True)
    for backend in RUNTIMES:
        assert_same_function(with_backend(labels, backend), labels)


def test_what_stands_in_front_stays_in_front() -> None:
    from certiseg.models.denoiser import Denoiser, Denoising

    torch.manual_seed(0)
    denoised = tiny().adjusted(denoising=Denoising(Denoiser(width=4).eval(), 0.25))
    moved = with_backend(denoised, "onnxruntime", SIZE)
    assert (moved.backend, denoised.backend) == ("onnxruntime", "torch")
    assert_same_function(moved, denoised)
    assert moved.fingerprint() != denoised.fingerprint()
    assert denoised.adjusted(std=(0.5, 0.5, 0.5)).settings.std == (0.5, 0.5, 0.5)


def test_windows_run_in_the_backend() -> None:
    original = tiny(window=(16, 16))
    assert_same_function(with_backend(original, "onnxruntime"), original)


def test_onnx_files_run_in_openvino(tmp_path: Path) -> None:
    file = str(onnx_file(tmp_path / "m.onnx", TinyNet(), torch.rand(1, 3, *SIZE)))
    loaded = cs.load_model(file, std=(0.5, 0.5, 0.5))
    moved = with_backend(loaded, "openvino", SIZE)
    assert moved.settings.std == (0.5, 0.5, 0.5)
    assert_same_function(moved, loaded)
    assert_certifies(moved, tmp_path, again=loaded)


@pytest.mark.parametrize(
    "model, backend, message",
    [
        (tiny(), "tensorrt", "backend must be one of torch, torch-bfloat16, onnxruntime, openvino, auto"),
        (cs.Segmenter(lambda x: x), "openvino", "only torch modules can be exported"),
        (cs.load_model("synthetic"), "onnxruntime", "backend must be torch for synthetic"),
        (cs.Segmenter(TinyNet(), arrays="numpy"), "onnxruntime", "takes numpy arrays"),
    ],
)
def test_what_cannot_be_moved(model: cs.Segmenter, backend: str, message: str) -> None:
    with pytest.raises(cs.InputError, match=message):
        with_backend(model, backend)


@pytest.mark.parametrize("backend, extra", [("onnxruntime", "onnx"), ("openvino", "openvino")])
def test_missing_library(monkeypatch: pytest.MonkeyPatch, backend: str, extra: str) -> None:
    monkeypatch.setitem(sys.modules, backend, None)
    with pytest.raises(cs.InputError, match=rf"certiseg\[{extra}\]"):
        with_backend(tiny(), backend)


@pytest.mark.parametrize("backend", RUNTIMES)
def test_workers_can_be_sent_a_moved_model(backend: str) -> None:
    moved = with_backend(tiny(), backend, SIZE)
    images = noisy_batch()
    for twin in (pickle.loads(pickle.dumps(moved)), copy.deepcopy(moved)):
        assert torch.equal(twin(images).values, moved(images).values)


def test_exported_file_carries_its_preparation(tmp_path: Path) -> None:
    original = cs.Segmenter(
        TinyNet(31),
        class_names=cs.load_hierarchy("camvid").classes,
        hierarchy="camvid",
        mean=(0.1, 0.2, 0.3),
        std=(0.5, 0.6, 0.7),
        align_corners=True,
        divisible_by=8,
    )
    export_onnx(original, tmp_path / "m.onnx")
    loaded = cs.load_model(str(tmp_path / "m.onnx"))
    assert (loaded.class_names, loaded.hierarchy) == (original.class_names, "camvid")
    assert {**loaded.preparation(), "backend": "torch"} == original.preparation()
    assert_same_function(loaded, original, (21, 35))
    with pytest.raises(cs.InputError, match="must be a torch module to be exported"):
        export_onnx(loaded, tmp_path / "again.onnx")


def test_exported_file_of_a_fixed_size(tmp_path: Path) -> None:
    original = tiny(input_size=(16, 24), resize="antialiased")
    export_onnx(original, tmp_path / "m.onnx")
    loaded = cs.load_model(str(tmp_path / "m.onnx"))
    assert {**loaded.preparation(), "backend": "torch"} == original.preparation()
    assert_same_function(loaded, original, (40, 40))


def test_newer_exporter_where_tracing_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    from certiseg.models import export

    def refuse(*arguments: Any) -> bytes:
        raise RuntimeError("gone")

    monkeypatch.setattr(export, "_traced", refuse)
    original = tiny()
    assert_same_function(with_backend(original, "onnxruntime"), original)


def test_backend_through_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: Any) -> None:
    import json

    from PIL import Image

    from certiseg.cli import main

    (tmp_path / "small_net.py").write_text(
        "import certiseg as cs\nfrom tests.models.tiny import TinyNet\n\n\ndef build():\n"
        "    return cs.Segmenter(TinyNet(31), class_names=cs.load_hierarchy('camvid').classes, hierarchy='camvid')\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    Image.fromarray(picture()).save(tmp_path / "a.png")
    image, out, spec = str(tmp_path / "a.png"), str(tmp_path / "out"), "torch:small_net:build"
    numbers = ["-n", "60", "--n0", "4", "--sigma", "0.1", "--out", out, "--json"]
    assert main(["certify", image, "--model", spec, "--backend", "openvino", *numbers]) == 0
    summary = json.loads(capsys.readouterr().out)[0]
    assert summary["model"]["backend"] == "openvino"
    assert main(["verify", f"{out}/a.certificate.npz", "--model", spec, "--image", image]) == 0
    assert main(["certify", image, "--model", "synthetic", "--backend", "openvino", *numbers]) == 2
