"""How does a model of another package become an MDP? One file for each format; all give an `Imported`, with labels."""

from ravi.importers.bsuite import bsuite
from ravi.importers.colosseum import colosseum, tables
from ravi.importers.files import read
from ravi.importers.imported import Imported
from ravi.importers.mdptoolbox import mdptoolbox
from ravi.importers.plays import Batch, plays
from ravi.importers.pomdp import pomdp
from ravi.importers.prism import prism
from ravi.importers.quantecon import quantecon
from ravi.importers.table import table

__all__ = [
    "Batch", "Imported", "bsuite", "colosseum", "mdptoolbox", "plays", "pomdp", "prism", "quantecon", "read", "table",
    "tables",
]  # fmt: skip
