"""Models of other packages as MDPs: one file for each kind of source; all give an `Imported`, with labels."""

from ravi.importers.bsuite import bsuite
from ravi.importers.files import read
from ravi.importers.imported import Imported
from ravi.importers.matrices import colosseum, mdptoolbox, quantecon, tables
from ravi.importers.plays import Batch, plays
from ravi.importers.pomdp import pomdp
from ravi.importers.prism import prism
from ravi.importers.table import table

__all__ = [
    "Batch", "Imported", "bsuite", "colosseum", "mdptoolbox", "plays", "pomdp", "prism", "quantecon", "read", "table",
    "tables",
]  # fmt: skip
