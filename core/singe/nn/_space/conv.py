"""Convolution and transposed convolution: (batch, channels, …space), where the batch may be left out."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Final

from ...errors import InputError, ShapeError
from ...ops import ROWS
from ...runtime.random_keys import Rng, one_generator
from ...shapes import Dim, show
from ...tensors.calls import apply_row
from ...tensors.nodes.spatial import Ints, Padding, per_axis
from ...tensors.tensor import Tensor
from .._module import Module
from ..init import by_inputs, check_sizes

PADDING_MODES: Final = {"zeros": "constant", "reflect": "reflect", "replicate": "edge", "circular": "wrap"}
"""PyTorch's name ↦ the mode of `Tensor.pad`."""
PADDINGS: Final = ("same", "valid")


def check_axes(x: Tensor, spaces: int, layer: Module) -> None:
    """Refuse an x that has other axes than (batch, channels, …space) or (channels, …space)."""
    if x.ndim not in (spaces + 1, spaces + 2):
        raise ShapeError(
            f"{type(layer).__name__}: got {show(x.shape)}, expected (batch, channels, …) with {spaces} axes of space, or without the batch"
        )


def in_batches(x: Tensor, spaces: int, layer: Module, call: Callable[[Tensor], Tensor]) -> Tensor:
    """call(x); an x without a batch gets one of length 1 for the call."""
    check_axes(x, spaces, layer)
    return call(x.unsqueeze(0)).squeeze(0) if x.ndim == spaces + 1 else call(x)


class _Windowed(Module):
    """A convolution with `spaces` axes of space."""

    weight: Tensor
    bias: Tensor | None
    stride: Ints
    dilation: Ints
    groups: int
    _spaces: ClassVar[int]

    def __init_subclass__(cls, spaces: int | None = None, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if spaces is not None:
            cls._spaces = spaces

    def _weights(
        self, channels: tuple[int, int], kernel_size: Ints, groups: int, bias: bool, turned: bool, rng: Rng
    ) -> None:
        """Set weight and bias for (inputs, outputs) channels; turned: the weight has the inputs first."""
        inputs, outputs = channels
        check_sizes(self, in_channels=inputs, out_channels=outputs, groups=groups)
        if not groups or inputs % groups or outputs % groups:
            raise ShapeError(
                f"{type(self).__name__}: {inputs} channels in and {outputs} out cannot be divided into {groups} groups"
            )
        rng = one_generator(rng)
        window = per_axis(kernel_size, self._spaces, "kernel_size")
        check_sizes(self, **{f"kernel_size[{i}]": n for i, n in enumerate(window)})
        first, second = (inputs, outputs // groups) if turned else (outputs, inputs // groups)
        fan_in = second * math.prod(window)
        self.weight = by_inputs((first, second, *window), fan_in, rng=rng)
        self.bias = by_inputs((outputs,), fan_in, rng=rng) if bias else None
        self.groups = groups


class _Conv(_Windowed):
    """weight is (outputs, channels per group, …window). padding: numbers, "same" (for stride 1) or "valid"; padding_mode:
    "zeros", "reflect", "replicate" or "circular"."""

    padding: Padding
    padding_mode: str

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Ints, stride: Ints = 1, padding: Padding = 0, dilation: Ints = 1,
        groups: int = 1, bias: bool = True, padding_mode: str = "zeros", *, rng: Rng = None,
    ) -> None:  # fmt: skip
        if isinstance(padding, str) and padding not in PADDINGS:
            raise InputError(f"padding is {padding!r}, expected numbers, or one of {', '.join(PADDINGS)}")
        if padding_mode not in PADDING_MODES:
            raise InputError(f"padding_mode is {padding_mode!r}, expected one of {', '.join(PADDING_MODES)}")
        self._weights((in_channels, out_channels), kernel_size, groups, bias, False, rng)
        self.stride, self.padding, self.dilation, self.padding_mode = stride, padding, dilation, padding_mode

    def forward(self, x: Tensor) -> Tensor:
        return in_batches(x, self._spaces, self, self._convolved)

    def _convolved(self, x: Tensor) -> Tensor:
        padding = self.padding
        if self.padding_mode != "zeros" and padding != "valid":
            x = x.pad([(0, 0), (0, 0), *self._widths()], PADDING_MODES[self.padding_mode])
            padding = 0
        return x.conv(
            self.weight, self.bias, stride=self.stride, padding=padding, dilation=self.dilation, groups=self.groups
        )

    def _widths(self) -> list[tuple[Dim, Dim]]:
        """How much is added before and after each axis of space."""
        if self.padding != "same":
            return [(n, n) for n in per_axis(self.padding, self._spaces, "padding")]  # pyright: ignore[reportArgumentType]
        dilations = per_axis(self.dilation, self._spaces, "dilation")
        total = [d * (w - 1) for w, d in zip(self.weight.shape[2:], dilations, strict=True)]
        return [(t // 2, t - t // 2) for t in total]


class Conv1d(_Conv, spaces=1):
    """Convolution of (batch, channels, length)."""


class Conv2d(_Conv, spaces=2):
    """Convolution of (batch, channels, height, width)."""


class Conv3d(_Conv, spaces=3):
    """Convolution of (batch, channels, depth, height, width)."""


class ConvTranspose(_Windowed):
    """weight is (channels, outputs per group, …window). output_padding lengthens the output at its end."""

    padding: Ints
    output_padding: Ints

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Ints, stride: Ints = 1, padding: Ints = 0, output_padding: Ints = 0,
        groups: int = 1, bias: bool = True, dilation: Ints = 1, *, rng: Rng = None,
    ) -> None:  # fmt: skip
        self._weights((in_channels, out_channels), kernel_size, groups, bias, True, rng)
        self.stride, self.padding, self.output_padding, self.dilation = stride, padding, output_padding, dilation

    def forward(self, x: Tensor, output_size: Sequence[int] | None = None) -> Tensor:
        """output_size: of the axes of space, in place of output_padding."""
        extra = self.output_padding if output_size is None else self._extra(x, output_size)
        return in_batches(x, self._spaces, self, lambda x: x.conv_transpose(
            self.weight, self.bias, stride=self.stride, padding=self.padding, output_padding=extra, dilation=self.dilation,
            groups=self.groups,
        ))  # fmt: skip

    def _extra(self, x: Tensor, output_size: Sequence[int]) -> tuple[int, ...]:
        facts = [per_axis(v, self._spaces, "ConvTranspose") for v in (self.stride, self.padding, self.dilation)]  # pyright: ignore[reportArgumentType]
        space, wanted = x.shape[-self._spaces :], tuple(output_size)[-self._spaces :]
        least = [
            (d - 1) * s - 2 * p + r * (w - 1) + 1
            for d, w, s, p, r in zip(space, self.weight.shape[2:], *facts, strict=True)
        ]
        most = [n + s - 1 for n, s in zip(least, facts[0], strict=True)]
        if len(wanted) != self._spaces or not all(a <= n <= z for a, n, z in zip(least, wanted, most, strict=True)):
            raise ShapeError(
                f"{type(self).__name__}: output_size {wanted}, expected from {tuple(least)} to {tuple(most)}"
            )
        return tuple(n - a for n, a in zip(wanted, least, strict=True))


class DeformConv2d(_Windowed, spaces=2):
    """Convolution of (batch, channels, height, width), in which each element that is read is moved by an offset; torchvision's."""

    padding: Ints

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Ints, stride: Ints = 1, padding: Ints = 0, dilation: Ints = 1,
        groups: int = 1, bias: bool = True, *, rng: Rng = None,
    ) -> None:  # fmt: skip
        self._weights((in_channels, out_channels), kernel_size, groups, bias, False, rng)
        self.stride, self.padding, self.dilation = stride, padding, dilation

    def forward(self, x: Tensor, offset: Tensor, mask: Tensor | None = None) -> Tensor:
        """offset: (batch, groups of offsets · window · 2, height, width of the result), each a pair of rows and columns; mask:
        (batch, groups of offsets · window, height, width of the result), by which what is read is multiplied."""
        widths = per_axis(self.padding, 2, "padding")
        return apply_row(
            ROWS["deform_conv"], (x, self.weight, offset, self.bias, mask), strides=per_axis(self.stride, 2, "stride"),
            dilations=per_axis(self.dilation, 2, "dilation"), before=widths, after=widths, group=self.groups,
            offset_group=offset.shape[1] // (2 * math.prod(self.weight.shape[2:])),
        )  # fmt: skip


class ConvTranspose1d(ConvTranspose, spaces=1):
    """Transposed convolution of (batch, channels, length)."""


class ConvTranspose2d(ConvTranspose, spaces=2):
    """Transposed convolution of (batch, channels, height, width)."""


class ConvTranspose3d(ConvTranspose, spaces=3):
    """Transposed convolution of (batch, channels, depth, height, width)."""
