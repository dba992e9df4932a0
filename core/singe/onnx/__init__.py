"""ONNX files become Graphs, and Graphs become ONNX files: `sg.onnx.save(model, "net.onnx")`.

wire.py decodes the bytes, model.py and tensors.py the model, importer.py builds the Graph; saving/ writes one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..tracebacks import shortened

if TYPE_CHECKING:
    from .saving.save import OnnxFiles as OnnxFiles
    from .saving.save import save as save

__all__ = ["OnnxFiles", "save"]


def __getattr__(name: str) -> Any:
    """What writes files is imported when it is first used: it needs all that a file needs to be read."""
    if name in __all__:
        from .saving import save as module  # noqa: PLC0415

        return shortened(getattr(module, name))
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
