"""PyTorch's files are read correctly in both layouts, and so are those of TorchScript."""

from __future__ import annotations

import struct
import time
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
from pytorch_files import DATA, KINDS, LAYOUTS, archive, call, file_of, plain, script, state, storage, tensor

import singe as sg
from singe import nn
from singe.weights.pytorch import MAX_DEPTH, read_pytorch


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
        read_pytorch(archive(pairs + again * 6_000, {}))
    assert time.process_time() - start < 4


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
        sg.FormatError,
        match="unfolds to more than 4,000,000 values" if last == "a number" else "an object that holds itself",
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
