"""All that decides a training run, in one frozen record; the record is stored with every checkpoint."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path

from certiseg.errors import InputError

NOISE_MODES = ("alternate", "mixed")
SCHEDULES = ("poly", "one-cycle")
OPTIMIZERS = ("adamw", "sgd")
# May differ between a run and its continuation: they say where and how fast, never what is computed.
PLACE = ("out", "root", "resume", "progress", "tensorboard", "half", "stop_after")


@dataclass(frozen=True, kw_only=True)
class TrainConfig:
    """One training run. sigma is in [0, 1] pixel units.

    noise: "alternate" as in the paper, every second batch noisy; "mixed", in every batch a share `noisy_share` of the
    images is noisy, so BatchNorm sees both kinds in each batch. also: other data sets to mix in, NAME:SHARE[:ROOT].
    even: recordings are drawn equally often. paste: share of the samples with classes of another pasted in.
    """

    dataset: str
    root: str | None
    out: str
    model: str = "compact"
    init: str | None = None
    also: tuple[str, ...] = ()
    even: bool = False
    paste: float = 0.0
    sigma: float = 0.25
    noise: str = "alternate"
    noisy_share: float = 0.5
    epochs: int = 30
    steps_per_epoch: int | None = None
    batch_size: int = 8
    crop: tuple[int, int] = (256, 336)
    scale: tuple[float, float] = (0.5, 2.0)
    aspect: float = 1.15
    flip: bool = True
    colour: float = 1.0
    optimizer: str = "adamw"
    lr: float = 1e-3
    weight_decay: float = 0.01
    schedule: str = "poly"
    warmup: float = 0.1
    ema: float = 0.998
    class_weight_power: float = 0.0
    ohem: float = 1.0
    loss_at: str = "image"
    seed: int = 0
    threads: int = 2
    resume: bool = False
    progress: bool = True
    tensorboard: bool = True
    half: bool = False
    stop_after: int | None = None

    def __post_init__(self) -> None:
        for name, (rule, holds) in _rules(self).items():
            if not holds:
                raise InputError(f"{name} must {rule}, got {getattr(self, name)!r}; choose another value")

    def decisive(self) -> dict[str, object]:
        """The fields that change the result, as plain values."""
        values = dataclasses.asdict(self)
        return {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in values.items()
            if name not in PLACE
        }

    @property
    def folder(self) -> Path:
        """Where checkpoints, curves and weights go."""
        return Path(self.out)


def _rules(config: TrainConfig) -> dict[str, tuple[str, bool]]:
    """Each field's rule in words and whether it holds."""
    low, high = config.scale
    return {
        "sigma": ("be in [0, 10]", 0 <= config.sigma <= 10),
        "noise": (f"be one of {', '.join(NOISE_MODES)}", config.noise in NOISE_MODES),
        "noisy_share": ("be in [0, 1]", 0 <= config.noisy_share <= 1),
        "paste": ("be in [0, 1]", 0 <= config.paste <= 1),
        "epochs": ("be at least 1", config.epochs >= 1),
        "stop_after": ("be at least 1", config.stop_after is None or config.stop_after >= 1),
        "steps_per_epoch": ("be at least 1", config.steps_per_epoch is None or config.steps_per_epoch >= 1),
        "batch_size": ("be at least 2, for BatchNorm", config.batch_size >= 2),
        "crop": ("be height and width of at least 32", min(config.crop) >= 32),
        "scale": ("be two positive numbers, the smaller first", 0 < low <= high),
        "aspect": ("be at least 1", config.aspect >= 1),
        "colour": ("be in [0, 2]", 0 <= config.colour <= 2),
        "optimizer": (f"be one of {', '.join(OPTIMIZERS)}", config.optimizer in OPTIMIZERS),
        "lr": ("be positive", config.lr > 0),
        "weight_decay": ("not be negative", config.weight_decay >= 0),
        "schedule": (f"be one of {', '.join(SCHEDULES)}", config.schedule in SCHEDULES),
        "warmup": ("be in [0, 1)", 0 <= config.warmup < 1),
        "ema": ("be in [0, 1)", 0 <= config.ema < 1),
        "class_weight_power": ("be in [0, 1]", 0 <= config.class_weight_power <= 1),
        "ohem": ("be in (0, 1]", 0 < config.ohem <= 1),
        "loss_at": ("be image or logits", config.loss_at in ("image", "logits")),
        "seed": ("not be negative", config.seed >= 0),
        "threads": ("be at least 1", config.threads >= 1),
    }
