"""`python -m docsite [-o DIR]`."""

import argparse
import sys
from pathlib import Path

from .build import ROOT, DocsError, build

parser = argparse.ArgumentParser(prog="docsite", description="Build the documentation's site.")
parser.add_argument("-o", "--out", metavar="DIR", type=Path, default=ROOT / "docs" / "site", help="default: docs/site")
try:
    build(parser.parse_args().out)
except (DocsError, OSError) as e:
    print(f"error: {e}", file=sys.stderr)
    sys.exit(1)
