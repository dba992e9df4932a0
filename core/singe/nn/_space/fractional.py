"""Pooling over windows at random distances: (batch, channels, …space), where the batch may be left out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from ...dtypes import float32
from ...errors import InputError, ShapeError
from ...runtime.random_keys import Rng
from ...shapes import Shape, same_form, show
from ...tensors.functions.creation import arange, as_tensor, where
from ...tensors.nodes.spatial import Ints, per_axis
from ...tensors.tensor import Tensor
from .._random import Random
from .conv import check_axes


class _FractionalMaxPool(Random, buffers=("_random_samples",)):
    """The maximum of each of output_size windows along an axis of space; output_ratio: this part of its size.

    The distances between windows are random, in training or not: of each channel from one number per axis, drawn from 0 to 1.
    _random_samples: these numbers, (batch, channels, axes). return_indices: also the place of each maximum among the
    elements of its channel.
    """

    _random_samples: Tensor | None
    _spaces: ClassVar[int]
    _order: ClassVar[tuple[int, ...]]
    """Of each axis, the place of its number among the random ones."""

    def __init_subclass__(cls, order: tuple[int, ...], **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls._spaces, cls._order = len(order), order

    def __init__(
        self, kernel_size: Ints, output_size: Ints | None = None, output_ratio: float | Sequence[float] | None = None,
        return_indices: bool = False, _random_samples: Any = None, *, rng: Rng = None,
    ) -> None:  # fmt: skip
        name = type(self).__name__
        if (output_size is None) == (output_ratio is None):
            raise InputError(f"{name}: give either output_size or output_ratio")
        self.kernel_size = per_axis(kernel_size, self._spaces, "kernel_size")
        self.output_size = None if output_size is None else per_axis(output_size, self._spaces, "output_size")
        given = (
            tuple(output_ratio or ())
            if output_ratio is None or isinstance(output_ratio, Sequence)
            else (float(output_ratio),) * self._spaces
        )
        if output_ratio is not None and (len(given) != self._spaces or not all(0 < r < 1 for r in given)):
            raise InputError(f"{name}: output_ratio is {output_ratio}, expected numbers between 0 and 1")
        self.output_ratio, self.return_indices = given or None, return_indices
        self._random_samples = None if _random_samples is None else as_tensor(_random_samples, float32)
        self._seed(rng)

    def forward(self, x: Tensor) -> Any:
        check_axes(x, self._spaces, self)
        batches = x.unsqueeze(0) if x.ndim == self._spaces + 1 else x
        before, space = batches.shape[:2], batches.shape[2:]
        sizes = self._sizes(space)
        places = self._places(batches, sizes)
        flat = batches.reshape(*before, -1)
        windows = flat.gather(2, places.reshape(*before, -1)).reshape(places.shape)
        indices = places.gather(3, windows.argmax(3, keepdims=True)).squeeze(3)
        values = flat.gather(2, indices)
        found = [y.reshape(*x.shape[: -self._spaces], *sizes) for y in (values, indices)]
        return tuple(found) if self.return_indices else found[0]

    def _sizes(self, space: Shape) -> tuple[int, ...]:
        """The number of windows along each axis."""
        known = [d for d in space if isinstance(d, int)]
        if len(known) == len(space):
            sizes = self.output_size or tuple(int(d * r) for d, r in zip(known, self.output_ratio or (), strict=True))
            if all(n > 0 and n + w - 1 <= d for d, n, w in zip(known, sizes, self.kernel_size, strict=True)):
                return sizes
        raise ShapeError(
            f"{type(self).__name__}: got {show(space)} elements of space for windows of {show(self.kernel_size)} and "
            f"output_size={self.output_size}, output_ratio={self.output_ratio}, expected known sizes, one window or more, "
            "and windows + elements of a window - 1 or more elements"
        )

    def _places(self, x: Tensor, sizes: tuple[int, ...]) -> Tensor:
        """(batch, channels, windows, elements of a window): where each is among the elements of its channel."""
        before, space = x.shape[:2], x.shape[2:]
        numbers = self._numbers(x)
        places = arange(1, device=x.device).reshape(1, 1, 1, 1)
        for axis, (d, n, w) in enumerate(zip(space, sizes, self.kernel_size, strict=True)):
            place = self._order[axis]
            along = _starts(numbers[..., place : place + 1], d, n, w).unsqueeze(3) + arange(w, device=x.device)
            joined = places.unsqueeze(3).unsqueeze(5) * d + along.unsqueeze(2).unsqueeze(4)
            count, elements = places.shape[2:]
            places = joined.reshape(*before, count * n, elements * w)
        return places

    def _numbers(self, x: Tensor) -> Tensor:
        """(batch, channels, axes)."""
        shape = (*x.shape[:2], self._spaces)
        given = self._random_samples
        if given is None:
            return self._drawn(x, shape)
        if not same_form(given.shape, shape):
            raise ShapeError(f"{type(self).__name__}: _random_samples is {show(given.shape)}, expected {show(shape)}")
        return given


def _starts(number: Tensor, length: Any, count: int, window: int) -> Tensor:
    """(batch, channels, windows): the first element of each window; the last window ends where the axis does."""
    step = (length - window) / max(count - 1, 1)
    order = arange(count, device=number.device)
    begun = ((order.cast(float32) + number) * step).floor() - (number * step).floor()
    return where(order == count - 1, length - window, begun.cast(order.dtype))


class FractionalMaxPool2d(_FractionalMaxPool, order=(1, 0)):
    """The maxima of windows at random distances, of (batch, channels, height, width); the first random number is the width's."""


class FractionalMaxPool3d(_FractionalMaxPool, order=(0, 1, 2)):
    """The maxima of windows at random distances, of (batch, channels, depth, height, width)."""
