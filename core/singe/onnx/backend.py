"""ONNX's own backend interface (onnx.backend.base.Backend): `prepare(model, device)` gives something that runs.

The devices are "CPU" (NumPy) and the installed backends ("WASM", "WEBGPU"). The onnx package is not needed: a
ModelProto or NodeProto is read from its bytes. `prepare` makes a singe.Model. It is compiled once if its sizes can stay
open, and otherwise for each set of the shapes, or of the values, that decide the Graph.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from ..errors import CompileError, DeviceError, HostNeeded, ImportFailure, InputError, ShapeError, UnsupportedOp
from ..model.model import Model
from ..model.program import Program
from ..runtime.device import Device
from ..runtime.devices import DEFAULT
from ..runtime.devices import device as open_device
from ..runtime.registry import backend_factory, backend_names
from .importer import unsupported_ops
from .model import FORMAT, OnnxGraph, OnnxModel, OnnxType, OnnxValue, read_model
from .source import OnnxSource
from .tensors import Files

OPSET: Final = 25
"""The opset version of a node that is run without a model, unless `opset_version` is given."""


def _device(name: str) -> Device:
    known = {"CPU": DEFAULT} | {n.upper(): n for n in backend_names() if n != DEFAULT}
    kind, _, choice = name.partition(":")
    backend = known.get(kind.upper())
    if backend is None:
        raise DeviceError(f"there is no device {name!r}; use one of {', '.join(known)}")
    return open_device(f"{backend}:{choice.lower()}" if choice and backend_factory(backend).choices else backend)


def _read(argument: Any) -> OnnxModel:
    """A model from a ModelProto, a path, bytes, or an OnnxModel."""
    if isinstance(argument, OnnxModel):
        return argument
    return read_model(argument.SerializeToString() if hasattr(argument, "SerializeToString") else argument)


class BackendRep:
    """A model ready to run on a device."""

    def __init__(self, model: Model) -> None:
        self.model: Final = model
        self.report: Mapping[str, str] = {}
        """Where each op runs, with the reason if on the host.
        Empty before the first run if that depends on its inputs."""
        try:
            self.report = _report(model.program())
        except (CompileError, ImportFailure, ShapeError) as e:
            if isinstance(e, (UnsupportedOp, HostNeeded)) or not (model.inputs or model.source.objects):
                raise  # a run would fail in the same way

    def __repr__(self) -> str:
        return f"<BackendRep of {self.model!r}; ops: {len(self.report)}>"

    def run(self, inputs: Any, **_: Any) -> tuple[Any, ...]:
        """The results for inputs in the model's order, by name, or for the only one. Sequences are lists, maps dicts."""
        given = (inputs,) if isinstance(inputs, (np.ndarray, Mapping)) else tuple(inputs)
        model, arrays = self.model.bound(given, {})
        runnable = model.program({k: a.shape for k, a in arrays.items()}, arrays)
        self.report = _report(runnable)
        return tuple(model.results(runnable, runnable.run([arrays[p.name] for p in runnable.inputs])))


def _report(runnable: Program) -> dict[str, str]:
    """An op ↦ the device's name, or "host: " and the reason, or both if only some of its nodes run on the host."""
    facts, name = runnable.data.facts, runnable.device.name
    found = dict.fromkeys(facts["ops"], name)
    for op, why in facts.get("host", {}).items():
        there = "host" if max(why.values()) == facts["ops"].get(op) else f"{name}, host"
        found[op] = f"{there}: {'; '.join(why)}"
    return found


class OnnxBackend:
    """The interface `onnx.backend.base.Backend`."""

    @classmethod
    def is_compatible(cls, model: Any, device: str = "CPU", **_: Any) -> bool:
        """Whether Singe has every op of a model, and the device is there."""
        return cls.supports_device(device) and not unsupported_ops(_read(model))

    @classmethod
    def prepare(cls, model: Any, device: str = "CPU", **options: Any) -> BackendRep:
        """A model on a device, to run several times; fail_on_host=True refuses ops that would run on the host."""
        read = _read(model)
        fail_on_host = bool(options.get("fail_on_host", False))
        return BackendRep(Model(OnnxSource(read), _device(device), read.path, fail_on_host=fail_on_host))

    @classmethod
    def run_model(cls, model: Any, inputs: Any, device: str = "CPU", **options: Any) -> tuple[np.ndarray, ...]:
        """The results of a model for inputs, as `BackendRep.run` takes them."""
        return cls.prepare(model, device, **options).run(inputs)

    @classmethod
    def run_node(
        cls, node: Any, inputs: Any, device: str = "CPU", outputs_info: Any = None, **options: Any
    ) -> tuple[np.ndarray, ...]:
        """Run one NodeProto over arrays for its inputs, in order, without omitted ones."""
        op = FORMAT.decode(memoryview(node.SerializeToString()), "NodeProto", "<node>", Files(None))
        names = [name for name in op.inputs if name]
        arrays = [np.asarray(a) for a in inputs]
        if len(arrays) != len(names):
            raise InputError(f"{op.op_type}: got {len(arrays)} inputs, expected {', '.join(names) or 'none'}")
        given = tuple(
            OnnxValue(n, OnnxType("tensor", a.dtype.name, a.shape)) for n, a in zip(names, arrays, strict=True)
        )
        made = tuple(OnnxValue(name, None) for name in op.outputs if name)
        graph = OnnxGraph(op.name, (op,), {}, given, made, ())
        model = OnnxModel("<node>", 10, {"": int(options.get("opset_version", OPSET))}, graph, (), {})
        return cls.run_model(model, arrays, device)

    @classmethod
    def supports_device(cls, device: str) -> bool:
        """Whether a device is there: CPU, WASM, WEBGPU, or one of Singe's names."""
        try:
            _device(device)
        except DeviceError:
            return False
        return True


prepare = OnnxBackend.prepare
run_model = OnnxBackend.run_model
run_node = OnnxBackend.run_node
supports_device = OnnxBackend.supports_device
is_compatible = OnnxBackend.is_compatible
