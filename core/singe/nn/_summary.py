"""A model as a tree of layers, with what each gives, and what it holds."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final, Protocol, TypeAlias

from ..dtypes import DType, dtype, float32
from ..errors import InputError
from ..late_dataclass import dataclass
from ..shapes import Dim, plain, show, size
from ..tensors.nodes.promotion import plain_array
from ..tensors.tensor import Tensor
from ..tensors.tracing import trace

UNITS: Final = ("B", "kB", "MB", "GB", "TB")


class Layer(Protocol):
    """What is said of a module's calls."""

    def __call__(self, *args: Any) -> Any: ...


Listener: TypeAlias = Callable[[Layer, Any], Any]
"""(layer, what a call of it gives) ↦ what the call gives to its caller."""
_listener: Final[ContextVar[Listener | None]] = ContextVar("listener", default=None)


def called(layer: Layer, result: Any) -> Any:
    """Each call of a module comes here, with its result, once it is known; the caller gets what this returns."""
    listener = _listener.get()
    return result if listener is None else listener(layer, result)


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """A context in which a function is called with each call of a module."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


@dataclass(frozen=True)
class SummaryLine:
    """A layer. Its numbers count what is in the layers inside it too."""

    path: str
    depth: int
    name: str
    """The path from the module that it is in."""
    kind: str
    outputs: tuple[tuple[Dim, ...], ...]
    """The shapes that it gives: those of the first call, if examples were given."""
    parameters: int
    """How many numbers its parameters hold, frozen ones too."""
    frozen: int
    """How many of these are frozen."""
    bytes: int
    """Of parameters and buffers."""


@dataclass(frozen=True)
class ModuleSummary:
    """The layers of a module, outermost first; print it to read it."""

    rows: tuple[SummaryLine, ...]

    def __str__(self) -> str:
        shown = any(row.outputs for row in self.rows)
        lines = [("layer", *(("output",) if shown else ()), "parameters", "memory", "")]
        for row in self.rows:
            name = "  " * row.depth + (f"{row.name}: {row.kind}" if row.name else row.kind)
            outputs = (", ".join(map(show, row.outputs)),) if shown else ()
            note = "" if not row.frozen else "frozen" if row.frozen == row.parameters else f"{row.frozen:,} frozen"
            lines.append((name, *outputs, f"{row.parameters:,}" if row.parameters else "", _bytes(row.bytes), note))
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        left = 2 if shown else 1
        table = ["  ".join(
            text.ljust(width) if k < left or k == len(widths) - 1 else text.rjust(width)
            for k, (text, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip() for line in lines]  # fmt: skip
        whole = self.rows[0]
        rule = "─" * max(map(len, table))
        end = f"{whole.parameters:,} parameters, of which {whole.parameters - whole.frozen:,} are learned; {_bytes(whole.bytes) or '0 B'}"
        return "\n".join([table[0], rule, *table[1:], rule, end])

    __repr__ = __str__


def row(
    path: str, depth: int, name: str, kind: str, parts: Sequence[tuple[Tensor, bool, bool]], results: Sequence[Any]
) -> SummaryLine:
    """parts: the tensors in a layer, whether each is a buffer, and whether it is frozen; results: of its calls."""
    held = {id(part[0]): part for part in parts}.values()  # a shared tensor counts once
    learned = sum(t.size for t, is_buffer, _ in held if not is_buffer)
    frozen = sum(t.size for t, _, is_frozen in held if is_frozen)
    memory = sum(-(-t.size * t.dtype.bits // 8) for t, _, _ in held)
    outputs = tuple(plain(t.shape) for t in tensors_of(results[0])) if results else ()
    return SummaryLine(path, depth, name, kind, outputs, learned + frozen, frozen, memory)


def results_of(layer: Layer, examples: Sequence[Any]) -> list[tuple[Layer, Any]]:
    """The calls of a module and of those inside it, with what they give, which is not computed."""

    def first(*arguments: Tensor) -> Tensor:
        found = next(tensors_of(layer(*arguments)), None)
        if found is None:
            raise InputError(f"summary: {type(layer).__name__} gives no tensor; expected a module that returns one")
        return found

    with _noting() as calls:
        trace(first, [(f"x{k}", *_spec(example)) for k, example in enumerate(examples)])
    return calls


def calls_of(layer: Layer, inputs: Sequence[Any]) -> list[tuple[Layer, Any]]:
    """The calls of a module and of those inside it, which run, with what they give."""
    with _noting() as calls:
        layer(*inputs)
    return calls


@contextmanager
def _noting() -> Iterator[list[tuple[Layer, Any]]]:
    calls: list[tuple[Layer, Any]] = []

    def listen(layer: Layer, result: Any) -> Any:
        calls.append((layer, result))
        return result

    with listening(listen):
        yield calls


def _spec(example: Any) -> tuple[Sequence[Dim], DType]:
    """The shape and the dtype of an example, or of a shape, in which names are open dimensions."""
    if isinstance(example, (tuple, list)) and all(isinstance(d, (int, str)) for d in example):
        return [size(d) if isinstance(d, str) else d for d in example], float32
    array = example if isinstance(example, Tensor) else plain_array(example)
    return array.shape, dtype(array.dtype)


def tensors_of(value: Any) -> Iterator[Tensor]:
    """The tensors in what a call gives."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, (tuple, list)):
        for part in value:
            yield from tensors_of(part)
    elif isinstance(value, dict):
        yield from tensors_of(list(value.values()))


def _bytes(count: int) -> str:
    """A number of bytes, for people."""
    if not count:
        return ""
    power = min((len(str(count)) - 1) // 3, len(UNITS) - 1)
    return f"{count / 1000**power:.1f} {UNITS[power]}" if power else f"{count} B"
