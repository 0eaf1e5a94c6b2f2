"""A run: one sampling pass per image and sigma, every setting and method from the same votes.

Everything is written atomically, the rows of an image last. A run that was killed goes on with the first image without
rows; what was drawn of it is kept as partial votes. Neither that nor the engine that draws changes a byte.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import fields, replace
from functools import partial
from pathlib import Path
from typing import Any

from certiseg.datasets import Dataset, open_dataset
from certiseg.errors import InputError
from certiseg.hierarchy import Hierarchy, load_hierarchy
from certiseg.models.choice import ChosenModel, choose_model
from certiseg.models.device import limited_threads, move
from certiseg.models.segmenter import ModelLike, Segmenter
from certiseg.models.settings import ModelChoice, ModelSettings
from certiseg.runs.folder import RunFolder
from certiseg.runs.local import Processes, ThisProcess
from certiseg.runs.manifest import Manifest, describe_difference, join_keys, load_manifest
from certiseg.runs.prepare import (
    batch_size_for,
    lanes_for,
    make_manifest,
    make_model,
    over_classes_of,
    require_answer,
    require_enough_draws,
    scan,
    threads_for,
    threads_in_lanes,
    with_keys,
)
from certiseg.runs.progress import Progress, progress_on
from certiseg.runs.run import Run
from certiseg.runs.scheduler import Samples, schedule
from certiseg.runs.settings import WHOLE, EngineSettings, RunSettings, Shard, parse_shard, settle_settings
from certiseg.runs.table import write_table
from certiseg.runs.task import Engine
from certiseg.runs.verify import require_sound


def evaluate(
    dataset: str | Dataset,
    *,
    out: str | Path,
    root: str | Path | None = None,
    split: str | None = None,
    first: int | None = None,
    every: int = 1,
    model: str | ModelLike = "compact",
    hierarchy: str | Hierarchy | None = None,
    sigma: float | Sequence[float] = (),
    setting: str | Sequence[str | tuple[int, float]] | None = None,
    n_max: int | None = None,
    shard: str | None = None,
    memory: int | None = None,
    progress: bool | Progress = True,
    **options: Any,
) -> Run:
    """Certify a data set by every method, or go on with a run that was interrupted: what `certiseg evaluate` does.

    dataset: a name or a table of pairs (see docs/datasets.md), with `root`, `split`, and `first` images or `every` k-th
        one; or a Dataset.
    out: the run folder. Started again with the same settings it goes on where it stopped; with others it refuses.
    model: what `cs.load_model` takes, a Segmenter, or a torch module; several workers need the first.
    sigma, setting: levels of pixel noise (default: 0.25, or 0 with a threat), and pairs n:tau such as "100:0.75"; each
        of them with each (default: 100:0.75).
    n_max: with stop_undecided, which draws each image until at most that share of its pixels and measures is undecided
        for every method and tau: the most draws (default: the n of the settings, or 1000). The test is anytime then.
    shard: i/k, every k-th image from the i-th; join the folders with `certiseg merge`.
    memory: measure the batch size within so many bytes, where batch_size is not given.
    progress: a bar or lines on stderr, nothing, or a `Progress` of your own.
    Further keyword arguments are the fields of `RunSettings` (methods, alpha, family, correction, k, test,
    stop_undecided, n0, seed, temperature, noise, threat, up_to, radius, batch_size), `EngineSettings` (engine, workers,
    threads, device, ...), `ModelChoice` (backend, denoiser, ...) and `ModelSettings` (mean, std, ...).
    """
    sigmas = tuple(sigma) if isinstance(sigma, Sequence) else (sigma,)
    stops = options.get("stop_undecided")
    pairs = settle_settings(setting, n_max=n_max, stop_undecided=stops)
    if stops is not None and options.get("test") is None:
        options["test"] = "anytime"
    asked = RunSettings(sigmas=sigmas, settings=pairs, **_taken(options, RunSettings))
    who, of_model = EngineSettings(**_taken(options, EngineSettings)), _taken(options, ModelChoice)
    said = _taken(options, ModelSettings)
    if options:
        raise InputError(f"evaluate must be given settings of runs, engines and models, got {next(iter(options))!r}")
    folder, part = RunFolder(out), WHOLE if shard is None else parse_shard(shard)
    samples = dataset if isinstance(dataset, Dataset) else _opened(dataset, root, split, first, hierarchy)
    samples = _every(samples, every)
    require_shard(part, len(samples))
    folder.require_usable()
    with _told(progress, samples.name) as told:
        found = scan(samples, part, told, values=asked.values, instances=asked.instances)
        require_enough_draws(asked, found, len(samples))
        recorded, size = folder.manifest if folder.manifest_path.is_file() else None, found.size
        threads = threads_for(who, recorded)
        if recorded is not None and of_model.get("backend") == "auto":
            of_model["backend"] = recorded.backend
        with limited_threads(threads):
            chosen = make_model(model, hierarchy, of_model, said, size=size, sigmas=asked.sigmas)
            chosen = over_classes_of(chosen, samples, as_said=hierarchy is not None)
            if chosen.segmenter.settings.channels not in (None, found.channels):  # grey images are stored as RGB
                found = scan(
                    samples,
                    part,
                    told,
                    values=asked.values,
                    channels=chosen.segmenter.settings.channels,
                    instances=asked.instances,
                )
            if who.alone:
                move(chosen.segmenter, who.device)
            batch = batch_size_for(asked, recorded, chosen.segmenter, found, memory, in_lanes=who.chooses_lanes)
            asked = replace(asked, batch_size=batch)
            if recorded is None and who.alone:
                require_answer(chosen.segmenter, chosen.hierarchy, found)
            if recorded is None and who.chooses_lanes and part == WHOLE:  # shards may differ in size, never in threads
                threads = threads_in_lanes(asked, chosen.segmenter, found)
            manifest = make_manifest(asked, samples, chosen, threads=threads, device=who.device, split=split)
        for note in chosen.notes:
            told.note(note)
        manifest = with_keys(manifest, found)
        lanes = lanes_for(asked, chosen.segmenter, found, threads) if who.chooses_lanes else 1
        with _engine(who, chosen, manifest, folder, size, lanes) as engine:
            engine.note = told.note
            evaluate_dataset(folder, manifest, samples, engine=engine, progress=told, shard=part)
            if engine.workers > 1:
                drawn = ", ".join(f"{place}: {draws}" for place, draws in sorted(engine.places.items()))
                told.note(f"draws by worker: {drawn or 'none, all were there'}")
    return Run(folder)


def evaluate_dataset(
    folder: RunFolder,
    manifest: Manifest,
    samples: Samples,
    segmenter: Segmenter | None = None,
    *,
    engine: Engine | None = None,
    progress: Progress | None = None,
    shard: Shard = WHOLE,
) -> dict[str, str]:
    """Run, or resume, what a manifest says; returns the images that were left out, with the reason.

    manifest: with the hashes of the images; without them they are read here, for this process to draw.
    engine: what draws; without one, this process does, with the segmenter.
    shard: which images are taken here; the table is written when all images of the manifest are done.
    """
    require_shard(shard, len(manifest.images))
    if not any(manifest.keys):
        channels = None if segmenter is None else segmenter.settings.channels
        found = scan(samples, shard, values=manifest.values, channels=channels, instances=manifest.instances)
        manifest = with_keys(manifest, found)
    if engine is None:
        if segmenter is None:
            raise InputError("evaluate_dataset must be given a segmenter or an engine, got neither")
        engine = ThisProcess(segmenter, folder)
    folder.create()
    with folder.locked():
        folder.sweep()
        _enter(folder, manifest, shard)
        left_out = schedule(folder, samples, engine, progress or Progress(), shard=shard)
        folder.write_left_out(left_out)
        if shard == WHOLE and (finished := folder.finished()):
            rows = (folder.receipt(name).rows for name in finished)
            write_table(folder.table_path, rows, run=folder.manifest.run_key)
    return left_out


def _enter(folder: RunFolder, manifest: Manifest, shard: Shard) -> None:
    """Compare what is asked with what is there, file by file, and write down what is new; all before the first draw."""
    if not folder.manifest_path.exists():
        folder.manifest = manifest
        require_sound(folder, shard, anew=True)
        if shard == WHOLE:
            folder.shard_path.unlink(missing_ok=True)
        else:
            folder.write_note(folder.shard_path, "shard", {"shard": str(shard)})
        manifest.save(folder.manifest_path)
        return
    there = load_manifest(folder.manifest_path)
    if shown := describe_difference(there, manifest, "there", "asked"):
        raise InputError(f"{folder.path}: must be resumed with its own settings, got others ({shown}); use a new --out")
    folder.manifest = join_keys(there, manifest, folder.path)
    if (found := folder.shard()) != shard:
        raise InputError(
            f"{folder.path}: must be resumed as the shard that it is, {found}, got {shard}; use a new --out"
        )
    require_sound(folder, shard)
    if folder.manifest != there:
        folder.manifest.save(folder.manifest_path)


def _taken(options: dict[str, Any], cls: type[Any]) -> dict[str, Any]:
    """Take the fields of a settings class out of the options; None stands for not given."""
    found = {each.name: options.pop(each.name) for each in fields(cls) if each.name in options}
    return {name: value for name, value in found.items() if value is not None}


def _opened(
    dataset: str, root: str | Path | None, split: str | None, first: int | None, hierarchy: str | Hierarchy | None
) -> Dataset:
    """The data set; a hierarchy that was named tells the classes where there is no list of them."""
    tree = load_hierarchy(hierarchy) if isinstance(hierarchy, str) else hierarchy
    return open_dataset(dataset, root, split=split, first=first, classes=None if tree is None else tree.classes)


def _every(samples: Dataset, every: int) -> Dataset:
    indices = range(0, len(samples), every) if every >= 1 else range(0)
    if not indices:
        raise InputError(f"every must be at least 1 and leave an image, got {every}")
    return samples.subset(indices)


def require_shard(shard: Shard, images: int) -> None:
    """Refuse more shards than images."""
    if shard.count > images:
        raise InputError(f"shard must be of at most as many shards as images, {images}, got {shard}; use fewer")


# -- who draws ---------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def _engine(
    who: EngineSettings, chosen: ChosenModel, manifest: Manifest, folder: RunFolder, size: tuple[int, int], lanes: int
) -> Iterator[Engine]:
    """The engine that was asked for, ended on leaving."""
    engine: Engine
    if who.alone:
        engine = ThisProcess(move(chosen.segmenter, who.device), folder, lanes=lanes)
    elif chosen.choice is None:
        raise InputError("model must be given as text, such as compact, to be made again by several workers")
    else:
        build = partial(build_model, chosen.choice, manifest.sigmas, size, who.device, os.getcwd())
        if who.engine == "ray":
            from certiseg.runs.ray import RayPool

            engine = RayPool(build, manifest, who)
        else:
            engine = Processes(build, manifest, who)
    try:
        yield engine
    finally:
        engine.close()


def build_model(
    choice: ModelChoice, sigmas: tuple[float, ...], size: tuple[int, int], device: str, folder: str, number: int
) -> Segmenter:
    """The model of worker `number`, made in the folder of the command."""
    if os.path.isdir(folder):
        os.chdir(folder)
    return move(choose_model(choice, size=size, sigmas=sigmas).segmenter, device, number)


@contextlib.contextmanager
def _told(progress: bool | Progress, title: str) -> Iterator[Progress]:
    """What hears of the progress, closed on leaving."""
    told = progress if isinstance(progress, Progress) else progress_on(title) if progress else Progress()
    ended = False
    try:
        yield told
        ended = True
    finally:
        told.close(ended=ended)
