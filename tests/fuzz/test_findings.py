"""What the campaign found, each as a test of its own."""

from dataclasses import replace

import numpy as np
import pytest

import certiseg as cs
from tests.conftest import random_votes


@pytest.mark.parametrize("dtype", ["S3", "f8", "M8[s]"])
def test_snapshots_of_votes_must_be_whole_numbers(dtype):
    votes = random_votes(0, num_classes=3, n=50, size=(2, 3))
    odd = np.zeros(votes.counts.shape).astype(dtype)
    with pytest.raises(cs.InputError, match="add up"):
        replace(votes, snapshots={20: odd})
