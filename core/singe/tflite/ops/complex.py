"""Complex numbers, each of which is two nodes: its real and its imaginary part."""

from __future__ import annotations

from ...graph import Node
from ._call import Numbers, TfliteCall, op


@op("RFFT2D", numbers=Numbers.OWN)
def _rfft2d(call: TfliteCall) -> list[Node]:
    """Fourier transforms of real numbers along the last two axes, which are cut or filled up with zeros to lengths of the second input."""
    b, x, lengths = call.b, call.x(), call.dims(1)
    if len(x.shape) < 2 or len(lengths) != 2:
        raise call.fail(f"{len(x.shape)} axes and {len(lengths)} lengths; expected at least 2 axes, and 2 lengths")
    if call.wanted[0].dtype != "complex64":
        raise call.fail(f"the output is {call.wanted[0].dtype}; expected complex64")
    pairs = b.reshape(x, shape=(*x.shape, 1))
    found = b.dft(pairs, axis=-2, length=lengths[1], onesided=True)
    if (x.shape[-2], lengths[0]) != (1, 1):
        found = b.dft(found, axis=-3, length=lengths[0])
    *shape, _ = found.shape
    ones, zeros = (1,) * len(found.shape), (0,) * len(shape)
    parts = (b.slice(found, starts=(*zeros, k), steps=ones, sizes=(*shape, 1)) for k in range(2))
    return [b.reshape(part, shape=tuple(shape)) for part in parts]


@op("REAL", numbers=Numbers.OWN)
def _real(call: TfliteCall) -> Node:
    return call.x()


def _imaginary(call: TfliteCall) -> Node:
    found = call.imaginary[0] if call.imaginary else None
    if found is None:
        raise call.fail("the input is not complex")
    return found


@op("IMAG", numbers=Numbers.OWN)
def _imag(call: TfliteCall) -> Node:
    return _imaginary(call)


@op("COMPLEX_ABS", numbers=Numbers.OWN)
def _complex_abs(call: TfliteCall) -> Node:
    b, x, y = call.b, call.x(), _imaginary(call)
    return b.sqrt(b.add(b.mul(x, x), b.mul(y, y)))
