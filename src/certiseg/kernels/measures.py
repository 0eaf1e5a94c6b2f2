"""Loops over label maps for measures: hits inside regions, matches with a map of targets."""

from __future__ import annotations

from typing import Any

import numpy as np

from certiseg.kernels.threads import jit


@jit
def region_hits(labels: Any, runs: Any, offsets: Any, members: Any, hits: Any) -> None:
    """hits[d, p] = pixels of region p whose label in map d is a member.

    labels (D, N); region p is the runs offsets[p] .. offsets[p+1]-1, each a first and a last pixel (not included);
    members (P, C), 0 or 1.
    """
    for d in range(labels.shape[0]):
        row = labels[d]
        for p in range(members.shape[0]):
            member, total = members[p], np.int64(0)
            for r in range(offsets[p], offsets[p + 1]):
                part = row[runs[r, 0] : runs[r, 1]]
                for i in range(part.size):
                    total += np.int64(member[part[i]])
            hits[d, p] = total


@jit
def target_matches(labels: Any, targets: Any, table: Any, matches: Any) -> None:
    """matches[d] = pixels with table[target, label in map d]; labels (D, N), targets (N,), table (T, C), 0 or 1."""
    flat, width = table.reshape(-1), np.uint32(table.shape[1])
    for d in range(labels.shape[0]):
        row, total = labels[d], np.int64(0)
        for i in range(row.size):
            total += np.int64(flat[np.uint32(targets[i]) * width + np.uint32(row[i])])
        matches[d] = total
