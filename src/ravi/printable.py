"""How is text that others wrote shown? As it reads; what a terminal would obey instead of showing it is spelled out.

Labels, errors and names of files come from folders and programs of others. An escape sequence among them could clear
the screen, rename the window or hide what was printed before; a line break could pass for a line of ours.
"""

from __future__ import annotations

import unicodedata

OBEYED = {"Cc", "Cf", "Cs", "Zl", "Zp"}  # control and format characters, halves of pairs, separators of lines
LETTERS = "\N{ZERO WIDTH JOINER}\N{ZERO WIDTH NON-JOINER}"  # which some scripts are written with


def printable(text: str, keep: str = "") -> str:
    r"""The text, with \x1b for an escape, and so on for all that is no letter, but for what is kept."""
    if text.isprintable():
        return text
    return "".join(one if one in keep or one in LETTERS else _spelled(one) for one in text)


def _spelled(one: str) -> str:
    return one.encode("unicode_escape").decode() if unicodedata.category(one) in OBEYED else one
