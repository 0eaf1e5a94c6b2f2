"""The first page of a run: what is promised, what is not, where it is worst, and how to check it."""

from __future__ import annotations

import shlex
from typing import Any

import numpy as np
from markupsafe import Markup

from certiseg.analysis.drawing import method_name
from certiseg.analysis.exports import Column, Table
from certiseg.analysis.images import image_scores
from certiseg.analysis.objects import LEVELS, REAL, measured, note_of
from certiseg.render.groups import ROADS, groups_of
from certiseg.report.bars import outcome_bar, outcome_strip, outcome_table
from certiseg.report.page import Section, part, table
from certiseg.runs.folder import RunFolder
from certiseg.runs.manifest import Manifest
from certiseg.runs.measured import ELSEWHERE, TRUE
from certiseg.runs.pooling import ScoredRun
from certiseg.scores import Scores
from certiseg.words import agreement_words, rounded_down

PLAIN = (
    "Where a pixel is certified, no change of the stated kind and size turns the smoothed model's answer away from its "
    "label, with the certainty stated below. Where it abstains, nothing is promised. The label itself can be wrong."
)
WORST = 5
"""Images that the first page names."""


def first_page(folder: RunFolder, run: ScoredRun) -> list[Section]:
    """The sections that an engineer reads first; all of them are about the promise of the run."""
    method, setting = run.manifest.promised
    scores = run.sums(method, setting).scores()
    sections = [
        Section("promise", "What is promised", _promise(folder, run, scores)),
        Section("not-promised", "What is not promised", part("points", _not_promised(run, scores))),
        Section("classes", "By class, people first", by_class(run)),
        Section("worst", "The worst images", worst_images(run)),
    ]
    if folder.manifest.objects is not None:
        sections.insert(3, Section("objects", "Objects and whole images", _objects(folder)))
    return [*sections, Section("verify", "Check it", _check(folder))]


def _promise(folder: RunFolder, run: ScoredRun, scores: Scores) -> Markup:
    """The claim of one certificate of the promise, word for word, and how far it is to be read."""
    manifest = run.manifest
    method, setting = manifest.promised
    claim = folder.certificate(run.images[0], setting, method).claim()
    found = (
        f"Of all labelled pixels {scores.accuracy:.1%} are certified and right, {scores.wrong:.1%} certified and "
        f"wrong; {agreement_words(scores.agreement)}."
    )
    facts = [
        ("certified for", changes(manifest)),
        ("certified and right", f"{scores.accuracy:.1%}"),
        ("certified and wrong", f"{scores.wrong:.1%}"),
        ("abstained", f"{scores.abstain:.1%}"),
        ("agreement with the noise-free model", f"{rounded_down(100 * scores.agreement, 1)} %"),
        ("classes in a certified label, on average", f"{scores.set_size:.2f}"),
    ]
    family = (
        "Each image has such a promise of its own."
        if manifest.family == "image"
        else f"The run as a whole: {manifest.guarantee()}."
    )
    named = f"The promise is {method_name(method)} at {manifest.words(setting)}, named before the first draw. {family}"
    return part("promise", f"{PLAIN}\n{claim}\n{found}") + part("paragraphs", named) + part("facts", facts)


def changes(manifest: Manifest) -> str:
    """What the promise covers, in words."""
    extent = manifest.extent(manifest.promised[1])
    return f"perturbations of l2 size up to {extent}" if manifest.threat.law == "none" else extent


def _not_promised(run: ScoredRun, scores: Scores) -> list[str]:
    manifest = run.manifest
    l2 = manifest.threat.law == "none"
    others = "weather, light, blur, shifts and rotations" if l2 else "other weather, shifts, rotations, and rounding"
    points = [
        f"That a label is true. {scores.wrong:.1%} of the labelled pixels are certified and wrong.",
        f"Anything where it abstains: {scores.abstain:.1%} of the labelled pixels.",
        f"Anything but {changes(manifest)}: no larger change, and no other kind ({others}).",
        "That a changed image, certified anew, gets the same labels. It may abstain.",
    ]
    if manifest.family == "image" and len(run.images) > 1:
        points.append(f"All {len(run.images)} images at once. Each image spends an alpha of {manifest.alpha:g}.")
    if len(manifest.methods) * len(manifest.each_setting()) > 1:
        points.append(
            "The other methods and settings of this page. They come from the same draws and are a comparison; what is "
            "picked from this page is exploration."
        )
    return points


def by_class(run: ScoredRun) -> Markup:
    """Certified and right, certified and wrong, abstained, of every class that occurs; people first on streets."""
    tree, total = run.manifest.tree, run.sums(*run.manifest.promised).total()
    groups = groups_of(tree)
    on_streets = groups is not None and groups.names == tuple(ROADS)
    order = groups.of[: tree.num_classes] if groups is not None and on_streets else np.zeros(tree.num_classes)
    bars = []
    for k in sorted(np.flatnonzero(total.pixels), key=lambda k: (order[k], -total.pixels[k])):
        pixels, right, none = (int(each[k]) for each in (total.pixels, total.right, total.abstained))
        shares = [right / pixels, (pixels - right - none) / pixels, none / pixels]
        group = groups.names[int(order[k])] if groups is not None and on_streets else ""
        note = "" if group == tree.classes[k].casefold() else group
        bars.append(outcome_bar(tree.classes[k], shares, more=[f"{pixels:,}"], note=note))
    method, setting = run.manifest.promised
    title = f"{method_name(method)}, {run.manifest.words(setting)}"
    note = "Shares of the pixels of the true class. Wrong: certified under a label that does not hold the true class."
    return outcome_table(title, "true class", bars, more=["pixels"], note=note)


def worst_images(run: ScoredRun) -> Markup:
    """The images with most pixels certified and wrong, and all images in that order as a strip."""
    method, setting = run.manifest.promised
    images = sorted(image_scores(run, setting), key=lambda image: -image.of[method]["wrong"])
    bars = [
        outcome_bar(
            image.name,
            [image.of[method][name] for name in ("accuracy", "wrong", "abstain")],
            more=[f"{rounded_down(100 * image.of[method]['agreement'], 1)} %"],
        )
        for image in images
    ]
    named = outcome_table("Most pixels certified and wrong", "image", bars[:WORST], more=["agreement"])
    return named if len(bars) <= WORST else named + outcome_strip(bars)


def _objects(folder: RunFolder) -> Markup:
    """What holds for whole images and objects, with an alpha of their own."""
    setting = folder.manifest.promised[1]
    kept = {name: row["bound"] for name in folder.finished() for row in _rows(folder, name) if row["kind"] == "kept"}
    least = min(kept, key=lambda name: kept[name])
    told = (
        f"At least {rounded_down(100 * float(np.median(list(kept.values()))), 1)} % of all pixels of the median image "
        f"keep their class at once, {rounded_down(100 * kept[least], 1)} % of the worst ({least})."
    )
    columns: tuple[Column, ...] = (Column("label", "label"), Column("objects", "true objects", "count"))
    columns += tuple(Column(f"seen_{level:g}", f"seen, bound >= {level:g}", "percent") for level in LEVELS)
    columns += (
        Column("found", f"found, bound >= {LEVELS[0]:g}", "count"),
        Column("real", f"of those real, IoU >= {REAL:g}", "percent"),
        Column("free", "free of phantoms", "percent"),
    )
    rows = tuple(_object_row(label, measured(folder, setting)) for label in folder.manifest.objects or ())
    note = (
        "Seen: in more than half of the noisy predictions so much of the true object carries its label, whatever the "
        f"change. Free: of the pixels more than 10 from every true object, in the worst image. {note_of(folder)}"
    )
    return part("promise", told) + table(Table("Objects", note, columns, rows))


def _rows(folder: RunFolder, name: str) -> list[dict[str, Any]]:
    return [row for row in folder.receipt(name).measures if row["setting"] == str(folder.manifest.promised[1])]


def _object_row(label: str, rows: list[dict[str, Any]]) -> dict[str, Any]:
    own = [row for row in rows if row["label"] == label]
    true = [row["bound"] for row in own if row["name"].startswith(TRUE)]
    found = [row["iou"] for row in own if "iou" in row and row["bound"] >= LEVELS[0]]
    free = [row["bound"] for row in own if row["name"] == ELSEWHERE]
    seen = {f"seen_{level:g}": np.mean([b >= level for b in true]).item() if true else None for level in LEVELS}
    real = np.mean([iou >= REAL for iou in found]).item() if found else None
    return {
        "label": label,
        "objects": len(true),
        **seen,
        "found": len(found),
        "real": real,
        "free": min(free, default=None),
    }


def _check(folder: RunFolder) -> Markup:
    path, name = shlex.quote(str(folder.path)), folder.finished()[0]
    method, setting = folder.manifest.promised
    one = shlex.quote(str(folder.certificate_path(name, setting, method)))
    commands = [
        (f"certiseg verify {path}", "every file as it was written, every certificate recomputed by other code"),
        (f"certiseg verify {one} --model {shlex.quote(folder.manifest.model)} --image IMAGE", "one image, redrawn too"),
    ]
    return part("commands", commands)
