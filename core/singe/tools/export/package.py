"""`write_package` writes the folder of the npm package: `python -m singe.tools.export.package DIR`, then `npm pack DIR`.

| files | for |
|---|---|
| `singe*.js` | bundlers and node: the readable modules; what every page needs is imported at once |
| `dist/` | pages without a bundler: the scripts of a bundle, few and small, with source maps |
| `singe*.d.ts`, `package.json`, `README.md`, `LICENSE` | as they are in static/ |
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

from ...errors import InputError
from ...files.assets import DIST, static_folder
from .page.scripts import bundle_scripts, bundler_scripts

_AS_THEY_ARE: Final = ("singe*.d.ts", "package.json", "README.md", "LICENSE")


def write_package(folder: str | Path) -> list[str]:
    """Write the npm package into a folder that is new or empty; returns the names of its files."""
    folder = Path(folder)
    if folder.exists() and any(folder.iterdir()):
        raise InputError(f"{folder}: the folder is not empty; give a new one")
    files = {path.name: path.read_bytes() for what in _AS_THEY_ARE for path in sorted(static_folder().glob(what))}
    files |= bundler_scripts()
    files |= {f"{DIST}/{name}": data for name, data in bundle_scripts().items()}
    (folder / DIST).mkdir(parents=True, exist_ok=True)
    for name, data in files.items():
        (folder / name).write_bytes(data)
    return sorted(files)


if __name__ == "__main__":
    write_package(sys.argv[1])
