"""What certiseg says on fixed input about measures, threats and the truth: the further parts of the reference."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

RANGE = 0.9


def wider_parts(network: Any, image: np.ndarray, tree: Any) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Bounds and their radii, images and certificates along threats, calibrated sets, and what is refused."""
    import certiseg as cs
    from certiseg import threats

    model = cs.Segmenter(network, num_classes=6, class_names=tree.classes)
    l2 = _measured(model, image, tree, sigma=0.2)
    fog = _measured(model, image, tree, sigma=0.05, threat=threats.fog(0.5), up_to=RANGE)
    for name, votes in (("bounds", l2), ("bounds along fog", fog)):
        yield name, lambda v=votes: cs.bound(v, alpha=0.2).lower
        yield f"radii of {name}", lambda v=votes: cs.bound(v, alpha=0.2).radii
        yield f"values of {name}", lambda v=votes: v.values
        yield f"range of {name}", lambda v=votes: str(cs.bound(v, alpha=0.2).covered)
    yield "certificate along fog", lambda: cs.certify(fog, tree, method="nested", alpha=0.5).vertex
    yield "beside l2", lambda: str(threats.fog(0.5).range(0.75, 0.02, 0.05))
    yield "certified at a lower tau", lambda: str(cs.certify(fog, tree, tau=0.6, alpha=0.5).range)
    yield "asked later", lambda: cs.bound(l2.ask(cs.measures.kept(), hierarchy=tree), alpha=0.2).claim()
    for made in (threats.fog(1.0), threats.flat(1.0), threats.blur(1.0), threats.gamma(1.0)):
        yield f"moved by {made.name}", lambda t=made: t.apply(image, 0.7)
        yield f"range of {made.name}", lambda t=made: str(t.range(0.75))
    yield "values entered twice", lambda: _twice(l2)
    yield "values left out", lambda: _left_out(l2)
    yield "bounds of stopped values", lambda: _stopped(model, image, tree)
    yield from _truth_parts(model, image, tree)


def _measured(model: Any, image: np.ndarray, tree: Any, **options: Any) -> Any:
    import certiseg as cs
    from certiseg import measures

    region = np.zeros(image.shape[:2], bool)
    region[4:20, 3:29] = True
    asked = [measures.kept(), measures.overlap(region, "ab"), measures.free(region, "cd"), measures.share(region, "ab")]
    asked.append(measures.objects("ab", "cd", least=20))
    return cs.sample(model, image, n0=4, n=60, hierarchy=tree, measures=asked, keep_maps=True, **options)


def _twice(votes: Any) -> str:
    votes.record.emptied().add([0], votes.record.label_map(0)[None])
    again = votes.record.emptied()
    for _ in range(2):
        again.add([0], votes.record.label_map(0)[None])
    return "entered twice"


def _left_out(votes: Any) -> str:
    record = votes.record.ask(votes.measures)
    record.numerators[3], record.denominators[3] = 0, 0
    record.require_draws(np.ones(votes.n, bool))
    return "left out"


def _stopped(model: Any, image: np.ndarray, tree: Any) -> np.ndarray:
    import certiseg as cs

    asked = {"measures": [cs.measures.kept()], "hierarchy": tree, "stop": lambda _: True, "stop_every": 40}
    found: np.ndarray = cs.bound(cs.sample(model, image, sigma=0.2, n0=4, n=60, **asked)).lower
    return found


def _truth_parts(model: Any, image: np.ndarray, tree: Any) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Thresholds of every kind of promise, and sets by noise that is given and by noise that is fresh."""
    import certiseg as cs
    from certiseg import threats

    rng = np.random.default_rng(5)
    images = [
        np.clip(image.astype(int) + rng.integers(-40, 40, image.shape), 0, 255).astype(np.uint8) for _ in range(24)
    ]
    labels = [rng.integers(0, 6, image.shape[:2]) for _ in images]
    for name, options in {
        "calibrated": {"risk": 0.2},
        "calibrated for a radius": {"risk": 0.2, "radius": 0.1},
        "calibrated adaptive": {"risk": 0.2, "score": "adaptive"},
        "calibrated along fog": {"sigma": 0.0, "risk": 0.3, "threat": threats.fog(0.5), "up_to": 0.4, "anchors": 2},
    }.items():
        asked = {"sigma": 0.2, "pixels": 0.5, "seed": 3, "hierarchy": tree, **options}
        yield name, lambda a=asked: _sets(cs.calibrate(model, images, labels, **a), model, image)
    yield "an image twice", lambda: str(cs.calibrate(model, images[:1] * 9, labels[:1] * 9, sigma=0.2, risk=0.2).images)
    yield "noise of a promise", lambda: _fresh(cs.calibrate(model, images, labels, sigma=0.2, risk=0.2), model, image)
    made = cs.calibrate(model, images, labels, sigma=0.2, risk=(0.2, 0.3), pixels=0.5, seed=3, hierarchy=tree)
    yield "sets of a calibration image", lambda: made.answer(model, images[0]).role
    yield "sets of another level", lambda: made.answer(model, image, risk=0.3).role
    yield "sets of a given seed", lambda: made.answer(model, image, 7).role
    yield "coverage on a calibration image", lambda: _covered(made, model, images[0], labels[0])
    yield "a calibration", lambda: _checked(lambda place: _saved(made, place))
    yield "a calibration with other thresholds", lambda: _checked(lambda place: _lying(made, place))
    yield (
        "sets without their classes",
        lambda: _checked(lambda place: _emptied(made.answer(model, image, 7), place), model=model, image=image),
    )
    yield "a label that says more", lambda: _forged_bounds(model, image, tree)


def _covered(calibration: Any, model: Any, image: np.ndarray, label: np.ndarray) -> str:
    from certiseg.truth.evaluate import evaluate_sets

    return str(evaluate_sets(calibration, model, [("image", image, label)])[0].images)


def _checked(write: Callable[[Any], Any], **asked: Any) -> str:
    """What the checker says about a file, every hash of which is right."""
    import tempfile
    from pathlib import Path

    from certiseg.truth.verify import verify_truth

    with tempfile.TemporaryDirectory() as place:
        outcome = verify_truth(write(Path(place)), **asked)
    return str([(check.name, check.passed) for check in outcome.checks])


def _saved(calibration: Any, place: Any) -> Any:
    calibration.save(place / "c.json")
    return place / "c.json"


def _lying(calibration: Any, place: Any) -> Any:
    import json

    from certiseg.runs.sealed import write_sealed

    content = json.loads(json.dumps(calibration.content()))
    content["thresholds"][0]["thresholds"] = [1.0] * 6
    write_sealed(place / "c.json", "calibration", content)
    return place / "c.json"


def _emptied(sets: Any, place: Any) -> Any:
    from dataclasses import replace

    replace(sets, packed=np.zeros_like(sets.packed)).save(place / "s.truth.npz")
    return place / "s.truth.npz"


def _forged_bounds(model: Any, image: np.ndarray, tree: Any) -> str:
    """An area under a wrong name: its members are all classes."""
    import tempfile
    from dataclasses import replace
    from pathlib import Path

    import certiseg as cs

    drawn = {"sigma": 0.2, "n0": 4, "n": 60, "hierarchy": tree, "seed": 3}
    area = cs.sample(model, image, measures=[cs.measures.area("ab")], **drawn).measures[0]
    votes = cs.sample(model, image, measures=[replace(area, members=np.ones_like(area.members))], **drawn)
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "bounds.npz"
        cs.bound(votes, alpha=0.2).save(path)
        return str(cs.verify(path, model=model, image=image, hierarchy=tree).passed)


def _sets(calibration: Any, model: Any, image: np.ndarray) -> np.ndarray:
    found = calibration.sets(model, image, 7).astype(np.int64)
    return np.concatenate(
        [found, np.broadcast_to(calibration.scores.astype(np.int64).T[:, None], (*found.shape[:2], 24))], 2
    )


def _fresh(calibration: Any, model: Any, image: np.ndarray) -> str:
    return f"{len({calibration.answer(model, image).seed for _ in range(2)})} seeds"
