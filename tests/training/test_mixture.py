"""Other data sets beside the main one: shares, classes by name, and labels that only name a set of classes."""

from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from certiseg.datasets.base import Sample
from certiseg.errors import InputError
from certiseg.hierarchy import VOID, load_hierarchy
from certiseg.training.batches import BatchPlan
from certiseg.training.config import TrainConfig
from certiseg.training.losses import segmentation_loss
from certiseg.training.mixture import MEANINGS, Mixture, open_mixture, parse_entry, settled

CAMVID = load_hierarchy("camvid").classes


@pytest.fixture
def frames(tmp_path: Path) -> Path:
    """Two comma10k frames whose columns are road, lane markings, undrivable, movable, my car."""
    for folder in ("images", "labels"):
        (tmp_path / folder).mkdir()
    for name in ("a", "b"):
        Image.fromarray(np.zeros((8, 10, 3), np.uint8)).save(tmp_path / "images" / f"{name}.png")
        label = np.tile(np.repeat(np.arange(5, dtype=np.uint8), 2), (8, 1))
        Image.fromarray(label).save(tmp_path / "labels" / f"{name}.png")
    return tmp_path


def test_a_coarse_label_costs_the_probability_of_its_set() -> None:
    generator = torch.Generator().manual_seed(1)
    logits = torch.randn(1, 4, 3, 5, generator=generator, requires_grad=True)
    labels = torch.randint(0, 6, (1, 3, 5), generator=generator)
    labels[0, 0, 0] = VOID
    sets = [(0, 2), (1, 2, 3)]
    chances = logits.softmax(1)[0]
    costs = []
    for row, column in np.ndindex(3, 5):
        label = int(labels[0, row, column])
        if label != VOID:
            members = [label] if label < 4 else list(sets[label - 4])
            costs.append(-chances[members, row, column].sum().log())
    expected = torch.stack(costs).mean()
    torch.testing.assert_close(segmentation_loss(logits, labels, sets=sets), expected)
    hardest = torch.stack(costs).topk(round(0.5 * len(costs))).values.mean()
    torch.testing.assert_close(segmentation_loss(logits, labels, sets=sets, ohem=0.5), hardest)


def test_sets_weigh_one_beside_weighted_classes() -> None:
    logits = torch.zeros(1, 2, 1, 2)
    labels = torch.tensor([[[0, 2]]])
    loss = segmentation_loss(logits, labels, sets=[(0, 1)], weights=torch.tensor([3.0, 5.0]))
    # Class 0 costs log 2 with weight 3; the set of both classes is certain and costs 0 with weight 1.
    assert loss.item() == pytest.approx(3 * np.log(2) / 4)


def test_comma10k_says_sets_of_camvid_classes(frames: Path) -> None:
    mixture = open_mixture([f"comma10k:0.25:{frames}"], classes=CAMVID)
    ((share, samples),) = mixture.others
    assert (share, len(samples)) == (0.25, 1)
    first_row = samples[0].label[0, ::2].tolist()
    assert first_row == [31, 32, 33, 34, VOID]
    names = [{CAMVID[index] for index in members} for members in mixture.sets]
    assert names == [set(members) for members in MEANINGS["comma10k"].values()]
    # The four sets contradict each other nowhere and leave no CamVid class out.
    assert sorted(name for members in names for name in members) == sorted(CAMVID)


def test_draws_follow_the_shares_and_the_seed() -> None:
    main = [Sample("main", np.zeros((8, 8, 3), np.uint8), np.zeros((8, 8), np.uint8))]
    others = [Sample(name, main[0].image, main[0].label) for name in ("other", "rare")]
    kinds = [(0.3, others[:1]), (0.1, others[1:])]
    plan = BatchPlan(TrainConfig(dataset="folder", root=None, out="unused"), main, kinds)
    names = [plan.sample_at(position).name for position in range(4000)]
    # Five standard errors of 4000 draws.
    for name, share in (("main", 0.6), ("other", 0.3), ("rare", 0.1)):
        assert names.count(name) / 4000 == pytest.approx(share, abs=5 * (share * (1 - share) / 4000) ** 0.5)
    assert names[:50] == [plan.sample_at(position).name for position in range(50)]


@pytest.mark.parametrize("entry", ["comma10k", "comma10k:0", "comma10k:1:x", "nothing:0.5", "streets:half"])
def test_entries_that_cannot_be_used(entry: str) -> None:
    with pytest.raises(InputError, match="NAME:SHARE"):
        parse_entry(entry)


def test_data_without_a_common_class_is_refused(frames: Path) -> None:
    with pytest.raises(InputError, match="share classes"):
        open_mixture([f"comma10k:0.5:{frames}"], classes=("sky", "ground"))


class Halves(torch.nn.Module):
    """Sure of class 0 on the left half, of class 2 in the upper right quarter, of nothing in the lower one."""

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        height, width = images.shape[-2:]
        logits = torch.zeros(len(images), 3, height, width)
        bright = images.mean(1)
        logits[:, 0][bright < 0.2] = 9.0
        logits[:, 2][(bright > 0.2) & (bright < 0.6)] = 9.0
        return logits


def test_a_teacher_settles_what_it_is_sure_of_inside_the_set() -> None:
    image = np.zeros((32, 32, 3), np.uint8)
    image[:16, 16:], image[16:, 16:] = 110, 255
    label = np.full((32, 32), 3, np.uint8)
    label[:, :4], label[-4:] = VOID, 1
    mixture = Mixture([(0.5, [Sample("a", image, label)])], [(0, 1)])
    ((share, (found,)),) = settled(mixture, Halves()).others
    expected = label.copy()
    expected[(label == 3) & (image[..., 0] == 0)] = 0  # sure, and in the set
    inner = np.ones((32, 32), bool)  # the sizes of the image blur its edges
    inner[13:19, 13:], inner[:, 13:19] = False, False
    assert share == 0.5
    np.testing.assert_array_equal(found.label[inner], expected[inner])
    assert (found.label == 0).sum() > 250
    np.testing.assert_array_equal(mixture.others[0][1][0].label, label)
    wider = Mixture(mixture.others, [(0, 1, 2)])
    assert (settled(wider, Halves()).others[0][1][0].label == 2).sum() > 100
