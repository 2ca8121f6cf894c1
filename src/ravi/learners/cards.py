"""What the docstring of a learner says of it, by labels.

A docstring says things by labels at the beginning of a line ("Paper: ..."), up to the next label or a blank line. What
the builder's docstring says goes before what its file says.
"""

from __future__ import annotations

import inspect
import re
import sys
from typing import NamedTuple

from ravi.ids import LEARNERS, WRAPPERS, builder_of, options_of

LABELS = ("Paper", "Setting", "Guarantee", "Composition", "Constants", "Cost", "Trust", "Deviations")
TAGS = ("CHECKED", "MEM-H", "MEM-M", "MEM-L", "RECON", "DERIVED")


class Card(NamedTuple):
    """The description of a learner."""

    id: str
    summary: str
    module: str
    options: dict[str, object]
    facts: dict[str, str]


def labelled(text: str) -> dict[str, str]:
    """The labelled paragraphs of a docstring, each on one line."""
    starts = "|".join(LABELS)
    found = re.findall(rf"^({starts}): (.*?)(?=^(?:{starts}): |^\s*$|\Z)", text, flags=re.MULTILINE | re.DOTALL)
    return {label: " ".join(words.split()) for label, words in found}


def cards() -> list[Card]:
    """One card per learner that has an id, and per wrapper."""
    return [*map(card_of, LEARNERS), *map(wrapper_card, WRAPPERS)]


def card_of(name: str) -> Card:
    known = LEARNERS[name]
    builder = builder_of(known)
    facts = labelled(inspect.getdoc(sys.modules[known.module]) or "") | labelled(inspect.getdoc(builder) or "")
    return Card(name, known.summary, known.module, options_of(builder, skip=2), facts)


def wrapper_card(name: str) -> Card:
    known = WRAPPERS[name]
    wrap = builder_of(known).wrap
    return Card(
        f"NAME/{name}", known.summary, known.module, options_of(wrap, skip=3), labelled(inspect.getdoc(wrap) or "")
    )
