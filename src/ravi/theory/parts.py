"""What is a bound made of? Four parts that add up to its total."""

from typing import NamedTuple


class Bound(NamedTuple):
    total: float  # first, so that bounds compare by it
    bonus: float  # what exploration costs
    optimisation: float  # what planning in small steps costs
    boundary: float  # what the two ends of the telescoping sum cost
    failure: float  # what steps with invalid bonuses cost

    def __float__(self) -> float:
        return self.total


def bound(*, bonus: float, optimisation: float, boundary: float, failure: float = 0.0) -> Bound:
    return Bound(bonus + optimisation + boundary + failure, bonus, optimisation, boundary, failure)
