"""The rows: every op, declared once. ROWS is the open table; README.md says how to add to it."""

from . import control, elementwise, folds, movement, products, sizes, whole  # noqa: F401 (each registers its rows)
from ._row import ROWS as ROWS
from ._row import SIZES as SIZES
from ._row import Composite as Composite
from ._row import Elementwise as Elementwise
from ._row import Folds as Folds
from ._row import Nest as Nest
from ._row import Opaque as Opaque
from ._row import Region as Region
from ._row import Result as Result
from ._row import Row as Row
from ._row import RowBuilder as RowBuilder
from ._row import Running as Running
from ._row import Shaped as Shaped
from ._row import Update as Update
from ._row import View as View
from ._row import Wgsl as Wgsl
from ._row import as_dtype as as_dtype
from ._row import derivative_row as derivative_row
from ._row import elementwise_vjp as elementwise_vjp
from ._row import find_row as find_row
from ._row import narrow as narrow
from ._row import register as register
from ._row import without_sizes as without_sizes
