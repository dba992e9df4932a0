"""A Program on WebAssembly at one level of SIMD, and its kernel called part by part."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from singe.program.program import ProgramData
from singe.shapes import known


def at_level(program: ProgramData, level: str) -> ProgramData:
    """The Program with the kernels of one level only."""
    kernels = tuple(
        replace(k, variants=tuple(v for v in k.variants if v.entry.startswith(f"{level}:"))) for k in program.kernels
    )
    return replace(program, kernels=kernels)


def in_parts(program: ProgramData, level: str, x: np.ndarray, parts: int, signs: bool = False) -> np.ndarray:
    """The one kernel of a Program, called part by part, the last first. signs: relaxed instructions take all bytes with a
    sign, as on ARM."""
    import wasmtime  # noqa: PLC0415

    sizes = {"N": len(x)}
    (call,) = (g for g in program.groups if g.head >= 0)
    config = wasmtime.Config()
    config.wasm_relaxed_simd = True
    config.wasm_relaxed_simd_deterministic = signs
    engine = wasmtime.Engine(config)
    store = wasmtime.Store(engine)
    places: list[int] = []
    end = 256
    buffers = [program.buffers[i] for i in call.reads]
    for buffer in buffers:
        places.append(end)
        end += known(buffer.bytes, sizes) // 256 * 256 + 256
    memory = wasmtime.Memory(store, wasmtime.MemoryType(wasmtime.Limits(end // 65536 + 1, None)))
    for buffer, at in zip(buffers, places, strict=True):
        if buffer.place[0] == "weights":
            memory.write(store, program.view(buffer).tobytes(), at)
        elif buffer.place[0] == "input":
            memory.write(store, x.tobytes(), at)
    module = program.modules[level]
    assert isinstance(module, bytes)
    code = program.kernels[call.head]
    entry = next(v.entry for v in code.variants if v.entry.startswith(level)).split(":")[1]
    function: Any = wasmtime.Instance(store, wasmtime.Module(engine, module), [memory]).exports(store)[entry]
    for part in reversed(range(parts)):
        function(store, *places, *(known(d, sizes) for d in code.sizes), part, parts)
    at = places[[b.place[0] for b in buffers].index("output")]
    count = known(program.buffers[program.outputs[0]].bytes, sizes)
    return np.frombuffer(bytes(memory.read(store, at, at + count)), np.float32)
