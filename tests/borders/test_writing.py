"""Nothing of the user's is overwritten: no write goes through a link, and none but by `archive.write_file`."""

import os
import re
from pathlib import Path

import pytest

import ravi
from ravi.cli import app
from ravi.display.style import panels, written
from ravi.lab.report import figures
from ravi.lab.report.curves import regret_figure
from ravi.lab.report.page import report
from ravi.lab.report.tables import table
from ravi.live.learning import learn
from ravi.mdps import riverswim
from ravi.runtime import archive
from ravi.validation import InputError
from tests.lab.report.folders import made

SUITE = {
    "name": "links", "steps": 40, "seeds": 2, "points": 5, "columns": ["given"],
    "sections": [{"name": "one", "mdps": ["riverswim/4"], "learners": ["ravi-ucb", "uniform"]}],
}  # fmt: skip


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    return made(tmp_path_factory.mktemp("results") / "links", SUITE)


@pytest.fixture
def dear(tmp_path):
    """A file that nobody may touch."""
    path = tmp_path / "dear.txt"
    path.write_text("dear")
    yield path
    assert path.read_text() == "dear"


def command(*words):
    app([str(word) for word in words], standalone_mode=False)


def test_a_page_follows_no_link_at_any_fixed_name(results, dear):
    for name in ("report.html", ".report.html.tmp"):
        (results / name).symlink_to(dear)
    report(results)
    assert not (results / "report.html").is_symlink()
    assert "<html" in (results / "report.html").read_text()
    (results / ".report.html.tmp").unlink()


def test_figures_follow_no_link_below_their_folder(results, dear, monkeypatch):
    one = next(figures.drawn(ravi.results(results)))  # the others are written like it
    monkeypatch.setattr(figures, "drawn", lambda source: iter([one]))
    folder = results / "figures"
    folder.mkdir()
    for name in (*(f"{one[0]}.{kind}" for kind in ("pdf", "svg", "png")), "index.html"):
        (folder / name).symlink_to(dear)
    command("figures", results, "--formats", "pdf,svg,png")
    assert len(os.listdir(folder)) == 4
    assert not any(path.is_symlink() for path in folder.iterdir())


def test_figures_are_not_drawn_into_a_folder_that_is_a_link_unless_it_is_named(results, tmp_path):
    folder = results / "figures"
    if folder.exists():
        folder.rename(tmp_path / "away")
    (tmp_path / "elsewhere").mkdir()
    folder.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(InputError, match=r"figures is a link to .*elsewhere: name the folder that is meant \(--out\)"):
        command("figures", results)
    assert not os.listdir(tmp_path / "elsewhere")
    folder.unlink()


def test_no_file_of_the_library_is_written_through_a_link(results, dear, tmp_path):
    pytest.importorskip("gymnasium")
    run = ravi.run("uniform", "riverswim/4", 20, 1)
    writers = {
        "mdp": riverswim(4).save,
        "run": run.save,
        "a.tex": table(ravi.results(results)).save,
        "b.txt": lambda path: command("table", results, "--out", path),
        "d.png": lambda path: regret_figure({"uniform": run}, path),
        "e.html": lambda path: command("report", results, "--out", path),
        "f.agent": lambda path: ravi.agent("uniform", states=2, actions=2, discount=0.9, steps=5).save(path),
    }
    for name, write in writers.items():
        (tmp_path / name).symlink_to(dear)
        write(tmp_path / name)
        assert not (tmp_path / name).is_symlink(), name
        assert (tmp_path / name).stat().st_size > 4
    assert not [name for name in os.listdir(tmp_path) if name.startswith(".")]


@pytest.mark.parametrize("place", ["/dev/full", "/dev/null", "pipe", "linked"])
def test_a_device_or_a_pipe_is_no_file_and_is_named_before_the_work(tmp_path, place):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "linked").symlink_to("/dev/null")
    path = Path(place) if place.startswith("/") else tmp_path / place
    kind = path.lstat().st_mode
    told = rf"cannot write .*{re.escape(str(path))}: it is a device or a pipe, not a file"
    with pytest.raises(InputError, match=told):
        archive.write_text_file(path, "text")
    with pytest.raises(InputError, match=told):
        written(panels()[0], path)
    for words in (
        ("run", "riverswim/4", "uniform", "--steps", "1e9", "--seeds", "64", "--figure", path),
        ("run", "riverswim/4", "uniform", "--steps", "1e9", "--seeds", "64", "--save", path),
        ("verify", "riverswim/4", "--steps", "1e9", "--figure", path),
        ("verify", "riverswim/4", "--steps", "1e9", "--json", path),
        ("verify", "riverswim/4", "--steps", "1e9", "--html", path),
    ):
        with pytest.raises(InputError, match=told):
            command(*words)
    with pytest.raises(InputError, match=told):
        learn("FrozenLake-v1", "uniform", 10**9, discount=0.9, checkpoint=path)
    assert path.lstat().st_mode == kind


def test_names_that_no_file_can_have_are_told(tmp_path):
    for name in ("a\0b", "\ud800"):
        with pytest.raises(InputError, match=r"cannot write the page .*: "):
            archive.write_text_file(str(tmp_path / name), "text", "the page")
    archive.write_text_file(tmp_path / "a", "\ud800 is no character")
    assert (tmp_path / "a").read_text() == r"\ud800 is no character"


def test_nothing_in_the_library_writes_but_by_the_archive():
    """Whoever needs one of these writes through `archive.write_file` or `archive.write_text_file`."""
    writes = re.compile(
        r"""\.write_text\(|\.write_bytes\(|\bto_csv\(|\bnp\.savez?\w*\(|\bopen\([^)\n]*["'](?:[wax]|r\+)|O_(?:WRONLY|RDWR|CREAT)"""
    )
    package = Path(ravi.__file__).parent
    found = {
        (file.relative_to(package).as_posix(), line.strip())
        for file in package.rglob("*.py")
        for line in file.read_text().splitlines()
        if writes.search(line)
    }
    assert found == {
        ("runtime/archive.py", 'with open(temporary, "xb") as file:'),
        ("runtime/archive.py", "write_file(place, lambda file: np.savez(file, **entries))"),
        ("runtime/archive.py", "np.savez(place, **entries)"),
        ("lab/experiments/store.py", 'with open(path, "r+b") as held:  # NFS locks only what can be written'),
        ("lab/experiments/store.py", 'with open(path, "x") as file:'),  # a claim, which must not be there before
        ("lab/experiments/store.py", 'with open(self.folder / "claims" / ".lock", "w") as lock, suppress(OSError):'),
        ("lab/experiments/executors.py", "file = os.open(printed, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)"),
    }
    drawn = [file.name for file in package.rglob("*.py") if "savefig(" in file.read_text()]
    assert drawn == ["style.py"]  # into memory, and from there by `write_file`
