"""Shapes: tuples of dimensions; a dimension is an int or a symbolic Size.

Whether two dimensions are `same` may depend on the sizes: then a run checks it, or SizeNeeded says which sizes must be numbers.
"""

from .checks import Checks as Checks
from .checks import deferring as deferring
from .checks import differ as differ
from .checks import holds as holds
from .checks import keeping as keeping
from .checks import repeating as repeating
from .checks import repetitions as repetitions
from .checks import require as require
from .checks import same as same
from .needed import Needed as Needed
from .shape import MAX_ELEMENTS as MAX_ELEMENTS
from .shape import MAX_RANK as MAX_RANK
from .shape import Shape as Shape
from .shape import at_most_one as at_most_one
from .shape import axes_of as axes_of
from .shape import axis_of as axis_of
from .shape import broadcast as broadcast
from .shape import bytes_text as bytes_text
from .shape import number as number
from .shape import product as product
from .shape import show as show
from .shape import strides as strides
from .shape import whole as whole
from .sizes import Dim as Dim
from .sizes import Size as Size
from .sizes import at_least as at_least
from .sizes import ceildiv as ceildiv
from .sizes import dim_max as dim_max
from .sizes import dim_min as dim_min
from .sizes import divides as divides
from .sizes import equal as equal
from .sizes import floordiv as floordiv
from .sizes import plain as plain
from .sizes import remainder as remainder
from .sizes import size as size
from .sizes import symbols as symbols
from .traced import TracedSize as TracedSize
from .traced import same_form as same_form
from .traced import traced as traced
from .values import COMBINED as COMBINED
from .values import evaluate as evaluate
from .values import guessed as guessed
from .values import known as known
from .values import show_sizes as show_sizes
from .values import size_name as size_name
