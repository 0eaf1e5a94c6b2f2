"""The web application: the page of one run, and the answers to what it asks."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio.to_thread
import numpy as np
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from certiseg.certificate import Certificate
from certiseg.certify import make_certificate
from certiseg.errors import InputError
from certiseg.runs.folder import RunFolder
from certiseg.runs.settings import Setting
from certiseg.viewer import layers
from certiseg.viewer.body import TooLarge, read_body
from certiseg.viewer.cache import BoundedCache
from certiseg.viewer.calibrated import Calibrated
from certiseg.viewer.choice import Choice, command, number, one_of, parse_choice, role, text, whole
from certiseg.viewer.compare import Compare
from certiseg.viewer.guard import Guard
from certiseg.viewer.latest_only import LatestOnly, Overtaken
from certiseg.viewer.overview import images_of, overview
from certiseg.viewer.pictures import Pictures
from certiseg.viewer.pixel import describe
from certiseg.viewer.questions import Questions
from certiseg.viewer.run_reader import NotFound, RunReader, is_upload
from certiseg.viewer.server import is_loopback
from certiseg.viewer.tangible import Tangible
from certiseg.viewer.uploads import MAX_BYTES, Busy, Uploads
from certiseg.words import COMPARISON, PROMISE

if TYPE_CHECKING:
    from certiseg.models.segmenter import Segmenter

STATIC = Path(__file__).parent / "static"
_KEPT_CERTIFICATES = 6


class Viewer:
    """The answers to a page about one run. Those that are no coroutines run in threads."""

    def __init__(
        self,
        folder: RunFolder,
        *,
        root: str | None,
        load_model: Callable[[], Segmenter],
        model_options: Sequence[str],
        second: Viewer | None = None,
        truth: str | None = None,
    ) -> None:
        self.reader = RunReader(folder)
        self.pictures = Pictures(self.reader, root)
        self.uploads = Uploads(self.reader, load_model)
        self.latest_only = LatestOnly()
        self.model_options = tuple(model_options)
        self.second, self.compare = second, Compare(self, second)
        self.questions, self.tangible, self.calibrated = Questions(self), Tangible(self), Calibrated(self, truth)
        self._certificates = BoundedCache[Certificate](_KEPT_CERTIFICATES, lambda _: 1)

    def certificate(self, choice: Choice) -> Certificate:
        """The certificate of a choice, computed from stored votes."""
        return self._certificates.get(choice, lambda: self._certify(choice))

    def _certify(self, choice: Choice) -> Certificate:
        votes = self.reader.votes(choice.image, choice.sigma, choice.n)
        return make_certificate(votes, self.reader.tree, choice.settings)

    def role(self, choice: Choice, certificate: Certificate) -> dict[str, Any]:
        """Whether a choice is the promise, a comparison or an exploration, and how it differs from what was fixed."""
        found = role(certificate, self.reader.fixed(choice.image, certificate.votes))
        earlier = self.earlier(choice.image)
        if earlier and found["role"] == PROMISE:
            found["role"] = COMPARISON
        return {**found, "earlier": earlier}

    def earlier(self, name: str) -> int:
        """How often an uploaded image was uploaded before; 0 for the run's own."""
        return int(self.reader.summary(name).get("earlier", 0)) if is_upload(name) else 0

    # -- what is shown ---------------------------------------------------------------------------------------------

    def page(self, request: Request) -> Response:
        return FileResponse(STATIC / "index.html", headers={"cache-control": "no-cache"})

    def overview(self) -> dict[str, Any]:
        """What the page needs to know once about the run."""
        return overview(self.reader, self.pictures)

    def run(self, request: Request) -> Response:
        beside = self.compare.facts() | self.tangible.facts() | self.calibrated.facts()
        return JSONResponse(self.overview() | beside)

    def images(self, request: Request) -> Response:
        return JSONResponse(images_of(self.reader, self.compare.images()))

    def picture(self, request: Request) -> Response:
        make = self.pictures.thumbnail if request.url.path.endswith("thumbnail") else self.pictures.png
        return Response(make(text(request.query_params, "image")), media_type="image/png")

    def labels(self, request: Request) -> Response:
        """The ground truth, or the model's labels without noise."""
        kinds = {"truth": self.reader.truth, "prediction": self.reader.prediction}
        which = one_of(request.query_params, "which", tuple(kinds))
        found = kinds[which](text(request.query_params, "image"))
        if found is None:
            raise NotFound(f"{which} must be in the run, got none: the image was dropped onto the page")
        return layers.packed({}, {"vertex": layers.label_layer(found)})

    async def map(self, request: Request) -> Response:
        """The certified map of a choice; of the moves in one lane only the latest is computed."""
        query = request.query_params
        choice = parse_choice(query, also=("lane", "request", "layers", "highlight", "side", "of"))
        of = whole(query, "of") if "of" in query else None
        highlight = None
        if "highlight" in query:
            highlight = (whole(query, "highlight"), one_of(query, "side", layers.SIDES))

        def work() -> Response:
            certificate, truth = self.certificate(choice), self.reader.truth(choice.image)
            facts = {
                **layers.numbers(certificate, truth),
                **self.role(choice, certificate),
                "claim": certificate.claim(),
                "radius_statement": certificate.radius_map_statement,
                "radius_is_joint": certificate.radius_is_joint,
            }
            made = layers.layers_of(certificate, query.get("layers", "vertex").split(","), highlight, truth)
            if truth is not None and of is not None:
                made["of"] = (truth == of).astype(np.uint8)
            return layers.packed(facts, made)

        return await self.latest_only.run(query.get("lane", ""), whole(query, "request"), work)

    async def pixel(self, request: Request) -> Response:
        """What is known about one pixel."""
        query = request.query_params
        choice = parse_choice(query, also=("lane", "request", "row", "column"))
        row, column = whole(query, "row"), whole(query, "column")

        def work() -> Response:
            truth, prediction = self.reader.truth(choice.image), self.reader.prediction(choice.image)
            return JSONResponse(describe(self.certificate(choice), row, column, truth=truth, prediction=prediction))

        return await self.latest_only.run(query.get("lane", "") + " pixel", whole(query, "request"), work)

    def recipe(self, request: Request) -> Response:
        """The command that makes a certificate of what is explored."""
        choice = parse_choice(request.query_params)
        certificate, selection = self.certificate(choice), self.pictures.selection()
        line = command(self.reader, choice.image, certificate, selection=selection, model=self.model_options)
        return JSONResponse({"command": line, **self.role(choice, certificate)})

    # -- uploads ---------------------------------------------------------------------------------------------------

    async def upload(self, request: Request) -> Response:
        """Take an image file as the body of the request and begin to certify it."""
        query = request.query_params
        setting = Setting(number(query, "sigma"), whole(query, "n"), number(query, "tau"))
        name, method = text(query, "name")[:100], text(query, "method")
        self.uploads.require_idle()
        content = await read_body(request, name, MAX_BYTES)
        upload = await anyio.to_thread.run_sync(lambda: self.uploads.start(content, name, setting, method))
        return JSONResponse(upload.facts(), status_code=202)

    def progress(self, request: Request) -> Response:
        """The map of an upload so far."""
        upload = self.uploads.find(request.path_params["id"])
        certificate = upload.certificate
        if certificate is None:
            return layers.packed(upload.facts(), {})
        facts = {**layers.numbers(certificate, None), **upload.facts(), "claim": certificate.claim()}
        return layers.packed(facts, {"vertex": certificate.vertex})

    def steer(self, request: Request) -> Response:
        """Cancel an upload, or stop drawing and keep what is certified so far."""
        upload = self.uploads.find(request.path_params["id"])
        upload.wish = one_of(request.path_params, "wish", ("cancel", "stop"))
        return JSONResponse(upload.facts())

    def current(self, request: Request) -> Response:
        """The image that is being certified, for a page that was loaded again."""
        upload = self.uploads.current
        return JSONResponse(None if upload is None or upload.state != "drawing" else upload.facts())

    def download(self, request: Request) -> Response:
        """The certificate file of an upload, for `certiseg verify`."""
        name = self.reader.require(text(request.query_params, "image"))
        if not is_upload(name):
            raise NotFound("certificates of the run's own images lie in its folder `certificates`")
        path = self.reader.inside(self.reader.upload_path(name, ".certificate.npz"))
        return FileResponse(path, filename=path.name, media_type="application/octet-stream")

    def routes_of_maps(self) -> list[Route]:
        """What a second run is asked for, too."""
        return [
            Route("/api/labels", self.labels),
            Route("/api/map", self.map),
            Route("/api/pixel", self.pixel),
            Route("/api/recipe", self.recipe),
        ]

    def routes(self) -> list[Route | Mount]:
        return [
            Route("/", self.page),
            Route("/api/run", self.run),
            Route("/api/images", self.images),
            Route("/api/thumbnail", self.picture),
            Route("/api/picture", self.picture),
            *self.routes_of_maps(),
            *self.compare.routes(),
            *self.questions.routes(),
            *self.tangible.routes(),
            *self.calibrated.routes(),
            *([] if self.second is None else [Mount("/second", routes=self.second.routes_of_maps())]),
            Route("/api/certificate", self.download),
            Route("/api/drop", self.upload, methods=["POST"]),
            Route("/api/drop/current", self.current),
            Route("/api/drop/{id}", self.progress),
            Route("/api/drop/{id}/{wish}", self.steer, methods=["POST"]),
            Mount("/static", StaticFiles(directory=STATIC)),
        ]


def make_app(
    folder: RunFolder,
    second: RunFolder | None = None,
    *,
    root: str | None = None,
    load_model: Callable[[], Segmenter] | None = None,
    model_options: Sequence[str] = (),
    truth: str | None = None,
    host: str = "127.0.0.1",
    token: str | None = None,
) -> Starlette:
    """The application that shows one run folder, or two side by side.

    root: where its data set lies, for the photographs. load_model: loads the run's model, for uploads.
    model_options: the options that choose this model on a command line. truth: a folder of calibrated sets.
    """
    from certiseg.models.load import load_model as load

    name = folder.manifest.model  # a folder that is no run is refused here
    other = None if second is None else _only_maps(second, root)
    viewer = Viewer(
        folder,
        second=other,
        root=root,
        load_model=load_model or (lambda: load(name)),
        model_options=model_options or ("--model", name),
        truth=truth,
    )
    middleware = [Middleware(Guard, host=host, token=token)]
    if not is_loopback(host):  # on one machine, compressing costs more than it saves
        middleware.append(Middleware(GZipMiddleware, minimum_size=4096, compresslevel=1))
    handlers: dict[Any, Any] = {error: _refusal(status) for error, status in _STATUS.items()}
    app = Starlette(routes=viewer.routes(), middleware=middleware, exception_handlers=handlers)
    app.state.viewer = viewer
    return app


def _only_maps(folder: RunFolder, root: str | None) -> Viewer:
    """The second run: it is looked at, and certifies no uploads."""
    from certiseg.models.load import load_model

    name = folder.manifest.model
    return Viewer(folder, root=root, load_model=lambda: load_model(name), model_options=("--model", name))


_STATUS: dict[type[Exception], int] = {
    Overtaken: 204,
    ClientDisconnect: 204,
    NotFound: 404,
    Busy: 409,
    TooLarge: 413,
    InputError: 400,
    OSError: 500,
}


def _refusal(status: int) -> Callable[[Request, Exception], Awaitable[Response]]:
    async def answer(request: Request, error: Exception) -> Response:
        if status == 204:
            return Response(status_code=status)
        closing = {"connection": "close"} if status == 413 else {}
        return JSONResponse({"error": str(error)}, status_code=status, headers=closing)

    return answer
