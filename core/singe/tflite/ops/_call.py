"""TfliteCall, the argument of an op's function: one op of the file, with its inputs as nodes of a Graph; and OPS, the open table of ops.

An op is a row: its name, the function that makes its outputs of a TfliteCall, and what it does with quantised integers (Numbers).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from enum import Enum
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np

from ...dtypes import DTYPES, DType, int8
from ...errors import ImportFailure, SizeNeeded
from ...graph import Builder, Node
from ...late_dataclass import dataclass
from ...shapes import Dim, Size, axis_of, product, show, symbols
from ..model import Quantization, TfliteOp, TfliteTensor
from ..schema import ACTIVATIONS, PADDINGS
from ..tensors import NIBBLES
from .numbers import dequantised, quantised, requantised

MAX_NUMBERS: Final = 1 << 16
"""The most elements of an input that is read on import."""


class Numbers(Enum):
    """What an op does with quantised integers.

    REAL: it computes with the numbers that they stand for; what it gives is quantised.
    STORED: it moves or compares the integers; those of other scales than the output's are quantised once more before.
    OWN: its function takes them as they are, and gives what the file stores.
    """

    REAL = "real"
    STORED = "stored"
    OWN = "own"


class Variables:
    """The variables of a model by name: those that are read before they are assigned, the value that the ops so far gave, and what the first run
    begins with. begin: runs the ops of a graph, by its index, that gives them that."""

    def __init__(self, begin: Callable[[int], None]) -> None:
        self.begin: Final = begin
        self.leaves: dict[str, Node] = {}
        self.values: dict[str, Node] = {}

    def read(self, b: Builder, name: str, tensor: TfliteTensor) -> Node:
        """The value of a variable, which has the shape and the type of this tensor."""
        if name not in self.values:
            if None in tensor.shape:
                raise ImportFailure(f"the variable {name!r} has an open shape; expected lengths that are known")
            self.leaves[name] = self.values[name] = b.input(name, tensor.shape, dtype_of(tensor))
        return self.values[name]


@dataclass(frozen=True, eq=False)
class TfliteCall:
    """One op. inputs: as its row's Numbers says; given, wanted: the tensors of the file that are its inputs and outputs; variables: those of
    the model, and handles the name of each by the index of the tensor that stands for it; imaginary: the imaginary part of each input that is
    complex, whose real part is in inputs."""

    b: Builder
    op: TfliteOp
    inputs: tuple[Node | None, ...]
    given: tuple[TfliteTensor | None, ...]
    wanted: tuple[TfliteTensor, ...]
    variables: Variables
    handles: dict[int, str]
    imaginary: tuple[Node | None, ...] = ()

    def fail(self, text: str) -> ImportFailure:
        return ImportFailure(text)

    # --- inputs ---

    def maybe(self, i: int) -> Node | None:
        """Input i, or None if it is omitted."""
        return self.inputs[i] if i < len(self.inputs) else None

    def x(self, i: int = 0) -> Node:
        """Input i, which must not be omitted."""
        found = self.maybe(i)
        if found is None:
            raise self.fail(f"input {i} is missing")
        return found

    def ranked(self, i: int, rank: int) -> Node:
        """Input i, which must have so many axes."""
        x = self.x(i)
        if len(x.shape) != rank:
            raise self.fail(f"input {i} has the shape {show(x.shape)}; expected {rank} axes")
        return x

    def all(self) -> list[Node]:
        """Every input: at least one, none of them omitted."""
        return [self.x(i) for i in range(max(1, len(self.inputs)))]

    def scale(self, i: int) -> Quantization | None:
        """What the integers of input i stand for; None if it is not quantised."""
        tensor = self.given[i] if i < len(self.given) else None
        return None if tensor is None or not is_quantised(tensor) else tensor.quantization

    def is_given(self, i: int) -> bool:
        return self.maybe(i) is not None

    def dims(self, i: int) -> tuple[Dim, ...]:
        """The integers in input i, which must be known: numbers, and what is computed of the sizes of inputs."""
        x = self.x(i)
        count = product(x.shape)
        if not x.dtype.is_int or not isinstance(count, int) or count > MAX_NUMBERS:
            raise self.fail(f"input {i} is {x.dtype} {show(x.shape)}; expected at most {MAX_NUMBERS} integers")
        found = self.b.value_of(x)
        if found is None:
            raise self.fail(
                f"input {i} is computed in a run, and must be known before; convert the model with a constant there"
            )
        return tuple(d if isinstance(d, Size) else int(d) for d in found.ravel())

    def ints(self, i: int) -> tuple[int, ...]:
        """The integers in input i, all of which must be numbers."""
        return tuple(self.number(d, f"input {i}") for d in self.dims(i))

    def int(self, i: int) -> int:
        """The only integer in input i."""
        found = self.ints(i)
        if len(found) != 1:
            raise self.fail(f"input {i} has {len(found)} elements; expected one")
        return found[0]

    def number(self, d: Dim, what: str) -> int:
        if isinstance(d, int):
            return d
        raise SizeNeeded(f"{what} is {d}, and must be a number", symbols(d))

    # --- options and outputs ---

    def option(self, name: str) -> Any:
        return self.op.options[name]

    def with_options(self, options: Mapping[str, Any]) -> TfliteCall:
        return replace(self, op=replace(self.op, options=options))

    def axis(self, axis: int, rank: int) -> int:
        return axis_of(axis, rank, self.op.op)

    @property
    def is_same_padded(self) -> bool:
        padding = self.option("padding")
        if not 0 <= padding < len(PADDINGS):
            raise self.fail(f"padding is {padding}; expected 0 or 1")
        return PADDINGS[padding] == "SAME"

    @property
    def activation(self) -> str:
        """The op that is fused behind this one, or ""."""
        number = self.op.options.get("activation", 0)
        if not 0 <= number < len(ACTIVATIONS):
            raise self.fail(f"activation {number}; expected one of 0 to {len(ACTIVATIONS) - 1}")
        return ACTIVATIONS[number]

    def dtype(self, k: int = 0) -> DType:
        """The type of output k in the file."""
        return dtype_of(self.wanted[k])


Results: TypeAlias = "Node | Sequence[Node]"
Function: TypeAlias = Callable[[TfliteCall], Results]


class OpRow(NamedTuple):
    """An op. ties_up: how quantised outputs are rounded, see numbers.py."""

    function: Function
    numbers: Numbers
    ties_up: bool


OPS: Final[dict[str, OpRow]] = {}
"""The ops that Singe reads, by name; those that are none of TensorFlow Lite's own after "CUSTOM:"."""


def op(*names: str, numbers: Numbers = Numbers.REAL, ties_up: bool = False) -> Callable[[Function], Function]:
    """Enters a function in OPS."""

    def enter(function: Function) -> Function:
        for name in names:
            if name in OPS:
                raise ValueError(f"{name} has a row already")
            OPS[name] = OpRow(function, numbers, ties_up)
        return function

    return enter


# --- quantised integers --------------------------------------------------------------------------------------------


def dtype_of(tensor: TfliteTensor) -> DType:
    """A tensor's type in a Graph."""
    if tensor.dtype in NIBBLES:
        return int8
    if tensor.dtype not in DTYPES or tensor.dtype in ("string", "complex64", "complex128"):
        raise ImportFailure(f"the tensor {tensor.name!r} is {tensor.dtype}, which Singe lacks here")
    return DTYPES[tensor.dtype]


def is_quantised(tensor: TfliteTensor) -> bool:
    """Whether a tensor's integers stand for real numbers. Those of 32 bits do so only as the biases of products."""
    return tensor.quantization is not None and tensor.dtype in ("int8", "uint8", "int16", *NIBBLES)


def run_op(call: TfliteCall) -> list[Node]:
    """The outputs of an op as the file stores them, with the activation that is fused behind it. Those that are complex are two each: the real
    parts of all, then the imaginary ones."""
    row = OPS[call.op.op]
    if any(call.imaginary):
        return _of_complex(row, call)
    if row.numbers is Numbers.OWN:
        return _listed(row.function(call))
    arguments = tuple(_argument(call, row.numbers, k, x) for k, x in enumerate(call.inputs))
    inner = replace(call, inputs=arguments)
    made = _listed(row.function(inner))
    out: list[Node] = []
    for y, tensor in zip(made, call.wanted, strict=False):
        scale = tensor.quantization if is_quantised(tensor) else None
        if row.numbers is Numbers.STORED:
            out.append(activated(call, y, scale))
            continue
        real = activated(call, y, None)
        if scale is None or not y.dtype.is_float:
            out.append(real)
        else:
            out.append(quantised(call.b, real, scale, dtype_of(tensor), ties_up=row.ties_up))
    return out


PARTED: Final = frozenset({
    "BROADCAST_TO", "CONCATENATION", "EXPAND_DIMS", "GATHER", "GATHER_ND", "PACK", "PAD", "RESHAPE", "REVERSE_V2", "SLICE", "SPLIT", "SPLIT_V",
    "SQUEEZE", "STRIDED_SLICE", "TILE", "TRANSPOSE", "UNPACK",
})  # fmt: skip
"""Ops that do with complex numbers what they do with the real parts, and with the imaginary ones."""
WHOLE: Final = frozenset({"CAST", "COMPLEX_ABS", "IMAG", "RANK", "REAL", "SHAPE"})
"""Ops of complex numbers whose functions know of them, or need the real parts alone."""


def _of_complex(row: OpRow, call: TfliteCall) -> list[Node]:
    if call.op.op in WHOLE:
        return _listed(row.function(call))
    if call.op.op not in PARTED or any(tensor.dtype != "complex64" for tensor in call.wanted):
        raise call.fail("it computes with complex numbers, which Singe lacks here")
    parts = tuple(a if b is None else b for a, b in zip(call.inputs, call.imaginary, strict=True))
    return [y for inputs in (call.inputs, parts) for y in _listed(row.function(replace(call, inputs=inputs)))]


def _argument(call: TfliteCall, numbers: Numbers, k: int, x: Node | None) -> Node | None:
    """Input k as a row takes it."""
    scale = call.scale(k)
    if x is None or scale is None:
        return x
    if numbers is Numbers.REAL:
        return dequantised(call.b, x, scale)
    tensor = call.wanted[0] if call.wanted else None
    if tensor is None or not is_quantised(tensor) or scale.equals(tensor.quantization):
        return x
    assert tensor.quantization is not None
    return requantised(call.b, x, scale, tensor.quantization, dtype_of(tensor))


def _listed(results: Results) -> list[Node]:
    return [results] if isinstance(results, Node) else list(results)


BOUNDS: Final[dict[str, tuple[float, float]]] = {
    "RELU": (0.0, np.inf),
    "RELU_N1_TO_1": (-1.0, 1.0),
    "RELU6": (0.0, 6.0),
    "RELU_0_TO_1": (0.0, 1.0),
}
"""Op ↦ the least and the largest number that it lets through."""


def bounded(b: Builder, x: Node, low: float, high: float) -> Node:
    """x within bounds, of which the upper one may be infinite."""
    if high == np.inf and low == 0:
        return b.relu(x)
    return b.clip(x, b.const(low, x.dtype), b.const(high, x.dtype))


def activated(call: TfliteCall, y: Node, scale: Quantization | None) -> Node:
    """y, or the integers of this scale, behind the op's activation."""
    name, b = call.activation, call.b
    if not name:
        return y
    if name == "TANH" and scale is None:
        return b.tanh(y)
    if name not in BOUNDS:
        raise call.fail(f"the activation {name}, which Singe lacks{' among integers' if scale is not None else ''}")
    low, high = BOUNDS[name]
    if scale is None:
        return bounded(b, y, low, high)
    least, most = y.dtype.limits
    ends = [int(np.clip(np.round(v / scale.scale[0]) + scale.zero[0], least, most)) for v in (low, high)]
    return b.clip(y, *(b.const(v, y.dtype) for v in ends))
