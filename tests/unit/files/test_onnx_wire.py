"""The ONNX reader agrees with the `onnx` package on valid files."""

from __future__ import annotations

import os
import re
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from devices import few
from onnx_bytes import TensorProto, helper, number_bytes, numpy_helper, onnx, rich, tag_len

from singe.dtypes import own
from singe.errors import FormatError, ImportFailure
from singe.onnx.model import OnnxGraph, OnnxRef, OnnxSparse, OnnxType, OnnxValue, read_model, read_tensor
from singe.onnx.wire import CHUNK, TEXT, Fault, Format, Schema, many, varints

LIGHT = sorted((Path(onnx.__file__).parent / "backend/test/data/light").glob("*.onnx"))
REAL = sorted((Path(__file__).parents[3] / "../shared/models").glob("*.onnx"))
NATIVE = [
    *("FLOAT", "UINT8", "INT8", "UINT16", "INT16", "INT32", "INT64", "BOOL", "FLOAT16", "DOUBLE", "UINT32", "UINT64"),
    *("COMPLEX64", "COMPLEX128"),
]
OWN = [
    *("BFLOAT16", "FLOAT8E4M3FN", "FLOAT8E4M3FNUZ", "FLOAT8E5M2", "FLOAT8E5M2FNUZ", "FLOAT8E8M0", "UINT4", "INT4"),
    *("FLOAT4E2M1", "FLOAT6E2M3", "FLOAT6E3M2"),
]
"""Types that NumPy lacks and Singe has."""


# --- agreement with the onnx package -------------------------------------------------------------------------------


def same_array(ours: Any, proto: Any, folder: str = "") -> None:
    theirs = own(numpy_helper.to_array(proto, folder))
    assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape)
    assert not ours.flags.writeable
    np.testing.assert_array_equal(ours, theirs)


def same_text(ours: Any, theirs: bytes) -> None:
    assert (ours.encode() if isinstance(ours, str) else ours) == theirs


def same_attribute(ours: Any, proto: Any, folder: str) -> None:
    if proto.ref_attr_name:
        assert ours == OnnxRef(proto.ref_attr_name)
        return
    value = helper.get_attribute_value(proto)
    kinds = onnx.AttributeProto
    if proto.type in (kinds.TENSOR, kinds.TENSORS):
        pairs = [(ours, value)] if proto.type == kinds.TENSOR else list(zip(ours, value, strict=True))
        for mine, theirs in pairs:
            same_array(mine, theirs, folder)
    elif proto.type in (kinds.GRAPH, kinds.GRAPHS):
        for mine, theirs in [(ours, value)] if proto.type == kinds.GRAPH else zip(ours, value, strict=True):
            same_graph(mine, theirs, folder)
    elif proto.type == kinds.STRING:
        same_text(ours, value)
    elif proto.type == kinds.STRINGS:
        for mine, theirs in zip(ours, value, strict=True):
            same_text(mine, theirs)
    elif proto.type in (kinds.FLOATS, kinds.INTS):
        assert ours == tuple(value)
    elif proto.type == kinds.TYPE_PROTO:
        assert isinstance(ours, OnnxType)
    elif proto.type == kinds.SPARSE_TENSOR:
        assert isinstance(ours, OnnxSparse)
        same_array(ours.values, value.values)
    else:
        assert (type(ours), ours) == (type(value), value)


def same_value(ours: OnnxValue, proto: Any) -> None:
    assert ours.name == proto.name
    tensor = proto.type.tensor_type
    if not proto.type.HasField("tensor_type"):
        return
    assert ours.type is not None
    assert ours.type.kind == "tensor"
    if tensor.elem_type in [getattr(TensorProto, name) for name in NATIVE]:
        assert ours.dtype == helper.tensor_dtype_to_np_dtype(tensor.elem_type).name
    dims = [d.dim_value if d.HasField("dim_value") else d.dim_param or None for d in tensor.shape.dim]
    shape = tuple(None if isinstance(d, int) and d < 0 else d for d in dims)
    assert ours.shape == (shape if tensor.HasField("shape") else None)


def same_nodes(ours: Any, protos: Any, folder: str) -> None:
    for node, proto in zip(ours, protos, strict=True):
        assert (node.op_type, node.name, node.overload) == (proto.op_type, proto.name, proto.overload)
        assert node.domain == ("" if proto.domain == "ai.onnx" else proto.domain)
        assert (node.inputs, node.outputs) == (tuple(proto.input), tuple(proto.output))
        assert list(node.attributes) == [a.name for a in proto.attribute]
        for attribute in proto.attribute:
            same_attribute(node.attributes[attribute.name], attribute, folder)


def same_graph(ours: OnnxGraph, proto: Any, folder: str) -> None:
    assert ours.name == proto.name
    same_nodes(ours.nodes, proto.node, folder)
    assert list(ours.initializers) == [t.name for t in proto.initializer]
    for tensor in proto.initializer:
        same_array(ours.initializers[tensor.name], tensor, folder)
    for mine, theirs in (
        (ours.inputs, proto.input),
        (ours.outputs, proto.output),
        (ours.value_info, proto.value_info),
    ):
        for value, value_proto in zip(mine, theirs, strict=True):
            same_value(value, value_proto)


def same_model(source: Any, proto: Any, folder: str = "") -> None:
    ours = read_model(source)
    assert ours.ir_version == proto.ir_version
    opsets = {o.domain: o.version for o in proto.opset_import}
    assert ours.opsets == {"" if domain == "ai.onnx" else domain: version for domain, version in opsets.items()}
    assert ours.metadata == {p.key: p.value for p in proto.metadata_props}
    same_graph(ours.graph, proto.graph, folder)
    for mine, theirs in zip(ours.functions, proto.functions, strict=True):
        assert (mine.domain, mine.name, mine.overload) == (theirs.domain, theirs.name, theirs.overload)
        assert (mine.inputs, mine.outputs) == (tuple(theirs.input), tuple(theirs.output))
        assert mine.attributes == tuple(theirs.attribute)
        assert list(mine.defaults) == [a.name for a in theirs.attribute_proto]
        assert mine.opsets == {o.domain: o.version for o in theirs.opset_import}
        same_nodes(mine.nodes, theirs.node, folder)


@few(6, "path", LIGHT + REAL, ids=lambda p: p.stem)
def test_whole_models_agree(path: Path) -> None:
    same_model(path, onnx.load(path))


def test_real_models_are_here() -> None:
    if not REAL:
        pytest.skip("no shared models beside this checkout")
    assert all(read_model(path).graph.nodes for path in REAL)


def samples(name: str) -> np.ndarray:
    dtype = helper.tensor_dtype_to_np_dtype(getattr(TensorProto, name))
    values = np.array([0, 1, 3, 1, 0, 1, 2, 1, 3, 2, 1, 1, 0, 1, 1], np.float32)
    if name in ("INT8", "INT16", "INT32", "INT64", "FLOAT", "DOUBLE", "FLOAT16", "BFLOAT16", "COMPLEX64"):
        values = -values * 40
    return values.astype(dtype).reshape(3, 5)


@pytest.mark.parametrize("raw", [False, True], ids=["typed", "raw"])
@pytest.mark.parametrize("name", NATIVE + OWN)
def test_every_dtype_agrees(name: str, raw: bool) -> None:
    array = samples(name)
    from_array = numpy_helper.from_array(array, "t")
    if raw:
        proto = from_array
        assert proto.HasField("raw_data")
    else:
        values: Any = array.astype(np.complex128 if "COMPLEX" in name else np.float64).flatten().tolist()
        if name in NATIVE and "FLOAT" not in name and "COMPLEX" not in name and name != "DOUBLE":
            values = [int(v) for v in values]
        proto = helper.make_tensor("t", getattr(TensorProto, name), array.shape, values)
        assert not proto.HasField("raw_data")
    ours = read_tensor(proto.SerializeToString())
    same_array(ours, proto)


@pytest.mark.parametrize("name", NATIVE + OWN)
def test_scalars_and_empty_tensors_agree(name: str) -> None:
    for shape in ((), (0,), (2, 0, 3), (1,), (1, 1)):
        proto = numpy_helper.from_array(np.ones(shape, helper.tensor_dtype_to_np_dtype(getattr(TensorProto, name))))
        same_array(read_tensor(proto.SerializeToString()), proto)
        typed = helper.make_tensor("t", getattr(TensorProto, name), shape, [1] * int(np.prod(shape)))
        same_array(read_tensor(typed.SerializeToString()), typed)


def test_strings_agree_and_other_bytes_stay_bytes() -> None:
    proto = helper.make_tensor("t", TensorProto.STRING, [2, 2], ["a", "żółć", "", "singe"])
    same_array(read_tensor(proto.SerializeToString()), proto)
    odd = helper.make_tensor("t", TensorProto.STRING, [1], [b"\xff\x01"])
    assert read_tensor(odd.SerializeToString()).tolist() == [b"\xff\x01"]


@pytest.mark.parametrize("count", [1, 7, 40, CHUNK // 3, CHUNK + 5])
def test_packed_integers_agree_across_chunks(count: int) -> None:
    rng = np.random.default_rng(count)
    values = rng.integers(-(2**63), 2**63 - 1, count) >> rng.integers(0, 64, count)
    proto = helper.make_tensor("t", TensorProto.INT64, [count], values.tolist())
    np.testing.assert_array_equal(read_tensor(proto.SerializeToString()), values)


def test_unpacked_and_mixed_runs_are_one() -> None:
    values = np.arange(-50, 50, dtype=np.float32)
    head = tag_len(1, number_bytes(100)) + b"\x10\x01"
    single = [b"\x25" + struct.pack("<f", v) for v in values]
    packed = [tag_len(4, values[i : i + 20].tobytes()) for i in range(0, 100, 20)]
    for body in (single, packed, packed[:2] + single[40:60] + packed[3:], single[:20] + packed[1:]):
        ours = read_tensor(head + b"".join(body))
        np.testing.assert_array_equal(ours, values)
        assert not ours.flags.writeable
    ints = b"\x08\x03\x10\x07" + b"".join(b"\x38" + number_bytes(v) for v in (-1, 2**62, 5))
    assert read_tensor(ints).tolist() == [-1, 2**62, 5]


@pytest.mark.parametrize("count", [33, CHUNK])
def test_long_runs_of_single_values_are_read_like_short_ones(count: int) -> None:
    """Also where another field stands among them, and up to one that is wrong, of which the error says where it is."""
    rng = np.random.default_rng(count)
    values = rng.integers(-(2**63), 2**63 - 1, count) >> rng.integers(0, 64, count)
    attribute = helper.make_attribute("a", values.tolist(), attr_type=onnx.AttributeProto.INTS)
    numbers = attribute.SerializeToString()
    floats = helper.make_attribute("a", values.astype(np.float32).tolist()).SerializeToString()
    names = [f"ä{v % 1000}" for v in values.tolist()]
    texts = helper.make_attribute("a", names).SerializeToString()

    def read(*parts: bytes) -> Any:
        node = tag_len(4, b"X") + tag_len(5, b"".join(parts))
        model = helper.make_model(helper.make_graph([], "g", [], [])).SerializeToString()
        (found,) = read_model(model + tag_len(7, tag_len(1, node))).graph.nodes
        return found.attributes["a"]

    assert read(numbers) == tuple(values.tolist())
    assert read(floats) == tuple(values.astype(np.float32).tolist())
    assert read(texts) == tuple(names)
    assert read(numbers, tag_len(13, b"doc"), b"\x40\x05" * 3) == (*values.tolist(), 5, 5, 5)
    for body, place in ((numbers, "ints"), (floats, "floats")):
        with pytest.raises(FormatError, match=rf"{place}\[{count}\]"):
            read(body, (b"\x40" + b"\xff" * 11) if place == "ints" else b"\x3d\x00")


def test_raw_and_packed_data_are_views_of_the_source() -> None:
    values = np.arange(1000, dtype=np.float32)
    raw = numpy_helper.from_array(values).SerializeToString()
    packed = helper.make_tensor("t", TensorProto.FLOAT, [1000], values.tolist()).SerializeToString()
    for source in (raw, packed):
        assert np.shares_memory(read_tensor(source), np.frombuffer(source, np.uint8))


def test_a_bool_is_zero_or_one() -> None:
    ours = read_tensor(b"\x08\x03\x10\x09" + tag_len(9, b"\x00\x02\xff"))
    assert ours.view(np.uint8).tolist() == [0, 1, 1]


# --- a small model with everything in it ---------------------------------------------------------------------------


def test_the_rich_model_agrees() -> None:
    model = rich()
    same_model(model.SerializeToString(), model)
    ours = read_model(model.SerializeToString(), name="rich.onnx")
    assert ours.path == "rich.onnx"
    nodes = {node.op_type: node for node in ours.graph.nodes}
    assert nodes["Odd"].attributes == {"f": 0.25, "fs": (1.5, -2.5), "names": ("a", "é"), "data": b"\xff\xfe"}
    assert nodes["Conv"].domain == ""
    assert nodes["Conv"].attributes["pads"] == (1, 1, 300, -1)
    assert nodes["Optional"].attributes["type"] == OnnxType("tensor", "float32", (2,))
    assert ours.graph.inputs[1].type == OnnxType("sequence", of=OnnxType("tensor", "int64", ("N", None)))
    assert ours.graph.outputs[0].dtype == "bfloat16"
    assert ours.functions[0].nodes[0].attributes["alpha"] == OnnxRef("alpha")
    assert ours.functions[0].defaults == {"beta": 3}


def test_sparse_initializers_are_named_by_their_values() -> None:
    model = rich()
    model.graph.sparse_initializer.add().CopyFrom(model.graph.node[2].attribute[0].sparse_tensor)
    sparse = read_model(model.SerializeToString()).graph.sparse_initializers["v"]
    assert (sparse.dims, sparse.indices.tolist()) == ((2, 3), [1, 4])
    model.graph.sparse_initializer[0].indices.CopyFrom(helper.make_tensor("i", TensorProto.INT64, [2], [1, 6]))
    with pytest.raises(FormatError, match=r"sparse_initializer\[0\].indices: an index is outside of \[2, 3\]"):
        read_model(model.SerializeToString())


def test_attributes_without_a_type_or_a_zero_are_read() -> None:
    node = tag_len(4, b"Op") + b"".join(
        tag_len(5, attribute)
        for attribute in (
            tag_len(1, b"untyped") + b"\x18\x07",
            tag_len(1, b"zero") + b"\xa0\x01\x02",
            tag_len(1, b"empty") + b"\xa0\x01\x07",
        )
    )
    model = read_model(b"\x08\x08" + tag_len(8, b"\x10\x11") + tag_len(7, tag_len(1, node)))
    assert model.graph.nodes[0].attributes == {"untyped": 7, "zero": 0, "empty": ()}


# --- external data -------------------------------------------------------------------------------------------------


def external(folder: Path, location: str, dims: tuple[int, ...] = (2, 3), **entries: str) -> Path:
    """A model in `folder` with one weight, float32 of shape `dims`, in another file."""
    tensor = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=dims, data_location=TensorProto.EXTERNAL)
    for key, value in {"location": location, **entries}.items():
        tensor.external_data.add(key=key, value=value)
    model = helper.make_model(helper.make_graph([], "g", [], [], [tensor]))
    folder.mkdir(exist_ok=True)
    path = folder / "model.onnx"
    path.write_bytes(model.SerializeToString())
    return path


def test_external_data_agree(tmp_path: Path) -> None:
    model, path = rich(), tmp_path / "big.onnx"
    onnx.save(model, path, save_as_external_data=True, location="big.data", size_threshold=0)
    assert (tmp_path / "big.data").stat().st_size
    same_model(path, onnx.load(path, load_external_data=False), str(tmp_path))


def test_external_data_are_mapped_once_and_cut_to_size(tmp_path: Path) -> None:
    values = np.arange(8, dtype=np.float32)
    (tmp_path / "w.bin").write_bytes(values.tobytes())
    assert read_model(external(tmp_path, "w.bin")).graph.initializers["w"].tolist() == [[0, 1, 2], [3, 4, 5]]
    path = external(tmp_path, "./w.bin", offset="8", length="24")
    assert read_model(path).graph.initializers["w"].tolist() == [[2, 3, 4], [5, 6, 7]]


@pytest.mark.parametrize(
    ("location", "entries", "message"),
    [
        ("../secret", {}, "not a path inside"),
        ("a/../../secret", {}, "not a path inside"),
        ("a\\..\\..\\secret", {}, "not a path inside"),
        ("/etc/passwd", {}, "not a path inside"),
        ("C:\\secret", {}, "not a path inside"),
        ("\\\\host\\share\\x", {}, "not a path inside"),
        ("", {}, "not a path inside"),
        ("link", {}, "leads out of"),
        ("links/secret", {}, "leads out of"),
        ("loop", {}, "cannot be read"),
        ("loop/x", {}, "cannot be read"),
        ("absent", {}, "cannot be read"),
        ("pipe", {}, "not a regular file"),
        (".", {}, "not a path inside"),
        ("nul\0", {}, "not a path inside"),
        ("x" * 5000, {}, "cannot be read"),
        ("w.bin", {"offset": "1"}, "run past the end"),
        ("w.bin", {"length": "25"}, "run past the end"),
        ("w.bin", {"length": "9" * 19}, "run past the end"),
        ("w.bin", {"length": "8"}, "8 bytes of data, where float32"),
        ("w.bin", {"offset": "-4"}, "not a number"),
        ("w.bin", {"length": "9" * 5000}, "not a number"),
        ("w.bin", {"offset": "٣"}, "not a number"),
    ],
)
def test_external_data_stay_inside(tmp_path: Path, location: str, entries: dict[str, str], message: str) -> None:
    folder = tmp_path / "model"
    path = external(folder, location, (2, 3), **entries)
    (tmp_path / "secret").write_bytes(bytes(24))
    (folder / "w.bin").write_bytes(bytes(24))
    (folder / "a").mkdir()
    for name, target in (("link", "../secret"), ("links", ".."), ("loop", "loop")):
        os.symlink(target, folder / name)
    os.mkfifo(folder / "pipe")
    with pytest.raises(FormatError, match=message) as caught:
        read_model(path, name="model.onnx")
    assert re.match(r"model\.onnx: at byte \d+, graph\.initializer\[0\]\.external_data: ", str(caught.value))


def test_bytes_have_no_folder(tmp_path: Path) -> None:
    (tmp_path / "w.bin").write_bytes(bytes(24))
    with pytest.raises(ImportFailure, match="from its path"):
        read_model(external(tmp_path, "w.bin").read_bytes())


# --- the wire layer by itself --------------------------------------------------------------------------------------


def test_a_format_names_only_messages_that_it_has() -> None:
    with pytest.raises(KeyError, match="unknown message 'Nobody'"):
        Format({"A": Schema(lambda found, place, context: found, {1: many("b", "Nobody")})})


def test_unknown_fields_and_other_wire_types_are_skipped() -> None:
    format = Format({"A": Schema(lambda found, place, context: (found, context), {1: many("names", TEXT)})})
    skipped = b"\x08\x05" + b"\x11" + bytes(8) + b"\x1d" + bytes(4) + tag_len(9, b"anything")
    data = memoryview(skipped + tag_len(1, b"x") + skipped + tag_len(1, b"y"))
    assert format.decode(data, "A", "a.bin", "context") == ({"names": ["x", "y"]}, "context")


def test_varints_at_their_limits() -> None:
    values = [0, 1, 127, 128, 2**32, 2**63, 2**64 - 1]
    run = memoryview(b"".join(map(number_bytes, values)))
    assert varints(run).tolist() == values
    with pytest.raises(Fault, match="longer than 10 bytes"):
        varints(memoryview(b"\x80" * (CHUNK + 1) + b"\x00"))
