"""There are no functions beside the methods and layers: importing this says what to write, as for other names of PyTorch."""

from typing import Final

from ..hints import INSTEAD

_INSTEAD: Final = INSTEAD["singe.nn"]["functional"]
raise ImportError(f"there is no 'singe.nn.functional'; in its place: {_INSTEAD}", name=__name__)
