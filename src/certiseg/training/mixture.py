"""Other data sets mixed into a run: a label of theirs may only say that a pixel belongs to one of several classes.

Such a label is written as num_classes + k and means "one of sets[k]"; its loss is -log of the probability of the set.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from tqdm import tqdm

from certiseg.datasets import NAMES, open_dataset
from certiseg.datasets.base import Sample
from certiseg.errors import InputError
from certiseg.hierarchy import VOID
from certiseg.models.outputs import tensor_of
from certiseg.training.batches import read_all

SURE = 0.5
"""A teacher settles a pixel from this posterior on: the class is then its first choice."""
TEACHER_SCALES = (0.75, 1.25)

# What the classes of a data set say in those of CamVid; what is not named says nothing (void).
_MOVABLE = (
    *("Car", "SUVPickupTruck", "Truck_Bus", "Train", "OtherMoving", "Pedestrian", "Child", "CartLuggagePram"),
    *("Animal", "Bicyclist", "MotorcycleScooter"),
)
_UNDRIVABLE = (
    *("Sky", "Building", "Wall", "Bridge", "Tunnel", "Archway", "Column_Pole", "TrafficCone", "Sidewalk"),
    *("ParkingBlock", "Tree", "VegetationMisc", "SignSymbol", "Misc_Text", "TrafficLight", "Fence"),
)
MEANINGS: dict[str, dict[str, tuple[str, ...]]] = {
    "comma10k": {
        "road": ("Road", "RoadShoulder"),
        "lane markings": ("LaneMkgsDriv", "LaneMkgsNonDriv"),
        "undrivable": _UNDRIVABLE,
        "movable": _MOVABLE,
    }
}


@dataclass
class Mixture:
    """The samples of other data sets, each list with its share of the draws, and the label sets they use."""

    others: list[tuple[float, list[Sample]]] = field(default_factory=list)
    sets: list[tuple[int, ...]] = field(default_factory=list)


def open_mixture(entries: Sequence[str], *, classes: Sequence[str]) -> Mixture:
    """The training samples of `NAME:SHARE[:ROOT]` entries, labelled in `classes` or in sets of them."""
    mixture = Mixture()
    for entry in entries:
        name, share, root = parse_entry(entry)
        dataset = open_dataset(name, root, split="train")
        table = np.full(256, VOID, np.uint8)
        for index, source in enumerate(dataset.classes):
            table[index] = _code(source, name, classes, mixture.sets)
        if (table == VOID).all():
            raise InputError(f"also must share classes with the data set to learn, got none in {name}; leave it out")
        samples = [Sample(s.name, s.image, table[s.label]) for s in read_all(dataset) if s.label is not None]
        mixture.others.append((share, samples))
    return mixture


def settled(mixture: Mixture, teacher: nn.Module, *, progress: bool = False) -> Mixture:
    """Labels that name a set become the class the teacher is sure of, if the set holds it; the others stay."""
    if not mixture.sets:
        raise InputError("teacher must have labels to settle, got none that name a set; leave it out")
    others = []
    for share, samples in mixture.others:
        shown = tqdm(samples, "labels by the teacher", disable=not progress, mininterval=1)
        others.append((share, [replace(sample, label=_settled(sample, mixture.sets, teacher)) for sample in shown]))
    return replace(mixture, others=others)


def _settled(sample: Sample, sets: Sequence[tuple[int, ...]], teacher: nn.Module) -> np.ndarray:
    assert sample.label is not None
    posteriors = _posteriors(sample.image, teacher)
    best, choice = (values.numpy() for values in posteriors.max(0))
    label = sample.label.copy()
    for index, members in enumerate(sets, len(posteriors)):
        sure = (sample.label == index) & (best >= SURE) & np.isin(choice, members)
        label[sure] = choice[sure]
    return label


@torch.inference_mode()
def _posteriors(image: np.ndarray, teacher: nn.Module) -> Tensor:
    """(classes, H, W): the mean over two sizes of the image and their mirror images."""
    size, total = image.shape[:2], torch.zeros(())
    pixels = torch.from_numpy(image).permute(2, 0, 1)[None].float() / 255
    for scale in TEACHER_SCALES:
        sized = F.interpolate(pixels, scale_factor=scale, mode="bilinear", antialias=True)
        both = tensor_of(teacher(torch.cat([sized, sized.flip(-1)])))
        both = F.interpolate(both, size=size, mode="bilinear", align_corners=False).softmax(1)
        total = total + both[0] + both[1].flip(-1)
    return total / (2 * len(TEACHER_SCALES))


def parse_entry(entry: str) -> tuple[str, float, str | None]:
    """Name, share and root of `NAME:SHARE[:ROOT]`; streets need no root."""
    name, _, rest = entry.partition(":")
    share, _, root = rest.partition(":")
    try:
        value = float(share)
    except ValueError:
        value = 0.0
    if name not in NAMES or not 0 < value < 1:
        raise InputError(f"also must be NAME:SHARE[:ROOT] with a share in (0, 1), got {entry!r}; write it like that")
    return name, value, root or None


def _code(source: str, dataset: str, classes: Sequence[str], sets: list[tuple[int, ...]]) -> int:
    """The id under which a class of another data set is learned: a class, a set of classes (added), or void."""
    if source in classes:
        return list(classes).index(source)
    members = tuple(list(classes).index(name) for name in MEANINGS.get(dataset, {}).get(source, ()) if name in classes)
    if not members:
        return VOID
    if len(classes) + len(sets) >= VOID:
        raise InputError(f"classes and label sets must be fewer than {VOID}, got more; mix in fewer data sets")
    sets.append(members)
    return len(classes) + len(sets) - 1
