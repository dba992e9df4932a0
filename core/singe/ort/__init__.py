"""The interface of onnxruntime's Python package, over Singe: `import singe.ort as ort`.

Programs that are written for onnxruntime run unchanged: `singe.ort.install()` makes their `import onnxruntime` find this module where
no onnxruntime is installed.
"""

from typing import Any as _Any
from typing import Final as _Final

from . import backend as backend
from . import capi as capi
from .binding import IOBinding as IOBinding
from .descriptions import ModelMetadata as ModelMetadata
from .descriptions import NodeArg as NodeArg
from .install import install as install
from .options import RunOptions as RunOptions
from .options import SessionOptions as SessionOptions
from .session import InferenceSession as InferenceSession
from .settings.arenas import OrtArenaCfg as OrtArenaCfg
from .settings.arenas import create_and_register_allocator as create_and_register_allocator
from .settings.arenas import create_and_register_allocator_v2 as create_and_register_allocator_v2
from .settings.enums import ExecutionMode as ExecutionMode
from .settings.enums import ExecutionOrder as ExecutionOrder
from .settings.enums import GraphOptimizationLevel as GraphOptimizationLevel
from .settings.enums import OrtAllocatorType as OrtAllocatorType
from .settings.enums import OrtDeviceVendorId as OrtDeviceVendorId
from .settings.enums import OrtMemType as OrtMemType
from .settings.enums import OrtSparseFormat as OrtSparseFormat
from .settings.environment import disable_telemetry_events as disable_telemetry_events
from .settings.environment import enable_telemetry_events as enable_telemetry_events
from .settings.environment import get_build_info as get_build_info
from .settings.environment import get_ep_devices as get_ep_devices
from .settings.environment import get_version_string as get_version_string
from .settings.environment import has_collective_ops as has_collective_ops
from .settings.environment import preload_dlls as preload_dlls
from .settings.environment import print_debug_info as print_debug_info
from .settings.environment import set_default_logger_severity as set_default_logger_severity
from .settings.environment import set_default_logger_verbosity as set_default_logger_verbosity
from .settings.environment import set_global_thread_pool_sizes as set_global_thread_pool_sizes
from .settings.environment import set_seed as set_seed
from .settings.providers import get_all_providers as get_all_providers
from .settings.providers import get_available_providers as get_available_providers
from .settings.providers import get_device as get_device
from .settings.stand_in import VERSION as _VERSION
from .settings.stand_in import write_wheel as write_wheel
from .values import OrtDevice as OrtDevice
from .values import OrtMemoryInfo as OrtMemoryInfo
from .values import OrtValue as OrtValue
from .values import copy_tensors as copy_tensors

__version__ = version = _VERSION
package_name = "onnxruntime"
cuda_version = ""

_LACKING: _Final = {
    "SparseTensor": "sparse tensors: give dense arrays, as in x.toarray()",
    "LoraAdapter": "adapters: merge them into the model's weights before",
    "AdapterFormat": "adapters: merge them into the model's weights before",
    "ModelCompiler": "compiled ONNX files: `singe compile MODEL -o FILE` compiles a model",
    "register_execution_provider_library": "plugins of onnxruntime; a package adds a device to Singe by the group singe.backends",
    "unregister_execution_provider_library": "plugins of onnxruntime; a package adds a device to Singe by the group singe.backends",
    "training": "training by onnxruntime: singe.train trains models",
}
"""Names of onnxruntime that there are not here ↦ what Singe lacks, and what to do."""


def __getattr__(name: str) -> _Any:
    if name in _LACKING:
        raise AttributeError(f"singe.ort has no {name}: Singe has no {_LACKING[name]}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}; onnxruntime {_VERSION} itself may have it")
