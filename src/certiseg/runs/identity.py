"""What stored votes must be to belong to an image of a run: image, model, seed, sigma and settings."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from certiseg.archive import digest
from certiseg.errors import InputError
from certiseg.images import BYTES
from certiseg.images.values import as_values
from certiseg.runs.looks import looks_of, recorded_rule

if TYPE_CHECKING:
    from certiseg.certificate import Certificate
    from certiseg.images import IdMap
    from certiseg.partial_votes import PartialVotes
    from certiseg.runs.manifest import Manifest
    from certiseg.votes import Votes

_MODEL = ("model_sha256", "backend", "device", "threads")


def label_key(label: IdMap, instances: IdMap | None = None) -> str:
    """The hash of a ground truth, which stands for it, with its instances where the run uses them."""
    return digest((label if instances is None else np.stack([label, instances])).astype(np.int32))


def require_votes(manifest: Manifest, name: str, sigma: float, votes: Votes, source: str) -> None:
    """Refuse votes of another image, seed, model or run."""
    settings, said = manifest.sampling(sigma), votes.provenance
    wanted: dict[str, Any] = {
        "image_key": manifest.identity(name)["key"],
        "snapshots": settings.snapshots,
        "stopped": manifest.stop_undecided is not None,
        "stop": recorded_rule(manifest).get("stop"),
        "n": votes.n if votes.n in looks_of(manifest) else settings.n,
    }
    found: dict[str, Any] = {
        "image_key": votes.image_key,
        "snapshots": tuple(sorted(votes.snapshots)),
        "stopped": votes.stopped,
        "stop": said.get("stop"),
        "n": votes.n,
    }
    for field in ("sigma", "n0", "seed", "noise", "anchors"):
        wanted[field], found[field] = getattr(settings, field), getattr(votes, field)
    for field in ("batch_size", "temperature"):
        wanted[field], found[field] = getattr(settings, field), said.get(field)
    wanted["threat"], found["threat"] = settings.threat.identity, votes.threat.identity
    wanted["measures"], found["measures"] = manifest.recorded, votes.record is not None
    wanted["maps"] = manifest.keep_maps
    found["maps"] = votes.record is not None and votes.record.maps is not None
    if manifest.values:
        wanted["values"], found["values"] = manifest.values, votes.image_values
    _compare(wanted | _model_of(manifest), found | {field: said.get(field) for field in _MODEL}, source)


def require_partial(manifest: Manifest, name: str, sigma: float, partial: PartialVotes, source: str) -> None:
    """Refuse partial votes of another image, seed, model or run."""
    settings = manifest.sampling(sigma)
    settings = replace(settings, max_set=min(settings.max_set, partial.num_classes))
    wanted: dict[str, Any] = {"image_key": manifest.identity(name)["key"], "settings": settings}
    found: dict[str, Any] = {"image_key": partial.key, "settings": partial.settings}
    if manifest.values:
        wanted["values"], found["values"] = manifest.values, as_values(partial.model.get("values")) or BYTES
    _compare(wanted | _model_of(manifest), found | {field: partial.model.get(field) for field in _MODEL}, source)


def require_of_run(manifest: Manifest, certificate: Certificate, source: str) -> None:
    """Refuse a certificate of an image beside the run's that is of another model or hierarchy."""
    if certificate.votes.provenance.get("model_sha256") != manifest.model_sha256:
        raise InputError(f"{source}: must be of the model of the run, got another one")
    if certificate.hierarchy.as_dict() != manifest.tree.as_dict():
        raise InputError(f"{source}: must be over the hierarchy of the run, got another one")


def _model_of(manifest: Manifest) -> dict[str, Any]:
    return {field: getattr(manifest, field) for field in _MODEL}


def _compare(wanted: dict[str, Any], found: dict[str, Any], source: str) -> None:
    for field, value in wanted.items():
        if found[field] != value:
            raise InputError(
                f"{source}: must be votes of this image and run, but its {field} is {str(found[field])[:40]}, not "
                f"{str(value)[:40]}"
            )
