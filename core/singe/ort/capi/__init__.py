"""onnxruntime.capi: its modules, for programs that import their names from there."""

from . import _pybind_state as _pybind_state
from . import onnxruntime_inference_collection as onnxruntime_inference_collection
from . import onnxruntime_pybind11_state as onnxruntime_pybind11_state
from . import onnxruntime_validation as onnxruntime_validation
