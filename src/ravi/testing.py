"""The contract: what every learner must do, as claims that are checked on short runs; `check` tests one learner.

    from ravi.testing import check
    check("mymodule:my_learner,scale=0.1")        # silent, or a Breach that names the claim

Every learner with an id of its own passes (`tests/test_contract.py`). A learner is an id, or a function of problem and
steps that builds one.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache, cached_property
from itertools import combinations
from pathlib import Path as File
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np

from ravi import ids
from ravi.core import MDP, Array, Learner, Measure, Path
from ravi.learners import knows_the_kernel
from ravi.live.agent import Builder, agent
from ravi.planning.average import solve_average
from ravi.runtime import tree
from ravi.runtime.api import resume, run
from ravi.runtime.result import Run
from ravi.runtime.walk import normalised

MDPS = (
    "riverswim/mixture/5,discount=0.9",
    "ensemble/3,12,2,2,discount=0.8",
)  # with features, for learners that need them
STEPS = 400
ROUNDING = 1e-12  # of a row of a policy, and of a value in parts of H

SEEDS = (5, 3, 11, 4)
STREAM = ("state", "action", "successor", "reset")

Given = str | Builder


class Breach(AssertionError):
    """A learner does not do what every learner must do; the message names the claim.

    Examples
    --------
    >>> import ravi
    >>> from ravi.testing import Breach, check
    >>> def unsure(problem, steps):  # a policy whose rows sum to 1 - 1e-6
    ...     learner = ravi.learner("uniform", problem, steps)
    ...     begin = lambda keys: (state := learner.init(keys))._replace(policy=state.policy * (1 - 1e-6))
    ...     return learner._replace(init=begin)
    >>> check(unsure)
    Traceback (most recent call last):
    ...
    ravi.testing.Breach: unsure on ...: not so: policies are policies and values stay in range (...)
    """


class Case:
    """A learner on an MDP, and the runs that claims share: each is made once, when a claim first asks for it."""

    def __init__(self, learner: Given, mdp: MDP | str, steps: int = STEPS) -> None:
        self.learner, self.world, self.steps = learner, ids.mdp(mdp), steps
        self.name = mdp if isinstance(mdp, str) else mdp.name
        self.seen: list[tuple[Any, Path]] = []  # (state, path) of every epoch of `batch`
        self.alone = cache(lambda seed: self.run([seed], record=["stream"]))

    @cached_property
    def batch(self) -> Run:
        return self.run(SEEDS, record=["stream"], measures=[spy(self.seen)])

    @cached_property
    def oracle(self) -> bool:
        """Whether the learner is given the kernel, and says so."""
        return isinstance(self.learner, str) and knows_the_kernel(self.learner)

    def __str__(self) -> str:
        called = self.learner if isinstance(self.learner, str) else getattr(self.learner, "__name__", "the learner")
        return f"{called} on {self.name}"

    def built(self, world: MDP | None = None) -> Learner:
        """The learner, new: what one run leaves behind is not there in the next."""
        world = world or self.world
        if isinstance(self.learner, str):
            return ids.learner(self.learner, world, self.steps)
        return self.learner(world.problem, self.steps)

    def run(self, seeds: Sequence[int], **options: Any) -> Run:
        return run(self.built(), self.world, self.steps, seeds, progress=False, **options)


Claim = Callable[[Case], None]


def check(learner: Given, mdps: Sequence[MDP | str] = MDPS, steps: int = STEPS) -> None:
    """Hold every claim against a learner, on every MDP; the first that does not hold is a `Breach`.

    Parameters
    ----------
    learner
        An id, or a function of problem and steps that builds a learner.
    mdps
        MDPs, or their ids; features serve learners that need them.
    steps
        T of each run.

    Returns
    -------
    None

    Examples
    --------
    >>> from ravi.testing import check
    >>> check("uniform", ["riverswim/3"], steps=100)
    """
    for mdp in mdps:
        case = Case(learner, mdp, steps)
        for claim in CLAIMS:
            try:
                claim(case)
            except Breach as breach:
                raise Breach(f"{case}: not so: {claim.__name__.replace('_', ' ')} ({breach})") from None


def the_same_key_gives_the_same_run(case: Case) -> None:
    _same_bits(bits(case.run([SEEDS[0]], record=["stream"])), bits(case.alone(SEEDS[0])))


def different_keys_give_different_runs(case: Case) -> None:
    for one, other in combinations(range(len(SEEDS)), 2):
        differs = any((stream[one] != stream[other]).any() for stream in _streams(case.batch))
        _claim(differs, f"keys {SEEDS[one]} and {SEEDS[other]} give one stream")


def a_batch_does_not_change_a_seed(case: Case) -> None:
    for row, seed in enumerate(SEEDS):
        _same_bits(bits(case.alone(seed)), bits(case.batch, row))


def a_resumed_run_equals_an_uninterrupted_one(case: Case) -> None:
    first, second, seeds = case.steps // 4, case.steps * 5 // 8, SEEDS[:3]
    of_discounts = {"pad": True, "record": ["trajectory"]} if case.world.criterion == "discounted" else {}
    whole = case.run(seeds, **of_discounts)
    stopped = case.run(seeds, **of_discounts, pause=first)
    _claim((stopped.plays >= first).all(), f"paused before play {first}")
    for plays, starts in zip(stopped.plays, getattr(whole, "T_k", [()] * len(seeds)), strict=True):
        _claim(
            case.world.criterion == "average" or plays + 1 in [*starts, case.steps + 1],
            f"paused after play {plays}, not between epochs",
        )
    made = case.built()
    further = resume(stopped, made, case.world, pause=second)
    with TemporaryDirectory() as folder:
        further.save(File(folder) / "further.run")
        loaded = Run.load(File(folder) / "further.run")
    again = resume(loaded, made, case.world)
    _claim(again.complete, "resumed, but not complete")
    for row in range(len(seeds)):
        _same_bits(bits(whole, row), bits(again, row))


def policies_are_policies_and_values_stay_in_range(case: Case) -> None:
    H = case.world.largest_value
    _claim(case.batch.plays.size > 0 and case.seen, "no epoch was seen")
    for k, (state, _) in enumerate(case.seen):
        _claim((state.policy >= 0).all(), f"a negative probability in epoch {k + 1}")
        off = np.abs(state.policy.sum(-1) - 1).max()
        _claim(off <= ROUNDING, f"a row of the policy of epoch {k + 1} misses 1 by {off:.1e}")
        for name in ("Q", "V"):
            values = getattr(state, name, np.zeros(1))
            within = (values >= 0).all() and (values <= H * (1 + ROUNDING)).all()
            _claim(bool(within), f"{name} of epoch {k + 1} leaves [0, H]")


def exactly_T_plays_that_follow_one_another(case: Case) -> None:
    world, steps = case.world, case.steps
    _claim((case.batch.plays == steps).all(), f"{case.batch.plays} plays, not {steps}")
    x, a, y, reset = _streams(case.batch)
    _claim(x.shape == (len(SEEDS), steps), f"a stream of shape {x.shape}")
    _claim((x >= 0).all(), "plays that were not made")
    follows = x[:, 1:] == np.where(reset[:, :-1], x[:, 1:], y[:, :-1])
    _claim(follows.all(), "x_{t+1} is not y_t, though no reset followed")
    _claim((world.initial[x[:, 1:][reset[:, :-1]]] > 0).all(), "a reset led where nu_0 does not")
    slots = (world.successors[x, a] == y[..., None]).argmax(-1)
    _claim((world.transitions[x, a, slots] > 0).all(), "y_t is no successor of (x_t, a_t)")


def resets_are_common_to_all_learners(case: Case) -> None:
    other = run("uniform", case.world, case.steps, SEEDS, record=["stream"])
    _claim((_streams(case.batch)[-1] == _streams(other)[-1]).all(), "the uniform policy has others")


def no_learner_sees_the_transitions(case: Case) -> None:
    hidden = [name for name in ("transitions", "parameter") if hasattr(case.world.problem, name)]
    _claim(not hidden, f"the problem has {hidden}")
    if case.oracle:
        return
    there = case.built(_another_truth(case.world))
    _claim(there.settings == case.built().settings, "its settings depend on the kernel")
    made = run(there, case.world, case.steps, SEEDS[:1], record=["stream"])
    _same_bits(bits(made), bits(case.alone(SEEDS[0])))


def regret_is_that_of_the_policies_played(case: Case) -> None:
    """Checked for the seed that has most epochs: as many as were observed. In the average reward, it is the sum of the
    Bellman gaps of what was played."""
    made, world, row, total = case.batch, case.world, 0, 0.0
    if world.criterion == "average":
        x, a, _, _ = _streams(made)
        best = solve_average(world)
        ahead = (world.transitions * best.bias[world.successors]).sum(-1)
        total = float((best.gain + best.bias[:, None] - world.rewards - ahead)[x[0], a[0]].sum())
    else:
        row = int(np.argmax([len(starts) for starts in made.T_k]))
        lengths = np.diff([*made.T_k[row], case.steps + 1])
        _claim(len(case.seen) == len(lengths), f"{len(case.seen)} epochs were seen, {len(lengths)} are told")
        for (state, _), length in zip(case.seen, lengths, strict=True):
            worth = world.initial @ _value(world, normalised(state.policy[row])) / world.largest_value
            total += length * ((made.optimum or 0.0) - worth)
    off = abs(made.regret[row] - total)
    _claim(off <= made.regret_error[row] + 1e-9, f"off by {off:.1e}")
    _claim(made.regret_error[row] < 1e-6, f"known to {made.regret_error[row]:.1e} only")
    _claim(abs(made.regret_curve[row, -1] - made.regret[row]) <= 1e-9, "the curve ends elsewhere")


def fed_the_stream_of_a_run_it_comes_to_the_same_state(case: Case) -> None:
    """Live, as in a simulation."""
    seed, world = SEEDS[1], case.world
    made = case.alone(seed)
    live = agent(case.learner, world if case.oracle else world.problem, case.steps, seed=seed)
    for t, (x, a, y, reset) in enumerate(zip(*(stream[0].tolist() for stream in _streams(made)), strict=True)):
        chosen = live.act(x)
        _claim(chosen == a, f"play {t + 1} is {chosen}, not {a}")
        answer = live.observe(x, a, y, world.in_units(world.rewards[x, a]))
        _claim(answer == reset, f"play {t + 1} has another reset")
    live.end(int(made.batch.walkers.state[0]))
    _same_bits(dict(tree.leaves(made.batch.state)), dict(tree.leaves(live.state)))
    _claim((live.output == made.results["output_policy"][0]).all(), "its output policy is another")


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
    return arrays | {name: getattr(made, name)[row] for name in ("T_k", "gap_k") if hasattr(made, name)}


def _streams(made: Run) -> list[Array]:
    """States, actions, successors and resets of a run, each (n, T)."""
    return [made.results[f"stream_{name}"] for name in STREAM]


def _another_truth(world: MDP) -> MDP:
    """Another kernel behind the same problem."""
    if world.parameter is None:
        return replace(world, transitions=np.roll(world.transitions, 1, -1))
    return MDP.from_features(
        world.features, np.roll(world.parameter, 1), world.successors, world.rewards,
        world.discount if world.criterion == "discounted" else None, world.initial, criterion=world.criterion,
        episode=world.episode, parameter_bound=world.parameter_bound, feature_bound=world.feature_bound,
        name=world.name,
    )  # fmt: skip


def _value(world: MDP, pi: Array) -> Array:
    """V^pi at age 0, by dense algebra; pi is (X, A), or (S, X, A) by age."""
    P, stages = np.zeros((world.states, world.actions, world.states)), pi if pi.ndim == 3 else pi[None]
    np.put_along_axis(P, world.successors.astype(np.int64), world.transitions, axis=2)
    if world.episode is not None:
        V, before = np.zeros(world.states), np.broadcast_to(stages, (world.episode, *stages.shape[1:]))
    else:
        M = np.eye(world.states) - world.discount * np.einsum("xa,xay->xy", stages[-1], P)
        V, before = np.linalg.solve(M, (stages[-1] * world.rewards).sum(-1)), stages[:-1]
    for stage in before[::-1]:
        V = (stage * (world.rewards + world.discount * P @ V)).sum(-1)
    return V


def _claim(holds: Any, why: str) -> None:
    if not holds:
        raise Breach(why)


def _same_bits(one: dict[str, Array], other: dict[str, Array]) -> None:
    _claim(one.keys() == other.keys(), f"{sorted(one)} and {sorted(other)} are told")
    for name in one:
        _claim(one[name].tobytes() == other[name].tobytes(), f"{name} differs")
