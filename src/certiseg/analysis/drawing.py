"""Names and colours of methods, stacked bars of shares, and figures as files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from certiseg.archive import write_atomically
from certiseg.render.colours import BLUE, FAINT, GREEN, INK, ORANGE, PURPLE, RED, SKY, YELLOW
from certiseg.render.figures import figure_bytes, new_figure
from certiseg.runs.settings import Setting

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MARKERS = "osD^vPX*<>"
_COLOURS = {"segcertify": INK, "adaptive": ORANGE, "nested": BLUE, "sets": GREEN, "uncertified": FAINT}
_LEVEL_COLOURS = (SKY, PURPLE, RED, YELLOW)
_NAMES = {
    "segcertify": "SegCertify",
    "level": "Non-adaptive",
    "adaptive": "Adaptive",
    "nested": "Nested",
    "sets": "Sets",
}
_SHARES = (("certified, right", BLUE, None), ("certified, wrong", RED, "///"), ("abstained", "#d9d9de", None))


def method_name(method: str) -> str:
    """A method of a run in the paper's words: level:2 is Non-adaptive-H2."""
    name, _, value = method.partition(":")
    if name == "level" and value:
        return f"{_NAMES[name]}-H{value}"
    if name == "adaptive" and value:
        return f"Adaptive ({value.replace(',', ', ')})"
    return _NAMES.get(name, name) + (f" (up to {value})" if value else "")


def method_colour(method: str) -> str:
    """The colour of a method in every figure."""
    name, _, value = method.partition(":")
    return _LEVEL_COLOURS[(int(value) - 1) % len(_LEVEL_COLOURS)] if name == "level" else _COLOURS.get(name, PURPLE)


def setting_text(setting: Setting) -> str:
    """A setting as titles show it."""
    return setting.words


def draw_shares(title: str, groups: Mapping[str, Sequence[tuple[str, float, float, float]]]) -> Figure:
    """Stacked bars in groups under headings: name and shares of all pixels (right, wrong, abstained)."""
    heights = [0.6 + 0.4 * len(bars) for bars in groups.values()]
    figure, panels = new_figure(9, sum(heights) + 1.6, rows=len(groups), sharex=True, height_ratios=heights)
    for axes, (heading, bars) in zip(panels[:, 0], groups.items(), strict=True):
        draw_bars(axes, bars, heading)
    panels[-1, 0].set_xlabel("share of all pixels (%): right / wrong / abstained")
    share_legend(figure)
    figure.suptitle(title, fontsize=12)
    return figure


def draw_bars(axes: Axes, bars: Sequence[tuple[str, float, float, float]], heading: str) -> None:
    """One group of stacked bars, the shares written beside each."""
    for row, (_, *shares) in enumerate(bars):
        start = 0.0
        for share, (label, colour, hatch) in zip(shares, _SHARES, strict=True):
            axes.barh(row, 100 * share, left=start, color=colour, hatch=hatch, edgecolor="white", label=label)
            start += 100 * share
        text = " / ".join(f"{100 * share:.1f}" for share in shares)
        axes.annotate(text, (start, row), xytext=(4, 0), textcoords="offset points", va="center", fontsize=9)
    axes.set_title(heading, loc="left", fontsize=11, weight="bold")
    axes.set_yticks(range(len(bars)), [name for name, *_ in bars])
    axes.set_ylim(len(bars) - 0.4, -0.6)
    axes.set_xlim(0, 122)
    axes.set_xticks(range(0, 101, 20))


def share_legend(figure: Figure) -> None:
    """The legend of stacked bars, below the panels."""
    from matplotlib.patches import Patch

    entries = [Patch(facecolor=colour, hatch=hatch, edgecolor="white", label=label) for label, colour, hatch in _SHARES]
    figure.legend(handles=entries, loc="outside lower center", ncols=3, frameon=False)


def save_figure(figure: Figure, stem: str | Path) -> list[Path]:
    """STEM.png and STEM.svg; the same figure gives the same bytes."""
    paths = [Path(f"{stem}.{ending}") for ending in ("png", "svg")]
    for path in paths:
        path.parent.mkdir(parents=True, exist_ok=True)
        with write_atomically(path) as file:
            file.write(figure_bytes(figure, path.suffix[1:]))
    return paths
