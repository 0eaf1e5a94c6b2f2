"""What the page needs to know once: the run, its tree with colours, its images with their scores."""

from __future__ import annotations

from typing import Any

from certiseg.analysis.drawing import VOID_COLOUR, method_name
from certiseg.certificate import METHODS
from certiseg.palette import ABSTAIN_COLOUR, ROOT_COLOUR, palette
from certiseg.stats.correction import CORRECTIONS
from certiseg.stats.nested import CHAIN_CORRECTIONS
from certiseg.viewer.drops import MAX_BYTES
from certiseg.viewer.pictures import Pictures
from certiseg.viewer.reasons import REASONS
from certiseg.viewer.shelf import Shelf, is_dropped


def overview(shelf: Shelf, pictures: Pictures) -> dict[str, Any]:
    """The run and everything that does not change while the page is open."""
    from matplotlib import colormaps

    manifest, tree = shelf.manifest, shelf.tree
    colours = palette(tree).tolist()
    vertices = [
        {"name": name, "level": tree.level_of[v], "parent": tree.parents[v], "colour": colours[v]}
        for v, name in enumerate(tree.vertices)
    ]
    heat = (colormaps["cividis"].resampled(256)(range(256))[:, :3] * 255).round().astype(int).tolist()
    return {
        "name": shelf.root.name,
        "dataset": manifest.dataset,
        "model": manifest.model,
        "promise": manifest.promise(),
        "sigmas": manifest.sigmas,
        "draws": manifest.draws,
        "settings": [{"sigma": s.sigma, "n": s.n, "tau": s.tau} for s in manifest.each_setting()],
        "methods": [{"text": m, "name": method_name(m), "settings": _settings(shelf, m)} for m in manifest.methods],
        "all_methods": METHODS,
        "corrections": CORRECTIONS,
        "chain_corrections": CHAIN_CORRECTIONS,
        "alpha": manifest.alpha_per_image,
        "n0": manifest.n0,
        "hierarchy": tree.name,
        "num_classes": tree.num_classes,
        "num_levels": tree.num_levels,
        "thresholds": tree.thresholds,
        "vertices": vertices,
        "colours": {"abstain": ABSTAIN_COLOUR, "root": ROOT_COLOUR, "void": VOID_COLOUR, "heat": heat},
        "reasons": [{"code": r.code, "colour": r.colour, "words": r.words} for r in REASONS],
        "pictures_missing": pictures.missing,
        "max_bytes": MAX_BYTES,
    }


def _settings(shelf: Shelf, method: str) -> dict[str, Any]:
    """A method of the run as the controls of the page show it."""
    first, manifest = shelf.images()[0], shelf.manifest
    ranked = shelf.votes(first, manifest.sigmas[0], manifest.draws[-1]).max_set
    settings = vars(shelf.settings_of(0.5, method, ranked))
    return {name: value for name, value in settings.items() if name != "tau" and value is not None}


def images_of(shelf: Shelf) -> list[dict[str, Any]]:
    """The images in the run's order, each with the scores of every setting and method, dropped ones last."""
    listed: list[dict[str, Any]] = []
    for name in shelf.images():
        entry: dict[str, Any] = {"name": name, "dropped": is_dropped(name), "scores": shelf.scores(name)}
        listed.append({**entry, "summary": shelf.summary(name)} if is_dropped(name) else entry)
    return listed
