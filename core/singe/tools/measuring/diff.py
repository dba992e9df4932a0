"""`singe diff`: compares the values in a model, layer by layer, on several devices, with those of a reference.

The reference is the numpy device, or onnxruntime. A layer is a value that a node of the file (or of a record's graph)
computes. Layers become outputs, which keeps them from being fused away; the model as it is gets compared too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeAlias

import numpy as np

from ...dtypes import plain
from ...late_dataclass import dataclass
from ...model.model import Model
from ...report import LEFT, RIGHT, fields, table
from ...runtime.device import Device
from ...shapes import show

Arrays: TypeAlias = Mapping[str, np.ndarray]
SHOWN: Final = 10
"""How many of the layers that differ are shown."""


@dataclass(frozen=True)
class LayerError:
    """A value that was compared: the op that computes it, and the largest error, relative to the largest element."""

    name: str
    op: str
    shape: tuple[int, ...]
    error: float


@dataclass(frozen=True)
class Comparison:
    """A device's outputs in the model as it is, and all of its layers, in the order in which they are computed."""

    device: str
    outputs: Sequence[LayerError]
    layers: Sequence[LayerError]
    tolerance: float

    @property
    def differing(self) -> list[LayerError]:
        return [x for x in (*self.layers, *self.outputs) if x.error > self.tolerance]


def relative_error(values: np.ndarray, wanted: np.ndarray) -> float:
    """The largest difference over the largest finite element of `wanted`; infinite if shapes differ, or where only one
    is NaN or both are different infinities. Other values than numbers: the fraction that differs."""
    if values.shape != wanted.shape or values.dtype != wanted.dtype:
        return np.inf
    if not values.size:
        return 0.0
    values, wanted = plain(values), plain(wanted)
    if values.dtype.kind not in "fciu":
        return float(np.mean(values != wanted))
    kind = np.complex128 if values.dtype.kind == "c" else np.float64
    a, b = values.astype(kind), wanted.astype(kind)
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    if not np.all(same | (np.isfinite(a) & np.isfinite(b))):
        return np.inf
    apart = np.abs(np.where(same, 0, a) - np.where(same, 0, b)).max()
    largest = np.abs(np.where(np.isfinite(b), b, 0)).max()
    return float(apart / largest) if largest else float(apart)


def compare(
    model: Model, devices: Sequence[Device], arrays: Arrays, tolerance: float,
    reference: Callable[[Sequence[str]], Arrays] | None = None,
    progress: Callable[[str], None] = lambda _: None,
) -> list[Comparison]:  # fmt: skip
    """Compare the model on each device with the reference: a function that gives the values with some names, or None
    for the model on the device that it is on."""
    source, ops = model.source.with_layers()
    layered = Model(source, model.device, model.name)
    progress("the reference")
    if reference is None:
        wanted = _values(layered, arrays)
        outputs = _values(model, arrays)
    else:
        wanted = reference(source.output_names)
        outputs = wanted
    found = []
    for device in devices:
        progress(device.name)
        whole = _values(model.on(device, model.options), arrays)
        each = _values(layered.on(device, layered.options), arrays)
        found.append(Comparison(device.name, _compared(whole, outputs, ops), _compared(each, wanted, ops), tolerance))
    return found


def _values(model: Model, arrays: Arrays) -> dict[str, np.ndarray]:
    """All outputs by name."""
    program = model.program({k: a.shape for k, a in arrays.items()}, arrays)
    found = program.run([arrays[p.name] for p in program.inputs])
    return dict(zip((p.name for p in program.outputs), found, strict=True))


def _compared(values: Arrays, wanted: Arrays, ops: Mapping[str, str]) -> list[LayerError]:
    return [LayerError(k, ops.get(k, ""), wanted[k].shape, relative_error(a, wanted[k])) for k, a in values.items()]


def describe(comparisons: Sequence[Comparison], reference: str) -> str:
    """For each device the largest errors, then the first layers beyond the tolerance."""
    columns = [
        ("device", LEFT),
        ("layers", RIGHT),
        ("worst layer", RIGHT),
        ("worst output", RIGHT),
        ("differing", RIGHT),
    ]
    rows = [
        (c.device, len(c.layers), _worst(c.layers), _worst(c.outputs), sum(x.error > c.tolerance for x in c.layers))
        for c in comparisons
    ]
    parts = [
        fields([("against", reference), ("tolerance", f"{comparisons[0].tolerance:g} of a layer's largest element")])
    ]
    parts.append(table(columns, rows))
    for c in comparisons:
        if c.differing:
            parts.append(_differing(c))
    return "\n\n".join(parts)


def _worst(layers: Sequence[LayerError]) -> str:
    return f"{max((x.error for x in layers), default=0.0):.1e}"


def _differing(c: Comparison) -> str:
    """The first layers that differ, with their ops."""
    first = c.differing
    rows = [(x.name, x.op, show(x.shape), f"{x.error:.1e}") for x in first[:SHOWN]]
    more = f"\n… and {len(first) - SHOWN} more" if len(first) > SHOWN else ""
    columns = [(f"first to differ on {c.device}", LEFT), ("op", LEFT), ("shape", LEFT), ("error", RIGHT)]
    return table(columns, rows) + more
