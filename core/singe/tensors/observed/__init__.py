"""What a function that is traced takes from outside, and whether it has changed since."""

from __future__ import annotations

from .watching import Observed as Observed
from .watching import watched as watched
