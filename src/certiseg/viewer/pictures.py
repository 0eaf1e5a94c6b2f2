"""The photographs of a run: it keeps none, so they come from its data set, or from the uploads."""

from __future__ import annotations

import io
from functools import cached_property
from typing import TYPE_CHECKING

from numpy.typing import NDArray
from PIL import Image

from certiseg.datasets import Dataset, open_dataset
from certiseg.datasets.base import Files
from certiseg.errors import InputError
from certiseg.images import ImageLike, Picture, shown
from certiseg.noise import require_image
from certiseg.render.colours import colour_labels
from certiseg.viewer.cache import BoundedCache
from certiseg.viewer.run_reader import NotFound, RunReader, is_upload

if TYPE_CHECKING:
    import numpy as np

    from certiseg.votes import Votes

THUMBNAIL = (168, 126)


class Pictures:
    """Photographs and thumbnails, as PNG."""

    def __init__(self, reader: RunReader, root: str | None = None) -> None:
        self.reader, self.root = reader, root
        self._pngs = BoundedCache[bytes](64 << 20, len)
        self._opened = BoundedCache[Picture](128 << 20, lambda picture: picture.pixels.nbytes)
        self._thumbnails = BoundedCache[bytes](16 << 20, len)

    @cached_property
    def dataset(self) -> Dataset | str:
        """The data set of the run, or the sentence that says why it cannot be opened."""
        manifest = self.reader.manifest
        try:
            return open_dataset(manifest.dataset, self.root, split=manifest.split, classes=manifest.tree.classes)
        except InputError as error:
            return str(error)

    @property
    def missing(self) -> str | None:
        """Why there are no photographs, None where there are."""
        return f"{self.dataset}; start with --root" if isinstance(self.dataset, str) else None

    def png(self, name: str) -> bytes:
        """The photograph of an image."""
        return self._pngs.get(self.reader.require(name), lambda: _png(shown(self.open(name))))

    def thumbnail(self, name: str) -> bytes:
        """A small picture: the photograph, or the ground truth in colours where there is none."""
        return self._thumbnails.get(self.reader.require(name), lambda: _png(self._for_thumbnail(name), THUMBNAIL))

    def _for_thumbnail(self, name: str) -> NDArray[np.uint8]:
        try:
            return shown(self.open(name))
        except NotFound:
            truth = self.reader.truth(name)
            if truth is None:
                raise
            return colour_labels(truth, self.reader.tree)

    def open(self, name: str) -> Picture:
        """The image as it was certified, in [0, 1]."""
        return self._opened.get(self.reader.require(name), lambda: self._open(name))

    def _open(self, name: str) -> Picture:
        if is_upload(name):
            path = self.reader.inside(self.reader.uploaded_image(name))
            return _certified(self.reader.upload_certificate(name).votes, path, f"{name}: its file")
        if isinstance(self.dataset, str):
            raise NotFound(f"{name}: its photograph must be in the data set, but {self.missing}")
        if name not in self.dataset.names:
            raise NotFound(f"{name}: must be in the data set, but it is not; check --root")
        image = self.dataset[self.dataset.names.index(name)].image
        manifest = self.reader.manifest
        votes = self.reader.votes(name, manifest.sigmas[0], manifest.draws[-1])
        return _certified(votes, image, f"{name}: the image under --root")

    def path(self, name: str) -> str | None:
        """The file of a photograph; None where the data set makes it."""
        if is_upload(name):
            return str(self.reader.uploaded_image(name))
        if isinstance(self.dataset, str) or name not in self.dataset.names:
            return None
        entry = self.dataset.entries[self.dataset.names.index(name)]
        return str(entry.image) if isinstance(entry, Files) else None

    def selection(self) -> list[str]:
        """The options of `certiseg evaluate` that choose the run's images from its data set."""
        manifest = self.reader.manifest
        options = [manifest.dataset]
        if manifest.dataset != "streets":
            options += ["--root", self.root or "DATA"]
        if manifest.split is not None:
            options += ["--split", manifest.split]
        names = () if isinstance(self.dataset, str) else self.dataset.names
        return options + _first_and_every(names, manifest.images)


def _certified(votes: Votes, image: ImageLike, what: str) -> Picture:
    """The image that votes are of, read as it was; other pixels are refused."""
    picture = votes.open(image)
    try:
        require_image(picture.pixels, votes.image_key, what)
    except InputError as error:
        raise NotFound(str(error)) from None
    return picture


def _first_and_every(names: tuple[str, ...], chosen: tuple[str, ...]) -> list[str]:
    """--first and --every that give just the chosen images."""
    if names == chosen:
        return []
    places = {name: place for place, name in enumerate(sorted(names))}
    found = [places.get(name, -1) for name in chosen]
    step = found[1] - found[0] if len(found) > 1 else 1
    if -1 in found or found != list(range(0, found[-1] + 1, max(step, 1))):
        return ["--first", str(len(chosen))]
    return ["--first", str(found[-1] + 1), *(["--every", str(step)] if step > 1 else [])]


def _png(pixels: NDArray[np.uint8], size: tuple[int, int] | None = None) -> bytes:
    picture = Image.fromarray(pixels)
    if size is not None:
        picture.thumbnail(size)
    written = io.BytesIO()
    picture.save(written, "PNG", compress_level=1)
    return written.getvalue()
