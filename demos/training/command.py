"""The options that all scripts in this folder have."""

from __future__ import annotations

import argparse


def arguments(text: str | None, **folders: str) -> tuple[str, bool, *tuple[str | None, ...]]:
    """(--device, --quick, …) of the command line. text: the script's docstring; folders: options of its own that name a
    folder, and what each is for."""
    parser = argparse.ArgumentParser(description=text, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--device", default="auto", help="numpy, wasm or webgpu (default: auto, the best one available)"
    )
    parser.add_argument("--quick", action="store_true", help="take seconds, to see whether all works")
    for name, use in folders.items():
        parser.add_argument(f"--{name}", metavar="FOLDER", help=use)
    given = parser.parse_args()
    return given.device, given.quick, *(getattr(given, name) for name in folders)
