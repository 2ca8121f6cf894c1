"""What must every learner do? Claims that short runs are held against; `check` holds all of them against one learner.

    from ravi.contract import check
    check("mymodule:my_learner,scale=0.1")        # silent, or a Breach that names the claim

Every learner with an id of its own passes (`tests/test_contract.py`). A learner is an id, or a function of problem and
steps that builds one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path as File
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np

from ravi import ids, tree
from ravi.core import MDP, Array, Learner, Measure, Path
from ravi.engine import resume, run
from ravi.live.agent import Builder, agent
from ravi.played import played
from ravi.runs import Run

MDPS = (
    "riverswim/mixture/5,discount=0.9",
    "ensemble/3,12,2,2,discount=0.8",
)  # with features, for learners that need them
STEPS = 400
ROUNDING = 1e-12  # of a row of a policy, and of a value in parts of H

Given = str | Builder
Claim = Callable[[Given, MDP | str, int], None]


class Breach(AssertionError):
    """A learner does not do what every learner must do."""


def check(learner: Given, mdps: Sequence[MDP | str] = MDPS, steps: int = STEPS) -> None:
    """Hold every claim against a learner, on every MDP; the first that does not hold is an error."""
    for mdp in mdps:
        for claim in CLAIMS:
            try:
                claim(learner, mdp, steps)
            except Breach as breach:
                said = claim.__name__.replace("_", " ")
                name = mdp if isinstance(mdp, str) else mdp.name
                raise Breach(f"{_called(learner)} on {name}: not so: {said} ({breach})") from None


def the_same_key_gives_the_same_run(learner: Given, mdp: MDP | str, steps: int = STEPS) -> None:
    _same_bits(bits(_run(learner, mdp, steps, [3])), bits(_run(learner, mdp, steps, [3])))


def different_keys_give_different_runs(learner: Given, mdp: MDP | str, steps: int = STEPS) -> None:
    made = _run(learner, mdp, steps, 2, record=["stream"])
    streams = [made.results[f"stream_{name}"] for name in ("state", "action", "successor", "reset")]
    _claim(any((stream[0] != stream[1]).any() for stream in streams), "keys 0 and 1 give one stream")


def a_batch_does_not_change_a_seed(learner: Given, mdp: MDP | str, steps: int = STEPS) -> None:
    batch = _run(learner, mdp, steps, [5, 3, 11, 4], record=["stream"])
    for row, seed in enumerate(batch.seeds):
        _same_bits(bits(_run(learner, mdp, steps, [seed], record=["stream"])), bits(batch, row))


def a_resumed_run_equals_an_uninterrupted_one(learner: Given, mdp: MDP | str, steps: int = STEPS) -> None:
    first, second = steps // 4, steps * 5 // 8
    options: dict[str, Any] = {"pad": True, "record": ["trajectory"]}
    whole = _run(learner, mdp, steps, 3, **options)
    stopped = _run(learner, mdp, steps, 3, pause=first, **options)
    _claim((stopped.plays >= first).all(), f"paused before play {first}")
    last = max(next(k for k, t in enumerate([*starts[1:], steps + 1]) if t > first) for starts in whole.T_k)  # from 0
    _claim(stopped.complete == all(len(starts) <= last + 1 for starts in whole.T_k), "not paused between epochs")
    world = ids.mdp(mdp)
    with TemporaryDirectory() as folder:
        stopped.save(File(folder) / "stopped.run")
        halves = (stopped, Run.load(File(folder) / "stopped.run"))
    for half in halves:
        made = _built(learner, world, steps)
        again = resume(resume(half, made, world, pause=second), made, world)
        _claim(again.complete, "resumed, but not complete")
        for row in range(3):
            _same_bits(bits(whole, row), bits(again, row))


def policies_are_policies_and_values_stay_in_range(learner: Given, mdp: MDP | str, steps: int = STEPS) -> None:
    seen: list[tuple[Any, Path]] = []
    made = _run(learner, mdp, steps, 3, measures=[spy(seen)])
    H = 1 / (1 - made.discount)
    for k, (state, _) in enumerate(seen):
        _claim((state.policy >= 0).all(), f"a negative probability in epoch {k + 1}")
        off = np.abs(state.policy.sum(-1) - 1).max()
        _claim(off <= ROUNDING, f"a row of the policy of epoch {k + 1} misses 1 by {off:.1e}")
        for name in ("Q", "V"):
            values = getattr(state, name, np.zeros(1))
            within = (values >= 0).all() and (values <= H * (1 + ROUNDING)).all()
            _claim(bool(within), f"{name} of epoch {k + 1} leaves [0, H]")


def exactly_T_plays_that_follow_one_another(learner: Given, mdp: MDP | str, steps: int = STEPS) -> None:
    world = ids.mdp(mdp)
    made = _run(learner, world, steps, 3, record=["stream"])
    _claim((made.plays == steps).all(), f"{made.plays} plays, not {steps}")
    x, a, y, reset = (made.results[f"stream_{name}"] for name in ("state", "action", "successor", "reset"))
    _claim(x.shape == (3, steps), f"a stream of shape {x.shape}")
    _claim((x >= 0).all(), "plays that were not made")
    follows = x[:, 1:] == np.where(reset[:, :-1], x[:, 1:], y[:, :-1])
    _claim(follows.all(), "x_{t+1} is not y_t, though no reset followed")
    _claim((world.initial[x[:, 1:][reset[:, :-1]]] > 0).all(), "a reset led where nu_0 does not")
    slots = (world.successors[x, a] == y[..., None]).argmax(-1)
    _claim((world.transitions[x, a, slots] > 0).all(), "y_t is no successor of (x_t, a_t)")


def resets_are_common_to_all_learners(learner: Given, mdp: MDP | str, steps: int = STEPS) -> None:
    made = _run(learner, mdp, steps, 3, record=["stream"])
    other = _run("uniform", mdp, steps, 3, record=["stream"])
    _claim((made.results["stream_reset"] == other.results["stream_reset"]).all(), "the uniform policy has others")


def no_learner_sees_the_transitions(learner: Given, mdp: MDP | str, steps: int = STEPS) -> None:
    world = ids.mdp(mdp)
    hidden = [name for name in ("transitions", "parameter") if hasattr(world.problem, name)]
    _claim(not hidden, f"the problem has {hidden}")
    if _oracle(learner):
        return
    there, here = _built(learner, _another_truth(world), steps), _built(learner, world, steps)
    _claim(there.settings == here.settings, "its settings depend on the kernel")
    _same_bits(bits(run(there, world, steps, 1)), bits(run(here, world, steps, 1)))


def regret_is_that_of_the_policies_played(learner: Given, mdp: MDP | str, steps: int = STEPS) -> None:
    world = ids.mdp(mdp)
    seen: list[tuple[Any, Path]] = []
    made = _run(learner, world, steps, [7], measures=[spy(seen)])
    lengths = np.diff([*made.T_k[0], steps + 1])
    _claim(len(seen) == len(lengths), f"{len(seen)} epochs were seen, {len(lengths)} are told")
    total = 0.0
    for (state, _), length in zip(seen, lengths, strict=True):
        total += length * (made.optimum - (1 - world.discount) * world.initial @ _value(world, played(state.policy[0])))
    off = abs(made.regret[0] - total)
    _claim(off <= made.regret_error[0] + 1e-9, f"off by {off:.1e}")
    _claim(made.regret_error[0] < 1e-6, f"known to {made.regret_error[0]:.1e} only")
    _claim(abs(made.regret_curve[0, -1] - made.regret[0]) <= 1e-9, "the curve ends elsewhere")


def fed_the_stream_of_a_run_it_comes_to_the_same_state(learner: Given, mdp: MDP | str, steps: int = STEPS) -> None:
    """Live, as in a simulation."""
    world = ids.mdp(mdp)
    made = _run(learner, world, steps, [3], record=["stream"])
    stream = (made.results[f"stream_{name}"][0].tolist() for name in ("state", "action", "successor", "reset"))
    live = agent(learner, world if _oracle(learner) else world.problem, steps, seed=3)
    for t, (x, a, y, reset) in enumerate(zip(*stream, strict=True)):
        chosen = live.act(x)
        _claim(chosen == a, f"play {t + 1} is {chosen}, not {a}")
        told = live.observe(x, a, y, world.in_units(world.rewards[x, a]))
        _claim(told == reset, f"play {t + 1} has another reset")
    live.end(int(made.batch.walkers.state[0]))
    _same_bits(dict(tree.leaves(made.batch.state)), dict(tree.leaves(live.state)))


CLAIMS: tuple[Claim, ...] = (
    policies_are_policies_and_values_stay_in_range,
    exactly_T_plays_that_follow_one_another,
    resets_are_common_to_all_learners,
    the_same_key_gives_the_same_run,
    different_keys_give_different_runs,
    a_batch_does_not_change_a_seed,
    a_resumed_run_equals_an_uninterrupted_one,
    no_learner_sees_the_transitions,
    regret_is_that_of_the_policies_played,
    fed_the_stream_of_a_run_it_comes_to_the_same_state,
)


class Nothing(NamedTuple):
    """What a measure without memory keeps."""


def spy(seen: list[tuple[Any, Path]]) -> Measure:
    """A measure that appends copies of (state, path) to `seen` as every epoch opens."""

    def record(m: Nothing, state: Any, path: Path, opening: bool) -> Nothing:
        if opening:
            seen.append((tree.copy(state), tree.copy(path)))
        return m

    return Measure("spy", lambda keys: Nothing(), record, lambda m: {})


def bits(made: Run, row: int = 0) -> dict[str, Array]:
    """Everything of one seed that a run gives, timing aside."""
    arrays = {name: np.asarray(leaf)[row] for name, leaf in tree.leaves(made.batch) if isinstance(leaf, np.ndarray)}
    return arrays | {"T_k": made.T_k[row], "gap_k": made.gap_k[row]}


def _run(learner: Given, mdp: MDP | str, steps: int, seeds: Any, **options: Any) -> Run:
    world = ids.mdp(mdp)
    return run(_built(learner, world, steps), world, steps, seeds, **options)


def _built(learner: Given, world: MDP, steps: int) -> Learner:
    return ids.learner(learner, world, steps) if isinstance(learner, str) else learner(world.problem, steps)


def _oracle(learner: Given) -> bool:
    """Whether it is given the kernel, and says so."""
    known = ids.LEARNERS.get(learner.split(",")[0]) if isinstance(learner, str) else None
    return known is not None and known.oracle


def _called(learner: Given) -> str:
    return learner if isinstance(learner, str) else getattr(learner, "__name__", "the learner")


def _another_truth(world: MDP) -> MDP:
    """Another kernel behind the same problem."""
    if world.parameter is None:
        return replace(world, transitions=np.roll(world.transitions, 1, -1))
    return MDP.from_features(
        world.features, np.roll(world.parameter, 1), world.successors, world.rewards, world.discount, world.initial,
        parameter_bound=world.parameter_bound, feature_bound=world.feature_bound, name=world.name,
    )  # fmt: skip


def _value(world: MDP, pi: Array) -> Array:
    """V^pi at age 0, by dense algebra; pi is (X, A), or (S, X, A) by age."""
    P, stages = np.zeros((world.states, world.actions, world.states)), pi if pi.ndim == 3 else pi[None]
    np.put_along_axis(P, world.successors.astype(np.int64), world.transitions, axis=2)
    M = np.eye(world.states) - world.discount * np.einsum("xa,xay->xy", stages[-1], P)
    V = np.linalg.solve(M, (stages[-1] * world.rewards).sum(-1))
    for stage in stages[-2::-1]:
        V = (stage * (world.rewards + world.discount * P @ V)).sum(-1)
    return V


def _claim(holds: Any, why: str) -> None:
    if not holds:
        raise Breach(why)


def _same_bits(one: dict[str, Array], other: dict[str, Array]) -> None:
    _claim(one.keys() == other.keys(), f"{sorted(one)} and {sorted(other)} are told")
    for name in one:
        _claim(one[name].tobytes() == other[name].tobytes(), f"{name} differs")
