"""A policy in a file: asked for actions, played and evaluated."""

from ravi.live.policies.evaluation import Evaluation, evaluate
from ravi.live.policies.playing import Episode, Play, play
from ravi.live.policies.policy import Policy

load_policy = Policy.load

__all__ = ["Episode", "Evaluation", "Play", "Policy", "evaluate", "load_policy", "play"]
