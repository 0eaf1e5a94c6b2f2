"""The report of a run: the first page, tables, the gallery, the settings, and if asked the paper's experiments."""

from __future__ import annotations

from collections.abc import Callable

from markupsafe import Markup

from certiseg.analysis.drawing import method_name
from certiseg.analysis.pieces import Piece, all_pieces, main_pieces
from certiseg.errors import InputError
from certiseg.render.colours import Colours, palette
from certiseg.report.bars import outcome_bar, outcome_table
from certiseg.report.gallery import Photographs, gallery
from certiseg.report.page import Section, figure, page, part, table
from certiseg.report.summary import first_page
from certiseg.report.truth import read_reached, truth_section
from certiseg.runs.folder import RunFolder
from certiseg.runs.manifest import Manifest
from certiseg.runs.pooling import ScoredRun, draws_words
from certiseg.runs.settings import Setting


def run_report(
    folder: RunFolder,
    *,
    setting: Setting | None = None,
    images: int = 60,
    full: bool = False,
    colours: Colours = "classes",
    truth: str | None = None,
    photograph: Photographs = lambda _: None,
    progress: Callable[[str], None] = lambda _: None,
) -> str:
    """The page of a finished run.

    setting: the one whose tables and figures are shown (default: that of the promise); full: with every experiment of
    the paper; truth: what `certiseg evaluate --calibration` wrote for the same model.
    """
    manifest = folder.manifest
    if not folder.finished():
        raise InputError(f"{folder.path}: must have finished images; run `certiseg evaluate` first")
    known = manifest.each_setting()
    setting = setting or manifest.promised[1]
    if setting not in known:
        raise InputError(f"setting must be one of the run's, {', '.join(map(str, known))}, got {setting}")
    palette(manifest.tree, colours)
    reached = None if truth is None else read_reached(truth, manifest)
    run = ScoredRun(folder)
    sections = first_page(folder, run)
    if reached is not None:
        title = "Sets that hold the truth: a promise about truth"
        sections.insert(len(sections) - 1, Section("truth", title, truth_section(reached)))
    sections.append(Section("methods", "Methods side by side", _methods(run, setting)))
    for piece in all_pieces(folder, setting) if full else main_pieces(folder, setting):
        sections.append(Section(piece.stem, piece.title, _body(piece)))
        progress(piece.title)
    if images > 0:
        body = gallery(
            folder,
            run,
            setting,
            most=images,
            colours=colours,
            photograph=photograph,
            progress=lambda _: progress("gallery"),
        )
        sections.append(Section("gallery", "Gallery", body))
    facts = part("facts", _settings(folder, run)) + part("left_out", folder.left_out())
    sections.append(Section("settings", "Settings", facts))
    method, of_promise = manifest.promised
    promise = f"{method_name(method)} at {manifest.words(of_promise)}, {manifest.guarantee()}"
    subtitle = f"{manifest.model} on {len(run.images)} images; promise: {promise}"
    return page(f"certiseg: {manifest.dataset}", subtitle, sections)


def _methods(run: ScoredRun, setting: Setting) -> Markup:
    """Right, wrong and abstained by every method, from the same draws."""
    bars = []
    for method in run.manifest.methods:
        scores = run.sums(method, setting).scores()
        shares = (scores.accuracy, scores.wrong, scores.abstain)
        more = [f"{scores.cig:.3f}", f"{scores.set_size:.2f}"]
        bars.append(outcome_bar(method_name(method), shares, more=more, note=run.manifest.role(method, setting)))
    note = "CIG: certified information gain, 1 if every pixel is certified as its class. Classes: in a certified label."
    return outcome_table(run.manifest.words(setting), "method", bars, more=["CIG", "classes"], note=note)


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
