"""What a start settles before the first draw: which images there are, which model, threads, batch size, manifest."""

from __future__ import annotations

import itertools
import json
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from certiseg import __version__
from certiseg.datasets import Dataset
from certiseg.drawing import lanes_of, threads_of_a_call
from certiseg.errors import InputError
from certiseg.hierarchy import Hierarchy, flat_hierarchy, load_hierarchy, plain_name
from certiseg.images import read_image
from certiseg.images.values import Values
from certiseg.models.backends import example_image
from certiseg.models.batching import measured_batch_size
from certiseg.models.choice import ChosenModel, choose_model, given_model
from certiseg.models.device import device_type
from certiseg.models.segmenter import ModelLike, Segmenter, as_segmenter
from certiseg.models.settings import ModelChoice
from certiseg.noise import image_key
from certiseg.planning import require_certifiable
from certiseg.runs.identity import label_key
from certiseg.runs.manifest import Manifest
from certiseg.runs.progress import Progress
from certiseg.runs.scheduler import Samples, marked_in
from certiseg.runs.settings import WHOLE, EngineSettings, RunSettings, Shard
from certiseg.settings import given

Size = tuple[int, int]


@dataclass(frozen=True)
class Scan:
    """What reading every image once has told."""

    keys: tuple[str | None, ...]
    label_keys: tuple[str | None, ...]
    size: Size
    """Of the first image that can be read, where backend and batch size are measured."""
    pixels: int
    """Of the largest image."""
    channels: int
    """Of the first image that can be read."""
    alike: bool
    """Whether all images have one size."""


def scan(
    samples: Samples,
    shard: Shard = WHOLE,
    progress: Progress | None = None,
    *,
    values: Values = (),
    channels: int | None = None,
    instances: bool = False,
) -> Scan:
    """Read the images of a shard: the hash of the pixels and of the ground truth of each, None where unreadable.

    instances: whether the ground truth needs its instances, and is left out without them.
    """
    keys: list[str | None] = [None] * len(samples)
    label_keys, sizes, reasons = keys.copy(), list[tuple[int, ...]](), list[str]()
    mine = [index for index in range(len(samples)) if shard.holds(index)]
    others = (index for index in range(len(samples)) if not shard.holds(index) and not sizes)
    for done, index in enumerate(itertools.chain(mine, others)):
        try:
            sample = samples[index]
            marked = marked_in(sample) if instances else None
            pixels = read_image(sample.image, values=values, channels=channels)
            sizes.append(pixels.shape)
            if shard.holds(index):
                keys[index] = image_key(pixels)
                label_keys[index] = None if sample.label is None else label_key(sample.label, marked)
        except InputError as error:  # it is left out when its turn comes
            reasons.append(str(error))
        if progress is not None:
            progress.read(done + 1, len(mine))
    if not sizes:
        raise InputError(f"the data set must have a readable image, got none: {'; '.join(reasons[:3])}")
    height, width, found = sizes[0]
    largest, alike = max(size[0] * size[1] for size in sizes), len(set(sizes)) == 1
    return Scan(tuple(keys), tuple(label_keys), (height, width), largest, found, alike)


def with_keys(manifest: Manifest, found: Scan) -> Manifest:
    """The manifest with the hashes of its images."""
    return replace(manifest, keys=found.keys, label_keys=found.label_keys)


def require_enough_draws(asked: RunSettings, found: Scan, images: int) -> None:
    """Refuse an n that could not certify a single pixel of the largest image."""
    alpha = asked.alpha / images if asked.family == "dataset" else asked.alpha
    for one in asked.each_setting():
        chosen = {"test": asked.test, "threat": asked.threat, "radius": asked.radius, **vars(one)}
        require_certifiable(pixels=found.pixels, alpha=alpha, **chosen)


def make_manifest(
    asked: RunSettings, samples: Dataset, chosen: ChosenModel, *, threads: int, device: str, split: str | None = None
) -> Manifest:
    """The manifest of a run of these images by this model; by default every method that the hierarchy allows."""
    segmenter, tree = chosen.segmenter, chosen.hierarchy
    assert tree is not None, "settled with the classes"
    asked = replace(asked, methods=asked.methods or _all_methods(tree), batch_size=asked.batch_size or 1)
    facts = given(asked) | {"promise": "{}@{.typed}".format(*asked.promised)}
    if asked.objects is not None:
        facts["objects"] = asked.objects or tree.things
    return Manifest(
        **facts,
        dataset=samples.name,
        split=split,
        images=samples.names,
        model=segmenter.name,
        model_sha256=segmenter.fingerprint(),
        classes=segmenter.class_names,
        hierarchy=json.loads(json.dumps(tree.as_dict())),
        threads=threads,
        backend=segmenter.backend,
        device=segmenter.device.type if device == "cpu" else device_type(device),
        versions={"certiseg": __version__, "torch": torch.__version__, "numpy": np.__version__},
    )


def _all_methods(hierarchy: Hierarchy) -> tuple[str, ...]:
    levels = [f"level:{level}" for level in range(1, hierarchy.num_levels)]
    adaptive = ["adaptive"] if hierarchy.thresholds is not None else []
    return ("segcertify", *levels, *adaptive, "nested", "sets")


def over_classes_of(chosen: ChosenModel, samples: Dataset, *, as_said: bool) -> ChosenModel:
    """The model with the data set's own hierarchy and thresholds, unless one was named; the classes must agree.

    Where neither the model nor the data set has one, every class stands for itself.
    """
    segmenter = chosen.segmenter
    theirs = chosen.hierarchy.classes if chosen.hierarchy is not None else segmenter.class_names
    count = len(theirs) if theirs is not None else segmenter.num_classes
    if count is not None and count != len(samples.classes):
        raise InputError(
            f"model and data set must have the same classes, got {count} of {segmenter.name} and "
            f"{len(samples.classes)} of {samples.name}; choose a model of that data set"
        )
    for place, (one, other) in enumerate(zip(theirs or (), samples.classes, strict=False)):
        if plain_name(one) != plain_name(other):
            raise InputError(
                f"model and data set must have the same classes in the same order, got {one!r} of {segmenter.name} and "
                f"{other!r} of {samples.name} for class {place}; choose a model of that data set"
            )
    if samples.hierarchy is not None and not as_said:
        return replace(chosen, hierarchy=load_hierarchy(samples.hierarchy))
    if chosen.hierarchy is None:
        note = "no hierarchy is known over these classes, so each stands for itself; --hierarchy FILE gives one"
        return replace(chosen, hierarchy=flat_hierarchy(samples.classes), notes=(*chosen.notes, note))
    return chosen


def threads_for(who: EngineSettings, recorded: Manifest | None) -> int:
    """Threads per model: as asked, as in the folder, or so that the workers together have the cores."""
    if who.threads is not None:
        return who.threads
    if recorded is not None:
        return recorded.threads
    if who.engine == "ray":
        return max(1, int(who.cpus_per_worker))
    return max(1, torch.get_num_threads() // (who.workers or 1))


def require_answer(segmenter: Segmenter, hierarchy: Hierarchy | None, found: Scan) -> None:
    """Refuse a model that cannot be asked about images of the one size they all have, or answers in other classes."""
    if found.alike:
        segmenter(example_image(found.size, found.channels))
        if hierarchy is not None and segmenter.num_classes is not None:
            hierarchy.require_classes(segmenter.num_classes)


def threads_in_lanes(asked: RunSettings, segmenter: Segmenter, found: Scan) -> int:
    """Threads per model where this process alone draws: fewer than it has if several calls can run side by side."""
    return threads_of_a_call(segmenter, *_work(asked, found))


def lanes_for(asked: RunSettings, segmenter: Segmenter, found: Scan, threads: int) -> int:
    """Calls of the model at once, at so many threads each."""
    return lanes_of(segmenter, *_work(asked, found), threads=threads)


def _work(asked: RunSettings, found: Scan) -> tuple[int, int]:
    """Bytes of a batch, and draws of an image."""
    return 4 * (asked.batch_size or 1) * found.pixels * found.channels, asked.n0 + max(n for n, _ in asked.settings)


def batch_size_for(
    asked: RunSettings,
    recorded: Manifest | None,
    segmenter: Segmenter,
    found: Scan,
    memory: int | None,
    *,
    in_lanes: bool = False,
) -> int:
    """Draws per model call: as asked, as recorded by an earlier start, or as measured at this image size."""
    if asked.batch_size is not None:
        return asked.batch_size
    if recorded is not None:
        return recorded.batch_size
    if memory is None:
        return 1
    lanes = lanes_of(segmenter, *_work(asked, found)) if in_lanes else 1
    return measured_batch_size(segmenter, found.size, memory=memory, channels=found.channels, at_once=lanes)


def make_model(
    model: str | ModelLike,
    hierarchy: str | Hierarchy | None,
    options: dict[str, Any],
    said: dict[str, Any],
    *,
    size: Size,
    sigmas: tuple[float, ...],
) -> ChosenModel:
    """The model and the hierarchy, as named or as given."""
    name = hierarchy if isinstance(hierarchy, str) else None
    if isinstance(model, str):
        choice = ModelChoice(model=model, said={**said, "hierarchy": name}, **options)
        chosen = choose_model(choice, size=size, sigmas=sigmas)
    elif odd := next(iter(options | said), None):
        raise InputError(f"{odd} must come with a model given as text, got it with {model!r}")
    else:
        chosen = given_model(as_segmenter(model), name)
    return replace(chosen, hierarchy=hierarchy) if isinstance(hierarchy, Hierarchy) else chosen
