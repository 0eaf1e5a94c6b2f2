"""make objects: certified recall and precision of objects on CamVid test, free areas and whole images; resumable.

Writes docs/measures-results.md from a run in runs/objects/, which goes on where it was interrupted.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from certiseg.analysis import objects
from certiseg.archive import write_atomically
from certiseg.errors import InputError
from certiseg.models.load import load_model
from certiseg.render.figures import figure_bytes, new_figure
from certiseg.runs.evaluate import evaluate
from certiseg.runs.measured import TRUE
from certiseg.runs.run import Run

if TYPE_CHECKING:
    from matplotlib.figure import Figure

METHODS = ("nested",)
INTRODUCTION = """
True objects are connected parts of the ground truth, found ones connected parts of the candidate map. A bound speaks of
the model's answers: more than half of the noisy predictions, whatever the perturbation up to R, label at least so much
of the object. Whether a found object is real is then looked up in the ground truth; no certificate promises it. Recall
and precision are shares of the objects of these images, and objects of one image depend on each other.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m experiments.object_results", description=__doc__)
    parser.add_argument("--root", type=Path, default=Path("../shared/data/camvid"), help="where CamVid lies")
    parser.add_argument("--runs", type=Path, default=Path("runs/objects"), help="where the run is kept")
    parser.add_argument("--out", type=Path, default=Path("docs/measures-results.md"), help="the page to write")
    parser.add_argument("--model", default="compact", help="what `certiseg evaluate --model` takes")
    parser.add_argument("--backend", help="how the model is run, as for `certiseg evaluate`")
    parser.add_argument("--every", type=int, default=2, metavar="K", help="every K-th image (default: 2)")
    parser.add_argument("--objects", nargs="+", default=(), metavar="LABEL", help="default: things of the hierarchy")
    parser.add_argument("-n", type=int, default=100, help="estimation draws (default: 100)")
    args = parser.parse_args(arguments)
    kept = args.runs / f"{load_model(args.model).fingerprint()[:8]}-every{args.every}-n{args.n}"
    run = evaluate(
        "camvid",
        root=args.root,
        split="test",
        every=args.every,
        out=kept,
        model=args.model,
        backend=args.backend,
        methods=METHODS,
        setting=[(args.n, 0.75)],
        objects=tuple(args.objects),
    )
    write_page(run, args.out)
    return 0


def write_page(run: Run, out: Path) -> None:
    """The page, and its figures in images/ beside it."""
    folder, manifest = run.folder, run.manifest
    setting = manifest.each_setting()[0]
    recall = objects.recall_table(folder, setting)
    figures = {"objects-recall": objects.draw(recall), "objects-bounds": draw_distributions(run)}
    told = (
        f"Written by `make objects`. Model {manifest.model} in {manifest.backend} (fingerprint "
        f"{manifest.model_sha256[:12]}), {len(run)} test images of CamVid, "
        f"{manifest.extent(setting)}, n = {setting.n}, tau = {setting.tau:g}."
    )
    parts = ["# Objects, areas and whole images, on CamVid", told + "\n" + INTRODUCTION.rstrip()]
    parts += ["## Certified recall", recall.markdown(), "![Certified recall](images/objects-recall.png)"]
    parts += ["## Certified precision", objects.precision_table(folder, setting).markdown()]
    parts += ["## Areas and whole images", objects.image_table(folder, setting).markdown()]
    parts += ["![Bounds over images and objects](images/objects-bounds.png)"]
    for name, figure in figures.items():
        _write(out.parent / "images" / f"{name}.png", figure_bytes(figure, "png", dpi=100))
    _write(out, "\n\n".join(part.strip("\n") for part in parts).encode() + b"\n")
    print(f"written: {out}")


def draw_distributions(run: Run) -> Figure:
    """Part of the images, and of the true objects of each label, with a bound of at least so much."""
    rows = objects.measured(run.folder, run.manifest.each_setting()[0])
    labels = run.manifest.objects or ()
    whole = {kind: [row["bound"] for row in rows if row["kind"] == kind] for kind in ("kept", "accuracy")}
    for label in labels:
        whole[f"Dice of {label}"] = [r["bound"] for r in rows if r["kind"] == "dice" and r["label"] == label]
    true = [row for row in rows if row["name"].startswith(TRUE)]
    single = {label: [row["bound"] for row in true if row["label"] == label] for label in labels}
    figure, axes = new_figure(10, 3.8, columns=2)
    for place, (title, parts) in zip(axes[0], {"images": whole, "true objects": single}.items(), strict=True):
        for name, bounds in parts.items():
            if bounds:
                place.ecdf(bounds, complementary=True, label=f"{name} ({len(bounds)})")
        place.set(xlabel="certified bound of at least", ylabel=f"share of the {title}", xlim=(0, 1), ylim=(0, 1.03))
        if place.lines:
            place.legend(fontsize=8, loc="lower left")
    return figure


def _write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with write_atomically(path) as file:
        file.write(content)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except InputError as error:
        sys.exit(f"object_results: error: {error}")
