"""Measures: numbers in [0, 1] read from one label map, asked about objects, areas and whole images.

from certiseg import measures
votes = cs.sample(model, image, sigma=0.25, hierarchy=hierarchy,
                  measures=[measures.kept(), measures.objects("vehicle", "human"), measures.free(lane, "human")])
print(cs.bound(votes).claim())
"""

from certiseg.measures.measure import Measure
from certiseg.measures.questions import (
    Question,
    accuracy,
    area,
    dice,
    free,
    kept,
    objects,
    overlap,
    share,
    steady,
)

__all__ = [
    "Measure",
    "Question",
    "accuracy",
    "area",
    "dice",
    "free",
    "kept",
    "objects",
    "overlap",
    "share",
    "steady",
]
