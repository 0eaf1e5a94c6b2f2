"""The web application: a page, and what it asks for."""

from __future__ import annotations

import os
import tempfile
import warnings
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import anyio.to_thread
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from certiseg.archive import UNFINISHED
from certiseg.certificate import Certificate
from certiseg.certify import NothingCertifiable, certify
from certiseg.errors import InputError
from certiseg.runs.folder import RunFolder
from certiseg.runs.manifest import Setting
from certiseg.viewer import layers
from certiseg.viewer.choice import NAMES, Choice, command, differences, number, one_of, parse_choice, text, whole
from certiseg.viewer.drops import MAX_BYTES, Busy, Drops, drop_folder
from certiseg.viewer.guard import Guard, is_loopback
from certiseg.viewer.newest import Newest, Overtaken
from certiseg.viewer.overview import images_of, overview
from certiseg.viewer.pictures import Pictures
from certiseg.viewer.pixel import describe
from certiseg.viewer.shelf import Bounded, NotFound, Shelf, is_dropped

STATIC = Path(__file__).parent / "static"
_KEPT_CERTIFICATES = 6
Handler = Callable[[Request], Awaitable[Response]]


class TooLarge(InputError):
    """An upload with more bytes than are taken."""


class Viewer:
    """The answers to a page about one run."""

    def __init__(
        self, folder: RunFolder, *, root: str | None, load_model: Callable[[], Any], model_options: Sequence[str]
    ) -> None:
        self.shelf = Shelf(folder)
        self.pictures = Pictures(self.shelf, root)
        self.drops = Drops(self.shelf, load_model)
        self.newest = Newest()
        self.model_options = tuple(model_options)
        self._certificates = Bounded(_KEPT_CERTIFICATES, lambda _: 1)

    def certificate(self, choice: Choice) -> Certificate:
        """The certificate of a choice, computed from stored votes."""
        return self._certificates.get(choice, lambda: self._certify(choice))

    def _certify(self, choice: Choice) -> Certificate:
        votes = self.shelf.votes(choice.image, choice.sigma, choice.n)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NothingCertifiable)  # the page says it
            return certify(votes, self.shelf.tree, **dict(choice.options))

    def facts(self, choice: Choice, certificate: Certificate) -> dict[str, Any]:
        """Numbers, claim, and whether it is a certificate or an exploration."""
        differs = differences(certificate, self.shelf.promises(choice.image, certificate.votes))
        return {
            **layers.numbers(certificate, self.shelf.truth(choice.image)),
            "differs": differs,
            "claim": certificate.claim(),
            "radius_statement": certificate.radius_map_statement,
        }

    # -- what is shown ---------------------------------------------------------------------------------------------

    async def page(self, request: Request) -> Response:
        return FileResponse(STATIC / "index.html", headers={"cache-control": "no-cache"})

    async def run(self, request: Request) -> Response:
        return JSONResponse(await _in_thread(lambda: overview(self.shelf, self.pictures)))

    async def images(self, request: Request) -> Response:
        return JSONResponse(await _in_thread(lambda: images_of(self.shelf)))

    async def picture(self, request: Request) -> Response:
        make = self.pictures.thumbnail if request.url.path.endswith("thumbnail") else self.pictures.png
        return Response(await _in_thread(lambda: make(text(request.query_params, "image"))), media_type="image/png")

    async def labels(self, request: Request) -> Response:
        """The ground truth, or the model's labels without noise."""
        which = one_of(request.query_params, "which", ("truth", "prediction"))

        def work() -> bytes:
            found = getattr(self.shelf, which)(text(request.query_params, "image"))
            if found is None:
                raise NotFound(f"{which} must be in the run, got none: the image was dropped onto the page")
            return layers.pack({}, {"vertex": layers.label_layer(found)})

        return Response(await _in_thread(work), media_type="application/octet-stream")

    async def map(self, request: Request) -> Response:
        """The certified map of a choice; of the moves in one lane only the newest is computed."""
        query = request.query_params
        choice = parse_choice(query, also=("lane", "request", "layers", "highlight", "side"))
        highlight = None
        if "highlight" in query:
            highlight = (whole(query, "highlight"), one_of(query, "side", layers.SIDES))

        def work() -> bytes:
            certificate = self.certificate(choice)
            made = layers.layers_of(certificate, query.get("layers", "vertex").split(","), highlight)
            return layers.pack(self.facts(choice, certificate), made)

        packed = await self.newest.run(query.get("lane", ""), whole(query, "request"), work)
        return Response(packed, media_type="application/octet-stream")

    async def pixel(self, request: Request) -> Response:
        """All about one pixel."""
        query = request.query_params
        choice = parse_choice(query, also=("lane", "request", "row", "column"))
        row, column = whole(query, "row"), whole(query, "column")

        def work() -> dict[str, Any]:
            certificate = self.certificate(choice)
            truth, prediction = self.shelf.truth(choice.image), self.shelf.prediction(choice.image)
            return describe(certificate, row, column, truth=truth, prediction=prediction)

        return JSONResponse(await self.newest.run(query.get("lane", "") + " pixel", whole(query, "request"), work))

    async def recipe(self, request: Request) -> Response:
        """How to make a certificate of what is explored."""
        choice = parse_choice(request.query_params)

        def work() -> dict[str, Any]:
            selection = self.pictures.selection()
            certificate = self.certificate(choice)
            line = command(self.shelf, choice.image, certificate, selection=selection, model=self.model_options)
            return {"command": line, "differs": self.facts(choice, certificate)["differs"]}

        return JSONResponse(await _in_thread(work))

    # -- dropped images --------------------------------------------------------------------------------------------

    async def drop(self, request: Request) -> Response:
        """Take an image file as the body of the request and begin to certify it."""
        query = request.query_params
        setting = Setting(number(query, "sigma"), whole(query, "n"), number(query, "tau"))
        name, method = text(query, "name")[:100], text(query, "method")
        self.drops.require_idle()
        declared = request.headers.get("content-length", "0")
        if not declared.isdigit() or int(declared) > MAX_BYTES:
            raise TooLarge(f"{name}: must be at most {MAX_BYTES >> 20} MB, got {declared[:20]} bytes")
        handle, unfinished = tempfile.mkstemp(prefix=".upload.", suffix=UNFINISHED, dir=drop_folder(self.shelf))
        try:
            await _receive(request, handle, name)
            drop = await _in_thread(lambda: self.drops.start(Path(unfinished), name, setting, method))
        finally:
            os.unlink(unfinished)
        return JSONResponse(drop.facts(), status_code=202)

    async def progress(self, request: Request) -> Response:
        """The newest map of a dropped image, and how far it is."""
        drop = self.drops.find(request.path_params["id"])

        def work() -> bytes:
            certificate = drop.certificate
            if certificate is None:
                return layers.pack(drop.facts(), {})
            facts = {**layers.numbers(certificate, None), **drop.facts(), "claim": certificate.claim()}
            return layers.pack(facts, {"vertex": certificate.vertex})

        return Response(await _in_thread(work), media_type="application/octet-stream")

    async def steer(self, request: Request) -> Response:
        """Cancel a dropped image, or stop drawing and keep what is certified so far."""
        drop = self.drops.find(request.path_params["id"])
        drop.wish = one_of(request.path_params, "wish", ("cancel", "stop"))
        return JSONResponse(drop.facts())

    async def current(self, request: Request) -> Response:
        """The image that is being certified, for a page that was loaded again."""
        drop = self.drops.current
        return JSONResponse(None if drop is None or drop.state != "drawing" else drop.facts())

    async def download(self, request: Request) -> Response:
        """The certificate file of a dropped image, for `certiseg verify`."""
        name = self.shelf.require(text(request.query_params, "image"))
        if not is_dropped(name):
            raise NotFound("certificates of the run's own images lie in its folder `certificates`")
        path = self.shelf.inside(self.shelf.dropped_path(name, ".certificate.npz"))
        return FileResponse(path, filename=path.name, media_type="application/octet-stream")

    def routes(self) -> list[Route | Mount]:
        return [
            Route("/", self.page),
            Route("/api/run", self.run),
            Route("/api/images", self.images),
            Route("/api/thumbnail", self.picture),
            Route("/api/picture", self.picture),
            Route("/api/labels", self.labels),
            Route("/api/map", self.map),
            Route("/api/pixel", self.pixel),
            Route("/api/recipe", self.recipe),
            Route("/api/certificate", self.download),
            Route("/api/drop", self.drop, methods=["POST"]),
            Route("/api/drop/current", self.current),
            Route("/api/drop/{id}", self.progress),
            Route("/api/drop/{id}/{wish}", self.steer, methods=["POST"]),
            Mount("/static", StaticFiles(directory=STATIC)),
        ]


def make_app(
    folder: RunFolder,
    *,
    root: str | None = None,
    load_model: Callable[[], Any] | None = None,
    model_options: Sequence[str] = (),
    host: str = "127.0.0.1",
    token: str | None = None,
) -> Starlette:
    """The application that shows one run folder.

    root: where its data set lies, for the photographs. load_model: gives the run's model, for dropped images.
    model_options: the options that name this model on a command line.
    """
    from certiseg.models.load import load_model as load

    folder.manifest  # noqa: B018 - a folder that is no run is refused here
    name = folder.manifest.model
    viewer = Viewer(
        folder,
        root=root,
        load_model=load_model or (lambda: load(name)),
        model_options=model_options or ("--model", name),
    )
    middleware = [Middleware(Guard, host=host, token=token)]
    if not is_loopback(host):  # on one machine, compressing costs more than it saves
        middleware.append(Middleware(GZipMiddleware, minimum_size=4096, compresslevel=1))
    app = Starlette(routes=viewer.routes(), middleware=middleware, exception_handlers=_HANDLERS)
    app.state.viewer = viewer
    return app


async def _receive(request: Request, handle: int, name: str) -> None:
    """Write the body to a file, and stop as soon as it is too long."""
    received = 0
    with os.fdopen(handle, "wb") as file:
        async for part in request.stream():
            received += len(part)
            if received > MAX_BYTES:
                raise TooLarge(f"{name}: must be at most {MAX_BYTES >> 20} MB, got more")
            file.write(part)


async def _in_thread(work: Callable[[], Any]) -> Any:
    return await anyio.to_thread.run_sync(work)


def _refused(status: int) -> Any:
    async def answer(request: Request, error: Exception) -> Response:
        closing = {"connection": "close"} if status == 413 else {}
        return JSONResponse({"error": str(error)}, status_code=status, headers=closing)

    return answer


async def _nothing_to_say(request: Request, error: Exception) -> Response:
    return Response(status_code=204)


_HANDLERS: dict[Any, Any] = {
    Overtaken: _nothing_to_say,
    ClientDisconnect: _nothing_to_say,
    NotFound: _refused(404),
    Busy: _refused(409),
    TooLarge: _refused(413),
    InputError: _refused(400),
    OSError: _refused(500),
}

__all__ = ["NAMES", "Viewer", "make_app"]
