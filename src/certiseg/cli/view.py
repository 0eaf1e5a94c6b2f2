"""certiseg view: a run as a local web page."""

from __future__ import annotations

import argparse
from dataclasses import fields
from typing import Any

from certiseg.cli import COMMANDS
from certiseg.cli.options import add_model_options, model_and_hierarchy
from certiseg.errors import InputError
from certiseg.models.settings import ModelChoice, ModelSettings
from certiseg.settings import typed_field
from certiseg.viewer.server import address, check_token, open_socket, serve


def add_parser(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "view",
        help=COMMANDS["view"],
        description="Opens a run as a local web page: every image with its certified maps, sliders that certify its "
        "stored votes again, what is known about each pixel. A second run is shown beside it, on the images that both "
        "have. Images dropped onto the page are certified with the (first) run's model. Needs "
        "`pip install certiseg[view]`; nothing is fetched from any network.",
        epilog="example: certiseg view runs/camvid --root ../shared/data/camvid",
    )
    parser.add_argument("folder", metavar="RUN", help="a run folder of `certiseg evaluate`")
    parser.add_argument("second", metavar="RUN2", nargs="?", help="another run, to compare with: model, sigma, threat")
    parser.add_argument("--root", metavar="DIR", help="where the data set lies, for the photographs (not for streets)")
    parser.add_argument(
        "--truth", metavar="DIR", help="calibrated sets of the images, NAME.truth.npz, to show beside the maps"
    )
    parser.add_argument("--port", type=int, default=0, help="port to listen on (default: a free one)")
    parser.add_argument("--host", default="127.0.0.1", help="anything but loopback needs --token (default: 127.0.0.1)")
    parser.add_argument("--token", help="asked for once per browser; at least 12 letters and digits")
    parser.add_argument("--no-browser", action="store_true", help="only print the address")
    add_model_options(parser)
    parser.set_defaults(run=run, model=None)


def run(args: argparse.Namespace) -> int:
    from certiseg.runs.folder import RunFolder

    check_token(args.host, args.token)
    folder = RunFolder(args.folder)
    second = None if args.second is None else RunFolder(args.second)
    for each in (folder, second):
        if each is not None and not each.finished():
            raise InputError(f"{each.path}: must have finished images; run `certiseg evaluate` first")
    args.model, args.sigma = args.model or folder.manifest.model, list(folder.manifest.sigmas)
    try:
        from certiseg.viewer.app import make_app
    except ModuleNotFoundError as error:
        raise InputError(f"{error.name} must be installed to view runs; run `pip install certiseg[view]`") from None

    app = make_app(
        folder,
        second,
        root=args.root,
        load_model=lambda: model_and_hierarchy(args)[0],
        model_options=model_arguments(args),
        truth=args.truth,
        host=args.host,
        token=args.token,
    )
    taken = open_socket(args.host, args.port)
    url = address(args.host, taken, args.token)
    images = app.state.viewer.compare.common
    what = f"{len(folder.finished())} images" if images is None else f"{len(images.images)} images in common"
    shown = " and ".join(str(each.path) for each in (folder, second) if each is not None)
    print(f"{shown}: {what} at {url} (Ctrl-C ends)", flush=True)
    serve(app, taken, url=url, browser=not args.no_browser)
    return 0


def model_arguments(args: argparse.Namespace) -> list[str]:
    """The options that choose the model, as one would type them."""
    words = []
    for each in (*fields(ModelChoice), *fields(ModelSettings)):
        value = getattr(args, each.name, None)
        said_no = value is False and each in fields(ModelSettings)
        words += [f"--no-{each.name.replace('_', '-')}"] if said_no else typed_field(each, value)
    return words
