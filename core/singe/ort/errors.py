"""The exceptions of onnxruntime by their names. A message begins as onnxruntime's do, with a number and a name, for programs that
read these; what follows says what was given, what was expected, and what to do.

Each is a SingeError too. `translated` makes one of an error of Singe.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import ClassVar, Final

from ..errors import (
    CompileError,
    DeviceError,
    DTypeError,
    FormatError,
    ImportFailure,
    InputError,
    NonFinite,
    OutOfMemory,
    OutOfRange,
    ShapeError,
    SingeError,
    UnsupportedOp,
)


class OrtError(SingeError):
    """What all exceptions of onnxruntime's own have in common here; onnxruntime has no such class."""

    code: ClassVar[int] = 1
    label: ClassVar[str] = "FAIL"

    def __str__(self) -> str:
        return f"[ONNXRuntimeError] : {self.code} : {self.label} : {super().__str__()}"


class Fail(OrtError):
    """A run or a model that failed for a reason that has no class of its own."""


class InvalidArgument(OrtError):
    """An input, a name or an option that cannot be used."""

    code, label = 2, "INVALID_ARGUMENT"


class NoSuchFile(OrtError):
    """A model's file that is not there."""

    code, label = 3, "NO_SUCHFILE"


class NoModel(OrtError):
    """A session that has no model."""

    code, label = 4, "NO_MODEL"


class EngineError(OrtError):
    """A failure of what computes."""

    code, label = 5, "ENGINE_ERROR"


class RuntimeException(OrtError):
    """A failure in the middle of a run."""

    code, label = 6, "RUNTIME_EXCEPTION"


class InvalidProtobuf(OrtError):
    """A file or bytes that are no ONNX model."""

    code, label = 7, "INVALID_PROTOBUF"


class ModelLoaded(OrtError):
    """A session that has a model already."""

    code, label = 8, "MODEL_LOADED"


class NotImplemented(OrtError):
    """What Singe does not have: an op, or a part of onnxruntime."""

    code, label = 9, "NOT_IMPLEMENTED"


class InvalidGraph(OrtError):
    """A model whose nodes do not fit together."""

    code, label = 10, "INVALID_GRAPH"


class EPFail(OrtError):
    """A device that is missing or fails."""

    code, label = 11, "EP_FAIL"


class ModelLoadCanceled(OrtError):
    """Loading that was cancelled."""

    code, label = 12, "MODEL_LOAD_CANCELED"


class ModelRequiresCompilation(OrtError):
    """A model that must be compiled before."""

    code, label = 13, "MODEL_REQUIRES_COMPILATION"


class NotFound(OrtError):
    """Something that is not there."""

    code, label = 14, "NOT_FOUND"


class DeviceReset(OrtError):
    """A device that was reset while it was used."""

    code, label = 15, "DEVICE_RESET"


class ValueKindError(SingeError, RuntimeError):
    """A Python object that onnxruntime refuses with a plain RuntimeError."""


_LOADING: Final[Mapping[type[SingeError], type[OrtError]]] = {
    ImportFailure: InvalidGraph,
    FormatError: InvalidProtobuf,
    InputError: InvalidArgument,
    OutOfMemory: RuntimeException,
    DeviceError: EPFail,
    CompileError: NotImplemented,
}
"""An error of Singe while a model is loaded ↦ the exception; of several that fit, the first."""
_RUNNING: Final[Mapping[type[SingeError], type[OrtError]]] = {
    UnsupportedOp: NotImplemented,
    OutOfRange: InvalidArgument,
    InputError: InvalidArgument,
    OutOfMemory: RuntimeException,
    DeviceError: EPFail,
    CompileError: NotImplemented,
    NonFinite: RuntimeException,
}
"""The same while it runs. All others are a Fail."""


@contextmanager
def translated(loading: bool = False) -> Iterator[None]:
    """Errors of Singe within become exceptions of onnxruntime."""
    try:
        yield
    except (OrtError, ValueKindError):
        raise
    except UnsupportedOp as e:
        raise _lacking(e)(str(e)) from e
    except SingeError as e:
        if any(isinstance(cause, (ShapeError, DTypeError)) for cause in _causes(e)):  # nodes that do not fit together
            raise Fail(str(e)) from e
        table = _LOADING if loading else _RUNNING
        raise next((there for here, there in table.items() if isinstance(e, here)), Fail)(str(e)) from e


def _causes(error: BaseException) -> Iterator[BaseException]:
    while error.__cause__ is not None:
        error = error.__cause__
        yield error


def _lacking(error: UnsupportedOp) -> type[OrtError]:
    """onnxruntime calls an op that ONNX does not have an invalid graph, and one of an unknown domain a failure."""
    domains = {op.rpartition(".")[0] for op in error.ops}
    if any(d and d not in ("com.microsoft", "ai.onnx.ml", "ai.onnx.preview.training") for d in domains):
        return Fail
    return NotImplemented if domains - {""} else InvalidGraph
