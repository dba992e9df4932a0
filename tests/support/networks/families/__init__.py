"""Families of models that people run, each as a small network with random weights, in the nodes that exporters write.

FAMILIES is the table. tests/conformance/models/test_families.py runs it on every device and tests/browser/models/test_families_page.py
in a page, both beside onnxruntime; tests/conformance/models_table.py writes docs/models.md from it.
"""

from .family import Family as Family
from .family import Feeds as Feeds
from .reference import check_family as check_family
from .reference import expected as expected
from .reference import file_of as file_of
from .table import DOMAINS as DOMAINS
from .table import FAMILIES as FAMILIES
