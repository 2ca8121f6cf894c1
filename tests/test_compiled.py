"""Compiled functions: a second process finds them in the cache, an edited source never runs stale code."""

import errno
import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path
from types import SimpleNamespace

import pytest

import ravi
from ravi import compiled

SOURCE = Path(ravi.__file__).parent


def python(code, **environment):
    """What a process prints. It keeps no bytecode: of a file that is edited twice in a second Python runs the first."""
    done = subprocess.run(
        [sys.executable, "-B", "-c", textwrap.dedent(code)],
        capture_output=True, text=True, check=True, env=os.environ | environment,
    )  # fmt: skip
    return done.stdout.strip()


def test_an_edited_function_in_another_file_is_not_run_stale(tmp_path):
    """A compiled caller in one file, its compiled callee in another: edit the callee, and the caller must follow."""
    package = tmp_path / "site" / "ravi"
    package.mkdir(parents=True)
    for name in ("compiled.py", "late.py"):
        shutil.copy(SOURCE / name, package)
    (package / "__init__.py").touch()
    (package / "caller.py").write_text(
        "from ravi.compiled import compiled\nfrom ravi.callee import inner\n\n"
        "@compiled\ndef outer(x):\n    return inner(x)\n\n@compiled\ndef product(a):\n    return a @ a\n"
    )
    callee = "from ravi.compiled import compiled\n\n@compiled\ndef inner(x):\n    return x + {}\n"
    environment = {"PYTHONPATH": str(tmp_path / "site"), "RAVI_CACHE_DIR": str(tmp_path / "cache")}
    answers = []
    for number in (1, 2, 1):
        (package / "callee.py").write_text(callee.format(number))
        answers.append(python("from ravi.caller import outer; print(outer(10))", **environment))
    assert answers == ["11", "12", "11"]
    code = """
    import sys
    import numpy as np
    from ravi.caller import inner, outer, product
    print(outer(10), inner(10), "scipy.linalg" in sys.modules, product(np.eye(2)).sum(), "scipy.linalg" in sys.modules)
    print(*[sum(each.stats.cache_hits.values()) for each in (outer, inner, product)])
    """
    environment["RAVI_CACHE_DIR"] = str(tmp_path / "another")  # inner is compiled for outer, then called by Python
    for hits in ("0 0 0", "1 1 1"):  # what no product needs is not imported
        assert python(code, **environment).splitlines() == ["11 11 False 2.0 True", hits]


def test_a_function_of_arrays_is_the_first_that_a_process_calls_compiled_or_kept(tmp_path):
    """It ended the process where what Python calls was put off."""
    code = "import numpy as np; from ravi.walk import draw; print(draw(np.array([0.2, 0.8]), 0.5))"
    for _ in range(2):
        assert python(code, RAVI_CACHE_DIR=str(tmp_path)) == "1"


def test_a_frame_is_kept_with_the_function_that_is_bound_to_it(tmp_path):
    """Two frames of one loop do not meet; an edit of the loop or of the function is followed; else both are kept."""
    package = tmp_path / "site" / "ravi"
    package.mkdir(parents=True)
    for name in ("compiled.py", "late.py"):
        shutil.copy(SOURCE / name, package)
    (package / "__init__.py").touch()
    frame = "def frame(x):\n    return {} * inner(x)\n"
    callee = (
        "from ravi.compiled import bound, compiled\nfrom ravi.loop import frame\n\n"
        "@compiled\ndef inner(x):\n    return x + {}\n\nouter = bound(frame, inner=inner)\n"
    )
    environment = {"PYTHONPATH": str(tmp_path / "site"), "RAVI_CACHE_DIR": str(tmp_path / "cache")}
    code = """
    from ravi import one, two
    print(one.outer(10), two.outer(10), *[sum(each.outer.stats.cache_hits.values()) for each in (one, two)])
    """
    answers = []
    for factor, number in ((2, 1), (2, 1), (3, 1), (3, 5)):
        (package / "loop.py").write_text(frame.format(factor))
        (package / "one.py").write_text(callee.format(number))
        (package / "two.py").write_text(callee.format(100))
        answers.append(python(code, **environment))
    assert answers == ["22 220 0 0", "22 220 1 1", "33 330 0 0", "45 330 0 1"]


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
        compiled.imported.cache_clear()
        for name, text in texts.items():
            (tmp_path / name).write_text(text + edited.get(name.replace("/", "_").removesuffix(".py"), ""))
        return compiled.fingerprint(tmp_path / "kernel.py", package=tmp_path)

    before = fingerprint()
    for name in ("kernel", "sub_callee", "plain", "deep", "sub___init__"):
        assert fingerprint(**{name: "# edited\n"}) != before, name
    for name in ("lazy", "other"):  # imported within a function; importing, not imported
        assert fingerprint(**{name: "# edited\n"}) == before, name
    compiled.imported.cache_clear()


def test_what_was_not_used_for_a_season_is_removed(tmp_path):
    stale, fresh, other = (tmp_path / name for name in ("walk-" + "a" * 16, "walk-" + "b" * 16, "walk-mine"))
    for folder in (stale, fresh, other):
        folder.mkdir()
    for folder in (stale, other):
        os.utime(folder, (0, 0))
    compiled._tidy(tmp_path, "walk")
    assert not stale.exists()
    assert fresh.exists()
    assert other.exists()


def test_without_a_place_to_write_functions_are_compiled_all_the_same(tmp_path):
    blocked = tmp_path / "file"
    blocked.touch()  # a file where the folder should be
    answer = python(
        """
        from pathlib import Path
        import ravi.random
        from ravi.compiled import cache_folder
        from ravi.random import uniform
        print(cache_folder(Path(ravi.random.__file__)), uniform(0, 1, 2) == uniform(0, 1, 2))
        """,
        RAVI_CACHE_DIR=str(blocked), NUMBA_CACHE_DIR=str(blocked), XDG_CACHE_HOME=str(blocked),
    )  # fmt: skip
    assert answer == "None True"


def test_numbas_own_configuration_is_left_alone():
    assert (
        python("import numba.core.config as c; b = c.CACHE_DIR; import ravi.random; print(b == c.CACHE_DIR)") == "True"
    )


def test_importing_ravi_is_light():
    """No Numba, SciPy, matplotlib or Typer before they are used; nothing is compiled by an import."""
    heavy = "[m for m in ('numpy', 'numba', 'scipy', 'matplotlib', 'typer', 'rich') if m in sys.modules]"
    assert python(f"import sys, ravi; print({heavy})") == "[]"
    assert python(f"import sys, ravi; ravi.mdp('riverswim/6'); print({heavy})") == "['numpy']"
    assert python("import ravi.engine, ravi.random as r; print(len(r.uniform.signatures))") == "0"


def test_every_public_name_is_there():
    for name in ravi.__all__:
        assert getattr(ravi, name) is not None
    assert set(ravi.__all__) <= set(dir(ravi))


# Whose cache is it?


@pytest.fixture
def candidates(monkeypatch, tmp_path):
    """The folders that may hold the cache, in this test: the first named, the second the user's."""
    places = [tmp_path / "named", tmp_path / "user"]
    monkeypatch.setattr(compiled, "_candidates", lambda: places)
    remembered = (compiled.cache_folder, compiled._home, compiled._tell)
    for function in remembered:
        function.cache_clear()
    yield places
    for function in remembered:
        function.cache_clear()


WALK = SOURCE / "walk.py"


def test_the_cache_is_made_for_its_user_alone(candidates, tmp_path):
    before = os.umask(0)
    try:
        folder = compiled.cache_folder(WALK)
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

    monkeypatch.setattr(compiled.os, "stat", stat)


@pytest.mark.parametrize("mode", [0o777, 0o770, 0o702])
def test_a_cache_that_others_can_write_is_not_read(candidates, mode):
    for place in candidates:
        place.mkdir()
        place.chmod(mode)
    with pytest.warns(compiled.CacheWarning, match=r"every process compiles anew(.*)named: others can write") as told:
        assert [compiled.cache_folder(source) for source in (WALK, SOURCE / "random.py")] == [None, None]
    assert len(told) == 1


def test_the_next_candidate_is_taken_where_the_first_is_not_safe(candidates, monkeypatch):
    candidates[0].mkdir(mode=0o700)
    chown(candidates[0], 4321, monkeypatch)
    with pytest.warns(compiled.CacheWarning, match=r"are kept in .*user, not in .*named: it is user 4321's") as told:
        assert compiled.cache_folder(WALK).parent == candidates[1]
    assert len(told) == 1


def test_a_folder_of_another_within_ones_own_is_not_read(candidates, monkeypatch):
    folder = compiled.cache_folder(WALK)
    compiled.cache_folder.cache_clear()
    with monkeypatch.context() as patch:
        chown(folder, 4321, patch)
        with pytest.warns(compiled.CacheWarning, match=folder.name):
            assert compiled.cache_folder(WALK) is None
    for function in (compiled.cache_folder, compiled._tell):
        function.cache_clear()
    folder.chmod(0o770)
    with pytest.warns(compiled.CacheWarning, match=folder.name):
        assert compiled.cache_folder(WALK) is None


def test_who_can_replace_the_cache_can_write_it(tmp_path, monkeypatch):
    folder = tmp_path / "above" / "cache"
    folder.mkdir(parents=True)
    folder.chmod(0o700)
    assert compiled.unsafe(folder) is None
    folder.parent.chmod(0o777)
    assert compiled.unsafe(folder) == f"others can write into {folder.parent} (chmod go-w {folder.parent})"
    folder.parent.chmod(0o1777)  # sticky, as /tmp is
    assert compiled.unsafe(folder) is None
    folder.parent.chmod(0o770)
    monkeypatch.setattr(compiled, "_shared", lambda group, user: False)
    assert compiled.unsafe(folder) is None
    monkeypatch.setattr(compiled, "_shared", lambda group, user: True)
    assert "others can write" in compiled.unsafe(folder)
    folder.parent.chmod(0o700)
    chown(folder.parent, 4321, monkeypatch)
    assert compiled.unsafe(folder) == f"{folder.parent} is user 4321's"


@pytest.mark.parametrize(
    ("name", "members", "shared"),
    [("me", [], False), ("me", ["me"], False), ("me", ["you"], True), ("staff", [], True)],
)
def test_a_group_of_a_users_own_name_is_theirs_alone(monkeypatch, name, members, shared):
    monkeypatch.setattr(compiled.pwd, "getpwuid", lambda user: SimpleNamespace(pw_name="me"))
    monkeypatch.setattr(compiled.grp, "getgrgid", lambda group: SimpleNamespace(gr_name=name, gr_mem=members))
    assert compiled._shared(100, 1000) is shared


def doubled(folder, monkeypatch):
    """A function of its own, kept in this folder."""
    monkeypatch.setattr(compiled, "cache_folder", lambda source: folder)

    def double(x):
        return 2 * x

    return compiled.compiled(double)


def test_a_full_disk_costs_the_cache_and_not_the_answer(candidates, tmp_path, monkeypatch):
    def full(self, path):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr("numba.core.caching.IndexDataCacheFile._open_for_write", full)
        with pytest.warns(compiled.CacheWarning, match="cannot be kept in .*: No space left on device") as told:
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
