"""Six groups of classes that matter to safety, each in a colour that nearly everybody can tell from the others."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from certiseg.hierarchy import ROOT, Hierarchy, plain_name

SEVERAL = "several groups"
SEVERAL_COLOUR = (122, 122, 122)
"""Of a vertex whose classes belong to more than one group."""
COLOURS = ((255, 172, 12), (34, 25, 160), (200, 174, 250), (255, 216, 146), (55, 96, 0), (0, 96, 150))
"""Found by a search for six that stay far apart, also without red or green cones."""
ROADS = {
    "people, riders, animals": "person, pedestrian, child, human, rider, bicyclist, cyclist, motorcyclist, "
    "motorcyclescooter, cartluggagepram, animal",
    "vehicles": "car, suvpickuptruck, truck, bus, truck bus, train, tram, van, othermoving, motorcycle, bicycle, "
    "movable, my car, vehicle",
    "ground": "road, lanemkgsdriv, lanemkgsnondriv, lane markings, sidewalk, parkingblock, parking, roadshoulder, "
    "terrain",
    "built": "building, wall, bridge, tunnel, archway, fence, guard rail, pole, column pole, trafficcone, signsymbol, "
    "traffic sign, misc text, trafficlight, traffic light",
    "vegetation": "tree, vegetationmisc, vegetation",
    "sky": "sky",
}
"""Classes of street scenes, as CamVid and Cityscapes name them."""


@dataclass(frozen=True)
class Groups:
    """Groups of a hierarchy."""

    names: tuple[str, ...]
    of: NDArray[np.int64]
    """(vertices,): the group of every vertex, or len(names) where it belongs to several."""

    @property
    def colours(self) -> NDArray[np.uint8]:
        """(groups + 1, 3): a colour for every group, the last for several."""
        return np.array([*COLOURS[: len(self.names)], SEVERAL_COLOUR], np.uint8)


@lru_cache(maxsize=32)
def groups_of(hierarchy: Hierarchy) -> Groups | None:
    """The safety groups of street classes, otherwise the vertices under the root; None where those are too many."""
    found = _road_groups(hierarchy)
    if found is None:
        tops = hierarchy.children(ROOT)
        if len(tops) > len(COLOURS):
            return None
        names = tuple(hierarchy.vertices[top] for top in tops)
        found = names, hierarchy.members[list(tops)].argmax(axis=0)
    names, of_class = found
    members = [of_class[np.flatnonzero(row)] for row in hierarchy.members]
    of = [int(groups[0]) if (groups == groups[0]).all() else len(names) for groups in members]
    return Groups(names, np.array(of))


def _road_groups(hierarchy: Hierarchy) -> tuple[tuple[str, ...], NDArray[np.int64]] | None:
    known = {word: place for place, words in enumerate(ROADS.values()) for word in words.split(", ")}
    found = [known.get(plain_name(name)) for name in hierarchy.classes]
    return None if None in found else (tuple(ROADS), np.array(found, np.int64))
