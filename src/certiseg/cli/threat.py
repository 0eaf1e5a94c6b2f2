"""Options of a threat of light and weather, and what they stand for."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from certiseg import threats
from certiseg.errors import InputError
from certiseg.settings import default_sigma
from certiseg.threats.anchors import place_anchors

if TYPE_CHECKING:
    import argparse

    from numpy.typing import NDArray

_BESIDE = ("scale", "airlight", "depth", "up_to")


def add_threat_options(parser: argparse.ArgumentParser) -> None:
    """What happens to the image, besides perturbations of its pixels."""
    group = parser.add_argument_group("threat of light and weather (docs/threats.md)")
    group.add_argument(
        "--threat",
        dest="threat_name",
        choices=threats.NAMES,
        help="certify against this; --sigma is then 0 unless given",
    )
    group.add_argument("--scale", type=float, metavar="S", help="mean of its random parameter t (gamma: deviation)")
    group.add_argument("--airlight", type=float, metavar="C", help="for fog: its brightness in [0, 1] (default: 0.8)")
    group.add_argument("--depth", metavar="FILE", help="for fog: distance of every pixel, (H, W) in an .npy file")
    group.add_argument("--up-to", type=float, metavar="T", help="cover t up to here, by draws at several anchors")


def settle_threat(args: argparse.Namespace) -> None:
    """Make threat, anchors and sigma of the options."""
    settle_threat_alone(args)
    args.anchors = (0.0,)
    if args.up_to is not None:
        chosen = {"tau": args.tau, "radius": args.radius or 0.0, "sigma": args.sigma}
        args.anchors = place_anchors(args.threat, args.up_to, **chosen)


def settle_threat_alone(args: argparse.Namespace) -> None:
    """Make threat and sigma of the options."""
    args.threat = threat_of(args)
    args.sigma = default_sigma(args.threat) if args.sigma is None else args.sigma


def threat_of(args: argparse.Namespace) -> threats.Threat:
    """The threat of the options; what belongs to one and is given without it is refused."""
    if args.threat_name is None:
        if extra := [name for name in _BESIDE if getattr(args, name, None) is not None]:
            raise InputError(
                f"--{extra[0].replace('_', '-')} must come with --threat, got it alone; see docs/threats.md"
            )
        return threats.l2()
    if args.scale is None:
        raise InputError(f"--scale must be given with --threat {args.threat_name}, got none; for example 0.5")
    options: dict[str, Any] = {}
    if args.airlight is not None:
        options["airlight"] = args.airlight
    if args.depth is not None:
        options["depth"] = _read_depth(args.depth)
    if options and args.threat_name != "fog":
        raise InputError(f"--{min(options)} must come with --threat fog, got it with {args.threat_name}")
    return threats.named(args.threat_name, args.scale, **options)


def _read_depth(path: str) -> NDArray[Any]:
    if not Path(path).is_file():
        raise InputError(f"--depth must be a file, got {path!r}, which is not there")
    try:
        depth: NDArray[Any] = np.load(path, allow_pickle=False)
    except (ValueError, OSError, EOFError) as error:
        raise InputError(f"--depth must be an .npy file with an array (H, W), got {path!r}: {error}") from None
    if not isinstance(depth, np.ndarray):
        raise InputError(f"--depth must be an .npy file with one array (H, W), got {path!r}")
    return depth
