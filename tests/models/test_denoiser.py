"""The denoiser: part of the certified function, better than nothing, and safe to load."""

import numpy as np
import pytest
import torch

import certiseg as cs
from certiseg.datasets import open_dataset
from certiseg.images import read_image
from certiseg.models.denoiser import WEIGHTS, Denoiser, load_denoiser


def street(index: int, *, height: int, width: int) -> np.ndarray:
    """Part of a street scene."""
    return open_dataset("streets")[index].image[100 : 100 + height, :width]


def test_shipped_weights_are_small_and_remove_noise():
    assert WEIGHTS.stat().st_size <= 3_000_000
    denoiser = load_denoiser()
    clean = torch.from_numpy(read_image(street(0, height=120, width=160))).permute(2, 0, 1)[None]
    noise = torch.randn(clean.shape, generator=torch.Generator().manual_seed(0))
    for sigma in (0.1, 0.25, 0.5):
        with torch.inference_mode():
            error = (denoiser(clean + sigma * noise, sigma) - clean).square().mean().sqrt()
        assert error < 0.5 * sigma


@pytest.mark.parametrize("size", [(8, 8), (37, 53), (64, 96)])
def test_any_size_keeps_its_size(size):
    assert Denoiser(width=8)(torch.rand(2, 3, *size), 0.1).shape == (2, 3, *size)


def test_sigma_may_differ_within_a_batch():
    network = Denoiser(width=8)
    images = torch.rand(2, 3, 16, 16)
    together = network(images, torch.tensor([0.1, 0.4]))
    assert torch.allclose(together[0], network(images[:1], 0.1)[0], atol=1e-6)
    assert torch.allclose(together[1], network(images[1:], 0.4)[0], atol=1e-6)


def test_denoiser_and_model_are_certified_together_and_verified_together(tmp_path):
    torch.manual_seed(0)
    model = cs.Segmenter(torch.nn.Conv2d(3, 5, 3, padding=1))
    image = street(1, height=64, width=64)
    seen = model.denoised(sigma=0.25)
    votes = cs.sample(seen, image, sigma=0.25, n=70)
    bare = cs.sample(model, image, sigma=0.25, n=70)
    assert votes.digest() != bare.digest()
    assert votes.provenance["model_sha256"] != bare.provenance["model_sha256"]
    cs.certify(votes, method="sets").save(tmp_path / "c.npz")
    assert cs.verify(tmp_path / "c.npz", model=model.denoised(sigma=0.25), image=image).passed
    assert not cs.verify(tmp_path / "c.npz", model=model.denoised(sigma=0.1), image=image).passed
    assert cs.verify(tmp_path / "c.npz", model=model, image=image).passed  # the certificate says that it was there
    bare_certificate = cs.certify(bare, method="sets")
    bare_certificate.save(tmp_path / "bare.npz")
    assert not cs.verify(tmp_path / "bare.npz", model=model.denoised(sigma=0.25), image=image).passed


def test_agreement_under_noise_grows_with_the_denoiser():
    """A model that only looks at brightness keeps its clean answer more often behind the denoiser."""
    model = cs.Segmenter(lambda images: torch.cat([images.mean(1, True), 1 - images.mean(1, True)], 1) * 9)
    image = street(2, height=96, width=96)
    clean = model.predict(image).astype(int)
    kept = []
    for seen in (model, model.denoised(sigma=0.25)):
        counts = cs.sample(seen, image, sigma=0.25, n=20).counts
        kept.append(np.take_along_axis(counts, clean[..., None], axis=-1).mean() / 20)
    assert kept[1] > kept[0] + 0.05


def test_bad_weights_are_one_sentence(tmp_path):
    (tmp_path / "odd.safetensors").write_bytes(b"no weights")
    for path in (tmp_path / "odd.safetensors", tmp_path / "none.safetensors"):
        with pytest.raises(cs.InputError, match=path.name):
            load_denoiser(path)
    with pytest.raises(cs.InputError, match="sigma"):
        cs.Segmenter(torch.nn.Conv2d(3, 5, 1)).denoised(sigma=0)
    assert np.isfinite(load_denoiser().enter.weight.detach().numpy()).all()
