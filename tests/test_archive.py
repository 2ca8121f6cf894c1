"""The archive: a file gives back exactly what was stored, and a wrong file is refused by its name and the reason."""

import io
import json
import os
import pickle
import re
import stat
import zipfile
from hashlib import sha256

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ravi
from ravi.core import MDP
from ravi.live.agent import Agent
from ravi.mdps import bandit, deep_sea, from_dense, garnet, garnets, hypercube, riverswim
from ravi.runtime import archive
from ravi.validation import InputError

ARRAYS = ("rewards", "successors", "transitions", "initial", "features", "parameter")
VALUES = ("discount", "parameter_bound", "feature_bound", "name")


def assert_same(one, two):
    """Bit for bit, types and shapes included."""
    for field in ARRAYS:
        a, b = getattr(one, field), getattr(two, field)
        if a is None:
            assert b is None
        else:
            assert (a.dtype, a.shape) == (b.dtype, b.shape)
            assert a.tobytes() == b.tobytes()
    for field in VALUES:
        assert (getattr(one, field), type(getattr(one, field))) == (getattr(two, field), type(getattr(two, field)))


@pytest.mark.parametrize("mdp", [deep_sea(4), hypercube(4), garnets(3, 9, 2, 3)], ids=lambda mdp: mdp.name)
def test_an_mdp_comes_back_bit_for_bit_and_numpy_alone_reads_it(mdp, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    mdp.save("river.npz")
    assert_same(MDP.load("river.npz"), mdp)
    assert os.listdir(tmp_path) == ["river.npz"]  # the path as given, and nothing left behind
    with np.load("river.npz", allow_pickle=False) as held:
        np.testing.assert_array_equal(held["transitions"], mdp.transitions)
        header = json.loads(held["header"].tobytes())
    assert (header["name"], header["discount"]) == (mdp.name, mdp.discount)
    mdp.save("again")
    assert (tmp_path / "again").read_bytes() == (tmp_path / "river.npz").read_bytes()


@settings(deadline=None, derandomize=True, max_examples=40)
@given(
    st.integers(1, 6),
    st.integers(1, 3),
    st.integers(0, 2**32 - 1),
    st.floats(1e-6, 1 - 1e-6),
    st.text(max_size=20),
)
def test_any_mdp_comes_back_bit_for_bit(tmp_path_factory, X, A, seed, discount, name):
    rng = np.random.default_rng(seed)
    P = rng.dirichlet(np.full(X, 0.3), size=(X, A))
    mdp = from_dense(P / P.sum(-1, keepdims=True), rng.random((X, A)), discount, int(rng.integers(X)), name=name)
    path = tmp_path_factory.mktemp("any") / "mdp"
    mdp.save(path)
    assert_same(MDP.load(path), mdp)


ARRAYS_OF_ALL_KINDS = {
    "whole": np.arange(-3, 3),
    "short": np.array([[1, 2], [3, 4]], dtype=np.int8).T,
    "flags": np.array([True, False]),
    "single": np.float32([[0.1]]),
    "nothing": np.zeros((0, 3)),
    "scalar": np.array(2.5),
    "special": np.array([np.nan, np.inf, -0.0, 5e-324]),
    "large": np.uint64([2**64 - 1]),
    "big-endian": np.arange(3, dtype=">f8"),
    "state.data.N": np.ones((2, 3)),
    "words": np.array(["a", "äöü"]),
}


def test_arrays_of_all_kinds_come_back_bit_for_bit(tmp_path):
    path = tmp_path / "run"
    header = {"learner": "ravi", "steps": 10, "eta": 0.1, "nested": {"list": [1, None, True]}}
    archive.write(path, "run", header, ARRAYS_OF_ALL_KINDS)
    found, arrays = archive.read(path, "run")
    assert found == header | {"format": "ravi", "kind": "run", "version": 1, "arrays": list(ARRAYS_OF_ALL_KINDS)}
    assert list(arrays) == list(ARRAYS_OF_ALL_KINDS)
    for name, array in ARRAYS_OF_ALL_KINDS.items():
        assert (arrays[name].dtype, arrays[name].shape) == (array.dtype, array.shape)
        assert arrays[name].tobytes() == array.tobytes()
        arrays[name][...] = arrays[name]  # ours to write into


def test_writing_replaces_a_file_as_a_whole(tmp_path, monkeypatch):
    path = tmp_path / "mdp"
    riverswim().save(path)
    before = path.read_bytes()

    def crash(file, **_):
        file.write(b"half")
        raise KeyboardInterrupt

    monkeypatch.setattr(np, "savez", crash)
    with pytest.raises(KeyboardInterrupt):
        garnet(5, 2, 2).save(path)
    monkeypatch.undo()
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["mdp"]
    garnet(5, 2, 2).save(path)
    assert MDP.load(path).name == "garnet/5,2,2"


def test_a_full_disk_is_an_error_that_names_the_file(tmp_path, monkeypatch):
    def full(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(InputError, match=rf"cannot write {re.escape(str(tmp_path))}/mdp: No space left on device"):
        riverswim().save(tmp_path / "mdp")
    assert os.listdir(tmp_path) == []


def test_a_file_has_the_permissions_of_any_new_file(tmp_path):
    (tmp_path / "plain").write_bytes(b"")
    riverswim().save(tmp_path / "mdp")
    assert stat.S_IMODE((tmp_path / "mdp").stat().st_mode) == stat.S_IMODE((tmp_path / "plain").stat().st_mode)


def test_a_place_that_cannot_be_written_is_an_error_that_names_the_file(tmp_path):
    missing = tmp_path / "missing" / "mdp"
    with pytest.raises(InputError, match=rf"cannot write {re.escape(str(missing))}: there is no folder .*missing$"):
        riverswim().save(missing)
    (tmp_path / "folder").mkdir()
    with pytest.raises(InputError, match=r"cannot write .*folder: Is a directory"):
        riverswim().save(tmp_path / "folder")
    assert os.listdir(tmp_path) == ["folder"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_read_only_folder_is_an_error_that_names_the_file(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(InputError, match=r"cannot write .*mdp: Permission denied"):
        riverswim().save(tmp_path / "mdp")
    tmp_path.chmod(0o700)


@pytest.mark.parametrize(
    ("header", "arrays", "message"),
    [
        ({}, {"odd": np.array([{}, None])}, "odd holds Python objects, not numbers"),
        ({}, {"odd": np.zeros(2, dtype=[("a", object)])}, "odd holds Python objects, not numbers"),
        ({}, {"header": np.zeros(1)}, "an array cannot be called 'header'"),
        ({}, {"file": np.zeros(1)}, "an array cannot be called 'file'"),
        ({"version": 2}, {}, "the header's 'version' is the format's own"),
        ({"checksum": ""}, {}, "the header's 'checksum' is the format's own"),
        ({}, {"odd": np.zeros(2, dtype=[("a", float)])}, "odd holds records, not numbers"),
        ({"when": object()}, {}, "the header is not JSON"),
        ({"eta": float("nan")}, {}, "the header is not JSON"),
    ],
)
def test_what_the_format_cannot_hold_is_refused_before_a_file_is_touched(tmp_path, header, arrays, message):
    with pytest.raises(InputError, match=message):
        archive.write(tmp_path / "x", "run", header, arrays)
    assert os.listdir(tmp_path) == []


def npz(**arrays):
    stream = io.BytesIO()
    np.savez(stream, **arrays)
    return stream.getvalue()


def head(arrays=(), **changes):
    """The bytes of a header of these arrays, by name, with its checksum."""
    header = {"format": "ravi", "kind": "mdp", "version": 1, "arrays": list(arrays)} | changes
    if isinstance(arrays, dict):
        header |= {"checksum": archive.checksum_of(header, arrays)}
    return np.frombuffer(json.dumps(header).encode(), np.uint8)


class Harmful:
    def __reduce__(self):
        return (os.abort, ())


def zipped(name, content):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as held:
        held.writestr(name, content)
    return stream.getvalue()


NO_LIST = b'{"format": "ravi", "kind": "mdp", "version": 1, "arrays": 3}'
FOREIGN = {
    "empty": (b"", "is not a ravi file: it is empty"),
    "text": (b"states: 3\n", "is not a ravi file"),
    "pickle": (pickle.dumps(Harmful()), "is not a ravi file"),
    "npy": (b"\x93NUMPY\x01\x00v\x00", "is not a ravi file"),
    "zip of text": (zipped("readme.txt", "hello"), "is not a ravi file: it has no header"),
    "npz": (npz(P=np.ones(3)), "is not a ravi file: it has no header"),
    "zip cut short": (npz(P=np.ones(3))[:-30], "is damaged or cut short"),
    "header of another format": (npz(header=head(format="other")), "is not a ravi file: its header does not say so"),
    "header that is a list": (npz(header=np.frombuffer(b"[1]", np.uint8)), "its header does not say so"),
    "header that is no JSON": (npz(header=np.frombuffer(b"{'a'", np.uint8)), "is damaged: its header cannot be read"),
    "header that is no text": (npz(header=np.uint8([255, 254, 1])), "is damaged: its header cannot be read"),
    "header that is nested too deeply": (
        npz(header=np.frombuffer(b"[" * 200_000, np.uint8)),
        "its header cannot be read",
    ),
    "header that is no array": (zipped("header.npy", "hello"), "is damaged: its header cannot be read"),
    "header by pickle": (zipped("header.npy", pickle.dumps(Harmful())), "is damaged: its header cannot be read"),
    "newer": (npz(header=head(version=2)), "has version 2 of the format; this ravi reads 1"),
    "no version": (npz(header=head(version=None)), "has version None of the format; this ravi reads 1"),
    "another kind": (npz(header=head(kind="run")), "holds 'run', not 'mdp'"),
    "array missing": (npz(header=head(arrays=["rewards"])), "does not hold the arrays that its header lists"),
    "array too many": (npz(header=head(), rewards=np.ones(1)), "does not hold the arrays that its header lists"),
    "arrays that are no list": (
        npz(header=np.frombuffer(NO_LIST, np.uint8)),
        "does not hold the arrays that its header lists",
    ),
    "array by pickle": (
        npz(header=head(arrays=["rewards"]), rewards=np.array([Harmful()], dtype=object)),
        "is damaged: its array 'rewards' cannot be read: Object arrays cannot be loaded",
    ),
    "no checksum": (
        npz(header=head(arrays=["rewards"]), rewards=np.ones((1, 1))),
        "is damaged: it was changed after it was written",
    ),
    "fields missing": (
        npz(header=head({"rewards": np.ones((1, 1))}), rewards=np.ones((1, 1))),
        "is damaged: it has no successors",
    ),
}


@pytest.mark.parametrize("case", FOREIGN)
def test_a_foreign_file_is_refused_by_name_and_reason(case, tmp_path):
    content, message = FOREIGN[case]
    path = tmp_path / "foreign"
    path.write_bytes(content)
    with pytest.raises(InputError, match=message) as raised:
        MDP.load(path)
    assert str(path) in str(raised.value)
    assert raised.value.__cause__ is None
    assert raised.value.__suppress_context__ or raised.value.__context__ is None


def test_a_file_that_is_not_there_is_an_error_that_names_it(tmp_path):
    with pytest.raises(InputError, match=r"there is no file .*nowhere/mdp$"):
        MDP.load(tmp_path / "nowhere" / "mdp")
    with pytest.raises(InputError, match=r"cannot read .*: Is a directory"):
        MDP.load(tmp_path)


def test_a_file_is_checked_as_if_its_mdp_had_just_been_made(tmp_path):
    mdp, path = riverswim(), tmp_path / "mdp"
    mdp.save(path)
    header, arrays = archive.read(path, "mdp")
    metadata = {name: value for name, value in header.items() if name not in archive.RESERVED}
    arrays["transitions"][2, 1, 0] = 0.5
    archive.write(path, "mdp", metadata, arrays)
    with pytest.raises(InputError, match=r"mdp is damaged: transitions\[2, 1\] sums to 1.45, not 1"):
        MDP.load(path)
    archive.write(path, "mdp", metadata | {"name": 3}, arrays)
    with pytest.raises(InputError, match=r"mdp is damaged: name is 3, not a text"):
        MDP.load(path)


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    mdp, path = bandit(2), tmp_path_factory.mktemp("stored") / "mdp"
    mdp.save(path)
    return mdp, path.read_bytes(), path


@settings(deadline=None, derandomize=True, max_examples=400)
@given(st.floats(0, 1, exclude_max=True), st.integers(1, 255))
def test_a_changed_byte_is_noticed_or_does_not_matter(stored, where, mask):
    mdp, content, path = stored
    changed = bytearray(content)
    changed[int(where * len(content))] ^= mask
    path.write_bytes(changed)
    again, refusal = mdp, str(path)
    try:
        again = MDP.load(path)
    except InputError as error:
        refusal = str(error)
    assert_same(again, mdp)
    assert str(path) in refusal


@settings(deadline=None, derandomize=True, max_examples=200)
@given(st.floats(0, 1, exclude_max=True))
def test_a_file_that_was_cut_short_is_refused(stored, where):
    _, content, path = stored
    path.write_bytes(content[: int(where * len(content))])
    with pytest.raises(InputError, match=r"is damaged or cut short|is not a ravi file"):
        MDP.load(path)


# Archives that another hand made.


def refused(stream, told):
    stream.seek(0)
    with pytest.raises(InputError, match=told):
        archive.read(stream, "mdp")


def packed(compression=zipfile.ZIP_STORED, **arrays):
    """An archive: arrays, or the bytes of their entries."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", compression) as held:
        for name, array in {"header": head(arrays=list(arrays)), **arrays}.items():
            entry = io.BytesIO()
            if isinstance(array, bytes):
                entry.write(array)
            else:
                np.lib.format.write_array(entry, array)
            held.writestr(f"{name}.npy", entry.getvalue())
    return stream


def test_an_archive_of_compressed_entries_is_refused_before_they_are_read():
    refused(packed(zipfile.ZIP_DEFLATED, rewards=np.zeros(10**6)), "'header.npy' is compressed")


def test_an_entry_cannot_claim_more_bytes_than_the_file_has():
    content = packed(rewards=np.zeros(10)).getvalue()
    small, large = (size.to_bytes(4, "little") for size in (208, 10**9))  # 128 bytes of header, 80 of numbers
    assert content.count(small) == 4  # twice here, twice in the directory
    refused(io.BytesIO(content.replace(small, large)), "claim more bytes than it has")


def test_an_array_cannot_claim_more_numbers_than_it_has_bytes():
    for shape, size in (((10**12,), 80), ((-10,), 80), ((10**30, 0), 0), ((2, -5), 80)):
        entry = io.BytesIO()
        np.lib.format.write_array_header_1_0(entry, {"descr": "<f8", "fortran_order": False, "shape": shape})
        refused(packed(rewards=entry.getvalue() + bytes(size)), "'rewards' cannot be read")


def test_an_archive_has_every_entry_once():
    stream = packed(rewards=np.zeros(3))
    with pytest.warns(UserWarning, match="Duplicate"), zipfile.ZipFile(stream, "a") as held:
        held.writestr("rewards.npy", b"another")
    refused(stream, "two entries have one name")


@pytest.mark.parametrize("kind", ["mdp", "run", "agent", "policy"])
def test_a_file_that_was_changed_without_renewing_its_checksum_is_refused(tmp_path, kind):
    """A tool that writes sound archives changes an array, or the header; or leaves the checksum out."""
    path = tmp_path / "file"
    mdp = bandit(2)
    thing, load, name = {
        "mdp": (mdp, MDP.load, "rewards"),
        "run": (ravi.run("uniform", mdp, 20), ravi.Run.load, "batch.walkers.time"),
        "agent": (ravi.agent("ravi-ucb", mdp.problem, 20), Agent.load, "moves"),
        "policy": (ravi.Policy(table=np.full((1, 2), 0.5), discount=0.9), ravi.load_policy, "table"),
    }[kind]
    thing.save(path)
    with np.load(path) as held:
        arrays = dict(held)
    header = json.loads(arrays["header"].tobytes())
    bare = {key: value for key, value in header.items() if key != "checksum"}
    for changes in ({name: arrays[name] + 1}, {name: arrays[name][:0]}, header | {"more": 1}, bare):
        if "format" in changes:
            changes = {"header": np.frombuffer(json.dumps(changes).encode(), np.uint8)}
        with open(path, "wb") as file:
            np.savez(file, **arrays | changes)
        with pytest.raises(InputError, match="was changed after it was written"):
            load(path)
    with open(path, "wb") as file:
        np.savez(file, **arrays)
    load(path)


# JSON, and what is no file.

DEEP = "[" * 100_000 + "]" * 100_000


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (DEEP, "recursion"), (DEEP[:100_000], "recursion"), ("1" * 5000, "integer"), ("[1,", "Expecting value"),
        ('"' + '\\"' * 500_000, "Unterminated string"), ("\x00", "Expecting value"),
    ],
    ids=range(6),
)  # fmt: skip
def test_what_is_no_json_is_refused_with_its_reason(tmp_path, text, told):
    (tmp_path / "a.json").write_text(text)
    with pytest.raises(InputError, match=rf"a\.json is damaged: it is no JSON: .*{told}"):
        archive.read_json(tmp_path / "a.json")


@pytest.mark.parametrize("place", ["/dev/zero", "pipe"])
def test_what_never_ends_is_not_read(tmp_path, place):
    os.mkfifo(tmp_path / "pipe")
    path = place if place.startswith("/") else str(tmp_path / place)
    for read in (archive.read_json, MDP.load):
        with pytest.raises(InputError, match=rf"cannot read .*{place}: it is a device or a pipe, not a file"):
            read(path)


def test_a_header_of_any_depth_is_read_or_refused(tmp_path):
    """Around the depth at which json.loads gives up, what comes after it must not."""
    for depth in [*range(100, 900, 100), *range(900, 1100)]:
        text = b'{"format": "ravi", "kind": "mdp", "version": 1, "arrays": [], "name": ' + b"[" * depth + b"]" * depth
        checksum = sha256(text + b"}").hexdigest().encode()
        header = np.frombuffer(text + b', "checksum": "' + checksum + b'"}', np.uint8)
        (tmp_path / "mdp").write_bytes(npz(header=header))
        with pytest.raises(InputError, match=r"it has no rewards|header cannot be read"):
            MDP.load(tmp_path / "mdp")
