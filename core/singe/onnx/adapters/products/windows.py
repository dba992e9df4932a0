"""Convolutions and pools: kernel_shape, auto_pad, ceil_mode and output_shape become numbers for every axis."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from ....dtypes import float32
from ....graph import Node
from ....late_dataclass import dataclass
from ....ops.folds.window import ceiling
from ....shapes import Dim, Shape, ceildiv, dim_max, dim_min, floordiv, product, show
from .._call import Call, adapter
from ..elementwise.basic import cast, power

AUTO_PADS: Final = ("NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID")
MAX_PADDED: Final = 2**31 - 1
"""The most elements that an input may have with its padding: kernels count in int32."""


@dataclass(frozen=True)
class Window:
    """A window that slides over the spatial axes; each field has one entry per axis. Padding may depend on sizes."""

    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    before: Shape
    after: Shape

    @property
    def reach(self) -> tuple[int, ...]:
        """How many elements the window spans along each axis, including gaps."""
        return tuple(d * (k - 1) + 1 for k, d in zip(self.sizes, self.dilations, strict=True))


def each_of(call: Call, name: str, count: int, default: int, least: int) -> tuple[int, ...]:
    """An attribute with `count` numbers."""
    given = call.items(name, int)
    values = (default,) * count if given is None else given
    if len(values) != count or any(not least <= v <= MAX_PADDED for v in values):
        raise call.fail(f"{name} is {values}; expected {count} numbers of at least {least}")
    return values


def _halves(total: Dim, upper: bool) -> tuple[Dim, Dim]:
    """Padding split between both ends; if it is odd, the upper or the lower end gets one more."""
    less = floordiv(total, 2)
    more = total - less
    return (less, more) if upper else (more, less)


def _same(d: Dim, reach: int, stride: int) -> Dim:
    """The padding that gives a window ceil(d / stride) positions."""
    return dim_max((ceildiv(d, stride) - 1) * stride + reach - d, 0)


def _auto_pad(call: Call) -> str:
    mode = call.attr("auto_pad", "NOTSET") or "NOTSET"
    if mode not in AUTO_PADS:
        raise call.fail(f"auto_pad is {mode!r}; expected one of {', '.join(AUTO_PADS)}")
    return mode


def window_of(call: Call, x: Node, kernel: tuple[int, ...] | None = None) -> Window:
    """The node's window; `kernel` is the window of the weights, if there are weights."""
    space = x.shape[2:]
    count = len(space)
    if not count:
        raise call.fail(f"the input {show(x.shape)} has no spatial axes")
    if kernel is None and "kernel_shape" not in call.attributes:
        raise call.fail("kernel_shape is missing")
    sizes = each_of(call, "kernel_shape", count, 1, 1) if "kernel_shape" in call.attributes else kernel or ()
    if kernel is not None and sizes != kernel:
        raise call.fail(f"kernel_shape is {sizes}, but the weights have {kernel}")
    pads = each_of(call, "pads", 2 * count, 0, 0)
    window = Window(
        sizes,
        each_of(call, "strides", count, 1, 1),
        each_of(call, "dilations", count, 1, 1),
        pads[:count],
        pads[count:],
    )
    mode = _auto_pad(call)
    if mode == "VALID":
        window = replace(window, before=(0,) * count, after=(0,) * count)
    elif mode != "NOTSET":
        totals = [_same(d, r, s) for d, r, s in zip(space, window.reach, window.strides, strict=True)]
        before, after = zip(*(_halves(t, mode == "SAME_UPPER") for t in totals), strict=True)
        window = replace(window, before=before, after=after)
    padded = product(d + lo + hi for d, lo, hi in zip(space, window.before, window.after, strict=True))
    if isinstance(padded, int) and padded > MAX_PADDED:
        raise call.fail(f"the padded input has {padded} elements; at most {MAX_PADDED} are supported")
    return window


# --- convolutions ----------------------------------------------------------------------------------------------------


def weights_of(call: Call) -> tuple[Node, Node, tuple[int, ...], int]:
    x, w, group = call.x(), call.x(1), call.attr("group", 1)
    if len(x.shape) < 3 or len(w.shape) != len(x.shape):
        raise call.fail(
            f"an input {show(x.shape)} and weights {show(w.shape)}; expected as many axes in both, at least 3"
        )
    kernel = call.known_shape(w, "the weights' shape")[2:]
    if group < 1 or 0 in kernel:
        raise call.fail(f"group is {group} and the window {kernel}; expected at least 1")
    return x, w, kernel, group


@adapter("Conv")
def _conv(call: Call) -> Node:
    x, w, kernel, group = weights_of(call)
    window = window_of(call, x, kernel)
    return call.b.conv(
        x, w, call.maybe(2), strides=window.strides, dilations=window.dilations, before=window.before, after=window.after, group=group
    )  # fmt: skip


@adapter("ConvTranspose")
def _conv_transpose(call: Call) -> Node:
    """The output's length is (d − 1)·stride + reach + output_padding − pads.
    If output_shape is given, the pads follow from it."""
    x, w, kernel, group = weights_of(call)
    space = x.shape[2:]
    mode = _auto_pad(call)
    window = window_of(
        replace(call, attributes={k: v for k, v in call.attributes.items() if k != "auto_pad"}), x, kernel
    )
    extra = each_of(call, "output_padding", len(space), 0, 0)
    full = [(d - 1) * s + r + e for d, s, r, e in zip(space, window.strides, window.reach, extra, strict=True)]
    if "output_shape" in call.attributes:
        asked = call.items("output_shape", int) or ()
        if len(asked) not in (len(space), len(x.shape)) or any(not 0 < v <= MAX_PADDED for v in asked):
            raise call.fail(f"output_shape is {asked}; expected {len(space)} lengths")
        sizes: tuple[Dim, ...] = asked[-len(space) :]
    elif mode.startswith("SAME"):
        sizes = tuple(d * s for d, s in zip(space, window.strides, strict=True))
    else:
        pads = (
            (0,) * len(space)
            if mode == "VALID"
            else tuple(lo + hi for lo, hi in zip(window.before, window.after, strict=True))
        )
        before = (0,) * len(space) if mode == "VALID" else window.before
        sizes = call.lengths([f - p for f, p in zip(full, pads, strict=True)])
        return _transposed(call, x, w, window, before, sizes, group)
    totals = [f - d for f, d in zip(full, sizes, strict=True)]
    before = tuple(_halves(t, mode == "SAME_UPPER")[0] for t in totals)
    return _transposed(call, x, w, window, before, sizes, group)


@adapter("com.microsoft.ConvTransposeWithDynamicPads")
def _conv_transpose_padded(call: Call) -> Node:
    """ConvTranspose whose pads are the third input, which a run may compute."""
    x, w, kernel, group = weights_of(call)
    count = len(kernel)
    pads = (0,) * (2 * count) if call.maybe(2) is None else call.dims(2)
    if len(pads) != 2 * count:
        raise call.fail(f"{len(pads)} pads for {count} spatial axes")
    window = replace(window_of(call, x, kernel), before=pads[:count], after=pads[count:])
    extra = each_of(call, "output_padding", count, 0, 0)
    sizes = [
        (d - 1) * s + r + e - lo - hi
        for d, s, r, e, lo, hi in zip(
            x.shape[2:], window.strides, window.reach, extra, window.before, window.after, strict=True
        )
    ]
    shifted = replace(call, inputs=(x, w, call.maybe(3)))
    return _transposed(shifted, x, w, window, window.before, call.lengths(sizes), group)


def _transposed(call: Call, x: Node, w: Node, window: Window, before: Shape, sizes: Shape, group: int) -> Node:
    return call.b.conv_transpose(
        x, w, call.maybe(2), strides=window.strides, dilations=window.dilations, before=before, sizes=sizes, group=group
    )  # fmt: skip


# --- pools -----------------------------------------------------------------------------------------------------------


def _ceiling(call: Call, x: Node, window: Window) -> Window:
    """The window with the padding for ceil_mode: it may start anywhere before the end padding."""
    if not call.flag("ceil_mode") or _auto_pad(call) != "NOTSET":
        return window
    after = [
        ceiling(d, r, s, lo, hi)
        for d, r, s, lo, hi in zip(x.shape[2:], window.reach, window.strides, window.before, window.after, strict=True)
    ]
    return replace(window, after=tuple(after))


def _facts(window: Window) -> dict[str, Shape]:
    """The window's attributes for every axis, as the pooling rows take them."""
    return {
        "window": (1, 1, *window.sizes),
        "strides": (1, 1, *window.strides),
        "dilations": (1, 1, *window.dilations),
        "before": (0, 0, *window.before),
        "after": (0, 0, *window.after),
    }


@adapter("MaxPool")
def _max_pool(call: Call) -> list[Node]:
    x = call.x()
    facts = _facts(_ceiling(call, x, window_of(call, x)))
    values = call.b.max_pool(x, **facts)
    if not any(call.outputs[1:]):
        return [values]
    return [values, call.b.max_pool_index(x, column_major=call.flag("storage_order"), **facts)]


@adapter("AveragePool")
def _average_pool(call: Call) -> Node:
    """The sum over the window divided by its number of elements. Padding counts if the node says so;
    what ceil_mode adds never counts."""
    b, kind = call.b, call.x().dtype
    x = cast(call, call.x(), float32)  # a sum of float16 may overflow where the mean does not
    asked = window_of(call, x)
    window = _ceiling(call, x, asked)
    total = b.pool_sum(x, **_facts(window))
    none = (0,) * len(asked.sizes)
    counted = (
        replace(asked, after=tuple(map(dim_min, asked.after, window.after)))
        if call.flag("count_include_pad")
        else replace(asked, before=none, after=none)
    )
    if counted.before == window.before and counted.after == window.after:
        return cast(call, b.div(total, b.const(product(window.sizes), x.dtype)), kind)
    ones = b.expand(
        b.const(1, x.dtype),
        shape=(1, 1, *(d + lo + hi for d, lo, hi in zip(x.shape[2:], counted.before, counted.after, strict=True))),
    )
    outside = replace(
        window,
        before=tuple(w - c for w, c in zip(window.before, counted.before, strict=True)),
        after=tuple(w - c for w, c in zip(window.after, counted.after, strict=True)),
    )
    return cast(call, b.div(total, b.pool_sum(ones, **_facts(outside))), kind)


def _norm_power(call: Call, x: Node) -> tuple[Node, int]:
    p = call.attr("p", 2)
    if p < 1:
        raise call.fail(f"p is {p}; expected at least 1")
    return power(call, call.b.abs(x), float(p)), p


@adapter("LpPool")
def _lp_pool(call: Call) -> Node:
    x = call.x()
    powers, p = _norm_power(call, x)
    return power(call, call.b.pool_sum(powers, **_facts(_ceiling(call, x, window_of(call, x)))), 1 / p)


@adapter("GlobalLpPool")
def _global_lp_pool(call: Call) -> Node:
    x = call.x()
    powers, p = _norm_power(call, x)
    return power(call, call.b.reduce_sum(powers, axes=tuple(range(2, len(x.shape)))), 1 / p)
