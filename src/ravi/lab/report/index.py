"""What is in a folder of figures? A page that shows those that were drawn, by what they tell."""

from collections.abc import Iterable
from html import escape
from pathlib import Path
from urllib.parse import quote

from ravi.runtime import archive
from ravi.validation import must_be

KINDS = {  # in the order of the page
    "ranks": "Who wins, by how much",
    "regret-log": "How regret grows, on logarithmic axes, with the bounds of the theory",
    "gap": "How good the current policy is",
    "pareto": "What less regret costs in computing time",
    "improvement": "Who beats whom, and how surely",
    "regret": "How regret grows, on linear axes",
    "differences": "By how much, on one MDP, paired by seed",
    "profiles": "How often a learner is good, across MDPs",
    "tuning": "What was tried in tuning, and chosen",
    "maps": "Value, bonus, visits and policy over the states",
    "theta": "What is known of theta",
}
STORY = tuple(KINDS)[:5]  # what is drawn of results unless something else is asked for
SHOWN = (".svg", ".png")  # what a browser shows in a page, the better first
STYLE = """:root { color-scheme: light dark; } body { font: 16px/1.5 system-ui, sans-serif; margin: 1.5rem; }
main { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 24rem), 1fr)); gap: 1.5rem; }
h1, h2 { grid-column: 1 / -1; margin: 0; line-height: 1.25; } figure { margin: 0; }
img { width: 100%; background: #fff; border-radius: 6px; } figcaption { font-size: .85rem; overflow-wrap: anywhere; }"""


def known_kinds(kinds: Iterable[str]) -> tuple[str, ...]:
    """Kinds of figures by name; `all` is every one."""
    chosen = tuple(kinds)
    for kind in chosen:
        must_be(kind, (*KINDS, "all"), "figure")
    return tuple(KINDS) if "all" in chosen else chosen


def kind_of(name: str) -> str:
    """The kind of a figure, with which its name begins."""
    return max((kind for kind in KINDS if name.startswith(f"{kind}-")), key=len)


def index_page(folder: Path, written: Iterable[Path]) -> Path:
    """Write FOLDER/index.html, which shows the figures that were written into the folder, and links every file."""
    held: dict[str, dict[str, list[Path]]] = {kind: {} for kind in KINDS}
    for path in written:
        held[kind_of(path.stem)].setdefault(path.stem, []).append(path)
    lines = [
        '<!doctype html><html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>Figures – ravi</title><style>{STYLE}</style></head><body><main><h1>Figures</h1>",
    ]
    for kind, figures in held.items():
        lines += [f"<h2>{escape(KINDS[kind])}</h2>"] if figures else []
        lines += [_figure(stem, paths) for stem, paths in figures.items()]
    place = folder / "index.html"
    archive.write_text_file(place, "\n".join([*lines, "</main></body></html>", ""]))
    return place


def _figure(stem: str, paths: list[Path]) -> str:
    links = ", ".join(f'<a href="{quote(path.name)}">{path.suffix[1:]}</a>' for path in paths)
    shown = min(
        (path for path in paths if path.suffix in SHOWN), key=lambda path: SHOWN.index(path.suffix), default=None
    )
    image = "" if shown is None else f'<img src="{quote(shown.name)}" alt="{escape(stem)}" loading="lazy">'
    return f"<figure>{image}<figcaption>{escape(stem)}: {links}</figcaption></figure>"
