"""certiseg evaluate: certify a data set and score it; resumable."""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import sys
import time
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

from certiseg.cli.options import (
    add_batch_options,
    add_model_options,
    add_noise_option,
    model_and_hierarchy,
    settled_batch_size,
)
from certiseg.errors import InputError

if TYPE_CHECKING:
    from certiseg.datasets.base import Dataset
    from certiseg.engines.drive import Engine
    from certiseg.runs.evaluate import Shard
    from certiseg.runs.folder import RunFolder
    from certiseg.runs.manifest import Manifest


def add_parser(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "evaluate",
        help="certify a data set, resumable, and score it",
        description="Certifies every image of a data set with every method from one sampling pass per sigma and keeps "
        "votes, certificates and a table in a run folder. Started again with the same settings it goes on where it "
        "stopped; with others it refuses. Exit code 1 if some images had to be left out.",
        epilog="example: certiseg evaluate camvid --root ../shared/data/camvid --sigma 0.25 --setting 100:0.75 "
        "--first 20 --out runs/camvid",
    )
    parser.add_argument("dataset", metavar="DATASET", help="name of a data set; see docs/datasets.md")
    parser.add_argument("--root", metavar="DIR", help="where the data set lies (not needed for streets)")
    parser.add_argument("--split", help="part of the data set (default: the one that is usually reported)")
    parser.add_argument("--first", type=int, metavar="N", help="only the first N images")
    parser.add_argument("--every", type=int, default=1, metavar="K", help="only every K-th image (default: 1)")
    parser.add_argument("--out", required=True, metavar="RUN", help="the run folder")
    parser.add_argument("--sigma", type=float, nargs="+", default=[0.25], help="noise levels (default: 0.25)")
    parser.add_argument(
        "--setting", nargs="+", default=["100:0.75"], metavar="N:TAU", help="pairs of n and tau (default: 100:0.75)"
    )
    parser.add_argument(
        "--methods",
        nargs="+",
        metavar="METHOD",
        help="segcertify, level:L, adaptive[:T,T,T], nested, sets[:M] (default: all of them)",
    )
    parser.add_argument("--alpha", type=float, default=0.001, help="allowed error (default: 0.001)")
    parser.add_argument(
        "--family", choices=["image", "dataset"], default="image", help="what alpha covers (default: each image)"
    )
    parser.add_argument("--correction", choices=["bonferroni", "holm", "kfwer", "by"], default="bonferroni")
    parser.add_argument("--kfwer-k", type=int, default=1, metavar="K", help="for kfwer: fewer than K false ones")
    parser.add_argument("--test", choices=["fixed", "anytime"], default="fixed")
    parser.add_argument("--n0", type=int, default=10, help="selection draws (default: 10)")
    parser.add_argument("--seed", type=int, default=0, help="seed of the noise (default: 0)")
    add_batch_options(parser, memory=None)
    parser.add_argument("--temperature", type=float, default=1.0, help="divides the logits of the selection draws")
    add_noise_option(parser)
    parser.add_argument("--json", action="store_true", help="print the scores as JSON")
    add_model_options(parser)
    _add_engine_options(parser)
    parser.set_defaults(run=run)


def _add_engine_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("who draws (changes no byte of the result; docs/scale.md)")
    group.add_argument("--engine", choices=["local", "ray"], default="local", help="default: local")
    group.add_argument("--workers", type=int, metavar="W", help="processes (default: 1), or Ray actors (default: all)")
    group.add_argument(
        "--threads",
        type=int,
        metavar="T",
        help="threads of each model, kept with the run (default: as in the run folder, else the cores divided by W)",
    )
    group.add_argument("--device", default="cpu", help="cpu, cuda, cuda:1, ... (default: cpu; workers take turns)")
    group.add_argument("--address", default="auto", metavar="HOST:PORT", help="the Ray cluster (default: auto)")
    group.add_argument("--cpus-per-worker", type=float, default=1.0, metavar="C", help="for Ray (default: 1)")
    group.add_argument("--gpus-per-worker", type=float, default=0.0, metavar="G", help="for Ray (default: 0)")
    group.add_argument(
        "--draws-per-task", type=int, metavar="D", help="spread every image (default: only if there are fewer images)"
    )
    group.add_argument(
        "--timeout", type=float, default=600.0, metavar="S", help="seconds until a silent worker is replaced (600)"
    )
    group.add_argument("--shard", metavar="I/K", help="only every K-th image from the I-th; join with certiseg merge")


def run(args: argparse.Namespace) -> int:
    from certiseg.analysis.tables import summary_lines, summary_table
    from certiseg.datasets import open_dataset
    from certiseg.runs.evaluate import WHOLE, evaluate_dataset, parse_shard
    from certiseg.runs.folder import RunFolder

    shard, folder = parse_shard(args.shard) if args.shard else WHOLE, RunFolder(args.out)
    samples = open_dataset(args.dataset, args.root, split=args.split, first=args.first)
    indices = list(range(0, len(samples), args.every)) if args.every >= 1 else []
    if not indices:
        raise InputError(f"--every must be at least 1 and leave an image, got {args.every}")
    chosen = samples.subset(indices)
    size = _size_of(chosen)
    segmenter, hierarchy = model_and_hierarchy(args, size)
    if hierarchy is None:
        raise InputError("--hierarchy must be given: this model does not come with one")
    _settle_threads(args, folder)
    recorded = folder.manifest.batch_size if folder.manifest_path.is_file() else None
    args.batch_size = settled_batch_size(args, segmenter, size, recorded)
    manifest = _manifest(args, chosen, segmenter, hierarchy)
    _refuse_early(manifest, size)
    args.backend = args.backend and segmenter.backend  # what was measured here is not measured again by workers
    with _engine(args, segmenter, manifest, folder, size) as engine, _bar(manifest, shard) as progress:
        left_out = evaluate_dataset(folder, manifest, chosen, engine=engine, progress=progress, shard=shard)
    if engine.workers > 1:
        drawn = ", ".join(f"{place}: {draws}" for place, draws in sorted(engine.places.items()))
        print(f"note: draws by worker: {drawn or 'none, all were there'}", file=sys.stderr)
    if shard != WHOLE:
        return _tell_shard(args, folder, shard, left_out)
    table = summary_table(folder)
    if args.json:
        print(json.dumps({"scores": table, "left_out": left_out}, indent=1))
    else:
        print("\n".join(summary_lines(folder, table)))
        for name, reason in left_out.items():
            print(f"left out: {name}: {reason}")
    return 1 if left_out else 0


def build_model(options: dict[str, Any], size: tuple[int, int], folder: str, number: int) -> Any:
    """The segmenter of worker `number`, from the options and in the folder of the command."""
    from certiseg.engines.device import move

    if os.path.isdir(folder):
        os.chdir(folder)
    with contextlib.redirect_stderr(io.StringIO()):  # its notes were printed once
        segmenter, _ = model_and_hierarchy(argparse.Namespace(**options), size)
    return move(segmenter, options["device"], number)


@contextlib.contextmanager
def _engine(
    args: argparse.Namespace, segmenter: Any, manifest: Manifest, folder: RunFolder, size: tuple[int, int]
) -> Iterator[Engine]:
    """The engine of the options, ended on leaving."""
    engine: Any
    options = {name: value for name, value in vars(args).items() if name != "run"}
    build = partial(build_model, options, size, os.getcwd())
    common = {"timeout": args.timeout, "draws_per_task": args.draws_per_task}
    if args.engine == "ray":
        from certiseg.engines.ray import RayPool

        place = {"address": args.address, "cpus": args.cpus_per_worker, "gpus": args.gpus_per_worker}
        engine = RayPool(build, manifest, workers=args.workers, **place, **common)
    elif args.workers in (None, 1):
        from certiseg.engines.device import move
        from certiseg.engines.here import Here

        engine = Here(move(segmenter, args.device), folder)
    else:
        from certiseg.engines.processes import Processes

        engine = Processes(build, manifest, workers=args.workers, **common)
    try:
        yield engine
    finally:
        engine.close()


def _settle_threads(args: argparse.Namespace, folder: RunFolder) -> None:
    """Threads per model: as asked, as in the folder, or so that the workers together have the cores."""
    import torch

    threads = args.threads
    if threads is None and folder.manifest_path.is_file():
        threads = folder.manifest.threads
    if threads is None and args.engine == "ray":
        threads = max(1, int(args.cpus_per_worker))
    if threads is None:
        threads = max(1, torch.get_num_threads() // max(args.workers or 1, 1))
    if threads < 1:
        raise InputError(f"--threads must be at least 1, got {threads}")
    torch.set_num_threads(threads)


def _tell_shard(args: argparse.Namespace, folder: RunFolder, shard: Shard, left_out: dict[str, str]) -> int:
    done = len(folder.finished())
    if args.json:
        print(json.dumps({"shard": str(shard), "images": done, "left_out": left_out}, indent=1))
    else:
        print(f"shard {shard} of {args.dataset}: {done} images done, {len(left_out)} left out; join the shards with")
        print(f"certiseg merge FOLDER-OF-EACH-SHARD... --out RUN   (this one is {folder.path})")
        for name, reason in left_out.items():
            print(f"left out: {name}: {reason}")
    return 1 if left_out else 0


def _size_of(samples: Dataset) -> tuple[int, int]:
    """Size of the first readable image, where a backend is measured."""
    for index in range(len(samples)):
        try:
            height, width = samples[index].image.shape[:2]
        except InputError:
            continue
        return height, width
    raise InputError("the data set must have a readable image, got none")


def _manifest(args: argparse.Namespace, samples: Dataset, segmenter: Any, hierarchy: Any) -> Manifest:
    """The manifest of what was asked."""
    import numpy as np
    import torch

    from certiseg import __version__
    from certiseg.engines.device import device_type
    from certiseg.runs.manifest import Manifest, parse_settings

    return Manifest(
        dataset=args.dataset,
        split=args.split,
        images=samples.names,
        model=segmenter.name,
        model_sha256=segmenter.fingerprint(),
        classes=segmenter.class_names,
        hierarchy=json.loads(json.dumps(hierarchy.as_dict())),
        sigmas=tuple(args.sigma),
        settings=parse_settings(args.setting),
        methods=tuple(args.methods or _all_methods(hierarchy)),
        alpha=args.alpha,
        correction=args.correction,
        k=args.kfwer_k,
        test=args.test,
        family=args.family,
        n0=args.n0,
        seed=args.seed,
        temperature=args.temperature,
        batch_size=args.batch_size,
        threads=torch.get_num_threads(),
        backend=segmenter.backend,
        device=segmenter.device.type if args.device == "cpu" else device_type(args.device),
        noise=args.noise,
        versions={"certiseg": __version__, "torch": torch.__version__, "numpy": np.__version__},
    )


def _refuse_early(manifest: Manifest, size: tuple[int, int]) -> None:
    """Everything that can be known to fail is refused before the first draw."""
    from certiseg.hierarchy import check_thresholds
    from certiseg.planning import require_certifiable
    from certiseg.runs.manifest import MethodChoice
    from certiseg.tally import SamplingPlan

    for setting in manifest.each_setting():
        SamplingPlan(
            sigma=setting.sigma,
            n0=manifest.n0,
            n=setting.n,
            seed=manifest.seed,
            batch_size=manifest.batch_size,
            temperature=manifest.temperature,
            noise=manifest.noise,
        )
        require_certifiable(
            pixels=size[0] * size[1],
            n=setting.n,
            tau=setting.tau,
            alpha=manifest.alpha_per_image,
            sigma=setting.sigma,
            test=manifest.test,
        )
    levels = manifest.tree.num_levels
    for method in manifest.methods:
        options = MethodChoice(method).options
        if manifest.correction in ("kfwer", "by") and options["method"] in ("nested", "sets"):
            raise InputError(f"--correction must be bonferroni or holm for {method}, got {manifest.correction}")
        if not 0 <= options.get("level", 0) < levels:
            raise InputError(f"--methods must have a level in 0..{levels - 1}, got {method}")
        if options["method"] == "adaptive":
            check_thresholds(options.get("thresholds", manifest.tree.thresholds), levels, "thresholds of adaptive")


def _all_methods(hierarchy: Any) -> list[str]:
    levels = [f"level:{level}" for level in range(1, hierarchy.num_levels)]
    adaptive = ["adaptive"] if hierarchy.thresholds is not None else []
    return ["segcertify", *levels, *adaptive, "nested", "sets"]


class _bar:
    """A progress bar over draws, with images per hour and the running scores of the first setting."""

    def __init__(self, manifest: Manifest, shard: Shard) -> None:
        from tqdm import tqdm

        images = sum(shard.holds(index) for index in range(len(manifest.images)))
        total = (manifest.n0 + max(manifest.draws)) * len(manifest.sigmas) * images
        self.bar = tqdm(total=total, unit="draw", desc=manifest.dataset, disable=None, smoothing=0.05)
        self.started, self.images = time.monotonic(), 0

    def __enter__(self) -> Any:
        from certiseg.runs.evaluate import Progress

        return Progress(draws=self.bar.update, image=self.image)

    def image(self, name: str, progress: Any) -> None:
        from certiseg.scores import scores_of

        self.images += 1
        rate = self.images / max(time.monotonic() - self.started, 1e-9) * 3600
        shown = {"images/h": f"{rate:.0f}"}
        if progress.sums:
            method = "nested" if "nested" in progress.sums else next(iter(progress.sums))
            scores = scores_of(progress.sums[method])
            shown |= {f"{method} CIG": f"{scores.cig:.3f}", "abstain": f"{scores.abstain:.1%}"}
        self.bar.set_postfix(shown)

    def __exit__(self, *_: object) -> None:
        self.bar.close()
