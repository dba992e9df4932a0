"""500 seeded random Graphs of the rows: every device agrees with NumPy, for more than one batch size of one Program.

A graph grows by steps drawn from STEPS. Values that are exact (small whole numbers, moved, added, multiplied) are told
apart from rounded ones: comparisons, rounding and conversion to integers, where one last bit makes another answer, are
only made of exact ones. Integers and bools must agree to the bit, floats within a tolerance of their largest value.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from singe.dtypes import DType, bool_, float16, float32, int32, int64, uint8
from singe.graph import Builder, Graph, Node
from singe.model.model import Model
from singe.shapes import size

GRAPHS = 500
CHUNK = 10
TOLERANCE = {float32: 2e-4, float16: 2e-2}
LARGEST = 4096.0
"""Elements of a tensor at most: the graphs are many, not large."""


@dataclass
class Sketch:
    """A graph being drawn: its nodes by what may be asked of them."""

    rng: np.random.Generator
    b: Builder = field(default_factory=Builder)
    nodes: list[Node] = field(default_factory=list)
    exact: set[Node] = field(default_factory=set)
    bound: dict[Node, float] = field(default_factory=dict)  # the largest absolute value

    def add(self, n: Node, exact: bool, bound: float) -> None:
        if elements(n) <= LARGEST and n not in self.bound:
            self.nodes.append(n)
            self.bound[n] = bound
            if exact:
                self.exact.add(n)

    def pick(self, where: Callable[[Node], bool] = lambda n: True) -> Node | None:
        """Some node, the latest ones more often."""
        fit = [n for n in self.nodes if where(n)]
        return fit[-1 - int(len(fit) * self.rng.random() ** 2)] if fit else None

    def partner(self, x: Node) -> Node | None:
        """A node of the same dtype that broadcasts with x."""
        return self.pick(
            lambda n: (
                n.dtype is x.dtype
                and len(n.shape) <= len(x.shape)
                and all(d in (1, e) for d, e in zip(n.shape[::-1], x.shape[::-1], strict=False))
            )
        )

    def one_of(self, *choices: Any) -> Any:
        return choices[int(self.rng.integers(len(choices)))]


def elements(n: Node) -> float:
    """How many there are when N is 3."""
    return float(np.prod([d if isinstance(d, int) else 3 for d in n.shape]))


def by_name(b: Builder, row: str, *inputs: Node, **attrs: Any) -> Node:
    return getattr(b, row)(*inputs, **attrs)


def is_float(n: Node) -> bool:
    return n.dtype.is_float


def axis_in(s: Sketch, x: Node) -> int:
    return int(s.rng.integers(len(x.shape)))


# --- steps: each draws one more node, or none ------------------------------------------------------------------------


def unary(s: Sketch) -> None:
    x = s.pick(is_float)
    if x is None:
        return
    op, needs, exact, after = s.one_of(*UNARY)
    if needs(s.bound[x]):
        if op == "log":
            x = s.b.add(s.b.abs(x), s.b.const(0.5, x.dtype))
        elif op == "sqrt":
            x = s.b.abs(x)
        s.add(by_name(s.b, op, x), exact and x in s.exact, after(s.bound.get(x, 10.0)))


UNARY: list[tuple[str, Callable[[float], bool], bool, Callable[[float], float]]] = [
    ("neg", lambda m: True, True, lambda m: m),
    ("abs", lambda m: True, True, lambda m: m),
    ("relu", lambda m: True, True, lambda m: m),
    ("exp", lambda m: m <= 4, False, lambda m: float(np.exp(m))),
    ("tanh", lambda m: True, False, lambda m: 1.0),
    ("sigmoid", lambda m: True, False, lambda m: 1.0),
    ("erf", lambda m: True, False, lambda m: 1.0),
    ("gelu", lambda m: True, False, lambda m: m),
    ("log", lambda m: m < 1e4, False, lambda m: 10.0),
    ("sqrt", lambda m: m < 1e4, False, lambda m: m + 1),
    ("hard_sigmoid", lambda m: True, False, lambda m: 1.0),
]


def binary(s: Sketch) -> None:
    x = s.pick(lambda n: n.dtype is not bool_)
    y = s.partner(x) if x is not None else None
    if x is None or y is None:
        return
    op = s.one_of("add", "sub", "mul", "minimum", "maximum")
    a, b = (x, y) if s.rng.random() < 0.5 else (y, x)
    bound = s.bound[a] * s.bound[b] if op == "mul" else s.bound[a] + s.bound[b]
    whole = not is_float(x)
    if whole or bound < (30 if x.dtype is float16 else 2000):
        s.add(by_name(s.b, op, a, b), whole or {a, b} <= s.exact, bound)


def compare(s: Sketch) -> None:
    x = s.pick(lambda n: n.dtype is not bool_ and n in s.exact)
    y = s.partner(x) if x is not None else None
    if x is not None and y is not None and y in s.exact:
        s.add(by_name(s.b, s.one_of("equal", "less", "greater_equal"), x, y), True, 1)


def logic(s: Sketch) -> None:
    x = s.pick(lambda n: n.dtype is bool_)
    y = s.partner(x) if x is not None else None
    if x is not None and y is not None:
        s.add(by_name(s.b, s.one_of("logical_and", "logical_or", "logical_xor"), x, y), True, 1)


def choose(s: Sketch) -> None:
    c = s.pick(lambda n: n.dtype is bool_)
    x = s.pick(lambda n: c is not None and n.dtype is not bool_ and n.shape == c.shape)
    y = s.partner(x) if x is not None else None
    if c is not None and x is not None and y is not None:
        s.add(s.b.where(c, x, y), {x, y} <= s.exact or not is_float(x), max(s.bound[x], s.bound[y]))


def convert(s: Sketch) -> None:
    x = s.pick(lambda n: n in s.exact)
    to = s.one_of(float32, float16, int32, int64, uint8, bool_)
    if (
        x is None
        or (to is float16 and s.bound[x] > 1000)
        or (to is uint8 and s.bound[x] > 1e6)
        or (is_float(x) and to is uint8)
    ):
        return
    s.add(s.b.cast(x, to=to), to is not float16, 255 if to is uint8 else s.bound[x])


def reshape(s: Sketch) -> None:
    x = s.pick(lambda n: len(n.shape) >= 2)
    if x is None:
        return
    i = int(s.rng.integers(len(x.shape) - 1))
    if s.rng.random() < 0.5:
        shape = (*x.shape[:i], x.shape[i] * x.shape[i + 1], *x.shape[i + 2 :])
    else:
        d = x.shape[i + 1]
        k = next((k for k in (2, 3, 4) if isinstance(d, int) and d % k == 0 and d), 1)
        shape = (*x.shape[: i + 1], d // k, k, *x.shape[i + 2 :])
    if len(shape) <= 5:
        s.add(s.b.reshape(x, shape=shape), x in s.exact, s.bound[x])


def transpose(s: Sketch) -> None:
    x = s.pick(lambda n: len(n.shape) >= 2)
    if x is not None:
        s.add(s.b.transpose(x, perm=tuple(map(int, s.rng.permutation(len(x.shape))))), x in s.exact, s.bound[x])


def cut(s: Sketch) -> None:
    x = s.pick(lambda n: any(isinstance(d, int) and d > 1 for d in n.shape))
    if x is None:
        return
    axis = s.one_of(*(i for i, d in enumerate(x.shape) if isinstance(d, int) and d > 1))
    starts, steps, sizes = [0] * len(x.shape), [1] * len(x.shape), list(x.shape)
    d = int(x.shape[axis])  # pyright: ignore[reportArgumentType]
    steps[axis] = s.one_of(1, 2, -1)
    starts[axis] = int(s.rng.integers(d))
    room = (starts[axis] if steps[axis] < 0 else d - 1 - starts[axis]) // abs(steps[axis]) + 1
    sizes[axis] = int(s.rng.integers(1, room + 1))
    s.add(s.b.slice(x, starts=tuple(starts), steps=tuple(steps), sizes=tuple(sizes)), x in s.exact, s.bound[x])


def pad(s: Sketch) -> None:
    x = s.pick(lambda n: n.dtype is not bool_ and len(n.shape) >= 1)
    if x is None:
        return
    axis = axis_in(s, x)
    mode = s.one_of("constant", "constant", "reflect", "edge", "wrap")
    d = x.shape[axis]
    if mode != "constant" and not (isinstance(d, int) and d > 2):
        return
    before, after = ([0] * len(x.shape) for _ in range(2))
    before[axis], after[axis] = int(s.rng.integers(3)), int(s.rng.integers(3))
    s.add(
        s.b.pad(x, s.b.const(1, x.dtype), before=tuple(before), after=tuple(after), mode=mode),
        x in s.exact,
        max(1, s.bound[x]),
    )


def concat(s: Sketch) -> None:
    x = s.pick(lambda n: len(n.shape) >= 1)
    if x is None:
        return
    axis = axis_in(s, x)
    if not isinstance(x.shape[axis], int):
        return
    same = [
        n
        for n in s.nodes
        if n.dtype is x.dtype
        and len(n.shape) == len(x.shape)
        and all(a == b or i == axis for i, (a, b) in enumerate(zip(n.shape, x.shape, strict=True)))
    ]
    parts = [s.one_of(*same) for _ in range(int(s.rng.integers(2, 4)))]
    s.add(s.b.concat(*parts, axis=axis), all(p in s.exact for p in parts), max(s.bound[p] for p in parts))


def gather(s: Sketch) -> None:
    x = s.pick(lambda n: len(n.shape) >= 1 and isinstance(n.shape[-1], int) and n.shape[-1] > 0)
    if x is not None:
        d = int(x.shape[-1])  # pyright: ignore[reportArgumentType]
        index = s.b.const(s.rng.integers(-d, d, size=s.one_of((2,), (3,), (2, 2))), int64)
        s.add(s.b.gather(x, index, axis=len(x.shape) - 1), x in s.exact, s.bound[x])


def reduce(s: Sketch) -> None:
    x = s.pick(lambda n: n.dtype is not bool_ and len(n.shape) >= 1)
    if x is None:
        return
    axes = tuple(sorted({axis_in(s, x), axis_in(s, x)}))
    op = s.one_of("reduce_sum", "reduce_max", "reduce_min", "reduce_mean")
    if (op == "reduce_mean" and not is_float(x)) or (x.dtype is float16 and op == "reduce_sum"):
        op = "reduce_max"
    bound = s.bound[x] * 200 if op == "reduce_sum" else s.bound[x]
    if bound < 5000 or not is_float(x):
        s.add(by_name(s.b, op, x, axes=axes), (x in s.exact and op != "reduce_mean") or not is_float(x), bound)


def normalise(s: Sketch) -> None:
    x = s.pick(lambda n: n.dtype is float32 and len(n.shape) >= 1)
    if x is None:
        return
    if s.rng.random() < 0.5:
        s.add(s.b.softmax(x, axis=axis_in(s, x)), False, 1)
        return
    centred = s.b.sub(x, s.b.reduce_mean(x, axes=(len(x.shape) - 1,)))
    variance = s.b.reduce_mean(s.b.mul(centred, centred), axes=(len(x.shape) - 1,))
    s.add(s.b.div(centred, s.b.sqrt(s.b.add(variance, s.b.const(0.1, float32)))), False, 20)


def dot(s: Sketch) -> None:
    x = s.pick(
        lambda n: (
            is_float(n)
            and len(n.shape) >= 2
            and isinstance(n.shape[-1], int)
            and 0 < n.shape[-1] <= 64
            and s.bound[n] < 100
        )
    )
    if x is None:
        return
    k, n = int(x.shape[-1]), s.one_of(1, 2, 5, 8, 17)  # pyright: ignore[reportArgumentType]
    w = s.b.const(s.rng.uniform(-1, 1, (k, n)) / np.sqrt(k), x.dtype)
    y = s.b.dot(x, w)
    if s.rng.random() < 0.7:
        y = s.b.add(y, s.b.const(s.rng.uniform(-1, 1, (n,)), x.dtype))
    s.add(y, False, s.bound[x] * np.sqrt(k) + 1)


def conv(s: Sketch) -> None:
    x = s.pick(
        lambda n: (
            n.dtype is float32
            and 3 <= len(n.shape) <= 5
            and all(isinstance(d, int) for d in n.shape[1:])
            and s.bound[n] < 100
        )
    )
    if x is None:
        return
    spaces = len(x.shape) - 2
    channels = int(x.shape[1])  # pyright: ignore[reportArgumentType]
    group = s.one_of(1, channels, *(g for g in (2, 3) if channels % g == 0))
    outputs = group * s.one_of(1, 2, 3) if s.rng.random() < 0.6 else channels
    outputs -= outputs % group
    window = tuple(min(s.one_of(1, 2, 3), int(d)) for d in x.shape[2:])  # pyright: ignore[reportArgumentType]
    w = s.b.const(
        s.rng.uniform(-1, 1, (outputs, channels // group, *window)) / np.sqrt(np.prod(window) * channels / group),
        float32,
    )
    bias = s.b.const(s.rng.uniform(-1, 1, (outputs,)), float32) if s.rng.random() < 0.7 else None
    pads = [tuple(map(int, s.rng.integers(0, 2, spaces))) for _ in range(2)]
    y = s.b.conv(
        x,
        w,
        bias,
        strides=tuple(map(int, s.rng.integers(1, 3, spaces))),
        dilations=(1,) * spaces,
        before=pads[0],
        after=pads[1],
        group=group,
    )
    s.add(y, False, s.bound[x] * 30**0.5 + 1)


def pool(s: Sketch) -> None:
    x = s.pick(lambda n: is_float(n) and len(n.shape) >= 2 and all(isinstance(d, int) for d in n.shape[1:]))
    if x is not None:
        window = (1, *(min(2, int(d)) if d else 1 for d in x.shape[1:]))  # pyright: ignore[reportArgumentType]
        ones, none = (1,) * len(x.shape), (0,) * len(x.shape)
        s.add(
            s.b.max_pool(x, window=window, strides=window, dilations=ones, before=none, after=none),
            x in s.exact,
            s.bound[x],
        )


def resize(s: Sketch) -> None:
    x = s.pick(
        lambda n: n.dtype is float32 and len(n.shape) == 4 and all(isinstance(d, int) and d > 0 for d in n.shape[2:])
    )
    if x is not None:
        mode, factor = s.one_of("nearest", "linear", "cubic"), s.one_of(2.0, 1.5)
        sizes = (*x.shape[:2], *(int(d * factor) for d in x.shape[2:]))  # pyright: ignore[reportOperatorIssue]
        s.add(s.b.resize(x, sizes=sizes, scales=(1.0, 1.0, factor, factor), mode=mode), False, 2 * s.bound[x])


STEPS = [
    unary,
    unary,
    binary,
    binary,
    compare,
    logic,
    choose,
    convert,
    reshape,
    transpose,
    cut,
    pad,
    concat,
    gather,
    reduce,
    normalise,
    dot,
    conv,
    pool,
    resize,
]


def draw(seed: int) -> tuple[Graph, dict[str, Callable[[int], np.ndarray]]]:
    """A graph, and for each input its array at a batch size."""
    rng = np.random.default_rng(seed)
    s = Sketch(rng)
    makers: dict[str, Callable[[int], np.ndarray]] = {}
    inputs: list[Node] = []
    for i in range(int(rng.integers(1, 4))):
        kind: DType = float32 if i == 0 else s.one_of(float32, float32, int32, int64, uint8, float16, bool_)
        lead = size("N") if rng.random() < 0.7 else s.one_of(1, 2)
        shape = (lead, *(int(d) for d in s.one_of((3,), (4, 6), (2, 5, 4), (4, 3, 6), (), (3, 4, 4))))
        x = s.b.input(f"x{i}", shape, kind)
        inputs.append(x)
        s.add(x, True, 4 if kind is not bool_ else 1)

        def make(n: int, x: Node = x, seed: int = seed * 10 + i) -> np.ndarray:
            whole = np.random.default_rng(seed).integers(
                -4 if x.dtype is not uint8 else 0, 5, [d if isinstance(d, int) else n for d in x.shape]
            )
            return (whole % 2).astype(bool) if x.dtype is bool_ else whole.astype(x.dtype.numpy)

        makers[x.name] = make
    for _ in range(int(rng.integers(4, 16))):
        s.one_of(*STEPS)(s)
    used = {x for n in s.nodes for x in n.inputs}
    ends = [n for n in s.nodes if n not in used and n not in inputs] or [s.nodes[-1]]
    outputs = tuple(dict.fromkeys([*ends[-3:], s.nodes[len(s.nodes) // 2]]))
    return Graph(tuple(inputs), outputs, tuple(f"y{i}" for i in range(len(outputs)))), makers


def assert_close(got: np.ndarray, want: np.ndarray, what: str) -> None:
    assert (got.shape, got.dtype) == (want.shape, want.dtype), what
    if want.dtype.kind != "f":
        np.testing.assert_array_equal(got, want, what)
    elif want.size:
        top = max(1.0, float(np.abs(want.astype(np.float64)).max()))
        worst = float(np.abs(got.astype(np.float64) - want.astype(np.float64)).max())
        assert worst <= TOLERANCE[float16 if want.dtype == np.float16 else float32] * top, (
            f"{what}: off by {worst:.3g} of {top:.3g}"
        )


@pytest.mark.parametrize("chunk", range(GRAPHS // CHUNK))
@pytest.mark.parametrize("device_name", ["wasm", "webgpu"], indirect=True)
def test_devices_agree_on_random_graphs(chunk: int, device_name: str) -> None:
    for seed in range(chunk * CHUNK, (chunk + 1) * CHUNK):
        graph, makers = draw(seed)
        reference, model = Model(graph, "numpy"), Model(graph, device_name)
        for batch in (2, 3):
            arrays = {k: make(batch) for k, make in makers.items()}
            want, got = reference(arrays), model(arrays)
            if not isinstance(want, dict):
                want, got = {"y0": want}, {"y0": got}
            for name, array in want.items():
                assert_close(got[name], array, f"seed {seed}, batch {batch}, output {name} on {device_name}")
