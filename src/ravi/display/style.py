"""The style of all figures: sizes for a two-column paper, type, colours, and files of the same bytes every time.

A figure is a `Drawn`: the matplotlib figure, and the numbers that it shows. Colours are Okabe and Ito's, told apart by
every kind of colour vision; lines differ in dashes and markers too, so that nothing is lost in grey. Figures are made
without pyplot: no screen, no state left behind.
"""

import io
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ravi.display.numbers import number
from ravi.display.printable import pieces
from ravi.runtime import archive
from ravi.validation import InputError, install_command, must_be

SINGLE, DOUBLE = 3.25, 6.75  # inches: one column, two columns
FORMATS = ("pdf", "svg", "png")
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")  # Okabe and Ito
DASHES: tuple[Any, ...] = ("-", (0, (5, 2)), (0, (5, 1.5, 1, 1.5)), (0, (1, 1.2)), (0, (8, 2, 2, 2, 2, 2)))
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
GREY, PALE = "#777777", "#DDDDDD"
MAP = "cividis"  # as light as the value is large, for every kind of colour vision and in grey
MARKS = 6  # markers on a line
LETTER, LINE = 0.063, 0.15  # inches: the width of a letter of 8 pt, the height of a line of 9 pt
SAME = 1e-9  # relative: values nearer to each other differ by rounding
TICKS = 6  # across, at most: their names are wide
FEW = 5  # evenly spaced ones on a logarithmic axis, at most
HANDLE = 0.5  # inches: the line beside a label in a legend

SETTINGS: dict[str, Any] = {
    "font.family": "DejaVu Sans",  # comes with matplotlib: the same on every machine
    "font.size": 8,
    "axes.titlesize": 9,
    "axes.labelsize": 8,
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
    "legend.fontsize": 8,
    "legend.frameon": False,
    "legend.handlelength": 2.4,
    "legend.handletextpad": 0.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.6,
    "lines.linewidth": 1.3,
    "lines.markersize": 3.5,
    "axes.formatter.limits": (-3, 4),
    "axes.formatter.use_mathtext": True,
    "pdf.fonttype": 42,  # TrueType, embedded: what publishers accept
    "ps.fonttype": 42,
    "svg.fonttype": "path",
    "svg.hashsalt": "ravi",  # else ids are drawn anew
    "savefig.dpi": 300,
}
UNDATED = {"pdf": {"CreationDate": None}, "svg": {"Date": None}, "png": {"Software": None}}


class Look(NamedTuple):
    """How the line of a learner looks."""

    colour: str
    dash: Any
    marker: str


def look(index: int) -> Look:
    """The look of line number 0, 1, ...: 280 that differ, neighbours in colour, dashes and marker."""
    return Look(COLOURS[index % len(COLOURS)], DASHES[index % len(DASHES)], MARKERS[index % len(MARKERS)])


def looks(labels: Iterable[str]) -> dict[str, Look]:
    return {label: look(index) for index, label in enumerate(labels)}


@dataclass(frozen=True)
class Drawn:
    """A figure, and the numbers that it shows."""

    figure: Any
    data: dict[str, Any]

    def _repr_png_(self) -> bytes:
        """What a notebook shows."""
        drawn = io.BytesIO()
        with styled():
            self.figure.savefig(drawn, format="png", dpi=120, metadata=UNDATED["png"])
        return drawn.getvalue()

    def save(self, stem: str | PathLike[str], formats: Sequence[str] = ("pdf", "png")) -> list[Path]:
        """Write STEM.pdf, STEM.png, ...; the same figure gives the same bytes. The layout is computed once."""
        made, engine = [], self.figure.get_layout_engine()
        try:
            for kind in known_formats(formats):
                made.append(written(self.figure, f"{stem}.{kind}"))
                self.figure.set_layout_engine("none")
        finally:
            self.figure.set_layout_engine(engine)
        return made


def library() -> Any:
    """matplotlib, or an error that says how to get it."""
    try:
        import matplotlib
        import matplotlib.figure
    except ModuleNotFoundError:
        raise InputError(f"figures need matplotlib: {install_command('figures')}") from None
    return matplotlib


def panels(
    rows: int = 1, columns: int = 1, *, width: float = SINGLE, height: float | None = None, title: str = "", **more: Any
) -> Any:
    """A figure and its axes (rows, columns), `width` inches wide; a long title takes lines, and adds their height."""
    matplotlib = library()
    height = 0.72 * width / columns * rows if height is None else height
    lines = pieces(title, int(width / (LETTER * 9 / 8)))
    with matplotlib.rc_context(SETTINGS):
        figure = matplotlib.figure.Figure(figsize=(width, height + LINE * (len(lines) - 1)), layout="constrained")
        axes = figure.subplots(rows, columns, squeeze=False, **more)
        if title:
            figure.suptitle(_plain("\n".join(lines)), fontsize=9)
    return figure, axes


def styled() -> Any:
    """The context in which axes are drawn on."""
    return library().rc_context(SETTINGS)


@contextmanager
def canvas(width: float, height: float, title: str = "") -> Iterator[tuple[Any, Any]]:
    """A figure of one pair of axes, and the axes, to be drawn on within."""
    figure, ((axes,),) = panels(width=width, height=height, title=title)
    with styled():
        yield figure, axes


@contextmanager
def chart(title: str, share: float = 0.66) -> Iterator[Any]:
    """The axes of a figure as wide as a column, to be drawn on within; ticks and legend are made at the end."""
    with canvas(SINGLE, share * SINGLE, title) as (figure, axes):
        yield axes
        label_ticks(axes)
        legend_below(figure, axes)


def known_formats(formats: Sequence[str]) -> list[str]:
    chosen = [formats] if isinstance(formats, str) else list(formats)
    for kind in chosen:
        must_be(kind, FORMATS, "format")
    return chosen


def written(figure: Any, path: str | PathLike[str]) -> Path:
    """Save the figure in the format that its name asks for."""
    archive.check_place(path, "the figure")
    place, drawn = Path(path), io.BytesIO()
    kind = place.suffix.lower().lstrip(".") or "png"
    with styled():
        try:
            figure.savefig(drawn, format=kind, metadata=UNDATED.get(kind))
        except ValueError as error:
            raise InputError(f"cannot write the figure {path}: {error}") from None
    place = place if place.suffix else place.with_suffix(".png")
    archive.write_file(place, lambda file: file.write(drawn.getbuffer()), "the figure")
    return place


def line(axes: Any, x: Any, y: Any, label: str, look: Look, *, low: Any = None, high: Any = None, **more: Any) -> Any:
    """A line with a few markers and, where its ends are finite, a band."""
    every = max(1, len(np.atleast_1d(x)) // MARKS)
    start = COLOURS.index(look.colour) * every // len(COLOURS) if look.colour in COLOURS else 0
    drawn = axes.plot(
        x, y, color=look.colour, linestyle=look.dash, marker=look.marker, markevery=(start, every), label=label,
        zorder=3, markeredgecolor="white", markeredgewidth=0.3, **more,
    )[0]  # fmt: skip
    if low is not None and np.isfinite(low).any():
        there = np.isfinite(low) & np.isfinite(high)
        axes.fill_between(x, low, high, where=there, color=look.colour, alpha=0.2, linewidth=0, zorder=2)
    return drawn


def label_ticks(axes: Any, *, narrow: float = 3) -> None:
    """Ticks in the one format of numbers; a logarithmic axis that spans few decades has some between them too.

    narrow: where the ends are less than this factor apart, at most FEW ticks are evenly spaced in value.
    """
    from matplotlib.ticker import LogLocator, MaxNLocator, NullFormatter, NullLocator

    def shown(value: float, _: int) -> str:
        return number(value).replace("-", "\N{MINUS SIGN}")

    low, high = axes.dataLim.get_points()
    same = (low > 0) & (high < low * (1 + SAME))  # matplotlib would zoom into rounding, and warn
    axes.update_datalim(np.where(same, [low / 1.1, high * 1.1], [low, high]))
    for axis in (axes.xaxis, axes.yaxis):
        low, high = axis.get_view_interval()
        if axis.get_scale() != "log":
            axis.set_major_formatter(shown)
            if axis is axes.xaxis and isinstance(axis.get_major_locator(), MaxNLocator):
                axis.get_major_locator().set_params(nbins=TICKS)
            continue
        if high < narrow * low:
            axis.set_major_locator(MaxNLocator(FEW, steps=(1, 2, 5, 10)))
            axis.set_minor_locator(NullLocator())
        elif high < 100 * low:
            axis.set_major_locator(LogLocator(subs=(1, 2, 5) if high < 30 * low else (1, 3)))
        if high < 100 * low:
            axis.set_major_formatter(shown)
        axis.set_minor_formatter(NullFormatter())


def legend_below(figure: Any, axes: Any, *, columns: int | None = None) -> None:
    """One legend for all axes, under them: it covers no line. Long labels take several lines."""
    found: dict[str, Any] = {}
    for one in np.atleast_1d(axes).ravel():
        for handle, label in zip(*one.get_legend_handles_labels(), strict=True):
            found.setdefault(label, handle)
    if not found:
        return
    width, height = figure.get_size_inches()
    labels = [wrapped(label, width - HANDLE) for label in found]
    fits = columns or _columns([max(map(len, label.split("\n"))) for label in labels], width - 0.1)
    figure.legend(found.values(), labels, loc="outside lower center", ncols=fits, columnspacing=1.2)
    rows = -(-len(labels) // fits)
    lines = max(sum(1 + label.count("\n") for label in labels[k : k + rows]) for k in range(0, len(labels), rows))
    figure.set_size_inches(width, height + 0.17 * lines)


def _columns(sizes: Sequence[int], width: float) -> int:
    """The most columns of labels that fit, filled one column after the other."""
    for columns in range(min(len(sizes), 6), 1, -1):
        rows = -(-len(sizes) // columns)
        longest = [max(sizes[start : start + rows]) for start in range(0, len(sizes), rows)]
        if sum(HANDLE + LETTER * size for size in longest) <= width:
            return len(longest)
    return 1


def wrapped(label: str, width: float) -> str:
    """A label in lines that are at most so many inches wide; a dollar in it begins no formula."""
    return _plain("\n".join(pieces(label, int(width / LETTER))))


def _plain(label: str) -> str:
    return label.replace("$", r"\$")


def slug(*words: Any) -> str:
    """A file's name from words."""
    return "-".join(filter(None, (re.sub(r"[^\w.=+]+", "-", str(word)).strip("-.") for word in words)))
