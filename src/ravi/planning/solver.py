"""`ravi.solve`: V*, Q*, pi* and rho* of a known MDP, each with a certified bound on its error."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ravi import validation
from ravi.core import AnyMDP, Floats, an_mdp
from ravi.planning.bellman import deterministic
from ravi.planning.certificates import EPS, half_width, mean, tables
from ravi.planning.methods import BY_NAME, last_sweep

if TYPE_CHECKING:
    from ravi.display.style import Drawn

METHODS = tuple(BY_NAME)
REST = 1.5  # of `rounding`: what methods stop at where it is most of the error


@dataclass(frozen=True, eq=False, repr=False)
class Solution:
    """V*, Q*, pi* and rho*, each with a bound on its error that rounding does not break.

    Attributes
    ----------
    V
        V*(x), of shape (X,).
    Q
        Q*(x, a), of shape (X, A).
    policy
        Pi*(a | x), deterministic, of shape (X, A).
    optimum
        rho* = <mu*, r> = (1 - gamma) <nu_0, V*>.
    error
        At least ||V - V*|| and ||Q - Q*||, in sup norm.
    optimum_error
        At least |optimum - rho*|.
    policy_error
        At least rho* - rho(policy).
    sweeps
        The number of passes over the states, for all actions or for one policy.
    method
        The method that was asked for.
    name
        The name of the MDP.
    tol
        The bound on `error` that was asked for.
    rounding
        The part of `error` that rounding makes, whatever the method: no tolerance below it can be met.

    Examples
    --------
    >>> import ravi
    >>> best = ravi.solve(ravi.mdp("riverswim/3"))
    >>> best.policy.argmax(-1).tolist(), best.error < best.tol
    ([1, 1, 1], True)
    """

    V: Floats
    Q: Floats
    policy: Floats
    optimum: float
    error: float
    optimum_error: float
    policy_error: float
    sweeps: int
    method: str
    name: str
    tol: float
    rounding: float

    @property
    def missed(self) -> str:
        """Why `error` is above the tolerance; nothing where it is not."""
        if self.error <= self.tol:
            return ""
        if self.rounding * REST > self.tol:
            return f"tolerance {self.tol:.1g} cannot be met: rounding alone allows {self.rounding:.1e}"
        return f"tolerance {self.tol:.1g} is not met; rounding would allow it"

    def plot(self) -> Drawn:
        """V* and the policy where the states lie; needs matplotlib."""
        from ravi.display.pictures import of_policy

        return of_policy(self.name, self.policy, {"value V": self.V})

    def _repr_html_(self) -> str:  # what a notebook shows
        from ravi.display.html import of_solution

        return of_solution(self)

    def __repr__(self) -> str:
        return (
            f"<Solution by {self.method} in {self.sweeps} sweeps: "
            f"optimum {self.optimum:.12g} ± {self.optimum_error:.1g}, V and Q ± {self.error:.1g}, "
            f"policy within {self.policy_error:.1g} of optimal{'; ' * bool(self.missed)}{self.missed}>"
        )


def solve(
    mdp: AnyMDP, method: str = "modified_policy_iteration", tol: float = 1e-10, *, device: str = "cpu"
) -> Solution:
    """Solve `mdp` until ||V - V*|| <= tol, or as closely as float64 can tell.

    `method` is one of modified_policy_iteration, policy_iteration, value_iteration and linear_program. Whatever the
    method, its last sweep certifies the answer: with W what it swept, delta = T W - W and H = 1 / (1 - gamma),

        error = H (gamma (max delta - min delta) / 2 + rho),
        rho   = (2^-52 (B + 12) + the largest |row sum - 1|) (1 + max |W|),

    where rho bounds the rounding of the sweep (see `ravi.planning.certificates`) and W is V* less its mid-range. An
    error above `tol` is reported, not hidden: `missed` says that `rounding`, H rho, allows no better (or that a linear
    program stopped there). Methods stop where H rho is two thirds of the error. device: "cpu", or "gpu" for the two
    iterations on values (docs/guides/gpu.md).

    Parameters
    ----------
    mdp
        The MDP to solve, its id or its file.
    method
        One of the four above.
    tol
        The error of V that is aimed at.
    device
        "cpu" or "gpu".

    Returns
    -------
    Solution
        V*, Q*, a deterministic optimal policy, rho*, and a certified bound on the error of each. In the average reward
        an `AverageSolution`: gain, bias and policy. In episodes an `EpisodicSolution`: V, Q and policy by stage.

    Examples
    --------
    >>> import ravi
    >>> ravi.solve(ravi.mdp("riverswim/6"))
    <Solution by modified_policy_iteration in ... sweeps: optimum 0.2..., V and Q ± ..., policy within ... of optimal>
    """
    mdp = an_mdp(mdp)
    tol = validation.positive(tol, "tol")
    validation.one_of(method, METHODS, "method")
    validation.one_of(device, validation.DEVICES, "device")
    if mdp.criterion != "discounted":
        if (method, device) != (METHODS[0], "cpu"):
            raise validation.InputError(
                f"{mdp.name} is {validation.OF_CRITERION[mdp.criterion]}: there is one method, on the CPU"
            )
        found: Any  # what the criterion has
        if mdp.criterion == "episodic":
            from ravi.planning.episodes import solve_episodes

            found = solve_episodes(mdp)
        else:
            from ravi.planning.average import solve_average

            found = solve_average(mdp, tol)
        return found
    arrays = tables(mdp)
    if device == "gpu":
        from ravi.planning.on_gpu import last_sweep_on_gpu

        sweep = last_sweep_on_gpu(arrays, tol, method)
    else:
        sweep = last_sweep(arrays, tol, method)
    gamma, H = mdp.discount, mdp.horizon
    low, high, size = float(sweep.low), float(sweep.high), float(sweep.size)  # of Python, whatever ran the sweeps
    shift = gamma * H * (low + high) / 2  # to the middle of MacQueen's bounds
    error = half_width(low, high, size, gamma, arrays.grain)
    V = sweep.TW + shift
    return Solution(
        V=V, Q=sweep.Q + shift, policy=deterministic(sweep.greedy, mdp.actions),
        optimum=(1 - gamma) * float(mean(mdp.initial, V)), error=error, optimum_error=(1 - gamma) * error + 4 * EPS,
        policy_error=2 * (1 - gamma) * error, sweeps=sweep.sweeps, method=method, name=mdp.name, tol=tol,
        rounding=half_width(0.0, 0.0, size, gamma, arrays.grain),
    )  # fmt: skip
