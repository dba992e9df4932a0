"""The options that all scripts in this folder have."""

from __future__ import annotations

import argparse


def arguments(text: str | None) -> tuple[str, bool]:
    """(--device, --quick) of the command line; text: the script's docstring."""
    parser = argparse.ArgumentParser(description=text, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--device", default="auto", help="numpy, wasm or webgpu (default: auto, the best one available)"
    )
    parser.add_argument("--quick", action="store_true", help="take seconds, to see whether all works")
    given = parser.parse_args()
    return given.device, given.quick
