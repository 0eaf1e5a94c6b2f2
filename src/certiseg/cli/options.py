"""Options that several commands share: the model, the hierarchy, the settings of votes and certificates."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from certiseg.errors import InputError

if TYPE_CHECKING:
    from certiseg.hierarchy import Hierarchy
    from certiseg.models.segmenter import Segmenter


def add_model_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("model")
    group.add_argument("--model", default="compact", metavar="SPEC", help="default: compact; all forms: docs/models.md")
    group.add_argument(
        "--hierarchy",
        metavar="NAME|FILE",
        help="cityscapes, acdc, pascal_context, coco_stuff, camvid or a YAML file (default: the model's own)",
    )
    group.add_argument(
        "--backend",
        choices=["torch", "torch-bfloat16", "onnxruntime", "openvino", "auto"],
        help="export a torch model and certify the exported function; auto: the fastest that keeps 32 bits; "
        "torch-bfloat16: autocast (default: the model's own)",
    )
    group.add_argument(
        "--denoiser",
        action="store_true",
        help="put the denoiser of the package in front of the model; both together are certified",
    )
    add_preparation_options(group)


def add_preparation_options(parser: Any) -> None:
    """What a model file does not say about itself; `verify --model` needs the same values as `certify`."""
    parser.add_argument(
        "--scores",
        choices=["logits", "probabilities", "labels"],
        help="what the model returns (default: as its file says, else logits)",
    )
    parser.add_argument("--mean", type=_numbers, metavar="R,G,B", help="subtracted from the [0, 1] image")
    parser.add_argument("--std", type=_numbers, metavar="R,G,B", help="divides the image afterwards")
    parser.add_argument("--bgr", action="store_true", default=None, help="the model wants blue first")
    parser.add_argument("--align-corners", action="store_true", default=None, help="how scores are up-sampled")
    parser.add_argument("--divisible-by", type=int, metavar="N", help="pad the sides to a multiple, crop the scores")
    parser.add_argument("--input-size", type=_size, metavar="HxW", help="resize the image for the model, scores back")
    parser.add_argument("--window", type=_size, metavar="HxW", help="slide windows of this size over larger images")
    parser.add_argument("--model-output", metavar="NAME", help="which output of the file holds the scores")
    parser.add_argument(
        "--trust-model", action="store_true", help="load TorchScript and torch.export files, which can run code"
    )


def load_model_of(args: argparse.Namespace, *, hierarchy: str | None = None) -> Segmenter:
    """The model of the options, in its own backend."""
    from certiseg.models.load import load_model

    names = ("scores", "mean", "std", "bgr", "align_corners", "divisible_by", "input_size", "window")
    given = {name: getattr(args, name) for name in names} | {"output": args.model_output, "hierarchy": hierarchy}
    given["num_classes"] = getattr(args, "num_classes", None)
    return load_model(args.model, trust=args.trust_model, **{n: v for n, v in given.items() if v is not None})


def add_votes_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("votes")
    group.add_argument("--sigma", type=float, default=0.25, help="noise, in [0, 1] pixel units (default: 0.25)")
    group.add_argument("-n", type=int, default=100, help="estimation draws (default: 100)")
    group.add_argument(
        "--stop-undecided",
        type=float,
        metavar="SHARE",
        help="stop as soon as at most this share of the pixels, say 0.01, is neither certified nor hopeless; -n is "
        "not used then, and the test is anytime",
    )
    group.add_argument("--n-max", type=int, metavar="N", help="most draws with --stop-undecided (default: 1000)")
    group.add_argument("--n0", type=int, default=10, help="selection draws (default: 10)")
    group.add_argument("--seed", type=int, default=0, help="seed of the noise (default: 0)")
    add_batch_options(group)
    group.add_argument("--temperature", type=float, default=1.0, help="divides the logits of the selection draws")
    add_noise_option(group)


def add_batch_options(parser: Any, *, memory: str | None = "4GiB") -> None:
    """memory: within which the batch size is measured by default; None: it is 1 unless the user names a size."""
    alone = "what a short measurement says" if memory else "1, or with --memory what a short measurement says"
    parser.add_argument("--batch-size", type=int, metavar="B", help=f"draws per model call (default: {alone})")
    parser.add_argument(
        "--memory",
        type=_bytes,
        default=memory,
        metavar="SIZE",
        help="what the process may take when the batch size is measured"
        + (f" (default: {memory})" if memory else ", for example 4GiB"),
    )


def settled_batch_size(
    args: argparse.Namespace, model: Segmenter, size: tuple[int, int], recorded: int | None = None
) -> int:
    """Draws per model call: as asked, as recorded by an earlier start, or as measured at this image size."""
    from certiseg.models.batching import measured_batch_size

    if args.batch_size is not None:
        return int(args.batch_size)
    if recorded is not None:
        return recorded
    return 1 if args.memory is None else measured_batch_size(model, size, memory=args.memory)


def settle_stopping(args: argparse.Namespace) -> None:
    """Make -n and --test what --stop-undecided and --n-max ask for."""
    if args.stop_undecided is None:
        if args.n_max is not None:
            raise InputError("--n-max must come with --stop-undecided, got it alone; use -n for a fixed number")
        args.test = args.test or "fixed"
        return
    if not 0 <= args.stop_undecided < 1:
        raise InputError(f"--stop-undecided must lie in [0, 1), got {args.stop_undecided}")
    if args.test == "fixed":
        raise InputError("--test must be anytime with --stop-undecided, got fixed: it allows no looking at the votes")
    args.test, args.n = "anytime", 1000 if args.n_max is None else args.n_max


def add_noise_option(parser: Any) -> None:
    parser.add_argument(
        "--noise",
        choices=["gaussian", "grid"],
        default="gaussian",
        help="grid: rounded to whole grey levels, a promise between 8-bit images without a floating-point gap "
        "(default: gaussian)",
    )


def add_certificate_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("certificate")
    group.add_argument(
        "--method",
        choices=["segcertify", "level", "adaptive", "nested", "sets"],
        default="nested",
        help="how labels are chosen (default: nested)",
    )
    group.add_argument("--tau", type=float, default=0.75, help="vote share to exceed, in [0.5, 1) (default: 0.75)")
    group.add_argument("--alpha", type=float, default=0.001, help="allowed error for the whole image (default: 0.001)")
    group.add_argument(
        "--correction",
        choices=["bonferroni", "holm", "kfwer", "by"],
        default="bonferroni",
        help="how many pixels share alpha (default: bonferroni); kfwer and by promise less, see the printed claim",
    )
    group.add_argument(
        "--kfwer-k", type=int, default=1, metavar="K", help="for kfwer: fewer than K false certifications"
    )
    group.add_argument(
        "--test", choices=["fixed", "anytime"], help="anytime allows early stopping (default: fixed, if -n is)"
    )
    group.add_argument("--level", type=int, help="hierarchy level, for the method level")
    group.add_argument("--max-set", type=int, help="largest label set, for the method sets (default: 5)")
    group.add_argument(
        "--thresholds", type=_numbers, metavar="T,T,T", help="for adaptive, coarsest level first, e.g. 0,0,0.25"
    )


def certificate_settings(args: argparse.Namespace) -> dict[str, Any]:
    """The keyword arguments of `cs.certify` that the options stand for."""
    return {
        "method": args.method,
        "tau": args.tau,
        "alpha": args.alpha,
        "correction": args.correction,
        "k": args.kfwer_k,
        "test": args.test,
        "level": args.level,
        "max_set": args.max_set,
        "thresholds": args.thresholds,
    }


def model_and_hierarchy(
    args: argparse.Namespace, size: tuple[int, int] | None = None
) -> tuple[Segmenter, Hierarchy | None]:
    """The model of the options, in the backend of the options, and the hierarchy: as asked, or the model's own.

    size: height and width of the (first) image; `--backend auto` measures there.
    """
    from certiseg.hierarchy import load_hierarchy

    chosen = load_hierarchy(args.hierarchy) if args.hierarchy else None
    model = load_model_of(args, hierarchy=args.hierarchy)
    if chosen is None and model.hierarchy is not None:
        chosen = load_hierarchy(model.hierarchy)
    if chosen is not None and (model.class_names or model.num_classes):
        chosen.require_classes(model.class_names or model.num_classes or 0)
    if args.backend is not None:
        from certiseg.models.backends import with_backend

        model = with_backend(model, args.backend, size)
        if args.backend == "auto":
            print(f"note: the fastest backend here is {model.backend}", file=sys.stderr)
    if args.denoiser:
        from certiseg.models.denoiser import with_denoiser

        model = with_denoiser(model, sigma=_one_sigma(args.sigma))
    for note in model_notes(model, chosen):
        print(f"note: {note}", file=sys.stderr)
    return model, chosen


def _one_sigma(sigma: float | list[float]) -> float:
    """The noise that the denoiser is told about."""
    sigmas = sigma if isinstance(sigma, list) else [sigma]
    if len(sigmas) != 1:
        raise InputError(f"--sigma must be a single value with --denoiser, got {len(sigmas)}; make one run for each")
    return sigmas[0]


def model_notes(model: Segmenter, hierarchy: Hierarchy | None) -> list[str]:
    """What a reader of the certificate should know about the certified function, in a sentence each."""
    notes = []
    if hierarchy is not None and model.class_names is None:
        first = ", ".join(hierarchy.classes[:3])
        notes.append(
            f"{model.name} does not name its classes; they are taken in the order of {hierarchy.name}: {first}, ..."
        )
    steps = model.prepare.describe()
    if steps:
        notes.append(f"inside the certified function the image is {steps}")
    return notes


def output_folder(path: str | Path) -> Path:
    """The folder to write into, made if it is not there."""
    folder = Path(path)
    if folder.exists() and not folder.is_dir():
        raise InputError(f"--out must be a folder, got the file {str(folder)!r}")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _bytes(text: str) -> int:
    """A size like 4GiB, 500MB or a plain number of bytes."""
    number = text.rstrip("KMGTiB ")
    unit = text[len(number) :].strip()
    powers = {"": 1, "B": 1, **{f"{p}B": 1000**i for i, p in enumerate("KMGT", 1)}}
    powers |= {f"{p}iB": 1024**i for i, p in enumerate("KMGT", 1)}
    try:
        return int(float(number) * powers[unit])
    except (ValueError, KeyError, OverflowError):
        raise argparse.ArgumentTypeError(f"must be a size like 4GiB or 500MB, got {text!r}") from None


def _size(text: str) -> tuple[int, int]:
    try:
        height, width = (int(part) for part in text.lower().split("x"))
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be HEIGHTxWIDTH, got {text!r}") from None
    return height, width


def _numbers(text: str) -> tuple[float, ...]:
    try:
        return tuple(float(part) for part in text.replace("(", "").replace(")", "").split(","))
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be numbers separated by commas, got {text!r}") from None
