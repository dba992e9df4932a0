"""Draws which device runs where: `python tests/structure/places.py` writes docs/guides/devices.svg.

A filled dot says that tests run the device in that place, an open one that it is written for it and no test runs it there.
PLACES has the test, or the job of CI, behind each filled dot. test_places.py compares the drawing with this table, and the table
with the devices there are and with the files of tests.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
DRAWING: Final = ROOT / "docs" / "guides" / "devices.svg"
DEVICES: Final[Mapping[str, tuple[str, str]]] = {
    "numpy": ("the CPU,", "NumPy"),
    "wasm": ("the CPU,", "WebAssembly"),
    "webgpu": ("a GPU,", "WebGPU"),
    "cuda": ("a GPU of", "NVIDIA"),
    "hip": ("a GPU of", "AMD"),
    "torch": ("arrays of", "PyTorch"),
    "jax": ("arrays of", "JAX"),
    "cupy": ("arrays of", "CuPy"),
    "remote": ("a device", "elsewhere"),
}
"""The columns: a device, and what it computes on, in two lines."""
UNTESTED: Final = ""
"""In the place of a test: the device is written for this place, and no test runs it there."""
SYSTEMS: Final = ".github/workflows/tests.yml"
OTHERS: Final = "tests/browser/runner/test_debian_browsers.py"
CHROMIUM: Final = "tests/browser/runner/test_runner_chromium.py"
ENGINES: Final = "tests/browser/runner/test_engines.py"
PYODIDE: Final = "tests/browser/python/test_pyodide_hosts.py"
ROWS: Final = "tests/unit/ops/test_rows.py"
LIBRARIES: Final = "tests/unit/ops/test_array_libraries.py"
REMOTE: Final = "tests/browser/runner/test_remote_page.py"
PLACES: Final[Mapping[str, Mapping[str, Mapping[str, str]]]] = {
    "A page": {
        "Chromium: Chrome, Edge": {"wasm": CHROMIUM, "webgpu": CHROMIUM, "remote": REMOTE},
        "Firefox": {"wasm": OTHERS, "webgpu": UNTESTED, "remote": UNTESTED},
        "WebKit: Safari": {"wasm": OTHERS, "webgpu": UNTESTED, "remote": UNTESTED},
        "browsers of Android and iOS": {"wasm": UNTESTED, "webgpu": UNTESTED, "remote": UNTESTED},
    },
    "Python in a page": {
        "Pyodide, in Chromium": {"numpy": PYODIDE, "wasm": PYODIDE, "webgpu": PYODIDE, "remote": PYODIDE},
        "Pyodide, in node": {"numpy": PYODIDE, "wasm": PYODIDE},
    },
    "JavaScript without a page": {
        "node": {"wasm": ENGINES, "remote": "tests/browser/runner/test_remote_links.py"},
        "Deno": {"wasm": ENGINES, "webgpu": UNTESTED, "remote": UNTESTED},
        "Bun": {"wasm": ENGINES, "remote": UNTESTED},
    },
    "A WebAssembly engine": {
        "one module, without JavaScript": {"wasm": "tests/unit/tools/test_freestanding.py"},
    },
    "Python": {
        "Linux": {
            "numpy": ROWS, "wasm": ROWS, "webgpu": ROWS, "cuda": ROWS, "hip": UNTESTED, "torch": LIBRARIES, "jax": LIBRARIES,
            "cupy": LIBRARIES, "remote": "tests/unit/remote/test_remote.py",
        },
        "macOS": {"numpy": SYSTEMS, "wasm": SYSTEMS, "webgpu": UNTESTED, "torch": UNTESTED, "jax": UNTESTED, "remote": SYSTEMS},
        "Windows": {
            "numpy": SYSTEMS, "wasm": SYSTEMS, "webgpu": UNTESTED, "cuda": UNTESTED, "torch": UNTESTED, "jax": UNTESTED,
            "cupy": UNTESTED, "remote": SYSTEMS,
        },
    },
}  # fmt: skip
"""A kind of place ↦ a place ↦ a device that runs there ↦ the test of it. cuda and cupy are tested by SINGE_TEST_DEVICES on a
machine that has such a GPU."""

ROW: Final = 24
COLUMN: Final = 66
LABELS: Final = 230
TOP: Final = 64
"""Pixels: the height of a row, the width of a device's column and of the places' names, and the height of the devices' names."""
STYLE: Final = (
    "text { fill: #5b6675 } .name { fill: #1d2430 } .kind { fill: #1d2430; font-weight: 600 } .middle { text-anchor: middle } "
    ".grid { stroke: #8884 } .tested { fill: #2f5eb5 } .untested { fill: none; stroke: #2f5eb5; stroke-width: 1.5 } "
    "@media (prefers-color-scheme: dark) { text { fill: #97a3b2 } .name, .kind { fill: #e4e8ee } .tested { fill: #7da2e8 } "
    ".untested { stroke: #7da2e8 } }"
)


def drawing() -> str:
    """The table as SVG."""
    rows = sum(1 + len(places) for places in PLACES.values())
    width, height = LABELS + COLUMN * len(DEVICES) + 8, TOP + ROW * (rows + 1) + 8
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'font-family="system-ui, sans-serif" font-size="12" role="img">',
        "<title>Which device runs where</title>",
        f"<style>{STYLE}</style>",
    ]
    for k, (name, about) in enumerate(DEVICES.items()):
        middle = LABELS + COLUMN * k + COLUMN // 2
        parts.append(f'<text class="name middle" x="{middle}" y="16">{name}</text>')
        parts += [
            f'<text class="middle" font-size="10" x="{middle}" y="{32 + 12 * line}">{text}</text>'
            for line, text in enumerate(about)
        ]
    y = TOP
    for kind, places in PLACES.items():
        parts.append(f'<path class="grid" d="M4 {y}H{width - 8}"/><text class="kind" x="4" y="{y + 17}">{kind}</text>')
        y += ROW
        for place, found in places.items():
            parts.append(f'<text x="16" y="{y + 16}">{place}</text>')
            for device, test in found.items():
                at = f'cx="{LABELS + COLUMN * list(DEVICES).index(device) + COLUMN // 2}" cy="{y + 12}" r="5"'
                said = "tested" if test else "written for it, not tested"
                mark = "tested" if test else "untested"
                parts.append(f'<circle class="{mark}" {at}><title>{device}, {place}: {said}</title></circle>')
            y += ROW
    parts += [
        f'<path class="grid" d="M4 {y}H{width - 8}"/><circle class="tested" cx="10" cy="{y + 18}" r="5"/>',
        f'<text x="22" y="{y + 22}">tests run it there</text><circle class="untested" cx="150" cy="{y + 18}" r="5"/>',
        f'<text x="162" y="{y + 22}">written for it, and no test runs it there</text>',
    ]
    return "\n".join((*parts, "</svg>", ""))


if __name__ == "__main__":
    DRAWING.write_text(drawing(), "utf-8")
