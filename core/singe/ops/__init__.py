"""The rows: every op, declared once. ROWS is the open table; README.md says how to add to it."""

from . import control, elementwise, folds, movement, opaque, products, sizes  # noqa: F401 (each registers its rows)
from . import numpy as numpy
from .kinds import ROWS as ROWS
from .kinds import SIZES as SIZES
from .kinds import Composite as Composite
from .kinds import Elementwise as Elementwise
from .kinds import Folds as Folds
from .kinds import Nest as Nest
from .kinds import Opaque as Opaque
from .kinds import Region as Region
from .kinds import Result as Result
from .kinds import Row as Row
from .kinds import RowBuilder as RowBuilder
from .kinds import Running as Running
from .kinds import Shaped as Shaped
from .kinds import Update as Update
from .kinds import View as View
from .kinds import Wgsl as Wgsl
from .kinds import as_dtype as as_dtype
from .kinds import derivative_row as derivative_row
from .kinds import elementwise_vjp as elementwise_vjp
from .kinds import find_row as find_row
from .kinds import narrow as narrow
from .kinds import register as register
from .kinds import without_sizes as without_sizes
