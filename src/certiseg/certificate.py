"""A certificate: what is proven about each pixel of one image, with its votes, its settings and its claim."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from certiseg.archive import Archive, read_archive, write_archive
from certiseg.errors import InputError
from certiseg.hierarchy import ABSTAIN, ROOT, Hierarchy, hierarchy_from_dict
from certiseg.stats.correction import Correction
from certiseg.votes import Votes, load_votes

FORMAT_VERSION = 1

Method = Literal["segcertify", "level", "adaptive", "nested", "sets"]
METHODS: tuple[Method, ...] = get_args(Method)
Test = Literal["fixed", "anytime"]


@dataclass(frozen=True)
class Settings:
    """How a certificate was computed from votes."""

    method: Method
    tau: float
    alpha: float
    correction: Correction = "bonferroni"
    k: int = 1
    """For kfwer: fewer than k false certifications."""
    test: Test = "fixed"
    thresholds: tuple[float, ...] | None = None
    """For adaptive: coarsest level first."""
    level: int | None = None
    """For the method `level`."""
    max_set: int | None = None
    """For sets: the longest set tried."""


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
    """R, the l2 size of perturbation that is covered, in [0, 1] pixel units."""
    critical: int | None
    """Votes that a label needed, out of n; None where not even n of n would have been enough."""
    settings: Settings
    hierarchy: Hierarchy
    votes: Votes
    region: NDArray[np.bool_] | None = None
    """(H, W): the pixels tested together, where not the whole image."""

    @property
    def tested(self) -> int:
        """N, the number of pixels tested together."""
        return self.vertex.size if self.region is None else int(self.region.sum())

    @property
    def abstained(self) -> NDArray[np.bool_]:
        """(H, W): tested pixels without a certificate."""
        missing = self.vertex == ABSTAIN
        return missing if self.region is None else missing & self.region

    @property
    def abstain_rate(self) -> float:
        """Share of the tested pixels without a certificate."""
        return float(self.abstained.sum()) / self.tested

    @cached_property
    def radius_map(self) -> NDArray[np.float64]:
        """(H, W): R_i, the radius proven for each pixel's vertex or set; 0 where none is, NaN outside the region.

        For an abstained pixel it speaks of the coarsest vertex or largest set that was tested. `radius_map_statement`
        says how far it is part of the certificate.
        """
        from certiseg.certify import radius_map

        return radius_map(self)

    @property
    def radius_map_statement(self) -> str:
        """What the radius map promises, and whether together with the certificate."""
        from certiseg.certify import radius_error, radius_is_joint

        promise = (
            f"With probability at least {1 - self.settings.alpha:g}, every radius of the map holds, for all "
            f"{self.tested:,} pixels and all tau at once (error {radius_error(self):.3g} each)"
        )
        if radius_is_joint(self):
            return f"{promise}; it is the same statement as the certificate, so both hold together."
        return f"{promise}; it is a statement of its own: it may lie below R, and alpha must be split to have both."

    def labels_at(self, row: int, column: int) -> tuple[str, ...]:
        """Names of what is certified at a pixel: one vertex, or the classes of the set; empty where abstained."""
        if self.set_size[row, column]:
            members = self.votes.ranking[row, column, : self.set_size[row, column]]
            return tuple(self.hierarchy.vertices[int(member)] for member in members)
        vertex = int(self.vertex[row, column])
        return () if vertex == ABSTAIN else (self.hierarchy.vertices[vertex],)

    def within(self, vertex: str | int) -> NDArray[np.bool_]:
        """(H, W): pixels certified to be under a class or vertex."""
        return self._certified_in(self.hierarchy.members[self.hierarchy.id(vertex)])

    def excludes(self, vertex: str | int) -> NDArray[np.bool_]:
        """(H, W): pixels certified not to be under a class or vertex."""
        return self._certified_in(~self.hierarchy.members[self.hierarchy.id(vertex)])

    def claim(self) -> str:
        """The guarantee of this certificate, in plain words."""
        from certiseg.claims import claim

        return claim(self)

    def save(self, path: str | Path, *, votes_path: str | None = None) -> None:
        """Write the certificate to one file that `certiseg verify` can check.

        The votes are stored inside, unless votes_path names a file of them beside the certificate, which may hold
        more draws than the certificate used.
        """
        meta: dict[str, Any] = {
            "settings": asdict(self.settings),
            "hierarchy": self.hierarchy.as_dict(),
            "radius": self.radius,
            "critical": self.critical,
            "votes_digest": self.votes.digest(),
            "votes_path": votes_path,
            "votes_n": self.votes.n,
        }
        arrays: dict[str, NDArray[Any]] = {"vertex": self.vertex, "level": self.level, "set_size": self.set_size}
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
            return (self.set_size > 0) & ~outside.any(axis=-1)
        inside: NDArray[np.bool_] = np.logical_not((self.hierarchy.members & ~classes).any(axis=1))
        return np.where(self.vertex >= 0, inside[np.maximum(self.vertex, 0)], False)


def load_certificate(path: str | Path) -> Certificate:
    """Read a certificate. Reading is not checking: `certiseg verify` recomputes it."""
    archive = read_archive(path, kind="certificate", version=FORMAT_VERSION)
    try:
        votes = votes_beside(archive, Path(path))
        if votes.digest() != archive.meta["votes_digest"]:
            raise InputError(f"{path}: its votes must be those it was computed from, but their digest differs")
        settings = _settings(archive.meta["settings"])
        hierarchy = hierarchy_from_dict(_with_int_levels(archive.meta["hierarchy"]), source=str(path))
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
    except InputError:
        raise
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise InputError(f"{path}: must hold a certificate, but {error} is missing or odd") from None


def votes_beside(archive: Archive, path: Path) -> Votes:
    """The votes stored in a certificate, or in the file beside it that it names."""
    if archive.meta["votes_path"] is None:
        stored = {name.removeprefix("votes."): a for name, a in archive.arrays.items() if name.startswith("votes.")}
        return Votes.unpack(Archive("votes", archive.meta["votes"], stored), str(path))
    name = Path(archive.meta["votes_path"])
    if name.is_absolute() or ".." in name.parts[1:] or name.parts.count("..") > 1:
        raise InputError(f"{path}: `votes_path` must stay near the certificate, got {str(name)!r}")
    return load_votes(path.parent / name).first(archive.meta["votes_n"])


def _settings(stored: Mapping[str, Any]) -> Settings:
    thresholds = stored["thresholds"]
    return Settings(**{**stored, "thresholds": None if thresholds is None else tuple(thresholds)})


def _with_int_levels(tree: Mapping[str, Any]) -> dict[str, Any]:
    """JSON turns the keys 1, 2, ... of the levels into text."""
    return {**tree, "levels": {int(level): vertices for level, vertices in tree["levels"].items()}}


__all__ = ["ABSTAIN", "METHODS", "ROOT", "Certificate", "Method", "Settings", "load_certificate"]
