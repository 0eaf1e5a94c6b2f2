"""The answers to questions of the page about objects and areas."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from certiseg.viewer import ask
from certiseg.viewer.body import read_body
from certiseg.viewer.choice import parse_choice, whole
from certiseg.words import COMPARISON, PROMISE

if TYPE_CHECKING:
    from certiseg.viewer.app import Viewer


class Questions:
    """The answers of one viewer."""

    def __init__(self, viewer: Viewer) -> None:
        self.viewer = viewer

    async def objects(self, request: Request) -> Response:
        """What was measured while the votes were drawn, with its bounds."""
        query, viewer = request.query_params, self.viewer
        choice = parse_choice(query, also=("lane", "request"))

        def work() -> Response:
            votes = viewer.reader.votes(choice.image, choice.sigma, choice.n)
            role = ask.role_of(viewer.reader, choice, votes)
            if role == PROMISE and viewer.earlier(choice.image):
                role = COMPARISON
            return JSONResponse(ask.objects_of(choice, votes, role))

        return await viewer.latest_only.run(query.get("lane", "") + " objects", whole(query, "request"), work)

    async def ask(self, request: Request) -> Response:
        """What is known about a region that was drawn on the page."""
        query, viewer = request.query_params, self.viewer
        choice = parse_choice(query, also=("lane", "request"))
        content = await read_body(request, "question", ask.MOST_BYTES)

        def work() -> Response:
            certificate = viewer.certificate(choice)
            votes, path = certificate.votes, viewer.pictures.path(choice.image)
            asked = ask.parse_question(content, votes, viewer.reader.tree)
            found = ask.answer(asked, choice, certificate, viewer.reader.prediction(choice.image))
            picture = path or f"{choice.image}.png"
            line = ask.question_command(
                viewer.reader, asked, choice, votes, picture=picture, model=viewer.model_options
            )
            return JSONResponse({**found, "command": line, "file_name": ask.FILE, "save_picture": path is None})

        return await viewer.latest_only.run(query.get("lane", "") + " ask", whole(query, "request"), work)

    def routes(self) -> list[Route]:
        return [Route("/api/objects", self.objects), Route("/api/ask", self.ask, methods=["POST"])]
