"""Statistics over seeds: intervals, comparisons, rates of growth, numbers of seeds; the unit is the seed."""

from ravi.statistics.comparisons import Best, PairedDifference, Profiles, best, compare, normalised, profiles
from ravi.statistics.intervals import Interval, band, interval, stratified
from ravi.statistics.rates import THEORY, Exponent, Measured, Rate, growth, rates, scaling
from ravi.statistics.scores import Scores, from_table, scores
from ravi.statistics.seeds import Needed, Verdict, enough, seeds_needed
from ravi.statistics.winning import improvement, improvements

__all__ = [
    "THEORY", "Best", "Exponent", "Interval", "Measured", "Needed", "PairedDifference", "Profiles", "Rate", "Scores",
    "Verdict", "band", "best", "compare", "enough", "from_table", "growth", "improvement", "improvements", "interval",
    "normalised", "profiles", "rates", "scaling", "scores", "seeds_needed", "stratified",
]  # fmt: skip
