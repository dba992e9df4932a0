"""Tracing turns a function of Tensors into a Graph: it calls the function once, with placeholder tensors.

The placeholders belong to a Tracer, a device on which nothing runs. Tensors of other devices that the function uses,
such as a module's parameters, become constants. Dimensions may be symbolic. Python code that looks at elements (`if x >
0`, `x.item()`) cannot be traced: it raises a DeviceError.

A function with states takes them as keyword arguments. It returns its outputs, and a dict of the states' next values:

    def step(x, *, count):
        return x + count, {"count": count + 1}

What the function draws without a key (default_keys.py) is drawn of a state that the trace adds: a sequence of keys, of which each
run takes as many as there are draws.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final, TypeAlias, cast

import numpy as np

from ..compiler.target import Target
from ..dtypes import DType, dtype, uint32
from ..errors import CompileError, DeviceError, DTypeError, InputError, ShapeError
from ..graph import Builder, Graph, GraphState, Node, inline
from ..program.program import ProgramData
from ..runtime import random_keys
from ..runtime.backend import Executable
from ..runtime.debugging import note_origins
from ..runtime.device import Build, Device, nodes_of
from ..runtime.device_lock import DeviceLock
from ..runtime.traced import TRACER
from ..shapes import Dim, deferring, same_form, show
from ..texts import with_article
from .nodes.promotion import plain_array
from .observed import Observed, watched
from .tensor import Tensor, value_on

Spec: TypeAlias = tuple[str, Sequence[Dim], DType]
"""An argument: its name, its shape, which may hold Sizes, and its dtype."""


_ABOVE_ALL: Final = 1 << 16
"""The precedence of a trace: that of devices on which something runs is less."""


class KeyState:
    """A state that is a sequence of keys. leaf: the node that reads it, once something was drawn; count: its draws."""

    def __init__(self, taken: Iterable[str]) -> None:
        """taken: the names of inputs and of other states."""
        names = {*taken}
        number = 1
        while (name := random_keys.KEY if number == 1 else f"{random_keys.KEY}{number}") in names:
            number += 1
        self.name: Final = name
        self.leaf: Node | None = None
        self.count = 0

    def next(self, b: Builder) -> Node:
        """The next key."""
        self.count += 1
        return self._after(b)

    def state(self, b: Builder) -> GraphState:
        """The state of the Graph; what a run leaves are the keys after those that it took."""
        return GraphState(self._read(b), self.name, None, self._after(b), self.count)

    def _read(self, b: Builder) -> Node:
        self.leaf = self.leaf or b.input(self.name, (2,), uint32)
        return self.leaf

    def _after(self, b: Builder) -> Node:
        """What is left after the draws so far."""
        leaf = self._read(b)
        return b.add(leaf, b.const(random_keys.as_array(random_keys.after((0, 0), self.count)))) if self.count else leaf


class Tracer(Device):
    """A device that records ops as nodes of one Graph and runs none. Its values are the nodes."""

    trace_depth = 1
    precedence = _ABOVE_ALL

    def __init__(self, builder: Builder | None = None) -> None:
        self.lock = DeviceLock("tracing", renews=True)
        self.builder: Final = builder or Builder()
        self.keys: KeyState | None = None
        """Of what the function draws, if that can be a state."""
        self._adopted: Final[dict[int, tuple[Any, Node]]] = {}  # id ↦ the value (keeps the id in use) and its node

    @property
    def name(self) -> str:
        return "tracing"

    @property
    def runs_again(self) -> bool:
        return running_again(self) is not None

    def __reduce__(self) -> tuple[Any, ...]:
        raise DeviceError("a tensor of a function that is being traced cannot be copied or pickled")

    def input(self, spec: Spec) -> Tensor:
        return Tensor(self, self.builder.input(*spec))

    def upload(self, array: np.ndarray) -> Node:
        return self.builder.const(array)

    def import_value(self, value: Any, source: Device) -> Node:
        """The value as a constant; adopting a value again gives the same node."""
        if source.trace_depth:
            raise DeviceError(
                "a tensor from the trace of another function is used here: return it from that function, and pass it in"
            )
        if id(value) not in self._adopted:
            self._adopted[id(value)] = value, self.upload(source.download(value))
        return self._adopted[id(value)][1]

    def destination(self, target: Device) -> Device:
        if target is self:
            return target
        raise DeviceError(
            f"to: got the device {target.name!r} while a function is traced (to compile it, or for its gradient), which runs on one "
            "device; leave the move out, and move its arguments before the call, or what it returns. Gradients go back through moves "
            "by backward(), on the devices of sg.Autodiff(sg.Router(…)), and by sg.value_and_grad where the parts of its first "
            "argument are on several devices; TrainStep and Learner take such a model with device=sg.Router(…)"
        )

    def apply(self, build: Build, values: Sequence[Node]) -> tuple[Node, ...]:
        before = self.builder.count
        made = nodes_of(build(self.builder, *values))
        note_origins(self.builder.made_since(before), self._node_of)
        return made

    def run(self, graph: Graph, values: Sequence[Node]) -> tuple[Node, ...]:
        if twice := graph.own_size_nodes.keys() & self.builder.size_nodes.keys():
            raise CompileError(
                f"two models, or one twice, whose sizes depend on data ({', '.join(sorted(twice))}), are called in one function that is "
                "traced; call one of them before, and pass its results"
            )
        before = self.builder.count
        made = inline(graph, self.builder, values)
        note_origins(self.builder.made_since(before), self._node_of)
        return made

    def _node_of(self, value: Any) -> Any:
        """The node of a tensor's value, if this device has met it."""
        return self._adopted[id(value)][1] if id(value) in self._adopted else value

    def fetch(self, value: Node) -> np.ndarray:
        known = self.builder.value_of(value)
        if known is None or known.dtype == object:
            raise DeviceError("a tensor's elements are not known while a function is traced; read them after the call")
        return np.array(known)

    def detached(self, value: Node) -> Node:
        return self.builder.stop_gradient(value)

    def synchronize(self) -> None:
        """There is nothing to wait for."""

    def describe(self) -> Mapping[str, Any]:
        return {}

    @property
    def target(self) -> Target:
        raise DeviceError(
            "nothing can be compiled while a function is traced: compile and run before, and pass the results"
        )

    def prepare(self, program: ProgramData) -> Executable:
        raise DeviceError("no Program can run while a function is traced: run it before, and pass its results")


class Lifting(Tracer):
    """A Tracer to which the tensors of other devices are inputs of the Graph, not constants. lifted: the tensors, and the
    inputs."""

    def __init__(self) -> None:
        super().__init__()
        self.outer: Final = present_tracer()
        self.trace_depth = 1 if self.outer is None else self.outer.trace_depth + 1
        self.precedence = _ABOVE_ALL + self.trace_depth
        self.lifted: Final[dict[Tensor, Node]] = {}

    def import_value(self, value: Any, source: Device) -> Node:
        if id(value) not in self._adopted:
            node = self.builder.input(f"x{len(self.lifted)}", value.shape, value.dtype)
            self._adopted[id(value)] = value, node
            self.lifted[Tensor(source, value)] = node
        return self._adopted[id(value)][1]


def running_again(on: Device | None) -> Tracer | None:
    """The Tracer of the function that runs later and more than once, so that constants are the same in every run, if a
    device is it, or traces a part of it. What a Lifting traces runs once, unless it becomes part of another trace."""
    while isinstance(on, Lifting):
        on = on.outer
    return on if isinstance(on, Tracer) else None


def present_tracer() -> Tracer | None:
    """The device of the function that is being traced at present, if any."""
    return cast("Tracer | None", TRACER.get())


def tracer() -> Tracer:
    """The device of the function that is being traced."""
    found = present_tracer()
    if found is None:
        raise DeviceError(
            "a size has no number, and stands for one only while the function is traced that it belongs to"
            "; use it as a size there, or read x.shape after the call"
        )
    return found


@contextmanager
def tracing(on: Tracer) -> Iterator[None]:
    """A context for a call of the function that is traced."""
    token = TRACER.set(on)
    try:
        yield
    finally:
        TRACER.reset(token)


def trace(function: Callable[..., Any], specs: Sequence[Spec], states: Mapping[str, Any] | None = None) -> Graph:
    """The Graph of a function, as `observed_trace` makes it."""
    return observed_trace(function, specs, states)[0]


def observed_trace(
    function: Callable[..., Any],
    specs: Sequence[Spec],
    states: Mapping[str, Any] | None = None,
    copied: Mapping[str, Any] | None = None,
) -> tuple[Graph, Observed]:
    """The Graph of a function of Tensors that returns a Tensor, several in a tuple or list, or a dict of them by name; and what
    it took from outside.

    Outputs without names are called "output", or "output0", "output1", … if there are several. states: the initial
    values by name, each an array, or (shape, dtype) for zeros; see the module's docstring. copied: modules by name of which the function
    has copies; what it takes out of lists and dicts of these, or changes in them, is taken from those of the modules.
    """
    if states is not None and not isinstance(states, Mapping):
        raise InputError(f"states: got {states!r:.80}, expected a dict of initial values by name")
    first = {name: _initial(name, given) for name, given in (states or {}).items()}

    def placeholders() -> tuple[Tracer, KeyState, list[Tensor], dict[str, Tensor]]:
        on = Tracer()
        on.keys = KeyState([*(name for name, _, _ in specs), *first])
        arguments = [on.input(spec) for spec in specs]
        return on, on.keys, arguments, {name: on.input((name, shape, kind)) for name, (shape, kind, _) in first.items()}

    def traced() -> Graph:
        on, drawn, arguments, leaves = placeholders()
        with tracing(on):
            result = function(*arguments, **leaves)
        outputs, updated = _and_states(result, leaves) if leaves else (result, {})
        named = _named(outputs)
        kept = tuple(
            GraphState(value_on(on, leaf), name, first[name][2], value_on(on, updated[name]))
            for name, leaf in leaves.items()
        )
        if drawn.count:
            kept = (*kept, drawn.state(on.builder))
        nodes = tuple(value_on(on, x) for x in named.values())
        inputs = tuple(value_on(on, x) for x in arguments)
        return Graph(inputs, nodes, tuple(named), on.builder.size_nodes, kept)

    with deferring():  # the checks are dropped here: compiling the graph finds them again
        _, _, arguments, leaves = placeholders()
        _check_call(function, arguments, leaves)
        return watched(traced, function, copied or {})


def within(builder: Builder, function: Callable[..., Any], nodes: Sequence[Node | None]) -> tuple[Node | None, ...]:
    """The nodes that a function of Tensors makes of nodes of a Builder. The function returns a Tensor, or several in a
    tuple or list; a value may be None."""
    on = Tracer(builder)
    with tracing(on):
        result = function(*(None if x is None else Tensor(on, x) for x in nodes))
    several = result if isinstance(result, (tuple, list)) else (result,)
    for x in several:
        if x is not None and not isinstance(x, Tensor):
            raise InputError(f"a function of Tensors returned {with_article(type(x).__name__)}, expected a Tensor")
    return tuple(None if x is None else value_on(on, x) for x in several)


def trace_call(function: Callable[..., Any], examples: Sequence[Any], states: Mapping[str, Any] | None = None) -> Graph:
    """The Graph of a function called as function(*examples); its inputs are "x0", "x1", …; states as in `trace`."""
    return trace(function, specs_of(examples), states)


def specs_of(examples: Sequence[Any]) -> list[Spec]:
    """The arguments of a function that is called as function(*examples): "x0", "x1", …."""
    arrays = [x if isinstance(x, Tensor) else plain_array(x) for x in examples]
    return [(f"x{i}", a.shape, dtype(a.dtype)) for i, a in enumerate(arrays)]


def _check_call(function: Callable[..., Any], arguments: Sequence[Tensor], states: Mapping[str, Tensor]) -> None:
    """Refuse a function that does not take these arguments."""
    try:
        signature = inspect.signature(function)
        rest = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
        forward = getattr(function, "forward", None)  # of a module, whose __call__ passes all that it gets
        if forward is not None and all(p.kind in rest for p in signature.parameters.values()):
            signature = inspect.signature(forward)
    except (TypeError, ValueError):  # of a function that is not written in Python
        return
    try:
        signature.bind(*arguments, **states)
    except TypeError as e:
        named = f", and the states {', '.join(states)} by name" if states else ""
        raise InputError(
            f"the function takes {signature}, and is called with {len(arguments)} inputs in order{named}: {e}; give an example, "
            "or the shape, of each input"
        ) from None


def _initial(name: str, argument: Any) -> tuple[tuple[int, ...], DType, np.ndarray | None]:
    """Shape, dtype and initial value (None: zeros) of a state."""
    if (
        isinstance(argument, tuple)
        and len(argument) == 2
        and isinstance(argument[0], Sequence)
        and isinstance(argument[1], (str, type, DType, np.dtype))
    ):
        shape = tuple(argument[0])
        if not all(isinstance(d, int) and d >= 0 for d in shape):
            raise ShapeError(f"state {name!r}: got the shape {show(shape)}, expected numbers: a state keeps its shape")
        return shape, dtype(argument[1]), None
    if isinstance(argument, tuple):
        raise InputError(
            f"state {name!r}: got {argument!r:.80}, expected an array, or a shape and a dtype, as in ((2, 3), 'float32')"
        )
    array = argument.numpy() if isinstance(argument, Tensor) else plain_array(argument)
    return array.shape, dtype(array.dtype), array


def _and_states(result: Any, before: Mapping[str, Tensor]) -> tuple[Any, Mapping[str, Tensor]]:
    """The result of a function with states as its outputs, and the next values of the states."""
    names = ", ".join(before)
    if not isinstance(result, tuple) or len(result) != 2 or not isinstance(result[1], Mapping):
        raise InputError(
            f"the function with states returned {result!r:.80}, expected a tuple of its outputs and a dict of the states' next "
            f"values: {names}"
        )
    after: Mapping[str, Any] = result[1]
    if after.keys() != before.keys():
        returned = f"the states {', '.join(map(str, after))}" if after else "no states"
        raise InputError(
            f"the function returned {returned}; expected a dict with: {names}. Return unchanged states too"
        )
    for name, x in before.items():
        y = after[name]
        if not isinstance(y, Tensor):
            raise InputError(f"state {name!r} becomes {with_article(type(y).__name__)}, expected a Tensor")
        if y.dtype is not x.dtype:
            raise DTypeError(f"state {name!r} is {x.dtype} and becomes {y.dtype}: a state keeps its dtype; cast it")
        if not same_form(tuple(y.shape), tuple(x.shape)):
            raise ShapeError(
                f"state {name!r} has the shape {show(x.shape)} and becomes {show(y.shape)}: a state keeps its shape; reshape or cut what becomes it"
            )
    return result[0], after


def _named(result: Any) -> dict[str, Tensor]:
    """The tensors that a function returned, by name."""
    if isinstance(result, Tensor):
        return {"output": result}
    if isinstance(result, (tuple, list)):
        result = {f"output{i}": x for i, x in enumerate(result)}
    if not isinstance(result, Mapping) or not result:
        raise InputError(f"a traced function returned {result!r:.80}, expected a Tensor, a tuple or a dict of Tensors")
    for name, x in result.items():
        if not isinstance(x, Tensor):
            raise InputError(
                f"a traced function returned {with_article(type(x).__name__)} as {name!r}, expected a Tensor"
            )
    return {str(name): x for name, x in result.items()}
