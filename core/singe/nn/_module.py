"""Module: a layer is plain data. Its fields hold tensors, numbers, other modules, and lists or dicts of them.

Nothing is registered: a module is just its fields. It cannot be changed after `__init__`, so threads may share it, and a trace
of it stays valid. Methods that change something return a new module (`with_state`, `map`, `to`, `train`, `replace`).
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, ClassVar, Final, Protocol, Self, TypeAlias

import numpy as np

from ..dtypes import dtype, float16, float32, own
from ..errors import InputError, ShapeError, SingeError
from ..hints import suggest
from ..ir.arrays import convert
from ..runtime.debugging import name_layer
from ..runtime.device import Device
from ..shapes import show
from ..tensors.argument_errors import ARRAYS, in_words, refuse
from ..tensors.functions.creation import tensor
from ..tensors.layer_statistics import LayerStatistics, figures
from ..tensors.named.holder import TensorHolder
from ..tensors.tensor import Tensor, destination
from ..tensors.tracing import Tracer
from ..tracebacks import shorten, shorten_class
from ._report import compared
from ._summary import ModuleSummary, SummaryLine, called, calls_of, results_of, row, tensors_of


class HeldArray(Protocol):
    """An array that is held elsewhere, such as in a file, and read when it is needed."""

    @property
    def shape(self) -> tuple[int, ...]: ...
    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray: ...


StateDict: TypeAlias = Mapping[str, "Tensor | np.ndarray | HeldArray"]

SHOWN: Final = 8
"""The most names that an error lists."""


class _Closed(type):
    """Closes each instance to changes when its `__init__` returns."""

    @property
    def __signature__(cls) -> inspect.Signature:
        """The arguments that a layer takes, for help and editors, which would show those of `__call__`."""
        module: Any = cls
        return inspect.Signature(module._arguments())

    if not TYPE_CHECKING:  # which would look no further for the arguments

        def __call__(cls, *args: Any, **kwargs: Any) -> Any:
            try:
                module = super().__call__(*args, **kwargs)
            except Exception as e:
                shorten(e)
                raise
            module.__dict__["_closed"] = True
            return module


class Module(metaclass=_Closed):
    """The base of all layers: a class with fields that `__init__` sets, and `forward`, which computes.

        class Double(nn.Module):
            def __init__(self):
                self.layer = nn.Linear(3, 3)

            def forward(self, x):
                return self.layer(x) * 2

    A module cannot be changed after `__init__`: `replace`, `with_state`, `map` and `to` make new ones.

    Tensors in fields are parameters, unless the class names the field among its buffers:
    `class BatchNorm2d(Module, buffers=("running_mean", "running_var"))`. The contents of the field `inline` are named
    without the field's name: "0.weight", not "layers.0.weight".
    """

    _buffers: ClassVar[frozenset[str]] = frozenset()
    _inline: ClassVar[str | None] = None
    _frozen: frozenset[str] = frozenset()
    """The paths, from this module, of its own tensors that `freeze` made buffers."""

    def __init_subclass__(cls, buffers: tuple[str, ...] = (), inline: str | None = None, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls._buffers |= set(buffers)
        cls._inline = inline or cls._inline

    @classmethod
    def _arguments(cls) -> list[inspect.Parameter]:
        init: Any = cls.__init__
        return [] if init is object.__init__ else list(inspect.signature(init).parameters.values())[1:]

    def __setattr__(self, name: str, value: Any) -> None:
        if "_closed" in self.__dict__:
            raise AttributeError(f"{type(self).__name__} cannot be changed: use module = module.replace({name}=…)")
        object.__setattr__(self, name, value)

    if not TYPE_CHECKING:  # which would take every name for a field

        def __getattr__(self, name: str) -> Any:
            """The error for a field that is not set."""
            made = type(self)
            bases = [c for c in made.__mro__ if name in vars(c).get("__annotations__", {})]
            if name == "training" and not bases:
                hint = "; set self.training = False in __init__, and train() and eval() will set it"
            elif bases and bases[-1] is not made:
                hint = f", a field of {bases[-1].__name__}; does __init__ call super().__init__(…)?"
            else:
                hint = suggest("Module", name) or f"; its fields are {', '.join(self.fields()) or 'none yet'}"
            raise AttributeError(f"{made.__name__} has no {name!r}{hint}", name=name, obj=self)

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"{type(self).__name__}.{name} cannot be deleted; set it to None with replace")

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What the module computes. Use Tensor operations only: then it runs on every device and can be traced."""
        raise NotImplementedError(f"{type(self).__name__} has no forward; write def forward(self, x) in its class")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        try:
            result = self.forward(*args, **kwargs)
        except Exception as e:
            try:
                _check_input(self, args, kwargs, e)
                raise
            except Exception as told:
                if isinstance(told, SingeError):
                    name_layer(told)
                shorten(told)
                raise
        return called(self, result)

    # --- what is in it ---

    def fields(self) -> dict[str, Any]:
        """The fields by name, in the order in which they were set."""
        return {name: value for name, value in self.__dict__.items() if name not in NO_FIELDS}

    def named_modules(self) -> Iterator[tuple[str, Module]]:
        """This module, named "", and all modules inside it."""
        yield from ((path, part) for path, part, _ in everything_in(self) if isinstance(part, Module))

    def named_parameters(self) -> Iterator[tuple[str, Tensor]]:
        """Parameters by path; a shared parameter is listed once."""
        return self._tensors(buffers=False)

    def named_buffers(self) -> Iterator[tuple[str, Tensor]]:
        """Tensors that training does not learn, by path."""
        return self._tensors(buffers=True)

    def parameters(self) -> Iterator[Tensor]:
        """All parameters, those of inner modules too, each once."""
        return (t for _, t in self.named_parameters())

    def buffers(self) -> Iterator[Tensor]:
        """All buffers, those of inner modules too, each once."""
        return (t for _, t in self.named_buffers())

    def _tensors(self, buffers: bool) -> Iterator[tuple[str, Tensor]]:
        seen: set[Tensor] = set()
        for path, t, is_buffer in tensors_in(self):
            if is_buffer is buffers and t not in seen:
                seen.add(t)
                yield path, t

    @property
    def parameter_count(self) -> int:
        """How many numbers its parameters hold."""
        return sum(t.size for t in self.parameters())

    def state_dict(self) -> dict[str, Tensor]:
        """All parameters and buffers by path, named as PyTorch names them: "conv.weight", "0.bias"."""
        return {path: t for path, t, _ in tensors_in(self)}

    # --- modules made from it ---

    def with_state(self, state: StateDict, strict: bool = True) -> Self:
        """The module with the tensors or arrays of a state dict, converted to its dtypes and devices.

        strict: the names must be the same on both sides; otherwise only common names are used. PyTorch's
        load_state_dict changes the module; this method returns a new one, so no thread sees half of the new weights.
        """
        told = compared(state, self.state_dict())
        names = (("missing", told.missing), ("unknown", told.left_over)) if strict else ()
        absent = [(what, found) for what, found in names if found]
        if told.misfits or absent:
            faults = [*absent, *([("of another shape", told.misfits)] if told.misfits else [])]
            text = f"state dict: {'; '.join(f'{what}: {_listed(found)}' for what, found in faults)}"
            raise (
                InputError(f"{text}. With strict=False only the names in common are used")
                if absent
                else ShapeError(text)
            )
        return self._mapped(lambda path, t: _like(state[path], t) if path in state else t)

    def map(self, function: Callable[[Tensor], Tensor]) -> Self:
        """The module with function(tensor) for every parameter and buffer; shared ones stay shared."""
        made: dict[Tensor, Tensor] = {}

        def once(_: str, t: Tensor) -> Tensor:
            if t not in made:
                made[t] = function(t)
            return made[t]

        return self._mapped(once)

    def map_parameters(self, function: Callable[[str, Tensor], Tensor | np.ndarray]) -> Self:
        """The module with function(path, parameter) for every parameter, converted to its dtype and device, as in
        `model.map_parameters(lambda path, t: nn.init.kaiming_normal(t.shape) if path.endswith("weight") else t)`."""
        made: dict[Tensor, Tensor] = {}
        for path, old in self.named_parameters():
            new = function(path, old)
            if tuple(new.shape) != tuple(old.shape):
                raise ShapeError(f"map_parameters: {path} became {show(new.shape)}, expected {show(old.shape)}")
            made[old] = _like(new, old)
        return self.map(lambda t: made.get(t, t))

    def freeze(self, *patterns: str) -> Self:
        """The module in which parameters count as buffers, which training does not learn: those whose paths match a
        pattern ("*.bias"), or are inside of what does ("backbone"); without patterns all."""
        buffers = {path for path, _, is_buffer in everything_in(self) if is_buffer}
        return _frozen_as(self, _frozen_in(self) | (self._matching("freeze", patterns) - buffers))

    def unfreeze(self, *patterns: str) -> Self:
        """The module in which what `freeze` made buffers are parameters again; patterns as there."""
        return _frozen_as(self, _frozen_in(self) - self._matching("unfreeze", patterns))

    def _matching(self, verb: str, patterns: Sequence[str]) -> set[str]:
        """The paths of the tensors that patterns choose, and other paths of the same tensors."""
        state = self.state_dict()
        chosen: set[Tensor] = set() if patterns else set(state.values())
        for pattern in patterns:
            found = [t for path, t in state.items() if matches(path, pattern)]
            if not found:
                raise InputError(f"{verb}: no tensor matches {pattern!r}; there are {_listed(list(state))}")
            chosen.update(found)
        return {path for path, t in state.items() if t in chosen}

    def to(self, *targets: Any, device: str | Device | None = None, dtype: Any = None) -> Self:
        """The module on another device, or with its float tensors in another float type, or both, as `Tensor.to`."""
        device, dtype = destination("to", targets, device, dtype)
        module = self if dtype is None else self.cast(dtype)
        return module if device is None else module.map(lambda t: t.to(device))

    def half(self) -> Self:
        """The module with its float tensors in float16."""
        return self.cast(float16)

    def float(self) -> Self:
        """The module with its float tensors in float32."""
        return self.cast(float32)

    def cast(self, to: Any) -> Self:
        """The module with its float tensors in another float type; integers are unchanged."""
        kind = dtype(to)
        if not kind.is_float:
            raise InputError(f"cast: got {kind}, expected a float type")
        return self.map(lambda t: t.cast(kind) if t.dtype.is_float else t)

    def train(self, training: bool = True) -> Self:
        """The module with `training` set in every layer that has this field."""
        return _rebuilt(self, lambda path, key, part: training if key == "training" else part)

    def eval(self) -> Self:
        """The module in inference mode: `train(False)`."""
        return self.train(False)

    def replace(self, **fields: Any) -> Self:
        """The module with new values for some of its fields."""
        unknown = [name for name in fields if name not in self.fields()]
        if unknown:
            raise InputError(
                f"replace: {type(self).__name__} has no field {', '.join(unknown)}; it has {', '.join(self.fields())}"
            )
        made = copy.copy(self)
        vars(made).update(fields)
        return made

    def with_modules(self, new: Mapping[Module, Module]) -> Self:
        """The module with some of its modules (or itself) replaced."""
        return _swapped(self, new)

    def clone(self) -> Self:
        """A new module with the same tensors, which are immutable."""
        return copy.deepcopy(self, {id(t): t for t in self.state_dict().values()})

    def _mapped(self, function: Callable[[str, Tensor], Tensor]) -> Self:
        return _rebuilt(self, lambda path, key, part: function(path, part) if isinstance(part, Tensor) else part)

    def __repr__(self) -> str:
        return _tree(self)

    def summary(self, *examples: Any) -> ModuleSummary:
        """The tree of layers with parameters, memory, what is frozen, and for examples of its inputs the shapes that each
        layer gives; print it. An example is a tensor, an array, or a shape of floats: `model.summary(("N", 3, 32, 32))`."""
        still = self.eval()  # which draws no random numbers
        results: dict[int, list[Any]] = {}
        for part, result in results_of(still, examples) if examples else ():
            results.setdefault(id(part), []).append(result)
        frozen = _frozen_in(still)
        held = [(path, (t, b, path in frozen)) for path, t, b in tensors_in(still)]
        rows: list[SummaryLine] = []
        above: list[str] = []  # what the paths inside begin with, of each module that the present one is in
        for path, part in still.named_modules():
            while above and not path.startswith(above[-1]):
                above.pop()
            begin = f"{path}." if path else ""
            inside = [facts for at, facts in held if at.startswith(begin)]
            name = path[len(above[-1]) :] if above else path
            rows.append(row(path, len(above), name, type(part).__name__, inside, results.get(id(part), ())))
            above.append(begin)
        return ModuleSummary(tuple(rows))

    def statistics(self, *inputs: Any) -> LayerStatistics:
        """The mean, deviation, least and most, zeros, NaN and infinities of what each layer gives for inputs, which run: print it; in a
        notebook it is a picture. Without inputs: of its parameters and buffers."""
        if not inputs:
            return LayerStatistics.of(figures(path, str(t.dtype), t.numpy()) for path, t in self.state_dict().items())
        held = next((t.device for t in self.state_dict().values()), None)
        given = [x if isinstance(x, Tensor) else tensor(x, device=held) for x in inputs]
        paths = {id(part): (path, type(part).__name__) for path, part in reversed(list(self.named_modules()))}
        return LayerStatistics.of(
            figures(path or "(output)", kind, t.numpy())
            for part, result in calls_of(self, given)
            for path, kind in [paths.get(id(part), (f"({type(part).__name__})", ""))]
            for t in tensors_of(result)
        )


shorten_class(Module, leave=("__call__", "__init__", "forward"))


def _check_input(module: Module, args: Sequence[Any], named: Mapping[str, Any], error: Exception) -> None:
    """Refuse what was given in place of a Tensor, if a call failed because of it. A layer of users may take other things: it must
    be that first argument, an array or a list, which lacks what was looked up."""
    if type(module).__module__.startswith(f"{__package__}."):
        refuse(type(module).__name__, module.forward, args, named, error)
    elif args and isinstance(args[0], ARRAYS) and isinstance(error, AttributeError) and error.obj is args[0]:
        raise InputError(
            f"{type(module).__name__}: got {in_words(args[0])} as its first argument, expected a Tensor; pass sg.tensor(x)"
        ) from error


# --- walking over modules, lists and dicts ---------------------------------------------------------------------------

CONTAINERS: Final = (Module, list, tuple, dict)
NO_FIELDS: Final = ("_closed", "_frozen")
"""What a module's `__dict__` holds beside its fields."""


def _parts(value: Any, path: str) -> Iterator[tuple[Any, str, Any]]:
    """(key, path, part) of each item of a container; nothing for other values."""
    inline = value._inline if isinstance(value, Module) else None
    items = value.fields().items() if isinstance(value, Module) else value.items() if isinstance(value, dict) else ()
    for key, part in enumerate(value) if isinstance(value, (list, tuple)) else items:
        yield key, path if key == inline else joined(path, str(key)), part


def everything_in(
    value: Any, path: str = "", is_buffer: bool = False, frozen: AbstractSet[str] = frozenset()
) -> Iterator[tuple[str, Any, bool]]:
    """(path, part, whether it is a buffer) of everything inside, outermost first."""
    if isinstance(value, TensorHolder):
        raise InputError(
            f"the field {path!r} is a NamedTensor, expected a Tensor, which can be a parameter; keep x.tensor there, and name it in "
            "forward: self.weight.named('in', 'out')"
        )
    yield path, value, is_buffer
    if isinstance(value, Module):
        frozen = {joined(path, own) for own in value._frozen}
    buffers = value._buffers if isinstance(value, Module) else ()
    for key, at, part in _parts(value, path):
        kept = key in buffers or at in frozen or (is_buffer and not isinstance(part, Module))
        yield from everything_in(part, at, kept, frozen)


def matches(path: str, pattern: str) -> bool:
    """Whether a path matches a pattern ("*.bias"), or is inside of what does ("head")."""
    return fnmatchcase(path, pattern) or fnmatchcase(path, f"{pattern}.*")


def joined(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key


def _frozen_in(module: Module) -> set[str]:
    """The paths of all frozen tensors."""
    return {joined(path, own) for path, part in module.named_modules() for own in part._frozen}


def _frozen_as(value: Any, frozen: AbstractSet[str], path: str = "") -> Any:
    """A copy of a container in which the tensors at these paths, and no others, are frozen."""
    parts = {
        key: _frozen_as(part, frozen, at) if isinstance(part, CONTAINERS) else part
        for key, at, part in _parts(value, path)
    }
    made = _remade(value, parts)
    if isinstance(value, Module):
        vars(made)["_frozen"] = frozenset(own for own in own_tensors(value) if joined(path, own) in frozen)
    return made


def own_tensors(value: Any, path: str = "") -> Iterator[str]:
    """The paths of the tensors in a value that are not in a module inside it."""
    for _, at, part in _parts(value, path):
        if isinstance(part, Tensor):
            yield at
        elif not isinstance(part, Module):
            yield from own_tensors(part, at)


def tensors_in(value: Any) -> Iterator[tuple[str, Tensor, bool]]:
    """(path, tensor, whether it is a buffer) of a tensor, or of each in a module, list, tuple or dict."""
    return ((path, part, is_buffer) for path, part, is_buffer in everything_in(value) if isinstance(part, Tensor))


def with_parts(value: Any, rule: Callable[[Any], Any], shared: bool = False) -> Any:
    """rule(value), or a copy of a module, list, tuple or dict with rule(part) for each part that is none of these. shared: what
    is there twice is one object in the copy, too."""
    if not isinstance(value, CONTAINERS):
        return rule(value)
    return _rebuilt(value, lambda path, key, part: rule(part), made={} if shared else None)


def _rebuilt(
    value: Any, rule: Callable[[str, Any, Any], Any], path: str = "", made: dict[int, Any] | None = None
) -> Any:
    """A copy of a container, in which rule(path, key, part) replaces each item that is not a container. made: the copies so far,
    by the id of the original, if each is made once."""
    if made is not None and id(value) in made:
        return made[id(value)]
    new: dict[Any, Any] = {}
    for key, at, part in _parts(value, path):
        new[key] = _rebuilt(part, rule, at, made) if isinstance(part, CONTAINERS) else rule(at, key, part)
    copied = _remade(value, new)
    if made is not None:
        made[id(value)] = copied
    return copied


def _swapped(value: Any, new: Mapping[Module, Module]) -> Any:
    """A copy of a container with some modules replaced."""
    if isinstance(value, Module) and value in new:
        return new[value]
    return (
        _remade(value, {key: _swapped(part, new) for key, _, part in _parts(value, "")})
        if isinstance(value, CONTAINERS)
        else value
    )


def _remade(value: Any, parts: dict[Any, Any]) -> Any:
    """A container of the same kind with other parts."""
    if isinstance(value, Module):
        return value.replace(**parts)
    if isinstance(value, dict):
        made = copy.copy(
            value
        )  # with what a class of dicts keeps beside the items, such as the default of a defaultdict
        for key, part in parts.items():  # a Counter's `update` adds
            made[key] = part
        return made
    return type(value)(parts.values())


def _like(value: Tensor | np.ndarray | HeldArray, old: Tensor) -> Tensor:
    """A value in the dtype and on the device of the tensor that it replaces."""
    if isinstance(value, Tensor):
        traced = isinstance(value.device, Tracer)  # a trace takes tensors of other devices beside it
        return (value if traced else value.to(old.device)).cast(old.dtype)
    # An array that the caller may change is copied; what a file holds is not.
    array = np.array(value) if isinstance(value, np.ndarray) else np.asarray(value)
    return Tensor(old.device, old.device.upload(convert(own(array), old.dtype.numpy)))


def _listed(names: Sequence[str]) -> str:
    rest = len(names) - SHOWN
    return ", ".join(names[:SHOWN]) + (f" and {rest} more" if rest > 0 else "")


def _tree(module: Module) -> str:
    """The module as text, as PyTorch shows it: plain fields in brackets, each module on its own line."""
    facts: list[str] = []
    lines: list[str] = []
    for _, path, part in _parts(module, ""):
        below = list(_modules(part, path))
        lines += [f"({at}): {m!r}" for at, m in below]
        facts += [] if below else [f"{path}={_fact(part)}"] if path else []
    head = f"{type(module).__name__}({', '.join(facts)}"
    return f"{head}\n{_indented(lines)}\n)" if lines else f"{head})"


def _modules(value: Any, path: str) -> Iterator[tuple[str, Module]]:
    """The outermost modules in a value."""
    if isinstance(value, Module):
        yield path, value
    else:
        for _, at, part in _parts(value, path):
            yield from _modules(part, at)


def _fact(value: Any) -> str:
    return show(value.shape) if isinstance(value, Tensor) else repr(value)


def _indented(lines: list[str]) -> str:
    return "\n".join(f"  {line}" for text in lines for line in text.split("\n"))
