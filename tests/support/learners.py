"""The learners that tests go through: every id, as it comes, and with options under which it moves in 400 plays."""

from ravi import ids
from ravi.validation import InputError

OPTIONS = {
    "ravi-ucb": ["scale=0.003,step_scale=30"],
    "ravi-ucb/mixture": ["scale=0.02,step_scale=30"],
    "ravi-ucb/mixture-sampled": ["scale=0.02,step_scale=30,samples=2", "scale=0.02,step_scale=30,samples=2,centre=on"],
    "ravi-ucb+": ["scale=0.1,inner=3", "scale=0.1,inner=2,fresh=off,centre=off,span=off,clip=off,gamma=off"],
    "ravi-ucb+/mixture": [
        "scale=0.1,inner=3",
        "scale=0.1,inner=2,fresh=off,span=off,radius=off",
        "scale=0.01,inner=2,weights=variance",
    ],
    "ravi-ucb/linear": ["scale=0.01,step_scale=30"],
    "ravi-ucb/unknown-rewards": ["scale=0.003,step_scale=30,reward_scale=0.3", "rewards=deterministic,scale=0.003"],
    "ravi-ucb+/unknown-rewards": ["scale=0.1,inner=3,reward_scale=0.3"],
    "ravi-ucb/doubling": ["scale=0.003,step_scale=30", "first=50,scale=0.003,step_scale=30"],
    "ravi-ucb/mixture/doubling": ["scale=0.02,step_scale=30,first=20"],
    "ravi-ucb+/doubling": ["scale=0.1,inner=3,first=20"],
    "ravi-ucb+/mixture/doubling": ["scale=0.1,inner=3,first=20"],
    "ravi-kl": [
        "plan=greedy",
        "plan=mirror,inner=3",
        "support=off,scale=0.3,slack=0.1,candidate=posterior",
        "plan=mirror,fresh=off,inner=1",
    ],
    "ravi-kl/mixture": ["plan=greedy", "candidate=posterior,slack=0.05"],
    "ravi-kl/unknown-rewards": [
        "plan=greedy,support=off",
        "plan=mirror,inner=2",
        "rewards=deterministic,reward_scale=0",
    ],
    "ucrl2": ["scale=0.1", "scale=0.1,mode=blind", "scale=0.1,support=on"],
    "ucrl2b": ["scale=0.1", "scale=0.1,support=on"],
    "kl-ucrl": ["scale=0.01", "scale=0.01,support=on"],
    "scal": ["scale=0.03,span=0.3", "scale=0.03,span=0.3,mode=blind"],
    "scal+": ["scale=0.02,span=0.5"],
    "r-max": ["m=3", "m=0"],
    "mbie": ["scale=0.1"],
    "mbie-eb": ["scale=0.03"],
    "ucbvi-gamma": ["scale=0.005", "scale=0.005,third_term=off"],
    "ucbvi": ["scale=0.03", "scale=0.03,bonus=hoeffding"],
    "optimistic-q": ["scale=0.01", "scale=0.01,bonus=bernstein"],
    "psrl": ["schedule=doubling", "schedule=reset,support=on"],
    "delayed-q": ["m=1"],
    "ucb-q": ["scale=0.0003"],
    "optimistic-q/average": ["scale=0.003,span=2"],
    "liu-su": ["scale=0.0003"],
    "q-learning": ["initial=optimistic"],
    "politex": ["step_scale=30"],
    "md-mpi": ["scale=0.003,step_scale=30,sweeps=3", "scale=0.003,step_scale=30,sweeps=0,evaluation=plain"],
    "npg": ["scale=0.003,step_scale=3"],
    "mdp-e": ["step_scale=10"],
    "o-reps": ["step_scale=10"],
    "ravi-ucb/known": ["step_scale=30"],
    "uclk": ["scale=0.01", "scale=0.01,inner=null-space", "scale=0.01,inner=relaxed"],
    "uclk+": ["scale=0.001"],
    "uclk-c": ["scale=0.001,span=2"],
    "threshold": ["scale=0.01"],
    "ucrl-vtr": ["scale=0.06", "scale=0.06,replan=determinant"],
    "oppo": ["scale=0.06,step_scale=30"],
    "lsvi-ucb": ["scale=0.01", "scale=0.01,replan=determinant"],
    "olsvi-fh": ["scale=0.00025"],
    "gamma-lscvi-ucb": ["scale=0.01"],
    "rlsvi": ["scale=0.1"],
    "fixed-point-lsvi": ["scale=0.0003"],
    "fopo": ["scale=0.0001"],
    "mdp-exp2": ["phase=2,step_scale=3000"],
    "rmax-ravi-ucb": ["scale=0.001,step_scale=300", "scale=0.001,step_scale=300,ascension=sigmoid"],
}


def given(criterion):
    """The learners of a criterion, with these options."""
    names = [name for name, known in ids.LEARNERS.items() if criterion in known.criteria]
    return [f"{name}{',' + option if option else ''}" for name in names for option in ["", *OPTIONS.get(name, [])]]


def takes(text, world):
    """Whether a learner can be built for a world."""
    try:
        ids.learner(text, ids.mdp(world), 40)
    except InputError:
        return False
    return True


LEARNERS = given("discounted")
EPISODIC = given("episodic")
CONTINUING = {  # options that are of the average reward
    "ravi-ucb": "scale=0.003,step_scale=30,span=2", "politex": "step_scale=10,span=2", "mdp-e": "step_scale=10,span=2",
}  # fmt: skip
AVERAGE = [*given("average"), *(f"{name},{options}" for name, options in CONTINUING.items())]
AVERAGE += ["gamma-lscvi-ucb,span=3,scale=0.01", "fopo,span=3,scale=0.0005"]
EPISODES = [f"{mdp},criterion=episodic,episode={S}" for mdp, S in (("garnet/5,3,2", 4), ("ensemble/3,6,2,2", 9))]

REFUSED = {  # by a wrapper, each with a word of why
    "unknown-rewards": dict.fromkeys(["ravi-ucb/known", "optimum"], "the MDP itself"),
    "doubling": dict.fromkeys(["ravi-ucb/known", "optimum"], "the MDP itself")
    | dict.fromkeys(
        ["ravi-kl", "ravi-kl/mixture", "ravi-kl/unknown-rewards", "psrl", "psrl/mixture", "psrl/pooled", "rlsvi",
         "certainty-equivalent", "q-learning", "uniform"],
        "does not depend on T",
    )
    | {"olsvi-fh": "shapes of its arrays"},
}  # fmt: skip
WRAPPED = [
    name for name in ids.learner_names() if name not in ids.LEARNERS
    and name.rpartition("/")[0] not in REFUSED[name.rpartition("/")[2]]
]  # fmt: skip
