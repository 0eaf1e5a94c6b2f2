"""certiseg demo: three street scenes, certified by four methods side by side."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from PIL import Image
from tqdm import tqdm

from certiseg.archive import write_atomically
from certiseg.cli import COMMANDS
from certiseg.cli.options import add_settings, output_folder
from certiseg.datasets import open_dataset
from certiseg.hierarchy import load_hierarchy
from certiseg.images import read_image
from certiseg.planning import require_certifiable
from certiseg.render.colours import colour_labels, colour_vertices
from certiseg.render.pictures import beside, captioned, comparison, legend, legend_panel, photograph, stacked
from certiseg.settings import SamplingSettings
from certiseg.words import rounded_down

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from certiseg.certificate import Certificate
    from certiseg.hierarchy import Hierarchy
    from certiseg.models.segmenter import Segmenter

    Scene = tuple[str, NDArray[np.float32], NDArray[np.uint8] | None]

SCENES = ("street_00001", "street_00004", "street_00010")
METHODS = ("segcertify", "adaptive", "nested", "sets")
SIGMA, TAU, ALPHA = 0.25, 0.75, 0.001


def add_parser(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "demo",
        help=COMMANDS["demo"],
        description="Certifies three rendered street scenes, or your own images, with the model `compact` by four "
        "methods from the same votes, prints a table and writes the pictures side by side. The four are a comparison: "
        "only a method chosen beforehand is a promise with error alpha.",
        epilog="example: certiseg demo --images my_street.jpg --out demo/",
    )
    parser.add_argument("--images", nargs="+", metavar="FILE", help="your own images instead of the three scenes")
    parser.add_argument("--out", default="demo", metavar="DIR", help="where to write (default: demo/)")
    add_settings(parser, SamplingSettings, ("n", "noise"))
    parser.add_argument("--json", action="store_true", help="print the table as JSON")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    from certiseg.models.load import load_model
    from certiseg.scores import score

    scenes = list(_scenes(args.images))
    model, hierarchy, folder = load_model("compact"), load_hierarchy("camvid"), output_folder(args.out)
    found = [_certify(args, model, hierarchy, scene, folder) for scene in scenes]
    labels = [label for _, _, label in scenes if label is not None]
    rows = []
    for method in METHODS:
        certificates = [of_scene[method] for of_scene in found]
        rows.append(_row(method, certificates, score(certificates, labels).cig if labels else None))
    if args.json:
        print(json.dumps(rows, indent=1))
        return 0
    radius = found[0]["nested"].radius
    told = f"sigma = {SIGMA}, n = {args.n}, tau = {TAU}, alpha = {ALPHA}"
    print(f"certified within R = {rounded_down(radius, 4)} ({told})\n")
    print(f"{'method':<12}{'CIG':>7}{'abstain':>9}   share of pixels")
    for row in rows:
        cig = f"{row['cig']:.3f}" if row["cig"] is not None else "-"
        shares = ", ".join(f"{name} {share:.1%}" for name, share in row["shares"].items())
        print(f"{row['method']:<12}{cig:>7}{row['abstain']:>9.1%}   {shares}")
    print("\nFour methods from the same votes are a comparison; only one chosen beforehand is a promise.")
    print(f"pictures: {folder}/*.png")
    return 0


def _scenes(paths: list[str] | None) -> list[Scene]:
    """Name, pixels and ground truth of the given images, or of the three scenes."""
    if paths:
        return [(Path(path).stem, read_image(path), None) for path in paths]
    scenes = open_dataset("streets")
    shown = (scenes[scenes.names.index(name)] for name in SCENES)
    return [(scene.name, read_image(scene.image), scene.label) for scene in shown]


def _certify(
    args: argparse.Namespace, model: Segmenter, hierarchy: Hierarchy, scene: Scene, folder: Path
) -> dict[str, Certificate]:
    """Certify a scene by every method and write its picture."""
    from certiseg.certify import certify
    from certiseg.sampling import sample

    name, pixels, _ = scene
    tested = pixels.shape[0] * pixels.shape[1]
    require_certifiable(pixels=tested, n=args.n, tau=TAU, alpha=ALPHA, sigma=SIGMA, test="fixed")
    with tqdm(total=10 + args.n, desc=name, unit="draw", disable=None, leave=False, delay=1) as bar:
        votes = sample(model, pixels, sigma=SIGMA, n=args.n, noise=args.noise, progress=bar.update)
    found = {method: certify(votes, hierarchy, method=method, tau=TAU, alpha=ALPHA) for method in METHODS}
    with write_atomically(folder / f"{name}.png") as file:
        _picture(scene, model, hierarchy, found).save(file, "PNG")
    return found


def _row(method: str, certificates: list[Certificate], cig: float | None) -> dict[str, Any]:
    """A line of the table: scores, and what share of the pixels got which level or set size."""
    total = sum(certificate.tested for certificate in certificates)
    shares: dict[str, float] = {}
    for certificate in certificates:
        for what, share in certificate.detail_shares().items():
            shares[what] = shares.get(what, 0.0) + share * certificate.tested / total
    return {"method": method, "cig": cig, "abstain": shares.pop("abstained"), "shares": dict(sorted(shares.items()))}


def _picture(scene: Scene, model: Segmenter, hierarchy: Hierarchy, found: dict[str, Certificate]) -> Any:
    """The image, its labels and the four certified maps, with two legends."""
    _, pixels, label = scene
    what = "model without noise (not certified)" if label is None else "ground truth"
    shown = colour_labels(model.predict(pixels) if label is None else label, hierarchy)
    panels = {"image": photograph(pixels), what: Image.fromarray(shown)}
    for method, certificate in found.items():
        caption = f"{method}: {certificate.abstain_rate:.1%} abstained (white)"
        panels[caption] = Image.fromarray(colour_vertices(certificate.vertex, hierarchy))
    grid, legends = comparison(panels, columns=3), []
    for method in ("nested", "sets"):
        entries = legend(found[method].label_shares(), hierarchy)
        panel = legend_panel(entries, height=grid.height // 2 - 26, width=330)
        legends.append(captioned(panel, f"{method}: certified labels"))
    return beside([grid, stacked(legends)], gap=12)
