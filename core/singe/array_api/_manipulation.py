"""Functions that move elements, change shapes, or select by indices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..errors import InputError, ShapeError
from ..shapes import axis_of, broadcast, same_form, show
from ..tensors.argument_errors import check_functions
from ..tensors.functions import creation
from ..tensors.functions.combining import broadcast_tensors
from ..tensors.nodes.shaping import squeezed
from ..tensors.tensor import Tensor
from ._types import result_type


def broadcast_arrays(*arrays: Tensor) -> list[Tensor]:
    """The arrays, repeated to their common shape."""
    return list(broadcast_tensors(*arrays))


def broadcast_to(x: Tensor, /, shape: Sequence[int]) -> Tensor:
    """The array repeated to a shape."""
    if not same_form(broadcast([x.shape, tuple(shape)]), tuple(shape)):
        raise ShapeError(
            f"broadcast_to: {show(x.shape)} does not broadcast to {show(tuple(shape))}; expected axes of length 1, or of the new length"
        )
    return x.broadcast_to(tuple(shape))


def concat(arrays: Sequence[Tensor], /, *, axis: int | None = 0) -> Tensor:
    """The arrays one after another along an axis; flat, if it is None."""
    kind = result_type(*arrays)
    return creation.concat([(x.flatten() if axis is None else x).cast(kind) for x in arrays], axis or 0)


def expand_dims(x: Tensor, /, axis: int = 0) -> Tensor:
    """The array with a new axis of length 1."""
    try:
        return x.unsqueeze(axis)
    except ShapeError as e:
        raise IndexError(str(e)) from None


def flip(x: Tensor, /, *, axis: int | tuple[int, ...] | None = None) -> Tensor:
    """The elements in reverse order along axes."""
    return x.flip(axis)


def moveaxis(x: Tensor, source: int | Sequence[int], destination: int | Sequence[int], /) -> Tensor:
    """The array with some axes at other places."""
    return x.movedim(source, destination)


def permute_dims(x: Tensor, /, axes: tuple[int, ...]) -> Tensor:
    """The array with its axes in another order."""
    return x.permute(tuple(axes))


def repeat(x: Tensor, repeats: int | Tensor, /, *, axis: int | None = None) -> Tensor:
    """Each element several times along an axis."""
    return x.repeat_interleave(repeats, axis)


def reshape(x: Tensor, /, shape: Sequence[Any], *, copy: bool | None = None) -> Tensor:
    """`copy` has no meaning: an array does not change."""
    return x.reshape(tuple(shape))


def roll(x: Tensor, /, shift: Any, *, axis: Any = None) -> Tensor:
    """The elements moved along axes; those that leave at the end come in at the start."""
    return x.roll(shift, axis)


def squeeze(x: Tensor, /, axis: int | tuple[int, ...]) -> Tensor:
    """The array without axes of length 1."""
    return x.reshape(squeezed(x.shape, axis))


def stack(arrays: Sequence[Tensor], /, *, axis: int = 0) -> Tensor:
    """Arrays of one shape along a new axis."""
    kind = result_type(*arrays)
    return creation.stack([x.cast(kind) for x in arrays], axis_of(axis, arrays[0].ndim + 1, "stack"))


def tile(x: Tensor, repetitions: tuple[int, ...], /) -> Tensor:
    """The array several times along each axis."""
    return x.tile(tuple(repetitions))


def unstack(x: Tensor, /, *, axis: int = 0) -> tuple[Tensor, ...]:
    """The parts of an array along an axis."""
    return x.unbind(axis)


def take(x: Tensor, indices: Tensor, /, *, axis: int | None = None) -> Tensor:
    """The slices along an axis at the given indices."""
    if axis is None:
        if x.ndim != 1:
            raise InputError(f"take: the array has {x.ndim} axes; name one")
        axis = 0
    return x.take(indices, axis)


def take_along_axis(x: Tensor, indices: Tensor, /, *, axis: int = -1) -> Tensor:
    """For each index the element at it along an axis; the other axes broadcast."""
    return x.take_along_dim(indices, axis)


check_functions(globals())
