"""The images of a run one by one: their scores, and how much a method gains over segcertify on each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from certiseg.runs.pooling import BASELINE, ScoredRun
from certiseg.runs.settings import Setting
from certiseg.scores import pooled_scores


@dataclass(frozen=True)
class ImageScores:
    """The scores of one image, by method; every image of a run has a pixel to score."""

    name: str
    of: dict[str, dict[str, float]]
    """Method -> score -> value."""

    def gain(self, method: str) -> float:
        """CIG of the method minus that of segcertify; 0 where the run has no segcertify."""
        return self.of[method]["cig"] - self.of[BASELINE]["cig"] if BASELINE in self.of else 0.0

    def words(self, method: str) -> str:
        """CIG, and how much is certified and right, certified and wrong, and abstained."""
        return scores_in_words(self.of[method])


def image_scores(run: ScoredRun, setting: Setting) -> list[ImageScores]:
    """Every image of the run at one setting, in the run's order."""
    found = [ImageScores(name, {}) for name in run.images]
    for method in run.manifest.methods:
        scores = pooled_scores(run.sums(method, setting).each)
        for place, image in enumerate(found):
            image.of[method] = {name: float(values[place]) for name, values in scores.items()}
    return found


def scores_in_words(scores: Mapping[str, float]) -> str:
    """The scores of one map as its title shows them, right and wrong side by side."""
    return (
        f"CIG {scores['cig']:.3f}, right {scores['accuracy']:.1%}, wrong {scores['wrong']:.1%}, "
        f"abstained {scores['abstain']:.1%}"
    )


def by_gain(scores: list[ImageScores], method: str) -> list[ImageScores]:
    """The images by the gain of a method, largest first; ties as listed."""
    return sorted(scores, key=lambda image: -image.gain(method))
