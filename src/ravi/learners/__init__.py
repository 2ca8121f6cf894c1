"""The learners that come with the library, by their ids. Each is loaded when it is asked for."""

from typing import NamedTuple


class Known(NamedTuple):
    """A learner, or a world, by its id."""

    module: str
    function: str
    summary: str
    oracle: bool = False  # it is given the MDP itself, not the problem
    criteria: tuple[str, ...] = ("discounted",)  # that it is for


BOTH = ("discounted", "average")
ALL = ("discounted", "average", "episodic")
EPISODES = ("episodic",)
WITH_EPISODES = ("discounted", "episodic")


def _here(home: str, summary: str, oracle: bool = False, criteria: tuple[str, ...] = ("discounted",)) -> Known:
    """A learner of this package: home is module:function, or module where the function has its name."""
    module, _, function = home.partition(":")
    return Known(f"{__name__}.{module}", function or module.rpartition(".")[2], summary, oracle, criteria)


LEARNERS = {
    "ravi-ucb": _here(
        "ravi_ucb.ravi_ucb:tabular",
        "plans with one regularised, optimistic backup per epoch; the paper's Algorithm 2, tabular",
        criteria=ALL,
    ),
    "ravi-ucb/mixture": _here(
        "ravi_ucb.ravi_ucb:linear_mixture",
        "runs RAVI-UCB with ridge regression, for linear mixture MDPs; the paper's Algorithm 3",
        criteria=WITH_EPISODES,
    ),
    "ravi-ucb/mixture-sampled": _here(
        "ravi_ucb.features:mixture_sampled",
        "runs RAVI-UCB on sampled features, for mixtures with too many successors to sum over",
    ),
    "ravi-ucb+": _here(
        "ravi_ucb.plus:tabular",
        "makes several backups per epoch with smaller bonuses; for a bound without a prior, tabular",
    ),
    "ravi-ucb+/mixture": _here(
        "ravi_ucb.plus:linear_mixture", "runs RAVI-UCB+ with ridge regression, for linear mixture MDPs"
    ),
    "ravi-ucb/unknown-rewards": _here(
        "ravi_ucb.unknown_rewards:tabular",
        "runs RAVI-UCB and estimates the rewards, for tabular MDPs whose rewards are unknown",
        criteria=ALL,
    ),
    "ravi-ucb+/unknown-rewards": _here(
        "ravi_ucb.unknown_rewards:plus",
        "runs RAVI-UCB+ and estimates the rewards, for tabular MDPs whose rewards are unknown",
    ),
    "ravi-ucb/doubling": _here(
        "ravi_ucb.doubling:tabular",
        "restarts RAVI-UCB in phases of doubling length, for tabular MDPs when T is unknown",
    ),
    "ravi-ucb/mixture/doubling": _here(
        "ravi_ucb.doubling:linear_mixture",
        "restarts RAVI-UCB in phases of doubling length, for linear mixtures when T is unknown",
    ),
    "ravi-ucb+/doubling": _here(
        "ravi_ucb.doubling:plus", "restarts RAVI-UCB+ in phases of doubling length, for tabular MDPs when T is unknown"
    ),
    "ravi-ucb+/mixture/doubling": _here(
        "ravi_ucb.doubling:plus_linear_mixture",
        "restarts RAVI-UCB+ in phases of doubling length, for linear mixtures when T is unknown",
    ),
    "ravi-ucb/linear": _here(
        "ravi_ucb.features:ravi_ucb_linear",
        "runs RAVI-UCB on features of state-action pairs, for linear MDPs; proven for finite X only",
    ),
    "ravi-kl": _here(
        "ravi_kl.ravi_kl:tabular",
        "plans with the best kernel of a relative-entropy confidence set; small regret, no tuning",
        criteria=ALL,
    ),
    "ravi-kl/mixture": _here(
        "ravi_kl.mixture:linear_mixture",
        "plans with the best kernel that the likelihood of theta allows, for linear mixture MDPs",
    ),
    "ravi-kl/unknown-rewards": _here(
        "ravi_kl.ravi_kl:unknown_rewards",
        "runs RAVI-KL and estimates the rewards, for tabular MDPs whose rewards are unknown",
        criteria=ALL,
    ),
    "ucrl2": _here(
        "ucrl.ucrl:ucrl2",
        "plans optimistically over L1 confidence balls; the reference method for average reward",
        criteria=BOTH,
    ),
    "ucrl2b": _here(
        "ucrl.ucrl:ucrl2b",
        "plans like UCRL2, over Bernstein intervals, which are narrow where variances are small",
        criteria=BOTH,
    ),
    "kl-ucrl": _here(
        "ucrl.ucrl:kl_ucrl",
        "plans like UCRL2, over relative-entropy balls; the average-reward relative of RAVI-KL",
        criteria=BOTH,
    ),
    "scal": _here(
        "ucrl.scal:scal",
        "plans like UCRL2B with values of bounded span, for when a bound on the span is known",
        criteria=BOTH,
    ),
    "scal+": _here(
        "ucrl.scal:scal_plus",
        "plans with a bonus and values of bounded span, for when a bound on the span is known",
        criteria=BOTH,
    ),
    "r-max": _here(
        "pac.model_based:r_max",
        "gives every pair that was played fewer than m times the value H; the classical PAC method",
    ),
    "mbie": _here(
        "pac.model_based:mbie", "plans the discounted MDP optimistically over L1 confidence balls; a PAC method"
    ),
    "mbie-eb": _here(
        "pac.model_based:mbie_eb",
        "adds a bonus beta / sqrt(n) to the rewards of the estimated MDP; a simple PAC method",
    ),
    "ucbvi-gamma": _here(
        "pac.ucbvi_gamma", "makes a backup with a Bernstein bonus at every step; for regret along the trajectory"
    ),
    "ucbvi": _here(
        "episodic.ucbvi",
        "plans by backward induction with Hoeffding or Bernstein bonuses, in episodes",
        criteria=EPISODES,
    ),
    "optimistic-q": _here(
        "episodic.optimistic_q",
        "runs Q-learning with an upper confidence bonus and no model, in episodes",
        criteria=EPISODES,
    ),
    "psrl": _here(
        "posterior.psrl",
        "plays the optimal policy of a posterior sample; good when the successors are unknown",
        criteria=ALL,
    ),
    "psrl/mixture": _here(
        "posterior.mixture:linear_mixture",
        "plays the optimal policy of a posterior sample of theta, for linear mixture MDPs",
    ),
    "psrl/pooled": _here(
        "posterior.psrl_pooled", "runs PSRL with a prior learned from all pairs together; the default of `ravi learn`"
    ),
    "delayed-q": _here("q.delayed_q", "updates Q only after m plays of a pair; a PAC method that keeps no model"),
    "ucb-q": _here(
        "q.ucb_q", "runs Q-learning with a UCB bonus; a PAC method without a model (Dong, Wang, Chen, Wang)"
    ),
    "optimistic-q/average": _here(
        "q.optimistic_q",
        "runs Q-learning with a UCB bonus at a discount set by T, for the average reward without a model (Wei et al.)",
        criteria=BOTH,
    ),
    "liu-su": _here(
        "contrib.liu_su", "runs double Q-learning with a UCB bonus, without a model (Liu and Su; a reconstruction)"
    ),
    "md-mpi": _here(
        "regularised.md_mpi", "makes m sweeps per policy where RAVI-UCB makes one, to study how much planning is needed"
    ),
    "politex": _here(
        "regularised.politex",
        "weights actions by exponentials of summed Q estimates; right if every policy visits all pairs",
        criteria=BOTH,
    ),
    "npg": _here(
        "regularised.npg", "takes natural policy gradient steps on optimistic values, to compare policy optimisation"
    ),
    "mdp-e": _here(
        "contrib.mdp_e",
        "runs an expert algorithm in each state on Q of the estimated kernel (recalled, not read)",
        criteria=BOTH,
    ),
    "o-reps": _here(
        "contrib.o_reps",
        "makes mirror descent steps on occupancy measures of the estimated kernel (recalled, not read)",
        criteria=WITH_EPISODES,
    ),
    "uclk": _here(
        "mixture.uclk:uclk", "plans to convergence with the best kernel of an ellipsoid, for linear mixture MDPs"
    ),
    "uclk+": _here(
        "mixture.uclk:uclk_plus", "runs UCLK with samples weighted by their estimated variance, for linear mixture MDPs"
    ),
    "uclk-c": _here(
        "mixture.uclk:uclk_c",
        "runs UCLK+ on centred values, for linear mixture MDPs whose values have a small span",
        criteria=BOTH,
    ),
    "threshold": _here(
        "mixture.known_pairs:threshold",
        "gives pairs that the data do not determine the value H, for mixtures of known simulators",
    ),
    "ucrl-vtr": _here(
        "mixture.ucrl_vtr",
        "plans by optimistic backward induction, for linear mixtures with a finite horizon",
        criteria=WITH_EPISODES,
    ),
    "oppo": _here(
        "regularised.oppo",
        "takes mirror steps by stage on optimistic values, for linear mixtures with a finite horizon",
        criteria=WITH_EPISODES,
    ),
    "lsvi-ucb": _here(
        "linear.lsvi:lsvi_ucb",
        "plans by least-squares value iteration with an elliptical bonus, for linear MDPs",
        criteria=WITH_EPISODES,
    ),
    "olsvi-fh": _here(
        "linear.lsvi:olsvi_fh",
        "runs LSVI-UCB on blocks of steps as if they were episodes, for average-reward linear MDPs",
    ),
    "gamma-lscvi-ucb": _here(
        "linear.lsvi:gamma_lscvi_ucb",
        "clips least-squares values to a span, for linear MDPs with a known bound on the span",
        criteria=BOTH,
    ),
    "rlsvi": _here(
        "linear.lsvi:rlsvi",
        "adds noise to least-squares weights in place of a bonus, for values linear in features",
        criteria=WITH_EPISODES,
    ),
    "fixed-point-lsvi": _here(
        "linear.fixed_point_lsvi", "iterates optimistic least squares to a fixed point, for linear MDPs (Vial et al.)"
    ),
    "fopo": _here(
        "linear.fopo", "plans for the largest gain that least squares allow, for small linear MDPs", criteria=BOTH
    ),
    "mdp-exp2": _here(
        "regularised.mdp_exp2", "runs exponential weights on least-squares estimates of Q, for ergodic linear MDPs"
    ),
    "rmax-ravi-ucb": _here(
        "contrib.rmax_ravi_ucb",
        "leads to a state of maximal value where data are few, for linear MDPs (a reconstruction)",
    ),
    "certainty-equivalent": _here(
        "pac.model_based:certainty_equivalent",
        "plays the optimal policy of the estimated MDP, in which unplayed pairs have the value H",
    ),
    "q-learning": _here(
        "q.q_learning", "runs epsilon-greedy Q-learning, the usual baseline, which has no regret guarantee"
    ),
    "ravi-ucb/known": _here(
        "ravi_ucb.ravi_ucb:known_kernel",
        "runs RAVI-UCB with the true kernel and no bonus, which shows what its planning alone costs",
        oracle=True,
    ),
    "uniform": _here(
        "fixed:uniform",
        "plays every action with equal probability; a learner should have less regret than this",
        criteria=ALL,
    ),
    "optimum": _here(
        "fixed:optimum",
        "plays an optimal policy of the true kernel, the best that any learner can reach",
        oracle=True,
        criteria=ALL,
    ),
}

# From the id of any learner NAME, NAME/WRAPPER; those above have a form of their own.
WRAPPERS = {
    "unknown-rewards": _here("wrappers:unknown_rewards", "runs the learner on estimates of the rewards"),
    "doubling": _here("wrappers:doubling", "restarts the learner in phases of doubling length, when T is unknown"),
}


def knows_the_kernel(text: str) -> bool:
    """Whether the learner of an id is given the MDP itself, and so is no rival of those that must learn its kernel."""
    known = LEARNERS.get(text.split(",")[0])
    return known is not None and known.oracle
