"""The report of a run: what is promised, the settings, every table and figure, and the gallery."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from html import escape

from certiseg.analysis.drawing import method_name
from certiseg.analysis.experiments import Piece, all_pieces, main_methods
from certiseg.analysis.pooling import Pools
from certiseg.errors import InputError
from certiseg.report import html
from certiseg.report.gallery import Photographs, gallery
from certiseg.runs.folder import RunFolder
from certiseg.runs.manifest import Manifest, Setting
from certiseg.stats.radius import radius

PLAIN = (
    "Where a pixel is certified, small changes of the image cannot turn the model's answer away from its label: that "
    "is proven, not observed. Where it abstains, nothing is proven."
)


def run_report(
    folder: RunFolder,
    *,
    setting: Setting | None = None,
    images: int = 60,
    photograph: Photographs = lambda _: None,
    progress: Callable[[str], None] = lambda _: None,
) -> str:
    """The page of a finished run; `setting`: the one whose figures are drawn (default: the run's first)."""
    manifest = folder.manifest
    if not folder.finished():
        raise InputError(f"{folder.path}: must have finished images; run `certiseg evaluate` first")
    setting = _checked(manifest, setting)
    pools = Pools(folder)
    sections = [
        html.Section("promise", "What is promised", _promise(folder, setting)),
        html.Section("settings", "Settings", _settings(folder)),
    ]
    for piece in all_pieces(folder, setting):
        sections.append(_section(piece))
        progress(piece.title)
    if images > 0:
        body = gallery(
            folder, pools, setting, most=images, photograph=photograph, progress=lambda _: progress("gallery")
        )
        sections.append(html.Section("gallery", "Gallery", body))
    subtitle = f"{manifest.model} on {len(pools.images)} images, {manifest.promise()}"
    return html.page(f"certiseg: {manifest.dataset}", subtitle, sections)


def _checked(manifest: Manifest, setting: Setting | None) -> Setting:
    there = manifest.each_setting()
    if setting is None:
        return there[0]
    if setting not in there:
        raise InputError(f"setting must be one of the run's, {', '.join(map(str, there))}, got {setting}")
    return setting


def _promise(folder: RunFolder, setting: Setting) -> str:
    """The claim of one certificate of the run, word for word, and how the others stand to it."""
    manifest = folder.manifest
    method = "nested" if "nested" in manifest.methods else (main_methods(manifest.methods) or list(manifest.methods))[0]
    claim = folder.certificate(folder.finished()[0], setting, method).claim()
    family = (
        "Each image has such a promise of its own."
        if manifest.family == "image"
        else f"All {len(manifest.images)} images together keep it with probability {1 - manifest.alpha:g}."
    )
    others = (
        f"This is {method_name(method)} at {setting}. The run compares {len(manifest.methods)} methods at "
        f"{len(manifest.each_setting())} settings from the same draws: only one that was chosen beforehand is a "
        "promise, side by side they are a comparison."
    )
    return f'<div class="promise"><p>{escape(PLAIN)}</p>{html.paragraphs(claim)}</div>' + html.paragraphs(
        f"{family}\n{others}"
    )


def _settings(folder: RunFolder) -> str:
    manifest = folder.manifest
    settings = ", ".join(
        f"sigma {s.sigma:g}, n {s.n}, tau {s.tau:g} (R = {radius(s.sigma, s.tau):.3f})" for s in manifest.each_setting()
    )
    pairs = [
        ("data set", f"{manifest.dataset}{f', {manifest.split}' if manifest.split else ''}"),
        ("images", f"{len(folder.finished())} of {len(manifest.images)}"),
        ("model", manifest.model),
        ("model fingerprint", manifest.model_sha256),
        ("settings", settings),
        ("methods", ", ".join(method_name(method) for method in manifest.methods)),
        ("alpha", f"{manifest.alpha:g} per {'image' if manifest.family == 'image' else 'run'}"),
        ("correction", manifest.correction + (f", k = {manifest.k}" if manifest.correction == "kfwer" else "")),
        ("test", manifest.test),
        ("selection draws n0", str(manifest.n0)),
        ("seed", str(manifest.seed)),
        ("hierarchy", f"{manifest.tree.name}, {manifest.tree.num_classes} classes, {manifest.tree.num_levels} levels"),
        ("backend", f"{manifest.backend} on {manifest.device}, {manifest.threads} threads"),
        ("versions", ", ".join(f"{name} {version}" for name, version in manifest.versions.items()) or "not recorded"),
    ]
    return html.facts(pairs) + "".join(_left_out(folder))


def _left_out(folder: RunFolder) -> Iterator[str]:
    left_out = folder.left_out()
    if left_out:
        yield f"<h3>Left out: {len(left_out)} images</h3>"
        yield f"<ul>{''.join(f'<li>{escape(name)}: {escape(why)}</li>' for name, why in left_out.items())}</ul>"


def _section(piece: Piece) -> html.Section:
    body = html.paragraphs(piece.text)
    if piece.draw is not None:
        body += html.figure(piece.draw(), f"{piece.title}. {piece.text}", maps=piece.maps)
    if piece.table is not None:
        body += html.table(piece.table)
    return html.Section(piece.stem, piece.title, body)
