"""Training under noise: `train(config)` runs to the end, or goes on where a killed run stopped, with the same result.

All randomness is a function of (seed, step), so a checkpoint needs no generator state: weights, optimizer, average
and the number of epochs done are the whole state of a run.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from tqdm import tqdm

from certiseg.datasets import open_training_pair
from certiseg.datasets.base import Dataset, Sample
from certiseg.engines.device import limited_threads
from certiseg.errors import InputError
from certiseg.training.augment import Augmentation
from certiseg.training.batches import Plan, prefetch, read_all
from certiseg.training.checkpoint import load_checkpoint, save_checkpoint, save_weights, start_from
from certiseg.training.config import TrainConfig
from certiseg.training.curves import Board, draw_curves, write_csv
from certiseg.training.distributed import Process, join_processes
from certiseg.training.ema import Average
from certiseg.training.losses import class_weights, segmentation_loss
from certiseg.training.mixture import open_mixture
from certiseg.training.network import build_network, check_outputs
from certiseg.training.schedule import learning_rate_share
from certiseg.training.validate import validate

CHECKPOINT, CURVES, BEST, LAST = "checkpoint.pt", "curves.csv", "best.safetensors", "last.safetensors"


@dataclass
class Run:
    """The state of a run: what a checkpoint stores, and what is rebuilt from the config."""

    config: TrainConfig
    process: Process
    classes: tuple[str, ...]
    plan: Plan
    held_out: list[Sample]
    network: nn.Module
    optimizer: torch.optim.Optimizer
    average: Average
    weights: Tensor | None
    sets: Sequence[tuple[int, ...]] = ()
    epoch: int = 0
    rows: list[dict[str, float]] = field(default_factory=list)

    @property
    def steps_per_epoch(self) -> int:
        """One pass over the images unless the config says otherwise."""
        per_step = self.config.batch_size * self.process.world
        return self.config.steps_per_epoch or max(1, len(self.plan.samples) // per_step)


def train(config: TrainConfig, data: tuple[Dataset, Dataset] | None = None) -> list[dict[str, float]]:
    """Train, validate after every epoch, and return the rows of the curves.

    Writes to config.out: checkpoint.pt, curves.csv, figures, best.safetensors (the average with the highest mean of
    clean and noisy pixel accuracy on the validation images) and last.safetensors.
    """
    with join_processes() as process, limited_threads(config.threads):
        run = _prepare(config, data or open_training_pair(config.dataset, config.root), process)
        if config.resume:
            _restore(run)
        wanted = config.tensorboard and process.first
        board = Board(config.folder / "tensorboard", wanted=wanted, first_step=run.epoch * run.steps_per_epoch)
        trained = process.wrap(run.network)
        while run.epoch < min(config.epochs, config.stop_after or config.epochs):
            _one_epoch(run, trained, board)
        board.close()
        return run.rows


def _prepare(config: TrainConfig, data: tuple[Dataset, Dataset], process: Process) -> Run:
    if not config.resume and (config.folder / CHECKPOINT).exists():
        raise InputError(f"out must be a folder without a run, got {config.out}; add --resume to go on with it")
    train_set, val_set = data
    samples, held_out = read_all(train_set), read_all(val_set)
    mixture = open_mixture(config.also, classes=train_set.classes)
    torch.manual_seed(config.seed)
    network = build_network(config.model, num_classes=len(train_set.classes))
    if config.init:
        fitted, fresh = start_from(network, config.init)
        _say(process, f"{fitted} tensors from {config.init}; new: {', '.join(fresh) or 'none'}")
    smallest = min((sample.image.shape[:2] for sample in held_out), key=min)
    check_outputs(network, num_classes=len(train_set.classes), size=smallest)
    config.folder.mkdir(parents=True, exist_ok=True)
    augmentation = Augmentation(config.crop, config.scale, config.aspect, config.flip, config.colour)
    plan = Plan(
        samples,
        augmentation,
        config.batch_size,
        config.seed,
        config.sigma,
        noise=config.noise,
        noisy_share=config.noisy_share,
        rank=process.rank,
        world=process.world,
        beside=mixture.kinds,
        even=config.even,
        paste=config.paste,
    )
    return Run(
        config=config,
        process=process,
        classes=train_set.classes,
        plan=plan,
        held_out=held_out,
        network=network,
        optimizer=_optimizer(config, network),
        average=Average(network, decay=config.ema),
        weights=class_weights(samples, num_classes=len(train_set.classes), power=config.class_weight_power),
        sets=mixture.sets,
    )


def _optimizer(config: TrainConfig, network: nn.Module) -> torch.optim.Optimizer:
    # Biases and BatchNorm are not decayed.
    groups = [
        {"params": [p for p in network.parameters() if p.ndim > 1], "weight_decay": config.weight_decay},
        {"params": [p for p in network.parameters() if p.ndim <= 1], "weight_decay": 0.0},
    ]
    if config.optimizer == "adamw":
        return torch.optim.AdamW(groups, lr=config.lr)
    return torch.optim.SGD(groups, lr=config.lr, momentum=0.9, nesterov=True)


def _one_epoch(run: Run, trained: nn.Module, board: Board) -> None:
    started = time.monotonic()
    loss, rate = _train_steps(run, trained)
    run.epoch += 1
    row: dict[str, float] = {"epoch": run.epoch, "step": run.epoch * run.steps_per_epoch, "learning_rate": rate}
    row["train_loss"] = run.process.mean(loss)
    run.process.share(run.average.network)
    for kind, sigma in (("clean", 0.0), ("noisy", run.config.sigma)):
        scores = validate(
            run.average.network,
            run.held_out,
            num_classes=len(run.classes),
            sigma=sigma,
            seed=run.config.seed,
            rank=run.process.rank,
            world=run.process.world,
        )
        row |= {f"{kind}_{name}": value for name, value in asdict(scores).items()}
    row["seconds"] = round(time.monotonic() - started, 2)
    run.rows.append(row)
    if run.process.first:
        _record(run, board)
    run.process.wait()


def _train_steps(run: Run, trained: nn.Module) -> tuple[float, float]:
    """The steps of one epoch; returns the mean loss and the last learning rate."""
    config, count = run.config, run.steps_per_epoch
    first, total = run.epoch * count, config.epochs * count
    trained.train()
    losses = torch.zeros((), dtype=torch.float64)
    rate = config.lr
    shown = config.progress and run.process.first
    batches = prefetch(run.plan, first, first + count)
    bar = tqdm(batches, f"epoch {run.epoch + 1}/{config.epochs}", count, disable=not shown, mininterval=1)
    for step, batch in enumerate(bar, first):
        rate = config.lr * learning_rate_share(step, total, schedule=config.schedule, warmup=config.warmup)
        for group in run.optimizer.param_groups:
            group["lr"] = rate
        torch.manual_seed(_step_seed(config.seed, step, run.process.rank))  # dropout
        logits = trained(batch.images)
        loss = segmentation_loss(
            logits, batch.labels, weights=run.weights, ohem=config.ohem, at=config.loss_at, sets=run.sets
        )
        run.optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(run.network.parameters(), 5.0)
        run.optimizer.step()
        run.average.update(run.network, step)
        losses += loss.detach()
        if step % 10 == 0:
            bar.set_postfix(loss=f"{loss.item():.3f}")
    return float(losses) / count, rate


def _step_seed(seed: int, step: int, rank: int) -> int:
    return (seed * 1_000_003 + step * 1009 + rank) % 2**63


def _record(run: Run, board: Board) -> None:
    """Write the checkpoint last but for pictures: what a resume reads is then always complete."""
    folder, row = run.config.folder, run.rows[-1]
    facts: dict[str, Any] = {"epoch": run.epoch, "config": run.config.decisive(), "scores": row}
    half = run.config.half
    save_weights(folder / LAST, run.average.network, classes=run.classes, half=half, **facts)
    if _merit(row) >= max(_merit(earlier) for earlier in run.rows):
        save_weights(folder / BEST, run.average.network, classes=run.classes, half=half, **facts)
    state = {
        "config": json.dumps(run.config.decisive()),
        "world": run.process.world,
        "epoch": run.epoch,
        "rows": run.rows,
        "network": run.network.state_dict(),
        "average": run.average.network.state_dict(),
        "optimizer": run.optimizer.state_dict(),
    }
    save_checkpoint(folder / CHECKPOINT, state)
    write_csv(folder / CURVES, run.rows)
    draw_curves(run.rows, folder)
    board.add(row)
    _say(
        run.process,
        f"epoch {run.epoch}/{run.config.epochs}: train loss {row['train_loss']:.3f}; pixel accuracy clean "
        f"{row['clean_pixel_accuracy']:.4f}, noisy {row['noisy_pixel_accuracy']:.4f}; mIoU clean "
        f"{row['clean_miou']:.4f}, noisy {row['noisy_miou']:.4f}; {row['seconds']:.0f} s",
    )


def _merit(row: dict[str, float]) -> float:
    return row["clean_pixel_accuracy"] + row["noisy_pixel_accuracy"]


def _restore(run: Run) -> None:
    path = run.config.folder / CHECKPOINT
    if not path.exists():
        return
    state = load_checkpoint(path)
    stored = json.loads(state["config"]) | {"world": state["world"]}
    wanted = run.config.decisive() | {"world": run.process.world}
    differing = sorted(name for name in wanted if stored.get(name) != wanted[name])
    if differing:
        name = differing[0]
        raise InputError(
            f"{name} must be that of the run in {run.config.out}, {stored.get(name)!r}, got {wanted[name]!r}; "
            "give the same value or another --out"
        )
    run.network.load_state_dict(state["network"])
    run.average.network.load_state_dict(state["average"])
    run.optimizer.load_state_dict(state["optimizer"])
    run.epoch, run.rows = state["epoch"], state["rows"]
    _say(run.process, f"resumed after epoch {run.epoch}")


def _say(process: Process, text: str) -> None:
    if process.first:
        tqdm.write(text, file=sys.stderr)
