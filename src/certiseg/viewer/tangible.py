"""What a certificate is about, to be looked at.

The image along its threat, draws as the model got them, and perturbations of l2 size R and beyond, in a random
direction or searched by gradients.
"""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from certiseg.attack.search import distance, find_perturbation, perturbed_image
from certiseg.attack.settings import AttackSettings
from certiseg.attack.targets import target_of
from certiseg.errors import InputError
from certiseg.images import Picture, shown
from certiseg.noise import noise_stream, perturbation
from certiseg.noise.along_threat import moved_images
from certiseg.probing import noise_free
from certiseg.viewer import layers
from certiseg.viewer.choice import Choice, number, one_of, parse_choice, whole
from certiseg.viewer.uploads import Busy
from certiseg.words import no_less, rounded_down

if TYPE_CHECKING:
    from certiseg.certificate import Certificate
    from certiseg.viewer.app import Viewer

MOST_SHOWN = 1 << 21
"""Pixels of a picture that is sent; larger ones are sent smaller."""
MOST_ATTACKED = 1 << 20
MOST_TIMES = 1024
"""Radii R that a perturbation may have."""
ATTACK = AttackSettings(steps=10, restarts=1, samples=1, judges=1)
_BEYOND = 2.0
"""How far the slider of a threat goes, in ends of the certified range."""

Pixels = NDArray[np.float32]
Facts = dict[str, Any]


class Tangible:
    """The pictures of one viewer."""

    def __init__(self, viewer: Viewer) -> None:
        self.viewer = viewer
        self._attacking = threading.Lock()
        self._looks: dict[str, Callable[[Choice, Pixels, float], tuple[Pixels, Facts]]] = {
            "moved": self._moved,
            "draw": self._draw,
            "random": self._random,
        }

    def facts(self) -> Facts:
        """What the page needs to know once."""
        manifest = self.viewer.reader.manifest
        end = max(manifest.end(setting) for setting in manifest.each_setting())
        threat = manifest.threat
        return {"threat": {"name": threat.name, "law": threat.law, "most": _BEYOND * end, "words": threat.describe()}}

    async def look(self, request: Request) -> Response:
        """The image along the threat at `amount`, a draw of that number, or a random perturbation of so many radii."""
        query, viewer = request.query_params, self.viewer
        choice = parse_choice(query, also=("lane", "request", "what", "amount"))
        make, amount = self._looks[one_of(query, "what", tuple(self._looks))], number(query, "amount")

        def work() -> Response:
            picture = viewer.pictures.open(choice.image)
            pixels, facts = make(choice, picture.pixels, amount)
            return _pictured(pixels, picture, facts)

        return await viewer.latest_only.run(query.get("lane", "") + " look", whole(query, "request"), work)

    def attack(self, request: Request) -> Response:
        """The image with a perturbation of so many radii that gradients have found, and what it changes."""
        query, viewer = request.query_params, self.viewer
        choice, times = parse_choice(query, also=("amount",)), _times(number(query, "amount"))
        picture, certificate = viewer.pictures.open(choice.image), self._of_l2(choice)
        pixels = picture.pixels
        if pixels.shape[0] * pixels.shape[1] > MOST_ATTACKED:
            raise InputError(
                f"image must have at most {MOST_ATTACKED:,} pixels to be attacked here, got "
                f"{pixels.shape[0] * pixels.shape[1]:,}; use `certiseg attack`"
            )
        viewer.uploads.require_idle()
        if not self._attacking.acquire(blocking=False):
            raise Busy("one attack is searched at a time, and another is not done; wait for it")
        try:
            moved, changed = self._search(certificate, pixels, times * certificate.radius)
        finally:
            self._attacking.release()
        facts = _size_facts(pixels, moved, certificate, times, "found by gradients") | changed
        return _pictured(moved, picture, facts)

    def _search(self, certificate: Certificate, pixels: Pixels, size: float) -> tuple[Pixels, Facts]:
        votes, segmenter = certificate.votes, self.viewer.uploads.model()
        options: dict[str, Any] = {"size": size, "sigma": votes.sigma, "attack": ATTACK, "seed": secrets.randbits(53)}
        delta = find_perturbation(segmenter, pixels, target_of(certificate, "all"), **options)
        moved = perturbed_image(pixels, delta, size=size, noise=votes.noise)
        before, after = (noise_free(segmenter, each, batch_size=1) for each in (pixels, moved))
        return moved, {"changed": float((before != after).mean())}

    # -- pictures --------------------------------------------------------------------------------------------------

    def _moved(self, choice: Choice, pixels: Pixels, amount: float) -> tuple[Pixels, Facts]:
        certificate = self.viewer.certificate(choice)
        threat, (low, high) = certificate.votes.threat, certificate.range
        if threat.law == "none":
            raise InputError("what must be draw or random for l2, got moved: it has no parameter")
        if abs(amount) > self.facts()["threat"]["most"] * 8:
            raise InputError(f"amount must be near the certified range, up to t = {high:g}, got {amount:g}")
        facts = {"words": _plainly(threat.words(amount), amount), "inside": low <= amount <= high}
        return threat.apply(pixels, amount), facts | {"extent": certificate.extent}

    def _draw(self, choice: Choice, pixels: Pixels, amount: float) -> tuple[Pixels, Facts]:
        votes = self.viewer.reader.votes(choice.image, choice.sigma, choice.n)
        draws = votes.n * len(votes.anchors)
        if not (amount.is_integer() and 0 <= amount < draws) or votes.seed is None or votes.image_key is None:
            raise InputError(f"amount must be a draw in 0..{draws - 1}, got {amount:g}")
        noisy, draw = np.empty_like(pixels), int(amount)
        if votes.threat.law == "none":
            stream = noise_stream(seed=votes.seed, image_key=votes.image_key, stage="estimation")
            perturbation(pixels, sigma=votes.sigma, noise=votes.noise)(stream, draw, noisy)
        else:
            settings = replace(self.viewer.reader.manifest.sampling(votes.sigma), seed=votes.seed)
            moved_images(pixels, settings, image_key=votes.image_key, stage="estimation")(draw, noisy)
        beside = f", sigma = {votes.sigma:g}" if votes.sigma else ""
        return noisy, {"words": f"draw {draw + 1} of {draws}, as the model got it{beside}", "inside": None}

    def _random(self, choice: Choice, pixels: Pixels, amount: float) -> tuple[Pixels, Facts]:
        times, certificate = _times(amount), self._of_l2(choice)
        direction = np.random.default_rng(0).standard_normal(pixels.shape, np.float32)
        size = times * certificate.radius
        delta = direction * np.float32(size / np.linalg.norm(direction.astype(np.float64)))
        moved = perturbed_image(pixels, delta, size=size, noise="gaussian")
        return moved, _size_facts(pixels, moved, certificate, times, "in a random direction")

    def _of_l2(self, choice: Choice) -> Certificate:
        certificate = self.viewer.certificate(choice)
        if certificate.votes.threat.law != "none" or not certificate.radius > 0:
            raise InputError("certificate must cover perturbations of an l2 size above 0 to show one, got another")
        return certificate

    def routes(self) -> list[Route]:
        return [Route("/api/look", self.look), Route("/api/attack", self.attack, methods=["POST"])]


def _times(amount: float) -> float:
    if not 0 < amount <= MOST_TIMES:
        raise InputError(f"amount must be above 0 and at most {MOST_TIMES} radii R, got {amount:g}")
    return amount


def _size_facts(pixels: Pixels, moved: Pixels, certificate: Certificate, times: float, how: str) -> Facts:
    size, largest = distance(moved, pixels), float(np.abs(moved - pixels).max())
    rms = 255 * size / np.sqrt(pixels.size)
    words = (
        f"a perturbation {how}, l2 size {size:.4f} ({times:g} R): {no_less(rms, 2)} grey levels RMS, at most "
        f"{no_less(255 * largest, 1)}"
    )
    inside = size <= certificate.radius
    return {"words": words, "inside": bool(inside), "extent": f"R = {rounded_down(certificate.radius, 4)}"}


def _plainly(words: str, amount: float) -> str:
    """What a parameter means, without what a range says of its end."""
    if words.startswith("gamma"):
        return f"gamma {np.exp(amount):.2f}"
    return words.replace("up to ", "").replace("down to ", "")


def _pictured(pixels: Pixels, picture: Picture, facts: Facts) -> Response:
    """Facts and the pixels as red, green, blue and opaque bytes."""
    colours = shown(Picture(np.clip(pixels, 0, 1), picture.values))
    height, width = colours.shape[:2]
    if height * width > MOST_SHOWN:
        part = (MOST_SHOWN / (height * width)) ** 0.5
        colours = np.array(
            Image.fromarray(colours).resize((int(width * part), int(height * part)), Image.Resampling.BOX)
        )
    opaque = np.dstack([colours, np.full(colours.shape[:2], 255, np.uint8)])
    packed = layers.pack(facts, {"picture": np.ascontiguousarray(opaque).view("<u4")[..., 0]})
    return Response(packed, media_type="application/octet-stream")
