"""onnxruntime.backend: ONNX's interface for backends, over sessions. `prepare(model, "CPU").run(inputs)`."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, Final, Protocol

import numpy as np

from ..errors import InputError
from .options import RunOptions, SessionOptions
from .session import InferenceSession
from .settings.providers import CPU

_PROVIDERS: Final = {"CPU": CPU, "CUDA": "CUDAExecutionProvider", "GPU": "CUDAExecutionProvider"}


class _Serializable(Protocol):
    def SerializeToString(self) -> bytes: ...


class OnnxRuntimeBackendRep:
    """A session that is run with inputs in the order of its model."""

    def __init__(self, session: InferenceSession) -> None:
        self._session: Final = session

    def run(self, inputs: Any, **kwargs: Any) -> list[Any]:
        """The outputs for a list of inputs in order, or for the only one."""
        options = RunOptions()
        for name, value in kwargs.items():
            setattr(options, name, value)
        names = [x.name for x in self._session.get_inputs()]
        if isinstance(inputs, Mapping):
            return self._session.run(None, inputs, options)
        given: Sequence[Any] = inputs if isinstance(inputs, (list, tuple)) else [inputs]
        if len(given) != len(names):
            raise InputError(
                f"run: got {len(given)} inputs, expected {len(names)}: {', '.join(names) or 'none'}, in this order"
            )
        arrays = (np.asarray(x) if isinstance(x, np.generic) else x for x in given)
        return self._session.run(None, dict(zip(names, arrays, strict=True)), options)


class OnnxRuntimeBackend:
    """The interface onnx.backend.base.Backend."""

    @classmethod
    def supports_device(cls, device: str) -> bool:
        """Whether there is a provider for a device."""
        return device.partition(":")[0].upper() in _PROVIDERS

    @classmethod
    def is_compatible(cls, model: Any, device: str | None = None, **_: Any) -> bool:
        """Whether a model can be run on a device."""
        return cls.supports_device(device or "CPU")

    @classmethod
    def prepare(
        cls,
        model: str | os.PathLike[str] | bytes | _Serializable | InferenceSession | OnnxRuntimeBackendRep,
        device: str | None = None,
        **kwargs: Any,
    ) -> OnnxRuntimeBackendRep:
        """A model ready to run: a path, bytes, a ModelProto or a session."""
        if isinstance(model, OnnxRuntimeBackendRep):
            return model
        if isinstance(model, InferenceSession):
            return OnnxRuntimeBackendRep(model)
        if device is not None and not cls.supports_device(device):
            raise InputError(f"prepare: got the device {device!r:.60}, expected one of {', '.join(_PROVIDERS)}")
        options = SessionOptions()
        for name, value in kwargs.items():
            setattr(options, name, value)
        data = model if isinstance(model, (str, bytes, os.PathLike)) else model.SerializeToString()
        provider = _PROVIDERS[(device or "CPU").partition(":")[0].upper()]
        return OnnxRuntimeBackendRep(InferenceSession(data, options, providers=[provider]))

    @classmethod
    def run_model(cls, model: Any, inputs: Any, device: str | None = None, **kwargs: Any) -> list[Any]:
        """The outputs of a model for inputs."""
        return cls.prepare(model, device, **kwargs).run(inputs)


prepare = OnnxRuntimeBackend.prepare
run = OnnxRuntimeBackend.run_model
supports_device = OnnxRuntimeBackend.supports_device
is_compatible = OnnxRuntimeBackend.is_compatible
