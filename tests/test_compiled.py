"""Compiled functions: a second process finds them in the cache, an edited source never runs stale code."""

import shutil
from pathlib import Path

import ravi
from tests.support.caches import python

SOURCE = Path(ravi.__file__).parent


def test_an_edited_function_in_another_file_is_not_run_stale(tmp_path):
    """A compiled caller in one file, its compiled callee in another: edit the callee, and the caller must follow."""
    package = tmp_path / "site" / "ravi"
    package.mkdir(parents=True)
    shutil.copytree(SOURCE / "_jit", package / "_jit")
    (package / "__init__.py").touch()
    (package / "caller.py").write_text(
        "from ravi._jit.functions import compiled\nfrom ravi.callee import inner\n\n"
        "@compiled\ndef outer(x):\n    return inner(x)\n\n@compiled\ndef product(a):\n    return a @ a\n"
    )
    callee = "from ravi._jit.functions import compiled\n\n@compiled\ndef inner(x):\n    return x + {}\n"
    environment = {"PYTHONPATH": str(tmp_path / "site"), "RAVI_CACHE_DIR": str(tmp_path / "cache")}
    answers = []
    for number in (1, 2, 1):
        (package / "callee.py").write_text(callee.format(number))
        answers.append(python("from ravi.caller import outer; print(outer(10))", **environment))
    assert answers == ["11", "12", "11"]
    code = """
    import numpy as np
    from ravi.caller import inner, outer, product
    print(outer(10), inner(10), product(np.eye(2)).sum())
    print(*[sum(each.stats.cache_hits.values()) for each in (outer, inner, product)])
    """
    environment["RAVI_CACHE_DIR"] = str(tmp_path / "another")  # inner is compiled for outer, then called by Python
    for hits in ("0 0 0", "1 1 1"):
        assert python(code, **environment).splitlines() == ["11 11 2.0", hits]


def test_a_frame_is_kept_with_the_function_that_is_bound_to_it(tmp_path):
    """Two frames of one loop do not meet; an edit of the loop or of the function is followed; else both are kept."""
    package = tmp_path / "site" / "ravi"
    package.mkdir(parents=True)
    shutil.copytree(SOURCE / "_jit", package / "_jit")
    (package / "__init__.py").touch()
    frame = "def frame(x):\n    return {} * inner(x)\n"
    callee = (
        "from ravi._jit.functions import bound, compiled\nfrom ravi.loop import frame\n\n"
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


def test_numbas_own_configuration_is_left_alone():
    assert (
        python("import numba.core.config as c; b = c.CACHE_DIR; import ravi.random; print(b == c.CACHE_DIR)") == "True"
    )


def test_importing_ravi_is_light():
    """No Numba, SciPy, matplotlib or Typer before they are used; nothing is compiled by an import."""
    heavy = "[m for m in ('numpy', 'numba', 'scipy', 'matplotlib', 'typer', 'rich') if m in sys.modules]"
    assert python(f"import sys, ravi; print({heavy})") == "[]"
    assert python(f"import sys, ravi; ravi.mdp('riverswim/6'); print({heavy})") == "['numpy']"
    assert python("import ravi.runtime.api, ravi.random as r; print(len(r.uniform.signatures))") == "0"


def test_every_public_name_is_there():
    for name in ravi.__all__:
        assert getattr(ravi, name) is not None
    assert set(ravi.__all__) <= set(dir(ravi))
