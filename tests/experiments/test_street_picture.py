"""The picture of the README: objects with their bounds, labels that hold, and what is asked wrongly."""

import numpy as np
import pytest

import certiseg as cs
from certiseg import measures
from certiseg.models.synthetic import synthetic_scene
from experiments.street_picture import LEAST, _objects, _row, main


def test_objects_are_named_with_their_bounds_and_the_row_holds_all():
    model, tree = synthetic_scene(), cs.load_hierarchy("camvid")
    asked = [measures.kept(), measures.objects(*tree.things, "Building", least=20)]
    votes = cs.sample(model, model.image, sigma=0.25, n=100, hierarchy=tree, measures=asked)
    bounds = cs.bound(votes, tau=0.75, alpha=0.001)
    shares = [value for m, value in zip(bounds.measures, bounds.lower, strict=True) if m.kind == "share"]
    texts = [text for _, text in _objects(bounds)]
    assert texts
    assert [text.split()[-2] for text in texts if text != "?"] == [
        str(int(100 * value)) for value in shares if value >= LEAST
    ]
    height, width = votes.size
    picture = _row(np.asarray(model.image), votes, "up to")
    assert picture.width == 2 * width + 12 + 230
    assert picture.height > height


def test_a_scene_that_is_not_there_is_one_sentence(tmp_path):
    with pytest.raises(cs.InputError, match="--scene must be in"):
        main(["--scene", "99", "--out", str(tmp_path / "x.png")])
