"""certiseg demo: three street scenes, certified by four methods side by side."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from certiseg.cli.options import add_noise_option, output_folder

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from certiseg.certificate import Certificate
    from certiseg.noise import Noise

SCENES = (1, 4, 10)
SIGMA, TAU, ALPHA = 0.25, 0.75, 0.001
METHODS: dict[str, dict[str, Any]] = {
    "segcertify": {"method": "segcertify"},
    "adaptive": {"method": "adaptive"},
    "nested": {"method": "nested"},
    "sets": {"method": "sets"},
}


def add_parser(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "demo",
        help="certify three street scenes and look at them",
        description="Certifies three generated street scenes, or your own images, with the model `compact` by four "
        "methods from the same votes, prints a table and writes the pictures side by side. The four are a comparison: "
        "only a method chosen beforehand is a promise at level alpha.",
        epilog="example: certiseg demo --images my_street.jpg --out demo/",
    )
    parser.add_argument("--images", nargs="+", metavar="FILE", help="your own images instead of the three scenes")
    parser.add_argument("--out", default="demo", metavar="DIR", help="where to write (default: demo/)")
    parser.add_argument("-n", type=int, default=100, help="estimation draws (default: 100)")
    add_noise_option(parser)
    parser.add_argument("--json", action="store_true", help="print the table as JSON")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    from certiseg.hierarchy import load_hierarchy
    from certiseg.models.load import load_model
    from certiseg.scores import evaluate

    scenes = _own_images(args.images) if args.images else _streets()
    model, hierarchy = load_model("compact"), load_hierarchy("camvid")
    folder = output_folder(args.out)
    certificates: dict[str, list[Certificate]] = {name: [] for name in METHODS}
    for name, pixels, label in scenes:
        found = _certify(model, hierarchy, name, pixels, n=args.n, noise=args.noise)
        for method, certificate in found.items():
            certificates[method].append(certificate)
        _write_picture(folder / f"{name}.png", pixels, label, model, hierarchy, found)
    labels = [label for _, _, label in scenes if label is not None]
    rows = []
    for method, of_method in certificates.items():
        scores = evaluate(of_method, labels) if labels else None
        rows.append(_row(method, of_method, None if scores is None else scores.cig))
    _print(args, folder, rows, next(iter(certificates.values()))[0].radius)
    return 0


def _streets() -> list[tuple[str, NDArray[np.float32], NDArray[np.uint8] | None]]:
    from certiseg.datasets.streets import street
    from certiseg.images import read_image

    drawn = [(f"street-{seed}", *street(seed)) for seed in SCENES]
    return [(name, read_image(image), label) for name, image, label in drawn]


def _own_images(paths: list[str]) -> list[tuple[str, NDArray[np.float32], NDArray[np.uint8] | None]]:
    from certiseg.images import read_image

    return [(Path(path).stem, read_image(path), None) for path in paths]


def _certify(
    model: Any, hierarchy: Any, name: str, pixels: NDArray[np.float32], *, n: int, noise: Noise
) -> dict[str, Certificate]:
    from tqdm import tqdm

    from certiseg.certify import certify
    from certiseg.planning import require_certifiable
    from certiseg.votes import sample

    tested = pixels.shape[0] * pixels.shape[1]
    require_certifiable(pixels=tested, n=n, tau=TAU, alpha=ALPHA, sigma=SIGMA, test="fixed")
    with tqdm(total=10 + n, desc=name, unit="draw", disable=None, leave=False, delay=1) as bar:
        votes = sample(model, pixels, sigma=SIGMA, n=n, noise=noise, progress=bar.update)
    return {name: certify(votes, hierarchy, tau=TAU, alpha=ALPHA, **options) for name, options in METHODS.items()}


def _row(method: str, certificates: list[Certificate], cig: float | None) -> dict[str, Any]:
    """A line of the table: scores, and what share of the pixels got which level or set size."""
    import numpy as np

    sets = method == "sets"
    detail: dict[str, float] = {}
    sizes = [c.set_size if sets else np.where(c.vertex >= 0, c.level + 1, 0) for c in certificates]
    shares = np.bincount(np.concatenate([size.ravel() for size in sizes])) / sum(size.size for size in sizes)
    for position, share in enumerate(shares[1:]):
        if share > 0:
            detail[f"{position + 1} class{'es' if position else ''}" if sets else f"level {position}"] = float(share)
    return {"method": method, "cig": cig, "abstain": float(shares[0]), "shares": detail}


def _print(args: argparse.Namespace, folder: Path, rows: list[dict[str, Any]], radius: float) -> None:
    if args.json:
        print(json.dumps(rows, indent=1))
        return
    print(f"certified within R = {radius:.3f} (sigma = {SIGMA}, n = {args.n}, tau = {TAU}, alpha = {ALPHA})\n")
    print(f"{'method':<12}{'CIG':>7}{'abstain':>9}   share of pixels")
    for row in rows:
        cig = f"{row['cig']:.3f}" if row["cig"] is not None else "-"
        shares = ", ".join(f"{name} {share:.1%}" for name, share in row["shares"].items())
        print(f"{row['method']:<12}{cig:>7}{row['abstain']:>9.1%}   {shares}")
    print(f"\npictures: {folder}/*.png")


def _write_picture(
    path: Path, pixels: NDArray[np.float32], label: Any, model: Any, hierarchy: Any, found: dict[str, Certificate]
) -> None:
    import numpy as np
    from PIL import Image

    from certiseg.archive import write_atomically
    from certiseg.hierarchy import ABSTAIN
    from certiseg.report.pictures import beside, captioned, colour_map, comparison, legend, legend_panel, stacked

    panels = {"image": Image.fromarray((pixels * 255).round().astype(np.uint8))}
    if label is not None:
        known = np.where(label == 255, ABSTAIN, label.astype(np.int64))
        panels["ground truth"] = Image.fromarray(colour_map(known, hierarchy))
    else:
        panels["model without noise (not certified)"] = Image.fromarray(
            colour_map(model.predict(pixels).astype(np.int64), hierarchy)
        )
    for method, certificate in found.items():
        caption = f"{method}: {certificate.abstain_rate:.1%} abstained (white)"
        panels[caption] = Image.fromarray(colour_map(certificate.vertex, hierarchy))
    grid = comparison(panels, columns=3)
    half = grid.height // 2 - 26
    keys = [
        captioned(legend_panel(legend(found[name], most=14), height=half, width=330), f"{name}: certified labels")
        for name in ("nested", "sets")
    ]
    with write_atomically(path) as file:
        beside([grid, stacked(keys)], gap=12).save(file, "PNG")
