"""onnxruntime.capi.onnxruntime_inference_collection: sessions, bindings and values."""

from ..binding import IOBinding
from ..session import InferenceSession
from ..settings.enums import OrtDeviceVendorId
from ..values import OrtDevice, OrtValue, copy_tensors

Session = InferenceSession

__all__ = [
    "IOBinding",
    "InferenceSession",
    "OrtDevice",
    "OrtDeviceVendorId",
    "OrtValue",
    "Session",
    "copy_tensors",
]
