"""`make audit`: known vulnerabilities of every pinned version, from PyPI's advisories.

pip-audit asks PyPI for each pinned version. Mirrors often serve only the newest version's record, and pip-audit then
passes the package over in silence; here such a package is asked for again by name (the record is about our pin if our
pin is the newest), and whatever stays unknown is listed.
"""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

CONSTRAINTS = Path(__file__).resolve().parents[2] / "constraints.txt"


@dataclass(frozen=True)
class Finding:
    """What is known about one pinned version."""

    name: str
    version: str
    advisories: tuple[str, ...]
    checked: bool


def main(pip_audit: str) -> int:
    """Print what was found; exit code 1 for a vulnerability, or if nothing at all could be checked."""
    found = findings(run_pip_audit(pip_audit), ask_pypi)
    for finding in found:
        for advisory in finding.advisories:
            print(f"VULNERABLE {finding.name} {finding.version}: {advisory}")
    unknown = [f"{finding.name} {finding.version}" for finding in found if not finding.checked]
    bad = sum(bool(finding.advisories) for finding in found)
    print(f"{len(found)} pinned versions: {len(found) - len(unknown)} checked, {bad} with known vulnerabilities")
    if unknown:
        print(f"not checked (their record is not served here): {', '.join(unknown)}")
    return 1 if bad or len(unknown) == len(found) else 0


def run_pip_audit(program: str) -> dict[str, Any]:
    """pip-audit's own answer about the pins, as they stand, without resolving anything."""
    command = [program, "-s", "pypi", "--no-deps", "--disable-pip", "--progress-spinner", "off", "-f", "json"]
    done = subprocess.run([*command, "-r", str(CONSTRAINTS)], capture_output=True, text=True)
    try:
        answer: dict[str, Any] = json.loads(done.stdout)
    except ValueError:
        raise SystemExit(
            f"pip-audit must answer in JSON, got exit code {done.returncode}: {done.stderr[-500:]}"
        ) from None
    return answer


def findings(answer: dict[str, Any], ask: Callable[[str], dict[str, Any] | None]) -> list[Finding]:
    """One finding per pin; pins that pip-audit skipped are asked for by name."""
    pins = dict(read_pins(CONSTRAINTS.read_text("utf-8")))
    known = {plain(entry["name"]): entry for entry in answer["dependencies"] if "skip_reason" not in entry}
    missing = [name for name in pins if name not in known]
    with ThreadPoolExecutor(4) as pool:
        newest = dict(zip(missing, pool.map(ask, missing), strict=True))
    found = []
    for name, version in pins.items():
        if name in known:
            advisories = tuple(advisory["id"] for advisory in known[name]["vulns"])
            found.append(Finding(name, version, advisories, True))
            continue
        record = newest[name]
        ours = record is not None and record["info"]["version"] == version
        advisories = tuple(a["id"] for a in record["vulnerabilities"]) if record is not None and ours else ()
        found.append(Finding(name, version, advisories, ours))
    return found


def read_pins(text: str) -> list[tuple[str, str]]:
    """The pairs (name, version) of a constraints file."""
    lines = (line.partition("#")[0].strip() for line in text.splitlines())
    pairs = (line.partition("==") for line in lines if line)
    return [(plain(name.strip()), version.strip()) for name, _, version in pairs]


def plain(name: str) -> str:
    """A package's name as PyPI normalises it."""
    return name.lower().replace("_", "-").replace(".", "-")


def ask_pypi(name: str) -> dict[str, Any] | None:
    """PyPI's record of the newest version of a package, None where it cannot be had."""
    try:
        with urllib.request.urlopen(f"https://pypi.org/pypi/{name}/json", timeout=30) as answer:
            record: dict[str, Any] = json.load(answer)
            return record
    except (urllib.error.URLError, TimeoutError, ValueError):
        return None


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1]))
