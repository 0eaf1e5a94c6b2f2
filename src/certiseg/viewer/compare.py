"""Everything that is looked at side by side: the table of a run, two maps of an image, two runs."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from certiseg.errors import InputError
from certiseg.render.verdict import VERDICTS
from certiseg.runs.settings import Setting
from certiseg.viewer import layers
from certiseg.viewer.cache import BoundedCache
from certiseg.viewer.choice import number, one_of, parse_choice, whole
from certiseg.viewer.difference import DIFFERENCES, difference_map, joint_role, shares
from certiseg.viewer.verdict import table

if TYPE_CHECKING:
    from certiseg.viewer.app import Viewer
    from certiseg.viewer.run_reader import RunReader

_OF_B = "b_"
"""Begins the names of a query that choose map B."""


@dataclass(frozen=True)
class Common:
    """The images that two runs share, and how many each has alone."""

    images: tuple[str, ...]
    only_first: int
    only_second: int


def common_images(first: RunReader, second: RunReader) -> Common:
    """The finished images of both runs with one name and the same pixels; runs that cannot be compared are refused."""
    if first.tree.classes != second.tree.classes:
        raise InputError(
            f"{second.folder.path}: must be over the classes of {first.folder.path}, got others; "
            "view runs of one class list side by side"
        )
    here, there = first.folder.finished(), second.folder.finished()
    shared = tuple(name for name in here if name in set(there) and first.key(name) == second.key(name))
    if not shared:
        raise InputError(
            f"{second.folder.path}: must have images in common with {first.folder.path}, got none with the same name "
            "and pixels; evaluate both on one data set"
        )
    return Common(shared, len(here) - len(shared), len(there) - len(shared))


class Compare:
    """The answers of one viewer, or of two, to questions about more than one map."""

    def __init__(self, first: Viewer, second: Viewer | None) -> None:
        self.first, self.second = first, second
        self.common = None if second is None else common_images(first.reader, second.reader)
        self._tables = BoundedCache[dict[str, Any]](4, lambda _: 1)

    def images(self) -> list[str]:
        """The images on the page: those of the run, or those that both have; then the uploads."""
        names = self.first.reader.images()
        if self.common is None:
            return names
        return [*self.common.images, *self.first.reader.uploads()]

    def facts(self) -> dict[str, Any]:
        """What the page needs to know once."""
        known: dict[str, Any] = {"verdicts": [asdict(each) for each in VERDICTS]}
        known |= {"differences": [asdict(each) for each in DIFFERENCES], "second": None}
        if self.second is not None and self.common is not None:
            known["second"] = {**self.second.overview(), "only_here": self.common.only_second}
            known["only_here"] = self.common.only_first
        return known

    def table(self, request: Request) -> Response:
        """Images x classes x methods of a setting of the run."""
        query = request.query_params
        setting = Setting(number(query, "sigma"), whole(query, "n"), number(query, "tau"))
        reader = self.first.reader
        if setting not in reader.manifest.each_setting():
            raise InputError(f"sigma, n and tau must be a setting of the run, got {setting}")
        own = [name for name in self.images() if name not in reader.uploads()]
        return JSONResponse(self._tables.get((setting, *own), lambda: table(reader, own, **asdict(setting))))

    async def difference(self, request: Request) -> Response:
        """How map B differs from map A at every pixel."""
        query = dict(request.query_params)
        lane, turn = query.pop("lane", ""), whole(query, "request")
        chosen = {name.removeprefix(_OF_B): query.pop(name) for name in list(query) if name.startswith(_OF_B)}
        of_second = one_of({"b_run": chosen.pop("run", "")}, "b_run", ("first", "second")) == "second"
        if of_second and self.second is None:
            raise InputError("b_run must be first, got second; start `certiseg view` with two runs")
        other = self.second if of_second and self.second is not None else self.first
        one, two = parse_choice(query, also=("request",)), parse_choice(chosen)

        def work() -> Response:
            a, b = self.first.certificate(one), other.certificate(two)
            codes = difference_map(a, b)
            role = joint_role(self.first.role(one, a)["role"], other.role(two, b)["role"])
            return layers.packed({"role": role, "shares": shares(codes)}, {"difference": codes})

        return await self.first.latest_only.run(f"{lane} difference", turn, work)

    def routes(self) -> list[Route]:
        return [Route("/api/table", self.table), Route("/api/difference", self.difference)]
