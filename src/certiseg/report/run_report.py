"""The report of a run: what is promised, the settings, every table and figure, and the gallery."""

from __future__ import annotations

from collections.abc import Callable

from markupsafe import Markup

from certiseg.analysis.drawing import method_name
from certiseg.analysis.pieces import Piece, all_pieces
from certiseg.errors import InputError
from certiseg.report.gallery import Photographs, gallery
from certiseg.report.page import Section, figure, page, part, table
from certiseg.runs.folder import RunFolder
from certiseg.runs.manifest import Manifest
from certiseg.runs.pooling import ScoredRun, draws_words
from certiseg.runs.settings import Setting
from certiseg.words import agreement_words

PLAIN = (
    "Where a pixel is certified, no change of the stated kind and size turns the smoothed model's answer away from its "
    "label, with the stated probability. Where it abstains, nothing is promised. The label itself can be wrong."
)


def run_report(
    folder: RunFolder,
    *,
    setting: Setting | None = None,
    images: int = 60,
    photograph: Photographs = lambda _: None,
    progress: Callable[[str], None] = lambda _: None,
) -> str:
    """The page of a finished run; `setting`: the one whose figures are drawn (default: that of the promise)."""
    manifest = folder.manifest
    if not folder.finished():
        raise InputError(f"{folder.path}: must have finished images; run `certiseg evaluate` first")
    known = manifest.each_setting()
    setting = setting or manifest.promised[1]
    if setting not in known:
        raise InputError(f"setting must be one of the run's, {', '.join(map(str, known))}, got {setting}")
    run = ScoredRun(folder)
    sections = [
        Section("promise", "What is promised", _promise(folder, run)),
        Section("settings", "Settings", part("facts", _settings(folder, run)) + part("left_out", folder.left_out())),
    ]
    for piece in all_pieces(folder, setting):
        sections.append(Section(piece.stem, piece.title, _body(piece)))
        progress(piece.title)
    if images > 0:
        body = gallery(folder, run, setting, most=images, photograph=photograph, progress=lambda _: progress("gallery"))
        sections.append(Section("gallery", "Gallery", body))
    method, of_promise = manifest.promised
    promise = f"{method_name(method)} at {manifest.words(of_promise)}, {manifest.guarantee()}"
    subtitle = f"{manifest.model} on {len(run.images)} images; promise: {promise}"
    return page(f"certiseg: {manifest.dataset}", subtitle, sections)


def _promise(folder: RunFolder, run: ScoredRun) -> Markup:
    """The claim of one certificate of the promise, word for word, how far it is to be read, and what the others are."""
    manifest = run.manifest
    method, setting = manifest.promised
    claim = folder.certificate(run.images[0], setting, method).claim()
    scores = run.sums(method, setting).scores()
    found = (
        f"Of all labelled pixels {scores.accuracy:.1%} are certified and right, {scores.wrong:.1%} certified and "
        f"wrong; {agreement_words(scores.agreement)}."
    )
    family = (
        "Each image has such a promise of its own."
        if manifest.family == "image"
        else f"The run as a whole: {manifest.guarantee()}."
    )
    others = (
        f"The promise is {method_name(method)} at {manifest.words(setting)}, named before the first draw. The run "
        f"shows {len(manifest.methods)} methods at {len(manifest.each_setting())} settings from the same draws: all "
        "but the promise are a comparison, and thresholds or settings picked from this page are exploration."
    )
    return part("promise", f"{PLAIN}\n{claim}\n{found}") + part("paragraphs", f"{family}\n{others}")


def _settings(folder: RunFolder, run: ScoredRun) -> list[tuple[str, str]]:
    manifest = folder.manifest
    settings = ", ".join(
        f"{manifest.words(s).replace(' = ', ' ')} ({manifest.extent(s)})" for s in manifest.each_setting()
    )
    threat = [] if manifest.threat.law == "none" else [("threat", f"{manifest.threat.describe()}, {_places(manifest)}")]
    return [
        ("data set", f"{manifest.dataset}{f', {manifest.split}' if manifest.split else ''}"),
        ("images", f"{len(folder.finished())} of {len(manifest.images)}"),
        ("model", manifest.model),
        ("model fingerprint", manifest.model_sha256),
        ("promise", manifest.promise or ""),
        ("settings", settings),
        *threat,
        ("methods", ", ".join(method_name(method) for method in manifest.methods)),
        ("alpha", f"{manifest.alpha:g} per {'image' if manifest.family == 'image' else 'run'}"),
        ("correction", manifest.correction + (f", k = {manifest.k}" if manifest.correction == "kfwer" else "")),
        ("test", manifest.test),
        *_stopping(run),
        ("selection draws n0", str(manifest.n0)),
        ("seed", str(manifest.seed)),
        ("hierarchy", f"{manifest.tree.name}, {manifest.tree.size}"),
        ("backend", f"{manifest.backend} on {manifest.device}, {manifest.threads} threads"),
        ("versions", ", ".join(f"{name} {version}" for name, version in manifest.versions.items()) or "not recorded"),
    ]


def _stopping(run: ScoredRun) -> list[tuple[str, str]]:
    """What stopped the draws, and where; nothing where n is fixed."""
    manifest = run.manifest
    if manifest.stop_undecided is None:
        return []
    made = [f"sigma {sigma:g}: {draws_words(run.draws(sigma))}" for sigma in manifest.sigmas]
    rule = f"as soon as at most {manifest.stop_undecided:.3g} of an image is undecided, for every method and tau"
    return [("drawing stops", rule), ("draws per image", "; ".join(made))]


def _places(manifest: Manifest) -> str:
    """How the parameter of the threat is drawn, and from how many anchors."""
    anchors = [len(manifest.sampling(sigma).anchors) for sigma in manifest.sigmas]
    return (
        f"scale {manifest.threat.scale:g}, drawn at {' or '.join(map(str, anchors))} anchor{'s' * (max(anchors) > 1)}"
    )


def _body(piece: Piece) -> Markup:
    body = part("paragraphs", piece.text)
    if piece.draw is not None:
        body += figure(piece.draw(), f"{piece.title}. {piece.text}", maps=piece.maps)
    return body if piece.table is None else body + table(piece.table)
