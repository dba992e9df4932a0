"""A wheel called onnxruntime: `singe.ort.write_wheel(folder)`.

It holds one module, which puts singe.ort in its own place, and metadata by which pip and micropip take the requirement `onnxruntime` of
other packages as met. The module imports nothing of Singe, so that scripts can run it from its file.
"""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Final

NAME: Final = "onnxruntime"
VERSION: Final = "1.31.1"
"""The version of onnxruntime whose interface singe.ort has. Packages compare it."""
METADATA: Final = (
    f"Metadata-Version: 2.1\nName: {NAME}\nVersion: {VERSION}\nSummary: The interface of onnxruntime, by Singe (singe.ort)\n"
    "Requires-Dist: singe\n"
)
_INFO: Final = f"{NAME}-{VERSION}.dist-info"
_FILES: Final = {
    f"{NAME}/__init__.py": (
        '"""singe.ort, by the name of onnxruntime."""\n\nimport sys\n\ndel sys.modules[__name__]\n\nimport singe.ort\n\n'
        "singe.ort.install(force=True)\n"
    ),
    f"{_INFO}/METADATA": METADATA,
    f"{_INFO}/WHEEL": "Wheel-Version: 1.0\nGenerator: singe\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
}
_TIME: Final = (1980, 1, 1, 0, 0, 0)
"""Of all files in it, so that equal wheels are equal files."""


def write_wheel(folder: str | Path = ".") -> Path:
    """Write a wheel of a few hundred bytes that meets the requirement `onnxruntime` of other packages by singe.ort; returns its path.

    `micropip.install` of Singe's wheel and this one makes such packages installable in a page; `pip install` does where there is no
    onnxruntime."""
    import zipfile  # noqa: PLC0415 (a session pays for no archives)

    path = Path(folder) / f"{NAME}-{VERSION}-py3-none-any.whl"
    path.parent.mkdir(parents=True, exist_ok=True)
    record = "".join(f"{name},sha256={_digest(text)},{len(text.encode())}\n" for name, text in _FILES.items())
    files = {**_FILES, f"{_INFO}/RECORD": f"{record}{_INFO}/RECORD,,\n"}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as wheel:
        for name, text in files.items():
            wheel.writestr(zipfile.ZipInfo(name, _TIME), text)
    return path


def _digest(text: str) -> str:
    import hashlib  # noqa: PLC0415 (see files/local.py)

    return base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
