"""certiseg tune: the thresholds of `adaptive` chosen on one part of a run's images, reported on the other."""

from __future__ import annotations

import argparse
import json
from itertools import product
from typing import TYPE_CHECKING, Any

from tqdm import tqdm

from certiseg.cli import COMMANDS
from certiseg.errors import InputError
from certiseg.hierarchy import check_thresholds

if TYPE_CHECKING:
    from certiseg.analysis.thresholds import ThresholdSearch
    from certiseg.runs.folder import RunFolder

_SHOWN = ("cig", "ccig", "abstain", "accuracy")


def add_parser(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "tune",
        help=COMMANDS["tune"],
        description="Tries every threshold function of a grid on the stored votes of a run, without the model, in one "
        "pass per image. The choice is made on the first images and reported on the others, where the certificate "
        "holds as it stands. Writes tables and the plot over n into RUN/analysis.",
        epilog="example: certiseg tune runs/camvid --values 0 0.05 0.1 0.25 0.3 0.4 0.5 0.7",
    )
    parser.add_argument("folder", metavar="RUN", help="a run folder of `certiseg evaluate`")
    parser.add_argument(
        "--values",
        type=float,
        nargs="+",
        metavar="T",
        help="all non-decreasing tuples of these (default: 0 0.05 0.1 0.25 0.3 0.4 0.5 0.7, 120 triples)",
    )
    parser.add_argument("--grid", nargs="+", metavar="T,T,T", help="just these threshold functions, coarsest first")
    parser.add_argument("--choose-on", type=int, metavar="K", help="choose on the first K images (default: half)")
    parser.add_argument("--by", choices=["cig", "ccig", "accuracy"], default="cig", help="what is best (default: cig)")
    parser.add_argument("--sigma", type=float, help="only this noise level (default: all of the run)")
    parser.add_argument("--tau", type=float, help="only this tau (default: all of the run)")
    parser.add_argument("--out", metavar="DIR", help="where tables and plots go (default: RUN/analysis)")
    parser.add_argument("--json", action="store_true", help="print the choices as JSON")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    from certiseg.analysis.thresholds import search_over_n, write
    from certiseg.analysis.tradeoff import certifiable_draws
    from certiseg.runs.folder import RunFolder

    folder = RunFolder(args.folder)
    pairs, functions = _pairs(args, folder), _functions(args, folder)
    if not folder.finished():
        raise InputError(f"{args.folder}: must have finished images; run `certiseg evaluate` first")
    options = {"functions": functions, "choose_on": args.choose_on, "by": args.by}
    total = len(folder.finished()) * sum(len(certifiable_draws(folder, tau)) for _, tau in pairs)
    answers = []
    with tqdm(total=total, unit="image", desc="tune", disable=None) as bar:
        for sigma, tau in pairs:
            searches = search_over_n(folder, sigma=sigma, tau=tau, progress=bar.update, **options)
            if searches:
                write(searches, args.out or f"{args.folder}/analysis", promise=folder.manifest.guarantee())
            answers += [_answer(search) for search in searches]
    if not answers:
        raise InputError(
            "n must be large enough to certify something at tau, got a run without such n; see `certiseg plan`"
        )
    print(json.dumps(answers, indent=1) if args.json else "\n".join(_lines(folder, answers)))
    return 0


def _pairs(args: argparse.Namespace, folder: RunFolder) -> list[tuple[float, float]]:
    """The sigmas and taus that were asked for."""
    sigmas, taus = folder.manifest.sigmas, tuple(sorted({tau for _, tau in folder.manifest.settings}))
    for name, asked, known in (("--sigma", args.sigma, sigmas), ("--tau", args.tau, taus)):
        if asked is not None and asked not in known:
            raise InputError(f"{name} must be one of the run's, {', '.join(f'{t:g}' for t in known)}, got {asked:g}")
    chosen = (sigmas if args.sigma is None else (args.sigma,)), (taus if args.tau is None else (args.tau,))
    return list(product(*chosen))


def _functions(args: argparse.Namespace, folder: RunFolder) -> list[tuple[float, ...]] | None:
    """The threshold functions that were asked for, None for the paper's grid."""
    from certiseg.analysis.grid import non_decreasing

    if args.values and args.grid:
        raise InputError("--values and --grid must not be given together; take one of them")
    levels = folder.manifest.tree.num_levels
    if args.values:
        return [check_thresholds(f, levels, "--values") for f in non_decreasing(args.values, min(3, levels - 1))]
    if not args.grid:
        return None
    try:
        functions = [tuple(float(part) for part in text.split(",")) for text in args.grid]
    except ValueError:
        raise InputError(f"--grid must be like 0,0,0.25 0,0.1,0.4, got {' '.join(args.grid)}") from None
    return [check_thresholds(thresholds, levels, "--grid") for thresholds in functions]


def _answer(search: ThresholdSearch) -> dict[str, Any]:
    """The choice at one setting, with its scores on both parts and segcertify's beside them."""
    from certiseg.analysis.thresholds import FLAT

    best, flat = search.ranked()[0], search.functions.index(FLAT)
    answer: dict[str, Any] = vars(search.setting) | {"functions": len(search.functions) - 1}
    answer |= {"thresholds": list(search.functions[best]), "by": search.by}
    for key, part in (("chosen_on", search.chosen), ("reported_on", search.reported)):
        scores = search.scores(part)
        answer[key] = {"images": len(search.images[part])}
        for name, index in (("adaptive", best), ("segcertify", flat)):
            answer[key][name] = {score: getattr(scores[index], score) for score in _SHOWN}
    return answer


def _lines(folder: RunFolder, answers: list[dict[str, Any]]) -> list[str]:
    first = answers[0]
    lines = [
        f"{first['functions']} threshold functions; chosen by {first['by']} on the first "
        f"{first['chosen_on']['images']} images, reported on the {first['reported_on']['images']} others, "
        f"{folder.manifest.guarantee()} for one that is chosen before its votes are drawn; this search is a comparison",
        " sigma     n   tau  thresholds             CIG  abstain   segcertify CIG  abstain",
    ]
    for answer in answers:
        ours, flat = answer["reported_on"]["adaptive"], answer["reported_on"]["segcertify"]
        thresholds = ", ".join(f"{t:g}" for t in answer["thresholds"])
        lines.append(
            f"{answer['sigma']:>6g}{answer['n']:>6}{answer['tau']:>6g}  {thresholds:<18}{ours['cig']:>8.3f}"
            f"{ours['abstain']:>9.1%}   {flat['cig']:>14.3f}{flat['abstain']:>9.1%}"
        )
    return lines
