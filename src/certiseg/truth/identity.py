"""What a calibration belongs to: one model as it is deployed, and one set of labelled images."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certiseg.errors import InputError
from certiseg.models.segmenter import Segmenter
from certiseg.noise import noise_stream
from certiseg.noise.gaussian import standard_normal
from certiseg.probing import noise_free, probe_of


@dataclass(frozen=True)
class ModelIdentity:
    """The certified function: weights, preparation and classes."""

    name: str
    sha256: str
    preparation: Mapping[str, Any]
    num_classes: int
    class_names: tuple[str, ...] | None
    size: tuple[int, int]
    """Height and width of the picture of noise by which models without weights are told apart."""
    probe: str | None
    channels: int = 3
    """Of that picture, and of all images."""

    def stored(self) -> dict[str, Any]:
        """As JSON gives it back."""
        return dict(json.loads(json.dumps(asdict(self))))


def identity_of(segmenter: Segmenter, size: tuple[int, int], channels: int = 3) -> ModelIdentity:
    """Who a model is; refused if it is no function of the image (a few passes)."""
    stream = noise_stream(seed=0, image_key="", stage="selection", along=("probe",))
    picture = np.clip(0.5 + standard_normal(stream, 0, (*size, channels)) / 4, 0, 1).astype(np.float32)
    prediction = noise_free(segmenter, picture, batch_size=1)
    assert segmenter.num_classes is not None, "known after one answer"
    return ModelIdentity(
        segmenter.name,
        segmenter.fingerprint(),
        segmenter.preparation(),
        segmenter.num_classes,
        segmenter.class_names,
        size,
        probe_of(segmenter, prediction),
        channels,
    )


def require_same_model(segmenter: Segmenter, calibrated: ModelIdentity) -> None:
    """Refuse a model that is not the calibrated one, in one sentence that says what differs."""
    known, found = calibrated.stored(), identity_of(segmenter, calibrated.size, calibrated.channels).stored()
    differences = [
        ("classes", (known["num_classes"], known["class_names"]), (found["num_classes"], found["class_names"])),
        *((key, value, found["preparation"].get(key)) for key, value in known["preparation"].items()),
    ]
    for name, wanted, got in differences:
        if wanted != got:
            raise InputError(f"{name} must be as calibrated, {wanted!r}, got {got!r}; calibrate again")
    if (known["sha256"], known["probe"]) != (found["sha256"], found["probe"]):
        raise InputError(
            f"model must be the calibrated one ({calibrated.name}, {known['sha256'][:12]}), got "
            f"{segmenter.name} ({found['sha256'][:12]}), which answers or is weighted otherwise; calibrate again"
        )


def data_digest(units: Sequence[str]) -> str:
    """SHA-256 of labelled images, whatever their order."""
    return hashlib.sha256("\n".join(sorted(units)).encode()).hexdigest()


def unit_digest(key: str, label: NDArray[np.integer]) -> str:
    """SHA-256 of one labelled image."""
    plain = np.ascontiguousarray(label, np.uint16)
    return hashlib.sha256(f"{key}{plain.shape}".encode() + plain.tobytes()).hexdigest()
