"""Compiled functions are kept by their code in memory, in a folder that nobody else can read or write."""

import errno
import os
import subprocess
import sys
from collections import namedtuple
from pathlib import Path

import numpy as np
import pytest

from ravi._jit import cache
from ravi._jit import functions as compiled
from tests.support.caches import looked_for_anew, python


@pytest.fixture
def candidates(monkeypatch, tmp_path):
    """The folders that may hold the cache, in this test: the first named, the second the user's."""
    places = [tmp_path / "named", tmp_path / "user"]
    monkeypatch.setattr(cache, "_candidates", lambda: places)
    with looked_for_anew():
        yield places


def test_the_cache_is_made_for_its_user_alone(candidates):
    before = os.umask(0)
    try:
        folder = cache.cache_folder()
    finally:
        os.umask(before)
    assert folder.parent == candidates[0]
    assert os.stat(folder).st_mode & 0o777 == 0o700


@pytest.mark.parametrize("mode", [0o777, 0o770, 0o705])
def test_a_folder_that_others_have_access_to_is_not_read(candidates, mode):
    for place in candidates:
        (place / "compiled").mkdir(parents=True)
        (place / "compiled").chmod(mode)
    with pytest.warns(cache.CacheWarning, match=r"every process compiles anew(.*)named/compiled: others") as told:
        assert [cache.cache_folder() for _ in range(2)] == [None, None]
    assert len(told) == 1


def test_the_next_candidate_is_taken_where_the_first_is_anothers(candidates, monkeypatch):
    true = os.stat

    def stat(place, *more, **given):
        found = true(place, *more, **given)
        return os.stat_result((*found[:4], 4321, *found[5:])) if Path(place).parent == candidates[0] else found

    monkeypatch.setattr(cache.os, "stat", stat)
    with pytest.warns(cache.CacheWarning, match=r"are kept in .*user.compiled, not in .*named.compiled: others"):
        assert cache.cache_folder().parent == candidates[1]


def test_without_a_place_functions_are_compiled_all_the_same(candidates):
    for place in candidates:
        place.touch()  # a file where the folder should be
    with pytest.warns(cache.CacheWarning, match="compiles anew"):
        assert doubled()(3) == 6


def doubled(**options):
    """A function that no process has compiled but for the cache."""

    def double(x):
        return 2 * x

    return compiled.compiled(double, **options)


def hits(function):
    return sum(function.stats.cache_hits.values())


def test_a_full_disk_costs_the_cache_and_not_the_answer(candidates, monkeypatch):
    def full(self, path):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr("numba.core.caching.IndexDataCacheFile._open_for_write", full)
        with pytest.warns(cache.CacheWarning, match="cannot be kept in .*: No space left on device") as told:
            assert (doubled()(3), doubled()(2.5)) == (6, 5.0)
    assert len(told) == 1
    assert doubled()(3) == 6
    again = doubled()
    assert again(3) == 6
    assert hits(again) == 1  # with room, it is kept


@pytest.mark.parametrize("suffix", ["nbi", "nbc"])
@pytest.mark.parametrize("content", [b"", b"\x80\x05 no pickle"])
def test_a_damaged_cache_is_made_anew(candidates, suffix, content):
    assert doubled()(3) == 6
    (file,) = cache.cache_folder().glob(f"*.{suffix}")
    file.write_bytes(content)
    assert doubled()(3) == 6
    again = doubled()
    assert again(3) == 6
    assert hits(again) == 1


def test_code_for_other_types_is_not_taken_from_a_file_that_two_processes_wrote(candidates):
    """Numba chooses the name of a file by its index, which two processes may read before either writes it."""
    assert doubled()(3) == 6
    (whole,) = cache.cache_folder().glob("*.nbc")
    assert doubled()(3.5) == 7.0
    (real,) = {*cache.cache_folder().glob("*.nbc")} - {whole}
    real.write_bytes(whole.read_bytes())
    for found in (0, 1):
        again = doubled()
        assert again(2.25) == 4.5
        assert hits(again) == found


def test_what_was_not_read_for_a_season_is_removed(candidates):
    folder = cache.cache_folder()
    names = [f"{stem}.{end}" for stem in ("old-0", "new-0") for end in ("nbi", "1.nbc")]
    for name in names:
        (folder / name).touch()
    os.utime(folder / "old-0.nbi", (0, 0))
    doubled()(3)
    assert sorted(path.name for path in folder.iterdir() if path.name in names) == ["new-0.1.nbc", "new-0.nbi"]


def test_the_options_of_the_compiler_are_part_of_the_key(candidates, monkeypatch):
    """Each is compiled anew, and found again by itself."""
    made = [{}, {"nogil": True}, {"boundscheck": True}, {"fastmath": True}]
    assert len({cache.fingerprint(doubled(**options)) for options in made}) == len(made)
    plain = cache.fingerprint(doubled())
    monkeypatch.setenv("NUMBA_BOUNDSCHECK", "1")
    checked = cache.fingerprint(doubled())
    monkeypatch.delenv("NUMBA_BOUNDSCHECK")
    assert checked != plain == cache.fingerprint(doubled())

    def last(a, i):
        return a[i]

    assert compiled.compiled(last)(np.ones(2), 1) == 1.0
    with pytest.raises(IndexError):
        compiled.compiled(last, boundscheck=True)(np.ones(2), 2)
    assert doubled()(3) == doubled(nogil=True)(3) == 6


def test_a_name_of_any_length_is_kept(candidates):
    frame = {}
    exec(f"def {'f' * 300}(x):\n    return x + 1", frame)
    for found in (0, 1):
        long = compiled.compiled(frame["f" * 300])
        assert long(1) == 2
        assert hits(long) == found


def described(**names):
    """A function that calls another and uses constants, with these in place of its globals."""
    given = {"inner": compiled.compiled(lambda x: x + 1), "C": 3, "T": (1, 2.0), "A": np.arange(3.0)} | names

    def outer(x):
        return inner(x) + C + T[0] + A[1]  # noqa: F821

    return compiled.compiled(type(outer)(outer.__code__, globals() | given))


def test_the_key_is_of_the_code_in_memory_of_all_that_is_called():
    before = cache.fingerprint(described())
    assert before == cache.fingerprint(described())
    changes = [
        {"inner": compiled.compiled(lambda x: x + 2)}, {"inner": compiled.compiled(lambda x: x + 1, nogil=True)},
        {"C": 4}, {"C": 3.0}, {"T": (1, 3.0)}, {"A": np.arange(3)}, {"A": np.arange(3.0) + 1},
    ]  # fmt: skip
    assert len({cache.fingerprint(described(**change)) for change in changes} | {before}) == len(changes) + 1
    assert cache.fingerprint(described(C=object())) is None  # of a kind that is not known: it is not kept


def test_a_method_of_the_key_that_calls_itself_ends():
    @compiled.compiled
    def down(n):
        return 0 if n == 0 else down(n - 1)

    assert cache.fingerprint(down) is not None


def test_named_tuples_whose_fields_changed_places_are_compiled_anew(candidates):
    def first(pair):
        return pair.one

    kinds = [namedtuple("Pair", names) for names in ("one two", "two one")]
    for kind in kinds:  # which a process would take for one class, where its source was edited
        kind.__module__, kind.__qualname__ = __name__, "Pair"
        globals()["Pair"] = kind
        assert compiled.compiled(first)(kind(1.0, 2.0)) == kind(1.0, 2.0).one
    del globals()["Pair"]


def test_a_process_whose_files_were_edited_keeps_what_it_compiled_and_not_what_they_say(tmp_path):
    header = "from ravi._jit.functions import compiled\n"
    (tmp_path / "callee.py").write_text(f"{header}\n@compiled\ndef inner(x):\n    return x + 1\n")
    (tmp_path / "caller.py").write_text(
        header + "from callee import inner\n\n@compiled\ndef outer(x):\n    return inner(x)\n"
    )
    environment = {
        "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path]), "RAVI_CACHE_DIR": str(tmp_path / "cache")
    }  # fmt: skip
    code = """
    import callee
    if {edit}:
        from pathlib import Path
        file = Path(callee.__file__)
        file.write_text(file.read_text().replace("x + 1", "x + 2"))
    from caller import outer
    print(outer(10), sum(outer.stats.cache_hits.values()))
    """
    assert python(code.format(edit=True), **environment) == "11 0"  # what it imported before the edit
    assert python(code.format(edit=False), **environment) == "12 0"
    assert python(code.format(edit=False), **environment) == "12 1"


def test_a_function_that_compiled_ones_call_returns_arrays_to_python_whichever_is_loaded_first(tmp_path):
    """What is kept of a caller names the objects of Python that its callee needs: none, as long as only it calls."""
    (tmp_path / "calls.py").write_text(
        "import numpy as np\nfrom ravi._jit.functions import compiled\n\n@compiled\ndef ones(n):\n"
        "    return np.ones(n)\n\n@compiled\ndef total(n):\n    return ones(n).sum()\n"
    )
    environment = {"PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path]), "RAVI_CACHE_DIR": str(tmp_path / "kept")}
    code = "from calls import ones, total; print(total(2), ones(2), sum(ones.stats.cache_hits.values()))"
    assert python(code, **environment) == "2.0 [1. 1.] 0"
    assert python(code, **environment) == "2.0 [1. 1.] 1"


def test_processes_that_compile_at_once_all_find_what_was_kept(tmp_path):
    """A function of arrays is the first that each of them calls, compiled or kept."""
    code = "from ravi.runtime.walk import draw; import numpy as np; print(draw(np.array([0.2, 0.8]), 0.5))"
    environment = os.environ | {"RAVI_CACHE_DIR": str(tmp_path)}
    runs = [subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, env=environment) for _ in range(3)]
    assert [run.communicate()[0].strip() for run in runs] == [b"1"] * 3
    assert python(f"{code}; print(sum(draw.stats.cache_hits.values()))", **environment).split() == ["1", "1"]
    assert not list(tmp_path.rglob("*.tmp.*"))
