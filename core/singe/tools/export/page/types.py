"""`model.d.ts` of a bundle: the names of this model's inputs and outputs, and of a task's labels, as types of TypeScript.

`load<BundleModel>("./digits/")` then knows what `run` takes and gives, and `task<Answer>("./detect/")` which labels there are.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from ....program.container import decode_dim
from ....shapes import show
from ....tasks.spec import ChainSpec, TaskSpec

TYPES: Final = "model.d.ts"
MOST_LABELS: Final = 2000
"""With more labels, a label is any string: compilers are slow at large unions."""
ARRAYS: Final[Mapping[str, str]] = {
    "float32": "Float32Array", "float64": "Float64Array", "int8": "Int8Array", "uint8": "Uint8Array", "int16": "Int16Array",
    "uint16": "Uint16Array", "int32": "Int32Array", "uint32": "Uint32Array", "int64": "BigInt64Array", "uint64": "BigUint64Array",
    "bool": "Uint8Array", "float16": "Uint16Array", "bfloat16": "Uint16Array",
}  # fmt: skip
"""A dtype ↦ the array of its outputs; those of others are a TypedArray."""

_MODEL: Final = """\
/** The types of {name}: `load<BundleModel>("…")`. */

import type {{ Input, Model, Output }} from "./singe.js";

export type Inputs = {inputs};

export type Outputs = {outputs};

export type BundleModel = Model<Inputs, Outputs>;
"""
_TASK: Final = """\
/** The types of {name}: `task<Answer>("…")`. */

import type {{ TaskAnswers }} from "./singe-tasks.js";

export type Label = {labels};

export type Answer = TaskAnswers<Label>[{kind}];
"""


def types_of(
    name: str,
    inputs: Sequence[Mapping[str, Any]],
    outputs: Sequence[Mapping[str, Any]],
    task: TaskSpec | ChainSpec | None,
) -> str:
    """The declaration. inputs, outputs: those of the manifest."""
    if task is not None:
        labels = list(dict.fromkeys(task.labels))
        union = " | ".join(map(_text, labels)) if 0 < len(labels) <= MOST_LABELS else "string"
        return _TASK.format(name=_comment(name), labels=union, kind=_text(task.kind))
    return _MODEL.format(
        name=_comment(name),
        inputs=_fields((port, "Input") for port in inputs),
        outputs=_fields((port, _output(port["dtype"])) for port in outputs),
    )


def _output(dtype: str) -> str:
    return f"Output<{ARRAYS[dtype]}>" if dtype in ARRAYS else "Output"


def _fields(ports: Iterable[tuple[Mapping[str, Any], str]]) -> str:
    lines = [f"  /** {_described(port)} */\n  {_property(port['name'])}: {kind};\n" for port, kind in ports]
    return f"{{\n{''.join(lines)}}}"


def _described(port: Mapping[str, Any]) -> str:
    return _comment(f"{port['dtype']}, {show([decode_dim(d) for d in port['shape']])}")


def _property(name: str) -> str:
    return name if name.isascii() and name.isidentifier() else _text(name)


def _text(value: str) -> str:
    return json.dumps(value, ensure_ascii=False)


def _comment(value: str) -> str:
    """Text that does not end a comment."""
    return re.sub(r"\s+", " ", value.replace("*/", "* /"))
