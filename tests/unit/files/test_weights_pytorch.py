"""PyTorch's files: read correctly in both layouts, never executed; hostile ones are refused.

The files are built here, opcode by opcode, as torch.save writes them.
"""

from __future__ import annotations

import io
import pickle
import random
import struct
import time
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import singe as sg
from singe import nn
from singe.weights.pytorch import GLOBALS, LEGACY, MAX_DEPTH, read_pytorch

KINDS = {
    "float32": "Float", "float64": "Double", "float16": "Half", "int64": "Long", "int32": "Int", "int16": "Short",
    "int8": "Char", "uint8": "Byte", "bool": "Bool",
}  # fmt: skip


# --- writing files ----------------------------------------------------------------------------------------------------


def plain(value: Any, protocol: int = 2) -> bytes:
    """The opcodes that push a plain value."""
    data = pickle.dumps(value, protocol)
    return data[2 if protocol < 4 else 11 : -1]


def call(name: str, *args: bytes) -> bytes:
    """The opcodes of a call of a global."""
    module, _, attribute = name.rpartition(".")
    return f"c{module}\n{attribute}\n".encode() + b"(" + b"".join(args) + b"tR"


def storage(key: str, kind: str, count: int, legacy: bool = False) -> bytes:
    """A persistent id; in the older layout it ends with the facts of a view."""
    parts = (plain("storage"), f"ctorch\n{kind}Storage\n".encode(), plain(key), plain("cpu"), plain(count))
    return b"(" + b"".join(parts) + (b"N" if legacy else b"") + b"tQ"


def tensor(held: bytes, offset: Any, shape: Any, strides: Any) -> bytes:
    """A tensor over a storage, with no gradient and no hooks."""
    return call(
        "torch._utils._rebuild_tensor_v2",
        held, plain(offset), plain(shape), plain(strides), b"\x89", call("collections.OrderedDict"),
    )  # fmt: skip


def state(entries: Mapping[str, bytes]) -> bytes:
    """An OrderedDict with PyTorch's `_metadata` among its attributes."""
    items = b"".join(plain(k) + v for k, v in entries.items())
    metadata = plain({"_metadata": {"": {"version": 1}}})
    return call("collections.OrderedDict") + b"(" + items + b"u" + metadata + b"b"


def archive(
    root: bytes, storages: Mapping[str, bytes], more: Mapping[str, bytes] | None = None, **options: Any
) -> bytes:
    """The layout of PyTorch 1.6 and later."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", **options) as held:
        held.writestr("m/data.pkl", b"\x80\x02" + root + b".")
        held.writestr("m/byteorder", b"little")
        for key, data in storages.items():
            held.writestr(f"m/data/{key}", data)
        held.writestr("m/version", b"3\n")
        for name, data in (more or {}).items():
            held.writestr(name, data, zipfile.ZIP_DEFLATED if name.startswith("m/code/") else None)
    return made.getvalue()


def exported() -> bytes:
    """The layout of torch.export: no pickle, weights by number and a description of them in JSON."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as held:
        held.writestr("m/data/weights/weight_0", bytes(4))
        held.writestr("m/archive_format", b"pt2")
    return made.getvalue()


def stream(root: bytes, storages: Mapping[str, tuple[int, bytes]], system: Any = None) -> bytes:
    """The older layout: storages with their counts."""
    facts = {"protocol_version": 1001, "little_endian": True, "type_sizes": {"int": 4}} if system is None else system
    parts = [LEGACY, pickle.dumps(1001, 2), pickle.dumps(facts, 2), b"\x80\x02" + root + b"."]
    parts += [pickle.dumps(list(storages), 2), *(struct.pack("<q", n) + data for n, data in storages.values())]
    return b"".join(parts)


def file_of(arrays: Mapping[str, np.ndarray], layout: str) -> bytes:
    """A state dict in which each array has a separate storage; in a stream, storages are in reverse order."""
    entries, zipped, streamed = {}, {}, {}
    for k, (name, array) in enumerate(arrays.items()):
        held = storage(str(k), KINDS[array.dtype.name], array.size, layout == "stream")
        strides = tuple(s // array.itemsize for s in np.zeros(array.shape, array.dtype).strides)
        entries[name] = tensor(held, 0, array.shape, strides)
        zipped[str(k)] = array.tobytes()
        streamed = {str(k): (array.size, array.tobytes()), **streamed}
    return stream(state(entries), streamed) if layout == "stream" else archive(state(entries), zipped)


LAYOUTS = pytest.mark.parametrize("layout", ["archive", "stream"])


# --- reading ----------------------------------------------------------------------------------------------------------


@LAYOUTS
def test_every_dtype_and_shape(layout: str) -> None:
    rng = np.random.default_rng(0)
    arrays = {kind: rng.integers(0, 2, (3, 4)).astype(kind) for kind in KINDS}
    arrays |= {"number": np.array(7), "none": np.zeros((0, 3), np.float32), "line": np.arange(5.0, dtype=np.float32)}
    found = read_pytorch(file_of(arrays, layout))
    assert list(found) == list(arrays)
    for name, array in arrays.items():
        assert (found[name].dtype, found[name].shape) == (array.dtype, array.shape)
        np.testing.assert_array_equal(found[name], array)


def test_bfloat16_is_read_as_it_is() -> None:
    values = np.array([1.0, -2.5, 3.140625, np.inf, 1e-30], np.float32)
    halves = (values.view(np.uint32) >> 16).astype(np.uint16)
    root = state({"w": tensor(storage("0", "BFloat16", 5), 0, (5,), (1,))})
    found = read_pytorch(archive(root, {"0": halves.tobytes()}))["w"]
    assert sg.dtype(found.dtype) is sg.bfloat16
    layer = nn.Linear(5, 1, bias=False).with_state({"weight": found[None]})
    assert layer.weight.dtype is sg.float32
    np.testing.assert_allclose(layer.weight.numpy()[0], values, rtol=2**-8)
    np.testing.assert_array_equal(sg.tensor(found).cast("float32").numpy()[:3], values[:3])


def test_views_of_one_storage() -> None:
    """Offsets, steps, turned and repeated axes; each comes out contiguous."""
    base = np.arange(24, dtype=np.float32)
    held = storage("0", "Float", 24)
    views = {
        "turned": ((4, 6), (1, 4), 0, base.reshape(6, 4).T),
        "cut": ((2, 3), (8, 2), 1, base[1:].reshape(-1)[[0, 2, 4, 8, 10, 12]].reshape(2, 3)),
        "repeated": ((3, 4), (0, 1), 20, np.tile(base[20:], (3, 1))),
        "last": ((1,), (1,), 23, base[23:]),
    }
    root = state({k: tensor(held, offset, shape, strides) for k, (shape, strides, offset, _) in views.items()})
    found = read_pytorch(archive(root, {"0": base.tobytes()}))
    for name, (*_, wanted) in views.items():
        np.testing.assert_array_equal(found[name], wanted)
        assert found[name].flags.c_contiguous


def test_parameters_and_equal_tensors() -> None:
    held = tensor(storage("0", "Float", 2), 0, (2,), (1,))
    parameter = call("torch._utils._rebuild_parameter", held, b"\x88", call("collections.OrderedDict"))
    found = read_pytorch(archive(state({"a": parameter, "b": held}), {"0": np.ones(2, np.float32).tobytes()}))
    assert found["a"] is found["b"]


def test_a_pickle_of_a_later_protocol() -> None:
    """Frames, short strings, a memo without numbers, globals from the stack."""
    held = tensor(storage("0", "Float", 2), 0, (2,), (1,)).replace(
        b"ctorch._utils\n_rebuild_tensor_v2\n", plain("torch._utils", 4) + plain("_rebuild_tensor_v2", 4) + b"\x93"
    )
    root = b"\x95" + struct.pack("<Q", 0) + b"}\x94" + plain("w", 4) + held + b"s"
    np.testing.assert_array_equal(read_pytorch(archive(root, {"0": np.ones(2, np.float32).tobytes()}))["w"], [1, 1])


def test_an_ordered_dict_as_python_2_wrote_it() -> None:
    """It is made of pairs, which are lists, and its strings are byte strings."""
    held = tensor(storage("0", "Float", 2), 0, (2,), (1,))
    pairs = b"](" + b"](U\x01w" + held + b"e" + b"](" + plain("v") + held + b"ee"
    found = read_pytorch(archive(call("collections.OrderedDict", pairs), {"0": np.ones(2, np.float32).tobytes()}))
    assert list(found) == ["w", "v"]
    np.testing.assert_array_equal(found["w"], [1, 1])


def test_a_list_makes_one_ordered_dict() -> None:
    """A list that is used again and again would cost its length each time."""
    pairs = b"](" + b"".join(b"](" + plain(str(k)) + b"K\x01e" for k in range(10_000)) + b"eq\xff"
    again = b"ccollections\nOrderedDict\n(h\xfftR0"
    start = time.process_time()
    with pytest.raises(sg.FormatError, match="holds a list, expected a state dict"):
        read_pytorch(archive(pairs + again * 30_000, {}))
    assert time.process_time() - start < 20


def checkpoint(entries: Mapping[str, bytes]) -> bytes:
    items = b"".join(plain(k) + v for k, v in entries.items())
    return archive(b"}(" + items + b"u", {"0": np.ones(2, np.float32).tobytes()})


def test_a_state_dict_within_a_checkpoint() -> None:
    one = state({"w": tensor(storage("0", "Float", 2), 0, (2,), (1,))})
    two = state({"v": tensor(storage("0", "Float", 2), 0, (2,), (1,))})
    optimizer = (
        b"}(" + plain("state") + b"}" + plain(0) + one + b"s" + plain("param_groups") + plain([{"lr": 0.1}]) + b"u"
    )
    epoch = plain(3)
    assert list(read_pytorch(checkpoint({"epoch": epoch, "state_dict": one, "optimizer": optimizer}))) == ["w"]
    both = checkpoint({"model": one, "ema": two, "epoch": epoch})
    with pytest.raises(sg.InputError, match=r"several state dicts; choose one with key=: 'model', 'ema'"):
        read_pytorch(both)
    assert list(read_pytorch(both, key="ema")) == ["v"]
    with pytest.raises(
        sg.InputError, match=r"no state dict under the key 'epoch'; its keys are 'model', 'ema', 'epoch'"
    ):
        read_pytorch(both, key="epoch")
    with pytest.raises(
        sg.FormatError, match=r"neither a state dict nor a dict that holds one; its keys are 'epoch', 'args'"
    ):
        read_pytorch(checkpoint({"epoch": epoch, "args": plain({"a": 1})}))


@LAYOUTS
def test_a_module_takes_them_by_name(layout: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    net = nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2))
    arrays = {
        k: rng.standard_normal(t.shape).astype(np.float64 if k == "0.bias" else np.float32)
        if t.dtype.is_float
        else np.array(5)
        for k, t in net.state_dict().items()
    }
    path = tmp_path / "w.pth"
    path.write_bytes(file_of(arrays, layout))
    loaded = sg.load_weights(net, path)
    for name, t in loaded.state_dict().items():
        assert t.dtype is net.state_dict()[name].dtype
        np.testing.assert_array_equal(t.numpy(), arrays[name].astype(t.dtype.numpy))
    assert sg.load_weights(net, path.read_bytes()).state_dict().keys() == arrays.keys()
    path.write_bytes(file_of({"1.weight": np.ones(3), "2.weight": np.ones(3)}, layout))
    with pytest.raises(sg.InputError) as caught:
        sg.load_weights(net, path)
    for words in (
        str(path),
        "missing: 0.weight, 0.bias, 1.bias",
        "unknown: 2.weight",
        "1.weight is (3,), expected (2,)",
    ):
        assert words in str(caught.value)


def test_storages_of_bytes_and_dtypes_without_a_storage_type() -> None:
    """As PyTorch writes uint16 and float8: the tensor says what the bytes are."""
    raw = np.arange(8, dtype=np.uint8)
    held = b"(" + plain("storage") + b"ctorch.storage\nUntypedStorage\n" + plain("0") + plain("cpu") + plain(8) + b"tQ"
    entries = {
        kind: call(
            "torch._utils._rebuild_tensor_v3",
            held, plain(1), plain((2,)), plain((1,)), b"\x89", call("collections.OrderedDict"), f"ctorch\n{kind}\n".encode(), b"N",
        )
        for kind in ("uint16", "float8_e4m3fn")
    }  # fmt: skip
    found = read_pytorch(archive(state(entries), {"0": raw.tobytes()}))
    np.testing.assert_array_equal(found["uint16"], raw.view(np.uint16)[1:3])
    assert found["float8_e4m3fn"].tobytes() == raw[1:3].tobytes()
    assert sg.dtype(found["float8_e4m3fn"].dtype) is sg.float8_e4m3fn
    beyond = {"w": entries["uint16"].replace(plain(1), plain(3), 1)}
    with pytest.raises(sg.FormatError, match="reaches to element 4 of a storage of 4"):
        read_pytorch(archive(state(beyond), {"0": raw.tobytes()}))


def test_what_checkpoints_hold_beside_weights() -> None:
    """Arguments of a script and NumPy's numbers are passed over; they do not run either."""
    one = state({"w": tensor(storage("0", "Float", 2), 0, (2,), (1,))})
    arguments = b"cargparse\nNamespace\n)\x81}(" + plain("lr") + plain(0.1) + b"ub"
    numpy = (
        b"cnumpy.core.multiarray\nscalar\n(" + call("numpy.dtype", plain("f8"), b"\x89\x88") + b"(" + plain(3) + b"tb"
    )
    numpy += call("_codecs.encode", plain("x"), plain("latin1")) + b"tR"
    assert list(read_pytorch(checkpoint({"model": one, "args": arguments, "best": numpy}))) == ["w"]


def script(attributes: Mapping[str, bytes]) -> bytes:
    """A TorchScript module: an object of a class of its own, with attributes."""
    items = b"".join(plain(k) + v for k, v in attributes.items())
    return b"c__torch__.___torch_mangle_0\nNet\n)\x81}(" + items + b"ub"


def test_the_weights_of_torchscript() -> None:
    held = tensor(storage("0", "Float", 2), 0, (2,), (1,))
    listed = call("torch.jit._pickle.build_intlist", plain([1, 2]))
    tagged = call("torch.jit._pickle.restore_type_tag", plain([1.0]), plain("List[float]"))
    root = script(
        {
            "training": b"\x89",
            "sizes": listed,
            "more": tagged,
            "conv": script({"weight": held, "bias": b"N"}),
            "scale": held,
        }
    )
    data = archive(
        root,
        {"0": np.ones(2, np.float32).tobytes()},
        {"m/constants.pkl": b"\x80\x02).", "m/code/x.py": b"def f():\n" * 9},
    )
    found = read_pytorch(data)
    assert list(found) == ["conv.weight", "scale"]
    np.testing.assert_array_equal(found["conv.weight"], [1, 1])
    with pytest.raises(sg.FormatError, match=r"uses '__torch__\.___torch_mangle_0\.Net'"):
        read_pytorch(archive(root, DATA))
    classes = b"c__torch__.torch.classes.quantized\nConv2dPackedParamsBase\n)\x81"
    with pytest.raises(sg.FormatError, match="Conv2dPackedParamsBase"):
        read_pytorch(archive(script({"w": classes}), {}, {"m/constants.pkl": b""}))


@pytest.mark.slow
@pytest.mark.parametrize("last", ["a number", "the first"])
def test_modules_within_modules_end(last: str) -> None:
    """Each holds the next twice, and the last one a number or the first."""
    number = lambda k: bytes([100 + k % 60])
    parts = b"".join(b"c__torch__\nA\n)\x81q" + number(k) for k in range(60))
    links = b""
    for k in range(60):
        held = plain(1) if (k, last) == (59, "a number") else b"h" + number(k + 1)
        links += b"h" + number(k) + b"}(" + b"".join(plain(n) + held for n in "ab") + b"ub0"
    start = time.process_time()
    with pytest.raises(
        sg.FormatError, match="more than 1,000,000 parts" if last == "a number" else "more than 100 deep"
    ):
        read_pytorch(archive(parts + links + b"h" + number(0), {}, {"m/constants.pkl": b""}))
    assert time.process_time() - start < 20


def test_no_part_of_torchscript_is_left_out() -> None:
    """A tensor is found at the deepest place, and one step deeper the file is refused."""
    held = tensor(storage("0", "Float", 2), 0, (2,), (1,))
    root = script({"w": held})
    for _ in range(MAX_DEPTH - 1):
        root = script({"a": root})
    data, more = {"0": np.ones(2, np.float32).tobytes()}, {"m/constants.pkl": b""}
    assert list(read_pytorch(archive(root, data, more))) == ["a." * (MAX_DEPTH - 1) + "w"]
    for deeper in (script({"a": root}), script({"a": script({"a": root})})):
        with pytest.raises(sg.FormatError, match="nested more than 100 deep"):
            read_pytorch(archive(deeper, data, more))


# --- nothing runs -----------------------------------------------------------------------------------------------------


class Trap:
    """An object that writes a file when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return open, (str(self.path), "w")


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_nothing_in_a_file_runs(protocol: int, tmp_path: Path) -> None:
    trap = pickle.dumps({"w": Trap(tmp_path / "sprung")}, protocol)[2:-1]
    with pytest.raises(sg.FormatError, match=r"the file uses '\w+\.open', which state dicts do not need") as caught:
        read_pytorch(archive(trap, {}), "evil.pth")
    assert "evil.pth: data.pkl, byte" in str(caught.value)
    assert not (tmp_path / "sprung").exists()


def test_names_that_are_allowed_call_nothing_of_torch_or_of_python() -> None:
    for name, known in GLOBALS.items():
        assert name.partition(".")[0] in ("torch", "collections", "argparse", "numpy", "_codecs")
        assert known.call is None or known.call.__module__ == "singe.weights.pytorch"


# --- hostile files ----------------------------------------------------------------------------------------------------

W = tensor(storage("0", "Float", 4), 0, (2, 2), (2, 1))
DATA = {"0": np.ones(4, np.float32).tobytes()}


def one(held: bytes, data: Mapping[str, bytes] = DATA) -> bytes:
    return archive(state({"w": held}), data)


def doubled(name: str) -> bytes:
    """An archive with an entry twice."""
    with pytest.warns(UserWarning, match="Duplicate name"):
        return archive(state({"w": W}), DATA, {name: b"x"})


def overlapping() -> bytes:
    """An archive whose directory gives the same bytes to two entries, one of which was empty."""
    data = bytearray(archive(state({"w": W}), {**DATA, "x": bytes(100_000), "y": b""}))
    held, empty = (data.rindex(b"m/data/" + key) - 46 for key in (b"x", b"y"))
    data[empty + 16 : empty + 28] = data[held + 16 : held + 28]  # checksum and sizes
    data[empty + 42 : empty + 46] = data[held + 42 : held + 46]  # where it begins
    return bytes(data)


REFUSED: dict[str, tuple[Callable[[], bytes], str]] = {
    "a tensor beyond its storage": (lambda: one(tensor(storage("0", "Float", 4), 1, (2, 2), (2, 1))), "element 4 of a storage of 4"),
    "a stride beyond it": (lambda: one(tensor(storage("0", "Float", 4), 0, (2,), (4,))), "reaches to element 4"),
    "a negative stride": (lambda: one(tensor(storage("0", "Float", 4), 3, (2,), (-1,))), "stride is -1, expected a count"),
    "a negative size": (lambda: one(tensor(storage("0", "Float", 4), 0, (-2,), (1,))), "size is -2, expected a count"),
    "a negative offset": (lambda: one(tensor(storage("0", "Float", 4), -1, (2,), (1,))), "offset is -1"),
    "a size that is no number": (lambda: one(tensor(storage("0", "Float", 4), 0, ("2",), (1,))), "size is '2'"),
    "a truth value as a size": (lambda: one(tensor(storage("0", "Float", 4), 0, (True,), (1,))), "size is True"),
    "sizes without strides": (lambda: one(tensor(storage("0", "Float", 4), 0, (2, 2), (1,))), "2 sizes and 1 strides"),
    "too many axes": (lambda: one(tensor(storage("0", "Float", 4), 0, (1,) * 40, (1,) * 40)), "at most 32"),
    "a huge size": (lambda: one(tensor(storage("0", "Float", 4), 0, (2**60,), (0,))), "expected a count"),
    "repetition without end": (lambda: one(tensor(storage("0", "Float", 4), 0, (2**40,), (0,))), "times the file"),
    "repetition along many axes": (lambda: one(tensor(storage("0", "Float", 4), 0, (2**30,) * 30, (0,) * 30)), "times the file"),
    "many views of one storage": (
        lambda: archive(
            state({f"w{k}": tensor(storage("0", "Float", 1 << 16), k, (1 << 15,), (1,)) for k in range(999)}), {"0": bytes(1 << 18)}
        ),
        "times the file",
    ),
    "a storage of another size": (lambda: one(W, {"0": b"\0" * 12}), "'0' has 12 bytes, expected 4 elements of float32"),
    "a storage that is not there": (lambda: one(W, {"1": b"\0" * 16}), "the storage '0' is not in the archive"),
    "a storage that leads out": (lambda: one(tensor(storage("../byteorder", "Byte", 6), 0, (6,), (1,))), "not in the archive"),
    "one storage described in two ways": (
        lambda: archive(state({"w": W, "v": tensor(storage("0", "Int", 4), 0, (4,), (1,))}), DATA), "described in two ways"
    ),
    "a storage of no type": (lambda: one(tensor(storage("0", "Complex", 4), 0, (2,), (1,))), "uses 'torch.ComplexStorage'"),
    "a type that is no storage": (
        lambda: one(W.replace(b"ctorch\nFloatStorage\n", b"ctorch\nfloat32\n")), "a storage is not as PyTorch writes it"
    ),
    "a call of what is no function": (lambda: one(b"ctorch\nfloat32\n)R"), "calls torch.float32"),
    "a call of a string": (lambda: one(plain("system") + b")R"), "calls 'system'"),
    "a tensor of no storage": (lambda: one(tensor(plain("x"), 0, (1,), (1,))), "not made of a storage"),
    "a parameter of no tensor": (lambda: one(call("torch._utils._rebuild_parameter", plain(1))), "not made of a tensor"),
    "an object of a class": (lambda: one(b"ctorch.nn\nModule\n)\x81"), "uses 'torch.nn.Module'"),
    "an opcode of classes": (lambda: one(b"(ios\nsystem\n"), "the opcode 0x69"),
    "an extension": (lambda: one(b"\x82\x01"), "the opcode 0x82"),
    "a memo without the number": (lambda: one(b"h\x63"), "the memo has no number 99"),
    "a global without an end": (lambda: archive(b"c" + b"x" * 1000, {}), "a name without an end"),
    "a string beyond the file": (lambda: archive(b"X\xff\xff\xff\x7f", {}), "ends within a pickle"),
    "a string that is none": (lambda: archive(b"X\x01\0\0\0\xff", {}), "not UTF-8"),
    "an empty stack": (lambda: archive(b"0", {}), "the pickle is damaged"),
    "a mark as a value": (lambda: archive(b"(", {}), "a mark where a value is expected"),
    "no mark": (lambda: archive(b"t", {}), "the pickle is damaged"),
    "items of what is no dict": (lambda: archive(b"](K\x01K\x02u", {}), "sets items of a list"),
    "elements of what is no list": (lambda: archive(b"}K\x01a", {}), "appends to a dict"),
    "attributes of what has none": (lambda: archive(b"]}b", {}), "sets attributes of a list"),
    "a key that is no string": (lambda: archive(b"}))s", {}), "a key is a tuple"),
    "a key twice": (lambda: archive(b"}(" + plain("a") + b"N" + plain("a") + b"Nu", {}), "the key 'a' comes twice"),
    "tuples within tuples within …": (lambda: archive(b")" + b"\x85" * 300_000, {}), "holds a tuple, expected a state dict"),
    "lists within lists as sizes": (
        lambda: one(call("torch._utils._rebuild_tensor_v2", storage("0", "Float", 4), plain(0), b")" + b"\x85" * 99_999, plain((1,)))),
        "size is a tuple",
    ),
    "an OrderedDict of numbers": (lambda: archive(call("collections.OrderedDict", plain([1, 2])), {}), "not made of different strings"),
    "an OrderedDict of a string": (lambda: archive(call("collections.OrderedDict", plain("ab")), {}), "something other than nothing or one list"),
    "a dict that holds itself": (lambda: archive(b"}q\x00" + plain("a") + b"h\x00s", {}), "neither a state dict"),
    "a list": (lambda: archive(plain([1, 2]), {}), "holds a list, expected a state dict"),
    "a tensor alone": (lambda: archive(W, DATA), "holds a tensor, expected a state dict"),
    "a program of torch.export": (exported, "a program of torch.export, expected a state dict: torch.save"),
    "a compressed archive": (
        lambda: archive(state({"w": W}), DATA, compression=zipfile.ZIP_DEFLATED), "is compressed or encrypted"
    ),
    "an entry twice": (lambda: doubled("m/data/0"), "two entries of the archive have one name"),
    "an entry that leads out": (lambda: archive(state({"w": W}), DATA, {"../x": b""}), "leads out of it"),
    "an entry from the root": (lambda: archive(state({"w": W}), DATA, {"/etc/x": b""}), "leads out of it"),
    "two pickles": (lambda: archive(state({"w": W}), DATA, {"n/data.pkl": b"N."}), "2 entries data.pkl"),
    "entries that overlap": (overlapping, "larger than the file"),
    "no pickle": (lambda: b"PK\x05\x06" + bytes(18), "starts with"),
    "a TorchScript model without a module": (lambda: archive(state({"w": W}), DATA, {"m/constants.pkl": b""}), "a TorchScript model that holds a dict"),
    "the other byte order": (
        lambda: archive(state({"w": W}), DATA).replace(b"little", b"biggie"), "damaged"
    ),
    "an archive cut short": (lambda: one(W)[:-30], "the archive is damaged"),
    "a stream of another version": (lambda: LEGACY + pickle.dumps(7, 2) + pickle.dumps(0, 2) * 3, "version 7"),
    "a stream of the other byte order": (lambda: stream(state({}), {}, {"little_endian": False}), "big-endian"),
    "a stream cut short": (lambda: file_of({"w": np.ones(4, np.float32)}, "stream")[:-1], "expected 4, and 15 bytes follow"),
    "a stream of other counts": (
        lambda: stream(state({"w": tensor(storage("0", "Float", 4, True), 0, (4,), (1,))}), {"0": (2**40, bytes(16))}),
        "has 1099511627776 elements, expected 4",
    ),
    "a stream of a negative count": (
        lambda: stream(state({"w": tensor(storage("0", "Float", 4, True), 0, (4,), (1,))}), {"0": (-4, bytes(16))}), "-4 elements"
    ),
    "a stream without its storage": (
        lambda: stream(state({"w": tensor(storage("9", "Float", 4, True), 0, (4,), (1,))}), {}), "'9' is not in the file"
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_hostile_files_are_refused(name: str) -> None:
    make, words = REFUSED[name]
    data = make()
    start = time.process_time()
    with pytest.raises(sg.FormatError) as caught:
        sg.load_weights(nn.Linear(2, 2), data)
    assert words in str(caught.value)
    assert len(str(caught.value)) < 500
    assert time.process_time() - start < 5


@LAYOUTS
def test_truncation_and_flipped_bytes(layout: str) -> None:
    """Whatever is damaged, the answer is a state dict or an error that says so."""
    data = file_of({"a.weight": np.ones((2, 3), np.float32), "b": np.array(3)}, layout)
    rng = random.Random(0)
    damaged = [data[:end] for end in range(0, len(data), 3)]
    for _ in range(3000):
        flipped = bytearray(data)
        for _ in range(rng.randrange(1, 4)):
            flipped[rng.randrange(len(data))] = rng.randrange(256)
        damaged.append(bytes(flipped))
    read = 0
    for each in damaged:
        try:
            found = read_pytorch(each)
        except (sg.FormatError, sg.InputError):
            continue
        read += 1
        assert all(isinstance(a, np.ndarray) and a.nbytes < 100 * len(data) for a in found.values())
    assert read


@pytest.mark.parametrize("count", [300, pytest.param(5000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("layout", ["archive", "TorchScript"])
def test_mutated_pickles_are_read_or_refused(layout: str, count: int) -> None:
    """Bytes of the pickle changed, taken out and repeated, in an archive with right checksums."""
    held = tensor(storage("0", "Float", 2), 0, (2,), (1,))
    root = script({"conv": script({"weight": held}), "scale": held}) if layout == "TorchScript" else state({"w": held})
    more = {"m/constants.pkl": b""} if layout == "TorchScript" else {}
    rng = random.Random(count)
    read = 0
    for _ in range(count):
        changed = bytearray(root)
        for _ in range(rng.randrange(1, 4)):
            at = rng.randrange(len(changed))
            match rng.randrange(3):
                case 0:
                    changed[at] = rng.randrange(256)
                case 1:
                    del changed[at : at + rng.randrange(1, 9)]
                case _:
                    changed[at:at] = changed[at : at + rng.randrange(1, 20)]
        try:
            found = read_pytorch(archive(bytes(changed), {"0": np.ones(2, np.float32).tobytes()}, more))
        except (sg.FormatError, sg.InputError):
            continue
        read += 1
        assert all(a.nbytes < 10_000 for a in found.values())
    assert read


@pytest.mark.slow
def test_a_pickle_that_is_only_steps_ends() -> None:
    start = time.process_time()
    with pytest.raises(sg.FormatError, match="more than 4,000,000 steps"):
        read_pytorch(archive(b"N0" * 2_100_000, {}))
    assert time.process_time() - start < 60
