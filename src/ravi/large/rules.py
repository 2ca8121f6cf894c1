"""Which constants does a learner have in a large world? Those of its id, as `ravi.run` would set them."""

from typing import Any

from ravi import ids, validation
from ravi.large.playing import Rule
from ravi.large.worlds import World
from ravi.theory import constants
from ravi.theory import tabular as of_tables

LEARNERS = ("ravi-ucb", "ravi-ucb+")
NEED_ALL = ("centre", "span", "clip")  # parts of RAVI-UCB+ that ask for the least and the largest V of all states


def rule_of(learner: str, world: World, T: int) -> Rule:
    """The constants of the learner, as `ravi.learners.ravi_ucb.ravi_ucb` and `ravi_ucb_plus` set them."""
    name = learner.split(",")[0]  # may be what a file says: only these are looked up
    if name not in LEARNERS:
        raise validation.InputError(f"a large world has {' and '.join(LEARNERS)}, not {name!r}")
    given = ids.learner_options(learner)
    H, X, A = world.horizon, world.states, world.actions
    delta, scale = validation.delta(given["delta"], T), validation.nonnegative(given["scale"], "scale")
    if name == "ravi-ucb":
        beta = constants.beta_tabular(H, X, A, T, delta) if given["beta"] is None else given["beta"]
        published = constants.eta(H, A, T)
        start = validation.finite(given.get("initial_value", 0.0), "initial_value")
        V0 = float(validation.between(start, 0, H, "initial_value"))
        beta = validation.nonnegative(beta, "beta") * scale
        inner, fresh, pick, factor = 1, False, False, 1.0
    else:
        _without(given)
        on = {
            part: validation.one_of(given[part], ("on", "off"), part) == "on" for part in ("fresh", "gamma", "balance")
        }
        inner = constants.inner_steps(H) if given["inner"] is None else validation.whole(given["inner"], "inner")
        whole = constants.beta_tabular_l1(H, X, A, T, delta)
        factor = world.discount if on["gamma"] else 1.0
        S = of_tables.clipped_bonus_sum(H, X, A, T, factor * whole) if on["balance"] else 0.0
        published = constants.eta_balanced(H, A, T, S, inner)
        beta, V0 = scale * whole, 0.0
        fresh = on["fresh"]
        pick = validation.one_of(given["pick"], ("uniform", "last"), "pick") == "uniform"
    eta = validation.step_size(given["eta"], given["step_scale"], published)
    return Rule(X, T, world.discount, H, eta, float(beta), factor, inner, fresh, pick, V0, world.unvisited == "closed")


def _without(given: dict[str, Any]) -> None:
    on = [part for part in NEED_ALL if given[part] != "off"]
    if on:
        raise validation.InputError(
            f"ravi-ucb+ in a large world needs {','.join(f'{part}=off' for part in on)}: "
            "these parts ask for the least and the largest V of all states, also of those never met"
        )
