"""Model + image -> votes: plan the draws, make them, add them up, keep them safe on the way.

    n0 selection draws of f(x + eps): mean posterior -> candidate, gap, ranking
    n fresh estimation draws: arg max -> counts

With a threat the draws are f(T_beta x + eps), at every anchor as many; the selection is pooled over the anchors.

Every draw has its own noise, a function of (seed, image, stage, draw index) alone: batch size, order, workers and
restarts change nothing. Memory does not grow with n, and no scores are kept.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray

from certiseg import __version__, on_device
from certiseg.drawing import answers, ask_in_lanes, lanes_of, threads_of_a_call, works_beside
from certiseg.errors import InputError
from certiseg.hierarchy import Hierarchy
from certiseg.images import BYTES, ImageLike, open_image
from certiseg.images.values import Values, values_words
from certiseg.kernels.counts import rank_classes
from certiseg.kernels.threads import aside
from certiseg.measures.measure import Measure
from certiseg.measures.questions import Question, resolve, scene_of
from certiseg.models.device import limited_threads, move
from certiseg.models.segmenter import ModelLike, Segmenter, as_segmenter
from certiseg.noise import image_key
from certiseg.partial_votes import PartialVotes, load_partial_votes
from certiseg.probing import noise_free, probe_of
from certiseg.settings import SamplingSettings, Stage, is_whole, takes
from certiseg.threats.anchors import place_anchors
from certiseg.votes import AnchorVotes, Votes, class_type, image_facts

if TYPE_CHECKING:
    from certiseg.models.outputs import Answers

StopRule = Callable[[Votes], bool]

BUFFERED_DRAWS = 16
"""Label maps kept before they are counted, so that each pixel's counts are visited once for all of them."""
_CHECKPOINT_SECONDS = 20.0
MOST_THREADS = 1024


@takes(SamplingSettings)
def sample(
    model: ModelLike,
    image: ImageLike,
    *,
    sigma: float,
    batch_size: int | None = None,
    snapshots: Sequence[int] = (),
    up_to: float | None = None,
    tau: float = 0.75,
    radius: float = 0.0,
    measures: Sequence[Question | Measure] = (),
    hierarchy: Hierarchy | None = None,
    keep_maps: bool = False,
    stop: StopRule | None = None,
    stop_every: int = 100,
    checkpoint: str | Path | None = None,
    progress: Callable[[int], None] | None = None,
    values: Sequence[Any] | None = None,
    device: str | None = None,
    threads: int | None = None,
    **settings: Any,
) -> Votes:
    """Votes of a model on one image: n0 selection draws, then n estimation draws, each with its own noise.

    Further keyword arguments are the fields of `settings.SamplingSettings`: n0, n, seed, max_set, temperature, noise,
    threat.
    threat: see `certiseg.threats`; each draw then has its own parameter, and sigma is pixel noise on top, or 0.
    up_to: the parameter up to which the threat is to be certified; anchors are placed for the given tau and radius, and
        n0 and n draws are made at each.
    noise: gaussian, or grid: rounded to whole grey levels, for 8-bit images and without a floating-point gap.
    measures: what to read from the label map of every estimation draw (see `certiseg.measures`); fixed by the
        selection draws at the latest. Labels that are vertices need the hierarchy. `cs.bound` turns values into bounds.
    keep_maps: keep the label maps, compressed, so that `votes.ask` can read further measures, as exploration.
    stop: asked every `stop_every` estimation draws with the votes so far; True ends the sampling there. With such a
        rule the votes are marked as stopped, whether it fired or not, and only test="anytime" accepts them. See
        `stopping.UndecidedRule` for one; the provenance of the votes names it.
    checkpoint: a file that holds the draws made so far; an interrupted call continues from it, and it is removed at
        the end.
    progress: called with the number of draws just made.
    values: the numbers that 0 and 1 stand for in the image, (low, high), or one such pair per channel (default: 0..255
        of 8 bits, 0..65535 of 16 bits, 0..1 of floats). sigma and R are in units of that range.
    device: where a torch model runs: cpu, cuda, cuda:1, ... (default: where it is).
    threads: of one call of the model, on which its sums may depend; recorded (default: all that torch has, or a part
        of them where several calls can run side by side, which is faster).
    """
    segmenter = as_segmenter(model) if device is None else move(as_segmenter(model), device)
    picture = open_image(image, values=values, channels=segmenter.settings.channels)
    pixels = picture.pixels
    batch = 1 if batch_size is None else batch_size
    asked = SamplingSettings(sigma=sigma, batch_size=batch, snapshots=tuple(sorted(set(snapshots))), **settings)
    if up_to is not None:
        asked = replace(asked, anchors=place_anchors(asked.threat, up_to, tau=tau, radius=radius, sigma=sigma))
    if threads is not None and not (is_whole(threads) and 1 <= threads <= MOST_THREADS):
        raise InputError(f"threads must be a whole number in 1..{MOST_THREADS}, got {threads!r}")
    memory, draws = asked.batch_size * pixels.nbytes, asked.draws("selection") + asked.draws("estimation")
    with limited_threads(threads or threads_of_a_call(segmenter, memory, draws)):
        partial = start(segmenter, pixels, asked, picture.values)
    sampler = _Sampler(segmenter, pixels, partial, checkpoint, progress or (lambda _: None))
    sampler.resume()
    sampler.lanes = lanes_of(segmenter, memory, draws, threads=int(sampler.partial.model["threads"]))
    with settled(sampler.partial):
        sampler.draw("selection", asked.draws("selection"))
        ask(sampler.partial, segmenter, measures, hierarchy, keep_maps=keep_maps)
        made = sampler.draw_until(stop, stop_every)
    votes = votes_of(sampler.partial, segmenter, n=made, stopped=stop is not None, rule=_rule(stop, stop_every))
    sampler.remove_checkpoint()
    return votes


# -- plan --------------------------------------------------------------------------------------------------------


def start(
    segmenter: Segmenter, pixels: NDArray[np.float32], settings: SamplingSettings, values: Values = BYTES
) -> PartialVotes:
    """Empty partial votes for an image, after a look at the model: a fixed function, and its answer without noise."""
    settings.threat.require_fits(pixels)
    if settings.noise == "grid" and values != BYTES:
        raise InputError(
            f"noise must be gaussian for images with values {values_words(values)}, got grid: its levels are "
            "those of 8-bit images"
        )
    prediction = noise_free(segmenter, pixels, batch_size=settings.batch_size)
    assert segmenter.num_classes is not None, "known after one answer"
    model = {
        "model_sha256": segmenter.fingerprint(),
        "probe": probe_of(segmenter, prediction),
        "denoiser_sigma": segmenter.preparation().get("denoiser_sigma"),
        "backend": segmenter.backend,
        "device": segmenter.device.type,
        "threads": torch.get_num_threads(),
        **({} if segmenter.arithmetic is None else {"arithmetic": segmenter.arithmetic}),
        **image_facts(pixels.shape[2], values),
    }
    size = (pixels.shape[0], pixels.shape[1])
    partial = PartialVotes(settings, key=image_key(pixels), size=size, num_classes=segmenter.num_classes, model=model)
    partial.prediction = prediction
    return partial


@contextlib.contextmanager
def settled(partial: PartialVotes) -> Iterator[None]:
    """Run the model on as many threads as the first draws had: sums in the model may depend on it."""
    before = torch.get_num_threads()
    torch.set_num_threads(int(partial.model.get("threads", before)))
    try:
        yield
    finally:
        torch.set_num_threads(before)


# -- draw and accumulate -----------------------------------------------------------------------------------------


def draw(
    segmenter: Segmenter,
    pixels: NDArray[np.float32],
    partial: PartialVotes,
    stage: Stage,
    draws: list[int],
    *,
    lanes: int = 1,
    each: Callable[[int], None] = lambda _: None,
) -> None:
    """Make the given draws of one stage and add them to the partial votes.

    Every call of the model has the same batch size (a last incomplete batch is filled up and the rest dropped), so
    that what a draw gives cannot depend on how the draws were split. lanes: calls of the model at once, for one that
    allows it. each(k) is called after k more draws.
    """
    tally = on_device.tally_of(partial, segmenter.device) if on_device.serves(segmenter.device) else None
    incoming = _Incoming(stage, partial, tally, each)
    if lanes > 1 and tally is None:
        ask_in_lanes(segmenter, pixels, partial, stage, draws, lanes=lanes, take=incoming.add)
    else:
        beside = tally is None and works_beside(partial)
        with aside() if beside else contextlib.nullcontext(_at_once) as run:
            for batch, scores in answers(segmenter, pixels, partial, stage, draws, beside=beside):
                run(incoming.add, batch, scores)
    incoming.count()


@dataclass
class _Incoming:
    """Answers on their way into partial votes, from any thread; label maps are counted several at once."""

    stage: Stage
    partial: PartialVotes
    tally: on_device.Tally | None
    each: Callable[[int], None]
    draws: list[int] = field(default_factory=list)
    maps: list[NDArray[np.integer]] = field(default_factory=list)
    guard: threading.Lock = field(default_factory=threading.Lock)

    def add(self, batch: list[int], scores: Answers) -> None:
        away = self.stage == "estimation" and self.tally is not None and self.tally.takes(self.partial.record)
        labels = scores.labels() if self.stage == "estimation" and not away else None
        with self.guard:
            if labels is not None:
                self.maps.append(labels)
                self.draws.extend(batch)
            elif away and self.tally is not None:
                self.tally.add_estimation(batch, scores)
            else:
                (self.tally or self.partial).add_selection(batch, scores)
            if len(self.draws) >= BUFFERED_DRAWS:
                self.count()
            self.each(len(batch))

    def count(self) -> None:
        if self.draws:
            self.partial.add_estimation(self.draws, np.concatenate(self.maps))
        self.draws.clear()
        self.maps.clear()


def _at_once(task: Callable[..., None], *arguments: Any) -> None:
    task(*arguments)


# -- checkpoint --------------------------------------------------------------------------------------------------


@dataclass
class _Sampler:
    """Draws one image in slices, keeping what was drawn in a file if the caller wants one."""

    segmenter: Segmenter
    pixels: NDArray[np.float32]
    partial: PartialVotes
    checkpoint: str | Path | None
    progress: Callable[[int], None]
    lanes: int = 1
    saved: float = 0.0

    def resume(self) -> None:
        """Go on from the checkpoint, if there is one and it is of the same image, model and settings."""
        self.saved = time.monotonic()
        if self.checkpoint is None or not Path(self.checkpoint).exists():
            return
        found, fresh = load_partial_votes(self.checkpoint), self.partial
        threads = {"threads": found.model.get("threads")}
        if found.identity != fresh.identity or found.model != fresh.model | threads:
            raise InputError(
                f"{self.checkpoint}: must be of the same image, model and settings to go on; remove it to start anew"
            )
        found.prediction = fresh.prediction
        self.partial = found
        self.progress(int(sum(done.sum() for done in found.done.values())))

    def draw(self, stage: Stage, upto: int) -> None:
        """Make the missing draws of a stage below `upto`."""
        missing = self.partial.missing(stage, upto)
        per_slice = len(missing) if self.checkpoint is None else 16 * self.lanes * self.partial.settings.batch_size
        for begin in range(0, len(missing), per_slice or 1):
            slice_ = missing[begin : begin + per_slice]
            draw(self.segmenter, self.pixels, self.partial, stage, slice_, lanes=self.lanes, each=self.progress)
            if self.checkpoint is not None and time.monotonic() - self.saved > _CHECKPOINT_SECONDS:
                self.partial.save(self.checkpoint)
                self.saved = time.monotonic()

    def draw_until(self, stop: StopRule | None, every: int) -> int:
        """Make estimation draws until n, or until `stop` says so; returns how many there are."""
        n, anchors = int(self.partial.settings.n), len(self.partial.settings.anchors)
        if stop is None:
            self.draw("estimation", n * anchors)
            return n
        if every < 1:
            raise InputError(f"stop_every must be at least 1, got {every}")
        before = int(self.partial.done["estimation"].sum())  # an interrupted run went on after asking about fewer
        looks: list[int] = [*range(every, n, every), n]
        for made in looks:
            if made * anchors < before:
                continue
            self.draw("estimation", made * anchors)
            if stop(votes_of(self.partial, self.segmenter, n=made, stopped=True)):
                return made
        return n

    def remove_checkpoint(self) -> None:
        """The votes are complete: nothing is left to go on with."""
        if self.checkpoint is not None:
            Path(self.checkpoint).unlink(missing_ok=True)


def _rule(stop: StopRule | None, every: int) -> dict[str, Any]:
    """The rule of stopping as it is recorded."""
    if stop is None:
        return {}
    named = {"rule": getattr(stop, "__qualname__", type(stop).__qualname__)}
    return {"stop": {**getattr(stop, "rule", named), "asked_every": every}}


# -- measures ----------------------------------------------------------------------------------------------------


def ask(
    partial: PartialVotes,
    segmenter: Segmenter,
    questions: Sequence[Question | Measure],
    hierarchy: Hierarchy | None = None,
    *,
    keep_maps: bool = False,
) -> None:
    """Settle what is measured, by the selection draws: all of them must be there, and no estimation draw."""
    found: tuple[Measure, ...] = ()
    if questions:
        found = resolve(
            questions, scene_of(candidate_of(partial), hierarchy, segmenter.class_names or partial.num_classes)
        )
    partial.ask(found, keep_maps=keep_maps)


def candidate_of(partial: PartialVotes) -> NDArray[np.integer]:
    """(H, W): the candidate of every pixel, from partial votes that hold all selection draws."""
    return np.ascontiguousarray(_ranked(partial)[0][..., 0])


# -- votes -------------------------------------------------------------------------------------------------------


def votes_of(
    partial: PartialVotes,
    segmenter: Segmenter,
    *,
    n: int | None = None,
    stopped: bool = False,
    rule: Mapping[str, Any] | None = None,
) -> Votes:
    """The votes of all draws; with n, of partial votes that hold just the first n estimation draws."""
    settings = partial.settings
    made, anchors = settings.n if n is None else n, len(settings.anchors)
    upto = made * anchors
    if partial.missing("selection") or partial.missing("estimation", upto) or partial.done["estimation"][upto:].any():
        raise InputError(
            f"partial votes must hold all {settings.n0} selection and exactly the first {made} estimation draws"
        )
    ranking, lead = _ranked(partial)
    share = lead / (settings.draws("selection") * settings.unit)
    counts = partial.counts.reshape(-1, anchors, *partial.counts.shape[1:])
    # One part that nothing can be added to any more needs no sum and no copy.
    alone = len(counts) == 1 and made == settings.n
    up_to_cut = counts if alone else np.cumsum(counts, axis=0, dtype=np.uint16)
    kept = {k: up_to_cut[i] for i, k in enumerate(settings.snapshots) if k < made}
    further = [
        AnchorVotes(settings.anchors[a], up_to_cut[-1, a], {k: of_all[a] for k, of_all in kept.items()})
        for a in range(1, anchors)
    ]
    return Votes(
        candidate=np.ascontiguousarray(ranking[..., 0]),
        # Vote shares are few exact fractions and stay exact; mean posteriors are no finer than 32 bits to begin with.
        gap=share if segmenter.kind == "labels" else share.astype(np.float32),
        ranking=ranking,
        counts=up_to_cut[-1, 0],
        n0=settings.n0,
        n=made,
        sigma=settings.sigma,
        seed=settings.seed,
        image_key=partial.key,
        classes=segmenter.class_names,
        snapshots={k: of_all[0] for k, of_all in kept.items()},
        stopped=stopped,
        noise=settings.noise,
        prediction=partial.prediction,
        threat=settings.threat,
        further=tuple(further),
        record=None if partial.record is None else partial.record.first(upto),
        provenance=_provenance(segmenter, partial) | dict(rule or {}),
    )


def _ranked(partial: PartialVotes) -> tuple[NDArray[np.unsignedinteger], NDArray[np.int64]]:
    """(H, W, max_set) the best classes of the selection draws, and (H, W) the lead of the first, in fixed point."""
    if partial.missing("selection"):
        raise InputError(f"partial votes must hold all {partial.settings.n0} selection draws")
    ranking = np.empty((*partial.size, partial.settings.max_set), class_type(partial.num_classes))
    lead = np.empty(partial.size, np.int64)
    rank_classes(partial.sums, ranking, lead)
    return ranking, lead


def _provenance(segmenter: Segmenter, partial: PartialVotes) -> dict[str, Any]:
    """How the draws were made, for whoever wants to make them again."""
    recorded = {name: getattr(partial.settings, name) for name in ("batch_size", "temperature", "noise")}
    versions = {"certiseg": __version__, "torch": torch.__version__, "numpy": np.__version__}
    return {"model": segmenter.name, "scores": segmenter.kind, **partial.model, **recorded, "versions": versions}
