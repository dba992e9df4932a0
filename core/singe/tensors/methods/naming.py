"""The method that gives a tensor's axes names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..tensor import Tensor
from .attach import method

if TYPE_CHECKING:
    from ..named.named_tensor import NamedTensor


@method
def named(x: Tensor, *names: str) -> NamedTensor:
    """The tensor with a name for each axis, by which ops check and match them: `x.named("batch", "channels")`."""
    from ..named.named_tensor import NamedTensor  # noqa: PLC0415 (it is made of Tensor's methods)

    return NamedTensor(x, names)
