"""Mistakes where rewards change: each a small change, with the claims that must catch it.

As in `paper.py`; the learner is broken where it finds its parts (the names in `ravi.learners.ravi_ucb.changing_rewards`
and `ravi.learners.ravi_ucb.ravi_ucb`), or around its plan.
"""

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from ravi import ids
from ravi.core import Learner, Until
from ravi.learners.ravi_ucb import changing_rewards as module
from ravi.learners.ravi_ucb import ravi_ucb
from ravi.mdps.changing_rewards import Changing, changing
from ravi.planning.bellman import backup
from ravi.planning.mirror import mirror_step
from tests.verify.mutations import Mistakes, by, put, replaced


class Setting(NamedTuple):
    """A learner where rewards change: short, with valid bonuses and with policies that move."""

    mdp: str
    tables: int  # random ones; of one state, the first action earns 1 and a half in turns, the others nothing
    block: int
    clock: str
    learner: str
    steps: int
    seeds: int
    violated: tuple[str, ...] = ()
    moves: float = 0.3
    only: tuple[str, ...] = ()

    def world(self) -> Changing:
        mdp = ids.mdp(self.mdp)
        tables = np.random.default_rng(0).random((self.tables, mdp.states, mdp.actions)) ** 3
        if mdp.states == 1:
            tables[:], tables[:, 0, 0] = 0.0, np.where(np.arange(self.tables) % 2, 0.5, 1.0)
        return changing(mdp, tables, block=self.block, clock=self.clock)

    def base(self) -> Learner:
        return ids.learner(self.learner, ids.mdp(self.mdp), self.steps)

    def build(self) -> Learner:
        return module.changing(self.base(), self.world())

    place = world

    def row(self, name: str) -> str:
        tables = f"{self.tables}, by {self.block} {self.clock}"
        return f"| {name} | `{self.mdp}` | {tables} | `{self.learner}` | {self.steps} | {self.seeds} |"


GARNET, MOVING = "garnet/3,2,3,discount=0.75", "ravi-ucb,scale=0.03,step_scale=60"
PLAYS = Setting(GARNET, 3, 2, "plays", MOVING, 240, 6)
EPOCHS = Setting(GARNET, 3, 2, "epochs", MOVING, 240, 6)
PACED = Setting(GARNET, 2, 2, "plays", MOVING, 240, 6)  # both tables take turns in H plays
REGRESSION = Setting(
    "ensemble/2,4,2,2,discount=0.75", 3, 5, "plays", "ravi-ucb/mixture,scale=0.1,step_scale=30", 240, 6
)
# Bounds hold with so much room that only a learner that does its worst, where little has to be learned, exceeds them.
KNOWN = Setting("one-state/2,discount=0.3", 2, 3, "plays", "ravi-ucb/known", 300, 6)
COUNTS = Setting("one-state/2,discount=0.3", 2, 3, "plays", "ravi-ucb,scale=0.04", 600, 6)
NAMES = {PLAYS: "plays", EPOCHS: "epochs", REGRESSION: "regression", PACED: "paced", KNOWN: "known", COUNTS: "counts"}


# ---- the backup


def backed_up(patch, rule):
    patch.setattr(module, "backup", rule)


# ---- which table


def told(setting, rewards):
    """A learner whose r_k is rewards(world, state, the first play of epoch k)   (n, X, A)."""
    learner, world, kept = setting.build(), setting.world(), {}
    gamma = world.mdp.discount

    def plan(s):
        clock = s.time if world.clock == "plays" else s.epoch
        right = world.tables[np.where(s.epoch > 0, world.number(clock), 0)]
        wrong = rewards(world, s, kept.get("first", s.time + 1))
        kept["first"] = s.time + 1
        return learner.plan(s._replace(PV=s.PV + (wrong - right) / gamma))

    return learner._replace(plan=plan)


def table_at(world, clock):
    return world.tables[world.number(np.maximum(clock, 1))]


def mean_of_the_epoch(patch, setting):
    def mean(world, s, first):
        rows = [
            table_at(world, np.arange(a, b + 1)).mean(0) for a, b in zip(first, np.maximum(s.time, first), strict=True)
        ]
        return np.array(rows)

    return told(setting, mean)


def wrong_clock(patch, setting):
    made = module.changing(setting.base(), replace(setting.world(), clock="epochs"))
    return made._replace(side_information=setting.build().side_information)


def other_clock(patch, setting):
    made = module.changing(setting.base(), replace(setting.world(), clock="plays"))
    return made._replace(side_information=setting.build().side_information)


# ---- which data


def bonus_of_later_data(patch, setting):
    learner = setting.build()
    parts = learner.parts

    def plan(s):
        return learner.plan(
            s._replace(CB=np.where(s.epoch[:, None, None] > 0, parts.bonus(s.data, parts.estimator.embed(s.V)), s.CB))
        )

    return learner._replace(plan=plan)


def estimate_of_later_data(patch, setting):
    learner = setting.build()
    estimator = learner.parts.estimator

    def plan(s):
        return learner.plan(
            s._replace(PV=np.where(s.epoch[:, None, None] > 0, estimator.expect(s.data, estimator.embed(s.V)), s.PV))
        )

    return learner._replace(plan=plan)


def counted_twice(learner, s, path):
    learner.parts.estimator.add(s.data, s.V, path)
    return learner.add(s, path)


def never_counted(learner, s, path):
    s.time[:] += path.length
    return s


def older_targets(patch, setting):
    learner, kept = setting.build(), {}

    def plan(s):
        kept["V"] = s.V.copy()
        return learner.plan(s)

    def add(s, path):
        return learner.add(s._replace(V=kept["V"]), path)._replace(V=s.V)

    return learner._replace(plan=plan, add=add)


def normalised(patch, setting):
    counts = ravi_ucb.counts

    def broken(problem):
        sound = counts(problem)

        def expect(D, V):
            N = D.visits
            return sound.expect(D, V) * N / np.maximum(N - 1, 1)

        return sound._replace(expect=expect)

    patch.setattr(ravi_ucb, "counts", broken)
    return setting.build()


def too_small(patch, setting):
    small = ids.learner("ravi-ucb,scale=0.003,step_scale=60", ids.mdp(setting.mdp), setting.steps)
    return module.changing(small, setting.world())


# ---- the mirror step


def stepped(patch, rule):
    """V, log pi and pi are rule(log pi, pi, Q, eta)."""
    patch.setattr(module, "mirror_step", lambda log_pi, pi, Q, eta, in_place: rule(log_pi, pi, Q, eta))


def high_start(patch, setting):
    learner = setting.build()

    def init(keys):
        s = learner.init(keys)
        return s._replace(Q=s.Q + setting.world().mdp.horizon)

    return learner._replace(init=init)


def hard_maximum(patch, setting):
    stepped(patch, lambda log_pi, pi, Q, eta: (Q.max(-1), *mirror_step(log_pi, pi, Q, eta)[1:]))
    return setting.build()


def no_mirror_step(patch, setting):
    def greedy(log_pi, pi, Q, eta):
        V, _, _ = mirror_step(log_pi, pi, Q, eta)
        made = np.where(Q.max(-1, keepdims=True) == Q, 1.0, 1e-12)
        made /= made.sum(-1, keepdims=True)
        return V, np.log(made), made

    stepped(patch, greedy)
    return setting.build()


def descended(patch):
    def descent(log_pi, pi, Q, eta):
        V, log_down, down = mirror_step(log_pi, pi, -Q, eta)
        return -V, log_down, down

    stepped(patch, descent)


def descent(patch, setting):
    descended(patch)
    return setting.build()


# ---- the epochs


def fixed_epochs(patch, setting):
    H = round(setting.world().mdp.horizon)
    return setting.build()._replace(until=lambda state, time: Until(False, time + H))


ROWS = [
    (
        "Q is not truncated from above",
        "R1b R1d R4b R4",
        PLAYS,
        by(backed_up, lambda r, CB, gamma, PV, H: np.maximum(r + CB + gamma * PV, 0)),
    ),
    (
        "Q is truncated at H + 1",
        "R1b R1d",
        PLAYS,
        by(backed_up, lambda r, CB, gamma, PV, H: backup(r, CB, gamma, PV, H + 1)),
    ),
    ("the backup has no gamma", "R1b", PLAYS, by(backed_up, lambda r, CB, gamma, PV, H: backup(r, CB, 1.0, PV, H))),
    (
        "the backup has no bonus",
        "R1b R4a R4",
        PLAYS,
        by(backed_up, lambda r, CB, gamma, PV, H: backup(r, 0 * CB, gamma, PV, H)),
    ),
    (
        "rewards count ten times, and Q is not truncated",
        "R1b R1d R5a R5b",
        KNOWN,
        by(backed_up, lambda r, CB, gamma, PV, H: 10 * r + CB + gamma * PV),
    ),
    (
        "r_k is the table of the step after the epoch",
        "R1b R4a",
        PLAYS,
        lambda patch, setting: told(setting, lambda world, s, first: table_at(world, s.time + 1)),
    ),
    (
        "r_k is the table of the next epoch",
        "R1b R4a",
        EPOCHS,
        lambda patch, setting: told(setting, lambda world, s, first: table_at(world, s.epoch + 1)),
    ),
    (
        "r_k is the table of the epoch before",
        "R1b R4a",
        EPOCHS,
        lambda patch, setting: told(setting, lambda world, s, first: table_at(world, s.epoch - 1)),
    ),
    (
        "r_k is the table of the epoch's first step",
        "R1b R4a",
        PLAYS,
        lambda patch, setting: told(setting, lambda world, s, first: table_at(world, first)),
    ),
    ("r_k is the mean of the tables of the epoch's steps", "R1b", PLAYS, mean_of_the_epoch),
    (
        "r_k is the mean of all tables",
        "R1b",
        PLAYS,
        lambda patch, setting: told(setting, lambda world, s, first: np.broadcast_to(world.tables.mean(0), s.Q.shape)),
    ),
    ("tables are taken by epochs, and change by plays", "R1b", PLAYS, wrong_clock),
    ("tables are taken by plays, and change by epochs", "R1b", EPOCHS, other_clock),
    # which data
    ("the bonus is taken with the data of the next epoch", "R1b", PLAYS, bonus_of_later_data),
    ("P_hat is taken with the data of the next epoch", "R1b", PLAYS, estimate_of_later_data),
    ("counts are updated twice", "R2a", PLAYS, replaced(add=counted_twice)),
    ("counts stand still", "R2a R8", COUNTS, replaced(add=never_counted)),
    ("targets are V_{k-1}, not V_k", "R2b", REGRESSION, older_targets),
    ("P_hat is normalised by N - 1", "R2c", PLAYS, normalised),
    (
        "the bonus is beta times the squared width",
        "R2d",
        REGRESSION,
        put(ravi_ucb, "multiple_of_width", lambda beta, estimator: lambda D, phi: beta * estimator.width(D, phi) ** 2),
    ),
    ("the bonus is a tenth of what is valid", "R3 R4", PLAYS, too_small),
    ("Q_1 = H", "R1a", PLAYS, high_start),
    (
        "eta is another than the learner says",
        "R1c",
        PLAYS,
        by(stepped, lambda log_pi, pi, Q, eta: mirror_step(log_pi, pi, Q, 1.01 * eta)),
    ),
    ("V is greedy: max_a Q in place of the soft maximum", "R1c", PLAYS, hard_maximum),
    ("V is greedy, where nothing has to be learned", "R1c R6b", KNOWN, hard_maximum),
    ("pi is greedy for Q: no mirror step", "R1c R5a", PLAYS, no_mirror_step),
    (
        "pi starts from pi_0 in every epoch",
        "R1c",
        PLAYS,
        by(stepped, lambda log_pi, pi, Q, eta: mirror_step(0 * log_pi + np.log(0.5), 0 * pi + 0.5, Q, eta)),
    ),
    ("the step descends, where nothing has to be learned", "R1c R6 R6a R6c R6d R9a", KNOWN, by(descended)),
    ("the step descends", "R1c R9", COUNTS, descent),
    # the epochs
    ("epochs end after H steps, whatever the resets", "R7", PACED, fixed_epochs),
]
mutation = Mistakes(NAMES, ROWS, ", where rewards change")
