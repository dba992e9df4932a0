"""Ops of users: `op` declares one from outside, in terms of Tensors or of whole arrays, with a shader if wanted."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..dtypes import DType, dtype
from ..errors import InputError, ShapeError
from ..ops import ROWS, Composite, Opaque, Row, Wgsl, register
from ..shapes import Shape, plain, show, traced
from .calls import apply_row
from .tensor import Tensor
from .tracing import within


def op(
    name: str,
    define: Callable[..., Any] | None = None,
    *,
    numpy: Callable[..., Any] | None = None,
    shapes: Callable[..., Sequence[tuple[Sequence[Any], Any]]] | None = None,
    wgsl: Callable[..., Wgsl | None] | None = None,
    gradient: Callable[..., Any] | None = None,
    onnx: str | None = None,
    doc: str = "",
) -> Callable[..., Any]:
    """Declares an op, and returns it as a function of Tensors. It is also a method of Tensor with this name.

    define: the op as a function of Tensors, which runs on every device and has a gradient. Instead of it, `numpy` is the
    op over whole arrays, and `shapes` gives the shape and dtype of each result. Such an op runs on the host.
    Positional parameters of these functions are inputs, keyword-only parameters are attributes.

    wgsl: a function of the inputs (their `shape` and `dtype`) and attributes that gives the shader that `webgpu` runs
    instead, or None. gradient: a function of the result's gradient, the result, the inputs and the attributes that gives
    the gradient of each input, or None for an input without one. onnx: the op in ONNX files, as "domain.Op".
    """
    if not name.isidentifier() or name in ROWS or hasattr(Tensor, name):
        raise InputError(f"op: the name {name!r} is taken or is no identifier; choose another one")
    if onnx is not None and not all(onnx.rpartition(".")[::2]):
        raise InputError(f"op {name}: onnx is {onnx!r}, expected a domain and an op, as in 'acme.Fused'")
    common: dict[str, Any] = dict(name=name, wgsl=wgsl, onnx=onnx, doc=doc, vjp=_vjp(name, gradient), outside=True)  # noqa: C408
    if define is not None and numpy is None and shapes is None:
        row: Row = Composite(lower=_lowered(name, define), **common)
    elif define is None and numpy is not None and shapes is not None:
        row = Opaque(results=_shapes(name, shapes), on_host=_checked(name, numpy, shapes), **common)
    else:
        raise InputError(f"op {name}: give either a function of Tensors, or both numpy= and shapes=")
    register(row)

    def call(*inputs: Any, **attributes: Any) -> Any:
        return apply_row(row, inputs, **attributes)

    call.__name__ = call.__qualname__ = name
    call.__doc__ = doc
    return call


def _lowered(name: str, define: Callable[..., Any]) -> Callable[..., Any]:
    def lower(b: Any, *inputs: Any, **attributes: Any) -> Any:
        found = within(b, lambda *given: define(*given, **_traced(attributes)), inputs)
        if None in found:
            raise InputError(f"op {name}: its function returned None, expected a Tensor or several in a tuple")
        first, *others = found
        return found if others else first

    own = inspect.signature(define)
    builder = inspect.Parameter("b", inspect.Parameter.POSITIONAL_ONLY)
    lower.__signature__ = own.replace(parameters=[builder, *own.parameters.values()])  # pyright: ignore[reportFunctionMemberAccess]
    return lower


def _traced(attributes: Mapping[str, Any]) -> dict[str, Any]:
    return {name: traced(value) for name, value in attributes.items()}


def _vjp(name: str, gradient: Callable[..., Any] | None) -> Callable[..., Any] | None:
    if gradient is None:
        return None

    def vjp(b: Any, g: Any, inputs: Sequence[Any], y: Any, **attributes: Any) -> Sequence[Any]:
        count = len(y.results)
        given = [*(g if count > 1 else [g]), *b.results_of(y), *inputs]

        def apply(*tensors: Any) -> Any:
            both = (tensors[:count], tensors[count : 2 * count]) if count > 1 else tensors[:2]
            return gradient(*both, *tensors[2 * count :], **_traced(attributes))

        found = within(b, apply, given)
        if len(found) != len(inputs):
            raise InputError(
                f"op {name}: its gradient has {len(found)} parts, expected one for each of {len(inputs)} inputs"
            )
        return found

    return vjp


def _shapes(name: str, shapes: Callable[..., Any]) -> Callable[..., Any]:
    def checked(*inputs: Any, **attributes: Any) -> Any:
        found = shapes(*(_ShapeAndDType(traced(x.shape), x.dtype) for x in inputs), **_traced(attributes))
        try:
            return [(plain(tuple(shape)), dtype(kind)) for shape, kind in found]
        except (TypeError, ValueError):
            raise InputError(
                f"op {name}: shapes returned {found!r:.80}, expected a list of a shape and a dtype for each result"
            ) from None

    checked.__signature__ = inspect.signature(shapes)  # pyright: ignore[reportFunctionMemberAccess]
    return checked


class _ShapeAndDType(NamedTuple):
    shape: Shape
    dtype: DType


def _checked(name: str, numpy: Callable[..., Any], shapes: Callable[..., Any]) -> Callable[..., Any]:
    def checked(*arrays: np.ndarray, **attributes: Any) -> Any:
        expected = _shapes(name, shapes)(*(_ShapeAndDType(x.shape, dtype(x.dtype)) for x in arrays), **attributes)
        made = numpy(*arrays, **attributes)
        several = made if isinstance(made, (tuple, list)) else (made,)
        found = [np.asarray(x) for x in several]
        if len(found) != len(expected):
            raise InputError(f"op {name}: numpy returned {len(found)} arrays, shapes {len(expected)}")
        for x, (shape, kind) in zip(found, expected, strict=True):
            fits = len(x.shape) == len(shape) and all(d in (None, n) for n, d in zip(x.shape, shape, strict=True))
            if not fits or dtype(x.dtype) is not kind:
                raise ShapeError(
                    f"op {name}: numpy returned {x.dtype}{show(x.shape)}, expected {kind}{show(shape)} as shapes says"
                )
        return tuple(found) if len(found) > 1 else found[0]

    return checked
