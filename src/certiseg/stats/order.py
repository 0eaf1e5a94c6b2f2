"""The certified bound of a measure: the c-th largest of its n values, c the critical count.

For fixed t the values >= t are Binomial(n, P(m >= t)), and the nulls "P(m >= t) <= tau" are nested in t. Let t0 be the
least t whose null is true, or the limit of such. A bound above it means that c values reach t0, which has probability
<= significance. So the bound is read off the data and costs no alpha: it is the order-statistic bound of a quantile.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def order_bounds(values: NDArray[np.float64], critical: int | None) -> NDArray[np.float64]:
    """(M,): the critical-th largest of the values (n, M) of each measure, 0 where no count is enough."""
    n, measures = values.shape
    if critical is None:
        return np.zeros(measures)
    return np.asarray(np.partition(values, n - critical, axis=0)[n - critical], np.float64)


def hits_above(values: NDArray[np.float64], levels: tuple[float, ...]) -> NDArray[np.intp]:
    """(M, L): how many of the values (n, M) of each measure reach each level."""
    return np.asarray((values[:, :, None] >= np.array(levels)).sum(axis=0))
