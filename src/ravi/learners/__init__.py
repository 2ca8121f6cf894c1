"""Which learners come with the library, and under which ids? Each is loaded when it is asked for."""

from __future__ import annotations

from typing import NamedTuple


class Known(NamedTuple):
    """A learner, or a world, by its id."""

    module: str
    function: str
    summary: str
    oracle: bool = False  # it is given the MDP itself, not the problem


LEARNERS = {
    "ravi-ucb": Known("ravi.learners.ravi_ucb.ravi_ucb", "tabular", "RAVI-UCB for tabular MDPs (Algorithm 2)"),
    "ravi-ucb/mixture": Known(
        "ravi.learners.ravi_ucb.ravi_ucb", "linear_mixture", "RAVI-UCB for linear mixture MDPs (Algorithm 3)"
    ),
    "ravi-ucb/mixture-sampled": Known(
        "ravi.learners.ravi_ucb.sampled", "mixture_sampled", "RAVI-UCB for linear mixtures, phi from sampled successors"
    ),
    "ravi-ucb+": Known("ravi.learners.ravi_ucb.plus", "tabular", "RAVI-UCB with what keeps its guarantee, tabular"),
    "ravi-ucb+/mixture": Known(
        "ravi.learners.ravi_ucb.plus", "linear_mixture", "RAVI-UCB with what keeps its guarantee, linear mixtures"
    ),
    "ravi-ucb/unknown-rewards": Known(
        "ravi.learners.ravi_ucb.unknown_rewards", "tabular", "RAVI-UCB that learns its rewards, tabular"
    ),
    "ravi-ucb+/unknown-rewards": Known(
        "ravi.learners.ravi_ucb.unknown_rewards", "plus", "RAVI-UCB+ that learns its rewards, tabular"
    ),
    "ravi-ucb/doubling": Known("ravi.learners.ravi_ucb.doubling", "tabular", "RAVI-UCB that is not told T, tabular"),
    "ravi-ucb/mixture/doubling": Known(
        "ravi.learners.ravi_ucb.doubling", "linear_mixture", "RAVI-UCB that is not told T, linear mixtures"
    ),
    "ravi-ucb+/doubling": Known("ravi.learners.ravi_ucb.doubling", "plus", "RAVI-UCB+ that is not told T, tabular"),
    "ravi-ucb+/mixture/doubling": Known(
        "ravi.learners.ravi_ucb.doubling", "plus_linear_mixture", "RAVI-UCB+ that is not told T, linear mixtures"
    ),
    "ravi-ucb/linear": Known(
        "ravi.learners.ravi_ucb.linear", "ravi_ucb_linear", "RAVI-UCB for linear MDPs; a proof for finite X only"
    ),
    "ravi-kl": Known(
        "ravi.learners.ravi_kl.ravi_kl", "tabular", "RAVI with sets of kernels in place of bonuses, tabular"
    ),
    "ravi-kl/mixture": Known(
        "ravi.learners.ravi_kl.mixture",
        "linear_mixture",
        "RAVI-KL for linear mixtures: likely weights of d kernels",
    ),
    "ravi-kl/unknown-rewards": Known(
        "ravi.learners.ravi_kl.ravi_kl", "unknown_rewards", "RAVI-KL that learns its rewards, tabular"
    ),
    "ucrl2": Known("ravi.learners.ucrl.ucrl2", "ucrl2", "UCRL2: optimism over L1 balls"),
    "ucrl2b": Known("ravi.learners.ucrl.ucrl2b", "ucrl2b", "UCRL2B: optimism over Bernstein boxes"),
    "kl-ucrl": Known("ravi.learners.ucrl.kl_ucrl", "kl_ucrl", "KL-UCRL: optimism over relative-entropy balls"),
    "scal": Known("ravi.learners.ucrl.scal", "scal", "SCAL: UCRL2B under a bound on the span"),
    "scal+": Known("ravi.learners.ucrl.scal_plus", "scal_plus", "SCAL+: a bonus under a bound on the span"),
    "r-max": Known("ravi.learners.pac.r_max", "r_max", "R-MAX: what was not played m times is worth H"),
    "mbie": Known("ravi.learners.pac.mbie", "mbie", "MBIE: discounted optimism over L1 balls"),
    "mbie-eb": Known("ravi.learners.pac.mbie_eb", "mbie_eb", "MBIE-EB: a bonus beta / sqrt(n)"),
    "ucbvi-gamma": Known(
        "ravi.learners.pac.ucbvi_gamma", "ucbvi_gamma", "UCBVI-gamma: Bernstein bonuses at every step"
    ),
    "psrl": Known("ravi.learners.posterior.psrl", "psrl", "PSRL: the optimal policy of a posterior sample"),
    "psrl/mixture": Known(
        "ravi.learners.posterior.mixture", "linear_mixture", "PSRL on theta: posterior sampling for linear mixtures"
    ),
    "psrl/pooled": Known(
        "ravi.learners.posterior.psrl_pooled", "psrl_pooled", "PSRL whose prior is learned from all pairs"
    ),
    "delayed-q": Known("ravi.learners.q.delayed_q", "delayed_q", "Delayed Q-learning: updates of m plays at a time"),
    "ucb-q": Known("ravi.learners.q.ucb_q", "ucb_q", "Q-learning with UCB (Dong, Wang, Chen, Wang)"),
    "liu-su": Known(
        "ravi.learners.contrib.liu_su", "liu_su", "double Q-learning with UCB (Liu and Su; a reconstruction)"
    ),
    "md-mpi": Known(
        "ravi.learners.regularised.md_mpi", "md_mpi", "MD-MPI with P_hat: RAVI-UCB with m sweeps per policy"
    ),
    "politex": Known(
        "ravi.learners.regularised.politex", "politex", "POLITEX: exponential weights on sums of estimated Q"
    ),
    "npg": Known("ravi.learners.regularised.npg", "npg", "optimistic natural policy gradient"),
    "mdp-e": Known("ravi.learners.contrib.mdp_e", "mdp_e", "MDP-E with P_hat: an expert per state, fed with Q"),
    "o-reps": Known("ravi.learners.contrib.o_reps", "o_reps", "O-REPS with P_hat: mirror descent on occupancies"),
    "uclk": Known(
        "ravi.learners.mixture.uclk", "uclk", "UCLK: the best of an ellipsoid of kernels, planned to the end"
    ),
    "uclk+": Known("ravi.learners.mixture.uclk_plus", "uclk_plus", "UCLK+: UCLK with variance weights"),
    "uclk-c": Known("ravi.learners.mixture.uclk_c", "uclk_c", "UCLK-C: UCLK+ on centred values"),
    "threshold": Known(
        "ravi.learners.mixture.known_pairs", "threshold", "known and unknown pairs of a mixture of simulators"
    ),
    "ucrl-vtr": Known(
        "ravi.learners.mixture.ucrl_vtr", "ucrl_vtr", "UCRL-VTR: optimistic backward induction on a mixture"
    ),
    "oppo": Known(
        "ravi.learners.regularised.oppo", "oppo", "OPPO: mirror steps by stage, optimistic evaluation on a mixture"
    ),
    "lsvi-ucb": Known("ravi.learners.linear.lsvi_ucb", "lsvi_ucb", "LSVI-UCB: least squares with an elliptic bonus"),
    "olsvi-fh": Known("ravi.learners.linear.olsvi_fh", "olsvi_fh", "OLSVI.FH: LSVI-UCB on blocks of plays"),
    "gamma-lscvi-ucb": Known(
        "ravi.learners.linear.gamma_lscvi_ucb", "gamma_lscvi_ucb", "gamma-LSCVI-UCB: least squares, clipped to a span"
    ),
    "rlsvi": Known("ravi.learners.linear.rlsvi", "rlsvi", "RLSVI: noise in the weights instead of a bonus"),
    "fixed-point-lsvi": Known(
        "ravi.learners.linear.fixed_point_lsvi",
        "fixed_point_lsvi",
        "least squares iterated to a fixed point (Vial et al.)",
    ),
    "fopo": Known(
        "ravi.learners.linear.fopo", "fopo", "FOPO: the largest gain that least squares allow; small problems"
    ),
    "mdp-exp2": Known(
        "ravi.learners.regularised.mdp_exp2", "mdp_exp2", "MDP-EXP2: exponential weights on least-squares returns"
    ),
    "rmax-ravi-ucb": Known(
        "ravi.learners.contrib.rmax_ravi_ucb",
        "rmax_ravi_ucb",
        "RMAX-RAVI-UCB: heaven where little is known (a reconstruction)",
    ),
    "certainty-equivalent": Known(
        "ravi.learners.pac.certainty_equivalent",
        "certainty_equivalent",
        "the optimal policy of P_hat; H where unplayed",
    ),
    "q-learning": Known("ravi.learners.q.q_learning", "q_learning", "epsilon-greedy Q-learning"),
    "ravi-ucb/known": Known(
        "ravi.learners.ravi_ucb.ravi_ucb",
        "known_kernel",
        "RAVI-UCB given P, without bonus: its planning alone",
        oracle=True,
    ),
    "uniform": Known("ravi.learners.fixed", "uniform", "the uniform policy: what a learner must beat"),
    "optimum": Known("ravi.learners.fixed", "optimum", "an optimal policy, which knows P: the other end", oracle=True),
}
