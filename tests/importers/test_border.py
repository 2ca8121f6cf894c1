"""Nothing but an `InputError` comes of what is no model: of any argument, and of any word of any file."""

import re
from contextlib import suppress
from types import SimpleNamespace

import numpy as np
import pytest

from ravi import importers
from ravi.validation import InputError
from tests.helpers import refuses
from tests.importers.test_files import CSV, LAB, POMDP, SREW, STA, TRA, TREW

JUNK = (
    5, None, True, 1.5, float("nan"), object(), b"x", "nonsense", (), [1], {"a": 1}, np.zeros(3), lambda *_: None,
)  # fmt: skip
ONE = np.ones((1, 1, 1))
LOG = "state,action,reward,next,end\ns,a,1,t,0\nt,b,0,s,1\n"
CALLS = {
    importers.table: {"source": "m.csv", "discount": 0.9, "initial": None, "renormalise": False, "name": None},
    importers.plays: {"source": "l.csv", "discount": 0.9, "initial": None, "reward_range": None, "delta": 0.1,
                      "name": None},
    importers.prism: {"path": "m.tra", "discount": 0.9, "initial": None, "renormalise": False},
    importers.pomdp: {"path": "m.mdp", "discount": None, "renormalise": False},
    importers.read: {"path": "m.csv", "discount": 0.9},
    importers.tables: {"T": ONE, "R": [1], "discount": 0.9, "initial": 0, "renormalise": False},
    importers.mdptoolbox: {"P": ONE, "R": [1], "discount": 0.9, "initial": 0},
    importers.quantecon: {"ddp": SimpleNamespace(R=np.ones((1, 1)), Q=ONE, beta=0.9), "initial": 0},
    importers.colosseum: {"mdp": None, "discount": 0.9},
    importers.bsuite: {"environment": None, "discount": 0.9, "resets": 1, "most": 4},
}  # fmt: skip
FILES = {"m.tra": TRA, "m.lab": LAB, "m.srew": SREW, "m.trew": TREW, "m.sta": STA, "m.mdp": POMDP, "m.csv": CSV,
         "l.csv": LOG}  # fmt: skip


@pytest.fixture
def there(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    return tmp_path


@pytest.mark.parametrize("function", CALLS, ids=lambda function: function.__name__)
def test_an_argument_of_a_wrong_type_is_told(function, there):
    told = []
    for name in CALLS[function]:
        for wrong in JUNK:
            try:
                function(**(CALLS[function] | {name: wrong}))
            except InputError as error:
                told.append(str(error))
    assert len(told) >= len(JUNK) // 2
    assert [line for line in told if len(line.splitlines()) != 1] == []


@pytest.mark.parametrize("name", FILES)
def test_any_word_of_a_file_may_be_another(name, there):
    readers = {
        "m.mdp": lambda: importers.pomdp("m.mdp"),
        "m.csv": lambda: importers.table("m.csv", 0.9),
        "l.csv": lambda: importers.plays("l.csv", 0.9),
    }
    reads = readers.get(name, lambda: importers.prism("m.tra", 0.9))
    text = FILES[name]
    places = [found.span() for found in re.finditer(r"[^\s,:]+|[,:\n]", text)]
    for low, high in places:
        for other in ("", "-1", "7", "x", "1e999", "nan", '"', ":", "99999999999999999999"):
            (there / name).write_text(text[:low] + other + text[high:])
            with suppress(InputError):
                reads()
    for cut in range(0, len(text), 3):
        (there / name).write_text(text[:cut])
        with suppress(InputError):
            reads()
    (there / name).write_bytes(b"\xff\xfe\x00")
    refuses(rf"{name} cannot be read as a text", reads)
