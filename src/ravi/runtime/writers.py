"""How is a run logged elsewhere? TensorBoard and Weights & Biases, as the `callback` of `ravi.run` and `ravi.learn`.

    with TensorBoard("logs/psrl") as writer:
        run = ravi.run("psrl", "riverswim/6", 1_000_000, seeds=4, callback=writer)

A callback is any function of a `Look`. Neither package comes with ravi: who asks for one is told how to have it.
"""

from abc import ABC, abstractmethod
from os import PathLike, fspath
from types import TracebackType
from typing import Any, NamedTuple

from ravi.core import Floats, Ints
from ravi.validation import InputError


class Look(NamedTuple):
    """The current results of the seeds of a run.

    Examples
    --------
    >>> import ravi
    >>> looks = []
    >>> made = ravi.run("psrl", "riverswim/3", 100, seeds=2, callback=looks.append)
    >>> looks[-1].time
    array([100, 100])
    >>> bool((looks[-1].numbers["regret_total"] == made.regret).all())
    True
    """

    seeds: Ints  # which seeds                                     (n,)
    time: Ints  # how many steps each has made                     (n,)
    numbers: dict[str, Floats]  # of each, by what they are: `regret_total`, `gap`, `reward_total`, ...   (n,)


class _Writer(ABC):
    """Writes every number of every seed; closed at the end."""

    @abstractmethod
    def write(self, name: str, value: float, time: int) -> None:
        """A number at a time."""

    @abstractmethod
    def close(self) -> None:
        """No more is written."""

    def __call__(self, look: Look) -> None:
        for name, values in look.numbers.items():
            for seed, time, value in zip(look.seeds, look.time, values, strict=True):
                self.write(f"{name}/seed {seed}", float(value), int(time))

    def __enter__(self) -> Any:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()


class TensorBoard(_Writer):
    """Scalars in a folder, which `tensorboard --logdir` shows."""

    def __init__(self, folder: str | PathLike[str]) -> None:
        self.held = _board()(fspath(folder))

    def write(self, name: str, value: float, time: int) -> None:
        self.held.add_scalar(name, value, time)

    def close(self) -> None:
        self.held.close()


class WeightsAndBiases(_Writer):
    """Numbers of one run there, over the steps `t`; `options` are those of `wandb.init`."""

    def __init__(self, project: str, **options: Any) -> None:
        try:
            import wandb
        except ImportError:
            raise InputError("WeightsAndBiases needs wandb: pip install wandb") from None
        self.held = wandb.init(project=project, **options)
        self.held.define_metric("*", step_metric="t")

    def write(self, name: str, value: float, time: int) -> None:
        self.held.log({"t": time, name: value})

    def close(self) -> None:
        self.held.finish()


def _board() -> Any:
    """The writer of TensorBoard files: that of tensorboardX, or of PyTorch."""
    try:
        from tensorboardX import SummaryWriter
    except ImportError:
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError:
            raise InputError("TensorBoard needs tensorboardX: pip install tensorboardX") from None
    return SummaryWriter
