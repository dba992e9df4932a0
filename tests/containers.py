"""Files of Singe taken apart and put together again, so that tests can change a header."""

from __future__ import annotations

import hashlib
import json
import struct
from typing import Any

from singe.program.container import ALIGN, MAGIC


def split(data: bytes) -> tuple[dict[str, Any], bytes]:
    """A file's header and its block."""
    (length,) = struct.unpack_from("<I", data, len(MAGIC))
    at = len(MAGIC) + 4
    return json.loads(data[at : at + length]), data[-(-(at + length) // ALIGN) * ALIGN :]


def joined(head: Any, block: bytes) -> bytes:
    """A file with this header and block, and the right hash."""
    if isinstance(head, dict) and "sha256" in head:
        head["sha256"] = hashlib.sha256(block).hexdigest()
    text = json.dumps(head).encode()
    start = -(-(len(MAGIC) + 4 + len(text)) // ALIGN) * ALIGN
    return (MAGIC + struct.pack("<I", len(text)) + text).ljust(start, b"\0") + block
