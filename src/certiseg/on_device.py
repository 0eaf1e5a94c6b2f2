"""Draws where the model is: noise, scores, labels and counts stay there until somebody reads them.

Operations of torch that give the bits of the loops (see `kernels.device_noise` and `kernels.device_scores`), so an
accelerator changes nothing but the scores of the model itself. What leaves it: the sums and the counts of an image,
when they are read; a few numbers for each measure and draw; a few yes or no for every call (are all scores finite? is a
value in the tail?). What is made on the CPU all the same: images along a threat (`Crossing`), and label maps that are
kept.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from certiseg.kernels import device_measures, device_noise, device_scores
from certiseg.kernels.noise import REST_COUNTER
from certiseg.measures.record import Reader, Record
from certiseg.noise.grid import grid_table, whole_grey_levels
from certiseg.partial_votes import PartialVotes, part_of

if TYPE_CHECKING:
    from certiseg.models.outputs import Answers
    from certiseg.noise import NoiseStream
    from certiseg.settings import SamplingSettings

_WITHOUT_64_BITS = ("mps",)
"""Devices that lack 64-bit floating point, without which the bits would be others: they take noise from the CPU."""


def serves(device: torch.device) -> bool:
    """Whether noise, labels and counts are made on this device; on the CPU the compiled loops are faster."""
    return device.type not in ("cpu", *_WITHOUT_64_BITS)


def noisy_images(
    pixels: NDArray[np.float32], settings: SamplingSettings, stream: NoiseStream, device: torch.device
) -> Callable[[list[int]], Tensor]:
    """A function that makes x + eps of some draws, (draws, 3, H, W) in channels-last memory."""
    name, size = (stream.key, stream.nonce), pixels.size
    stream.chunks(0, pixels.shape, most=4 * REST_COUNTER)
    if settings.noise == "gaussian":
        clean = torch.from_numpy(pixels).to(device)

        def add_gaussian(draws: list[int]) -> Tensor:
            noise = device_noise.standard_normal(name, torch.tensor(draws, device=device), size)
            return noise.view(-1, *pixels.shape).mul_(settings.sigma).add_(clean).permute(0, 3, 1, 2)

        return add_gaussian
    table, levels = grid_table(settings.sigma), torch.from_numpy(whole_grey_levels(pixels)).to(device)
    # A tensor, because a division by a number may become a product with its reciprocal.
    white = torch.full((1,), 255.0, device=device)

    def add_grid(draws: list[int]) -> Tensor:
        at = torch.tensor(draws, device=device)
        noise = device_noise.grid(name, at, size, table.high, table.rest, table.law.least)
        return ((noise.view(-1, *pixels.shape) + levels).float() / white).permute(0, 3, 1, 2)

    return add_grid


class Crossing:
    """A batch that the CPU makes and a device reads: page-locked memory, copied while the CPU goes on.

    The memory is written again only after its copy has arrived.
    """

    def __init__(self, shape: tuple[int, ...], device: torch.device) -> None:
        self.device, self.locked = device, device.type == "cuda" and torch.cuda.is_available()
        self.memory = torch.empty(shape, pin_memory=self.locked)
        self.copied: torch.cuda.Event | None = None

    def array(self) -> NDArray[np.float32]:
        """(B, H, W, channels): what to write into, as soon as it is free."""
        if self.copied is not None:
            self.copied.synchronize()
        found: NDArray[np.float32] = self.memory.numpy()
        return found

    def moved(self) -> Tensor:
        """(B, channels, H, W): what was written, on the device."""
        found = self.memory.to(self.device, non_blocking=True).permute(0, 3, 1, 2)
        if self.locked:
            self.copied = torch.cuda.Event()  # type: ignore[no-untyped-call]
            self.copied.record(torch.cuda.current_stream(self.device))
        return found


def tally_of(partial: PartialVotes, device: torch.device) -> Tally:
    """The sums and counts of partial votes on a device: the ones begun, or new ones."""
    if not isinstance(partial.away, Tally):
        partial.away = Tally(partial, device)
    return partial.away


class Tally:
    """The sums and counts of one image on a device; the bits of uint32 and uint16, in the signed types of torch."""

    def __init__(self, partial: PartialVotes, device: torch.device) -> None:
        self.partial, self.device = partial, device
        self.sums: Tensor | None = None
        self.counts: Tensor | None = None
        self.measured: MeasuredThere | None = None

    def add_selection(self, draws: list[int], scores: Answers) -> None:
        """Add the posteriors of selection draws."""
        settings = self.partial.settings
        self.partial.claim("selection", draws)
        if self.sums is None:
            shape = (*self.partial.size, self.partial.num_classes)
            self.sums = torch.zeros(shape, dtype=torch.int32, device=self.device)
        scores.add_posteriors_there(self.sums, unit=settings.unit, temperature=settings.temperature)

    def add_estimation(self, draws: list[int], scores: Answers) -> None:
        """Add the votes of estimation draws."""
        settings = self.partial.settings
        self.partial.claim("estimation", draws)
        if self.counts is None:
            shape = (len(settings.cuts) * len(settings.anchors), *self.partial.size, self.partial.num_classes)
            self.counts = torch.zeros(shape, dtype=torch.int16, device=self.device)
        found, record = scores.labels_there(), self.partial.record
        for part, labels in zip(part_of(settings, np.asarray(draws)), found, strict=True):
            device_scores.count_labels(labels, self.counts[int(part)])
        if record is not None:
            self.measured = self.measured or MeasuredThere(record.reader, self.device)
            record.enter(draws, self.measured.read(found))

    def takes(self, record: Record | None) -> bool:
        """Whether estimation draws are added here: label maps that are kept must leave."""
        return record is None or record.maps is None

    def bring_sums(self, sums: NDArray[np.uint32]) -> None:
        """Add the posteriors to the sums of the CPU."""
        if self.sums is not None:
            sums += self.sums.cpu().numpy().view(np.uint32)
            self.sums = None

    def bring_counts(self, counts: NDArray[np.uint16]) -> None:
        """Add the votes to the counts of the CPU."""
        if self.counts is not None:
            counts += self.counts.cpu().numpy().view(np.uint16)
            self.counts = None


class MeasuredThere:
    """Reads measures from label maps on a device; what leaves it is one number for each region and draw."""

    def __init__(self, reader: Reader, device: torch.device) -> None:
        def there(array: NDArray[np.generic]) -> Tensor:
            return torch.from_numpy(np.ascontiguousarray(array).astype(np.int64)).to(device)

        ends = reader.offsets[1:]
        lengths = (reader.runs[:, 1] - reader.runs[:, 0]).astype(np.int64)
        pixels = np.concatenate([np.empty(0, np.int64), *(np.arange(first, last) for first, last in reader.runs)])
        part = np.searchsorted(ends, np.arange(len(lengths)), side="right")
        self.reader, self.members = reader, there(reader.members)
        self.pixels, self.parts = there(pixels), there(np.repeat(part, lengths))
        self.compared = [
            (there(measure.targets.reshape(-1)), there(measure.table))
            for measure in reader.compared
            if measure.targets is not None and measure.table is not None
        ]

    def read(self, labels: Tensor) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
        """`Reader.read` of label maps (D, H, W) on the device."""
        found = []
        for flat in labels.flatten(1):
            hits = device_measures.region_hits(flat, self.pixels, self.parts, self.members)
            matches = [device_measures.target_matches(flat, *compared) for compared in self.compared]
            found.append(torch.cat([hits, *(match[None] for match in matches)]))
        numbers = torch.stack(found).cpu().numpy()
        regions = len(self.reader.members)
        return self.reader.values_of(numbers[:, :regions], numbers[:, regions:])
