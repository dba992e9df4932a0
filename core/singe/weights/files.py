"""`load_weights` and `read_weights`: the weights in a file of any format that Singe knows, which its bytes tell."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar

from ..errors import FormatError, InputError, ShapeError
from ..nn import Module
from ..runtime.download import local_file
from ..runtime.files import mapped, reason
from ..shapes import show
from . import gguf, npz, pytorch, records, safetensors
from .archive import ZIP, Archive
from .stored import StoredArray, Weights, present

M = TypeVar("M", bound=Module)

MAX_INDEX: Final = 100_000_000
"""The most bytes of an index of shards."""
SHOWN: Final = 12
"""The most names of a kind that a report prints."""


@dataclass(frozen=True)
class WeightsReport:
    """What `load_weights` found: the names in the module and in the file, after renaming; print it to read it."""

    loaded: tuple[str, ...]
    missing: tuple[str, ...]
    """In the module, and not in the file."""
    left_over: tuple[str, ...]
    """In the file, and not in the module."""
    misshapen: Mapping[str, tuple[Any, Any]]
    """In both, but of different shapes: name ↦ (the file's, the module's)."""

    def __str__(self) -> str:
        misfits = [f"{k} is {show(given)}, expected {show(own)}" for k, (given, own) in self.misshapen.items()]
        kinds = {"missing": self.missing, "left over": self.left_over, "of another shape": misfits}
        lines = [f"{what}: {len(names)}{_listed(names)}" for what, names in kinds.items() if names]
        return "\n".join(
            [f"loaded: {len(self.loaded)} of {len(self.loaded) + len(self.missing) + len(misfits)}", *lines]
        )


def _listed(names: Any) -> str:
    shown = "".join(f"\n  {name}" for name in names[:SHOWN])
    return f"{shown}\n  and {len(names) - SHOWN} more" if len(names) > SHOWN else shown


def load_weights(
    module: M,
    path: str | Path | bytes,
    strict: bool = True,
    key: str | None = None,
    rename: Mapping[str, str] | None = None,
    report: Callable[[WeightsReport], object] | None = None,
) -> M:
    """The module with the weights of a file, converted to its dtypes and devices; see `read_weights`.

    strict: names and shapes must be the same on both sides; otherwise what is the same is used, and the rest left out.
    rename: regular expressions, each of which is replaced in the file's names wherever it is found, in this order:
    {r"^model\\.": ""}. report: is called with a WeightsReport of what is the same and what is not; `report=print` shows it.
    """
    name = "weights" if isinstance(path, bytes) else str(path)
    weights = read_weights(path, key)
    own = {k: t.shape for k, t in module.state_dict().items()}
    try:
        found = renamed(weights.stored, rename or {})
        told = compared(found, own)
        if report is not None:
            report(told)
        return module.with_state(found if strict else {k: found[k] for k in told.loaded}, strict)
    except (InputError, ShapeError) as e:
        raise type(e)(f"{name}: {e}") from None


def compared(found: Mapping[str, StoredArray], own: Mapping[str, Any]) -> WeightsReport:
    """What of a file fits tensors of these shapes."""
    misshapen = {k: (found[k].shape, shape) for k, shape in own.items() if k in found and found[k].shape != shape}
    return WeightsReport(
        tuple(k for k in own if k in found and k not in misshapen),
        tuple(k for k in own if k not in found),
        tuple(k for k in found if k not in own),
        misshapen,
    )


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
                raise InputError(f"rename: {pattern!r} to {replacement!r} is not a regular expression: {e}") from None
        if new in found:
            raise InputError(f"rename: {name!r} and {origins[new]!r} both become {new!r}")
        found[new], origins[new] = array, name
    return found


def read_weights(path: str | Path | bytes, key: str | None = None) -> Weights:
    """The arrays in a file (or its bytes), which are read when they are asked for, and its metadata.

    Formats: safetensors, GGUF (quantised tensors become float32), NumPy's .npz, files of PyTorch (state dicts, and
    TorchScript for its weights), records of Singe, and the index of a model in several such files. path: also a URL, or
    hf://owner/repo/file. key: selects one of several state dicts in a PyTorch file. Nothing in a file is executed.
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
    if data[: len(ZIP)] == ZIP:
        archive = Archive(data, name, compressed=True)
        if npz.is_npz(archive):
            return _without_key(npz.read_npz(archive, name), name, key)
    if data[: len(ZIP)] == ZIP or pytorch.is_stream(data):
        return _present(pytorch.read_pytorch(data, name, key))
    for fits, reader in READERS:
        if fits(data):
            return _without_key(reader(data, name), name, key)
    if data[:1] == b"{":
        return _without_key(_read_shards(data, name, path), name, key)
    raise FormatError(
        f"{name}: not a file of weights that Singe reads (safetensors, GGUF, .npz, PyTorch's, or a record of its own); "
        f"it starts with {bytes(data[:8])!r}"
    )


def _present(arrays: Mapping[str, Any]) -> Weights:
    return Weights({k: present(a) for k, a in arrays.items()})


READERS: Final = (
    (records.is_container, lambda data, name: _present(records.read_weights(data, name))),
    (gguf.is_gguf, gguf.read_gguf),
    (safetensors.is_safetensors, safetensors.read_safetensors),
)
"""Whether a file is of a format, and what reads it; archives and streams of PyTorch's come before these."""


KINDS: Final = (
    ("safetensors", safetensors.is_safetensors),
    ("GGUF", gguf.is_gguf),
    ("an archive as of NumPy's .npz or PyTorch", lambda data: data[: len(ZIP)] == ZIP),
    ("PyTorch's older layout", pytorch.is_stream),
)
"""Formats that have weights alone, and whether bytes begin like one."""


def kind_of(data: memoryview) -> str | None:
    """The format of KINDS that these bytes begin like, for errors of who expects something else."""
    return next((kind for kind, fits in KINDS if fits(data)), None)


def _without_key(weights: Weights, name: str, key: str | None) -> Weights:
    if key is not None:
        raise InputError(f"{name}: only files of PyTorch hold several state dicts, got key={key!r}")
    return weights


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
