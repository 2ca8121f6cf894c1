"""A folder belongs to one suite, to what its ids meant, and to some versions; another suite is refused.

The suite is frozen when it is launched: later edits of its file, or of the MDPs that it names, change nothing that goes
on by itself, and are told where the file is named again.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from ravi import ids
from ravi.core import MDP
from ravi.ids import allow_imports
from ravi.lab.experiments import plan
from ravi.lab.experiments.manifest import differing
from ravi.lab.experiments.reading import specify
from ravi.lab.experiments.store import Damaged, Store
from ravi.lab.experiments.suite import Suite, differences
from ravi.runtime.api import check_device
from ravi.runtime.result import versions
from ravi.runtime.world import Tabular, World
from ravi.validation import InputError


def chosen(
    suite: str | os.PathLike[str] | Mapping[str, Any] | Suite, seeds: Any = None, allow_code: bool = False
) -> tuple[Suite, Store | None]:
    """The suite that is meant: shipped, in a file, Python data, or frozen in a folder of results, and this folder.

    allow_code: see `vetted`.
    """
    if isinstance(suite, Suite):
        return suite, None
    if not isinstance(suite, (str, os.PathLike)) or not os.path.isfile(Path(suite) / "specification.json"):
        return specify(suite, seeds=seeds), None
    store = Store(Path(suite))
    held = store.specification() or {}
    frozen = specify(held["suite"], seeds=seeds, build=False)  # its MDPs' files may be gone: the folder has them
    vetted(frozen, store, allow_code)
    return frozen, store


def vetted(suite: Suite, store: Store, allow_code: bool) -> None:
    """The suite that a folder holds runs no code but this library's, unless the user allows it: a folder is data.

    Every id that the folder says is looked at, those of its tuning too. An MDP that is kept as a file is read from it,
    whatever its name. Modules of one's own are found in the folder that the suite names, where code is allowed.
    """
    if allow_code:
        allow_imports(suite.folder)
        return
    facts = plan.facts_from(store.specification() or {})
    kept = {name for name, digest in facts.mdps.items() if store.mdp(digest) is not None}
    said = [(text, "specification.json") for entry in suite.entries for text in (entry.mdp, entry.learner)]
    said += [(text, "specification.json") for text in (*facts.mdps, *facts.learners)]
    said += [(fact["id"], "specification.json") for fact in facts.learners.values()]
    for subject, record in store.tuning().items():
        tried = record.get("configurations")
        rows = [row for row in [record, *(tried if isinstance(tried, list) else [])] if isinstance(row, dict)]
        said += [(str(row.get(key)), f"tuning/{subject}.json") for row in rows for key in ("mdp", "learner")]
    for text, file in said:
        if text not in kept:
            ids.check_trust(text, str(store.folder / file))


def compared(
    suite: Suite, store: Store, own: Store | None, adopt: bool = False, mix_versions: bool = False
) -> tuple[plan.Facts, dict[str, World]]:
    """What the ids of a suite stand for, and its MDPs; an error where the folder is not of this suite and versions.

    own: the folder of results that the suite was taken from. It means the MDPs that are kept there, whatever became of
    their files.
    """
    held = _frozen(store, suite)
    mdps: dict[str, World] = {}
    if own is not None:
        for name, digest in plan.facts_from(own.specification() or {}).mdps.items():
            if (kept := own.mdp(digest)) is not None:
                mdps[name] = Tabular(MDP.load(kept))
            elif ids.is_file(name) and not Path(name).exists():
                why = own.troubles[-1] if own.troubles else f"mdps/{digest}.mdp: absent"
                raise Damaged(f"{own.folder}: {why}; put back {name}, from which it is made again")
    facts = plan.facts_of(suite, mdps)
    if held is not None:
        lines = differences(held["suite"], suite.plain()) + plan.changed(plan.facts_from(held), facts)
        if lines and not adopt:
            raise InputError(
                f"{store.folder} holds another suite than this:\n  " + "\n  ".join(lines) + "\n"
                "Name another folder, or let this one take the new suite in place of its own (--adopt); "
                "ravi run FOLDER goes on with its own"
            )
        if not mix_versions:
            _same_versions(store)
    return facts, mdps


class Frozen(NamedTuple):
    """A suite as a folder has it."""

    facts: plan.Facts  # what its ids stand for
    contents: dict[str, bytes]  # of MDPs that no id of this library builds
    workers: int  # for how many, of all drivers, its runs are divided into jobs: those of the first launch


def freeze(
    suite: Suite, store: Store, own: Store | None = None, adopt: bool = False, mix_versions: bool = False,
    workers: int = 1, device: str = "cpu",
) -> Frozen:  # fmt: skip
    """Make the folder this suite's; its MDPs that no id builds are kept. See `compared`.

    Nothing is written where not all of the suite can run on this device.
    """
    facts, mdps = compared(suite, store, own, adopt, mix_versions)
    if device == "gpu":
        for mdp, learner, steps, record in dict.fromkeys((e.mdp, e.learner, e.steps, e.record) for e in suite.entries):
            check_device(device, mdps[mdp].learner(learner, steps), mdps[mdp], steps, record)
    store.create()
    contents = {}
    for name, digest in facts.mdps.items():
        made, built = mdps[name], not ids.is_file(name) and ids.code_in(name) is None
        if isinstance(made, Tabular) and not (built and store.mdp(digest) is None):
            contents[name] = store.keep_mdp(made.mdp).read_bytes()
    held = _frozen(store, suite) or {}
    divided = held.get("workers")
    workers = divided if isinstance(divided, int) and divided > 0 else workers
    if adopt or workers != divided:
        store.freeze({"suite": suite.plain(), **facts.plain(), "workers": workers})
    return Frozen(facts, contents, workers)


def _frozen(store: Store, suite: Suite) -> dict[str, Any] | None:
    """The suite that the folder was made for; None if it is new, or damaged and a launch was of this suite."""
    try:
        return store.specification()
    except Damaged as error:
        if suite.plain() not in [made.get("suite") for made in store.manifests().values()]:
            delete = f"if it was this one, delete {store.folder / 'specification.json'} and run it again"
            raise Damaged(f"{error}. No launch that is on record there was of this suite: {delete}") from None
        return None


def _same_versions(store: Store) -> None:
    for launch, made in store.manifests().items():
        lines = differing(made, {"versions": versions()})
        if lines:
            raise InputError(
                f"{store.folder} was made with other versions (manifests/{launch}.json): {'; '.join(lines)}. "
                "Bits may differ: name another folder, or mix them knowingly (--mix-versions)"
            )
