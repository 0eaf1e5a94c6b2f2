"""What the page needs to know once: the run, its tree with colours, its images with their scores."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from certiseg.analysis.drawing import method_name
from certiseg.certify import settle
from certiseg.render.colours import (
    ABSTAIN_COLOUR,
    ROOT_COLOUR,
    VOID_COLOUR,
    line_colour,
    palette,
    texture_of,
    textures,
)
from certiseg.render.groups import SEVERAL, Groups, groups_of
from certiseg.settings import METHODS
from certiseg.stats.correction import CHAIN_CORRECTIONS, CORRECTIONS
from certiseg.viewer.reasons import REASONS
from certiseg.viewer.run_reader import RunReader, is_upload
from certiseg.viewer.uploads import MAX_BYTES

if TYPE_CHECKING:
    from certiseg.viewer.pictures import Pictures


def overview(reader: RunReader, pictures: Pictures) -> dict[str, Any]:
    """The run and everything that does not change while the page is open."""
    from matplotlib import colormaps

    manifest, tree = reader.manifest, reader.tree
    method, setting = manifest.promised
    colours = palette(tree)
    lines, groups = line_colour(colours).tolist(), groups_of(tree)
    vertices = [
        {"name": name, "level": level, "parent": tree.parents[v], "colour": colours[v].tolist()}
        | {"line": lines[v], "texture": texture_of(level), "group": None if groups is None else int(groups.of[v])}
        for v, (name, level) in enumerate(zip(tree.vertices, tree.level_of, strict=True))
    ]
    heat = (colormaps["cividis"].resampled(256)(range(256))[:, :3] * 255).round().astype(int).tolist()
    return {
        "name": reader.root.name,
        "dataset": manifest.dataset,
        "model": manifest.model,
        "promise": manifest.guarantee() + manifest.along(),
        "promised": dict(zip(("method", "setting"), (method, asdict(setting)), strict=True)),
        "sigmas": manifest.sigmas,
        "draws": manifest.draws,
        "stops": manifest.stop_undecided is not None,
        "settings": [asdict(setting) for setting in manifest.each_setting()],
        "methods": [{"text": m, "name": method_name(m), "settings": _settings(reader, m)} for m in manifest.methods],
        "all_methods": [{"method": method, "name": method_name(method)} for method in METHODS],
        "corrections": CORRECTIONS,
        "chain_corrections": CHAIN_CORRECTIONS,
        "alpha": manifest.alpha_per_image,
        "n0": manifest.n0,
        "hierarchy": tree.name,
        "num_classes": tree.num_classes,
        "num_levels": tree.num_levels,
        "thresholds": tree.thresholds,
        "vertices": vertices,
        "groups": [] if groups is None else _groups(groups),
        "textures": [texture.ravel().tolist() for texture in textures().astype(int)],
        "colours": {"abstain": ABSTAIN_COLOUR, "root": ROOT_COLOUR, "void": VOID_COLOUR, "heat": heat},
        "reasons": [asdict(reason) for reason in REASONS],
        "pictures_missing": pictures.missing,
        "max_bytes": MAX_BYTES,
    }


def _groups(groups: Groups) -> list[dict[str, Any]]:
    """The groups with their colours; the last stands for several."""
    names, colours = (*groups.names, SEVERAL), groups.colours
    shown = zip(names, colours.tolist(), line_colour(colours).tolist(), strict=True)
    return [{"name": name, "colour": colour, "line": line} for name, colour, line in shown]


def _settings(reader: RunReader, method: str) -> dict[str, Any]:
    """A method of the run as the controls of the page show it."""
    first = reader.manifest.each_setting()[0]
    votes = reader.votes(reader.images()[0], first.sigma, first.n)
    settings = asdict(settle(reader.manifest.certificate(first, method), votes, reader.tree))
    return {name: value for name, value in settings.items() if name != "tau" and value is not None}


def images_of(reader: RunReader, names: list[str]) -> list[dict[str, Any]]:
    """The named images, each with the scores of every setting and method, or the summary of an upload."""
    return [
        {"name": name, "dropped": is_upload(name), "scores": reader.scores(name)}
        | ({"summary": reader.summary(name)} if is_upload(name) else {})
        for name in names
    ]
