"""What stopping early keeps of the pixels that n = 1000 certifies, on the image of `end_to_end`."""

from __future__ import annotations

import certiseg as cs
from benchmarks.end_to_end import MOST, N0, SHARE, stopped_votes, the_image
from benchmarks.measure import Figure
from benchmarks.models import compact
from certiseg.models.backends import with_backend


def measure() -> list[Figure]:
    """The same draws twice: stopped, by the anytime test, and all of them, by the fixed one."""
    (where, pixels), tree = the_image(), cs.load_hierarchy("camvid")
    model = with_backend(compact(), "auto", (pixels.shape[0], pixels.shape[1]))
    stopped = stopped_votes(model, pixels)
    whole = cs.sample(model, pixels, sigma=0.25, n0=N0, n=MOST)
    early = ~cs.certify(stopped, tree, method="nested", test="anytime").abstained
    wanted = ~cs.certify(whole, tree, method="nested").abstained
    name = f"end to end, compact 480x360, {where}: certified pixels of n = {MOST} kept at {SHARE:.0%} undecided"
    return [Figure(name, float((early & wanted).sum() / wanted.sum()), 0.97, ">=", note=f"n = {stopped.n}")]
