"""A certificate: what is proven about each pixel of one image, with its votes, its settings and its claim."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from certiseg.archive import Archive, read_archive, write_archive
from certiseg.chains import chains_of, count_test, covered_by
from certiseg.claims import claim
from certiseg.errors import InputError
from certiseg.hierarchy import ABSTAIN, ROOT, Hierarchy, hierarchy_from_json
from certiseg.images import ImageLike, read_image, shown
from certiseg.noise import require_image
from certiseg.render.pictures import labelled_map
from certiseg.settings import CHAIN_METHODS, CertificateSettings, from_stored, stored
from certiseg.stats.radius import agree_with_test
from certiseg.threats.anchors import Covered, reach_table
from certiseg.votes import Votes, load_votes
from certiseg.words import confidence

if TYPE_CHECKING:
    from PIL.Image import Image

FORMAT_VERSION = 1


class LabelShare(NamedTuple):
    """A certified label and how much of the image has it."""

    text: str
    """A vertex, or the classes of a set joined by "or"; "abstained" for pixels without a certificate."""
    vertex: int
    share: float
    """Of the tested pixels."""


@dataclass(frozen=True, eq=False)
class Certificate:
    """The certified label of every pixel; see `claim()` for what is promised about them, and with which probability."""

    vertex: NDArray[np.int16]
    """(H, W): the certified vertex; ABSTAIN where nothing is certified or outside the region. For sets the lowest
    vertex that covers the set, ROOT where only the omitted root does."""
    level: NDArray[np.uint8]
    """(H, W): the assigned hierarchy level; nested counts its abstentions at L-1; 0 for sets."""
    set_size: NDArray[np.uint8]
    """(H, W): number of classes in the certified set, 0 where abstained; only `sets` gives others than 0."""
    radius: float
    """R, the l2 size of perturbation that is covered, in [0, 1] pixel units; with a threat, beside it."""
    critical: int | None
    """Votes that a label needed, out of n; None where not even n of n would have been enough."""
    settings: CertificateSettings
    hierarchy: Hierarchy
    votes: Votes
    region: NDArray[np.bool_] | None = None
    """(H, W): the pixels tested together, where not the whole image."""

    def __repr__(self) -> str:
        height, width = self.vertex.shape
        return (
            f"Certificate({self.settings.method}, {height} x {width} pixels, hierarchy {self.hierarchy.name}, "
            f"{self.extent}, {1 - self.abstain_rate:.1%} certified)"
        )

    @property
    def covered(self) -> Covered:
        """The parameters of the threat that are covered, and the anchors of the votes that cover them."""
        return covered_by(self.votes, self.settings)

    @property
    def range(self) -> tuple[float, float]:
        """The least and the largest parameter t of the threat that are covered; for l2, (0, R)."""
        return self.covered.low, self.covered.high

    @property
    def extent(self) -> str:
        """What is covered, in a few words: R = 0.1686, or fog of density up to 29 %."""
        return self.votes.threat.extent(self.range[1], self.radius)

    @property
    def tested(self) -> int:
        """N, the number of pixels tested together."""
        return self.vertex.size if self.region is None else int(self.region.sum())

    @property
    def abstained(self) -> NDArray[np.bool_]:
        """(H, W): tested pixels without a certificate."""
        missing: NDArray[np.bool_] = self.vertex == ABSTAIN
        return missing if self.region is None else missing & self.region

    @property
    def abstain_rate(self) -> float:
        """Share of the tested pixels without a certificate."""
        return float(self.abstained.sum()) / self.tested

    @cached_property
    def radius_map(self) -> NDArray[np.float64]:
        """(H, W): R_i, the radius proven for each pixel's vertex or set; 0 where none is, NaN outside the region.

        With a threat: the end of the range that is proven for the pixel, at the certificate's l2 radius.
        R_i = sigma * Phi^-1(lower confidence bound of the share). For an abstained pixel it speaks of the coarsest
        vertex or largest set that was tested. `radius_map_statement` says how far it is part of the certificate.
        """
        inside = flat_mask(self.region, self.votes.size)
        chains = chains_of(self.votes, self.hierarchy, self.settings, inside)
        links = len(chains.hits)
        last = np.zeros(chains.hits.shape[1], np.intp)
        if links > 1:
            passed = 0 if self.critical is None else (chains.hits >= self.critical).sum(axis=0)
            last = np.minimum(links - passed + last, links - 1)
        hits = np.take_along_axis(chains.hits, last[None], axis=0)[0]
        test = count_test(self.votes, self.settings)
        votes, found = self.votes, self.covered
        table = reach_table(
            test,
            votes.threat,
            anchors=tuple(votes.anchors[k] for k in found.used),
            radius=self.settings.radius or 0.0,
            sigma=votes.deviation,
            error=self._radius_error,
        )
        if self.radius_is_joint:
            table = agree_with_test(table, radius=found.high, critical=self.critical)
        values = np.full(self.vertex.size, np.nan)
        values[... if inside is None else inside] = table[hits]
        return values.reshape(self.votes.size)

    @property
    def radius_is_joint(self) -> bool:
        """Whether the radius map says the same as the certificate: one label per pixel, and bonferroni."""
        return self.settings.method not in CHAIN_METHODS and self.settings.correction == "bonferroni"

    @property
    def _radius_error(self) -> float:
        """Error spent on each pixel's radius: alpha / N, or alpha / (N L) where L labels per pixel were tested."""
        links = {"nested": self.hierarchy.num_levels, "sets": self.settings.max_set or 1}.get(self.settings.method, 1)
        return self.settings.alpha / (self.tested * links)

    @property
    def radius_map_statement(self) -> str:
        """What the radius map promises, and whether together with the certificate."""
        what, end = ("radius", "R") if self.votes.threat.law == "none" else ("range", "the end of the range")
        promise = (
            f"With probability at least {confidence(self.settings.alpha)}, every {what} of the map holds, for all "
            f"{self.tested:,} pixels and all tau at once (error {self._radius_error:.3g} each)"
        )
        if self.radius_is_joint:
            return f"{promise}; it is the same statement as the certificate, so both hold together."
        return f"{promise}; it is a statement of its own: it may lie below {end}, and alpha must be split to have both."

    @property
    def agreement(self) -> float | None:
        """Share of the certified pixels whose noise-free prediction lies under the certified label.

        None where the votes hold no such prediction, or nothing is certified. A network that noise destroys answers
        one class everywhere and is certified everywhere: only this number tells.
        """
        certified = self.vertex != ABSTAIN
        return None if self.agrees is None or not certified.any() else float(self.agrees[certified].mean())

    @cached_property
    def agrees(self) -> NDArray[np.bool_] | None:
        """(H, W): certified pixels whose noise-free prediction lies under the label; None where it is not known."""
        return None if self.votes.prediction is None else self.holds(self.votes.prediction)

    def holds(self, classes: NDArray[np.integer]) -> NDArray[np.bool_]:
        """(H, W): certified pixels whose class in a given map (H, W) lies under the label, or in the set."""
        if self.settings.method == "sets":
            place = np.arange(self.votes.max_set) < self.set_size[..., None]
            return np.asarray(((self.votes.ranking == classes[..., None]) & place).any(axis=-1))
        return np.asarray(self.hierarchy.members[np.maximum(self.vertex, 0), classes] & (self.vertex != ABSTAIN))

    def labels_at(self, row: int, column: int) -> tuple[str, ...]:
        """Names of what is certified at a pixel: one vertex, or the classes of the set; empty where abstained."""
        if self.set_size[row, column]:
            members = self.votes.ranking[row, column, : self.set_size[row, column]]
            return tuple(self.hierarchy.vertices[int(member)] for member in members)
        vertex = int(self.vertex[row, column])
        return () if vertex == ABSTAIN else (self.hierarchy.vertices[vertex],)

    def label_shares(self) -> list[LabelShare]:
        """Every certified label with its share of the tested pixels, the most frequent first; abstentions come last."""
        names = self.hierarchy.vertices
        if self.settings.method == "sets":
            chosen = self.set_size > 0
            members = self.votes.ranking[chosen].astype(np.int64)
            members[np.arange(members.shape[1]) >= self.set_size[chosen][:, None]] = -1
            rows = np.column_stack([self.vertex[chosen], np.sort(members, axis=1)])
            distinct, counts = np.unique(rows, axis=0, return_counts=True)
        else:
            vertices, counts = np.unique(self.vertex[self.vertex >= 0], return_counts=True)
            distinct = np.column_stack([vertices, vertices])
        shares = [
            LabelShare(" or ".join(names[c] for c in classes if c >= 0), vertex, count / self.tested)
            for (vertex, *classes), count in zip(distinct.tolist(), counts.tolist(), strict=True)
        ]
        shares.sort(key=lambda label: -label.share)
        return [*shares, LabelShare("abstained", ABSTAIN, self.abstain_rate)]

    def detail_shares(self) -> dict[str, float]:
        """Share of the tested pixels by level, or by number of classes for sets; abstentions come last."""
        sets = self.settings.method == "sets"
        fineness = self.set_size[self.set_size > 0] if sets else self.level[self.vertex >= 0]
        shares = {}
        for value, count in zip(*np.unique(fineness, return_counts=True), strict=True):
            text = f"{value} class{'es' if value > 1 else ''}" if sets else f"level {value}"
            shares[text] = int(count) / self.tested
        return {**shares, "abstained": self.abstain_rate}

    def plot(self) -> Image:
        """A picture of the certified labels with a legend: abstentions are white, pixels outside the region grey."""
        return labelled_map(
            self.vertex, self.hierarchy, self.label_shares(), region=self.region, agreement=self.agreement
        )

    def overlay(self, image: ImageLike, *, opacity: float = 0.65, channels: Sequence[int] = ()) -> Image:
        """The certified labels laid over the image (a path, a PIL image or an array), which no certificate keeps.

        Another image than the certified one is refused.

        channels: which of them (from 1) are shown, three or one; by default the first three, or the first.
        """
        picture = self.votes.open(image)
        require_image(picture.pixels, self.votes.image_key, "image")
        rgb = picture.pixels if picture.pixels.shape[2] == 3 and not channels else read_image(shown(picture, channels))
        under = (rgb, opacity)
        return labelled_map(
            *(self.vertex, self.hierarchy, self.label_shares()),
            region=self.region,
            under=under,
            agreement=self.agreement,
        )

    def within(self, vertex: str | int) -> NDArray[np.bool_]:
        """(H, W): pixels certified to be under a class or vertex."""
        return self._certified_in(self.hierarchy.members[self.hierarchy.id(vertex)])

    def excludes(self, vertex: str | int) -> NDArray[np.bool_]:
        """(H, W): pixels certified not to be under a class or vertex."""
        return self._certified_in(~self.hierarchy.members[self.hierarchy.id(vertex)])

    def claim(self) -> str:
        """The guarantee of this certificate, in plain words."""
        return claim(
            self.settings,
            self.votes,
            radius=self.radius,
            critical=self.critical,
            tested=self.tested,
            whole=self.region is None,
            covered=self.covered,
        )

    def save(self, path: str | Path, *, votes_path: str | None = None) -> None:
        """Write the certificate to one file that `certiseg verify` can check.

        The votes are stored inside, unless votes_path names a file of them beside the certificate, which may hold
        more draws than the certificate used.
        """
        meta: dict[str, Any] = {
            "settings": stored(self.settings),
            "hierarchy": self.hierarchy.as_dict(),
            "radius": self.radius,
            "critical": self.critical,
            "votes_digest": self.votes.digest(),
            "votes_path": votes_path,
            "votes_n": self.votes.n,
        }
        arrays: dict[str, NDArray[Any]] = {"vertex": self.vertex, "level": self.level, "set_size": self.set_size}
        if self.votes.threat.law != "none":
            meta["range"] = list(self.range)
        if self.region is not None:
            arrays["region"] = self.region
        if votes_path is None:
            meta["votes"], votes_arrays = self.votes.pack()
            arrays |= {f"votes.{name}": array for name, array in votes_arrays.items()}
        write_archive(path, kind="certificate", version=FORMAT_VERSION, meta=meta, arrays=arrays)

    def _certified_in(self, classes: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Certified pixels whose label holds only the given classes."""
        if self.settings.method == "sets":
            position = np.arange(self.votes.max_set)
            outside = ~classes[self.votes.ranking] & (position < self.set_size[..., None])
            held: NDArray[np.bool_] = (self.set_size > 0) & ~outside.any(axis=-1)
            return held
        inside: NDArray[np.bool_] = np.logical_not((self.hierarchy.members & ~classes).any(axis=1))
        return np.where(self.vertex >= 0, inside[np.maximum(self.vertex, 0)], False)


def load_certificate(path: str | Path) -> Certificate:
    """Read a certificate. Reading is not checking: `certiseg verify` recomputes it."""
    archive = read_archive(path, kind="certificate", version=FORMAT_VERSION)
    try:
        votes = votes_beside(archive, Path(path))
        if votes.digest() != archive.meta["votes_digest"]:
            raise InputError(f"{path}: its votes must be those it was computed from, but their digest differs")
        settings = from_stored(CertificateSettings, {"radius": None, **archive.meta["settings"]})
        hierarchy = hierarchy_from_json(archive.meta["hierarchy"], source=str(path))
        arrays = {name: archive.arrays[name] for name in ("vertex", "level", "set_size")}
        region = archive.arrays.get("region")
        if any(array.shape != votes.size for array in (*arrays.values(), *([] if region is None else [region]))):
            raise InputError(f"{path}: certificate and votes must have the same size")
        most = {"vertex": len(hierarchy.vertices), "level": hierarchy.num_levels, "set_size": votes.max_set + 1}
        for name, array in arrays.items():
            least = ROOT if name == "vertex" else 0
            if array.dtype.kind not in "iu" or array.min() < least or array.max() >= most[name]:
                raise InputError(f"{path}: {name} must hold whole numbers in {least}..{most[name] - 1}")
        return Certificate(
            **arrays,
            radius=float(archive.meta["radius"]),
            critical=archive.meta["critical"],
            settings=settings,
            hierarchy=hierarchy,
            votes=votes,
            region=region,
        )
    except InputError as error:
        raise InputError(f"{error}" if str(path) in f"{error}" else f"{path}: {error}") from None
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise InputError(f"{path}: must hold a certificate, but cannot be read: {error}") from None


def votes_beside(archive: Archive, path: Path) -> Votes:
    """The votes stored in a certificate, or in the file beside it that it names."""
    if archive.meta["votes_path"] is None:
        arrays = {name.removeprefix("votes."): a for name, a in archive.arrays.items() if name.startswith("votes.")}
        return Votes.unpack(Archive("votes", archive.meta["votes"], arrays), str(path))
    name = Path(archive.meta["votes_path"])
    if name.is_absolute() or ".." in name.parts[1:] or name.parts.count("..") > 1:
        raise InputError(f"{path}: `votes_path` must stay near the certificate, got {str(name)!r}")
    return load_votes(path.parent / name).first(archive.meta["votes_n"])


def flat_mask(region: NDArray[np.bool_] | None, size: tuple[int, int]) -> NDArray[np.bool_] | None:
    """A region as a flat mask, None for the whole image."""
    if region is None:
        return None
    if region.dtype != bool or region.shape != size:
        raise InputError(f"region must be a boolean mask of shape {size}, got {region.dtype} {region.shape}")
    if not region.any():
        raise InputError("region must hold at least one pixel")
    return region.reshape(-1)
