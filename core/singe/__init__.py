"""Singe: a neural-network runtime for the places where nothing is installed. The public names, and nothing else.

`import singe` imports next to nothing: a name comes with the module that defines it when it is first used.
"""

import typing as _typing

__version__ = "0.1.0"

from . import starting as _starting  # noqa: F401 (it hears Ctrl-C while a command imports what follows)

# isort: split
import sys as _sys
from importlib import import_module as _import_module

from .lazy_names import by_name as _by_name
from .lazy_names import resolved as _resolved
from .tracebacks import shortened as _shortened

_DEFINED: _typing.Final[_typing.Mapping[str, str]] = {
    "dtypes": (
        "DType bfloat16 bool_ complex64 complex128 dtype float4_e2m1fn float6_e2m3fn float6_e3m2fn float8_e4m3fn "
        "float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz float8_e8m0fnu float16 float32 float64 int2 int4 int8 int16 int32 "
        "int64 string uint2 uint4 uint8 uint16 uint32 uint64"
    ),
    "errors": (
        "CompileError DeviceError DeviceLost DTypeError FormatError ImportFailure InputError NonFinite OutOfMemory "
        "OutOfRange RemoteDisconnected ShapeError SingeError UnsupportedOp ValueNeeded"
    ),
    "gradients": "checkpoint grad value_and_grad",
    "model.compiling": "compile",
    "model.files": "load load_async load_module save",
    "model.model": "Model",
    "model.program": "Program",
    "model.session": "Session",
    "ops": "Wgsl",
    "runtime.debugging": "debug",
    "runtime.decorators": "Autodiff Fusion Router",
    "runtime.device": "Device",
    "runtime.devices": "Cuda CuPy Hip Jax Numpy Torch Wasm WebGpu device device_async devices",
    "runtime.memory.settings": "Memory",
    "runtime.memory.usage": "MemoryUse",
    "runtime.remote.client": "Remote",
    "tensors.custom_ops": "op",
    "tensors.functions.combining": (
        "atleast_1d atleast_2d atleast_3d block_diag broadcast_shapes broadcast_tensors can_cast cartesian_prod "
        "chain_matmul column_stack combinations dstack einsum is_tensor promote_types result_type std_mean tensordot "
        "trapezoid trapz tril_indices triu_indices unravel_index var_mean"
    ),
    "tensors.functions.creation": (
        "arange as_tensor asarray cat concat concatenate empty empty_like eye from_dlpack from_numpy full full_like "
        "hstack linspace logspace meshgrid ones ones_like row_stack stack tensor vstack where zeros zeros_like"
    ),
    "tensors.functions.random": "normal",
    "tensors.functions.window_functions": "bartlett_window blackman_window hamming_window hann_window kaiser_window",
    "tensors.gradients": "Gradients",
    "tensors.named.named_tensor": "NamedTensor",
    "tensors.tensor": "Tensor",
    "tools.export.bundle": "Bundle export",
    "tools.export.freestanding": "export_freestanding",
    "tasks.picture.spec": "PictureSpec",
    "tasks.task": "task",
    "weights": "Weights WeightsReport load_weights read_weights",
}  # fmt: skip
"""A module ↦ the public names that it defines."""
_SUBMODULES = (
    "array_api",
    "cluster",
    "data",
    "fft",
    "host",
    "language",
    "linalg",
    "metrics",
    "nn",
    "onnx",
    "optim",
    "ort",
    "random",
    "remote",
    "tasks",
    "train",
    "zoo",
)
_RANDOM = (
    "manual_seed", "multinomial", "poisson", "rand", "rand_like", "randint", "randint_like", "randn", "randn_like", "randperm",
)  # fmt: skip
"""Functions of `random` that PyTorch has at the top, too."""
_SHORT = {
    "bool": "bool", "double": "float64", "float": "float32", "half": "float16", "int": "int32", "long": "int64", "short": "int16",
}  # fmt: skip
"""PyTorch's other names of dtypes."""


_MODULES = _by_name(_DEFINED)

__all__ = ["__version__", "nn"]  # pyright: ignore[reportUnsupportedDunderAll]
__all__ += list(_MODULES)  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> _typing.Any:
    """A name of another module, a function of _RANDOM, a dtype of _SHORT, or a method of Tensor as a function: `singe.topk(x, 3)`."""
    if name in _SUBMODULES:
        return _import_module(f"singe.{name}")
    if name in _MODULES:
        found = globals()[name] = _shortened(_resolved(_MODULES[name], name))
        return found
    if name in _RANDOM:
        return getattr(_import_module("singe.random"), name)
    if name in _SHORT:
        return _import_module("singe.dtypes").dtype(_SHORT[name])
    tensor = None if name.startswith("_") else _import_module("singe.tensors.tensor").Tensor
    if not callable(getattr(tensor, name, None)):
        raise _import_module("singe.hints").no_attribute(__name__, name)
    return getattr(tensor, name)


def _named() -> list[str]:
    """The names that are listed here."""
    return [*__all__, *(name for name in _SUBMODULES if name not in __all__), *_RANDOM, *_SHORT]


def _functions() -> list[str]:
    """The methods of Tensor that are functions here."""
    from .tensors.tensor import Tensor  # noqa: PLC0415

    own = {*_named()}
    return [n for n in dir(Tensor) if n[0] != "_" and n not in own and callable(getattr(Tensor, n))]


def __dir__() -> list[str]:
    """The public names only: Python also puts every submodule that was imported here."""
    return [*_named(), *_functions()]


if _sys.platform == "emscripten":
    from .page_seam import offer as _offer

    _offer()
