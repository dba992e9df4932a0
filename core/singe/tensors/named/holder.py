"""The base of NamedTensor, by which modules know it without importing what it is made of."""

from __future__ import annotations


class TensorHolder:
    """What holds a Tensor, and is none: no parameter of a module."""

    __slots__ = ()
