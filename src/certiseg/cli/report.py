"""certiseg report: a run, or one certificate, as a single HTML file."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from tqdm import tqdm

from certiseg.archive import write_atomically
from certiseg.cli import COMMANDS
from certiseg.cli.options import channel_numbers
from certiseg.datasets import open_dataset
from certiseg.errors import InputError
from certiseg.images import open_image, shown
from certiseg.render.colours import Colours
from certiseg.runs.settings import parse_setting

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from certiseg.bounds import Bounds, Draws
    from certiseg.certificate import Certificate
    from certiseg.images.values import Picture
    from certiseg.runs.folder import RunFolder
    from certiseg.votes import Votes


def add_parser(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "report",
        help=COMMANDS["report"],
        description="Writes one HTML file that needs nothing else: what is promised and what is not, by class and by "
        "object, the worst images, how to check it, tables, and a gallery. RUN may also be a certificate file of "
        "`certiseg certify`. Runs and certificates keep no photographs; --root or --image shows them too. Several "
        "runs, of different data sets, models or methods, stand side by side in one page: one table of scores, one "
        "figure of levels.",
        epilog="example: certiseg report runs/camvid --root ../shared/data/camvid --out camvid.html; several runs: "
        "certiseg report runs/cityscapes runs/acdc --out both.html",
    )
    parser.add_argument(
        "paths",
        nargs="+",
        metavar="RUN|CERTIFICATE",
        help="a run folder, several of them, NAME.certificate.npz or NAME.truth.npz",
    )
    parser.add_argument("--out", metavar="FILE", help="the file to write (default: report.html beside it)")
    parser.add_argument(
        "--setting", metavar="SIGMA:N:TAU", help="whose figures are drawn (default: that of the promise)"
    )
    parser.add_argument("--images", type=int, default=60, metavar="N", help="at most N in the gallery (default: 60)")
    parser.add_argument(
        "--tables", metavar="DIR", help="with several runs: also their tables as CSV, Markdown, LaTeX and the figure"
    )
    parser.add_argument("--full", action="store_true", help="with every table and figure of the paper's experiments")
    parser.add_argument(
        "--colours",
        choices=get_args(Colours),
        default="classes",
        help="of the maps: one for every label, or one for each of at most six groups (default: classes)",
    )
    parser.add_argument(
        "--truth", metavar="FOLDER", help="what `evaluate --calibration` wrote: sets that hold the true class"
    )
    parser.add_argument("--root", metavar="DIR", help="the data set, to show the photographs of a run")
    parser.add_argument("--image", metavar="FILE", help="the photograph of a certificate")
    shown_channels = "channels of --image (default: the first three)"
    parser.add_argument("--show", type=channel_numbers, default=(), metavar="C,C,C", help=shown_channels)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    path, several = Path(args.paths[0]), len(args.paths) > 1
    for each in args.paths:
        if not Path(each).exists():
            raise InputError(f"RUN must be a run folder or a certificate file, got {each!r}, which is not there")
    if several and not args.out:
        raise InputError("--out must be given with several runs, got none; name the file to write")
    if args.tables and not several:
        raise InputError("--tables must be given with several runs, got a single one")
    out = Path(args.out) if args.out else _beside(path)
    if not out.parent.is_dir() or out.is_dir():
        raise InputError(f"--out must be a file in a folder that exists, got {str(out)!r}")
    text = _of_runs(args) if several else _of_run(args, path) if path.is_dir() else _of_file(args, path)
    with write_atomically(out) as file:
        file.write(text.encode())
    print(f"written: {out} ({out.stat().st_size / 1e6:.1f} MB); open it in a browser, or print it to PDF")
    return 0


def _beside(path: Path) -> Path:
    name = path.name.removesuffix(".npz").removesuffix(".certificate")
    return path / "report.html" if path.is_dir() else path.with_name(f"{name}.report.html")


def _of_run(args: argparse.Namespace, path: Path) -> str:
    from certiseg.report.run_report import run_report
    from certiseg.runs.folder import RunFolder

    if args.image:
        raise InputError("--image must be given with a certificate, got a run folder; use --root")
    if args.images < 0:
        raise InputError(f"--images must be at least 0, got {args.images}")
    folder = RunFolder(path)
    setting = None if args.setting is None else parse_setting(args.setting)
    photograph = _photographs(folder, args.root)
    with tqdm(unit="part", desc="report", disable=None, leave=False, delay=1) as bar:

        def progress(what: str) -> None:
            bar.set_postfix_str(what)
            bar.update()

        return run_report(
            folder,
            setting=setting,
            images=args.images,
            full=args.full,
            colours=args.colours,
            truth=args.truth,
            photograph=photograph,
            progress=progress,
        )


def _of_runs(args: argparse.Namespace) -> str:
    from certiseg.analysis.side_by_side import open_beside
    from certiseg.report.side_by_side import side_by_side_report

    for name in ("root", "image", "show", "full", "truth"):
        if getattr(args, name):
            raise InputError(f"--{name} must be given with a single run or certificate, got {len(args.paths)} runs")
    tables = Path(args.tables) if args.tables else None
    if tables is not None and tables.exists() and not tables.is_dir():
        raise InputError(f"--tables must be a folder, got {args.tables!r}, which is a file")
    with tqdm(total=len(args.paths), unit="run", desc="report", disable=None, leave=False, delay=1) as bar:
        setting = None if args.setting is None else parse_setting(args.setting)
        runs = open_beside(args.paths, setting, each=lambda _: bar.update())
    return side_by_side_report(runs, tables=tables)


def _of_file(args: argparse.Namespace, path: Path) -> str:
    from certiseg.certificate import load_certificate
    from certiseg.report.certificate_report import certificate_report
    from certiseg.report.sets_report import sets_report

    for name in ("setting", "root", "full", "truth"):
        if getattr(args, name):
            raise InputError(f"--{name} must be given with a run folder, got a certificate file")
    if path.name.endswith(".truth.npz"):
        from certiseg.truth.files import load_sets

        return sets_report(load_sets(path), path.name.removesuffix(".truth.npz"), image=args.image, show=args.show)
    name = path.name.removesuffix(".npz").removesuffix(".certificate")
    certificate = load_certificate(path)
    votes = certificate.votes
    image = _shown(votes.open(args.image), votes.image_key, args.image, args.show) if args.image else None
    bounds = _bounds_beside(path, certificate)
    return certificate_report(certificate, name, image=image, show=args.show, bounds=bounds, path=str(path))


def _bounds_beside(path: Path, certificate: Certificate) -> Bounds | None:
    """The bounds that `certify` wrote beside the certificate, where they are of the same draws."""
    from certiseg.bounds import load_bounds

    file = path.with_name(path.name.replace(".certificate.npz", ".bounds.npz"))
    if file == path or not file.is_file():
        return None
    bounds = load_bounds(file)
    of_bounds, of_certificate = (_origin(draws) for draws in (bounds.draws, certificate.votes))
    return bounds if of_bounds == of_certificate else None


def _origin(draws: Draws | Votes) -> tuple[object, ...]:
    """What makes draws those of one image, model and noise."""
    model = draws.provenance.get("model_sha256")
    noise = draws.sigma, draws.noise, draws.threat.pack()[0], draws.anchors
    return draws.image_key, draws.seed, draws.n0, draws.n, draws.stopped, model, *noise


def _photographs(folder: RunFolder, root: str | None) -> Callable[[str], Any]:
    """Where the photographs of a run are found, by name."""
    if root is None:
        return lambda _: None
    manifest = folder.manifest
    samples = open_dataset(manifest.dataset, root, split=manifest.split, classes=manifest.tree.classes)
    places = {name: index for index, name in enumerate(samples.names)}
    missing = [name for name in manifest.images if name not in places]
    if missing:
        raise InputError(f"--root must hold the images of the run, but {missing[0]!r} is not there")

    def photograph(name: str) -> Any:
        picture = open_image(samples[places[name]].image, values=manifest.values)
        return _shown(picture, manifest.identity(name)["key"], f"--root: {name}")

    return photograph


def _shown(picture: Picture, key: str | None, what: str, channels: Sequence[int] = ()) -> NDArray[np.uint8]:
    """The picture as it is shown, where its pixels are those that were certified."""
    from certiseg.noise import require_image

    require_image(picture.pixels, key, what)
    return shown(picture, channels)
