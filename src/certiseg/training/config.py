"""All that decides a training run, in one frozen record; the record is stored with every checkpoint."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, dataclass, field, fields
from pathlib import Path
from typing import Any, Literal

from certiseg.errors import InputError
from certiseg.settings import make_plain, require_one_of, stored
from certiseg.training.weather import parse_threats

Rule = tuple[str, Callable[[Any], bool]]
"""What a value must do, in words and as a test."""

SHARE: Rule = ("be in [0, 1]", lambda value: 0 <= value <= 1)
POSITIVE_SHARE: Rule = ("be in (0, 1]", lambda value: 0 < value <= 1)
BELOW_ONE: Rule = ("be in [0, 1)", lambda value: 0 <= value < 1)
AT_LEAST_ONE: Rule = ("be at least 1", lambda value: value >= 1)
NOT_NEGATIVE: Rule = ("not be negative", lambda value: value >= 0)
ANY: Rule = ("", lambda _: True)


def option(
    default: Any,
    group: str,
    help: str,
    rule: Rule = ANY,
    *,
    metavar: str | tuple[str, ...] | None = None,
    decisive: bool = True,
) -> Any:
    """A field; decisive: it changes the result, so that a run cannot be continued with another value."""
    facts = {"help": help, "flag": None, "metavar": metavar, "group": group, "rule": rule, "decisive": decisive}
    return field(default=default, metadata=facts)


@dataclass(frozen=True, kw_only=True)
class TrainConfig:
    """One training run; the help text of `certiseg train` describes each field."""

    dataset: str = option(MISSING, "", "camvid, comma10k, streets, folder, or another one of docs/datasets.md")
    root: str | None = option(None, "run", "folder of the data set; streets need none", metavar="DIR", decisive=False)
    out: str = option(MISSING, "run", "folder of the run, created if missing", metavar="DIR", decisive=False)
    model: str = option(
        "compact", "run", "compact, hrnet-w48, hrnet-w48-ocr or torch:package.module:factory", metavar="SPEC"
    )
    init: str | None = option(None, "run", "start from these weights; tensors that do not fit stay new", metavar="FILE")
    init_rate: float = option(1.0, "run", "share of the learning rate for tensors from --init", POSITIVE_SHARE)
    seed: int = option(0, "run", "everything random follows from it", NOT_NEGATIVE)
    threads: int = option(2, "run", "threads of the network", AT_LEAST_ONE)
    workers: int = option(1, "run", "processes that prepare batches; 0: none", NOT_NEGATIVE, decisive=False)
    resume: bool = option(False, "run", "go on with the run in OUT if there is one", decisive=False)
    progress: bool = option(True, "run", "show a progress bar", decisive=False)
    tensorboard: bool = option(True, "run", "write TensorBoard files", decisive=False)
    half: bool = option(False, "run", "store the kernels of the weight files in 16 bits", decisive=False)

    sigma: float = option(
        0.25,
        "noise",
        "Gaussian noise, in [0, 1] pixel units; also that of validation",
        ("be in [0, 10]", lambda value: 0 <= value <= 10),
    )
    noise: Literal["alternate", "mixed"] = option(
        "alternate", "noise", "alternate: every second batch is noisy (the paper); mixed: a share of each batch"
    )
    noisy_share: float = option(0.5, "noise", "share of noisy images for mixed, so that BatchNorm sees both", SHARE)
    sigma_range: tuple[float, float] | None = option(
        None,
        "noise",
        "noisy images draw their sigma from here (default: all SIGMA)",
        ("be two numbers in [0, 10], the smaller first", lambda value: 0 <= value[0] <= value[1] <= 10),
        metavar=("LOW", "HIGH"),
    )
    threat: str = option(
        "",
        "noise",
        "fog, dark, haze, flat, blur or gamma of random strength, as fog:0.7,blur:3 (default: none)",
        metavar="NAME:SCALE,...",
    )
    threat_share: float = option(0.3, "noise", "share of samples under a threat", SHARE)

    batch_size: int = option(
        8, "samples", "images per step and process", ("be at least 2, for BatchNorm", lambda value: value >= 2)
    )
    also: tuple[str, ...] = option(
        (),
        "samples",
        "mix in the training images of another data set with that share of the draws; its classes are learned where "
        "they have the same name, those of comma10k as sets of CamVid classes; may be repeated",
        metavar="NAME:SHARE[:ROOT]",
    )
    teacher: str | None = option(
        None,
        "samples",
        "weights of this model that settle labels which only name a set, where they are sure of a class in it",
        metavar="FILE",
    )
    even: bool = option(
        False, "samples", "draw every recording equally often, whatever its length; names are RECORDING_anything"
    )
    recolour: float = option(0.0, "samples", "share of samples on their way to the colours of another", SHARE)
    paste: float = option(0.0, "samples", "share of samples with half the classes of another pasted in", SHARE)
    crop: tuple[int, int] = option(
        (256, 336),
        "samples",
        "window that is cut out",
        ("be height and width of at least 32", lambda value: min(value) >= 32),
        metavar=("H", "W"),
    )
    scale: tuple[float, float] = option(
        (0.5, 2.0),
        "samples",
        "range of random scales",
        ("be two positive numbers, the smaller first", lambda value: 0 < value[0] <= value[1]),
        metavar=("LOW", "HIGH"),
    )
    aspect: float = option(1.15, "samples", "largest change of the aspect ratio", AT_LEAST_ONE)
    flip: bool = option(True, "samples", "mirror half of the samples")
    colour: float = option(
        1.0, "samples", "strength of the change of light, 0: none", ("be in [0, 2]", lambda value: 0 <= value <= 2)
    )

    epochs: int = option(30, "optimisation", "how often all is validated and stored", AT_LEAST_ONE)
    stop_after: int | None = option(
        None,
        "optimisation",
        "leave after epoch N; --resume goes on from there",
        AT_LEAST_ONE,
        metavar="N",
        decisive=False,
    )
    steps_per_epoch: int | None = option(
        None, "optimisation", "default: one pass over the images", AT_LEAST_ONE, metavar="N"
    )
    optimizer: Literal["adamw", "sgd"] = option("adamw", "optimisation", "how weights follow their gradients")
    lr: float = option(1e-3, "optimisation", "largest learning rate", ("be positive", lambda value: value > 0))
    weight_decay: float = option(0.01, "optimisation", "not for biases and BatchNorm", NOT_NEGATIVE)
    schedule: Literal["poly", "one-cycle"] = option(
        "poly", "optimisation", "how the rate falls: by (1 - t)^0.9, or along half a cosine"
    )
    warmup: float = option(0.1, "optimisation", "share of the run in which the rate climbs", BELOW_ONE)
    ema: float = option(0.998, "optimisation", "memory of the weight average", BELOW_ONE)
    class_weight_power: float = option(0.0, "optimisation", "weigh classes by frequency^-POWER", SHARE, metavar="POWER")
    bfloat16: bool = option(False, "optimisation", "products in 16 bits: faster where the processor has them")
    ohem: float = option(1.0, "optimisation", "share of hardest pixels in the loss", POSITIVE_SHARE)
    aux_weight: float = option(
        0.4,
        "optimisation",
        "weight of the loss of auxiliary scores, where a network has them",
        NOT_NEGATIVE,
    )
    loss_at: Literal["image", "logits"] = option("image", "optimisation", "resolution of the loss")

    def __post_init__(self) -> None:
        make_plain(self)
        for each in fields(self):
            value, (rule, holds) = getattr(self, each.name), each.metadata["rule"]
            if value is not None and not holds(value):
                raise InputError(f"{each.name} must {rule}, got {value!r}; choose another value")
        require_one_of("noise", self.noise, ("alternate", "mixed"))
        require_one_of("optimizer", self.optimizer, ("adamw", "sgd"))
        require_one_of("schedule", self.schedule, ("poly", "one-cycle"))
        require_one_of("loss_at", self.loss_at, ("image", "logits"))
        parse_threats(self.threat)
        if self.teacher and not self.also:
            raise InputError(f"teacher must have labels to settle, got {self.teacher!r} without --also; add a data set")

    def decisive(self) -> dict[str, Any]:
        """The fields that change the result, as plain values."""
        values = stored(self)
        return {each.name: values[each.name] for each in fields(self) if each.metadata["decisive"]}

    @property
    def folder(self) -> Path:
        """Where checkpoints, curves and weights go."""
        return Path(self.out)
