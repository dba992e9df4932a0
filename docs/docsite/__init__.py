"""The documentation's site: `make docs`, or `PYTHONPATH=docs python -m docsite -o DIR`.

Pages are the Markdown files that contents.py lists, and references that are made from the code. The site is static files
with relative paths, loads nothing from elsewhere, and can be searched without a network, also when it is opened from disk.
"""

from .build import DocsError as DocsError
from .build import build as build
from .contents import pages as pages
