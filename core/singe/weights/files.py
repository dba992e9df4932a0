"""`load_weights` and `read_weights`: the weights in a file of any format that Singe knows, which its bytes tell."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TypeAlias, TypeVar

from ..errors import FormatError, InputError, ShapeError
from ..files import mapped, reason
from ..files.places import local_file
from ..nn import Linear, Module, PackedLinear
from ..nn._module import joined
from ..nn._report import WeightsReport, compared
from ..tflite import is_tflite
from . import ctranslate2, gguf, hdf5, npz, pytorch, records, safetensors
from .archive import Archive, is_archive
from .stored import StoredArray, Weights, present

M = TypeVar("M", bound=Module)

MAX_INDEX: Final = 100_000_000
"""The most bytes of an index of shards."""


def load_weights(
    module: M,
    path: str | Path | bytes,
    strict: bool = True,
    key: str | None = None,
    rename: Mapping[str, str] | None = None,
    report: Callable[[WeightsReport], object] | None = None,
    packed: bool = False,
) -> M:
    """The module with the weights of a file, converted to its dtypes and devices; see `read_weights`.

    strict: names and shapes must be the same on both sides; otherwise what is the same is used, and the rest left out.
    rename: regular expressions, each of which is replaced in the file's names wherever it is found, in this order:
    {r"^model\\.": ""}. report: is called with a WeightsReport of what is the same and what is not; `report=print` shows it.
    packed: whether Linear layers whose weights the file quantises in blocks (GGUF: Q4_0 to Q8_0, Q4_K to Q6_K) become
    PackedLinear, with the weights as they are; those are a quarter to an eighth of float32's, and not trained.
    """
    name = "weights" if isinstance(path, bytes) else str(path)
    weights = read_weights(path, key)
    try:
        found = renamed(weights.stored, rename or {})
        told = compared(found, module.state_dict())
        if report is not None:
            report(told)
        state: dict[str, Any] = found if strict else {k: found[k] for k in told.loaded}
        if packed:
            module, state = _packed(module, state, set(told.loaded))
        return module.with_state(state, strict)
    except (InputError, ShapeError) as e:
        raise type(e)(f"{name}: {e}") from None


def _packed(module: M, state: Mapping[str, StoredArray], fits: Collection[str]) -> tuple[M, dict[str, Any]]:
    """The module with a PackedLinear for each Linear whose weights are packed in the file, and the state of that module."""
    new: dict[Module, Module] = {}
    held: dict[str, Any] = dict(state)
    for path, layer in module.named_modules():
        name = joined(path, "weight")
        matrix = state[name].packed if name in fits else None
        if type(layer) is not Linear or matrix is None:
            continue
        words, scale, zero, bits, block, order = matrix()
        if order is not None:  # a PackedLinear has its rows in the order of its inputs
            continue
        del held[name]
        outputs, inputs = layer.weight.shape
        made = PackedLinear(inputs, outputs, bits, block, layer.bias is not None, zero.ndim > 0)
        new[layer] = made.to(layer.weight.device)
        held |= {joined(path, k): present(a) for k, a in (("words", words), ("scale", scale), ("zero", zero))}
    return module.with_modules(new), held


def renamed(stored: Mapping[str, StoredArray], rules: Mapping[str, str]) -> dict[str, StoredArray]:
    """The arrays under the names that the rules make of theirs; two may not get one name."""
    found: dict[str, StoredArray] = {}
    origins: dict[str, str] = {}
    for name, array in stored.items():
        new = name
        for pattern, replacement in rules.items():
            try:
                new = re.sub(pattern, replacement, new)
            except (re.error, IndexError) as e:
                raise InputError(
                    f"rename: {pattern!r} to {replacement!r} is not a regular expression: {e}; write it as Python's re does"
                ) from None
        if new in found:
            raise InputError(
                f"rename: {name!r} and {origins[new]!r} both become {new!r}; give patterns that keep names apart"
            )
        found[new], origins[new] = array, name
    return found


def read_weights(path: str | Path | bytes, key: str | None = None) -> Weights:
    """The arrays in a file (or its bytes), which are read when they are asked for, and its metadata.

    Formats: safetensors, GGUF (quantised tensors become float32), NumPy's .npz, files of PyTorch (state dicts, and
    TorchScript for its weights), of Keras (HDF5 and .keras, for their weights) and of CTranslate2, records of Singe, and the index of a
    model in several such files. path: also a URL, or hf://owner/repo/file. key: selects one of several state dicts in a
    PyTorch file. Nothing in a file is executed.
    """
    if isinstance(path, bytes):
        return _read(memoryview(path), "weights", None, key)
    local = local_file(path)
    return _read(_mapped(local, str(path)), str(path), path, key)


def _beside(path: str | Path, name: str) -> memoryview:
    """The file of this relative name in the folder of another; it may have to be fetched."""
    try:
        local = local_file(path, beside=name)
    except FormatError as e:
        raise FormatError(f"{path}: the file {e}") from None
    return _mapped(local, f"{path}: {name}")


def _mapped(path: Path, name: str) -> memoryview:
    try:
        return mapped(path)
    except (OSError, ValueError) as e:
        raise InputError(f"cannot read the weights {name}: {reason(e)}") from e


def _read(data: memoryview, name: str, path: str | Path | None, key: str | None) -> Weights:
    """path: of a file, beside which others may be."""
    if (told := foreign(data)) is not None:
        raise FormatError(f"{name}: {told}")
    for _, fits, reader in FORMATS:
        if fits(data):
            return reader(data, name, key)
    if data[:1] == b"{":
        return _without_key(_read_shards(data, name, path), name, key)
    raise FormatError(
        f"{name}: not a file of weights that Singe reads (safetensors, GGUF, .npz, PyTorch's, Keras's, CTranslate2's, or a record of its own); "
        f"it starts with {bytes(data[:8])!r}"
    )


def _read_archive(data: memoryview, name: str, key: str | None) -> Weights:
    archive = Archive(data, name)
    if hdf5.KERAS in archive.entries:
        return _without_key(hdf5.read_keras(archive, name), name, key)
    if npz.is_npz(archive):
        return _without_key(npz.read_npz(archive, name), name, key)
    return _present(pytorch.read_pytorch(archive, name, key))


def _present(arrays: Mapping[str, Any]) -> Weights:
    return Weights({k: present(a) for k, a in arrays.items()})


def _without_key(weights: Weights, name: str, key: str | None) -> Weights:
    if key is not None:
        raise InputError(f"{name}: only files of PyTorch hold several state dicts, got key={key!r}; leave key= out")
    return weights


Reader: TypeAlias = Callable[[memoryview, str, "str | None"], Weights]
"""(bytes, name for errors, key of a state dict) ↦ weights."""


def _keyless(reader: Callable[[memoryview, str], Weights]) -> Reader:
    return lambda data, name, key: _without_key(reader(data, name), name, key)


_EXPORT: Final = "in Keras, model.export(path, format='onnx') writes a model that Singe runs"
_TAIL: Final = 1 << 16
"""How many of an archive's last bytes are searched for the names of its entries."""


def _is_keras(data: memoryview) -> bool:
    return is_archive(data) and hdf5.KERAS.encode() in bytes(data[-_TAIL:])


FORMATS: Final[Sequence[tuple[str, Callable[[memoryview], bool], Reader]]] = (
    (f"of a Keras model; {_EXPORT}", _is_keras, _read_archive),
    ("an archive as of NumPy's .npz or PyTorch", is_archive, _read_archive),
    ("PyTorch's older layout", pytorch.is_stream, lambda *given: _present(pytorch.read_pytorch(*given))),
    ("a record", records.is_container, _keyless(lambda *given: _present(records.read_weights(*given)))),
    (f"HDF5, as Keras writes weights; {_EXPORT}", hdf5.is_hdf5, _keyless(hdf5.read_hdf5)),
    (
        "GGUF; a language model is for singe.language.load(path), or `singe chat`",
        gguf.is_gguf,
        _keyless(gguf.read_gguf),
    ),
    ("CTranslate2", ctranslate2.is_ctranslate2, _keyless(ctranslate2.read_ctranslate2)),
    ("safetensors", safetensors.is_safetensors, _keyless(safetensors.read_safetensors)),
)
"""The formats: what each is called, whether bytes begin like it, and what reads them."""


def kind_of(data: memoryview) -> str | None:
    """The format that these bytes begin like, for errors of who expects something else."""
    return next((kind for kind, fits, _ in FORMATS if fits(data)), None)


_GIVEN: Final = (
    "expected a model or its weights: singe run MODEL --input FILE, or singe task KIND FILE, gives it to one"
)
FOREIGN: Final[Mapping[str, tuple[Callable[[memoryview], bool], str]]] = {
    "a pointer of Git LFS in place of the file": (
        lambda data: bytes(data[:23]) == b"version https://git-lfs",
        "fetch the file itself: git lfs pull",
    ),
    "a page of HTML": (
        lambda data: bytes(data[:256]).lstrip().lower().startswith((b"<!doctype html", b"<html")),
        "download the file itself, whose address is another than that of the page about it",
    ),
    "a picture": (
        lambda data: (
            bytes(data[:4]) in (b"\x89PNG", b"\xff\xd8\xff\xe0", b"\xff\xd8\xff\xe1", b"GIF8")
            or bytes(data[8:12]) == b"WEBP"
        ),
        _GIVEN,
    ),
    "a sound": (lambda data: bytes(data[:4]) in (b"fLaC", b"OggS") or bytes(data[8:12]) == b"WAVE", _GIVEN),
    "a TensorFlow Lite model": (
        lambda data: is_tflite(bytes(data[:8])),
        "singe.load(path) reads it, weights and all",
    ),
}
"""Files that hold no weights to read: what they are called, whether bytes begin like them, what to do with them."""


def is_text(data: memoryview) -> bool:
    """Whether bytes begin like text."""
    try:
        start = bytes(data[:64]).decode()
    except UnicodeDecodeError:
        return False
    return bool(start) and all(c.isprintable() or c.isspace() for c in start)


def foreign(data: memoryview) -> str | None:
    """For an error: which of these kinds the bytes are, and what to do; None if they are none of them."""
    return next((f"{kind}; {hint}" for kind, (fits, hint) in FOREIGN.items() if fits(data)), None)


def _read_shards(data: memoryview, name: str, path: str | Path | None) -> Weights:
    """The arrays of several files, which an index lists: {"weight_map": {name: file}}."""
    if len(data) > MAX_INDEX:
        raise FormatError(f"{name}: an index of {len(data)} bytes, at most {MAX_INDEX} are read")
    try:
        head = json.loads(bytes(data))
    except (ValueError, RecursionError) as e:
        raise FormatError(f"{name}: not JSON, and so no index of weights: {e or type(e).__name__}") from None
    places, metadata = (head.get(k, {}) for k in ("weight_map", "metadata"))
    sound = isinstance(places, dict) and isinstance(metadata, dict) and all(isinstance(v, str) for v in places.values())
    if not sound or not places:
        raise FormatError(f"{name}: JSON without a weight_map of names and files: no index of weights")
    if path is None:
        raise InputError(f"{name}: an index of weights in other files; give its path")
    shards = {
        file: _read(_beside(path, file), f"{name}: {file}", None, None).stored
        for file in dict.fromkeys(places.values())
    }
    for k, file in places.items():
        if k not in shards[file]:
            raise FormatError(f"{name}: {k!r:.80} is not in {file!r:.80}")
    return Weights({k: shards[file][k] for k, file in places.items()}, metadata)
