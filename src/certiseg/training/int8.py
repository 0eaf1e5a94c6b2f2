"""Eight bits: a torch model quantised into an ONNX file, calibrated on noisy images.

python -m certiseg.training.int8 --model compact --images FOLDER --sigma 0.25 --out compact-int8.onnx
certiseg certify street.png --model compact-int8.onnx --backend openvino

The file is another model: what it computes is what is certified, and its bytes are the fingerprint. Which instructions
multiply the 8 bits is recorded with the votes: AVX2 saturates where VNNI does not.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from certiseg.archive import write_atomically
from certiseg.errors import InputError
from certiseg.images import ImageLike, find_images, read_image
from certiseg.models.backends import with_backend
from certiseg.models.export import export_onnx
from certiseg.models.load import load_model
from certiseg.models.preparation import prepare
from certiseg.models.segmenter import Segmenter, as_batch
from certiseg.models.settings import require_library
from certiseg.noise import image_key, noise_stream
from certiseg.noise.gaussian import add_noise

LEAST_AGREEMENT = 0.8
"""Share of labels that quantisation must leave as they are; below it the file would be no stand-in for the model."""


def export_int8(segmenter: Segmenter, path: str | Path, images: Sequence[ImageLike], *, sigma: float) -> float:
    """Write the quantised model to an ONNX file for images of any size; returns the share of labels that stay.

    images: like those to come, a few dozen; noise of this sigma is added, because activations under noise are others.
    """
    if not images:
        raise InputError("images must be there to calibrate on, got none")
    if not sigma > 0:
        raise InputError(f"sigma must be a positive number, got {sigma:g}")
    os.environ.setdefault("NNCF_CI", "1")  # switches its telemetry off
    onnx, _, nncf = (require_library(name, "int8", "quantising a model") for name in ("onnx", "openvino", "nncf"))
    noisy = [noisy_batch(image, sigma, segmenter.settings.channels) for image in images]
    with tempfile.TemporaryDirectory() as folder:
        exact = Path(folder) / "exact.onnx"
        export_onnx(segmenter, exact)
        graph = onnx.load(str(exact))
        name = graph.graph.input[0].name
        feeds = [{name: _fed(batch, segmenter)} for batch in noisy]
        quantised = nncf.quantize(graph, nncf.Dataset(feeds), subset_size=len(feeds))
        tried = Path(folder) / "int8.onnx"
        tried.write_bytes(quantised.SerializeToString())
        share = agreement(segmenter, with_backend(load_model(tried), "openvino"), noisy)
        if share < LEAST_AGREEMENT:
            raise InputError(
                f"model must keep {LEAST_AGREEMENT:.0%} of its labels in 8 bits, got {share:.1%}; "
                "calibrate on more images like those to come"
            )
        with write_atomically(path) as file:
            file.write(tried.read_bytes())
    return share


def noisy_batch(image: ImageLike, sigma: float, channels: int | None) -> Tensor:
    """x + eps for one image, from a stream of its own: no draw of a certificate has this noise."""
    pixels = read_image(image, channels=channels)
    stream = noise_stream(seed=0, image_key=image_key(pixels), stage="selection", along=("int8",))
    noisy = np.empty_like(pixels)
    add_noise(stream, 0, pixels, sigma, noisy)
    return as_batch(noisy[None])


def agreement(one: Segmenter, other: Segmenter, batches: Sequence[Tensor]) -> float:
    """The share of pixels with the same label."""
    same = [float((one(batch).labels() == other(batch).labels()).mean()) for batch in batches]
    return float(np.mean(same))


def _fed(batch: Tensor, segmenter: Segmenter) -> Any:
    with torch.inference_mode():
        return prepare(batch, segmenter.settings)[0].contiguous().numpy()


def main(arguments: Sequence[str] | None = None) -> int:
    """Quantise a model as the arguments say."""
    parser = argparse.ArgumentParser(prog="python -m certiseg.training.int8", description=__doc__.splitlines()[0])
    parser.add_argument("--model", default="compact", help="a torch model (default: compact)")
    parser.add_argument("--images", nargs="+", required=True, metavar="FILE|FOLDER", help="to calibrate on")
    parser.add_argument("--most", type=int, default=60, metavar="N", help="evenly chosen images at most (default: 60)")
    parser.add_argument("--sigma", type=float, default=0.25, help="noise added to them (default: 0.25)")
    parser.add_argument("--out", type=Path, required=True, metavar="FILE.onnx")
    args = parser.parse_args(arguments)
    if args.out.suffix != ".onnx":
        raise InputError(f"out must be an .onnx file, got {str(args.out)!r}")
    if args.most < 1:
        raise InputError(f"most must be at least 1, got {args.most}")
    images = find_images(args.images)
    chosen = images[:: -(-len(images) // args.most)]
    share = export_int8(load_model(args.model), args.out, chosen, sigma=args.sigma)
    print(f"{args.out}: calibrated on {len(chosen)} images, {share:.1%} of their labels stay; use --backend openvino")
    return 0


if __name__ == "__main__":
    try:
        raise SystemExit(main())
    except InputError as error:
        raise SystemExit(f"certiseg.training.int8: error: {error}") from None
