"""PyTorch's own functions of whole rows, which are faster than the rows' `evaluate`, and the recorded runs of its GPUs.

A row's `evaluate` calls a function of PyTorch for each place of a window and each word of an expression. Each function here takes the
row's inputs and attributes; what it does not compute alike (some element types, ranks or masks) it leaves to `evaluate`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import torch  # pyright: ignore[reportMissingImports]
import torch.nn.functional as F  # pyright: ignore[reportMissingImports]

from ...errors import DeviceError
from ...ir.arrays.adapter import Array
from ...ir.attention import WORDS_OF_A_BLOCK

POOLS: Final[Mapping[str, Mapping[int, str]]] = {
    "max": {1: "max_pool1d", 2: "max_pool2d", 3: "max_pool3d"},
    "add": {2: "avg_pool2d", 3: "avg_pool3d"},
}
"""Words ↦ how many axes of space ↦ PyTorch's pool."""
ELEMENTWISE: Final[Mapping[str, Callable[..., Array]]] = {
    "relu": torch.relu,
    "sigmoid": torch.sigmoid,
    "silu": F.silu,
    "gelu": F.gelu,
    "erf": torch.erf,
    "leaky_relu": lambda x, alpha=0.01: F.leaky_relu(x, alpha),
    "elu": lambda x, alpha=1.0: F.elu(x, alpha),
    "hard_swish": F.hardswish,
    "softplus": F.softplus,
    "mish": F.mish,
    "pow": torch.pow,
    "reciprocal": torch.reciprocal,
    "rsqrt": torch.rsqrt,
}
"""Elementwise rows of floats that PyTorch computes in one call."""
WARM_RUNS: Final = 2
"""Runs before a run is recorded: in these PyTorch's libraries choose their algorithms and take their memory."""


def conv_last(
    x: Array, w: Array, strides: Sequence[int], dilations: Sequence[int], before: Sequence[int], after: Sequence[int],
    group: int,
) -> Array:  # fmt: skip
    spaces, window = x.ndim - 2, w.shape[:-2]
    places = _places(x.shape[1:-1], window, strides, dilations, before, after)
    if spaces not in (1, 2, 3) or not _exact(x) or 0 in x.shape or min(places) < 1:
        return NotImplemented
    if math.prod(window) > math.prod(places):
        return _conv_few_places(x, w, strides, dilations, before, group, places)
    planes, margins = _padded(x.movedim(-1, 1), before, after, 0.0)
    kernel = w.permute(spaces + 1, spaces, *range(spaces))
    y = getattr(F, f"conv{spaces}d")(planes, kernel, None, tuple(strides), margins, tuple(dilations), group)
    return y.movedim(1, -1).contiguous()


def _conv_few_places(
    x: Array, w: Array, strides: Sequence[int], dilations: Sequence[int], before: Sequence[int], group: int, places: Sequence[int]
) -> Array:  # fmt: skip
    """A convolution whose window is larger than its output, as that by which the weights of another one get their gradients: PyTorch
    computes it as such, where the window is a gradient and the output are weights, and strides and dilations change places."""
    *window, per_group, outputs = w.shape
    spaces, batch = len(window), x.shape[0]
    reach = [(k - 1) * r + (n - 1) * s + 1 for k, r, n, s in zip(window, dilations, places, strides, strict=True)]
    pads = [
        (lo, length - lo - d) for lo, length, d in zip(before, reach, x.shape[1:-1], strict=True)
    ]  # less than 0: elements that no place reads
    x = F.pad(x, [0, 0, *(n for pair in reversed(pads) for n in pair)])
    split = x.reshape(*x.shape[:-1], group, per_group)
    given = split.permute(spaces + 2, spaces + 1, 0, *range(1, spaces + 1)).reshape(per_group, group * batch, *reach)
    gradient = w.permute(spaces, spaces + 1, *range(spaces))
    weights = x.new_empty(()).expand(outputs, batch, *places)
    none = (0,) * spaces
    _, found, _ = torch.ops.aten.convolution_backward(
        gradient, given, weights, None, tuple(dilations), none, tuple(strides), False, none, group, (False, True, False)
    )
    return found.permute(1, *range(2, spaces + 2), 0).contiguous()


def pool(word: str) -> Callable[..., Array]:
    """max_pool or pool_sum: the fold over each window of any axes."""

    def over(
        x: Array, window: Sequence[int], strides: Sequence[int], dilations: Sequence[int], before: Sequence[int],
        after: Sequence[int],
    ) -> Array:  # fmt: skip
        facts = list(zip(window, strides, before, after, strict=True))
        along = [axis for axis, fact in enumerate(facts) if fact != (1, 1, 0, 0)]
        if word == "add" and len(along) == 1:  # PyTorch sums over two axes or three
            along = sorted((along[0], next((a for a in range(x.ndim) if a not in along), -1)))
        rest = [axis for axis in range(x.ndim) if axis not in along]
        name = POOLS[word].get(len(along))
        if (
            name is None
            or min(along) < 0
            or not _exact(x)
            or 0 in x.shape
            or 0 in _places(x.shape, window, strides, dilations, before, after)
        ):
            return NotImplemented
        size, step, apart, lo, hi = ([each[a] for a in along] for each in (window, strides, dilations, before, after))
        if word == "add" and any(r > 1 for r in apart):
            return NotImplemented
        order = [*rest, *along]
        planes = x.permute(order)
        outer = planes.shape[: len(rest)]
        if len(rest) != 2:
            planes = planes.reshape(1, math.prod(outer), *planes.shape[len(rest) :])
        planes, margins = _padded(planes, lo, hi, -math.inf if word == "max" else 0.0, size)
        function: Any = getattr(F, name)
        if word == "max":
            y = function(planes, size, step, margins, apart)
        else:
            y = function(planes, size, step, margins, divisor_override=1)
        return y.reshape(*outer, *y.shape[2:]).permute([order.index(a) for a in range(x.ndim)]).contiguous()

    return over


def dot(a: Array, b: Array) -> Array:
    return torch.matmul(a, b) if _exact(a) else NotImplemented


def softmax(x: Array, axis: int = -1) -> Array:
    return torch.softmax(x, axis)


def log_softmax(x: Array, axis: int = -1) -> Array:
    return torch.log_softmax(x, axis)


def layer_norm(
    x: Array, scale: Array | None = None, shift: Array | None = None, axis: int = -1, epsilon: float = 1e-5
) -> Array:
    shape = x.shape[axis % x.ndim :]
    own = [p is None or (p.shape == shape and p.dtype is x.dtype) for p in (scale, shift)]
    if all(own):
        return F.layer_norm(x, shape, scale, shift, epsilon)
    return _scaled(F.layer_norm(_wide(x), shape, None, None, epsilon), scale, shift).to(x.dtype)


def rms_norm(x: Array, scale: Array | None = None, axis: int = -1, epsilon: float = 1e-5) -> Array:
    shape = x.shape[axis % x.ndim :]
    return _scaled(F.rms_norm(_wide(x), shape, None, epsilon), scale, None).to(x.dtype)


def _scaled(x: Array, scale: Array | None, shift: Array | None) -> Array:
    x = x if scale is None else x * scale.to(x.dtype)
    return x if shift is None else x + shift.to(x.dtype)


def attention(
    q: Array, k: Array, v: Array, mask: Array | None = None, scale: float = 0.0, causal: bool = False, past: int = 0, softcap: float = 0.0,
    keys: int | None = None,
) -> Array:  # fmt: skip
    if keys is not None:
        k, v = k[..., :keys, :], v[..., :keys, :]
    k, v = ((_floats_of_rows(x) if x.dtype is torch.int32 else x).to(q.dtype) for x in (k, v))
    if q.ndim > 2 and k.ndim > 2 and q.shape[-3] != k.shape[-3]:
        k, v = (x.repeat_interleave(q.shape[-3] // x.shape[-3], -3) for x in (k, v))
    scale = scale or 1 / math.sqrt(max(q.shape[-1], 1))
    plain = q.ndim == 4 and q.dtype is v.dtype and mask is None and not softcap and 0 not in (*q.shape, *k.shape)
    if plain and (not causal or (past == 0 and q.shape[-2] <= k.shape[-2])):
        return F.scaled_dot_product_attention(q, k, v, is_causal=causal, scale=scale)
    scores = torch.matmul(_wide(q) * scale, _wide(k).transpose(-1, -2))
    if softcap:
        scores = torch.tanh(scores / softcap) * softcap
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf) if mask.dtype is torch.bool else scores + mask.to(scores.dtype)
    if causal:
        seen = torch.ones(scores.shape[-2:], dtype=torch.bool, device=q.device).tril(past)
        scores = scores.masked_fill(~seen, -math.inf)
    weights = torch.softmax(scores, -1)
    if mask is not None or causal:  # a query that sees no key gets zeros
        weights = torch.where(scores.amax(-1, keepdim=True) == -math.inf, 0.0, weights)
    return torch.matmul(weights, _wide(v)).to(v.dtype)


def _floats_of_rows(rows: Array) -> Array:
    """The numbers that rows in eight bits stand for (ops/products/eight_bit_rows.py)."""
    blocks = rows.unflatten(-1, (-1, WORDS_OF_A_BLOCK))
    numbers, scales = blocks[..., :-1].contiguous(), blocks[..., -1:].contiguous()
    return (numbers.view(torch.int8) * scales.view(torch.float32)).flatten(-2)


def joint_norm(*several: Array) -> Array:
    return torch.nn.utils.get_total_norm(several)


def checks(loss: Array, norm: Array, code: Array, *, finite: bool) -> tuple[Array, Array]:
    numbers = torch.stack([x.reshape(()).to(torch.float32) for x in (loss, norm, code)])
    fine = numbers[2] == 0
    return numbers, fine & torch.isfinite(numbers[:2]).all() if finite else fine


NATIVE: Final[Mapping[str, Callable[..., Any]]] = {
    "attention": attention,
    "checks": checks,
    "conv_last": conv_last,
    "dot": dot,
    "joint_norm": joint_norm,
    "layer_norm": layer_norm,
    "log_softmax": log_softmax,
    "max_pool": pool("max"),
    "pool_sum": pool("add"),
    "rms_norm": rms_norm,
    "softmax": softmax,
}


def _exact(x: Array) -> bool:
    """Whether products and sums of such elements are at least as exact as in float32."""
    return x.is_floating_point() and (x.element_size() >= 4 or x.device.type != "cpu")


def _wide(x: Array) -> Array:
    return x.to(torch.float32) if x.element_size() < 4 else x


def _places(
    sizes: Sequence[int], window: Sequence[int], strides: Sequence[int], dilations: Sequence[int], before: Sequence[int],
    after: Sequence[int],
) -> list[int]:  # fmt: skip
    facts = zip(sizes, window, strides, dilations, before, after, strict=True)
    return [max((lo + d + hi - r * (k - 1) - 1) // s + 1, 0) for d, k, s, r, lo, hi in facts]


def _padded(
    planes: Array, before: Sequence[int], after: Sequence[int], fill: float, window: Sequence[int] | None = None
) -> tuple[Array, Sequence[int]]:
    """Planes, and the margins that a function adds on both sides: those which it cannot add are added here."""
    even = tuple(before) == tuple(after)
    if even and (window is None or all(2 * n <= k for n, k in zip(before, window, strict=True))):
        return planes, tuple(before)
    pads = [n for pair in reversed(list(zip(before, after, strict=True))) for n in pair]
    return F.pad(planes, pads, value=fill), (0,) * len(before)


class RecordedRun:
    """A function of inputs, states and weights that a GPU records when it has run a few times, and then repeats as a CUDA graph.

    All arrays have the same shapes in each call. The recorded states are those of the call that was recorded, which the graph
    overwrites; other states are copied to them and back. apart: x in memory of its own, which is none of several arrays.
    """

    def __init__(
        self,
        function: Callable[..., tuple[list[Array], list[Array]]],
        apart: Callable[[Array, Sequence[Array]], Array],
    ) -> None:
        self._function, self._apart = function, apart
        self._runs = 0
        self._graph: torch.cuda.CUDAGraph | None = None
        self._inputs: list[Array] = []
        self._states: list[Array] = []
        self._outputs: list[Array] = []

    def __call__(
        self, inputs: Sequence[Array], states: Sequence[Array], weights: Mapping[Any, Array]
    ) -> tuple[list[Array], list[Array]]:
        if self._runs < WARM_RUNS:
            self._runs += 1
            return self._run(inputs, states, weights)
        graph = self._graph or self._record(inputs, states, weights)
        # What is no tensor, since PyTorch lacks its element type, is what no op reads or writes.
        others = [
            (own, given)
            for own, given in zip(self._states, states, strict=True)
            if own is not given and isinstance(own, torch.Tensor)
        ]
        for own, given in (*zip(self._inputs, inputs, strict=True), *others):
            if isinstance(own, torch.Tensor):
                own.copy_(given)
        graph.replay()
        for own, given in others:
            given.copy_(own)
        return [x.clone() for x in self._outputs], list(states)

    def _run(
        self, inputs: Sequence[Array], states: Sequence[Array], weights: Mapping[Any, Array]
    ) -> tuple[list[Array], list[Array]]:
        """The function, whose outputs share no memory with the states before and after."""
        found, after = self._function(inputs, states, weights)
        outputs: list[Array] = []
        for x in found:
            outputs.append(self._apart(x, [*inputs, *states, *after, *outputs]))
        return outputs, after

    def _record(
        self, inputs: Sequence[Array], states: Sequence[Array], weights: Mapping[Any, Array]
    ) -> torch.cuda.CUDAGraph:
        self._inputs = [x.clone() if isinstance(x, torch.Tensor) else x for x in inputs]
        self._states = list(states)
        graph = torch.cuda.CUDAGraph()
        torch.cuda.synchronize()
        try:
            with torch.cuda.graph(graph):
                self._outputs, after = self._run(self._inputs, self._states, weights)
                changed = [(own, value) for own, value in zip(self._states, after, strict=True) if own is not value]
                values = [self._apart(value, self._states) for _, value in changed]  # a state may become another one
                for (own, _), value in zip(changed, values, strict=True):
                    own.copy_(value)
        except RuntimeError as e:
            raise DeviceError(f"PyTorch cannot record this run: {str(e).splitlines()[0]}") from e
        self._graph = graph
        return graph
