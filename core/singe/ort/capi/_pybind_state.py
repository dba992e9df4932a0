"""onnxruntime.capi._pybind_state: the names of onnxruntime_pybind11_state."""

from .onnxruntime_pybind11_state import *  # noqa: F403
