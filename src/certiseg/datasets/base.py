"""A data set is a list of images with label maps that were checked when they were read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image, UnidentifiedImageError

from certiseg.errors import InputError

VOID = 255
SUFFIXES = (".png", ".jpg", ".jpeg")


@dataclass(frozen=True)
class Sample:
    """One image (H, W, 3) uint8 and, where there is one, its label map (H, W) uint8 with 255 = void."""

    name: str
    image: np.ndarray
    label: np.ndarray | None


@dataclass(frozen=True)
class Entry:
    """Where one sample lies on disk."""

    name: str
    image: Path
    label: Path | None


class Dataset:
    """Images on disk with their labels; reading a sample checks it against the class list."""

    void = VOID

    def __init__(self, name: str, classes: Sequence[str], entries: Sequence[Entry]) -> None:
        self.name = name
        self.classes = tuple(classes)
        self.entries = tuple(entries)
        if not 1 <= len(self.classes) <= VOID:
            raise InputError(f"classes must be 1 to {VOID} names, got {len(self.classes)}; 255 is kept for void")

    def __len__(self) -> int:
        return len(self.entries)

    def __getitem__(self, index: int) -> Sample:
        entry = self.entries[index]
        image = read_image(entry.image)
        label = None
        if entry.label is not None:
            label = read_label(entry.label, num_classes=len(self.classes))
            check_same_size(image, label, entry)
        return Sample(entry.name, image, label)

    def __iter__(self) -> Iterator[Sample]:
        return (self[index] for index in range(len(self)))

    def subset(self, indices: Sequence[int]) -> Dataset:
        """The samples at these positions, in this order."""
        return Dataset(self.name, self.classes, [self.entries[index] for index in indices])

    def held_out(self, every: int = 10) -> tuple[Dataset, Dataset]:
        """Two parts for a data set without a split of its own: every tenth image is for validation."""
        if len(self) < 2:
            raise InputError(f"{self.name} must hold at least 2 images to be split, got {len(self)}; add images")
        every = min(every, len(self))
        kept = [index for index in range(len(self)) if index % every != every - 1]
        held = [index for index in range(len(self)) if index % every == every - 1]
        return self.subset(kept), self.subset(held)


def read_image(path: Path) -> np.ndarray:
    """The decoded RGB pixels, (H, W, 3) uint8."""
    return np.asarray(_decode(path).convert("RGB"))


def read_label(path: Path, *, num_classes: int) -> np.ndarray:
    """The label map (H, W) uint8, refused if an id is neither a class nor void."""
    image = _decode(path)
    if image.mode not in ("P", "L", "1", "I", "I;16"):
        raise InputError(
            f"{path} must be a one-channel label map, got mode {image.mode}; save the class ids as 8-bit PNG"
        )
    label = np.asarray(image)
    wrong = np.unique(label[(label >= num_classes) & (label != VOID)])
    if wrong.size:
        shown = ", ".join(str(value) for value in wrong[:5])
        raise InputError(
            f"{path} must hold ids 0 to {num_classes - 1} or {VOID} for void, got {shown}; "
            "correct the labels or give the class list they belong to"
        )
    return label.astype(np.uint8)


def check_same_size(image: np.ndarray, label: np.ndarray, entry: Entry) -> None:
    """Refuse a label map that does not cover its image exactly."""
    if image.shape[:2] != label.shape:
        (height, width), (label_height, label_width) = image.shape[:2], label.shape
        raise InputError(
            f"{entry.label} must have the size of its image, got {label_width}x{label_height} for an image of "
            f"{width}x{height}; resize the label map with nearest neighbour"
        )


def list_entries(images: Path, labels: Path | None) -> list[Entry]:
    """The images of a folder in name order, each matched to the label of the same stem (if a label folder is given)."""
    found = _by_stem(images)
    if not found:
        raise InputError(f"{images} must hold png or jpg images, got none; check the path")
    if labels is None:
        return [Entry(stem, path, None) for stem, path in sorted(found.items())]
    known = _by_stem(labels)
    missing = sorted(set(found) - set(known))
    if missing:
        raise InputError(
            f"{labels} must hold a label for every image, got none for {missing[0]} "
            f"({len(missing)} of {len(found)} missing); add the files or remove the images"
        )
    return [Entry(stem, path, known[stem]) for stem, path in sorted(found.items())]


def read_classes(path: Path) -> tuple[str, ...]:
    """The class names of a text file, one per line, in the order of their ids."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "no UTF-8 text"
        raise InputError(f"{path} must be a readable list of class names, got: {reason}; check the path") from error
    names = tuple(line.strip() for line in lines if line.strip())
    if not names:
        raise InputError(f"{path} must name at least one class, got an empty file; write one name per line")
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise InputError(f"{path} must name each class once, got {repeated[0]!r} twice; remove one")
    return names


def _by_stem(folder: Path) -> dict[str, Path]:
    if not folder.is_dir():
        raise InputError(f"{folder} must be a folder, got nothing there; check the path")
    found: dict[str, Path] = {}
    for path in sorted(folder.iterdir()):
        if path.suffix.lower() not in SUFFIXES or path.name.startswith("."):
            continue
        if path.stem in found:
            raise InputError(
                f"{folder} must hold one file per name, got {found[path.stem].name} and {path.name}; remove one"
            )
        found[path.stem] = path
    return found


def _decode(path: Path) -> Image.Image:
    try:
        with Image.open(path) as image:
            return image.copy()
    except FileNotFoundError as error:
        raise InputError(f"{path} must be an image file, got nothing there; check the path") from error
    except (UnidentifiedImageError, OSError, ValueError, Image.DecompressionBombError) as error:
        raise InputError(f"{path} must be a readable image, got one that fails to decode; replace it") from error
