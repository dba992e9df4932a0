"""How the scripts in this folder are started: the options that all of them have, and an error as one line."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable

import singe as sg


def run(main: Callable[..., object], text: str | None, **folders: str) -> None:
    """Call main(device, quick, …) with what the command line says. text: the script's docstring; folders: options of its own
    that name a folder, and what each is for."""
    parser = argparse.ArgumentParser(description=text, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--device", default="auto", help="numpy, wasm or webgpu (default: auto, the best one available)"
    )
    parser.add_argument("--quick", action="store_true", help="take seconds, to see whether all works")
    for name, use in folders.items():
        parser.add_argument(f"--{name}", metavar="FOLDER", help=use)
    given = parser.parse_args()
    try:
        main(given.device, given.quick, *(getattr(given, name) for name in folders))
    except (sg.SingeError, OSError) as e:
        print(f"{parser.prog}: {' '.join(str(e).split())}", file=sys.stderr)
        sys.exit(2)
