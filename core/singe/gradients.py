"""Gradients of functions of Tensors and Modules, as functions: `grad`, `value_and_grad`.

    def loss(model, x, target):
        return nn.CrossEntropyLoss()(model(x), target)

    value, gradients = sg.value_and_grad(loss)(model, x, target)

The function is traced at each call, and its value and gradients are computed together on the device of its tensors, by one
Program that is compiled once. In a function that is traced itself, they become part of that function. So `grad` of a
function that uses `grad` gives second derivatives, and `sg.compile` of a step of training is one Program.

Where the parts of the first argument are on several devices, the function runs on these, lazily, and is differentiated by
`backward`: from one move to the next, each device computes one Program.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from .dtypes import FLOATS
from .errors import InputError, ShapeError
from .graph import Graph, Node, checkpointed, gradient
from .hints import answering
from .nn._copies import changing
from .nn._module import Module, tensors_in, with_parts
from .nn._on_several import OnSeveral
from .runtime.device import Device
from .shapes import deferring, plain, show
from .tensors.functions.creation import tensor, zeros
from .tensors.gradients import Gradients
from .tensors.tensor import Tensor, home_of, value_on
from .tensors.tracing import Lifting, tracing
from .tracebacks import shortened


@answering("gradient argument")
def grad(function: Callable[..., Any], *, has_aux: bool = False) -> Callable[..., Any]:
    """The function that gives the Gradients of `function` by its first argument; with has_aux, (Gradients, aux)."""

    @shortened
    def differentiated(*args: Any, **named: Any) -> Any:
        value, found = value_and_grad(function, has_aux=has_aux)(*args, **named)
        return (found, value[1]) if has_aux else found

    return differentiated


@answering("gradient argument")
def value_and_grad(function: Callable[..., Any], *, has_aux: bool = False) -> Callable[..., tuple[Any, Gradients]]:
    """The function that gives (value, Gradients) of `function` by its first argument: a Module, of which its parameters
    count, a Tensor, or a list, tuple or dict of Tensors. These may be on several devices, where `function` moves what it hands on.

    `function` returns a tensor of one number; with has_aux a pair of it and aux, tensors or modules that are returned as they
    are: ((value, aux), Gradients).
    """

    @shortened
    def differentiated(by: Any, *args: Any, **named: Any) -> tuple[Any, Gradients]:
        names = differentiable(by)
        if len({x.device for x in names.values()}) > 1:
            return _by_backward(function, has_aux, names, (by, args, named))
        given = _InputValues((by, args, named))
        on = Lifting()
        leaves = [value_on(on, x) for x in names.values()]
        traced = with_parts(by, lambda x: Tensor(on, value_on(on, x)) if isinstance(x, Tensor) else x, shared=True)
        placed_args, placed_named = given.placed(args), given.placed(named)
        copies = changing((by, args, named), (traced, placed_args, placed_named))
        with deferring(), tracing(on), copies:
            result = function(traced, *placed_args, **placed_named)
        loss, aux = _pair(result, function) if has_aux else (result, None)
        value = value_on(on, _number(loss, function))
        b = on.builder
        seed = b.expand(b.const(1, value.dtype), shape=value.shape)
        found = gradient(Graph((), (value,), ("",), b.size_nodes), b, [seed], leaves)
        outputs = _Outputs(on, [value, *found])
        placed = with_parts(aux, outputs.place)
        made = outputs.run(given.home(on))
        kept = with_parts(placed, lambda part: part.of(made) if isinstance(part, _Placed) else part)
        gradients = zip(names.values(), made[1 : len(found) + 1], strict=True)
        return (made[0], kept) if has_aux else made[0], Gradients(gradients, names)

    return differentiated


def _by_backward(
    function: Callable[..., Any], has_aux: bool, names: Mapping[str, Tensor], arguments: tuple[Any, Any, Any]
) -> tuple[Any, Gradients]:
    """`value_and_grad` by tensors of these names on several devices."""
    given = _InputValues(arguments)
    on = OnSeveral(given.tensors)
    watched = [on.placed(x, watched=True) for x in names.values()]
    copies = on.copied(given.placed(arguments))
    by, args, named = copies
    with changing(arguments, copies):
        result = function(by, *args, **named)
    loss, aux = _pair(result, function) if has_aux else (result, None)
    loss = _number(loss, function)
    found: Any = loss.backward() if loss.requires_grad else {}
    gradients = [found.get(x) for x in watched]
    gradients = [zeros(x.shape, x.dtype, x.device) if g is None else g for x, g in zip(watched, gradients, strict=True)]
    value, gradients, aux = on.given_back((loss.detach(), gradients, aux))
    return (value, aux) if has_aux else value, Gradients(zip(names.values(), gradients, strict=True), names)


def differentiable(by: Any) -> dict[str, Tensor]:
    """The float tensors of an argument that are not buffers, by path; shared ones once."""
    found: dict[str, Tensor] = {}
    seen: set[int] = set()
    for path, x, is_buffer in tensors_in(by):
        if not is_buffer and x.dtype in FLOATS and id(x._value) not in seen:
            seen.add(id(x._value))
            found[path] = x
    if not found:
        what = f"a {type(by).__name__} without parameters of a float type" if isinstance(by, Module) else repr(by)[:80]
        raise InputError(
            f"value_and_grad: the first argument is {what}, expected a Module, a Tensor of floats, or a list or dict of them"
        )
    return found


def _number(x: Any, function: Callable[..., Any]) -> Tensor:
    if not isinstance(x, Tensor):
        hint = "; a pair needs has_aux=True" if isinstance(x, tuple) else ""
        raise InputError(f"{_name(function)} returned {repr(x)[:80]}, expected a Tensor of one number{hint}")
    if plain(x.shape) not in ((), (1,)) or x.dtype not in FLOATS:
        raise ShapeError(
            f"{_name(function)} returned {x.dtype} of shape {show(x.shape)}, expected one number of a float type: use mean() or sum()"
        )
    return x


def _pair(result: Any, function: Callable[..., Any]) -> tuple[Any, Any]:
    if not isinstance(result, tuple) or len(result) != 2:
        raise InputError(f"{_name(function)} returned {repr(result)[:80]}, expected (value, aux), as has_aux says")
    return result


def _name(function: Callable[..., Any]) -> str:
    return getattr(function, "__name__", type(function).__name__)


class _InputValues:
    """The tensors among the arguments of a function, and the device on which its value is computed."""

    def __init__(self, arguments: Any) -> None:
        self.tensors = [x for _, x, _ in tensors_in(arguments)]

    def placed(self, arguments: Any) -> Any:
        """The arguments with tensors in place of arrays, which would be constants of the Program."""
        on = home_of(self.tensors)
        return with_parts(arguments, lambda x: tensor(x, device=on) if isinstance(x, np.ndarray) else x, shared=True)

    def home(self, on: Lifting) -> Device:
        return home_of([*self.tensors, *on.lifted])


class _Placed:
    """The place of a tensor among the results of a Graph."""

    def __init__(self, place: int) -> None:
        self.place = place

    def of(self, tensors: Sequence[Tensor]) -> Tensor:
        return tensors[self.place]


class _Outputs:
    """The nodes that a Graph of a Lifting gives, each once."""

    def __init__(self, on: Lifting, first: Sequence[Node]) -> None:
        self.on = on
        self.nodes = list(first)
        self._inputs = {node: x for x, node in on.lifted.items()}

    def place(self, part: Any) -> Any:
        """For a tensor: the original if it was lifted, or its place among the results. Anything else as it is."""
        if not isinstance(part, Tensor):
            return part
        node = value_on(self.on, part)
        if node in self._inputs:
            return self._inputs[node]
        self.nodes.append(node)
        return _Placed(len(self.nodes) - 1)

    def run(self, home: Device) -> list[Tensor]:
        """The results on a device."""
        lifted, on = self.on.lifted, self.on
        names = tuple(f"y{k}" for k in range(len(self.nodes)))
        graph = Graph(tuple(lifted.values()), tuple(self.nodes), names, on.builder.size_nodes)
        values = [value_on(home, x if x.device is home or home.trace_depth else x.to(home)) for x in lifted]
        return [Tensor(home, v) for v in home.run(graph, values)]


def checkpoint(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of Tensors of which the gradient computes the values between again: less memory, more time."""

    def called(*args: Any, **named: Any) -> Any:
        given = _InputValues((args, named))
        on = Lifting()

        def traced(part: Any) -> Any:
            return Tensor(on, value_on(on, part)) if isinstance(part, Tensor) else part

        placed = with_parts(given.placed((args, named)), traced, shared=True)
        with deferring(), tracing(on), changing((args, named), placed):
            result = function(*placed[0], **placed[1])
        outputs = _Outputs(on, [])
        placed = with_parts(result, outputs.place)
        names = ("",) * len(outputs.nodes)
        body = Graph(tuple(on.lifted.values()), tuple(outputs.nodes), names, on.builder.size_nodes)
        home = given.home(on)
        values = [value_on(home, x) for x in on.lifted]
        made = [Tensor(home, v) for v in home.apply(lambda b, *nodes: checkpointed(b, body, nodes), values)]
        return with_parts(placed, lambda part: part.of(made) if isinstance(part, _Placed) else part)

    return called
