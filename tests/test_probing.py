"""The model must be a fixed function of one image: noticed before the first draw, one sentence each."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

import certiseg as cs

IMAGE = np.random.default_rng(0).integers(0, 256, (12, 16, 3), dtype=np.uint8)


class Network(torch.nn.Module):
    """Layers whose answers change in training mode."""

    def __init__(self, *extra: torch.nn.Module) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.layers = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 1), *extra, torch.nn.Conv2d(8, 4, 1))

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return self.layers(images)


def draw(model: object, **options: object) -> cs.Votes:
    return cs.sample(model, IMAGE, sigma=0.1, n0=2, n=4, **options)


def test_a_network_set_back_to_training_is_refused() -> None:
    network = Network(torch.nn.BatchNorm2d(8))
    model = cs.Segmenter(network, num_classes=4)
    assert draw(model).n == 4
    network.train()
    with pytest.raises(cs.InputError, match=r"must be in evaluation mode, got one in training mode; call \.eval\(\)"):
        draw(model)


def test_an_answer_that_depends_on_the_batch_is_refused() -> None:
    def whitened(images: torch.Tensor) -> torch.Tensor:
        return torch.cat([images, -images[:, :1]], 1) + 3 * images.mean()

    with pytest.raises(cs.InputError, match="fixed function of one image, but it answers differently beside other"):
        draw(cs.Segmenter(whitened, num_classes=4), batch_size=4)


def test_a_random_answer_is_refused() -> None:
    def dropping(images: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.dropout(torch.cat([images, images[:, :1]], 1), 0.5, training=True)

    with pytest.raises(cs.InputError, match="but it answers differently the second time"):
        draw(cs.Segmenter(dropping, num_classes=4))


def test_a_callable_that_changed_does_not_go_on_with_a_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("certiseg.sampling._CHECKPOINT_SECONDS", -1.0)

    class Stop(Exception):
        pass

    def stop(_: int) -> None:
        if (tmp_path / "draws.npz").exists():
            raise Stop

    def shifted(by: float) -> cs.Segmenter:
        def answer(images: torch.Tensor) -> torch.Tensor:
            return torch.cat([images, images[:, :1] + by], 1)

        return cs.Segmenter(answer, num_classes=4, name="answer")

    options = {"sigma": 0.1, "n0": 2, "n": 40, "checkpoint": tmp_path / "draws.npz"}
    with pytest.raises(Stop):
        cs.sample(shifted(0.0), IMAGE, progress=stop, **options)
    with pytest.raises(cs.InputError, match="must be of the same image, model and settings"):
        cs.sample(shifted(0.5), IMAGE, **options)
    assert cs.sample(shifted(0.0), IMAGE, **options).n == 40


def test_a_collapsed_model_is_certified_everywhere_and_agrees_nowhere() -> None:
    """Noise pushes every pixel into one class: the certificate is valid, and the agreement tells."""

    def collapsing(images: torch.Tensor) -> torch.Tensor:
        rough = images.sub(images.mean((2, 3), keepdim=True)).abs().mean((1, 2, 3), keepdim=True)
        scores = torch.zeros(len(images), 3, *images.shape[2:])
        scores[:, 0] = torch.where(rough[:, 0] > 0.05, 1.0, -1.0)
        scores[:, 1:] += images[:, :2]
        return scores

    smooth = np.full((10, 10, 3), 0.5, np.float32)
    votes = cs.sample(cs.Segmenter(collapsing, num_classes=3), smooth, sigma=0.25, n=100)
    cert = cs.certify(votes, method="sets")
    assert cert.abstain_rate == 0
    assert cert.agreement is not None
    assert cert.agreement < 0.05


def test_agreement_counts_the_certified_pixels_alone() -> None:
    tree = cs.load_hierarchy("camvid")

    def answer(images: torch.Tensor) -> torch.Tensor:
        return torch.cat([images, images.new_full((len(images), 28, *images.shape[2:]), -9.0)], 1)

    votes = cs.sample(cs.Segmenter(answer, num_classes=31), IMAGE, sigma=0.1, n=100)
    assert votes.prediction is not None
    for method in ("segcertify", "nested", "sets"):
        cert = cs.certify(votes, tree, method=method)
        inside = [
            tree.classes[votes.prediction[row, column]] in leaves_of(cert, tree, row, column)
            for row, column in np.argwhere(cert.vertex != cs.ABSTAIN)
        ]
        assert cert.agreement == pytest.approx(np.mean(inside))


def leaves_of(cert: cs.Certificate, tree: cs.Hierarchy, row: int, column: int) -> set[str]:
    members = [tree.members[tree.id(name)] for name in cert.labels_at(row, column)]
    return {tree.classes[leaf] for mask in members for leaf in np.flatnonzero(mask)}
