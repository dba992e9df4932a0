"""Files in the form of MNIST's."""

from __future__ import annotations

import struct

import numpy as np

from singe.data.sources import idx


def idx_bytes(array: np.ndarray) -> bytes:
    code = {dtype: code for code, dtype in idx.TYPES.items()}[array.dtype.newbyteorder(">").str.replace("|", "")]
    return struct.pack(f">HBB{array.ndim}I", 0, code, array.ndim, *array.shape) + array.astype(array.dtype.newbyteorder(">")).tobytes()  # fmt: skip
