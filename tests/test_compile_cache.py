"""Where compiled functions are kept: by a hash of their sources, in a folder that nobody else can write."""

import errno
import os
from pathlib import Path
from types import SimpleNamespace

import pytest

import ravi
from ravi._jit import cache as compile_cache
from ravi._jit import functions as compiled
from tests.support.caches import looked_for_anew

SOURCE = Path(ravi.__file__).parent


def test_the_fingerprint_sees_the_file_and_all_that_it_imports(tmp_path):
    (tmp_path / "sub").mkdir()
    texts = {
        "__init__.py": "",
        "kernel.py": "from ravi.sub.callee import (\n    inner,\n)\nfrom ravi import plain\n",
        "plain.py": "import ravi.deep\n",
        "deep.py": "CONSTANT = 1\n",
        "lazy.py": "pass\n",
        "other.py": "from ravi.kernel import outer\n",
        "sub/__init__.py": "",
        "sub/callee.py": "def late():\n    from ravi.lazy import thing\n",
    }

    def fingerprint(**edited):
        compile_cache.imported.cache_clear()
        for name, text in texts.items():
            (tmp_path / name).write_text(text + edited.get(name.replace("/", "_").removesuffix(".py"), ""))
        return compile_cache.fingerprint(tmp_path / "kernel.py", package=tmp_path)

    before = fingerprint()
    for name in ("kernel", "sub_callee", "plain", "deep", "sub___init__"):
        assert fingerprint(**{name: "# edited\n"}) != before, name
    for name in ("lazy", "other"):  # imported within a function; importing, not imported
        assert fingerprint(**{name: "# edited\n"}) == before, name
    compile_cache.imported.cache_clear()


def test_the_fingerprint_sees_every_version_that_compiles(monkeypatch):
    source = SOURCE / "rows.py"
    before = compile_cache.fingerprint(source)
    for place in ("numba.__version__", "sys.version", "np.__version__"):
        with monkeypatch.context() as patch:
            patch.setattr(f"ravi._jit.cache.{place}", "another")
            assert compile_cache.fingerprint(source) != before, place
    monkeypatch.setattr(compile_cache.platform, "machine", lambda: "another")
    assert compile_cache.fingerprint(source) != before


def test_what_was_not_used_for_a_season_is_removed(tmp_path):
    stale, fresh, other = (tmp_path / name for name in ("walk-" + "a" * 16, "walk-" + "b" * 16, "walk-mine"))
    for folder in (stale, fresh, other):
        folder.mkdir()
    for folder in (stale, other):
        os.utime(folder, (0, 0))
    compile_cache._tidy(tmp_path, "walk")
    assert not stale.exists()
    assert fresh.exists()
    assert other.exists()


@pytest.fixture
def candidates(monkeypatch, tmp_path):
    """The folders that may hold the cache, in this test: the first named, the second the user's."""
    places = [tmp_path / "named", tmp_path / "user"]
    monkeypatch.setattr(compile_cache, "_candidates", lambda: places)
    with looked_for_anew():
        yield places


WALK = SOURCE / "walk.py"


def test_the_cache_is_made_for_its_user_alone(candidates, tmp_path):
    before = os.umask(0)
    try:
        folder = compile_cache.cache_folder(WALK)
    finally:
        os.umask(before)
    assert folder.parent == candidates[0]
    assert [os.stat(place).st_mode & 0o777 for place in (candidates[0], folder)] == [0o700, 0o700]


def chown(path, user, monkeypatch):
    """Let a file be another user's, by name only where this one is not root."""
    true = os.stat

    def stat(place, *more, **given):
        found = true(place, *more, **given)
        return os.stat_result((*found[:4], user, *found[5:])) if Path(place) == path else found

    monkeypatch.setattr(compile_cache.os, "stat", stat)


@pytest.mark.parametrize("mode", [0o777, 0o770, 0o702])
def test_a_cache_that_others_can_write_is_not_read(candidates, mode):
    for place in candidates:
        place.mkdir()
        place.chmod(mode)
    with pytest.warns(
        compile_cache.CacheWarning, match=r"every process compiles anew(.*)named: others can write"
    ) as told:
        assert [compile_cache.cache_folder(source) for source in (WALK, SOURCE / "random.py")] == [None, None]
    assert len(told) == 1


def test_the_next_candidate_is_taken_where_the_first_is_not_safe(candidates, monkeypatch):
    candidates[0].mkdir(mode=0o700)
    chown(candidates[0], 4321, monkeypatch)
    with pytest.warns(
        compile_cache.CacheWarning, match=r"are kept in .*user, not in .*named: it is user 4321's"
    ) as told:
        assert compile_cache.cache_folder(WALK).parent == candidates[1]
    assert len(told) == 1


def test_a_folder_of_another_within_ones_own_is_not_read(candidates, monkeypatch):
    folder = compile_cache.cache_folder(WALK)
    compile_cache.cache_folder.cache_clear()
    with monkeypatch.context() as patch:
        chown(folder, 4321, patch)
        with pytest.warns(compile_cache.CacheWarning, match=folder.name):
            assert compile_cache.cache_folder(WALK) is None
    for function in (compile_cache.cache_folder, compile_cache._tell):
        function.cache_clear()
    folder.chmod(0o770)
    with pytest.warns(compile_cache.CacheWarning, match=folder.name):
        assert compile_cache.cache_folder(WALK) is None


def test_who_can_replace_the_cache_can_write_it(tmp_path, monkeypatch):
    folder = tmp_path / "above" / "cache"
    folder.mkdir(parents=True)
    folder.chmod(0o700)
    assert compile_cache.unsafe(folder) is None
    folder.parent.chmod(0o777)
    assert compile_cache.unsafe(folder) == f"others can write into {folder.parent} (chmod go-w {folder.parent})"
    folder.parent.chmod(0o1777)  # sticky, as /tmp is
    assert compile_cache.unsafe(folder) is None
    folder.parent.chmod(0o770)
    monkeypatch.setattr(compile_cache, "_shared", lambda group, user: False)
    assert compile_cache.unsafe(folder) is None
    monkeypatch.setattr(compile_cache, "_shared", lambda group, user: True)
    assert "others can write" in compile_cache.unsafe(folder)
    folder.parent.chmod(0o700)
    chown(folder.parent, 4321, monkeypatch)
    assert compile_cache.unsafe(folder) == f"{folder.parent} is user 4321's"


@pytest.mark.parametrize(
    ("name", "members", "shared"),
    [("me", [], False), ("me", ["me"], False), ("me", ["you"], True), ("staff", [], True)],
)
def test_a_group_of_a_users_own_name_is_theirs_alone(monkeypatch, name, members, shared):
    monkeypatch.setattr(compile_cache.pwd, "getpwuid", lambda user: SimpleNamespace(pw_name="me"))
    monkeypatch.setattr(compile_cache.grp, "getgrgid", lambda group: SimpleNamespace(gr_name=name, gr_mem=members))
    assert compile_cache._shared(100, 1000) is shared


def doubled(folder, monkeypatch):
    """A function of its own, kept in this folder."""
    monkeypatch.setattr(compile_cache, "cache_folder", lambda source: folder)

    def double(x):
        return 2 * x

    return compiled.compiled(double)


def test_a_full_disk_costs_the_cache_and_not_the_answer(candidates, tmp_path, monkeypatch):
    def full(self, path):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr("numba.core.caching.IndexDataCacheFile._open_for_write", full)
        with pytest.warns(compile_cache.CacheWarning, match="cannot be kept in .*: No space left on device") as told:
            assert (doubled(tmp_path, patch)(3), doubled(tmp_path, patch)(2.5)) == (6, 5.0)
    assert len(told) == 1
    for _ in range(2):
        again = doubled(tmp_path, monkeypatch)
        assert again(3) == 6
    assert sum(again.stats.cache_hits.values()) == 1  # with room, it is kept


@pytest.mark.parametrize("suffix", ["nbi", "nbc"])
@pytest.mark.parametrize("content", [b"", b"\x80\x05 no pickle"])
def test_a_damaged_cache_is_made_anew(tmp_path, monkeypatch, suffix, content):
    assert doubled(tmp_path, monkeypatch)(3) == 6
    (file,) = tmp_path.glob(f"*.{suffix}")
    file.write_bytes(content)
    assert doubled(tmp_path, monkeypatch)(3) == 6
    again = doubled(tmp_path, monkeypatch)
    assert again(3) == 6
    assert sum(again.stats.cache_hits.values()) == 1
