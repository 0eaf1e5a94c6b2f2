"""Folders, splits and lists of names: faults of a whole data set are found when it is opened."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from certiseg.archive import parse_json
from certiseg.errors import InputError
from certiseg.images import SUFFIXES


def require_folder(root: Path, *parts: str) -> Path:
    """The folder ROOT/PARTS, or a sentence that says what there is instead."""
    for part in parts:
        if not (root / part).is_dir():
            raise InputError(f"{root} must hold the folder {part}/, got {contents(root)}; check the path")
        root = root / part
    return root


def contents(folder: Path) -> str:
    """What lies in a folder, for a message."""
    names = sorted(path.name + "/" * path.is_dir() for path in visible(folder))
    if not names:
        return "an empty folder"
    return ", ".join(names[:6]) + (f" and {len(names) - 6} more" if len(names) > 6 else "")


def visible(folder: Path) -> list[Path]:
    """Files and folders in name order, without hidden ones."""
    return sorted(path for path in folder.iterdir() if not path.name.startswith("."))


def folders(folder: Path) -> tuple[str, ...]:
    """Names of the sub-folders, in order."""
    return tuple(path.name for path in visible(folder) if path.is_dir())


def choose_split(split: str | None, available: Iterable[str], default: str, *, where: Path | None = None) -> str:
    """The split asked for, or the default; refused if it is not available (in the folder `where`)."""
    known = tuple(available)
    if not known and where is not None:
        raise InputError(f"{where} must hold the folder {split or default}/, got {contents(where)}; check the path")
    chosen = default if split is None else split
    if chosen not in known:
        raise InputError(f"split must be one of {', '.join(known)}, got {chosen!r}; choose one of them")
    return chosen


def by_stem(folder: Path) -> dict[str, Path]:
    """The image files of a folder by their name without suffix, sorted by it."""
    found: dict[str, Path] = {}
    if not folder.is_dir():
        raise InputError(f"{folder} must be a folder, got nothing there; check the path")
    for path in visible(folder):
        if path.suffix.lower() not in SUFFIXES:
            continue
        if path.stem in found:
            raise InputError(
                f"{folder} must hold one file per name, got {found[path.stem].name} and {path.name}; remove one"
            )
        found[path.stem] = path
    return dict(sorted(found.items()))


def read_lines(path: Path, what: str) -> tuple[str, ...]:
    """The lines of a text file that are not empty."""
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "no UTF-8 text"
        raise InputError(f"{path} must be a readable {what}, got: {reason}; check the path") from error
    return tuple(line.strip() for line in lines if line.strip())


def read_names(path: Path) -> tuple[str, ...]:
    """The image names of a split list, sorted: the first word of each line, without folder."""
    names = sorted(line.split()[0] for line in read_lines(path, "list of image names"))
    for name in names:
        if name != Path(name).name or name == "..":
            raise InputError(f"{path} must list names without folders, got {name!r}; use the published list")
    if not names:
        raise InputError(f"{path} must list at least one image, got an empty file; use the published list")
    return tuple(names)


def read_classes(path: Path) -> tuple[str, ...]:
    """The class names of a text file, one per line, in the order of their ids."""
    names = read_lines(path, "list of class names")
    if not names:
        raise InputError(f"{path} must name at least one class, got an empty file; write one name per line")
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise InputError(f"{path} must name each class once, got {repeated[0]!r} twice; remove one")
    return names


def find_classes(folder: Path, given: Sequence[str] | None = None) -> tuple[str, ...]:
    """The class list of a folder, which may also lie one level up, beside several splits; else the names given."""
    for place in (folder, folder.parent):
        if (place / "classes.txt").is_file():
            return read_classes(place / "classes.txt")
    if given is not None:
        return tuple(given)
    raise InputError(f"{folder} must hold classes.txt, got none; write one class name per line, or name a hierarchy")


def find_split(root: Path, split: str | None) -> tuple[str | None, Path]:
    """The split of a folder and where it lies: `ROOT/images`, or `ROOT/SPLIT/images`, by default test, else val."""
    if split is None and (root / "images").is_dir():
        return None, root
    available = [name for name in folders(root) if (root / name / "images").is_dir()]
    if not available:
        require_folder(root, "images")
        raise InputError(f"split must be left out, got {split!r}; {root} has no splits")
    preferred = next((name for name in ("test", "val") if name in available), available[0])
    chosen = choose_split(split, available, preferred)
    return chosen, root / chosen


def require_inside(name: object, what: str) -> str:
    """A path below a folder, as a downloaded list may name it; one that leads out is refused."""
    path = Path(name) if isinstance(name, str) and name and "\0" not in name else None
    if path is None or path.is_absolute() or ".." in path.parts or path == Path():
        raise InputError(f"{what} must name files below its folder, got {str(name)[:80]!r}; use the published file")
    return str(name)


def read_object(path: Path, *, most: int = 4 << 30) -> dict[str, Any]:
    """The content of a JSON file that holds an object, of at most so many bytes."""
    try:
        size = path.stat().st_size
        if size > most:
            raise InputError(f"{path} must be at most {most >> 20:,} MiB, got {size >> 20:,}; check which file it is")
        value = parse_json(path.read_bytes())
    except (OSError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{path} must be readable JSON, got: {error}; replace it") from None
    if not isinstance(value, dict):
        raise InputError(f"{path} must be a JSON object, got {type(value).__name__}; replace it")
    return value
