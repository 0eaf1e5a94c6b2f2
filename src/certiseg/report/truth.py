"""Sets that hold the true class, in the report of a run: a method of its own, and a promise about the truth."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from markupsafe import Markup

from certiseg.analysis.exports import Column, Table
from certiseg.errors import InputError
from certiseg.report.page import part, table
from certiseg.runs.manifest import Manifest
from certiseg.runs.sealed import read_sealed
from certiseg.stats.conformal import enough_of
from certiseg.truth.evaluate import REACHED, Reached
from certiseg.truth.files import calibration_from
from certiseg.words import confidence

MAX_BYTES = 64 << 20
_COLUMNS = (
    Column("multiple", "attack, in multiples of what is covered", "plain"),
    Column("images", "images", "count"),
    Column("coverage", "images covered", "percent"),
    Column("promised", "promised"),
    Column("mean_set_size", "classes in a set", "score"),
    Column("singletons", "sets of one class", "percent"),
)


def read_reached(path: str | Path, manifest: Manifest) -> dict[str, Any]:
    """What `certiseg evaluate --calibration` has written; that of another model is refused.

    The claim is the calibration's, and the figures are computed again from those of the images.
    """
    file = Path(path) / "truth.json" if Path(path).is_dir() else Path(path)
    if not file.is_file() or file.stat().st_size > MAX_BYTES:
        raise InputError(f"--truth must be the truth.json of `certiseg evaluate --calibration`, got {str(path)!r}")
    found = read_sealed(file, REACHED)
    try:
        calibration = calibration_from(found["calibration"], str(file))
        risk, share = calibration.settings.level(None, None)
        for each in found["reached"]:
            _require_possible(each, share, calibration.model.num_classes)
        rows = [Reached(float(each["multiple"]), 1 - risk, each["by_image"]).summary() for each in found["reached"]]
        if not rows:
            raise ValueError("no row")
    except (ValueError, KeyError, TypeError, ArithmeticError) as error:
        raise InputError(f"{file}: must be what `certiseg evaluate --calibration` wrote, got {error!r}") from None
    if calibration.model.sha256 != manifest.model_sha256:
        raise InputError(f"{file}: must be of the model of the run, got another one")
    plain = [{column.key: row[column.key] for column in _COLUMNS} for row in rows]
    return {"rows": plain, "promised": confidence(risk), "claim": calibration.claim()}


def _require_possible(row: Mapping[str, Any], share: float, num_classes: int) -> None:
    """Refuse figures that no image has."""
    images = row["by_image"]
    if not (images and len({image["name"] for image in images}) == len(images) and 0 <= row["multiple"] < float("inf")):
        raise ValueError(f"images of different names at a multiple from 0 are needed, not at {row['multiple']}")
    for image in images:
        count, held = image["labelled"], image["held"]
        possible = type(count) is int and count >= 1 and 0 <= held <= 1 and 0 <= image["singletons"] <= 1
        if not possible or not 0 <= image["mean_set_size"] <= num_classes:
            raise ValueError(f"{image['name']} has figures that no image has")
        if image["covered"] is not (round(held * count) >= enough_of(count, share)):
            raise ValueError(f"{image['name']} is covered or not by other pixels than it says")


def truth_section(found: dict[str, Any]) -> Markup:
    """The claim and what was reached."""
    rows = tuple(
        {**row, "promised": f"at least {found['promised']}" if row["multiple"] <= 1 else "nothing"}
        for row in found["rows"]
    )
    note = (
        "A promise about the truth, for images like those of the calibration; the certificates above are a promise "
        "about the model's answers. Coverage of one calibration scatters around what is promised."
    )
    return part("promise", found["claim"]) + table(Table("Calibrated sets", note, _COLUMNS, rows))
