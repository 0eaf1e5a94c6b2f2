"""Training under noise: `train(config)` runs to the end, or goes on where a killed run stopped, with the same result.

All randomness is a function of (seed, step), so a checkpoint needs no generator state: weights, optimizer, average
and the number of epochs done are the whole state of a run.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from itertools import islice
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim.lr_scheduler import LRScheduler
from torch.optim.swa_utils import AveragedModel
from tqdm import tqdm

from certiseg.datasets import open_training_pair
from certiseg.datasets.base import Dataset, Sample
from certiseg.errors import InputError
from certiseg.models.device import limited_threads
from certiseg.models.outputs import tensor_of
from certiseg.models.weight_files import load_weights, read_notes
from certiseg.training.batches import Batch, BatchPlan, load_batches, read_all
from certiseg.training.checkpoint import load_checkpoint, save_checkpoint, save_weights, start_from
from certiseg.training.config import TrainConfig
from certiseg.training.curves import Board, draw_curves, write_csv
from certiseg.training.distributed import Process, join_processes
from certiseg.training.losses import class_weights, segmentation_loss
from certiseg.training.mixture import open_mixture, settled
from certiseg.training.network import build_network, check_outputs
from certiseg.training.optimisation import average_of, make_optimizer, make_schedule
from certiseg.training.precision import prepare_bfloat16
from certiseg.training.validate import validate

CHECKPOINT, CURVES, BEST, LAST = "checkpoint.pt", "curves.csv", "best.safetensors", "last.safetensors"


@dataclass
class TrainingRun:
    """The state of a run: what a checkpoint stores, and what is rebuilt from the config."""

    config: TrainConfig
    process: Process
    classes: tuple[str, ...]
    plan: BatchPlan
    held_out: list[Sample]
    network: nn.Module
    optimizer: torch.optim.Optimizer
    schedule: LRScheduler
    average: AveragedModel
    weights: Tensor | None
    sets: Sequence[tuple[int, ...]] = ()
    epoch: int = 0
    rows: list[dict[str, float]] = field(default_factory=list)


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
        board = Board(config.folder / "tensorboard", wanted=wanted, first_step=run.epoch * run.plan.steps_per_epoch)
        trained = process.wrap(run.network)
        last = min(config.epochs, config.stop_after or config.epochs)
        first_step, last_step = (epoch * run.plan.steps_per_epoch for epoch in (run.epoch, last))
        batches = load_batches(run.plan, first_step, last_step, workers=config.workers)
        while run.epoch < last:
            _one_epoch(run, trained, batches, board)
        board.close()
        return run.rows


def _prepare(config: TrainConfig, data: tuple[Dataset, Dataset], process: Process) -> TrainingRun:
    if not config.resume and (config.folder / CHECKPOINT).exists():
        raise InputError(f"out must be a folder without a run, got {config.out}; add --resume to go on with it")
    train_set, val_set = data
    samples, held_out = read_all(train_set), read_all(val_set)
    mixture = open_mixture(config.also, classes=train_set.classes)
    if config.teacher:
        mixture = settled(mixture, _teacher(config, train_set.classes), progress=config.progress and process.first)
    torch.manual_seed(config.seed)
    network = build_network(config.model, num_classes=len(train_set.classes))
    fresh = [name for name, _ in network.named_parameters()]
    if config.init:
        fitted, fresh = start_from(network, config.init)
        _say(process, f"{fitted} tensors from {config.init}; new: {', '.join(fresh) or 'none'}")
    if config.bfloat16:
        prepare_bfloat16(network)
    smallest = min((sample.image.shape[:2] for sample in held_out), key=min)
    check_outputs(network, num_classes=len(train_set.classes), size=smallest)
    config.folder.mkdir(parents=True, exist_ok=True)
    plan = BatchPlan(config, samples, mixture.others, rank=process.rank, world=process.world)
    optimizer = make_optimizer(config, network, fresh=fresh)
    steps = config.epochs * plan.steps_per_epoch
    return TrainingRun(
        config=config,
        process=process,
        classes=train_set.classes,
        plan=plan,
        held_out=held_out,
        network=network,
        optimizer=optimizer,
        schedule=make_schedule(config, optimizer, steps=steps),
        average=average_of(network, decay=config.ema),
        weights=class_weights(samples, num_classes=len(train_set.classes), power=config.class_weight_power),
        sets=mixture.sets,
    )


def _teacher(config: TrainConfig, classes: tuple[str, ...]) -> nn.Module:
    assert config.teacher
    teacher = build_network(config.model, num_classes=len(classes))
    load_weights(teacher, config.teacher)
    named = read_notes(config.teacher).get("classes")
    if named is not None and json.loads(named) != list(classes):
        raise InputError(f"teacher must know the classes of {config.dataset} in their order, got others; give another")
    return teacher.eval()


def _one_epoch(run: TrainingRun, trained: nn.Module, batches: Iterator[Batch], board: Board) -> None:
    started = time.monotonic()
    loss, rate = _train_steps(run, trained, islice(batches, run.plan.steps_per_epoch))
    run.epoch += 1
    row: dict[str, float] = {"epoch": run.epoch, "step": run.epoch * run.plan.steps_per_epoch, "learning_rate": rate}
    row["train_loss"] = run.process.mean(loss)
    run.process.share(run.average.module)
    for kind, sigma in (("clean", 0.0), ("noisy", run.config.sigma)):
        scores = validate(
            run.average.module,
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


def _train_steps(run: TrainingRun, trained: nn.Module, batches: Iterable[Batch]) -> tuple[float, float]:
    """The steps of one epoch; returns the mean loss and the last learning rate."""
    config, count = run.config, run.plan.steps_per_epoch
    trained.train()
    losses = torch.zeros((), dtype=torch.float64)
    rate = config.lr
    shown = config.progress and run.process.first
    bar = tqdm(batches, f"epoch {run.epoch + 1}/{config.epochs}", count, disable=not shown, mininterval=1)
    for step, batch in enumerate(bar, run.epoch * count):
        rate = float(run.schedule.get_last_lr()[0])
        torch.manual_seed(_step_seed(config.seed, step, run.process.rank))  # dropout
        with torch.autocast("cpu", torch.bfloat16, enabled=config.bfloat16):
            outputs = trained(batch.images)
        loss = _loss(run, outputs, batch.labels)
        run.optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(run.network.parameters(), 5.0)
        run.optimizer.step()
        run.schedule.step()
        run.average.update_parameters(run.network)
        losses += loss.detach()
        if step % 10 == 0:
            bar.set_postfix(loss=f"{loss.item():.3f}")
    return float(losses) / count, rate


def _loss(run: TrainingRun, outputs: Tensor | Mapping[str, Tensor], labels: Tensor) -> Tensor:
    """The loss of the scores and, where the network gives auxiliary ones, their loss with its weight."""
    config = run.config

    def loss_of(scores: Tensor) -> Tensor:
        return segmentation_loss(
            scores.float(), labels, weights=run.weights, ohem=config.ohem, at=config.loss_at, sets=run.sets
        )

    auxiliary = outputs.get("aux") if isinstance(outputs, Mapping) else None
    loss = loss_of(tensor_of(outputs))
    return loss if auxiliary is None else loss + config.aux_weight * loss_of(auxiliary)


def _step_seed(seed: int, step: int, rank: int) -> int:
    return (seed * 1_000_003 + step * 1009 + rank) % 2**63


def _record(run: TrainingRun, board: Board) -> None:
    """Write the checkpoint last but for pictures: what a resume reads is then always complete."""
    folder, row = run.config.folder, run.rows[-1]
    facts: dict[str, Any] = {"epoch": run.epoch, "config": run.config.decisive(), "scores": row}
    facts["trained_size"] = run.plan.image_size
    half = run.config.half
    save_weights(folder / LAST, run.average.module, classes=run.classes, half=half, **facts)
    if _merit(row) >= max(_merit(earlier) for earlier in run.rows):
        save_weights(folder / BEST, run.average.module, classes=run.classes, half=half, **facts)
    state = {
        "config": json.dumps(run.config.decisive()),
        "world": run.process.world,
        "epoch": run.epoch,
        "rows": run.rows,
        "network": run.network.state_dict(),
        "average": run.average.module.state_dict(),
        "averaged": int(run.average.n_averaged),
        "optimizer": run.optimizer.state_dict(),
        "schedule": run.schedule.state_dict(),
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


def _restore(run: TrainingRun) -> None:
    path = run.config.folder / CHECKPOINT
    if not path.exists():
        return
    state = load_checkpoint(path)
    usual = {each.name: each.default for each in fields(TrainConfig)}  # of options that the run did not know yet
    stored = usual | json.loads(state["config"]) | {"world": state["world"]}
    wanted = run.config.decisive() | {"world": run.process.world}
    differing = sorted(name for name in wanted if stored.get(name) != wanted[name])
    if differing:
        name = differing[0]
        raise InputError(
            f"{name} must be that of the run in {run.config.out}, {stored.get(name)!r}, got {wanted[name]!r}; "
            "give the same value or another --out"
        )
    run.network.load_state_dict(state["network"])
    run.average.module.load_state_dict(state["average"])
    run.average.n_averaged.fill_(state["averaged"])
    run.optimizer.load_state_dict(state["optimizer"])
    run.schedule.load_state_dict(state["schedule"])
    run.epoch, run.rows = state["epoch"], state["rows"]
    _say(run.process, f"resumed after epoch {run.epoch}")


def _say(process: Process, text: str) -> None:
    if process.first:
        tqdm.write(text, file=sys.stderr)
