"""The check of a whole run: every file as it was written, every certificate recomputed, every table added up again.

`damage_of` is the quick part, done at every start and before runs are joined: seals, hashes, and to whom a file
belongs. `verify_run` goes on with what the files say. `redraw_run` draws every vote again.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from certiseg.archive import parse_json
from certiseg.certificate import Certificate, load_certificate
from certiseg.certify import settle
from certiseg.datasets.base import Sample
from certiseg.errors import InputError
from certiseg.hierarchy import PRESETS
from certiseg.models.segmenter import ModelLike
from certiseg.partial_votes import load_partial_votes
from certiseg.runs.folder import ROWS, SUBFOLDERS, UPLOADED, RunFolder
from certiseg.runs.identity import label_key, require_of_run, require_partial
from certiseg.runs.looks import rule_of
from certiseg.runs.manifest import Manifest
from certiseg.runs.measured import measure_rows, measures_of
from certiseg.runs.scheduler import marked_in
from certiseg.runs.sealed import read_sealed, require_bytes
from certiseg.runs.settings import WHOLE, Shard
from certiseg.runs.table import certificate_rows, prediction_rows, write_table
from certiseg.verify import verify
from certiseg.votes import Votes


@dataclass(frozen=True)
class Problem:
    """Something that is not as it must be, in a sentence that names the file."""

    what: str
    image: str | None = None
    """The image that must be drawn again; None for a file that follows from others."""
    path: Path | None = None
    """A file that may be removed."""


@dataclass(frozen=True)
class RunVerification:
    """The outcome of all checks of a run."""

    path: str
    images: int
    """Finished images."""
    certificates: int
    """Certificates that were recomputed."""
    problems: tuple[Problem, ...]
    unfinished: tuple[str, ...]
    """Images that are neither finished nor left out with a reason."""
    redrawn: bool = False
    """Whether every vote was drawn again."""
    notes: tuple[str, ...] = ()
    """What was not checked, and what is not in the run, in a sentence each."""

    @property
    def passed(self) -> bool:
        """Whether the run is whole and right."""
        return not self.problems and not self.unfinished


def damage_of(folder: RunFolder, name: str) -> list[Problem]:
    """What is wrong with the files of an image: changed, missing, or of another image, seed, model or run."""
    found: list[Problem] = []

    def check(read: Callable[..., Any], *arguments: object) -> Any:
        try:
            return read(*arguments)
        except InputError as error:
            found.append(Problem(str(error), name))

    if folder.rows_path(name).is_file():
        receipt = check(folder.receipt, name)
        for path, sha256 in receipt.files.items() if receipt else ():
            check(require_bytes, folder.path / path, sha256)
        return found
    for sigma in folder.manifest.sigmas:
        if folder.votes_path(name, sigma).is_file():
            check(folder.all_votes, name, sigma)
        for path in folder.parts(name, sigma):
            partial = check(load_partial_votes, path)
            if partial is not None:
                check(require_partial, folder.manifest, name, sigma, partial, str(path))
    return found


def require_sound(folder: RunFolder, shard: Shard = WHOLE, *, anew: bool = False) -> None:
    """Refuse to go on with a folder in which something is damaged or belongs elsewhere.

    anew: the folder has no manifest, and must hold nothing that another run made.
    """
    found = [problem for name in images_of(folder, shard) for problem in damage_of(folder, name)]
    found += strays_of(folder) if anew else ()
    if not found:
        return
    told = found[0].what + (f" ({len(found)} problems in all)" if len(found) > 1 else "")
    if anew:
        raise InputError(
            f"{folder.path}: must have its manifest.json, which is missing, and what it holds does not fit what is "
            f"asked: {told}; restore the manifest, or use a new --out"
        )
    raise InputError(f"{told}; `certiseg verify {folder.path} --repair` sets such images back")


def images_of(folder: RunFolder, shard: Shard) -> list[str]:
    """The images of a shard, in order."""
    return [name for place, name in enumerate(folder.manifest.images) if shard.holds(place)]


def verify_run(
    folder: RunFolder, *, hierarchy: str | None = None, each: Callable[[str], None] = lambda _: None
) -> RunVerification:
    """Check everything; each(name) is called after every image.

    hierarchy: the one that the run must be over; by default the preset of that name.
    """
    problems, certificates, finished = list(_notes(folder)), 0, folder.finished()
    for name in folder.manifest.images:
        damage = damage_of(folder, name)
        if not damage and name in finished:
            try:
                certificates += _recompute(folder, name, hierarchy)
            except InputError as error:
                damage = [Problem(str(error), name)]
        problems += damage
        each(name)
    odd = {problem.path for problem in problems}
    problems += strays_of(folder)
    problems += _uploads(folder, hierarchy)
    shard = WHOLE if folder.shard_path in odd else folder.shard()
    left_out = {} if folder.left_out_path in odd else folder.left_out()
    if not problems:
        problems += _table(folder, shard, finished)
    unfinished = [name for name in images_of(folder, shard) if name not in finished and name not in left_out]
    notes = tuple(_absent(folder.manifest, shard, left_out, hierarchy))
    return RunVerification(
        str(folder.path), len(finished), certificates, tuple(problems), tuple(unfinished), notes=notes
    )


def _absent(manifest: Manifest, shard: Shard, left_out: dict[str, str], hierarchy: str | None) -> Iterator[str]:
    """What a reader of the scores must know: images that are not in them, or in them twice, and names not compared."""
    if shard != WHOLE:
        yield f"shard {shard.number} of {shard.count}: the other images are elsewhere"
    for name, reason in left_out.items():
        yield f"left out: {name}: {reason}"
    known = [key for key in manifest.keys if key is not None]
    if len(set(known)) < len(known):
        yield f"{len(known) - len(set(known))} images have the same pixels as another one, and so the same noise"
    if hierarchy is None and manifest.tree.name not in PRESETS:
        yield "the names of the hierarchy are the run's own: give --hierarchy to compare them"


def redraw_run(
    folder: RunFolder,
    model: ModelLike,
    sample_of: Callable[[str], Sample],
    *,
    hierarchy: str | None = None,
    each: Callable[[str], object] = lambda _: None,
) -> list[Problem]:
    """Draw every vote of the finished images again, for each n of the settings; returns those that differ.

    The ground truth must be that of the samples, the hierarchy the one given, or the model's own.
    """
    manifest, problems = folder.manifest, list[Problem]()
    for name in folder.finished():
        sample = sample_of(name)
        marked = marked_in(sample) if manifest.instances else None
        if sample.label is None or label_key(sample.label, marked) != manifest.identity(name)["label_key"]:
            problems.append(Problem(f"{folder.label_path(name)}: must be the ground truth of the data set", name))
        for setting in {(one.sigma, one.n): one for one in manifest.each_setting()}.values():
            path = folder.certificate_path(name, setting, manifest.methods[0])
            outcome = verify(path, model=model, image=sample.image, hierarchy=hierarchy)
            failed = [check for check in outcome.checks if not check.passed]
            problems += [Problem(f"{path}: {check.name}: {check.detail}", name) for check in failed]
        each(name)
    return problems


def repair_run(folder: RunFolder, found: RunVerification) -> list[str]:
    """Remove what is damaged, so that the next start draws or writes it again; returns the images set back."""
    images = list(dict.fromkeys(problem.image for problem in found.problems if problem.image is not None))
    if any(problem.image is None and problem.path is None for problem in found.problems):
        raise InputError(f"{folder.path}: must have its own manifest.json to be repaired; restore it from a copy")
    with folder.locked():
        for name in images:
            folder.remove_parts(name)
            for path in reversed(folder.files_of(name)):  # the rows first: they say that an image is done
                path.unlink(missing_ok=True)
        for problem in found.problems:
            if problem.path is not None:
                problem.path.unlink(missing_ok=True)
        if images:
            folder.table_path.unlink(missing_ok=True)
    return images


def _notes(folder: RunFolder) -> Iterator[Problem]:
    """The files about the whole run, and whether its images are those of the manifest."""
    for path, read in ((folder.left_out_path, folder.left_out), (folder.shard_path, folder.shard)):
        try:
            read()
        except InputError as error:
            yield Problem(str(error), path=path)
    runs = set()
    for name in folder.finished():
        try:
            runs.add(read_sealed(folder.rows_path(name), ROWS).get("run"))
        except InputError:
            continue
    if runs and folder.manifest.run_key not in runs:
        yield Problem(f"{folder.manifest_path}: must be the manifest of its images, but none of them was made with it")


def _recompute(folder: RunFolder, name: str, hierarchy: str | None) -> int:
    """Check what the files of a finished image say; returns how many certificates were recomputed."""
    manifest, tree = folder.manifest, folder.manifest.tree
    label, prediction, instances = folder.label(name), folder.prediction(name), folder.instances(name)
    marked = [] if instances is None else [folder.instances_path(name)]
    for path in (folder.label_path(name), folder.prediction_path(name), *marked):
        _require(
            folder.map_note(path, name).encode() in path.read_bytes(), path, "say to which image and run it belongs"
        )
    same = label_key(label, instances) == manifest.identity(name)["label_key"]
    _require(same, folder.label_path(name), "be the ground truth")
    rows = prediction_rows(name, prediction, label, tree.num_classes)
    count, measures = 0, list[dict[str, Any]]()
    for sigma in manifest.sigmas:
        votes = folder.all_votes(name, sigma)
        same = votes.prediction is not None and np.array_equal(votes.prediction, prediction)
        _require(same, folder.prediction_path(name), f"be the prediction that the votes at sigma {sigma:g} hold")
        rule = rule_of(manifest, sigma)
        ended = rule is None or votes.n == manifest.draws[-1] or rule(votes)
        _require(ended, folder.votes_path(name, sigma), "end where the run's rule of stopping ends them")
        if votes.record is not None:
            asked = [measure.digest for measure in measures_of(manifest, label, votes.candidate, instances)]
            same = asked == [measure.digest for measure in votes.measures] and not votes.record.explored
            _require(
                same, folder.votes_path(name, sigma), "hold the measures that its selection draws and the run settle"
            )
        for setting in (each for each in manifest.each_setting() if each.sigma == sigma):
            measures += measure_rows(manifest, setting, folder.cut(votes, setting.n))
            for method in manifest.methods:
                path = folder.certificate_path(name, setting, method)
                wanted = settle(manifest.certificate(setting, method), folder.cut(votes, setting.n), tree)
                certificate = _verified(path, folder.cut(votes, setting.n), hierarchy)
                _require(certificate.settings == wanted, path, "have the settings of the manifest")
                _require(
                    certificate.hierarchy.as_dict() == tree.as_dict(), path, "be over the hierarchy of the manifest"
                )
                rows += certificate_rows(name, setting, method, certificate, label)
                count += 1
    receipt, stored = folder.receipt(name), json.loads(json.dumps([rows, measures]))
    _require(receipt.rows == stored[0], folder.rows_path(name), "hold the sums of the certificates")
    _require(receipt.measures == stored[1], folder.rows_path(name), "hold the bounds of the measures")
    return count


def _verified(path: Path, votes: Votes | None, hierarchy: str | None) -> Certificate:
    """The certificate of a file, recomputed by the independent checker; made from these votes, where they are known."""
    outcome = verify(path, hierarchy=hierarchy)
    if not outcome.passed:
        failed = next(check for check in outcome.checks if not check.passed)
        raise InputError(f"{path}: must pass its checks, but {failed.name} does not: {failed.detail}")
    certificate = load_certificate(path)
    same = votes is None or certificate.votes.digest() == votes.digest()
    _require(same, path, "be made from the votes of its image")
    return certificate


def _uploads(folder: RunFolder, hierarchy: str | None) -> Iterator[Problem]:
    """What is wrong with the images dropped onto the page: their certificates, their summaries and their bounds."""
    for path in sorted((folder.path / UPLOADED).glob("*.certificate.npz")):
        noted, bounds = (path.with_name(path.name.replace(".certificate.npz", end)) for end in (".json", ".bounds.npz"))
        file = path  # the one that is looked at
        try:
            certificate = _verified(path, None, hierarchy)
            require_of_run(folder.manifest, certificate, str(path))
            file, summary = noted, read_summary(noted)
            told = summary.get("image_key"), summary.get("abstain")
            same = told == (certificate.votes.image_key, certificate.abstain_rate)
            _require(same, noted, "tell the image and the abstentions of its certificate")
            file = bounds
            for check in verify(bounds).checks if bounds.is_file() else ():
                _require(check.passed, bounds, f"pass its checks ({check.name})")
        except InputError as error:
            yield Problem(str(error), path=file)


def read_summary(path: Path) -> dict[str, Any]:
    """What was noted about an image that was dropped onto the page."""
    try:
        return dict(parse_json(path.read_text("utf-8")))
    except (OSError, ValueError, TypeError) as error:
        raise InputError(f"{path}: must be the summary of a dropped image, got: {error}; drop it again") from None


def strays_of(folder: RunFolder) -> Iterator[Problem]:
    """Files among those of the images that belong to none."""
    known = {path for name in folder.manifest.images for path in folder.files_of(name)}
    parts = {folder.partial_folder(name) for name in folder.manifest.images}
    for path in (path for sub in SUBFOLDERS for path in sorted((folder.path / sub).rglob("*")) if path.is_file()):
        if path not in known and path.parent not in parts and not path.name.startswith("."):
            yield Problem(f"{path}: must belong to an image of the run, but none has such a file", path=path)


def _table(folder: RunFolder, shard: Shard, finished: list[str]) -> Iterator[Problem]:
    """Whether the table is what the rows of the images add up to, byte for byte."""
    path = folder.table_path
    if shard != WHOLE and path.is_file():
        yield Problem(f"{path}: must not be there: a shard has no table of the run", path=path)
    if shard != WHOLE or not finished:
        return
    if not path.is_file():
        yield Problem(f"{path}: must be there, but is missing; the next start writes it", path=path)
        return
    with tempfile.TemporaryDirectory() as place:
        again = Path(place) / path.name
        write_table(again, (folder.receipt(name).rows for name in finished), run=folder.manifest.run_key)
        if again.read_bytes() != path.read_bytes():
            yield Problem(f"{path}: must be the sum of the rows, but it is not; the next start writes it", path=path)


def _require(condition: bool, path: Path, rule: str) -> None:
    if not condition:
        raise InputError(f"{path}: must {rule}, and that is not so")
