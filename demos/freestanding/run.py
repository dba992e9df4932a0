"""Run a freestanding module in wasmtime: python run.py model.wasm. No part of Singe is needed."""

import json
import sys
from typing import Any

import numpy as np
import wasmtime

store = wasmtime.Store()
module = wasmtime.Module.from_file(store.engine, sys.argv[1])
exports: Any = wasmtime.Instance(store, module, []).exports(store)
memory = exports["memory"]

text = bytes(memory.read(store, exports["metadata"](store))).partition(b"\0")[0]
about = json.loads(text)
for k, spec in enumerate(about["inputs"]):
    array = np.full(spec["shape"], 0.5, spec["dtype"])
    memory.write(store, array.tobytes(), exports["input"](store, k))
error = exports["run"](store)
if error:
    sys.exit(about["errors"][error])
for k, spec in enumerate(about["outputs"]):
    at = exports["output"](store, k)
    array = np.frombuffer(memory.read(store, at, at + spec["bytes"]), spec["dtype"]).reshape(spec["shape"])
    print(spec["name"], *array.ravel())
