"""Graphs of ONNX while they are made, and the patterns of nodes that exporters write for one call of a framework."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

FLOAT, INT32, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT32, TensorProto.INT64, TensorProto.BOOL
MIN = float(np.finfo(np.float32).min)
END = 2**63 - 1
Ports = Mapping[str, tuple[int, Sequence[int | str | None]]]
"""An input ↦ its element type and its shape."""


class Net:
    """A graph with random weights: `net.Add(x, 1.0)` adds a node of that op and gives the name of its output.

    Operands are names, or values that become constants: a float is a float32, an int and a tuple of ints are int64.
    """

    def __init__(self, seed: int, opset: int = 17) -> None:
        self.rng = np.random.default_rng(seed)
        self.opset = opset
        self.nodes: list[onnx.NodeProto] = []
        self.tensors: list[onnx.TensorProto] = []
        self.results: list[onnx.ValueInfoProto] = []
        self.functions: list[onnx.FunctionProto] = []
        self.count = 0

    def __getattr__(self, op: str) -> Callable[..., str]:
        if not op[0].isupper():
            raise AttributeError(op)
        return partial(self.op, op)

    def name(self) -> str:
        self.count += 1
        return f"v{self.count}"

    def node(
        self, op: str, *inputs: Any, outputs: Sequence[str | None], domain: str = "", **attributes: Any
    ) -> list[str]:
        """A node with named outputs; None: any name, "": omitted."""
        names = [self.name() if given is None else given for given in outputs]
        operands = [x if isinstance(x, str) else self.const(x) for x in inputs]
        self.nodes.append(helper.make_node(op, operands, names, domain=domain, **attributes))
        return names

    def op(self, op: str, *inputs: Any, **attributes: Any) -> str:
        return self.node(op, *inputs, outputs=[None], **attributes)[0]

    def many(self, count: int, op: str, *inputs: Any, **attributes: Any) -> list[str]:
        return self.node(op, *inputs, outputs=[None] * count, **attributes)

    def const(self, value: Any) -> str:
        array = np.asarray(value)
        array = array.astype(np.float32) if array.dtype == np.float64 else array
        self.tensors.append(numpy_helper.from_array(array, self.name()))
        return self.tensors[-1].name

    def weights(self, *shape: int, scale: float = 1.0) -> str:
        """Matrices (inputs, outputs), filters (outputs, inputs, …), vectors: of a size that keeps values near 1."""
        fan = {1: 4, 2: shape[0]}.get(len(shape), int(np.prod(shape[1:])))
        return self.const((self.rng.standard_normal(shape) * scale / np.sqrt(fan)).astype(np.float32))

    def positive(self, *shape: int) -> str:
        """Scales and variances."""
        return self.const(self.rng.uniform(0.5, 1.5, shape).astype(np.float32))

    def output(self, x: str, name: str, kind: int = FLOAT) -> None:
        self.nodes.append(helper.make_node("Identity", [x], [name]))
        self.results.append(helper.make_tensor_value_info(name, kind, None))

    def model(self, inputs: Ports) -> onnx.ModelProto:
        ports = [helper.make_tensor_value_info(n, kind, shape) for n, (kind, shape) in inputs.items()]
        graph = helper.make_graph(self.nodes, "family", ports, self.results, self.tensors)
        domains = {"": self.opset, "com.microsoft": 1, "ai.onnx.ml": 3, "local": 1}
        opsets = [helper.make_opsetid(name, version) for name, version in domains.items()]
        return helper.make_model(graph, opset_imports=opsets, ir_version=8, functions=self.functions)

    # --- ops whose axes moved from attributes to inputs ---------------------------------------------------------------

    def axes(self, op: str, since: int, x: str, *axes: int, **attributes: Any) -> str:
        if self.opset < since:
            return self.op(op, x, axes=axes, **attributes)
        return self.op(op, x, axes, **attributes)

    def unsqueeze(self, x: Any, *axes: int) -> str:
        return self.axes("Unsqueeze", 13, x, *axes)

    def squeeze(self, x: str, *axes: int) -> str:
        return self.axes("Squeeze", 13, x, *axes)

    def mean(self, x: str, *axes: int, keepdims: int = 1) -> str:
        return self.axes("ReduceMean", 18, x, *axes, keepdims=keepdims)

    def sum(self, x: str, *axes: int, keepdims: int = 1) -> str:
        return self.axes("ReduceSum", 13, x, *axes, keepdims=keepdims)

    def norm2(self, x: str, *axes: int) -> str:
        return self.axes("ReduceL2", 18, x, *axes, keepdims=1)

    def split(self, x: str, sizes: Sequence[int], axis: int) -> list[str]:
        if self.opset < 13:
            return self.many(len(sizes), "Split", x, split=sizes, axis=axis)
        return self.many(len(sizes), "Split", x, tuple(sizes), axis=axis)

    # --- shapes, as PyTorch's exporters write them --------------------------------------------------------------------

    def size(self, x: str, axis: int) -> str:
        """One dimension, a scalar."""
        return self.Gather(self.Shape(x), axis, axis=0)

    def shape(self, *dims: int | str) -> str:
        """A shape from numbers and scalars."""
        return self.Concat(*(self.const(np.array([d])) if isinstance(d, int) else self.unsqueeze(d, 0) for d in dims), axis=0)  # fmt: skip

    def view(self, x: str, *dims: int | str) -> str:
        whole = all(isinstance(d, int) for d in dims)
        return self.Reshape(x, tuple(dims) if whole else self.shape(*dims))  # type: ignore[arg-type]

    def floordiv(self, a: str, b: int) -> str:
        """`a // b`: a quotient toward zero, less one where the signs differ and something is left."""
        quotient = self.Div(a, b)
        differ = self.Xor(self.Less(a, 0), self.Less(b, 0))
        left = self.Not(self.Equal(self.Mod(a, b, fmod=0), 0))
        return self.Sub(quotient, self.Mul(self.Cast(self.And(differ, left), to=INT64), 1))

    def slice(self, x: str, axis: int, start: int | str, end: int | str = END, step: int = 1) -> str:
        ends = [(v,) if isinstance(v, int) else self.unsqueeze(v, 0) for v in (start, end)]
        return self.Slice(x, *ends, (axis,), (step,))

    def full(self, shape: str, value: float | int) -> str:
        array = np.array([value], np.int64 if isinstance(value, int) else np.float32)
        return self.ConstantOfShape(shape, value=numpy_helper.from_array(array))

    def expand(self, x: str, *dims: int | str) -> str:
        """`x.expand(…)`: −1 in the target becomes 1."""
        shape = self.Reshape(self.shape(*dims), (-1,))
        ones = self.full(self.Shape(shape), 1)
        return self.Expand(x, self.Where(self.Equal(shape, self.Mul(ones, -1)), ones, shape))

    def pad(self, x: str, rank: int, *pads: int | str, mode: str = "constant") -> str:
        """`F.pad(x, pads)`: the last axis first, its order turned by shape arithmetic."""
        given = self.shape(*pads)
        zeros = self.full((2 * rank - len(pads),), 0)  # type: ignore[arg-type]
        pairs = self.Reshape(self.Concat(given, zeros, axis=0), (-1, 2))
        turned = self.Transpose(self.Slice(pairs, (-1,), (-END,), (0,), (-1,)), perm=[1, 0])
        whole = self.Cast(self.Reshape(turned, (-1,)), to=INT64)
        return self.Pad(x, whole, 0.0, mode=mode) if mode == "constant" else self.Pad(x, whole, mode=mode)

    def resize_to(self, x: str, sizes: str, mode: str = "linear", aligned: bool = False) -> str:
        """`F.interpolate(x, size)`."""
        whole = self.Concat(self.Slice(self.Shape(x), (0,), (2,), (0,)), self.Cast(sizes, to=INT64), axis=0)
        return self._resize(x, "", whole, mode=mode, aligned=aligned)

    def resize_by(self, x: str, factor: float, mode: str = "nearest", aligned: bool = False) -> str:
        """`F.interpolate(x, scale_factor)`."""
        return self._resize(x, np.array([1, 1, factor, factor], np.float32), mode=mode, aligned=aligned)

    def _resize(self, x: str, *rest: Any, mode: str, aligned: bool) -> str:
        if mode == "nearest":
            how = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
        else:
            place = "align_corners" if aligned else "pytorch_half_pixel"
            how = {"coordinate_transformation_mode": place, "nearest_mode": "floor", "cubic_coeff_a": -0.75}
        roi = "" if self.opset >= 13 else np.zeros(0, np.float32)
        rest = tuple(np.zeros(0, np.float32) if isinstance(y, str) and not y and self.opset < 13 else y for y in rest)
        return self.Resize(x, roi, *rest, mode=mode, **how)

    # --- layers -------------------------------------------------------------------------------------------------------

    def linear(self, x: str, inputs: int, outputs: int, bias: bool = True) -> str:
        """`nn.Linear` of three axes and more."""
        y = self.MatMul(x, self.weights(inputs, outputs))
        return self.Add(self.weights(outputs), y) if bias else y

    def gemm(self, x: str, inputs: int, outputs: int) -> str:
        """`nn.Linear` of two axes."""
        return self.Gemm(x, self.weights(outputs, inputs), self.weights(outputs), transB=1)

    def conv(
        self, x: str, inputs: int, outputs: int, side: int = 3, stride: int = 1, *,
        group: int = 1, pad: int | None = None, dilation: int = 1, bias: bool = True, rank: int = 2,
    ) -> str:  # fmt: skip
        pad = (side - 1) // 2 * dilation if pad is None else pad
        biases = [self.weights(outputs)] if bias else []
        return self.Conv(
            x, self.weights(outputs, inputs // group, *[side] * rank), *biases, kernel_shape=[side] * rank,
            strides=[stride] * rank, pads=[pad] * 2 * rank, dilations=[dilation] * rank, group=group,
        )  # fmt: skip

    def conv1(self, x: str, inputs: int, outputs: int, side: int, stride: int = 1, **options: Any) -> str:
        return self.conv(x, inputs, outputs, side, stride, rank=1, **options)

    def batch_norm(self, x: str, channels: int) -> str:
        scale, shift, mean, var = (f(channels) for f in (self.positive, self.weights, self.weights, self.positive))
        return self.BatchNormalization(x, scale, shift, mean, var, epsilon=1e-5)

    def layer_norm(self, x: str, width: int, eps: float = 1e-5) -> str:
        """`nn.LayerNorm`: an op since opset 17."""
        if self.opset >= 17:
            return self.LayerNormalization(x, self.positive(width), self.weights(width), axis=-1, epsilon=eps)
        return self.Add(self.Mul(self.normed(x, -1, eps), self.positive(width)), self.weights(width))

    def normed(self, x: str, axis: int, eps: float = 1e-5) -> str:
        centred = self.Sub(x, self.mean(x, axis))
        return self.Div(centred, self.Sqrt(self.Add(self.mean(self.Pow(centred, 2.0), axis), eps)))

    def layer_norm_2d(self, x: str, width: int, eps: float = 1e-6) -> str:
        """A layer norm over channels of NCHW, as SAM and ConvNeXt write it."""
        y = self.Mul(self.positive(width, 1, 1), self.normed(x, 1, eps))
        return self.Add(y, self.weights(width, 1, 1))

    def group_norm(self, x: str, groups: int, channels: int, rank: int = 4) -> str:
        """`nn.GroupNorm`: an instance norm of reshaped values."""
        flat = self.Reshape(x, (0, groups, -1))
        normed = self.InstanceNormalization(
            flat, np.ones(groups, np.float32), np.zeros(groups, np.float32), epsilon=1e-5
        )
        y = self.Reshape(normed, self.Shape(x))
        ones = [1] * (rank - 2)
        return self.Add(self.Mul(y, self.positive(channels, *ones)), self.weights(channels, *ones))

    def gelu(self, x: str) -> str:
        return self.Mul(self.Mul(x, self.Add(self.Erf(self.Div(x, 2**0.5)), 1.0)), 0.5)

    def gelu_tanh(self, x: str) -> str:
        inner = self.Mul(self.Add(x, self.Mul(self.Pow(x, 3.0), 0.044715)), (2 / np.pi) ** 0.5)
        return self.Mul(self.Mul(x, 0.5), self.Add(self.Tanh(inner), 1.0))

    def silu(self, x: str) -> str:
        return self.Mul(x, self.Sigmoid(x))

    def hard_swish(self, x: str) -> str:
        """The op since opset 14, before it a clip."""
        if self.opset >= 14:
            return self.HardSwish(x)
        return self.Div(self.Mul(x, self.Clip(self.Add(x, 3.0), 0.0, 6.0)), 6.0)

    def normalised(self, x: str, axis: int = -1) -> str:
        """`F.normalize(x)`."""
        return self.Div(x, self.Expand(self.Clip(self.norm2(x, axis), 1e-12), self.Shape(x)))

    # --- attention ----------------------------------------------------------------------------------------------------

    def heads(self, x: str, heads: int, size: int) -> str:
        """(batch, length, heads · size) as (batch, heads, length, size)."""
        return self.Transpose(self.view(x, self.size(x, 0), -1, heads, size), perm=[0, 2, 1, 3])

    def joined(self, x: str, width: int) -> str:
        y = self.Transpose(x, perm=[0, 2, 1, 3])
        return self.view(y, self.size(y, 0), self.size(y, 1), width)

    def sdpa(self, q: str, k: str, v: str, mask: str = "") -> str:
        """`F.scaled_dot_product_attention`: the scale is computed from the shape, and half of it meets each factor."""
        width = self.Cast(self.Slice(self.Shape(q), (-1,), (END,)), to=FLOAT)
        scale = self.Sqrt(self.Div(np.array([1.0]), self.Sqrt(width)))
        scores = self.MatMul(self.Mul(q, scale), self.Mul(self.Transpose(k, perm=[0, 1, 3, 2]), scale))
        return self.MatMul(self.Softmax(self.Add(scores, mask) if mask else scores, axis=-1), v)

    def attention(self, x: str, seen: str, width: int, heads: int, mask: str = "", bias: bool = True) -> str:
        """Attention of `x` to `seen`, with its four products."""
        parts = (self.heads(self.linear(y, width, width, bias), heads, width // heads) for y in (x, seen, seen))
        return self.linear(self.joined(self.sdpa(*parts, mask), width), width, width, bias)

    def encoder_mask(self, mask: str, length: str) -> str:
        """(batch, keys) of ones and zeros as (batch, 1, queries, keys) of 0 and the least number, as Transformers
        writes it for `F.scaled_dot_product_attention`."""
        wide = self.expand(self.unsqueeze(mask, 1, 2), self.size(mask, 0), 1, length, self.size(mask, 1))
        inverted = self.Sub(1.0, self.Cast(wide, to=FLOAT))
        return self.Where(self.Cast(inverted, to=BOOL), MIN, inverted)

    def causal(self, length: str) -> str:
        """(length, length): the least number for later keys, as Transformers makes it."""
        line = self.Range(0, length, 1)
        later = self.Less(line, self.view(self.Add(line, 1), length, 1))
        return self.Where(later, 0.0, self.expand(self.const(np.float32(MIN)), length, length))

    def picked(self, x: str, rows: str, columns: str) -> str:
        """`x[rows, columns]` of three axes: one Gather of a flattened array."""
        shape = self.Shape(x)
        flat = self.Reshape(x, self.Concat((-1,), self.Slice(shape, (2,), (END,), (0,)), axis=0))
        at = self.Add(self.Mul(rows, self.Gather(shape, 1, axis=0)), columns)
        return self.Gather(flat, at, axis=0)
