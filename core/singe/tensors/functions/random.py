"""PyTorch's functions that draw by tensors; the others are in random.py, beside those that take a key."""

from __future__ import annotations

from typing import Any

from ...dtypes import dtype as dtype_of
from ...dtypes import float32
from ...errors import DTypeError, InputError
from ...ir.scalar import Number
from ...ops import ROWS
from ...runtime.device import Device
from ...shapes import broadcast, number
from ..argument_errors import check_functions
from ..calls import apply_row
from ..default_keys import next_key
from ..methods.attach import accept_torch_names
from ..nodes.promotion import common_type
from ..nodes.shaping import made_shape
from ..tensor import Tensor


@accept_torch_names
def normal(
    mean: Tensor | Number = 0.0, std: Tensor | Number = 1.0, shape: Any = None, *, dtype: Any = None, device: str | Device | None = None
) -> Tensor:  # fmt: skip
    """Numbers of normal distributions, with the next key: one for each element of mean or std where these are tensors, otherwise
    of a shape: normal(0, 1, (2, 3)). With a key of its own: singe.random.normal(key, shape, mean, std)."""
    given = [x for x in (mean, std) if isinstance(x, Tensor)]
    if given and shape is not None:
        raise InputError("normal: got a shape beside a tensor of means or deviations, whose shape counts; leave it out")
    if not given and shape is None:
        raise InputError("normal: got numbers and no shape, expected one, as in normal(0, 1, (2, 3))")
    for x, name in ((mean, "mean"), (std, "std")):
        if not isinstance(x, Tensor):
            number(x, "normal", name)
    if not isinstance(std, Tensor) and std < 0:  # pyright: ignore[reportOperatorIssue]
        raise InputError(f"normal: std is {std}, expected no negative number")
    sizes = broadcast([x.shape for x in given], "normal") if given else made_shape(shape, "normal")
    on = device if device is not None or not given else given[0].device
    drawn = apply_row(ROWS["random_normal"], (next_key("normal", on),), shape=sizes)
    kind = dtype_of(dtype) if dtype is not None else common_type(given) if given else float32
    if not kind.is_float:
        raise DTypeError(f"normal: got {kind}, expected a floating-point dtype")
    return (drawn * std + mean).cast(kind)


check_functions(globals())
