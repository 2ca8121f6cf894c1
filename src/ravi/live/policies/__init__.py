"""What did a learner leave behind, and what is it worth? A policy in a file, asked, played and evaluated."""

from ravi.live.policies.episodes import Episode
from ravi.live.policies.evaluation import Evaluation, evaluate
from ravi.live.policies.playing import Play, play
from ravi.live.policies.policy import Policy

load_policy = Policy.load

__all__ = ["Episode", "Evaluation", "Play", "Policy", "evaluate", "load_policy", "play"]
