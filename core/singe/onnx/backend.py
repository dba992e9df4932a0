"""ONNX's own backend interface (onnx.backend.base.Backend): `prepare(model, device)` gives something that runs.

The devices are "CPU" (NumPy), "WASM" and "WEBGPU". The onnx package is not needed: a ModelProto or NodeProto is taken by
its bytes. A model is compiled once where its dimensions may stay symbolic; where they decide how it is computed it is
compiled for the shapes of a run, and where an input's values do (the shape of a Reshape, when it is no constant) for
those values; what was compiled is kept.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from .._errors import CompileError, DeviceError, ImportFailure, InputError, ShapeError, UnsupportedOp
from ..backend import Executable
from ..compile import compile_graph
from ..device import Device
from ..device import device as open_device
from ..graph import Graph
from ..program import Host
from .importer import ValueNeeded, import_model, unsupported_ops
from .model import FORMAT, OnnxGraph, OnnxModel, OnnxType, OnnxValue, read_model
from .tensors import Files

DEVICES: Final = {"CPU": "numpy", "WASM": "wasm", "WEBGPU": "webgpu"}
"""ONNX's names of devices, and the backends that they are."""
OPSET: Final = 25
"""The version by which a node outside of a model is read, unless `opset_version` says otherwise."""
KEPT: Final = 64
"""How many compilations of one model are kept; the oldest goes first."""


def _device(name: str) -> Device:
    backend = DEVICES.get(name.partition(":")[0].upper())
    if backend is None:
        raise DeviceError(f"there is no device {name!r}; use one of {', '.join(DEVICES)}")
    return open_device(backend)


def _model(given: Any) -> OnnxModel:
    """A model from a ModelProto, a path, bytes, or what the reader gives."""
    if isinstance(given, OnnxModel):
        return given
    return read_model(given.SerializeToString() if hasattr(given, "SerializeToString") else given)


class BackendRep:
    """A model ready to run on a device."""

    def __init__(self, model: OnnxModel, device: Device, *, fail_on_host: bool = False) -> None:
        self.model: Final = model
        self.device: Final = device
        self._fail_on_host = fail_on_host
        self._inputs = {v.name: v for v in model.graph.inputs if v.name not in model.graph.initializers}
        self._open = any(v.shape is None or not all(isinstance(d, int) for d in v.shape) for v in self._inputs.values())
        self._compiled: dict[Any, tuple[Executable, tuple[str, ...]]] = {}
        self._known: tuple[str, ...] = ()  # inputs whose values decide shapes
        self._general = True
        self.report: dict[str, str] = {}
        """Where each op of the newest compilation runs: the device's name, or "host"."""
        try:
            self._executable({}, {})
        except ValueNeeded:
            self._general = False
        except UnsupportedOp:
            raise
        except (ImportFailure, ShapeError, CompileError):
            if not self._open:
                raise
            self._general = False

    def run(self, inputs: Any, **_: Any) -> tuple[np.ndarray, ...]:
        """The outputs for inputs in the model's order, by name, or for the only one."""
        arrays = self._named(inputs)
        executable, names = self._executable_for(arrays)
        program, backend = executable.program, self.device.backend
        program.sizes({n: arrays[n].shape for n in names})
        given = [backend.upload(arrays[program.buffers[i].name]) for i in program.inputs]
        return tuple(backend.download(a) for a in executable.run(given))

    def _named(self, inputs: Any) -> dict[str, np.ndarray]:
        names = tuple(self._inputs)
        if isinstance(inputs, np.ndarray):
            inputs = (inputs,)
        arrays = dict(inputs) if isinstance(inputs, Mapping) else dict(zip(names, inputs, strict=False))
        if arrays.keys() != self._inputs.keys() or len(inputs) != len(names):
            raise InputError(f"{self.model.path}: got {len(inputs)} inputs, expected {', '.join(names) or 'none'}")
        out = {}
        for name, value in arrays.items():
            array, kind = np.asarray(value), self._inputs[name].dtype
            if array.dtype.name != kind:
                raise InputError(f"{self.model.path}: input {name!r} is {array.dtype}, expected {kind}")
            out[name] = array
        return out

    def _executable_for(self, arrays: Mapping[str, np.ndarray]) -> tuple[Executable, tuple[str, ...]]:
        if self._general:
            return self._executable({}, {})
        while True:
            values = {n: arrays[n] for n in self._known}
            try:
                return self._executable({n: a.shape for n, a in arrays.items() if n not in values}, values)
            except ValueNeeded as e:  # each round fixes one more input, so this ends
                self._known = (*self._known, *(n for n in e.inputs if n not in self._known))

    def _executable(self, shapes: Mapping[str, tuple[int, ...]], values: Mapping[str, np.ndarray]) -> tuple[Executable, tuple[str, ...]]:
        key = tuple(sorted(shapes.items())), tuple((n, a.shape, a.tobytes()) for n, a in sorted(values.items()))
        if key not in self._compiled:
            graph = import_model(self.model, input_shapes=shapes, values=values)
            program = compile_graph(graph, self.device.backend.target)
            self.report = _report(graph, self.device, program.steps)
            on_host = [op for op, place in self.report.items() if place == "host"]
            if on_host and self._fail_on_host:
                raise DeviceError(f"{self.model.path}: {', '.join(on_host)} would run on the host, and fail_on_host is set")
            if len(self._compiled) >= KEPT:
                self._compiled.pop(next(iter(self._compiled)))[0].dispose()
            self._compiled[key] = self.device.backend.prepare(program), tuple(x.name for x in graph.inputs)
        return self._compiled[key]


def _report(graph: Graph, device: Device, steps: Sequence[Any]) -> dict[str, str]:
    hosted = {s.op for s in steps if isinstance(s, Host)} if device.backend.target is not None else frozenset()
    return {op: "host" if op in hosted else device.name for op in graph.ops()}


class Backend:
    """What `onnx.backend.base.Backend` asks for."""

    @classmethod
    def is_compatible(cls, model: Any, device: str = "CPU", **_: Any) -> bool:
        return cls.supports_device(device) and not unsupported_ops(_model(model))

    @classmethod
    def prepare(cls, model: Any, device: str = "CPU", **options: Any) -> BackendRep:
        return BackendRep(_model(model), _device(device), fail_on_host=bool(options.get("fail_on_host", False)))

    @classmethod
    def run_model(cls, model: Any, inputs: Any, device: str = "CPU", **options: Any) -> tuple[np.ndarray, ...]:
        return cls.prepare(model, device, **options).run(inputs)

    @classmethod
    def run_node(cls, node: Any, inputs: Any, device: str = "CPU", outputs_info: Any = None, **options: Any) -> tuple[np.ndarray, ...]:
        """One NodeProto over arrays: those of its inputs that are not left out, in order."""
        op = FORMAT.decode(memoryview(node.SerializeToString()), "NodeProto", "<node>", Files(None))
        names = [name for name in op.inputs if name]
        arrays = [np.asarray(a) for a in inputs]
        if len(arrays) != len(names):
            raise InputError(f"{op.op_type}: got {len(arrays)} inputs, expected {', '.join(names) or 'none'}")
        given = tuple(OnnxValue(n, OnnxType("tensor", a.dtype.name, a.shape)) for n, a in zip(names, arrays, strict=True))
        made = tuple(OnnxValue(name, None) for name in op.outputs if name)
        graph = OnnxGraph(op.name, (op,), {}, given, made, ())
        model = OnnxModel("<node>", 10, {"": int(options.get("opset_version", OPSET))}, graph, (), {})
        return cls.run_model(model, arrays, device)

    @classmethod
    def supports_device(cls, device: str) -> bool:
        try:
            _device(device)
        except DeviceError:
            return False
        return True


prepare = Backend.prepare
run_model = Backend.run_model
run_node = Backend.run_node
supports_device = Backend.supports_device
is_compatible = Backend.is_compatible
