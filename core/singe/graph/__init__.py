"""What a computation is: nodes, the Builder that makes them, Graphs of them, transformations, gradients."""

from .builder import INTERNED_BYTES as INTERNED_BYTES
from .builder import WHOLE as WHOLE
from .builder import Builder as Builder
from .gradients import gradient as gradient
from .graph import Graph as Graph
from .graph import GraphState as GraphState
from .graph import regions as regions
from .needed import Needed as Needed
from .node import Node as Node
from .node import attribute_symbols as attribute_symbols
from .node import bare as bare
from .node import contents as contents
from .node import evaluate_node as evaluate_node
from .node import leaf as leaf
from .node import postorder as postorder
from .node import symbols_of as symbols_of
from .transform import all_nodes as all_nodes
from .transform import checks_at as checks_at
from .transform import inline as inline
from .transform import rebuild as rebuild
from .transform import renamed as renamed
from .transform import sized as sized
from .transform import specialise as specialise
from .transform import spliced as spliced
from .transform import with_sizes as with_sizes
