"""Models whose Programs are kept from one process to the next (files/kept.py), so that a file that was compiled before is neither read
again nor compiled, and a Graph that was compiled before, whatever made it, is not compiled again.

What is kept is found by a hash of the file, or of all that a Graph says, of Singe's code, of the device's target and of the options. A file whose inputs or
outputs are lists, dicts or optionals is compiled in each process, and so is one for a target that does not say on what its code
depends. Blocks of weights are kept apart from the code, by their contents, so that Programs which share one keep it once.
"""

from __future__ import annotations

import json
import sys
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from ..compiler.options import Options
from ..compiler.target import Target, kept_as, kept_part
from ..dtypes import DType, contents
from ..errors import FormatError, InputError, SingeError, ValueNeeded
from ..files import digest_of, inside, sha256_of
from ..files.kept import MAX_ENTRY_BYTES, code_version, digest_as_kept, entry_key, keep_entry, keeps, recall_entry
from ..garbage import collector_resting
from ..lazy_names import LateModule
from ..program.block import SharedBlocks
from ..program.container import decode_dim, dtype_named, encode_dim
from ..program.format import pieces_without_weights, without_weights
from ..program.program import ProgramData
from ..runtime.debugging import looking
from ..runtime.device import Device
from ..shapes import Needed, Shape
from .arguments import TensorSpec
from .model import Model
from .program import Program

if TYPE_CHECKING:
    from ..compiler import compile as compiling
    from ..graph import Graph, Kind
    from .source import Source
else:
    compiling = LateModule("compiler.compile")

FileOrBytes = str | Path | bytes | memoryview
Values = Mapping[str, np.ndarray]


class KeptFile:
    """What is kept of a file, or of several that are one model, for one target and one set of options."""

    def __init__(self, key: str, digests: Mapping[Path, str], name: str) -> None:
        """digests: of the bytes of each file; none, if these were given."""
        self._key: Final = key
        self._digests: Final = digests
        self._path: Final = next(iter(digests), None)
        self._name: Final = name
        self._beside: Mapping[str, str] = {}  # the files beside it that it names ↦ the hash of each

    @staticmethod
    def of(
        path: FileOrBytes | Sequence[Path], digest: str | None, device: Device, name: str, *facts: Any
    ) -> KeptFile | None:
        """path: also those of several files. digest: of the bytes of the file, where it is known. facts: what the Programs depend on beside
        the files and the device, as data of JSON. None if nothing is to be kept."""
        target = device.target
        mark, packages = kept_as(target), _packages(target)
        if mark is None or packages is None or looking() or not keeps():
            return None
        whole = isinstance(path, (bytes, memoryview))
        paths = [] if whole else [Path(path)] if isinstance(path, (str, Path)) else path
        try:
            if (len(path) if whole else sum(p.stat().st_size for p in paths)) > MAX_ENTRY_BYTES:
                return None
            if digest:
                digests = [digest]
            else:
                digests = [sha256_of(path)] if whole else [digest_as_kept(p) for p in paths]
        except (OSError, ValueError):  # the reader of the file says why
            return None
        code = {package: code_version(package) for package in packages}
        key = entry_key(digests, code, np.__version__, target.name, mark, *facts)
        return KeptFile(key, dict(zip([p.absolute() for p in paths], digests, strict=False)), name)

    def part(self, *facts: Any) -> KeptFile:
        """What is kept of one of several Models that are made of the files. facts: what it depends on, as data of JSON."""
        return KeptFile(entry_key(self._key, *facts), self._digests, self._name)

    def signature(self) -> KeptSignature | None:
        """What is kept of its inputs and outputs, if the files beside it that it names are as they were."""
        found = recall_entry("model", self._key)
        if found is None:
            return None
        try:
            signature = KeptSignature(json.loads(bytes(found)))
        except (ValueError, TypeError, KeyError, AttributeError, SingeError):
            return None
        if not all(self._is_same(name, digest) for name, digest in signature.files.items()):
            return None
        self._beside = signature.files
        return signature

    def _is_same(self, name: str, digest: str) -> bool:
        try:
            return self._path is not None and digest_as_kept(inside(self._path.parent, name)) == digest
        except (OSError, ValueError, FormatError):
            return False

    def keep_signature(self, model: Model, files: Sequence[str]) -> None:
        """files: those beside the file that it names."""
        if self._path is not None:
            self._beside = {name: digest_of(inside(self._path.parent, name)) for name in files}
        record = signature_of(model) | {"files": self._beside}
        keep_entry("model", self._key, self._name, [json.dumps(record).encode()])

    def check(self) -> None:
        """Refuse a file that is not the one any more of which this is kept."""
        for path, digest in self._digests.items():
            if digest_of(path) != digest:
                raise InputError(f"{path}: the file has changed since it was loaded; load it again")

    def program(self, key: Any, blocks: SharedBlocks) -> ProgramData | None:
        """The Program that was kept under a key. blocks: of weights that other Programs hold, and then this one, too."""
        found = recall_entry("program", self._program_key(key))
        if found is None:
            return None
        try:
            return without_weights(found, self._name, partial(_recalled_blocks, blocks))
        except FormatError:
            return None

    def keep_program(self, key: Any, data: ProgramData, blocks: SharedBlocks) -> None:
        """blocks: that hold those of the Program."""
        text = f"{self._name} on {data.target}"

        def pieces() -> Iterator[Any]:
            held = {0: data.weights} | dict(data.shared)
            yield from pieces_without_weights(data, [_kept_block(blocks, k, block, text) for k, block in held.items()])

        keep_entry("program", self._program_key(key), text, pieces())

    def keep_refusal(self, key: Any, error: ValueNeeded) -> None:
        """Keep that there is no Program under a key."""
        record = json.dumps([str(error), list(error.inputs)])
        keep_entry("refusal", self._program_key(key), f"{self._name}: {error}", [record.encode()])

    def refusal(self, key: Any) -> ValueNeeded | None:
        """The error that was kept under a key."""
        found = recall_entry("refusal", self._program_key(key))
        if found is None:
            return None
        text, inputs = json.loads(bytes(found))
        return ValueNeeded(text, tuple(inputs))

    def _program_key(self, key: Any) -> str:
        return entry_key(self._key, self._beside, key)


def _kept_block(blocks: SharedBlocks, start: int, block: np.ndarray, text: str) -> list[Any]:
    """Keep a block of weights, if it is not kept yet; its start, digest and pieces, as data of JSON."""
    digest = blocks.digest(block)
    if recall_entry("weights", digest) is None:
        keep_entry("weights", digest, text, [block.data])
    return [start, digest, [[kind, key.hex(), at] for (kind, key), at in blocks.pieces(block).items()]]


def _recalled_blocks(blocks: SharedBlocks, records: Any) -> tuple[np.ndarray, dict[int, np.ndarray]]:
    """The blocks whose records `_kept_block` made; the first one is the Program's own."""
    found = dict[int, np.ndarray]()
    for start, digest, pieces in records:
        block = blocks.named(digest)
        if block is None:
            entry = recall_entry("weights", digest)
            if entry is None:
                raise ValueError("its weights are not kept any more")
            block = np.frombuffer(entry, np.uint8)
            blocks.name(block, digest)
            blocks.enter(block, {(kind, bytes.fromhex(key)): at for kind, key, at in pieces})
        found[start] = block
    return found.pop(0), found


class KeptSignature:
    """The inputs, outputs and states of a file, and what its Programs need beside open sizes, from data of JSON."""

    def __init__(self, record: Mapping[str, Any]) -> None:
        self.inputs: Final = tuple(map(_spec, record["inputs"]))
        self.states: Final = tuple(map(_spec, record["states"]))
        self.outputs: Final = tuple(map(_spec, record["outputs"]))
        self.needed: Final = Needed(dict(record["needed"]["sizes"]), dict(record["needed"]["inputs"]))
        self.files: Final[Mapping[str, str]] = dict(record["files"])


def signature_of(model: Model) -> dict[str, Any]:
    """The data of a KeptSignature, but for its files."""
    needed = model.needed
    return {
        "inputs": [*map(_spec_record, model.inputs)],
        "states": [*map(_spec_record, model.states)],
        "outputs": [*map(_spec_record, model.outputs)],
        "needed": {"sizes": dict(needed.sizes), "inputs": dict(needed.inputs)},
    }


class KeptSource:
    """The source of a file that was compiled before: it is read once a Graph is asked for."""

    objects: Mapping[str, Kind] = {}

    def __init__(self, signature: KeptSignature, make: Callable[[], Source]) -> None:
        self.inputs: tuple[TensorSpec, ...] = signature.inputs
        self.states: tuple[TensorSpec, ...] = signature.states
        self.output_names: tuple[str, ...] = tuple(o.name for o in signature.outputs)
        self.output_dtypes: tuple[DType, ...] = tuple(o.dtype for o in signature.outputs)
        self.output_shapes: tuple[Shape | None, ...] = tuple(o.shape for o in signature.outputs)
        self._signature: Final = signature
        self._make: Final = make
        self._made: Source | None = None

    def unread(self) -> KeptSource:
        """The same source, which holds nothing that this one has read."""
        return KeptSource(self._signature, self._make)

    def _read(self) -> Source:
        if self._made is None:
            self._made = self._make()
        return self._made

    def holding(self, objects: Mapping[str, Any]) -> Source:
        return self._read().holding(objects)

    def graph(self, sizes: Mapping[str, int], values: Values) -> Graph | Needed:
        return self._read().graph(sizes, values)

    def with_layers(self) -> tuple[Source, Mapping[str, str]]:
        return self._read().with_layers()


class KeptModel(Model):
    """A Model of a file whose Programs are kept."""

    def __init__(
        self,
        source: Source,
        device: Device,
        name: str,
        kept: KeptFile,
        signature: KeptSignature | None,
        files: Sequence[str],
        again: Callable[[], Source] | None = None,
        **options: Any,
    ) -> None:
        """signature: what was kept of the file; None: the Model is checked, and its signature kept. files: those beside the file that it
        names. again: makes the source anew, so that what was read for a Program is freed once that is kept; None: the source stays."""
        super().__init__(source, device, name, **options)
        self._again: Final = again
        self._kept: Final = kept
        self._files: Final = files
        if signature is not None:
            self._needed = self._needed_as_kept = signature.needed
        else:
            self.check()
            self._keep_signature()

    def _keep_signature(self) -> None:
        self._needed_as_kept: Needed | None = self.needed
        outputs = tuple(o.name for o in self.outputs)
        if outputs == self.source.output_names:  # lists and dicts are made of several outputs
            self._kept.keep_signature(self, self._files)

    def _key(self, sizes: Mapping[str, int], values: Values) -> Any:
        """What the Program for these sizes and values is kept under."""
        known = {name: [repr(contents(v)), v.shape] for name, v in values.items()}
        return [dict(sizes), known, [dict(s) for s in self.sizes.specialised(sizes)]]

    def _recalled(self, sizes: Mapping[str, int], values: Values) -> Program | None:
        if looking():
            return None
        data = self._kept.program(self._key(sizes, values), self._blocks)
        if data is None or data.target != self.device.target.name:
            return None
        again = _GraphAgain(weakref.ref(self.source), sizes, values)
        source, specialised = self.source, self.sizes.specialised(sizes)
        source = source.unread() if isinstance(source, KeptSource) else source
        whole = partial(_compiled_again, source, self.device.target, self.options, sizes, values, specialised)
        return Program(data, self.device, None, again, whole)

    def _met(self, sizes: Mapping[str, int], fixed: Mapping[str, int], values: Values) -> Program:
        key = [self._key(fixed, values), dict(sizes)]
        refused = None if looking() else self._kept.refusal(key)
        if refused is not None:
            raise refused
        try:
            return super()._met(sizes, fixed, values)
        except ValueNeeded as e:
            self._kept.keep_refusal(key, e)
            raise

    def _compiled(self, graph: Graph, sizes: Mapping[str, int], values: Values) -> Program:
        made = super()._compiled(graph, sizes, values)
        if not looking() and not graph.results:
            part = kept_part(self.device.target, made.data)
            self._kept.keep_program(self._key(sizes, values), part, self._blocks)
            if self._needed != self._needed_as_kept:
                self._keep_signature()
            signature = None if self._again is None else self._kept.signature()
            if signature is not None and self._again is not None:
                self.source = KeptSource(signature, self._again)
                return self._recalled(sizes, values) or made
        return made


def _compiled_again(
    source: Source,
    target: Target,
    options: Options,
    sizes: Mapping[str, int],
    values: Values,
    specialised: Sequence[Mapping[str, int]],
) -> ProgramData:
    """The whole of a Program of which a part was kept."""

    def graph(sizes: Mapping[str, int]) -> Graph:
        found = source.graph(sizes, values)
        if isinstance(found, Needed):
            raise found.error()
        return found

    own = [(s, graph({**sizes, **s})) for s in specialised]
    return compiling.compile_graph(graph(sizes), target, replace(options, specialised=own))


class _GraphAgain:
    """Calling it gives the Graph of a Program that was kept, for `sg.debug`; see Remade."""

    def __init__(self, source: Callable[[], Source | None], sizes: Mapping[str, int], values: Values) -> None:
        self._source: Final = source
        self._sizes: Final = sizes
        self._values: Final = values

    def __call__(self) -> Graph | None:
        source = self._source()
        found = None if source is None else source.graph(self._sizes, self._values)
        return None if isinstance(found, Needed) else found


@collector_resting()
def model_of_file(
    path: FileOrBytes,
    make: Callable[[], tuple[Source, Sequence[str]]],
    device: Device,
    name: str,
    facts: Sequence[Any],
    options: Options,
    digest: str | None = None,
) -> Model:
    """The Model of a file, which is checked as far as that does not depend on a run. make: reads the file; the source, and the names of the
    files beside it that it names. facts, digest: see KeptFile.of."""
    chosen: dict[str, Any] = {
        "fail_on_host": options.fail_on_host, "bounds": options.bounds, "donate": options.donate
    }  # fmt: skip
    kept = KeptFile.of(path, digest, device, name, *facts, repr(chosen))
    signature = None if kept is None else kept.signature()
    if kept is not None and signature is not None:
        return _recalled(kept, signature, lambda: make()[0], device, name, chosen)
    source, files = make()
    if kept is None or source.objects:
        model = Model(source, device, name, **chosen)
        model.check()
        return model
    return KeptModel(source, device, name, kept, None, files, **chosen)


@collector_resting()
def kept_model(kept: KeptFile, make: Callable[[], Source], device: Device, name: str, **options: Any) -> Model:
    """One of the Models that are made of the files of `kept`, which tells them apart. make: reads the files. options: of the Model."""
    signature = kept.signature()
    if signature is None:
        return KeptModel(make(), device, name, kept, None, (), _checking(kept, make), **options)
    return _recalled(kept, signature, make, device, name, options)


@collector_resting()
def kept_by_graph(model: Model) -> Model:
    """The same Model, for one that was just made of what files hold: of their Graphs and others, joined, or of a function of their
    weights. Its Programs are found by what its Graph says."""
    from ..graph.structure import constants  # noqa: PLC0415 (`import singe` pays for no Graphs)
    from ..weights.digest import graph_digest  # noqa: PLC0415
    from .source import GraphSource  # noqa: PLC0415

    source, o = model.source, model.options
    if type(source) is not GraphSource or not keeps():
        return model
    graph = source.graph({}, {})
    digest = graph_digest(graph) if sum(x.nbytes for x in constants(graph)) <= MAX_ENTRY_BYTES else None
    if digest is None:
        return model
    chosen: dict[str, Any] = {
        "activations": o.activations, "fail_on_host": o.fail_on_host, "bounds": o.bounds, "donate": o.donate
    }  # fmt: skip
    kept = KeptFile.of(b"", digest, model.device, model.name, "graph", repr(chosen))
    if kept is None:
        return model
    return KeptModel(source, model.device, model.name, kept, kept.signature(), (), **chosen)


def _recalled(
    kept: KeptFile,
    signature: KeptSignature,
    make: Callable[[], Source],
    device: Device,
    name: str,
    options: Mapping[str, Any],
) -> KeptModel:
    again = _checking(kept, make)
    return KeptModel(
        KeptSource(signature, again), device, name, kept, signature, tuple(signature.files), again, **options
    )


def _checking(kept: KeptFile, make: Callable[[], Source]) -> Callable[[], Source]:
    """Makes the source, of files that are still the same."""

    def again() -> Source:
        kept.check()
        return make()

    return again


def _packages(target: Target) -> list[str] | None:
    """The packages whose code decides what is compiled for a target; None if one is no folder, whose files would tell its version."""
    own = {c.__module__.partition(".")[0] for c in type(target).__mro__} - {"builtins", "typing"}
    found = sorted({"singe", *own})
    return found if all(hasattr(sys.modules[name], "__path__") for name in found) else None


def _spec_record(spec: TensorSpec) -> list[Any]:
    return [spec.name, spec.dtype.name, None if spec.shape is None else [encode_dim(d) for d in spec.shape]]


def _spec(record: Sequence[Any]) -> TensorSpec:
    name, kind, shape = record
    return TensorSpec(str(name), dtype_named(kind), None if shape is None else tuple(decode_dim(d) for d in shape))
