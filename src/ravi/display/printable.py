"""Text for a terminal: within its width, with control characters in the text of others escaped.

Labels, errors and names of files come from folders and programs of others. An escape sequence among them could clear
the screen, rename the window or hide what was printed before; a line break could pass for a line of ours.
"""

import os
import re
import shutil
import textwrap
import unicodedata
from collections.abc import Sequence
from itertools import zip_longest

OBEYED = {"Cc", "Cf", "Cs", "Zl", "Zp"}  # control and format characters, halves of pairs, separators of lines
LETTERS = "\N{ZERO WIDTH JOINER}\N{ZERO WIDTH NON-JOINER}"  # which some scripts are written with
ENDLESS = 10**6  # columns of what goes to no terminal
LEAST, DEEP = 10, 4  # a cell is folded to so many columns at least, and over so many lines at most


def printable(text: str, keep: str = "") -> str:
    r"""The text, with \x1b for an escape, and so on for all that is no letter, but for what is kept."""
    if text.isprintable():
        return text
    spelled = {one for one in text if one not in keep and one not in LETTERS and unicodedata.category(one) in OBEYED}
    return "".join(one.encode("unicode_escape").decode() if one in spelled else one for one in text)


def counted(number: int, what: str) -> str:
    """1 run, 2 runs."""
    return f"{number:,} {what}" + ("" if number == 1 else "s")


def duration(seconds: float) -> str:
    """`45 s`, `12 min`, `3 h 20 min`."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60} min"


def with_rows(title: str, rows: Sequence[tuple[str, str]]) -> str:
    """A title, and below it what there is to say, each by its name."""
    width = max(14, *(len(name) for name, _ in rows))
    return "\n".join([title, *(f"  {name:{width}}  {words}" for name, words in rows)])


def titled(mdp: str) -> str:
    """The id of an MDP; of one in a file, the file's name without its folders."""
    return os.path.basename(mdp) if os.path.isabs(mdp) else mdp


def room() -> int:
    """How many columns the terminal has, or COLUMNS says; without either, more than are ever needed."""
    return shutil.get_terminal_size((ENDLESS, 24)).columns


def folded(text: str, width: int) -> str:
    """The text with long lines folded at spaces; they go on below what follows the last gap, or indented by two."""
    lines = []
    for line in text.split("\n"):
        indent = len(line) - len(line.lstrip()) + 2
        gaps = [gap.end() for gap in re.finditer(r"(?<=\S) {2,}", line) if gap.end() <= width // 2]
        more = " " * (gaps[-1] if gaps else indent)
        wrapped = textwrap.wrap(line, width, subsequent_indent=more, break_long_words=False, break_on_hyphens=False)
        lines += wrapped if len(line) > width else [line]
    return "\n".join(lines)


def columns(rows: Sequence[Sequence[str]], align: str, width: int = ENDLESS, lead: int | None = None) -> list[str]:
    """Rows of cells as lines, each column to its left or right: "llrr".

    Where a line would be too long, cells on the left are folded, each over a few lines. If that does not do, columns
    come in blocks below each other, each behind those that lead: the first ones on the left, or so many.
    """
    lead = len(align) - len(align.lstrip("l")) if lead is None else lead
    sizes = [max(map(len, column)) for column in zip(*rows, strict=True)]
    least = [max(LEAST, size // DEEP) if side == "l" else size for size, side in zip(sizes, align, strict=True)]
    over = sum(sizes) + 2 * (len(sizes) - 1) - width
    if over > sum(max(0, size - low) for size, low in zip(sizes, least, strict=True)) and len(align) - lead > 1:
        fit = lead + 1
        while sum(sizes[: fit + 1]) + 2 * fit <= width:
            fit += 1
        above, below = ([[*row[:lead], *row[part]] for row in rows] for part in (slice(lead, fit), slice(fit, None)))
        rest = columns(below, align[:lead] + align[fit:], width, lead)
        return [*columns(above, align[:fit], width, lead), "", *rest]
    for _ in range(over):
        widest = max(range(len(sizes)), key=lambda place: (sizes[place] > least[place], sizes[place]))
        sizes[widest] -= 1
    lines = []
    for row in rows:
        cells = [pieces(cell, size) for cell, size in zip(row, sizes, strict=True)]
        for line in zip_longest(*cells, fillvalue=""):
            placed = zip(line, sizes, align, strict=True)
            lines.append(
                "  ".join(f"{cell:{'<' if side == 'l' else '>'}{size}}" for cell, size, side in placed).rstrip()
            )
    return lines


def pieces(text: str, width: int) -> list[str]:
    """A text in pieces that are no longer, each with what it can hold, cut behind a space, a comma or a slash."""
    cut = []
    while len(text) > width:
        at = max(text.rfind(mark, 0, width) for mark in " ,/") + 1 or width
        cut.append(text[:at].rstrip())
        text = text[at:].lstrip()
    return [*cut, text]
