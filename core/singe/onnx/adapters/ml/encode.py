"""Labels and categories: LabelEncoder, CategoryMapper, OneHotEncoder; maps: DictVectorizer, CastMap, ZipMap.

Strings are looked up on the host. Numbers are compared with all keys in one kernel.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from ....dtypes import DType, float32, int64, string, strings
from ....errors import ImportFailure
from ....graph import Node, Pairs, Table, Value
from ....graph.objects import described
from .._call import Call, adapter
from ..elementwise.basic import cast

KINDS: Final = {"strings": str, "int64s": int, "floats": float}
DEFAULTS: Final[dict[str, Any]] = {"strings": "_Unused", "int64s": -1, "floats": -0.0}
"""Types of keys and values, as attributes end ↦ what an unknown key becomes."""


def _array(values: Any) -> np.ndarray:
    """Attributes as a vector of one of Singe's types."""
    kind = type(values[0]) if len(values) else int
    return (
        strings(np.array(values, object)) if kind is str else np.array(values, {int: np.int64, float: np.float32}[kind])
    )


def places(call: Call, x: Node, keys: np.ndarray) -> Node:
    """For each element its place among the keys; their number if it is none of them."""
    b, count = call.b, len(keys)
    if x.dtype is string:
        if keys.dtype != string.numpy:
            raise call.fail("the input is strings, and the keys are numbers")
        return b.string_places(x, keys=tuple(keys[string.name].tolist()))
    if keys.dtype == string.numpy:
        raise call.fail(f"the input is {x.dtype}, and the keys are strings")
    with np.errstate(all="ignore"):
        own = keys.astype(x.dtype.numpy)
        kept = np.flatnonzero((own.astype(keys.dtype) == keys) | (keys != keys))  # the others equal no element
    if not len(kept):
        return b.expand(b.const(count, int64), shape=x.shape)
    keys, known = keys[kept], b.const(own[kept])
    one = b.reshape(x, shape=(*x.shape, 1))
    same = b.equal(one, known)
    if call.version >= 4 and keys.dtype.kind == "f" and np.isnan(keys).any():
        same = b.logical_or(same, b.logical_and(b.isnan(one), b.const(np.isnan(keys))))
    found = b.where(same, b.const(kept.astype(np.int64)), b.const(count, int64))
    return b.reshape(b.reduce_min(found, axes=(len(x.shape),)), shape=x.shape)


def _valued(call: Call, place: Node, values: np.ndarray, default: Any) -> Node:
    """The values at these places; after the last one is the default."""
    if values.dtype == string.numpy:
        return call.b.gather(
            call.b.const(np.concatenate([values, strings(np.array([default], object))])), place, axis=0
        )
    return call.b.gather(call.b.const(np.append(values, np.asarray(default, values.dtype))), place, axis=0)


def _listed(call: Call, prefix: str) -> tuple[np.ndarray, str] | None:
    """The keys or values of a map among the attributes, and the end of the attribute's name."""
    tensor = call.attributes.get(f"{prefix}tensor")
    if isinstance(tensor, np.ndarray):
        return tensor.reshape(-1), "tensor"
    for end, kind in KINDS.items():
        given = call.items(f"{prefix}{end}", kind)
        if given is not None:
            return _array(given), end
    return None


@adapter("ai.onnx.ml.LabelEncoder")
def _label_encoder(call: Call) -> Node:
    classes = call.items("classes_strings", str)
    if classes is not None:
        return _between(call, np.arange(len(classes)), _array(classes))
    keys, values = _listed(call, "keys_"), _listed(call, "values_")
    if keys is None or values is None or len(keys[0]) != len(values[0]):
        raise call.fail("there are no keys, no values, or not the same number of both")
    default: Any = call.attributes.get("default_tensor")
    if isinstance(default, np.ndarray):
        default = default[string.name].reshape(-1)[0] if default.dtype == string.numpy else default.reshape(-1)[0]
    else:
        end = values[1] if values[1] in DEFAULTS else "strings" if values[0].dtype == string.numpy else "int64s"
        default = call.attr(f"default_{end.removesuffix('s')}", DEFAULTS[end])
    return _valued(call, places(call, call.x(), keys[0]), values[0], default)


def _between(call: Call, numbers: np.ndarray, texts: np.ndarray) -> Node:
    """Strings to numbers, or numbers to strings."""
    x = call.x()
    if x.dtype is string:
        return _valued(call, places(call, x, texts), numbers, call.attr("default_int64", -1))
    return _valued(call, places(call, x, numbers), texts, call.attr("default_string", "_Unused"))


@adapter("ai.onnx.ml.CategoryMapper")
def _category_mapper(call: Call) -> Node:
    numbers, texts = call.items("cats_int64s", int) or (), call.items("cats_strings", str) or ()
    if len(numbers) != len(texts):
        raise call.fail(f"{len(numbers)} numbers for {len(texts)} strings")
    return _between(call, np.array(numbers, np.int64), strings(np.array(texts, object)))


@adapter("ai.onnx.ml.OneHotEncoder")
def _one_hot(call: Call) -> Node:
    """An unknown category is a row of zeros, also if `zeros` asks for an error there."""
    b, x = call.b, call.x()
    keys = _listed(call, "cats_")
    if keys is None:
        raise call.fail("there are no categories")
    if x.dtype is not string:
        x = cast(call, x, int64)
    place = places(call, x, keys[0])
    same = b.equal(b.reshape(place, shape=(*x.shape, 1)), b.const(np.arange(len(keys[0]))))
    return b.cast(same, to=float32)


# --- maps ------------------------------------------------------------------------------------------------------------


@adapter("ai.onnx.ml.ZipMap")
def _zip_map(call: Call) -> list[Value]:
    keys = call.items("classlabels_strings", str) or call.items("classlabels_int64s", int) or ()
    x = call.x()
    if len(x.shape) == 1:
        x = call.b.reshape(x, shape=(1, x.shape[0]))
    if len(x.shape) != 2 or call.number(x.shape[1], "the number of columns") != len(keys):
        raise call.fail(f"{len(keys)} labels for a tensor of shape {x.shape}")
    return [Table(keys, x)]


def _pairs(call: Call) -> Pairs:
    found = call.values[0] if call.values else None
    if not isinstance(found, Pairs):
        raise ImportFailure(f"input 0 is {described(found)}; expected a map")
    return found


def _spread(call: Call, place: Node, values: Node, count: int) -> Node:
    """A row of `count` values, each at its place, and zeros elsewhere."""
    b, n = call.b, place.shape[0]
    here = b.equal(b.reshape(place, shape=(n, 1)), b.const(np.arange(count)))
    column = b.reshape(values, shape=(n, 1))
    return b.reduce_sum(b.where(here, column, b.const(0, values.dtype)), axes=(0,))


@adapter("ai.onnx.ml.DictVectorizer", objects=True)
def _dict_vectorizer(call: Call) -> Node:
    given = _pairs(call)
    texts, numbers = call.items("string_vocabulary", str), call.items("int64_vocabulary", int)
    if (texts is None) == (numbers is None):
        raise call.fail("expected a string_vocabulary or an int64_vocabulary")
    known = _array(texts if texts is not None else numbers)
    return _spread(call, places(call, given.keys, known), _numbers(call, given.values), len(known))


def _numbers(call: Call, x: Node) -> Node:
    if x.dtype is string:
        raise call.fail("the map's values are strings; expected numbers")
    return x


CASTS: Final[dict[str, DType]] = {"TO_FLOAT": float32, "TO_STRING": string, "TO_INT64": int64}


@adapter("ai.onnx.ml.CastMap", objects=True)
def _cast_map(call: Call) -> Node:
    """The values in the order of their keys, or (SPARSE) each at the place that its key names."""
    b, given = call.b, _pairs(call)
    to = call.attr("cast_to", "TO_FLOAT")
    if to not in CASTS or given.keys.dtype is not int64:
        raise call.fail(
            f"cast_to is {to!r}, and the keys are {given.keys.dtype}; expected one of {', '.join(CASTS)}, and int64"
        )
    values, count = given.values, given.keys.shape[0]
    if call.attr("map_form", "DENSE") == "SPARSE":
        values = _spread(call, given.keys, _numbers(call, values), call.attr("max_map", 1))
    else:
        _, order = b.top_k(given.keys, axis=0, k=count, largest=False)
        values = b.reshape(b.gather(values, order, axis=0), shape=(1, count))
    return cast(call, values, CASTS[to])
