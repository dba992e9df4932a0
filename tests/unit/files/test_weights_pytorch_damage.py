"""PyTorch's files are never executed; damaged and hostile ones are refused in little time and memory."""

from __future__ import annotations

import pickle
import random
import time
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from damage import assert_read_or_refused, scrambled
from devices import slow
from pytorch_files import DATA, LAYOUTS, archive, call, exported, file_of, plain, script, state, storage, stream, tensor

import singe as sg
from singe import nn
from singe.weights.pytorch import GLOBALS, LEGACY, read_pytorch

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
    "tuples within tuples within …": (lambda: archive(b")" + b"\x85" * 300_000, {}), "nested more than 1000 deep"),
    "lists within lists as sizes": (
        lambda: one(call("torch._utils._rebuild_tensor_v2", storage("0", "Float", 4), plain(0), b")" + b"\x85" * 99_999, plain((1,)))),
        "size is a tuple",
    ),
    "an OrderedDict of numbers": (lambda: archive(call("collections.OrderedDict", plain([1, 2])), {}), "not made of different strings"),
    "an OrderedDict of a string": (lambda: archive(call("collections.OrderedDict", plain("ab")), {}), "something other than nothing or one list"),
    "a dict that holds itself": (lambda: archive(b"}q\x09" + plain("a") + b"h\x09s", {}), "a dict that holds itself"),
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


DEEP = ("tuples within tuples within …", "lists within lists as sizes")


@pytest.mark.parametrize("name", [*(x for x in REFUSED if x not in DEEP), *slow(*DEEP)])
def test_hostile_files_are_refused(name: str) -> None:
    make, words = REFUSED[name]
    data = make()
    start = time.process_time()
    with pytest.raises(sg.FormatError) as caught:
        sg.load_weights(nn.Linear(2, 2), data)
    assert words in str(caught.value)
    assert len(str(caught.value)) < 500
    assert time.process_time() - start < 5


@pytest.mark.slow
@LAYOUTS
def test_truncation_and_mutations(layout: str) -> None:
    """Whatever is damaged, the answer is a state dict or an error that says so."""
    data = file_of({"a.weight": np.ones((2, 3), np.float32), "b": np.array(3)}, layout)
    rng = random.Random(0)
    cut = (data[:end] for end in range(0, len(data), 3))
    changed = (scrambled(data, rng) for _ in range(3000))
    assert_read_or_refused((*cut, *changed), 100 * len(data), read_pytorch)


@pytest.mark.parametrize("count", [300, pytest.param(5000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("layout", ["archive", "TorchScript"])
def test_mutated_pickles_are_read_or_refused(layout: str, count: int) -> None:
    """The pickle is changed, in an archive with right checksums."""
    held = tensor(storage("0", "Float", 2), 0, (2,), (1,))
    root = script({"conv": script({"weight": held}), "scale": held}) if layout == "TorchScript" else state({"w": held})
    more = {"m/constants.pkl": b""} if layout == "TorchScript" else {}
    rng = random.Random(count)
    data = {"0": np.ones(2, np.float32).tobytes()}
    files = (archive(scrambled(root, rng), data, more) for _ in range(count))
    assert_read_or_refused(files, 10_000, read_pytorch)


@pytest.mark.slow
def test_a_pickle_that_is_only_steps_ends() -> None:
    start = time.process_time()
    with pytest.raises(sg.FormatError, match="more than 4,000,000 steps"):
        read_pytorch(archive(b"N0" * 2_100_000, {}))
    assert time.process_time() - start < 60
