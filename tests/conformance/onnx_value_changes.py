"""Changes to the values in an ONNX model: attributes, tensors, external data, dimensions and types; see onnx_changes.py."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
from onnx import AttributeProto, TensorProto, TypeProto, helper, numpy_helper
from onnx_subject import DATA, DIMS, FLOATS, INTS, TENSOR_TYPES, TEXTS, TYPES, NotHere, Subject, graphs, nodes, tensors

Change = Callable[[Subject], None]


# --- attributes ------------------------------------------------------------------------------------------------------


def _value(s: Subject) -> None:
    """An attribute has a hostile value of its type."""
    a = s.attribute()
    match a.type:
        case AttributeProto.INT:
            a.i = s.one_of(INTS)
        case AttributeProto.FLOAT:
            a.f = s.one_of(FLOATS)
        case AttributeProto.STRING:
            others = [b.s for n in nodes(s.other()) for b in n.attribute if b.s]
            a.s = s.one_of(others) if others and s.chance(0.6) else s.one_of(TEXTS).encode() + b"\xff" * s.chance(0.1)
        case AttributeProto.INTS:
            _list(s, a.ints, INTS)
        case AttributeProto.FLOATS:
            _list(s, a.floats, FLOATS)
        case AttributeProto.STRINGS:
            _list(s, a.strings, [t.encode() for t in TEXTS])
        case AttributeProto.TENSOR:
            _array(s, a.t)
        case _:
            raise NotHere


def _list(s: Subject, items: Any, hostile: Sequence[Any]) -> None:
    match s.rng.randrange(6):
        case 0:
            del items[:]
        case 1:
            items.append(s.one_of(hostile))
        case 2:
            del items[s.rng.randrange(len(items))]
        case 3:
            items.extend([s.one_of(hostile)] * s.one_of((2, 40, 3000)))
        case 4:
            s.rng.shuffle(items)
        case _:
            items[s.rng.randrange(len(items))] = s.one_of(hostile)


def _another_type(s: Subject) -> None:
    """An attribute has a value of any type, perhaps with a graph in it."""
    a = s.attribute()
    array = numpy_helper.from_array(np.zeros(s.one_of(((), (0,), (2, 2))), s.one_of(("float32", "int64", "bool"))))
    kinds: tuple[Any, ...] = (
        s.one_of(INTS), s.one_of(FLOATS), s.one_of(TEXTS), [1, 2, 3], [0.5], ["a", "b"], array, [array], s.graph(), [s.graph()],
        helper.make_tensor_type_proto(s.one_of(TYPES[:28]), s.one_of(((), (2,)))),
    )  # fmt: skip
    new = helper.make_attribute(a.name, s.one_of(kinds))
    if s.chance(0.2):
        new.type = s.one_of((0, 1, 5, 10, 14, 99))
    a.CopyFrom(new)


def _no_attribute(s: Subject) -> None:
    found = s.one_of([n for n in nodes(s.model) if len(n.attribute)])
    del found.attribute[s.rng.randrange(len(found.attribute))]


def _more_attributes(s: Subject) -> None:
    """A node has an attribute of another, one twice, one under another name, or a reference to a caller's."""
    n = s.node()
    given = [a for x in (*nodes(s.other()), *nodes(s.model)) for a in x.attribute]
    match s.rng.randrange(4):
        case 0:
            n.attribute.append(s.one_of(given))
        case 1:
            s.one_of(n.attribute).name = s.one_of(given).name
        case 2:
            s.one_of(n.attribute).ref_attr_name = s.one_of(("alpha", "axis", ""))
        case _:
            n.attribute.append(helper.make_attribute(s.one_of(given).name, s.one_of(INTS)))


# --- tensors and types -----------------------------------------------------------------------------------------------


def _array(s: Subject, tensor: TensorProto | None = None) -> None:
    """A tensor has hostile elements, another type or shape, each with as many bytes as it needs."""
    t = tensor or s.tensor()
    x = np.array(numpy_helper.to_array(t))
    match s.rng.randrange(6):
        case 0 | 1:
            if not x.size or x.dtype.kind not in "iuf":
                raise NotHere
            flat = x.reshape(-1)
            for _ in range(s.one_of((1, 1, 3))):
                v = s.one_of(FLOATS if x.dtype.kind == "f" else INTS)
                with np.errstate(all="ignore"):
                    flat[s.rng.randrange(x.size)] = v if x.dtype.kind == "f" else _wrapped(v, x.dtype)
        case 2:
            kind = s.one_of(TENSOR_TYPES)
            with np.errstate(all="ignore"):
                x = (
                    np.array([str(v) for v in x.ravel()], object).reshape(x.shape)
                    if kind == "object"
                    else x.astype(kind)
                )
        case 3:
            x = x.reshape(s.one_of((x.size, (1, *x.shape), (*x.shape, 1), (x.size, 1), x.shape[::-1])))
        case 4:
            x = x[s.one_of((slice(0, 0), slice(0, 1), slice(None, None, 2), slice(1, None)))] if x.ndim else x[None]
        case _:
            x = np.concatenate([x, x]) if x.ndim else x[None, None]
    t.CopyFrom(numpy_helper.from_array(np.ascontiguousarray(x), t.name))


def _wrapped(v: int, kind: np.dtype) -> np.generic:
    return np.array(v & (1 << 64) - 1, np.uint64).astype(kind)[()]


def _lying_tensor(s: Subject) -> None:
    """A tensor's type, dimensions or bytes are not those of the others."""
    t = s.tensor()
    match s.rng.randrange(4):
        case 0:
            t.data_type = s.one_of(TYPES)
        case 1:
            t.dims.append(s.one_of((0, 1, 2, -1, 2**40)))
        case 2:
            t.raw_data = t.raw_data[: s.one_of((0, 1, 3, 4, 8))]
        case _:
            t.dims[s.rng.randrange(len(t.dims))] = s.one_of((0, 1, -1, 2**31, 2**62))


def _sparse(s: Subject) -> None:
    """An initialiser is sparse."""
    g = s.one_of([g for g in graphs(s.model) if len(g.initializer)])
    k = s.rng.randrange(len(g.initializer))
    x = numpy_helper.to_array(g.initializer[k])
    if x.dtype.kind not in "iuf":
        raise NotHere
    places = np.flatnonzero(x)
    values, name = (
        numpy_helper.from_array(np.ascontiguousarray(x.reshape(-1)[places]), g.initializer[k].name),
        g.initializer[k].name,
    )
    values.name = name
    dims = list(x.shape) if s.chance(0.7) else [s.one_of(INTS[:14]) for _ in x.shape]
    if s.chance(0.2):
        places = places + s.one_of((-1, 1, 2**40))
    indices = numpy_helper.from_array(places.astype(np.int64), "")
    g.sparse_initializer.append(helper.make_sparse_tensor(values, indices, dims))
    del g.initializer[k]


def _external(s: Subject) -> None:
    """A tensor's data are in a file beside the model, with an offset and a length that may be wrong."""
    t = s.one_of([t for t in tensors(s.model) if t.raw_data])
    raw = t.raw_data
    t.ClearField("raw_data")
    t.data_location = TensorProto.EXTERNAL
    s.files[DATA] = bytes(3) + raw
    hostile = (
        "",
        "-1",
        "1",
        "4",
        "x",
        "1e3",
        " 3",
        "٣",
        "9" * 18,
        "9" * 19,
        "9" * 30,
        str(2**63),
        str(len(raw)),
        str(len(raw) + 1),
    )
    entries = {
        "location": DATA if s.chance(0.85) else s.one_of(("", ".", "..", "/etc/passwd", "../x", "none", "\0", DATA + "/", "a/" * 3000)),
        "offset": "3" if s.chance(0.6) else s.one_of(hostile),
        "length": str(len(raw)) if s.chance(0.6) else s.one_of(hostile),
    }  # fmt: skip
    for key, value in entries.items():
        if s.chance(0.9):
            t.external_data.add(key=key, value=value)


def _dimension(s: Subject) -> None:
    """A dimension, or the rank, of a value's type is another."""
    kind = s.kind()
    if kind.WhichOneof("value") != "tensor_type":
        raise NotHere
    shape = kind.tensor_type.shape
    match s.rng.randrange(8):
        case 0:
            kind.tensor_type.ClearField("shape")
        case 1:
            del shape.dim[s.rng.randrange(len(shape.dim))]
        case 2:
            shape.dim.add(dim_value=1)
        case 3:
            for d in shape.dim:
                d.dim_param = "N"
        case 4:
            for i, d in enumerate(shape.dim):
                d.dim_param = f"d{i}"
        case _:
            d, given = s.one_of(shape.dim), s.one_of(DIMS)
            d.Clear()
            if isinstance(given, int):
                d.dim_value = given
            elif given is not None:
                d.dim_param = given


def _rank(s: Subject) -> None:
    """An input has any rank."""
    v = s.one_of(s.model.graph.input)
    if v.type.WhichOneof("value") != "tensor_type":
        raise NotHere
    s.feed.pop(v.name, None)
    del v.type.tensor_type.shape.dim[:]
    for _ in range(s.rng.randrange(6)):
        v.type.tensor_type.shape.dim.add(dim_value=s.one_of((0, 1, 1, 2, 2, 3, 4)))


def _type(s: Subject) -> None:
    """A value has another element type, or is a list, an optional, a map or of no known type."""
    kind = s.kind()
    own = TypeProto()
    own.CopyFrom(kind)
    match s.rng.randrange(8):
        case 0:
            kind.Clear()
        case 1:
            kind.CopyFrom(helper.make_sequence_type_proto(own))
        case 2:
            kind.CopyFrom(helper.make_optional_type_proto(own))
        case 3:
            kind.CopyFrom(helper.make_map_type_proto(s.one_of((1, 7, 8)), own))
        case 4:
            kind.CopyFrom(helper.make_sparse_tensor_type_proto(1, (2, 2)))
        case _:
            kind.tensor_type.elem_type = s.one_of(TYPES)


def _fixed_input(s: Subject) -> None:
    """An input is a constant, as most that decide shapes are."""
    inputs = [
        v for v in s.model.graph.input if isinstance(s.feed.get(v.name), np.ndarray) and not s.feed[v.name].dtype.names
    ]
    v = s.one_of(inputs)
    x = s.feed[v.name]
    tensor = numpy_helper.from_array(x.astype(object) if x.dtype.kind in "TU" else x, v.name)
    if s.chance(0.5):
        _array(s, tensor)
    s.model.graph.initializer.append(tensor)
    if s.chance(0.8):
        s.model.graph.input.remove(v)


def _free_constant(s: Subject) -> None:
    """An initialiser is an input, whose dimensions may be open."""
    tensors = s.model.graph.initializer
    k = s.rng.randrange(len(tensors))
    x = numpy_helper.to_array(tensors[k])
    dims = [f"c{i}" if s.chance(0.5) else d for i, d in enumerate(x.shape)]
    s.model.graph.input.append(helper.make_tensor_value_info(tensors[k].name, tensors[k].data_type, dims))
    s.feed[tensors[k].name] = x
    del tensors[k]


VALUES: Final[Sequence[Change]] = (
    _value, _value, _value, _another_type, _no_attribute, _more_attributes, _array, _array, _lying_tensor, _sparse, _external,
    _dimension, _dimension, _rank, _rank, _type, _fixed_input, _fixed_input, _fixed_input, _free_constant,
)  # fmt: skip
