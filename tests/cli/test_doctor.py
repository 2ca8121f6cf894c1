"""The doctor: a sound installation is ok, and every illness that can be feigned is found."""

import io
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

import ravi
from ravi import random
from ravi._jit import cache
from ravi.cli import doctor
from ravi.cli.doctor import ABSENT, BROKEN, OK, PYTHON, WARNING, Check, DoctorReport, older
from ravi.measures import curve
from ravi.runtime import archive
from ravi.validation import InputError
from tests.lab.experiments.stores import created, failed, made, rows, setting

ROOT = Path(__file__).parents[2]


def one(found, name):
    return next(check for check in found if check.name == name)


@pytest.fixture
def folder(tmp_path):
    from ravi.lab.experiments.manifest import manifest

    store = created(tmp_path / "out")
    with store.launch(manifest([], {})) as launch:
        store.write([rows(launch), rows(launch, "ravi-ucb")])
    return tmp_path / "out"


def test_a_sound_installation_is_sound(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    report = doctor.doctor()
    assert report.status == 0, report.text()
    assert {"python", "numpy", "compile cache", "compiler", "random numbers", "known answer", "same bits", "cores"} < {
        check.name for check in report.checks
    }
    assert [check for check in report.checks if check.verdict == BROKEN] == []
    assert list(tmp_path.iterdir()) == []  # nothing is left behind


def test_the_bounds_are_those_of_the_package():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    stated = {"": project["dependencies"], **project["optional-dependencies"]}
    found = {extra: {f"{one.name}{one.specifier}" for one in asked} for extra, asked in doctor.requirements().items()}
    for extra, lines in stated.items():
        assert found[extra] == {str(Requirement(line)) for line in lines if not line.startswith("ravi[")}
    assert found.keys() == stated.keys()
    assert project["requires-python"] == f">={PYTHON}"


@pytest.mark.parametrize(
    ("version", "least", "answer"),
    [
        ("2.0", "2.0", False), ("2.0.1", "2.0", False), ("1.26.4", "2.0", True), ("0.9", "0.60", True),
        ("0.100.1", "0.60", False), ("17.0.0.dev3+g12", "17", False), ("3.11.0rc1", "3.11", False), ("16", "17", True),
    ],
)  # fmt: skip
def test_versions_are_compared_as_numbers(version, least, answer):
    assert older(version, least) is answer


def version_of(name):
    if name in ("scipy", "ray"):
        raise doctor.metadata.PackageNotFoundError(name)
    return "0.1"


def wrong_totals(*arguments):
    arguments[2].total[:] = 1.0


wrong_totals.py_func = plain = curve.add_steps.py_func


def raises(error):
    def raising(*given, **options):
        raise error

    return raising


def another_run(learner, *rest, run=ravi.run, **more):
    return run("ravi-ucb/known,eta=0.51", *rest, **more)


ILL = [  # what is replaced, and by what; the check; its name, its verdict, and words of what it says
    ((doctor.metadata, "version", version_of), "packages", "numpy", BROKEN, "not >=2.0 pip install 'numpy>=2.0'"),
    ((doctor.metadata, "version", lambda name: "9.0"), "packages", "numba", BROKEN, "numba 9.0, not <0."),
    ((doctor.metadata, "version", version_of), "packages", "scipy", BROKEN, "not installed pip install 'scipy>=1.13'"),
    ((doctor.metadata, "version", version_of), "extras", "extra ray", ABSENT,
     "ray is not installed pip install 'ravi[ray]', or in a clone pip install -e '.[ray]'"),
    ((doctor.platform, "python_version", lambda: "3.10.14"), "python", "python", BROKEN, "3.10.14"),
    ((cache, "cache_folder", lambda: None), "cache", "compile cache", WARNING, "RAVI_CACHE_DIR"),
    ((curve, "add_steps", wrong_totals), "cache", "compiler", BROKEN, "differ"),
    ((curve, "add_steps", plain), "cache", "compiler", WARNING, "NUMBA_DISABLE_JIT"),
    ((random, "philox", lambda *words: (1, 2, 3, 4)), "random_numbers", "random numbers", BROKEN, "at (0, 0, 0, 0)"),
    ((ravi, "run", another_run), "known_answer", "known answer", BROKEN, "from its closed form"),
    ((doctor, "fingerprint", lambda: "other"), "same_bits", "same bits", BROKEN, "gives other bits than this one"),
    ((doctor.sys, "executable", "/nowhere/python"), "same_bits", "same bits", BROKEN, "cannot be run"),
    ((doctor, "LITTLE_DISK", 2**80), "disk", "disk", WARNING, "GiB free"),
    ((doctor, "_locks", lambda path: False), "disk", "files", WARNING, "locks do not hold"),
    ((archive, "write_file", raises(InputError("no space"))), "disk", "files", BROKEN, "no space"),
    ((doctor.tempfile, "mkdtemp", raises(PermissionError(13, "no"))), "disk", "files", WARNING, "written: no"),
]  # fmt: skip


@pytest.mark.parametrize(("changed", "check", "name", "verdict", "words"), ILL)
def test_an_illness_is_found(monkeypatch, tmp_path, changed, check, name, verdict, words):
    monkeypatch.setattr(*changed)
    found = one(getattr(doctor, check)(*[tmp_path] * (check == "disk")), name)
    assert found.verdict == verdict
    assert words in f"{found.seen} {found.advice}"
    assert list(tmp_path.iterdir()) == []


def test_a_check_that_fails_is_a_finding_and_the_others_go_on(monkeypatch, tmp_path):
    for name in ("cache", "known_answer", "same_bits", "random_numbers"):
        monkeypatch.setattr(doctor, name, raises(ImportError("no module named numba")))
    monkeypatch.chdir(tmp_path)
    report = doctor.doctor()
    assert report.status == 1
    assert one(report.checks, "compile cache").seen == "ImportError: no module named numba"
    assert one(report.checks, "files").verdict == OK


def test_a_gpu_is_asked_of_its_driver(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    tool = tmp_path / "nvidia-smi"
    assert one(doctor.graphics(), "GPU").verdict in (ABSENT, OK)
    tool.write_text("#!/bin/sh\necho 'NVIDIA H200, 143771 MiB'\n")
    tool.chmod(0o755)
    assert "NVIDIA H200, 143771 MiB" in one(doctor.graphics(), "GPU").seen
    tool.write_text("#!/bin/sh\nexit 9\n")
    assert one(doctor.graphics(), "GPU").verdict == WARNING


def test_text_json_and_status_say_the_same():
    report = DoctorReport([Check("a", OK, "fine"), Check("bb", BROKEN, "ill", "heal"), Check("c", WARNING, "so so")])
    assert report.status == 1
    assert DoctorReport(report.checks[::2]).status == 0
    assert report.text().splitlines() == [
        "ok       a   fine",
        "broken   bb  ill",
        "             -> heal",
        "warning  c   so so",
        "3 checks: 1 broken, 1 warning",
    ]
    held = report.json()
    assert held["status"] == 1
    assert held["checks"][1] == {"name": "bb", "verdict": "broken", "seen": "ill", "advice": "heal"}


def test_a_sound_folder_is_sound(folder):
    found = list(doctor.store(folder))
    assert {check.verdict for check in found} == {OK}, found
    assert one(found, "suite").seen == "tiny: 6 of 8 runs done, 0 failed"
    assert one(found, "parts").seen == "1 parts are whole, with 6 runs"
    assert one(found, "versions").verdict == OK


def test_an_ill_folder_is_told_in_full(folder):
    """Damage, a conflict, a failure, checkpoints, leftovers, a wrong MDP and other versions, each by name."""
    from ravi.lab.experiments.store import Store

    store = Store(folder)
    with store.launch({"format": 1, "versions": {"numpy": "0.1"}}) as launch:
        store.write([rows(launch, seeds=(1,), digest=["f" * 20]), failed(launch, "ravi-ucb", seeds=(1,))])
        broken = store.write([failed(launch, "psrl")])
        broken.write_bytes(b"")
        store.write([failed(launch, "psrl", seeds=(3,))])
    content = io.BytesIO()
    made().save(content)
    store.keep_checkpoint(setting().digest, "0" * 20, content.getvalue())
    (folder / "checkpoints" / "strange.run").write_bytes(b"x")
    (folder / "parts" / ".ravi-0123-1@elsewhere.tmp").write_bytes(b"")
    ravi.mdp("riverswim/4").save(folder / "mdps" / f"{'0' * 64}.mdp")
    (folder / "mdps" / "half.mdp").write_bytes(b"PK")
    found = list(doctor.store(folder))
    troubles = " ".join(check.seen for check in found if check.name == "trouble")
    for name in (broken.name, "strange.run", f"{'0' * 64}.mdp: damaged", "half.mdp"):
        assert name in troubles
    assert one(found, "conflict").verdict == BROKEN
    assert one(found, "conflict").seen.startswith(f"{setting().digest}-1 has 2 different results")
    assert one(found, "checkpoints") == Check(
        "checkpoints", WARNING, "1 checkpoints of runs under way", "launch again to go on with them"
    )
    assert "parts/.ravi-0123-1@elsewhere.tmp" in one(found, "leftovers").seen
    assert "numpy: 0.1, then" in one(found, "versions").seen
    (folder / "specification.json").write_text("{")
    assert one(doctor.store(folder), "suite").verdict == BROKEN


def test_failed_runs_are_told(tmp_path):
    store = created(tmp_path)
    with store.launch({"format": 1}) as launch:
        store.write([failed(launch)])
        found = list(doctor.store(tmp_path))
        assert one(found, "launches").seen == f"at work on it now: {launch}"
    assert one(found, "suite") == Check("suite", WARNING, "tiny: 0 of 8 runs done, 1 failed", "see the view `failures`")


def test_the_doctor_looks_at_folders_of_results_only(tmp_path):
    with pytest.raises(InputError, match="there is no folder"):
        doctor.doctor(tmp_path / "nothing")
    with pytest.raises(InputError, match="is no folder of results"):
        list(doctor.store(tmp_path))
