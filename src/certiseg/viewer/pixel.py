"""All that is known about one pixel: its votes along every chain, and what is certified, or why nothing is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from certiseg.analysis.drawing import method_name
from certiseg.errors import InputError
from certiseg.hierarchy import VOID
from certiseg.viewer.choice import method_text
from certiseg.viewer.reasons import REASONS, draws_needed

if TYPE_CHECKING:
    from certiseg.certificate import Certificate

_MOST_CLASSES = 5


def describe(
    certificate: Certificate, row: int, column: int, *, truth: NDArray[Any] | None, prediction: NDArray[Any] | None
) -> dict[str, Any]:
    """What the page shows when a pixel is pointed at."""
    votes, tree = certificate.votes, certificate.hierarchy
    height, width = votes.size
    if not (0 <= row < height and 0 <= column < width):
        raise InputError(f"row and column must lie in {height} x {width}, got {row} and {column}")
    counts = votes.counts[row, column]
    order = np.argsort(-counts.astype(np.int64), kind="stable")[:_MOST_CLASSES]
    radius = float(certificate.radius_map[row, column])
    return {
        "name": method_name(method_text(certificate.settings)),
        "row": row,
        "column": column,
        "n": votes.n,
        "critical": certificate.critical,
        "candidate": tree.vertices[int(votes.candidate[row, column])],
        "gap": float(votes.gap[row, column]),
        "path": path_of(certificate, row, column),
        "sets": sets_of(certificate, row, column),
        "votes": [{"name": tree.vertices[int(c)], "votes": int(counts[c])} for c in order if counts[c]],
        "certified": list(certificate.labels_at(row, column)),
        "radius": None if np.isnan(radius) else radius,
        "truth": _named(truth, row, column, tree.classes),
        "prediction": _named(prediction, row, column, tree.classes),
        "why": why(certificate, row, column),
    }


def path_of(certificate: Certificate, row: int, column: int) -> list[dict[str, Any]]:
    """The candidate's path to the root: each distinct vertex with the levels it stands for and its votes."""
    votes, tree = certificate.votes, certificate.hierarchy
    counts = _counts(certificate, row, column)
    path: list[dict[str, Any]] = []
    for level, vertex in enumerate(tree.ancestors[int(votes.candidate[row, column])]):
        hits = int(counts[:, tree.members[vertex]].sum(axis=1).min())
        name = tree.vertices[int(vertex)]
        if path and path[-1]["name"] == name:
            path[-1]["last_level"] = level
        else:
            path.append({"name": name, "vertex": int(vertex), "level": level, "last_level": level, "votes": hits})
    return [{**link, "passes": _passes(certificate, link["votes"])} for link in path]


def _counts(certificate: Certificate, row: int, column: int) -> NDArray[np.int64]:
    """(anchors, C): the votes of a pixel at every anchor that the certificate rests on; the worst one decides."""
    apart = certificate.votes.by_anchor
    return np.array([apart[k].counts[row, column] for k in certificate.covered.used], np.int64)


def sets_of(certificate: Certificate, row: int, column: int) -> list[dict[str, Any]]:
    """The best ranked class, the two best, ..., with their votes."""
    votes, tree = certificate.votes, certificate.hierarchy
    ranking = votes.ranking[row, column].astype(np.intp)
    hits = np.cumsum(_counts(certificate, row, column)[:, ranking], axis=1).min(axis=0)
    names = [tree.vertices[int(member)] for member in ranking]
    return [
        {"size": size, "added": names[size - 1], "votes": int(k), "passes": _passes(certificate, int(k))}
        for size, k in enumerate(hits, start=1)
    ]


def why(certificate: Certificate, row: int, column: int) -> str:
    """In one sentence: what is certified with which votes, or what it fell short of and what would do."""
    votes, settings, n = certificate.votes, certificate.settings, certificate.votes.n
    names = certificate.labels_at(row, column)
    label, hits = _tested(certificate, row, column)
    if certificate.region is not None and not certificate.region[row, column]:
        return "outside the region that was tested"
    if names:
        return f"certified: {' or '.join(names)}, {hits} of {n} votes, {certificate.critical} needed"
    if certificate.critical is None:
        return f"nothing is certified: not even {n} of {n} votes would be enough"
    sentence = f"{label}: {hits} of {n} votes, {certificate.critical} needed"
    level = int(certificate.level[row, column])
    if settings.method not in ("nested", "sets"):
        coarser = [link for link in path_of(certificate, row, column) if link["level"] > level]
        sentence += "".join(f"; at level {link['level']} ({link['name']}): {link['votes']}" for link in coarser)
    longer = [link for link in sets_of(certificate, row, column) if link["passes"]]
    if longer:
        return f"{sentence}; a set of {longer[0]['size']} classes: {longer[0]['votes']}"
    if any(link["passes"] for link in path_of(certificate, row, column)):
        return sentence
    draws = draws_needed(certificate, hits)
    if draws is None:
        return f"{sentence}; {REASONS[-1].words}" if hits <= settings.tau * votes.n else f"{sentence}; no n would do"
    return f"{sentence}; with about {draws:,} draws it would pass if the share stays"


def _tested(certificate: Certificate, row: int, column: int) -> tuple[str, int]:
    """The certified label, or the broadest that was tested, and its votes."""
    if certificate.settings.method == "sets":
        sets = sets_of(certificate, row, column)
        size = int(certificate.set_size[row, column]) or (certificate.settings.max_set or 1)
        return f"the {size} best classes", sets[size - 1]["votes"]
    level = int(certificate.level[row, column])
    link = next(link for link in path_of(certificate, row, column) if link["level"] <= level <= link["last_level"])
    return link["name"], link["votes"]


def _passes(certificate: Certificate, hits: int) -> bool:
    return certificate.critical is not None and hits >= certificate.critical


def _named(label: NDArray[Any] | None, row: int, column: int, classes: tuple[str, ...]) -> str | None:
    if label is None:
        return None
    value = int(label[row, column])
    return "void" if value == VOID else classes[value]
