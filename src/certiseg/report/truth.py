"""Sets that hold the true class, in the report of a run: a method of its own, and a promise about the truth."""

from __future__ import annotations

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
        rows = [
            Reached(float(each["multiple"]), 1 - risk, list(each["by_image"])).summary() for each in found["reached"]
        ]
        for image in (image for row in rows for image in row["by_image"]):
            held = round(image["held"] * image["labelled"])
            if image["covered"] != (enough_of(image["labelled"], share) <= held <= image["labelled"]):
                raise ValueError(f"{image['name']} is covered or not by other pixels than it says")
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(f"{file}: must be what `certiseg evaluate --calibration` wrote, got {error!r}") from None
    if calibration.model.sha256 != manifest.model_sha256:
        raise InputError(f"{file}: must be of the model of the run, got another one")
    return {
        "rows": [{column.key: row[column.key] for column in _COLUMNS} for row in rows],
        "claim": calibration.claim(),
    }


def truth_section(found: dict[str, Any]) -> Markup:
    """The claim and what was reached."""
    rows = tuple(
        {**row, "images": int(row["images"]), "promised": _promised(row["promised"], row["multiple"])}
        for row in found["rows"]
    )
    note = (
        "A promise about the truth, for images like those of the calibration; the certificates above are a promise "
        "about the model's answers. Coverage of one calibration scatters around what is promised."
    )
    return part("promise", found["claim"]) + table(Table("Calibrated sets", note, _COLUMNS, rows))


def _promised(share: float, multiple: float) -> str:
    return f"at least {share:.1%}" if multiple <= 1 else "nothing"
