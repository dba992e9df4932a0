"""array-api-strict, which has the functions of the array API standard and nothing else, adapted for rows: all that another array
library needs. What it has itself, such as assignment to elements, would be methods of a subclass."""

from __future__ import annotations

from typing import Final

import array_api_strict

from singe.ir.arrays.adapter import ArrayAdapter

STRICT: Final = ArrayAdapter(array_api_strict)
