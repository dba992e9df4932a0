"""Ready models by name: `sg.load("zoo:blazeface")`, `singe zoo` for a table of all.

`models` has the rows by name, `fetch` gives the path of a model's file in the cache, `clear` removes files from there.
"""

from .files.zoo import MODELS as models
from .files.zoo import ZooFile, ZooModel, clear, fetch, is_here
from .tracebacks import shorten_all as _shorten_all

__all__ = ["ZooFile", "ZooModel", "clear", "fetch", "is_here", "models"]

_shorten_all(globals())
