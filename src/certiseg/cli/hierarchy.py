"""certiseg hierarchy: show, check or begin a class hierarchy."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from certiseg.archive import write_atomically
from certiseg.cli import COMMANDS
from certiseg.errors import InputError
from certiseg.hierarchy import ROOT, flat_hierarchy, load_hierarchy
from certiseg.render.figures import figure_bytes
from certiseg.render.tree import draw_tree

if TYPE_CHECKING:
    from certiseg.hierarchy import Hierarchy


def add_parser(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "hierarchy",
        help=COMMANDS["hierarchy"],
        description="Class hierarchies: trees over the classes of a model.",
        epilog="example: certiseg hierarchy show cityscapes --png cityscapes.png",
    )
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    show = actions.add_parser(
        "show", help="draw the tree in the terminal", epilog="example: certiseg hierarchy show camvid"
    )
    show.add_argument(
        "name", metavar="NAME|FILE", help="cityscapes, acdc, pascal_context, coco_stuff, camvid or a file"
    )
    show.add_argument("--png", metavar="FILE", help="also draw it with its palette")
    show.add_argument("--json", action="store_true", help="print JSON")
    show.set_defaults(run=_show)
    check = actions.add_parser(
        "check", help="check a hierarchy file", epilog="example: certiseg hierarchy check mine.yaml --classes 19"
    )
    check.add_argument("file", metavar="FILE", help="a YAML file")
    check.add_argument("--classes", type=int, metavar="N", help="number of classes of the model it is for")
    check.add_argument("--json", action="store_true", help="print JSON")
    check.set_defaults(run=_check)
    new = actions.add_parser(
        "new",
        help="begin a hierarchy file from a list of classes",
        epilog="example: certiseg hierarchy new classes.txt > mine.yaml",
    )
    new.add_argument("classes", metavar="CLASSES.txt", help="one class per line, in the order of the model's scores")
    new.add_argument("--out", metavar="FILE", help="write here instead of to the terminal; never over a file")
    new.set_defaults(run=_new)


def _show(args: argparse.Namespace) -> int:
    hierarchy = load_hierarchy(args.name)
    if args.png:
        with write_atomically(args.png) as file:
            file.write(figure_bytes(draw_tree(hierarchy), "png"))
    if args.json:
        print(json.dumps(hierarchy.as_dict(), indent=1))
        return 0
    print(
        f"{hierarchy.name}: {hierarchy.size}" + (f", thresholds {hierarchy.thresholds}" if hierarchy.thresholds else "")
    )
    for line in _tree_lines(hierarchy, ROOT, ""):
        print(line)
    return 0


def _tree_lines(hierarchy: Hierarchy, vertex: int, indent: str) -> list[str]:
    """The tree under a vertex; inner vertices carry their level and the number of their classes."""
    lines, children = [], hierarchy.children(vertex)
    for child in children:
        last = child == children[-1]
        level, leaves = hierarchy.level_of[child], hierarchy.generality(child)
        note = f"  [level {level}, {leaves} class{'es' if leaves > 1 else ''}]" if level else ""
        lines.append(f"{indent}{'└── ' if last else '├── '}{hierarchy.vertices[child]}{note}")
        lines += _tree_lines(hierarchy, child, indent + ("    " if last else "│   "))
    return lines


def _check(args: argparse.Namespace) -> int:
    hierarchy = load_hierarchy(args.file)
    if args.classes is not None:
        hierarchy.require_classes(args.classes)
    facts = {"name": hierarchy.name, "classes": hierarchy.num_classes, "levels": hierarchy.num_levels}
    print(json.dumps(facts) if args.json else f"{args.file}: fine, {hierarchy.size}")
    return 0


def _new(args: argparse.Namespace) -> int:
    source = Path(args.classes)
    if not source.is_file():
        raise InputError(f"CLASSES.txt must be a file, got {args.classes!r}, which is not there")
    try:
        names = [line.strip() for line in source.read_text("utf-8").splitlines() if line.strip()]
    except UnicodeDecodeError:
        raise InputError(f"{source}: must be UTF-8 text, one class per line") from None
    flat_hierarchy(names, name=str(source))
    text = (
        "# Level 0 is the list of classes, in the order of the model's scores. Each higher level names its vertices\n"
        "# and their direct children; leave the root out. Check with: certiseg hierarchy check FILE\n"
        + yaml.safe_dump({"name": source.stem, "classes": names}, sort_keys=False, allow_unicode=True)
        + "# levels:\n#   1:\n#     vehicle: [car, bus]\n#   2:\n#     obstacle: [vehicle, pole]\n"
    )
    if args.out is None:
        sys.stdout.write(text)
        return 0
    target = Path(args.out)
    if target.exists():
        raise InputError(f"--out must be a new file, got {args.out!r}, which is there already")
    target.write_text(text, "utf-8")
    return 0
