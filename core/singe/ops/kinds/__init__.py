"""What a row is: the one declaration of an op. Its kinds, one file for each group of them:

  elementwise.py  Elementwise  a scalar expression, applied to every element after broadcasting.
  structured.py   View         every output element is chosen or computed from input elements by its coordinates.
                  Nest         every output element folds over inner loops (reductions, pooling, contraction).
                  Composite    an op composed of other rows.
  opaque.py       Opaque       an op that is not a loop nest (sort, top-k, nonzero): a function of whole arrays.
                  Update       writes part of a tensor and keeps the rest.
                  Running      a fold along an axis that keeps every step (cumulative sums).
                  Region       an op that owns Graphs (if, loop).
                  Result       one result of a node that has several.

All rows have a name and infer shapes and dtypes; most have a gradient. Rows build graphs only through the Builder
handed to them, so this package does not import Graph.
"""

from .base import ROWS as ROWS
from .base import SIZE_RESULTS as SIZE_RESULTS
from .base import WHOLE_RESULT as WHOLE_RESULT
from .base import Attrs as Attrs
from .base import Read as Read
from .base import Results as Results
from .base import Row as Row
from .base import RowBuilder as RowBuilder
from .base import Shaped as Shaped
from .base import Wgsl as Wgsl
from .base import as_dtype as as_dtype
from .base import constants_like as constants_like
from .base import matrix_transpose as matrix_transpose
from .base import register as register
from .base import sum_to as sum_to
from .elementwise import Elementwise as Elementwise
from .elementwise import derivative_row as derivative_row
from .elementwise import elementwise_vjp as elementwise_vjp
from .elementwise import find_row as find_row
from .elementwise import narrow as narrow
from .opaque import GIVES_SHAPES as GIVES_SHAPES
from .opaque import OPEN_RESULT as OPEN_RESULT
from .opaque import SIZES as SIZES
from .opaque import Opaque as Opaque
from .opaque import Region as Region
from .opaque import Result as Result
from .opaque import Running as Running
from .opaque import Update as Update
from .opaque import without_sizes as without_sizes
from .structured import Composite as Composite
from .structured import Folds as Folds
from .structured import Nest as Nest
from .structured import View as View
