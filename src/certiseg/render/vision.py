"""How far apart colours look: CIE76 distances as most people see them, and without red or green cones."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

VISIONS: dict[str, NDArray[np.float64]] = {
    "normal": np.eye(3),
    "protanopia": np.array(
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]
    ),
    "deuteranopia": np.array(
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]
    ),
}
"""Matrices over linear RGB (Machado, Oliveira and Fernandes, 2009, complete loss)."""
_TO_XYZ = np.array(
    [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750], [0.0193339, 0.1191920, 0.9503041]]
)
_WHITE = np.array([0.95047, 1.0, 1.08883])


def seen(colours: ArrayLike) -> NDArray[np.float64]:
    """(visions, ..., 3): CIELAB of RGB colours (..., 3) in 0..255, for each of VISIONS."""
    encoded = np.asarray(colours, np.float64) / 255
    linear = np.where(encoded <= 0.04045, encoded / 12.92, ((encoded + 0.055) / 1.055) ** 2.4)
    return np.stack([_lab((linear @ matrix.T).clip(0, 1)) for matrix in VISIONS.values()])


def distances(first: NDArray[np.float64], second: NDArray[np.float64]) -> NDArray[np.float64]:
    """(A, B): CIE76 distance of colours (visions, A, 3) and (visions, B, 3) to those who see it least."""
    apart: NDArray[np.float64] = np.linalg.norm(first[:, :, None] - second[:, None], axis=-1).min(axis=0)
    return apart


def _lab(linear: NDArray[np.float64]) -> NDArray[np.float64]:
    xyz = linear @ _TO_XYZ.T / _WHITE
    f = np.where(xyz > 216 / 24389, np.cbrt(xyz), (24389 / 27 * xyz + 16) / 116)
    x, y, z = np.moveaxis(f, -1, 0)
    return np.stack([116 * y - 16, 500 * (x - y), 200 * (y - z)], axis=-1)
