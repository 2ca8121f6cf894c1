"""The choice of a learner: by what is known of a problem, what each guarantees, and how long it would take.

docs/guides/choose.md has the same as a table. Guarantees are those that the learners' own docstrings state.
"""

import time
from collections.abc import Callable
from shlex import quote
from typing import Any, NamedTuple

from ravi import ids, validation
from ravi.core import MDP
from ravi.display.printable import duration
from ravi.live.choices import DISCOUNT, needs_discovery
from ravi.live.encoders import kind_of
from ravi.live.environment import world_of
from ravi.validation import LEARNERS_OF, OF_CRITERION, InputError

PILOT = 2000  # plays of an environment that are timed
SOLVED = "exact: the optimum and an optimal policy, with a bound on the error"


class Choice(NamedTuple):
    """One way to go: when, by which command, with which guarantee, in how many seconds."""

    when: str
    command: str
    guarantee: str
    seconds: float | None = None

    @property
    def time(self) -> str:
        if self.seconds is None:
            return ""
        return f"  (about {duration(self.seconds) if self.seconds >= 1 else f'{self.seconds:.1g} s'})"


class Advice(NamedTuple):
    source: str
    known: str  # what is known of it
    choices: list[Choice]

    def json(self) -> dict[str, Any]:
        return self._asdict() | {"choices": [choice._asdict() for choice in self.choices]}

    def text(self) -> str:
        lines = [f"{self.source}: {self.known}"]
        for choice in self.choices:
            lines += ["", choice.when, f"  {choice.command}{choice.time}", f"  {choice.guarantee}"]
        return "\n".join(lines)


class LearnerRule(NamedTuple):
    when: str
    learner: str
    fits: Callable[[MDP], bool] = lambda mdp: True


RULES = (
    LearnerRule("It is a mixture of simulators, and the weights are to be learned; no option need be set:",
                "ravi-kl/mixture", lambda mdp: mdp.features is not None),
    LearnerRule("The same, by the paper's algorithm:", "ravi-ucb+/mixture", lambda mdp: mdp.features is not None),
    LearnerRule("It is linear in features of pairs:", "lsvi-ucb,scale=0.01", lambda mdp: mdp.pair_features is not None),
    LearnerRule("The learner knows which successors a pair may have; no option need be set:", "ravi-kl"),
    LearnerRule("The same, with a prior:", "psrl,support=on"),
    LearnerRule("The learner knows neither the kernel nor the successors:", "psrl"),
    LearnerRule("The same, and the bound is to hold without a prior:", "ravi-ucb+"),
    LearnerRule("Rewards are to be learned too:", "ravi-kl/unknown-rewards"),
    LearnerRule("The algorithm of the paper, as published:", "ravi-ucb"),
)  # fmt: skip


def advise(source: str, steps: Any, *, seeds: Any = 1, discount: float | None = None, timed: bool = True) -> Advice:
    """What to do about an MDP (its id, or a file), or a Gymnasium environment (its id), in T = `steps` plays."""
    T, timed = validation.steps(steps), validation.flag(timed, "timed")
    validation.instance(source, str, "source", "the id of an MDP, a file, or the id of an environment")
    gamma = None if discount is None else validation.probability(discount, "discount")
    chosen = validation.seeds(seeds)
    if ids.names_an_mdp(source) or ids.is_world(source):
        given_seeds = str(seeds) if isinstance(seeds, (str, int)) else ",".join(map(str, chosen))
        return _of_table(source, T, len(chosen), given_seeds, gamma, timed)
    return _of_environment(source, T, gamma, timed)


def _of_table(source: str, T: int, seeds: int, given_seeds: str, gamma: float | None, timed: bool) -> Advice:
    """given_seeds: the seeds as they were given."""
    mdp = ids.mdp(source, discount=gamma)
    if mdp.criterion != "discounted":
        raise InputError(
            f"{mdp.name} is {OF_CRITERION[mdp.criterion]}, and advice is for a discount: "
            f"{LEARNERS_OF[mdp.criterion]} lists the learners, and ravi solve gives the optimum"
        )
    whole = source if gamma is None else f"{source},discount={gamma!r}"
    X, A, B = mdp.transitions.shape
    known = f"a table of {X:,} states, {A} actions and at most {B} successors of a pair, gamma = {mdp.discount:g}"
    rules = [rule for rule in RULES if rule.fits(mdp)]
    seconds = _forecast(whole, [rule.learner for rule in rules], T, seeds) if timed else {}
    choices = [Choice("The kernel is known, and nothing has to be learned:", f"ravi solve {quote(whole)}", SOLVED)]
    for rule in rules:
        command = f"ravi run {quote(whole)} {rule.learner} --steps {T} --seeds {quote(given_seeds)}"
        choices.append(Choice(rule.when, command, guarantee_of(rule.learner), seconds.get(rule.learner)))
    return Advice(source, known, choices)


def guarantee_of(learner: str) -> str:
    """What a learner guarantees: the first sentence of what its docstring says of it."""
    from ravi.learners.cards import card_of

    stated = card_of(learner.partition(",")[0]).facts["Guarantee"].partition(". ")[0].rstrip(".")
    return stated if ids.learner_options(learner).get("scale", 1) == 1 else f"none; with scale=1, {stated}"


def _forecast(source: str, learners: list[str], T: int, seeds: int) -> dict[str, float]:
    """Seconds of computing, by the pilots that a suite is forecast by; none without the extra that suites need."""
    try:
        from ravi.lab.experiments.forecast import forecast
    except InputError:
        return {}
    section = {"name": "advice", "mdps": [source], "learners": learners}
    found = forecast({"name": "advice", "steps": T, "seeds": seeds, "sections": [section]}, workers=1, allow_code=True)
    return {line.label: line.seconds for line in found.lines}


def _of_environment(source: str, T: int, discount: float | None, timed: bool) -> Advice:
    world, gamma = world_of(source), DISCOUNT if discount is None else discount
    try:
        space, actions = world.observation_space, world.action_space
        cells = kind_of(space) == "Box" and not needs_discovery(space)
        table = hasattr(world.unwrapped, "P")
        has = "with" if table else "without"
        known = f"an environment with observations {space} and actions {actions}, {has} a transition table"
        choices = []
        if table:
            command = f"ravi solve {quote(f'gymnasium/{source},discount={gamma!r}')}"
            choices.append(Choice("It ships its table, and nothing has to be learned:", command, SOLVED))
        words = ["ravi learn", quote(source)] + ([] if discount is None else [f"--discount {discount!r}"])
        words += [f"--steps {T}", "--save it.policy"]
        seconds = _pilot(world, gamma) * T if timed and not cells else None
        when = "It is played, its observations cut into cells:" if cells else "It is played:"
        bound = "none: a cell is not a state" if cells else guarantee_of("psrl/pooled")
        choices.append(Choice(when, " ".join(words), bound, seconds))
    finally:
        world.close()
    return Advice(source, known, choices)


def _pilot(world: Any, discount: float) -> float:
    """Seconds that a step of learning takes."""
    from ravi.live.learning import learn

    learn(world, steps=10, discount=discount)  # compiles
    began = time.perf_counter()
    learn(world, steps=PILOT, discount=discount)
    return (time.perf_counter() - began) / PILOT
