"""Tables as plain text, Markdown, LaTeX, CSV and HTML: cells, panels and a table."""

import csv
import io
import math
import os
import re
import textwrap
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from ravi.display import html
from ravi.display.printable import ENDLESS, columns, folded, printable
from ravi.runtime import archive
from ravi.validation import InputError

FORMULAS = ("=", "+", "-", "@", "\t", "\r")  # how what a spreadsheet computes begins
BEST, TIE = "\x01", "\x02"  # in a note: how the best and its ties are marked
ESCAPES = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}", ">": r"\textgreater{}",
    "|": r"\textbar{}", "−": "$-$", "±": r"$\pm$", "×": r"$\times$", "†": r"$^\dagger$", "≤": r"$\leq$",
    "≥": r"$\geq$", "∞": r"$\infty$", "–": r"\textendash{}", "—": r"\textemdash{}", "‘": r"\textquoteleft{}",
    "’": r"\textquoteright{}", "“": r"\textquotedblleft{}", "”": r"\textquotedblright{}", "²": "$^2$", "³": "$^3$",
}  # fmt: skip
LATIN = dict(zip("ΑΒΕΖΗΙΚΜΝΟΡΤΧ", "ABEZHIKMNOPTX", strict=True))  # Greek capitals that look as Latin ones do

GREEK = {
    "alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "iota", "kappa", "lambda", "mu", "nu", "xi",
    "pi", "rho", "sigma", "tau", "upsilon", "phi", "chi", "psi", "omega",
}  # fmt: skip


class Cell(NamedTuple):
    """A cell: what is read first, what stands smaller behind it, and whether it is "best", or one of its "tie"s."""

    text: str
    rest: str = ""
    mark: str = ""


class Block(NamedTuple):
    """Rows under one head."""

    title: str
    names: int  # how many columns name the row; the others are numbers
    groups: tuple[tuple[str, int], ...]  # over the head: a text and how many columns it spans; () for none
    head: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]


@dataclass(frozen=True, repr=False)
class Table:
    """What is shown (`panels`, `note`) and the numbers behind it (`records`: one for every cell, in full precision)."""

    caption: str
    note: str
    panels: tuple[Block, ...]
    records: tuple[dict[str, Any], ...]

    def text(self, width: int = ENDLESS) -> str:
        """As text of at most `width` columns."""
        parts = [folded(self.caption, width)]
        for panel in self.panels:
            lines = [_merged(panel), *([_plain(cell) for cell in row] for row in panel.rows)]
            block = columns([[*map(printable, line)] for line in lines], _layout(panel), width)
            parts.append("\n".join([printable(panel.title), *block] if panel.title else block))
        note = printable(self._noted("*", "\N{DAGGER}"))
        return "\n\n".join([*parts, textwrap.fill(note, min(110, width), break_on_hyphens=False)])

    def markdown(self) -> str:
        parts = [_in_markdown(self.caption)]
        for panel in self.panels:
            rows = [[_in_markdown(head) for head in _merged(panel)]]
            rows.append(["---" if side == "l" else "---:" for side in _layout(panel)])
            rows += [[_marked(cell, "**{}**", "{}\N{DAGGER}", _in_markdown) for cell in row] for row in panel.rows]
            title = [f"**{_in_markdown(panel.title)}**", ""] if panel.title else []
            parts.append("\n".join([*title, *(f"| {' | '.join(row)} |" for row in rows)]))
        return "\n\n".join([*parts, self._noted("**Bold**", "\N{DAGGER}", _in_markdown)]) + "\n"

    def latex(self, label: str | None = None) -> str:
        r"""A `table` environment; it needs \usepackage{booktabs}. label: what \ref calls it."""
        lines = [r"\begin{table}[t]", r"\centering", rf"\caption{{{escaped(self.caption)}}}"]
        lines += [rf"\label{{{label}}}"] if label else []
        for place, panel in enumerate(self.panels):
            lines += [r"\par\medskip"] if place else []
            lines += [rf"\textit{{{escaped(panel.title)}}}\par\smallskip"] if panel.title else []
            lines += _tabular(panel)
        note = self._noted(r"\textbf{Bold}", r"$^\dagger$", escaped)
        lines += [r"\par\smallskip", rf"\parbox{{\linewidth}}{{\footnotesize {note}}}", r"\end{table}"]
        return "\n".join([r"% needs \usepackage{booktabs}", *lines]) + "\n"

    def _noted(self, best: str, tie: str, language: Callable[[str], str] = str) -> str:
        """The note in this language, with its signs for the best and for ties."""
        return language(self.note).replace(BEST, best).replace(TIE, tie)

    def csv(self) -> str:
        """One row for every cell, numbers in full precision; empty where there is none.

        A text that a spreadsheet would take for a formula begins with a quote, which makes it a text there.
        """
        sink = io.StringIO()
        names = list(dict.fromkeys(name for record in self.records for name in record))
        writer = csv.DictWriter(sink, names, lineterminator="\n")
        writer.writeheader()
        writer.writerows({name: _in_csv(value) for name, value in record.items()} for record in self.records)
        return sink.getvalue()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write it in the form that the file's name asks for: .tex, .md, .csv or .txt."""
        forms: dict[str, Callable[[], str]] = {".tex": self.latex, ".md": self.markdown, ".csv": self.csv}
        forms[".txt"] = lambda: self.text() + "\n"
        suffix = Path(path).suffix
        if suffix not in forms:
            raise InputError(
                f"cannot write the table {os.fspath(path)}: its name must end in one of {', '.join(forms)}"
            )
        archive.write_text_file(path, forms[suffix](), "the table")

    def __str__(self) -> str:
        return self.text()

    __repr__ = __str__

    def _repr_html_(self) -> str:  # what a notebook shows
        panels = (
            html.table(_merged(panel), [[*map(_plain, row)] for row in panel.rows], panel.names, panel.title,
                       len(panel.rows))
            for panel in self.panels
        )  # fmt: skip
        note = html.text(self._noted("*", "\N{DAGGER}"))
        return html.summary(self.caption, (), *panels, f"<div style='opacity:.7'>{note}</div>")


def escaped(text: str) -> str:
    """As LaTeX prints it; signs that pdflatex may not have become their names.

    Letters stay: those that are neither Latin nor Greek need xelatex or lualatex, with a font that has them.
    """
    latex = "".join(_escape(one) for one in " ".join(text.split(" ")).replace("\n", " "))
    return re.sub(r"-(?=-)", "-{}", latex)  # no ligature of two hyphens


def _escape(one: str) -> str:
    if one in ESCAPES or one in LATIN:
        return ESCAPES.get(one) or rf"$\mathrm{{{LATIN[one]}}}$"
    case, _, name = unicodedata.name(one, "").lower().replace("lamda", "lambda").partition(" letter ")
    if case.startswith("greek") and name in GREEK:
        return f"$\\{name.capitalize() if case.endswith('capital') else name}$"
    if one in (BEST, TIE) or " " <= one <= "~" or unicodedata.category(one).startswith("L"):
        return one
    return "?" if unicodedata.category(one).startswith("C") else unicodedata.name(one, "?").lower()


def _in_markdown(text: str) -> str:
    return re.sub(r"([\\`*_\[\]<>|])", r"\\\1", printable(text.replace("\n", " "), keep=BEST + TIE))


def _in_csv(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    return f"'{printable(value)}" if value.startswith(FORMULAS) and not _is_number(value) else printable(value)


def _is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text)) and text == text.strip()
    except ValueError:
        return False


def _layout(panel: Block) -> str:
    """The side of every column: names to the left, numbers to the right."""
    return "l" * panel.names + "r" * (len(panel.head) - panel.names)


def _tabular(panel: Block) -> list[str]:
    lines = [rf"\begin{{tabular}}{{{_layout(panel)}}}", r"\toprule"]
    if panel.groups:
        start, spans, rules = 1, [], []
        for text, wide in panel.groups:
            spans.append(rf"\multicolumn{{{wide}}}{{c}}{{{escaped(text)}}}" if text else "")
            rules += [rf"\cmidrule(lr){{{start}-{start + wide - 1}}}"] if text else []
            start += wide
        lines += [" & ".join(spans) + r" \\", " ".join(rules)]
    lines += [" & ".join(map(escaped, panel.head)) + r" \\", r"\midrule"]
    for row in panel.rows:
        lines.append(" & ".join(_marked(cell, r"\textbf{{{}}}", r"{}$^\dagger$", _number) for cell in row) + r" \\")
    return [*lines, r"\bottomrule", r"\end{tabular}"]


def _number(text: str) -> str:
    """A text, with a true minus before numbers."""
    return re.sub(r"(?<![\w-])-(?=\d)", "$-$", escaped(text))


def _marked(cell: Cell, best: str, tie: str, language: Any) -> str:
    form = {"best": best, "tie": tie}.get(cell.mark, "{}")
    text = form.format(language(cell.text))
    if not cell.rest:
        return text
    rest = language(cell.rest)
    return rf"{text} {{\footnotesize {rest}}}" if language is _number else f"{text} {rest}"


def _plain(cell: Cell) -> str:
    mark = {"best": "*", "tie": "\N{DAGGER}"}.get(cell.mark, "")
    return f"{cell.text}{mark} {cell.rest}".strip()


def _merged(panel: Block) -> list[str]:
    """The head in one line: what stands above, and the column."""
    over = [text for text, wide in panel.groups or (("", len(panel.head)),) for _ in range(wide)]
    return [f"{above}, {name}" if above else name for above, name in zip(over, panel.head, strict=True)]
