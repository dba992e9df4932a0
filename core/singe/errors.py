"""Every error that Singe raises. Messages say what was given, what was expected, and what to do.

SingeError
├── ShapeError          shapes that do not fit together
│   └── SizeNeeded          open sizes that must be numbers before the Graph can be built
├── DTypeError          an element type that an op does not take
├── InputError          a value, name or file from the caller that cannot be used
│   └── OutOfRange          an index beyond the axis that it indexes
├── NonFinite           a number that is NaN or infinite where `nonfinite="stop"` or `debug` forbids it
├── FormatError         a malformed file: the message names the file and the place in it
│   └── ImportFailure   a well-formed model that cannot be turned into a Graph
│       ├── UnsupportedOp   ops that Singe lacks; all such ops of a model are listed at once
│       └── ValueNeeded     inputs whose values, not only their shapes, decide the Graph
├── CompileError        a Graph that a target cannot compile
│   └── HostNeeded          ops that would run on the host, although the caller wants all on the device
└── DeviceError         a device that is missing, fails, or cannot do what it was asked to
    ├── OutOfMemory     memory that a device does not have, or that its limit refuses
    └── DeviceLost      a device that was lost while it held our buffers
        └── RemoteDisconnected  the connection to a device elsewhere was lost
"""

from __future__ import annotations

from .texts import escaped


class SingeError(Exception):
    """The root: `except singe.SingeError` catches every error that Singe raises on purpose."""

    layer: str = ""
    """The layer in whose call it was raised, as in "the layer 'encoder.0', Linear"; empty outside of layers, and in the outermost."""

    def __str__(self) -> str:
        text = escaped(super().__str__(), keep="\n")  # messages name what is in files
        return f"{text} (in {self.layer})" if self.layer and self.layer not in text else text


class ShapeError(SingeError, ValueError):
    """Shapes that do not fit together."""


class SizeNeeded(ShapeError):
    """Open sizes that must be numbers before a Graph can be built; the message says why."""

    def __init__(self, message: str, sizes: frozenset[str] = frozenset()) -> None:  # pickle gives the message alone
        super().__init__(message)
        self.sizes = sizes


class DTypeError(SingeError, TypeError):
    """An element type that an op does not take."""


class InputError(SingeError, ValueError):
    """A value, name or file from the caller that cannot be used."""


class OutOfRange(InputError, IndexError):
    """An index beyond the axis that it indexes."""


class NonFinite(SingeError, ArithmeticError):
    """A number that is NaN or infinite, and was asked not to be."""


class FormatError(SingeError, ValueError):
    """A malformed file; the message names the file and the place in it."""


class ImportFailure(FormatError):
    """A well-formed model that cannot be turned into a Graph."""


class UnsupportedOp(ImportFailure):
    """Ops that Singe lacks; all such ops of a model are listed at once."""

    def __init__(self, message: str, ops: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.ops = ops


class ValueNeeded(ImportFailure):
    """Inputs whose values, not only their shapes, must be known before a Graph can be built: they decide how many axes there are."""

    def __init__(self, message: str, inputs: tuple[str, ...] = ()) -> None:  # pickle gives the message alone
        super().__init__(message)
        self.inputs = inputs


class CompileError(SingeError):
    """A Graph that a target cannot compile."""


class HostNeeded(CompileError):
    """Ops that would run on the host, although the caller wants all of them on the device (fail_on_host)."""

    def __init__(self, message: str, ops: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.ops = ops


class DeviceError(SingeError, RuntimeError):
    """A device that is missing, fails, or cannot do what it was asked to."""


class OutOfMemory(DeviceError):
    """Memory that a device does not have, or that the limit of its `sg.Memory` refuses; the message lists what holds the rest."""


class DeviceLost(DeviceError):
    """A device that was lost while it held our buffers."""


class RemoteDisconnected(DeviceLost):
    """The connection to a device elsewhere was lost; the message says whether the next call may make it again."""
