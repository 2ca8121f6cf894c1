"""Citations: what is cited is what is written, nothing is made up, and CITATION.cff says the same."""

import re
from pathlib import Path

import pytest

import ravi
from ravi.cli.citations import AUTHOR, RELEASED, TITLE, cite
from ravi.ids import LEARNERS
from ravi.learners.cards import cards
from ravi.validation import InputError
from tests.lab.experiments.stores import created, rows

ROOT = Path(__file__).parents[2]


def entries(text):
    """kind, key and fields of every entry; fails on what is no BibTeX."""
    found = []
    for block in text.split("\n\n"):
        body = "\n".join(line for line in block.splitlines() if not line.startswith("%"))
        if not body.strip():
            continue
        head = re.match(r"@(\w+)\{([\w-]+),\n(.*)\n\}\n?\Z", body, flags=re.DOTALL)
        assert head is not None, block
        fields = {}
        for line in head[3].split("\n"):
            name, value = re.fullmatch(r"  (\w+) = \{(.*)\},", line).groups()
            assert value.count("{") == value.count("}"), line
            assert not re.search(r"(?<!\\)[&%$#_]", value), line
            fields[name] = value.strip("{}")
        found.append((head[1], head[2], fields))
    return found


PAPER = entries(cite("ravi-ucb"))[0][2]


def test_nothing_named_is_the_paper_and_this_version():
    (paper, software) = entries(cite())
    assert paper == ("inproceedings", "moulin2023optimistic", PAPER)
    assert entries(cite("ravi-ucb/mixture")) == [paper]
    assert software[2] == {"author": AUTHOR, "title": TITLE, "year": "2026", "note": f"Version {ravi.__version__}"}


def test_citation_cff_says_the_same():
    text = (ROOT / "CITATION.cff").read_text()

    def told(key, within=text):
        return re.search(rf'^\s*(?:- )?{key}: "?(.*?)"?$', within, flags=re.MULTILINE)[1]

    head, paper = text.split("preferred-citation:")
    assert (told("title", head), told("name", head), told("date-released", head)) == (TITLE, AUTHOR, RELEASED)
    assert told("version", head) == ravi.__version__
    authors = zip(re.findall(r"family-names: (.*)", paper), re.findall(r"given-names: (.*)", paper), strict=True)
    assert " and ".join(f"{family}, {given}" for family, given in authors) == PAPER["author"]
    for key, field in (("title", "title"), ("collection-title", "booktitle"), ("year", "year")):
        assert told(key, paper) == PAPER[field]


@pytest.mark.parametrize("learner", LEARNERS)
def test_references_say_what_the_docstring_says(learner):
    """Every word of every field stands in what the learner says of its paper, and every title is cited."""
    said = next(card.facts["Paper"] for card in cards() if card.id == learner)
    cited = entries(cite([learner]))
    if said.startswith("none"):
        assert cited == []
        assert said in cite([learner])
        return
    titles = " ".join(fields.get("title", "") + fields.get("note", "") for _, _, fields in cited).casefold()
    assert all(title.casefold() in titles for title in re.findall(r'"([^"]+)"', said))
    for kind, key, fields in cited:
        if key == "moulin2023optimistic":
            assert PAPER["title"] in said
            continue
        assert fields.pop("archivePrefix", "arXiv") == "arXiv"
        if key == "filippi2010optimism" and learner.startswith("ravi-kl"):
            assert "Filippi, Cappe and Garivier (2010)" in said
            continue
        for name, value in fields.items():
            for word in re.findall(r"[\w.'-]+", value.replace(" and ", " ") if name == "author" else value):
                assert word in said, (name, word)
        assert {"article": "journal", "inproceedings": "booktitle"}.get(kind, "note") in fields or kind == "misc"


def test_all_learners_together_have_keys_of_their_own():
    keys = [key for _, key, _ in entries(cite(LEARNERS))]
    assert len(set(keys)) == len(keys) > 25


def test_known_forms_are_split_into_fields():
    (jaksch,) = entries(cite("ucrl2,scale=0.5"))
    assert jaksch == (
        "article",
        "jaksch2010near",
        {
            "author": "Jaksch, T. and Ortner, R. and Auer, P.",
            "title": "Near-optimal regret bounds for reinforcement learning",
            "journal": "JMLR",
            "volume": "11",
            "year": "2010",
        },
    )
    (liu,) = entries(cite("liu-su"))
    assert liu[0] == "misc"
    assert (liu[2]["eprint"], liu[2]["year"]) == ("2002.05138", "2020")
    assert [fields["author"] for _, _, fields in entries(cite("psrl"))][1] == "Osband, I. and Russo, D. and Van Roy, B."
    assert "% psrl (for schedule=doubling)" in cite("psrl")


def test_what_cannot_be_split_is_a_note():
    _, (kind, _, fields) = entries(cite("ucrl-vtr"))
    assert kind == "misc"
    assert list(fields) == ["note"]
    assert fields["note"].startswith("A. Ayoub, Z. Jia")


def test_a_paper_of_two_learners_is_cited_once():
    text = cite(["mbie", "mbie-eb,scale=2", "mbie"])
    assert len(entries(text)) == 1
    assert text.startswith("% mbie, mbie-eb\n")


def test_a_learner_of_ones_own_may_say_its_paper(tmp_path, monkeypatch):
    code = (
        "import ravi\n\ndef mine(problem, steps) -> ravi.Learner:\n    return ravi.learner('uniform', problem, steps)\n"
    )
    (tmp_path / "cited_one.py").write_text('"""X.\n\nPaper: A. B. Cee & D. Dee, a talk at 100% speed.\n"""\n' + code)
    (tmp_path / "cited_two.py").write_text(code)
    monkeypatch.syspath_prepend(tmp_path)
    ((_, _, fields),) = entries(cite("cited_one:mine"))
    assert fields == {"note": r"A. B. Cee \& D. Dee, a talk at 100\% speed."}
    assert cite("cited_two:mine") == "% cited_two:mine has no paper: none is named in its docstring.\n"


def test_a_folder_of_results_stands_for_its_learners_and_the_software(tmp_path):
    store = created(tmp_path / "out")
    with pytest.raises(InputError, match="holds no runs yet"):
        cite(tmp_path / "out")
    with store.launch({"format": 1}) as launch:
        store.write([rows(launch, "psrl"), rows(launch, "ravi-ucb,scale=0.1"), rows(launch, "ravi-ucb")])
    keys = [key for _, key, _ in entries(cite(tmp_path / "out"))]
    assert keys == ["ravi", "strens2000bayesian", "osband2013more", "ouyang2017learning", "moulin2023optimistic"]


def test_unknown_names_are_told_with_what_is_like_them():
    with pytest.raises(InputError, match=r"no learner 'ravi-ubc'. Did you mean ravi-ucb .*folder of results"):
        cite(["ucrl2", "ravi-ubc"])
