"""JSON and archives from anywhere: what is nested too deep, too large or changed is refused early, and by name."""

import io
import json
import os
import zipfile

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ravi
from ravi import files, jsons
from ravi.checks import InputError
from ravi.core import MDP
from ravi.lab.experiments.results import DamagedWarning
from ravi.lab.experiments.runner import run_suite
from ravi.lab.experiments.store import Store
from ravi.lab.experiments.suite_file.specify import specify
from ravi.lab.report.page import report
from ravi.mdps import bandit
from tests.lab.report.folders import made

DEEP = "[" * 100_000 + "]" * 100_000
SUITE = {
    "name": "seals", "steps": 60, "seeds": 2, "points": 5, "columns": ["tuned"],
    "tuning": {"budget": 2, "seeds": 2},
    "sections": [{"name": "one", "mdps": ["riverswim/4"], "learners": ["ravi-ucb"]}],
}  # fmt: skip

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=20,
)


@settings(deadline=None, derandomize=True, max_examples=100)
@given(values)
def test_what_json_writes_is_read(value):
    assert jsons.parsed(json.dumps(value).encode()) == value
    assert jsons.parsed(json.dumps(value, ensure_ascii=False, indent=1).encode(errors="surrogatepass")) == value


@settings(deadline=None, derandomize=True, max_examples=100)
@given(st.dictionaries(st.text(), values, max_size=4).filter(lambda content: "seal" not in content))
def test_a_seal_goes_through_a_file_and_tells_a_change(content):
    again = json.loads(json.dumps(jsons.sealed(content), indent=1))
    assert jsons.unsealed(again, "it", must=True) == content
    with pytest.raises(InputError, match="it is damaged: it was changed after it was written"):
        jsons.unsealed(again | {"one more": 1}, "it")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (DEEP, "it is nested 100,000 deep"), (DEEP[:100_000], "it is nested 100,000 deep"),
        ('{"a":' * 101 + "1" + "}" * 101, "it is nested 101 deep, and 100 is the most"), ("1" * 5000, "integer"),
        ("[1,", "Expecting value"), ('"' + '\\"' * 500_000, "Unterminated string"),
    ],
    ids=range(6),
)  # fmt: skip
def test_what_is_no_json_is_refused_with_its_reason(tmp_path, text, told):
    (tmp_path / "a.json").write_text(text)
    with pytest.raises(InputError, match=rf"a\.json is damaged: it is no JSON: .*{told}"):
        jsons.read_json(tmp_path / "a.json")


def test_brackets_in_texts_are_not_counted():
    text = json.dumps(["[" * 1000, {'"' + "{" * 1000: "\\" + "[" * 1000}])
    assert jsons.parsed(text.encode()) == json.loads(text)


def test_json_that_is_too_large_is_not_parsed(tmp_path, monkeypatch):
    monkeypatch.setattr(jsons, "LARGEST", 100)
    (tmp_path / "a.json").write_text(" " * 101)
    with pytest.raises(InputError, match="it is larger than 100 bytes"):
        jsons.read_json(tmp_path / "a.json")


@pytest.mark.parametrize("place", ["/dev/zero", "pipe"])
def test_what_never_ends_is_not_read(tmp_path, place):
    os.mkfifo(tmp_path / "pipe")
    path = place if place.startswith("/") else str(tmp_path / place)
    for read in (jsons.read_json, MDP.load):
        with pytest.raises(InputError, match=rf"cannot read .*{place}: it is a device or a pipe, not a file"):
            read(path)


# Archives.


def archive(kind="mdp", compression=zipfile.ZIP_STORED, **arrays):
    """A file of ours, made by another hand: arrays, or the bytes of their entries."""
    header = {"format": "ravi", "kind": kind, "version": 1, "arrays": list(arrays)}
    arrays = {"header": np.frombuffer(json.dumps(header).encode(), np.uint8), **arrays}
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", compression) as held:
        for name, array in arrays.items():
            entry = io.BytesIO()
            if isinstance(array, bytes):
                entry.write(array)
            else:
                np.lib.format.write_array(entry, array)
            held.writestr(f"{name}.npy", entry.getvalue())
    return stream


def refused(stream, told):
    stream.seek(0)
    with pytest.raises(InputError, match=told):
        files.read(stream, "mdp")


def test_an_archive_of_compressed_entries_is_refused_before_they_are_read():
    refused(archive(compression=zipfile.ZIP_DEFLATED, rewards=np.zeros(10**6)), "'header.npy' is compressed")


def test_an_entry_cannot_claim_more_bytes_than_the_file_has(monkeypatch):
    content = archive(rewards=np.zeros(10)).getvalue()
    small, large = (size.to_bytes(4, "little") for size in (208, 10**9))  # 128 bytes of header, 80 of numbers
    assert content.count(small) == 4  # twice here, twice in the directory
    refused(io.BytesIO(content.replace(small, large)), "claim more bytes than it has")


def test_an_array_cannot_claim_more_numbers_than_it_has_bytes():
    entry = io.BytesIO()
    np.lib.format.write_array_header_1_0(entry, {"descr": "<f8", "fortran_order": False, "shape": (10**12,)})
    refused(archive(rewards=entry.getvalue() + bytes(80)), r"'rewards' cannot be read: its shape \(1000000000000,\)")
    for shape in ((-10,), (10**30, 0), (2, -5)):
        entry = io.BytesIO()
        np.lib.format.write_array_header_1_0(entry, {"descr": "<f8", "fortran_order": False, "shape": shape})
        refused(archive(rewards=entry.getvalue() + bytes(80 if 0 not in shape else 0)), "'rewards' cannot be read")


def test_an_archive_has_every_entry_once():
    stream = archive(rewards=np.zeros(3))
    with pytest.warns(UserWarning, match="Duplicate"), zipfile.ZipFile(stream, "a") as held:
        held.writestr("rewards.npy", b"another")
    refused(stream, "two entries have one name")


def test_a_file_that_was_changed_by_a_tool_is_noticed(tmp_path):
    path = tmp_path / "mdp"
    bandit(2).save(path)
    with np.load(path) as held:
        arrays = dict(held)
    arrays["rewards"] = arrays["rewards"] / 2  # sound, but another MDP
    with open(path, "wb") as file:
        np.savez(file, **arrays)
    with pytest.raises(InputError, match="mdp is damaged: it was changed after it was written"):
        MDP.load(path)
    header = json.loads(arrays["header"].tobytes())
    del header["seal"]  # as in files from before there were seals
    arrays["header"] = np.frombuffer(json.dumps(header).encode(), np.uint8)
    with open(path, "wb") as file:
        np.savez(file, **arrays)
    assert (MDP.load(path).rewards == bandit(2).rewards / 2).all()


# Folders of results.


@pytest.fixture
def folder(tmp_path):
    return made(tmp_path / "results", SUITE)


def edited(path, **changes):
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def test_a_choice_that_was_changed_afterwards_is_not_shown(folder):
    before = ravi.results(folder)
    ((subject, record),) = before.tuning.items()
    path = folder / "tuning" / f"{subject}.json"
    edited(path, chosen=1 - record["chosen"])
    with pytest.warns(DamagedWarning, match=rf"{subject}\.json is damaged: it was changed after it was written"):
        found = ravi.results(folder)
    assert not found.tuning
    assert found.counts.done == 0
    plain = {name: value for name, value in json.loads(path.read_text()).items() if name != "seal"}
    path.write_text(json.dumps(plain))  # no seal is no way out
    with pytest.warns(DamagedWarning, match=rf"{subject}\.json is damaged: it has no seal"):
        assert not ravi.results(folder).tuning


@pytest.mark.usefixtures("in_this_process")
def test_a_changed_choice_is_made_again_by_the_same_command(tmp_path):
    folder = tmp_path / "results"
    run_suite(SUITE, folder, workers=1)
    before = ravi.results(folder).tuning
    ((subject, record),) = before.items()
    edited(folder / "tuning" / f"{subject}.json", chosen=1 - record["chosen"])
    run_suite(SUITE, folder, workers=1)
    assert ravi.results(folder).tuning == before


def test_a_specification_that_was_changed_afterwards_is_refused(folder):
    path = folder / "specification.json"
    held = json.loads(path.read_text())
    edited(path, suite=held["suite"] | {"title": "another"})
    with pytest.raises(InputError, match=r"specification\.json is damaged: it was changed after it was written"):
        _ = ravi.results(folder).suite


def test_a_manifest_that_was_changed_afterwards_is_named(folder):
    path = next((folder / "manifests").iterdir())
    edited(path, versions={})
    with pytest.warns(DamagedWarning, match=rf"{path.name} is damaged: it was changed after it was written"):
        ravi.results(folder)


def test_a_folder_from_before_there_were_seals_is_read_as_it_was(folder):
    before = ravi.results(folder)
    for path in folder.rglob("*.json"):
        held = json.loads(path.read_text())
        del held["seal"]
        path.write_text(json.dumps(held))
    found = ravi.results(folder)
    assert (found.tuning, found.counts, found.specification) == (before.tuning, before.counts, before.specification)


@pytest.mark.parametrize("name", ["tuning", "manifests", "specification.json", "verify.json"])
def test_json_nested_deep_is_named_wherever_it_is(folder, name):
    path = next((folder / name).iterdir()) if (folder / name).is_dir() else folder / name
    path.write_text(DEEP)
    told = rf"{path.name} is damaged: it is no JSON: it is nested 100,000 deep"
    if name in ("tuning", "manifests"):
        with pytest.warns(DamagedWarning, match=told):
            ravi.results(folder)
    else:
        with pytest.raises(InputError, match=told):
            report(folder)


def test_toml_nested_deep_is_refused(tmp_path):
    (tmp_path / "deep.toml").write_text(f"seeds = {DEEP}")
    with pytest.raises(InputError, match=r"deep\.toml: its lists and tables are nested too deep"):
        specify(tmp_path / "deep.toml")


def test_a_checkpoint_or_a_part_that_is_no_file_is_left_out(folder):
    store = Store(folder)
    os.mkfifo(folder / "checkpoints" / f"{'0' * 20}-{'0' * 16}-{'0' * 12}.run")
    os.mkfifo(folder / "parts" / f"{'0' * 12}-000000-{'0' * 16}.parquet")
    assert store.checkpoints() == []
    assert "it is a device or a pipe, not a file" in str(store.troubles[0])
    with pytest.warns(DamagedWarning, match="damaged: it is no file"):
        ravi.results(folder)
