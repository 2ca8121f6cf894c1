"""Compiled functions: a second process finds them in the cache, an edited source never runs stale code."""

import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import ravi
from ravi import compiled

SOURCE = Path(ravi.__file__).parent


def python(code, **environment):
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        capture_output=True, text=True, check=True, env=os.environ | environment,
    )  # fmt: skip
    return done.stdout.strip()


def test_an_edited_function_in_another_file_is_not_run_stale(tmp_path):
    """A compiled caller in one file, its compiled callee in another: edit the callee, and the caller must follow."""
    package = tmp_path / "site" / "ravi"
    package.mkdir(parents=True)
    shutil.copy(SOURCE / "compiled.py", package)
    (package / "__init__.py").touch()
    (package / "caller.py").write_text(
        "from ravi.compiled import compiled\nfrom ravi.callee import inner\n\n"
        "@compiled\ndef outer(x):\n    return inner(x)\n"
    )
    callee = "from ravi.compiled import compiled\n\n@compiled\ndef inner(x):\n    return x + {}\n"
    environment = {"PYTHONPATH": str(tmp_path / "site"), "RAVI_CACHE_DIR": str(tmp_path / "cache")}
    answers = []
    for number in (1, 2, 1):
        (package / "callee.py").write_text(callee.format(number))
        answers.append(python("from ravi.caller import outer; print(outer(10))", **environment))
    assert answers == ["11", "12", "11"]
    hits = python(
        "from ravi.caller import outer; outer(10); print(sum(outer.stats.cache_hits.values()))", **environment
    )
    assert hits == "1"


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
        return compiled.fingerprint(tmp_path / "kernel.py", tmp_path)

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
