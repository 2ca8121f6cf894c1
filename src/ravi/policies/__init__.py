"""What did a learner leave behind, and what is it worth? A policy in a file, played and evaluated."""

from ravi.policies.evaluation import Evaluation, evaluate
from ravi.policies.playing import Play, play
from ravi.policies.policy import Policy

__all__ = ["Evaluation", "Play", "Policy", "evaluate", "play"]
