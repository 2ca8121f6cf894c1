"""Does a file give back exactly what was stored, and does a wrong file say what is wrong with it?"""

import io
import json
import os
import pickle
import re
import stat
import zipfile

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ravi import files
from ravi.checks import InputError
from ravi.core import MDP
from ravi.mdps import bandit, deep_sea, from_dense, garnet, garnets, hypercube, riverswim, terrain, two_cycle

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


@pytest.mark.parametrize(
    "mdp",
    [
        riverswim(),
        deep_sea(4),
        garnet(30, 3, 5, seed=2),
        bandit(),
        hypercube(4),
        garnets(3, 9, 2, 3),
        terrain(),
        two_cycle(),
    ],
    ids=lambda mdp: mdp.name,
)
def test_an_mdp_comes_back_bit_for_bit(mdp, tmp_path):
    path = tmp_path / "river.mdp"
    mdp.save(path)
    assert_same(MDP.load(path), mdp)
    assert os.listdir(tmp_path) == ["river.mdp"]  # the path as given, and nothing left behind


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
    files.write(path, "run", header, ARRAYS_OF_ALL_KINDS)
    found, arrays = files.read(path, "run")
    assert found == header | {"format": "ravi", "kind": "run", "version": 1, "arrays": list(ARRAYS_OF_ALL_KINDS)}
    assert list(arrays) == list(ARRAYS_OF_ALL_KINDS)
    for name, array in ARRAYS_OF_ALL_KINDS.items():
        assert (arrays[name].dtype, arrays[name].shape) == (array.dtype, array.shape)
        assert arrays[name].tobytes() == array.tobytes()
        arrays[name][...] = arrays[name]  # ours to write into


def test_numpy_alone_reads_our_files(tmp_path):
    mdp, path = riverswim(), tmp_path / "river.npz"
    mdp.save(path)
    with np.load(path, allow_pickle=False) as archive:
        np.testing.assert_array_equal(archive["transitions"], mdp.transitions)
        header = json.loads(archive["header"].tobytes())
    assert header["name"] == "riverswim/6"
    assert header["discount"] == 0.95


def test_the_same_content_gives_the_same_bytes(tmp_path):
    for name in ("one", "two"):
        garnet(9, 2, 3).save(tmp_path / name)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


def test_a_path_may_be_a_string_or_relative(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    riverswim().save("here")
    assert_same(MDP.load("here"), riverswim())


def test_writing_replaces_a_file_as_a_whole(tmp_path, monkeypatch):
    path = tmp_path / "mdp"
    riverswim().save(path)
    before = path.read_bytes()

    def crash(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(np.lib.format, "write_array", crash)
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
        ({"version": 2}, {}, "the header's 'version' is the format's own"),
        ({"when": object()}, {}, "the header is not JSON"),
        ({"eta": float("nan")}, {}, "the header is not JSON"),
    ],
)
def test_what_the_format_cannot_hold_is_refused_before_a_file_is_touched(tmp_path, header, arrays, message):
    with pytest.raises(InputError, match=message):
        files.write(tmp_path / "x", "run", header, arrays)
    assert os.listdir(tmp_path) == []


def npz(**arrays):
    stream = io.BytesIO()
    np.savez(stream, **arrays)
    return stream.getvalue()


def head(**changes):
    header = {"format": "ravi", "kind": "mdp", "version": 1, "arrays": []} | changes
    return np.frombuffer(json.dumps(header).encode(), np.uint8)


class Harmful:
    def __reduce__(self):
        return (os.abort, ())


def zipped(name, content):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr(name, content)
    return stream.getvalue()


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
    "newer": (npz(header=head(version=2)), "has version 2 of the format; this ravi reads up to 1"),
    "no version": (npz(header=head(version=None)), "is damaged: its version is None"),
    "another kind": (npz(header=head(kind="run")), "holds 'run', not 'mdp'"),
    "array missing": (npz(header=head(arrays=["rewards"])), "does not hold the arrays that its header lists"),
    "array too many": (npz(header=head(), rewards=np.ones(1)), "does not hold the arrays that its header lists"),
    "arrays that are no list": (npz(header=head(arrays=3)), "does not hold the arrays that its header lists"),
    "array by pickle": (
        npz(header=head(arrays=["rewards"]), rewards=np.array([Harmful()], dtype=object)),
        "is damaged: its array 'rewards' cannot be read: Object arrays cannot be loaded",
    ),
    "fields missing": (
        npz(header=head(arrays=["rewards"]), rewards=np.ones((1, 1))),
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
    header, arrays = files.read(path, "mdp")
    metadata = {name: value for name, value in header.items() if name not in files.RESERVED}
    arrays["transitions"][2, 1, 0] = 0.5
    files.write(path, "mdp", metadata, arrays)
    with pytest.raises(InputError, match=r"mdp: transitions\[2, 1\] sums to 1.45, not 1"):
        MDP.load(path)
    files.write(path, "mdp", metadata | {"name": 3}, arrays)
    with pytest.raises(InputError, match=r"mdp is damaged: its name is 3"):
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


def test_a_changed_byte_in_an_array_is_always_noticed(stored):
    mdp, content, path = stored
    for field in ("transitions", "features", "parameter"):
        begin = content.index(getattr(mdp, field).tobytes())
        for i in (0, 7, getattr(mdp, field).nbytes - 1):
            changed = bytearray(content)
            changed[begin + i] ^= 1
            path.write_bytes(changed)
            with pytest.raises(InputError, match=f"is damaged: its array '{field}' cannot be read: Bad CRC-32"):
                MDP.load(path)


@settings(deadline=None, derandomize=True, max_examples=200)
@given(st.floats(0, 1, exclude_max=True))
def test_a_file_that_was_cut_short_is_refused(stored, where):
    _, content, path = stored
    path.write_bytes(content[: int(where * len(content))])
    with pytest.raises(InputError, match=r"is damaged or cut short|is not a ravi file"):
        MDP.load(path)
