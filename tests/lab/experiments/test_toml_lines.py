"""Lines of TOML: every value that `tomllib` finds is found here too, on the line that it begins on."""

import tomllib

import pytest

from ravi.lab.experiments.mistakes import lines

TEXT = '''# [[sections]]  a comment
name = "a # b"            # = [ {
"quoted key".inner = 1
dotted.key = [1,
  2, # [
  3]
long = """
[[sections]]
name = "no"
\\""" still"""
raw = \'\'\'
x = "
\'\'\'
empty = []
none = {}

[tuning]
scale = [1e-4, 1]

[[sections]]
name = "one"
learners = [
  "a]",
  { id = "b", options = { mode = ["x", "y"], n = 3 } },
  { id = "c" }, { id = "d" },
]
[sections.options]
delta = 0.1

  [[sections]]
  name = 'two'
  [[sections.learners]]
  id = "e"
  [[sections.learners]]
  id = "f"
  options.mode = [
    "x",

    "y",
  ]
last = 1979-05-27T07:32:00Z'''

PLACED = {
    ("name",): 2,
    ("quoted key", "inner"): 3,
    ("dotted", "key"): 4,
    ("dotted", "key", 0): 4,
    ("dotted", "key", 2): 6,
    ("long",): 7,
    ("raw",): 11,
    ("none",): 15,
    ("tuning",): 17,
    ("tuning", "scale", 1): 18,
    ("sections", 0): 20,
    ("sections", 0, "learners", 0): 23,
    ("sections", 0, "learners", 1, "options", "mode", 1): 24,
    ("sections", 0, "learners", 3): 25,
    ("sections", 0, "options", "delta"): 28,
    ("sections", 1): 30,
    ("sections", 1, "learners", 0, "id"): 33,
    ("sections", 1, "learners", 1): 34,
    ("sections", 1, "learners", 1, "options", "mode", 1): 39,
    ("sections", 1, "learners", 1, "last"): 41,
}


def paths(value, path=()):
    if path:
        yield path
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, one in inside:
        yield from paths(one, (*path, key))


@pytest.mark.parametrize("text", [TEXT, TEXT + "\n", TEXT.replace("\n", "\r\n")], ids=["", "newline", "crlf"])
def test_every_value_is_found_on_its_line(text):
    found = lines(text)
    assert {path: found[path] for path in PLACED} == PLACED


def test_what_is_found_is_what_tomllib_finds():
    assert set(lines(TEXT)) == set(paths(tomllib.loads(TEXT)))


def test_an_empty_text_has_no_values():
    assert lines("") == lines("# nothing\n\n") == {}
