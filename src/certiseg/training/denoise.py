"""Training of the denoiser: python -m certiseg.training.denoise --images FOLDER... --out WEIGHTS.

Random crops of real images, noise of random strength, mean squared error. Every step's crops and noise are a function
of (seed, step); a run that was stopped goes on from its last checkpoint.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from tqdm import tqdm

from certiseg.errors import InputError
from certiseg.images import read_pixels
from certiseg.models.denoiser import Denoiser
from certiseg.training.checkpoint import load_checkpoint, save_checkpoint, save_weights

SIGMAS = (0.02, 0.55)


def read_folders(folders: Sequence[str]) -> list[np.ndarray]:
    """All images of the folders, as uint8."""
    paths = sorted(p for f in folders for p in Path(f).glob("*") if p.suffix.lower() in (".jpg", ".jpeg", ".png"))
    if not paths:
        raise InputError(f"--images must be folders with .jpg or .png files, got none in {', '.join(folders)}")
    return [read_pixels(path) for path in tqdm(paths, desc="images", disable=None)]


def make_batch(
    images: Sequence[np.ndarray], *, size: int, batch: int, seed: int, step: int
) -> tuple[torch.Tensor, ...]:
    """Clean crops, their noisy versions and the sigmas: a function of (seed, step)."""
    rng = np.random.Generator(np.random.Philox(key=[seed, step]))
    crops = np.empty((batch, size, size, 3), np.float32)
    for row in range(batch):
        image = images[int(rng.integers(len(images)))]
        top, left = (rng.integers(side - size + 1) for side in image.shape[:2])
        crop = image[top : top + size, left : left + size]
        crops[row] = crop[:, :: -1 if rng.random() < 0.5 else 1] / np.float32(255)
    sigma = rng.uniform(*SIGMAS, batch).astype(np.float32)
    noisy = crops + sigma[:, None, None, None] * rng.standard_normal(crops.shape, np.float32)
    clean, noisy_tensor = (torch.from_numpy(a).permute(0, 3, 1, 2) for a in (crops, noisy))
    return clean, noisy_tensor, torch.from_numpy(sigma)


def train_denoiser(
    images: Sequence[np.ndarray],
    *,
    out: Path,
    steps: int,
    size: int = 80,
    batch: int = 8,
    lr: float = 2e-3,
    seed: int = 0,
) -> float:
    """Train, keep a checkpoint beside `out`, write the weights; returns the mean loss of the last hundred steps."""
    torch.manual_seed(seed)
    network = Denoiser()
    optimizer = torch.optim.AdamW(network.parameters(), lr=lr, weight_decay=1e-4)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, lr, total_steps=steps, pct_start=0.1)
    checkpoint, first, losses = out.with_suffix(".checkpoint.pt"), 0, [0.0]
    if checkpoint.exists():
        state = load_checkpoint(checkpoint)
        network.load_state_dict(state["network"])
        optimizer.load_state_dict(state["optimizer"])
        schedule.load_state_dict(state["schedule"])
        first, losses = state["step"], state["losses"]
    for step in tqdm(range(first, steps), initial=first, total=steps, desc="denoiser", disable=None):
        clean, noisy, sigma = make_batch(images, size=size, batch=batch, seed=seed, step=step)
        # Weighted so that every sigma counts alike.
        loss = (((network(noisy, sigma) - clean) / sigma.reshape(-1, 1, 1, 1)) ** 2).mean()
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        losses = [*losses[-99:], loss.item()]
        if (step + 1) % 250 == 0 or step + 1 == steps:
            state = {
                "network": network.state_dict(),
                "optimizer": optimizer.state_dict(),
                "schedule": schedule.state_dict(),
            }
            save_checkpoint(checkpoint, {**state, "step": step + 1, "losses": losses})
            tqdm.write(f"step {step + 1}: loss {np.mean(losses):.5f}")
    save_weights(out, network, classes=(), half=False, steps=steps, seed=seed)
    return float(np.mean(losses))


def main(arguments: Sequence[str] | None = None) -> int:
    """Train the denoiser as the arguments say."""
    parser = argparse.ArgumentParser(prog="python -m certiseg.training.denoise", description=__doc__)
    parser.add_argument("--images", nargs="+", required=True, metavar="FOLDER", help="folders of .jpg or .png files")
    parser.add_argument("--out", type=Path, required=True, help="the safetensors file to write")
    parser.add_argument("--steps", type=int, default=3000, help="default: 3000")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args(arguments)
    torch.set_num_threads(args.threads)
    loss = train_denoiser(read_folders(args.images), out=args.out, steps=args.steps, seed=args.seed)
    print(f"final loss {loss:.5f} (mean squared error over sigma^2)")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
