"""Which learners come with the library, and under which ids? Each is loaded when it is asked for."""

from typing import NamedTuple


class Known(NamedTuple):
    """A learner, or a world, by its id."""

    module: str
    function: str
    summary: str
    oracle: bool = False  # it is given the MDP itself, not the problem


def _here(home: str, summary: str, oracle: bool = False) -> Known:
    """A learner of this package: home is module:function, or module where the function has its name."""
    module, _, function = home.partition(":")
    return Known(f"{__name__}.{module}", function or module.rpartition(".")[2], summary, oracle)


LEARNERS = {
    "ravi-ucb": _here("ravi_ucb.ravi_ucb:tabular", "RAVI-UCB for tabular MDPs (Algorithm 2)"),
    "ravi-ucb/mixture": _here("ravi_ucb.ravi_ucb:linear_mixture", "RAVI-UCB for linear mixture MDPs (Algorithm 3)"),
    "ravi-ucb/mixture-sampled": _here(
        "ravi_ucb.sampled:mixture_sampled", "RAVI-UCB for linear mixtures, phi from sampled successors"
    ),
    "ravi-ucb+": _here("ravi_ucb.plus:tabular", "RAVI-UCB with what keeps its guarantee, tabular"),
    "ravi-ucb+/mixture": _here(
        "ravi_ucb.plus:linear_mixture", "RAVI-UCB with what keeps its guarantee, linear mixtures"
    ),
    "ravi-ucb/unknown-rewards": _here("ravi_ucb.unknown_rewards:tabular", "RAVI-UCB that learns its rewards, tabular"),
    "ravi-ucb+/unknown-rewards": _here("ravi_ucb.unknown_rewards:plus", "RAVI-UCB+ that learns its rewards, tabular"),
    "ravi-ucb/doubling": _here("ravi_ucb.doubling:tabular", "RAVI-UCB that is not told T, tabular"),
    "ravi-ucb/mixture/doubling": _here(
        "ravi_ucb.doubling:linear_mixture", "RAVI-UCB that is not told T, linear mixtures"
    ),
    "ravi-ucb+/doubling": _here("ravi_ucb.doubling:plus", "RAVI-UCB+ that is not told T, tabular"),
    "ravi-ucb+/mixture/doubling": _here(
        "ravi_ucb.doubling:plus_linear_mixture", "RAVI-UCB+ that is not told T, linear mixtures"
    ),
    "ravi-ucb/linear": _here("ravi_ucb.linear:ravi_ucb_linear", "RAVI-UCB for linear MDPs; a proof for finite X only"),
    "ravi-kl": _here("ravi_kl.ravi_kl:tabular", "RAVI with sets of kernels in place of bonuses, tabular"),
    "ravi-kl/mixture": _here(
        "ravi_kl.mixture:linear_mixture", "RAVI-KL for linear mixtures: likely weights of d kernels"
    ),
    "ravi-kl/unknown-rewards": _here("ravi_kl.ravi_kl:unknown_rewards", "RAVI-KL that learns its rewards, tabular"),
    "ucrl2": _here("ucrl.ucrl2", "UCRL2: optimism over L1 balls"),
    "ucrl2b": _here("ucrl.ucrl2b", "UCRL2B: optimism over Bernstein boxes"),
    "kl-ucrl": _here("ucrl.kl_ucrl", "KL-UCRL: optimism over relative-entropy balls"),
    "scal": _here("ucrl.scal", "SCAL: UCRL2B under a bound on the span"),
    "scal+": _here("ucrl.scal_plus", "SCAL+: a bonus under a bound on the span"),
    "r-max": _here("pac.r_max", "R-MAX: what was not played m times is worth H"),
    "mbie": _here("pac.mbie", "MBIE: discounted optimism over L1 balls"),
    "mbie-eb": _here("pac.mbie_eb", "MBIE-EB: a bonus beta / sqrt(n)"),
    "ucbvi-gamma": _here("pac.ucbvi_gamma", "UCBVI-gamma: Bernstein bonuses at every step"),
    "psrl": _here("posterior.psrl", "PSRL: the optimal policy of a posterior sample"),
    "psrl/mixture": _here("posterior.mixture:linear_mixture", "PSRL on theta: posterior sampling for linear mixtures"),
    "psrl/pooled": _here("posterior.psrl_pooled", "PSRL whose prior is learned from all pairs"),
    "delayed-q": _here("q.delayed_q", "Delayed Q-learning: updates of m plays at a time"),
    "ucb-q": _here("q.ucb_q", "Q-learning with UCB (Dong, Wang, Chen, Wang)"),
    "liu-su": _here("contrib.liu_su", "double Q-learning with UCB (Liu and Su; a reconstruction)"),
    "md-mpi": _here("regularised.md_mpi", "MD-MPI with P_hat: RAVI-UCB with m sweeps per policy"),
    "politex": _here("regularised.politex", "POLITEX: exponential weights on sums of estimated Q"),
    "npg": _here("regularised.npg", "optimistic natural policy gradient"),
    "mdp-e": _here("contrib.mdp_e", "MDP-E with P_hat: an expert per state, fed with Q"),
    "o-reps": _here("contrib.o_reps", "O-REPS with P_hat: mirror descent on occupancies"),
    "uclk": _here("mixture.uclk", "UCLK: the best of an ellipsoid of kernels, planned to the end"),
    "uclk+": _here("mixture.uclk_plus", "UCLK+: UCLK with variance weights"),
    "uclk-c": _here("mixture.uclk_c", "UCLK-C: UCLK+ on centred values"),
    "threshold": _here("mixture.known_pairs:threshold", "known and unknown pairs of a mixture of simulators"),
    "ucrl-vtr": _here("mixture.ucrl_vtr", "UCRL-VTR: optimistic backward induction on a mixture"),
    "oppo": _here("regularised.oppo", "OPPO: mirror steps by stage, optimistic evaluation on a mixture"),
    "lsvi-ucb": _here("linear.lsvi_ucb", "LSVI-UCB: least squares with an elliptic bonus"),
    "olsvi-fh": _here("linear.olsvi_fh", "OLSVI.FH: LSVI-UCB on blocks of plays"),
    "gamma-lscvi-ucb": _here("linear.gamma_lscvi_ucb", "gamma-LSCVI-UCB: least squares, clipped to a span"),
    "rlsvi": _here("linear.rlsvi", "RLSVI: noise in the weights instead of a bonus"),
    "fixed-point-lsvi": _here("linear.fixed_point_lsvi", "least squares iterated to a fixed point (Vial et al.)"),
    "fopo": _here("linear.fopo", "FOPO: the largest gain that least squares allow; small problems"),
    "mdp-exp2": _here("regularised.mdp_exp2", "MDP-EXP2: exponential weights on least-squares returns"),
    "rmax-ravi-ucb": _here("contrib.rmax_ravi_ucb", "RMAX-RAVI-UCB: heaven where little is known (a reconstruction)"),
    "certainty-equivalent": _here("pac.certainty_equivalent", "the optimal policy of P_hat; H where unplayed"),
    "q-learning": _here("q.q_learning", "epsilon-greedy Q-learning"),
    "ravi-ucb/known": _here(
        "ravi_ucb.ravi_ucb:known_kernel", "RAVI-UCB given P, without bonus: its planning alone", oracle=True
    ),
    "uniform": _here("fixed:uniform", "the uniform policy: what a learner must beat"),
    "optimum": _here("fixed:optimum", "an optimal policy, which knows P: the other end", oracle=True),
}
