"""Models that were compiled before: of a Program's file, or of a bundle."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NoReturn

import numpy as np

from ..errors import DeviceError, InputError
from ..program.bundle_reader import read_bundled, read_manifest
from ..program.program import ProgramData
from ..runtime.device import Device
from ..runtime.devices import device as open_device
from ..runtime.devices import device_for
from .arguments import TensorSpec
from .model import Model
from .program import Program

if TYPE_CHECKING:
    from ..graph import Kind


class CompiledSource:
    """What a Program says of its model. It has no Graph."""

    def __init__(self, data: ProgramData, name: str) -> None:
        def specs(numbers: Sequence[int]) -> tuple[TensorSpec, ...]:
            return tuple(TensorSpec(b.name, b.dtype, b.shape) for b in (data.buffers[i] for i in numbers))

        self.inputs = specs(data.inputs)
        self.states = specs([s.buffer for s in data.states])
        outputs = specs(data.outputs)
        self.output_names = tuple(x.name for x in outputs)
        self.output_dtypes = tuple(x.dtype for x in outputs)
        self.output_shapes = tuple(x.shape for x in outputs)
        self.objects: Mapping[str, Kind] = {}
        self._name = name

    def holding(self, objects: Mapping[str, Any]) -> CompiledSource:
        return self

    def graph(self, sizes: Mapping[str, int], values: Mapping[str, np.ndarray]) -> NoReturn:
        raise InputError(
            f"{self._name} is compiled: it runs, and has no Graph that could be compiled, saved or exported again; load the "
            "file of which it was made"
        )

    def with_layers(self) -> NoReturn:
        return self.graph({}, {})


class CompiledModel(Model):
    """A Model of one Program, for all sizes that this takes."""

    def __init__(self, data: ProgramData, on: Device, name: str) -> None:
        super().__init__(CompiledSource(data, name), on, name, bounds=data.bounds)
        self._compiled_before: Final = Program(data, on)

    def program(
        self, shapes: Mapping[str, Sequence[int]] | None = None, values: Mapping[str, np.ndarray] | None = None
    ) -> Program:
        if shapes is not None:
            self._sizes(shapes)
        return self._compiled_before

    def _anew(self) -> Model:
        """Nothing makes its Program again: it has no layers."""
        return self

    def specialise(self, **sizes: int) -> None:
        self.graph()


def of_program(data: ProgramData, device: str | Device, name: str) -> CompiledModel:
    """The Model of a Program, on a device that runs its target ("auto": the most preferred one)."""
    on = device_for(data.target) if device == "auto" else open_device(device)
    if on.target.name != data.target:
        raise DeviceError(
            f"{name} was compiled for {data.target!r}, and {on!r} runs {on.target.name!r}; compile it again for this device"
        )
    return CompiledModel(data, on, name)


def of_bundle(folder: Path, device: str | Device, name: str) -> CompiledModel:
    """The Model of a bundle: of its first target that a device here runs, or that the given device runs."""
    manifest = read_manifest(folder)
    on = None if device == "auto" else open_device(device)
    targets = {str(key): str(entry["program"]["target"]) for key, entry in manifest["targets"].items()}
    refused: list[str] = []
    for key, target in targets.items():
        try:
            chosen = device_for(target) if on is None else on
        except DeviceError as e:
            refused.append(str(e))
            continue
        if chosen.target.name == target:
            return CompiledModel(read_bundled(folder, manifest, key), chosen, str(manifest.get("name") or name))
    raise DeviceError(
        f"{folder}: the bundle is for {', '.join(targets)}, "
        + (f"not for {on!r}; load the model's own file there" if on is not None else "; ".join(refused))
    )
