"""Mistakes of RAVI-UCB: each a small change, with the claims that must catch it."""

from dataclasses import replace
from math import log

import numpy as np

import ravi.verify
from ravi import ids
from ravi.core import Measure, Until
from ravi.estimators.counts import counts
from ravi.estimators.ridge import ridge
from ravi.learners.ravi_ucb import ravi_ucb
from ravi.planning import solver
from ravi.planning.bellman import backup
from ravi.planning.mirror import mirror_step
from ravi.random import block
from ravi.runtime import python as python_driver
from ravi.runtime import world as worlds
from ravi.runtime.ranges import PLAYABLE
from ravi.schedules import never
from ravi.theory import mixture
from ravi.verify import discussion, preliminaries, record
from ravi.verify import setting as settings
from ravi.verify.setting import RunSetting
from tests.verify.mutations import Mistakes, Setting, by, changed, given, in_millionths, put

TABULAR = Setting("garnet/3,2,3,discount=0.75", "ravi-ucb,scale=0.03,step_scale=60", 600, 6)
MIXTURE = Setting("ensemble/2,4,2,2,discount=0.75", "ravi-ucb/mixture,scale=0.1,step_scale=30", 500, 6)
# Without bonuses P_hat_k V_k may be negative, and S4 fails: only here does the truncation from below ever act.
BARE = Setting("hypercube/3,discount=0.75", "ravi-ucb/mixture,scale=0", 600, 6, ("S4", "A1"), moves=0)

# For bonuses that are too small: with the paper's constants, and where they are not so large that a tenth would do.
HEAVY = Setting("ensemble/2,4,2,2,discount=0.75", "ravi-ucb/mixture,regularization=100", 600, 6, moves=0)
ROUGH = Setting("terrain/3,discount=0.75", "ravi-ucb/mixture", 600, 6, moves=0)
RING = Setting("ring/1,discount=0.8", "ravi-ucb", 600, 6, moves=0)
# Where H is next to 1 or the kernel is known, bounds are low enough for a mistake to exceed them.
KNOWN = Setting("trap,discount=0.3", "ravi-ucb/known", 100, 6)
SWUM = Setting("riverswim/4,discount=0.5", "ravi-ucb/known", 50, 4, moves=0)
SHORT = Setting("one-state/2,discount=0.1", "ravi-ucb", 60, 6, moves=0)
SHORT_MIXTURE = Setting("fork/2,discount=0.1", "ravi-ucb/mixture", 30, 6, moves=0)
NAMES = {
    TABULAR: "tabular", MIXTURE: "mixture", BARE: "bare", HEAVY: "heavy", ROUGH: "rough", RING: "ring", KNOWN: "known",
    SWUM: "swum", SHORT: "short", SHORT_MIXTURE: "short mixture",
}  # fmt: skip


# ---- the backup


def backed_up(patch, rule):
    """A learner whose Q_{k+1} is rule(r, CB, gamma, PV, H)."""
    patch.setattr(ravi_ucb, "backup", rule)


def in_hundredths(patch, setting):
    backed_up(patch, lambda r, CB, gamma, PV, H: 100 * r + CB + gamma * PV)
    return setting.build()


def another_discount(patch, setting):
    world = ids.mdp(setting.mdp)
    return ids.learner(setting.learner, replace(world, discount=world.discount - 0.05), setting.steps)


# ---- the first epoch


def first_Q(setting, Q):
    """A learner that starts from another Q_1 than E V_0."""
    learner = setting.build()

    def init(keys):
        state = learner.init(keys)
        return state._replace(Q=Q + np.zeros_like(state.Q))

    return learner._replace(init=init)


def biased(setting):
    """A sound learner whose pi_0 is not uniform."""
    given = np.tile([0.8, 0.2], (ids.mdp(setting.mdp).states, 1))
    problem = ids.mdp(setting.mdp).problem
    return ravi_ucb.tabular(problem, setting.steps, scale=0.03, step_scale=60, initial_policy=given)


def uniform_start(patch, setting):
    learner = biased(setting)

    def init(keys):
        state = learner.init(keys)
        return state._replace(policy=0 * state.policy + 0.5, log_policy=0 * state.policy + np.log(0.5))

    return learner._replace(init=init)


# ---- the mirror step


def mirrored(patch, rule):
    patch.setattr(ravi_ucb, "mirror_step", lambda log_pi, pi, Q, eta, in_place: rule(log_pi, pi, Q, eta))


def not_normalised(patch, setting):
    def rule(log_pi, pi, Q, eta):
        V, log_pi, pi = mirror_step(log_pi, pi, Q, eta)
        return V, log_pi, (1 - PLAYABLE / 1000) * pi  # which adds up over epochs

    mirrored(patch, rule)
    return setting.build()


def greedy(patch, setting):
    def rule(log_pi, pi, Q, eta):
        best = np.eye(Q.shape[-1])[Q.argmax(-1)]
        return mirror_step(log_pi, pi, Q, eta)[0], log_pi, best

    mirrored(patch, rule)
    return setting.build()


def descending(log_pi, pi, Q, eta):
    V, log_pi, pi = mirror_step(log_pi, pi, -Q, eta)
    return -V, log_pi, pi


# ---- the counts


def counted(patch, **rules):
    """A learner whose estimator has other functions."""
    patch.setattr(ravi_ucb, "counts", lambda problem: given(counts(problem), rules))


def lost_samples(sound, D, V, path):
    cut = {name: getattr(path, name)[:, 1:] for name in ("state", "action", "successor", "slot", "reset")}
    return sound.add(D, V, path._replace(**cut, length=np.maximum(path.length - 1, 0)))


def shared_counts(sound, D, V, path):
    sound.add(D, V, path)
    for array in D:
        array[:] = array[:1]
    return D


# ---- what is counted


def where_they_stand(patch):
    """Walkers' states after each walk: x_{t+1} of the last step."""
    seen = {}
    sound = python_driver.walk

    def walk(world, state, walkers, *rest):
        done = sound(world, state, walkers, *rest)
        seen["state"] = walkers.state.copy()
        return done

    patch.setattr(python_driver, "walk", walk)
    return seen


def with_next_states(patch, setting):
    """ADD is given x_{t+1} in place of y_t."""
    seen, learner, problem = where_they_stand(patch), setting.build(), ids.mdp(setting.mdp).problem

    def add(state, path):
        rows = np.nonzero(path.length)[0]
        after = path.successor.copy()
        after[rows, path.length[rows] - 1] = seen["state"][rows]
        slot = (problem.successors[path.state, path.action] == after[..., None]).argmax(-1)
        return learner.add(state, path._replace(successor=after, slot=slot.astype(np.int32)))

    return learner._replace(add=add)


# ---- the regression


def regressed(patch, **rules):
    patch.setattr(ravi_ucb, "ridge", lambda problem, regularization: given(ridge(problem, regularization), rules))


def stale_targets(patch, setting):
    learner, before = setting.build(), {}

    def plan(state):
        before["V"] = state.V.copy()
        return learner.plan(state)

    def add(state, path):
        learner.add(state._replace(V=before["V"]), path)
        return state

    return learner._replace(plan=plan, add=add)


def fresh_targets(patch, setting):
    world = ids.mdp(setting.mdp)
    samples = []  # (seed, phi_i, y_i)

    def expect(sound, D, phi):
        if samples and len(D.response) == setting.seeds:  # a record is of more, or of fewer, rows
            D.response[:] = 0
            for i, f, y in samples:
                D.response[i] += f * values["V"][i, y]
        return sound.expect(D, phi)

    def embed(sound, V):
        values["V"] = V.copy()
        return sound.embed(V)

    values = {}
    regressed(patch, expect=expect, embed=embed)
    learner = setting.build()

    def add(state, path):
        phi = ridge(world.problem).embed(state.V)
        for i in range(len(path.length)):
            for l in range(path.length[i]):
                samples.append((i, phi[i, path.state[i, l], path.action[i, l]], path.successor[i, l]))
        return learner.add(state, path)

    return learner._replace(add=add)


def old_root(sound, D, V, path):
    root = D.root.copy()
    sound.add(D, V, path)
    D.root[:] = root
    return D


# ---- when the bonus is taken


def planned(learner, problem, state, V, CB_of):
    """Q_{k+1} as in `ravi_ucb.generic`, with another bonus."""
    parts = learner.parts
    phi = parts.estimator.embed(V)
    PV = parts.estimator.expect(state.data, phi)
    return backup(problem.rewards, CB_of(phi), problem.discount, PV, problem.horizon)


def old_bonus(patch, setting):
    learner, problem, kept = setting.build(), ids.mdp(setting.mdp).problem, {}

    def plan(state):
        state = learner.plan(state)
        now = type(state.data)(*(array.copy() for array in state.data))
        old = kept.get("data", now)
        kept["data"] = now
        return state._replace(Q=planned(learner, problem, state, state.V, lambda phi: learner.parts.bonus(old, phi)))

    return learner._replace(plan=plan)


def new_bonus(patch, setting):
    learner, problem, kept = setting.build(), ids.mdp(setting.mdp).problem, {}

    def plan(state):
        if "data" in kept:  # Q_{k+1} once more, before epoch k + 1 is planned from it
            past = state._replace(data=kept["data"])
            Q = planned(learner, problem, past, state.V, lambda phi: learner.parts.bonus(state.data, phi))
            state = state._replace(Q=Q)
        kept["data"] = type(state.data)(*(array.copy() for array in state.data))
        return learner.plan(state)

    return learner._replace(plan=plan)


def bonus_of_the_value_before(patch, setting):
    learner, problem = setting.build(), ids.mdp(setting.mdp).problem

    def plan(state):
        before = learner.parts.estimator.embed(state.V.copy())
        state = learner.plan(state)
        Q = planned(learner, problem, state, state.V, lambda phi: learner.parts.bonus(state.data, before))
        return state._replace(Q=Q)

    return learner._replace(plan=plan)


# ---- the walk


def walked(patch, change):
    """Every walk goes through `change(world, policy)` first."""
    sound = python_driver.walk

    def walk(world, state, *rest):
        world, policy = change(world, state.policy)
        return sound(world, state._replace(policy=policy), *rest)

    patch.setattr(python_driver, "walk", walk)


def for_another_action(patch, setting):
    walked(patch, lambda world, policy: (world._replace(cumulative=world.cumulative[:, ::-1]), policy))
    return setting.build()


def by_hand(patch, *, patient=False, straying=False, blind=False, thrifty=False):
    """The walk in plain Python: epochs that never end at their first step; steps that do not follow one another;
    paths that hold x_{t+1} where y_t belongs; one random number for the action and for the reset."""

    def find(cumulative, u):
        return int(np.searchsorted(cumulative, u, side="right"))

    def walk(world, state, walkers, path, over, until, steps):
        policy, unfinished, ended = state.policy, 0, 0
        for i in range(len(over)):
            path.time[i], length = walkers.time[i] + 1, 0
            x, t = int(walkers.state[i]), int(walkers.time[i])
            while not over[i] and length < path.state.shape[1]:
                t += 1
                u_reset, u_action, u_successor, u_initial = block(walkers.key[i], t, 0)
                a = min(find(np.cumsum(policy[i, x]), u_action), policy.shape[2] - 1)
                slot = find(world.cumulative[x, a], u_successor)
                y = int(world.successors[x, a, slot])
                reset = (u_action if thrifty else u_reset) < world.restart and not (patient and length == 0)
                after = find(world.initial, u_initial) if reset else y
                if straying and not reset and t % 50 == 0:
                    after = 0
                if blind:
                    y, slot = after, int((world.successors[x, a] == after).argmax())
                for array, value in zip(path, (x, a, y, slot, reset), strict=False):
                    array[i, length] = value
                length += 1
                x = after
                if (reset and until.reset) or t >= until.deadline[i]:
                    over[i] = 1
            walkers.state[i], walkers.time[i], path.length[i], path.after[i] = x, t, length, x
            unfinished += over[i] == 0
            ended += length > 0 and t >= steps
        return unfinished, ended

    patch.setattr(python_driver, "walk", walk)


def thrifty(patch, setting):
    by_hand(patch, thrifty=True)
    return setting.build()


def straying(patch, setting):
    by_hand(patch, straying=True)
    return setting.build()


# ---- the two loops


def short_epochs(patch, setting):
    H = int(ids.mdp(setting.mdp).horizon)
    return setting.build()._replace(until=lambda state, time: Until(True, time + H))


def one_play_more(patch, setting):
    sound = python_driver.walk

    def walk(world, state, walkers, path, over, until, steps):
        later = until.deadline + (until.deadline == setting.steps)
        return sound(world, state, walkers, path, over, until._replace(deadline=later), steps)

    patch.setattr(python_driver, "walk", walk)
    return setting.build()


def learning_to_the_end(patch, setting):
    learner, sound = setting.build(), python_driver._pad

    def pad(task, batch, path, finished):
        def record(m, state, path, opening):
            learner.add(state, path)
            return m

        adding = Measure("adding", lambda keys: None, record, lambda m: {})
        more = task._replace(measures=[*task.measures, adding])
        return sound(more, batch._replace(records=(*batch.records, None)), path, finished)[:-1]

    patch.setattr(python_driver, "_pad", pad)
    return learner


# ---- the yardstick


def another_optimum(patch, setting):
    def solve(mdp, **options):
        found = solver.solve(mdp, **options)
        return replace(found, optimum=found.optimum + 1e-6)

    patch.setattr(ravi.verify, "solve", solve)
    return setting.build()


# ---- the observer


def with_less_discount(function):
    """It, of an MDP whose gamma is less by 0.01."""
    return lambda mdp, policy: function(replace(mdp, discount=mdp.discount - 0.01), policy)


def another_value(patch, setting):
    patch.setattr(preliminaries, "evaluate", with_less_discount(preliminaries.evaluate))
    patch.setattr(discussion, "return_of", with_less_discount(discussion.return_of))
    return setting.build()


def half_the_bound(patch, setting):
    B = RunSetting.B.fget
    patch.setattr(RunSetting, "B", property(lambda at: B(at) / 2))
    return setting.build()


def inverted_delta(patch, setting):
    logarithm = RunSetting.log_inverse_delta.fget
    patch.setattr(RunSetting, "log_inverse_delta", property(lambda at: -logarithm(at)))
    return setting.build()


# ---- bonuses that are too small


def scaled(setting, scale):
    return ids.learner(f"{setting.learner},scale={scale}", ids.mdp(setting.mdp), setting.steps)


ROWS = [
    (
        "Q is not truncated from above",
        "S3 S8 A1b",
        TABULAR,
        by(backed_up, lambda r, CB, gamma, PV, H: np.maximum(r + CB + gamma * PV, 0)),
    ),
    (
        "Q is not truncated from below (bonus 0)",
        "S3 S8",
        BARE,
        by(backed_up, lambda r, CB, gamma, PV, H: np.minimum(r + CB + gamma * PV, H)),
    ),
    (
        "Q is truncated at H + 1",
        "S3 S8",
        TABULAR,
        by(backed_up, lambda r, CB, gamma, PV, H: backup(r, CB, gamma, PV, H + 1)),
    ),
    ("the backup has no gamma", "S8", TABULAR, by(backed_up, lambda r, CB, gamma, PV, H: backup(r, CB, 1.0, PV, H))),
    (
        "the backup discounts the reward",
        "S8",
        TABULAR,
        by(backed_up, lambda r, CB, gamma, PV, H: backup(gamma * r, CB, gamma, PV, H)),
    ),
    (
        "the backup has no bonus",
        "S8 A5",
        TABULAR,
        by(backed_up, lambda r, CB, gamma, PV, H: backup(r, 0 * CB, gamma, PV, H)),
    ),
    ("rewards count a hundred times, and Q is not truncated", "A6 A9 A11 A11s A13 A13s A14", SWUM, in_hundredths),
    ("rewards count a hundred times, and Q is not truncated (mixture)", "M1b M6 M8b", MIXTURE, in_hundredths),
    ("the learner believes in another gamma", "S8", TABULAR, another_discount),
    ("Q_1 = r", "S1 C2", TABULAR, lambda patch, setting: first_Q(setting, ids.mdp(setting.mdp).rewards)),
    ("Q_1 = H", "S1", TABULAR, lambda patch, setting: first_Q(setting, ids.mdp(setting.mdp).horizon)),
    ("pi_0 is not used: the first policy is uniform", "S1 C2", TABULAR, uniform_start),
    (
        "eta is doubled in V, not in pi",
        "S2 C1 C2",
        TABULAR,
        by(
            mirrored,
            lambda log_pi, pi, Q, eta: (mirror_step(log_pi, pi, Q, 2 * eta)[0], *mirror_step(log_pi, pi, Q, eta)[1:]),
        ),
    ),
    (
        "eta is another than the learner says",
        "S2 C1 C2",
        TABULAR,
        by(mirrored, lambda log_pi, pi, Q, eta: mirror_step(log_pi, pi, Q, 1.01 * eta)),
    ),
    ("pi is not normalised, by less than a run refuses", "S2", TABULAR, not_normalised),
    ("pi is greedy for Q: no mirror step", "S2 A12a A12b P6 A7 A8 A10 A15c", TABULAR, greedy),
    (
        "V is greedy: max_a Q in place of the soft maximum",
        "S2 C1",
        TABULAR,
        by(mirrored, lambda log_pi, pi, Q, eta: (Q.max(-1), *mirror_step(log_pi, pi, Q, eta)[1:])),
    ),
    ("the step descends", "S2 A15 A20 A20c", KNOWN, by(mirrored, descending)),
    (
        "pi starts from pi_0 in every epoch",
        "S2 C2",
        TABULAR,
        by(
            mirrored,
            lambda log_pi, pi, Q, eta: mirror_step(0 * log_pi - np.log(Q.shape[-1]), 0 * pi + 1 / Q.shape[-1], Q, eta),
        ),
    ),
    (
        "counts are updated twice",
        "T0a",
        TABULAR,
        by(counted, add=lambda sound, D, V, path: sound.add(sound.add(D, V, path), V, path)),
    ),
    (
        "N starts at 0",
        "T0a T0c A18 T3a T4",
        TABULAR,
        by(counted, init=lambda sound, n: sound.init(n)._replace(visits=0 * sound.init(n).visits)),
    ),
    (
        "P_hat is normalised by N - 1",
        "T0b",
        TABULAR,
        by(counted, expect=lambda sound, D, V: sound.expect(D, V) * D.visits / np.maximum(D.visits - 1, 1)),
    ),
    (
        "P_hat is not normalised",
        "T0b T1 T1s",
        TABULAR,
        by(counted, expect=lambda sound, D, V: sound.expect(D, V) * D.visits),
    ),
    ("counts stand still", "T0a T3b", TABULAR, by(counted, add=lambda sound, D, V, path: D)),
    ("the bonus is beta / N", "T0c", TABULAR, by(counted, width=lambda sound, D, V: sound.width(D, V) ** 2)),
    ("the first sample of every stretch is lost", "T0a", TABULAR, by(counted, add=lost_samples)),
    ("seeds share their counts", "T0a", TABULAR, by(counted, add=shared_counts)),
    ("counts use x_{t+1} after a reset, not y_t", "T0a", TABULAR, with_next_states),
    ("regressions use x_{t+1} after a reset, not y_t", "M0a M3", MIXTURE, with_next_states),
    ("targets are V_{k-1}, not V_k", "M0a M3 M8a", MIXTURE, stale_targets),
    ("targets are computed again with every new V_k", "M0a M3 M4 M7", MIXTURE, fresh_targets),
    (
        "Lambda_1 = lambda I / 10",
        "M0a M3",
        MIXTURE,
        put(ravi_ucb, "ridge", lambda problem, regularization: ridge(problem, regularization / 10)),
    ),
    ("the root of Lambda^-1 is never renewed", "M0b M2 M9 M11", MIXTURE, by(regressed, add=old_root)),
    (
        "phi is made with the psi of another action",
        "M0a M2",
        MIXTURE,
        put(
            ravi_ucb,
            "ridge",
            lambda problem, regularization: ridge(
                replace(problem, features=np.roll(problem.features, 1, axis=1)), regularization
            ),
        ),
    ),
    (
        "the bonus is beta times the squared norm of phi",
        "M0b",
        MIXTURE,
        by(regressed, width=lambda sound, D, phi: sound.width(D, phi) ** 2),
    ),
    ("the bonus uses the data of the epoch before", "S8", TABULAR, old_bonus),
    ("the bonus uses the data of the next epoch", "S2 C1", TABULAR, new_bonus),
    ("the bonus is taken at V_{k-1}", "S8 A1a A4", MIXTURE, bonus_of_the_value_before),
    (
        "resets have probability 2 (1 - gamma)",
        "S5 S6a A19",
        TABULAR,
        by(walked, lambda world, policy: (world._replace(restart=2 * world.restart), policy)),
    ),
    (
        "resets are twenty times too rare",
        "S6b M13",
        MIXTURE,
        by(walked, lambda world, policy: (world._replace(restart=world.restart / 20), policy)),
    ),
    (
        "states after a reset are drawn from another law than nu_0",
        "S9c",
        TABULAR,
        by(walked, lambda world, policy: (world._replace(initial=world.initial**3), policy)),
    ),
    ("y_t is drawn for another action", "S9b T2", TABULAR, for_another_action),
    (
        "actions are drawn from the first policy for ever",
        "S9a",
        TABULAR,
        by(walked, lambda world, policy: (world, np.full_like(policy, 1 / policy.shape[-1]))),
    ),
    ("an epoch never ends at its first step", "S6a", TABULAR, by(by_hand, patient=True)),
    ("resets depend on the action: one random number for both", "S10", TABULAR, thrifty),
    ("x_{t+1} is not y_t although no reset follows", "S7", TABULAR, straying),
    ("the path holds x_{t+1} after a reset in place of y_t", "S9b", TABULAR, by(by_hand, blind=True)),
    # the two loops
    (
        "epochs go on through resets",
        "S5 S6a M12",
        TABULAR,
        lambda patch, setting: setting.build()._replace(until=never()),
    ),
    ("epochs end after H steps, reset or not", "S6a A17", TABULAR, short_epochs),
    ("T + 1 steps", "T0a", TABULAR, one_play_more),
    (
        "T - 1 steps",
        "T0a",
        TABULAR,
        changed(python_driver, "run", lambda sound, task, batch: sound(task._replace(T=task.T - 1), batch)),
    ),
    ("counts go on during the padding", "T0a", TABULAR, learning_to_the_end),
    ("the regression goes on during the padding", "M0a", MIXTURE, learning_to_the_end),
    # the yardstick
    (
        "the regret is measured against another optimum",
        "P8",
        TABULAR,
        changed(
            worlds,
            "regret",
            lambda sound, mdp, steps, points, solution, **options: sound(
                mdp, steps, points, replace(solution, optimum=solution.optimum + 0.0001), **options
            ),
        ),
    ),
    ("rho* is too large by 1e-6", "P5 P7 A3", TABULAR, another_optimum),
    ("rho* is in millionths", "T5 M16", SHORT, in_millionths),
    ("rho* is in millionths (mixture)", "M15", SHORT_MIXTURE, in_millionths),
    ("policies are evaluated with another gamma", "P1 D3", KNOWN, another_value),
    (
        "occupancies are those of another gamma",
        "P3 P4",
        KNOWN,
        put(record, "of_batch", with_less_discount(record.of_batch)),
    ),
    (
        "P^T takes the weights of another action",
        "P2",
        KNOWN,
        changed(preliminaries, "flow", lambda flow, mdp, weights: flow(mdp, weights[..., ::-1])),
    ),
    ("H is taken for 1", "A2", KNOWN, put(RunSetting, "H", property(lambda setting: 1.0))),
    (
        "H(pi* || pi_0) is in bits",
        "A16",
        KNOWN,
        changed(settings, "relative_entropy", lambda entropy, p, q: entropy(p, q) / log(2)),
    ),
    ("B is half of what it is", "M1a M1b", MIXTURE, half_the_bound),
    ("events have probability 1 - 1 / delta", "M5 C3", MIXTURE, inverted_delta),
    ("the sum of bonuses is bounded with a beta of 0.01", "M14", MIXTURE, put(mixture, "_beta", lambda *given: 0.01)),
    ("the planner of the Discussion descends", "D1 D4", KNOWN, put(discussion, "mirror_step", descending)),
    (
        "exact planning is for rewards 1 - r",
        "D2",
        KNOWN,
        changed(
            discussion,
            "md_mpi_iterates",
            lambda iterates, mdp, eta: iterates(replace(mdp, rewards=1 - mdp.rewards), eta),
        ),
    ),
    ("the bonus is scaled by 0.1 (lambda = 100)", "S4 A1", HEAVY, lambda patch, setting: scaled(setting, 0.1)),
    ("the bonus is scaled by 0.03 (mixture)", "S4 A1", ROUGH, lambda patch, setting: scaled(setting, 0.03)),
    ("the bonus is scaled by 0.01 (tabular)", "S4 A1", RING, lambda patch, setting: scaled(setting, 0.01)),
]
mutation = Mistakes(NAMES, ROWS)
