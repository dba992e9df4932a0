"""Names of the tensors of a network's files ↦ those of its parts, by a table of patterns."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from ..errors import FormatError
from .stored import StoredArray


class Renaming:
    """Collects tensors under their new names, in `stored`. rules: patterns of names without what comes last ↦ ours; network, name: of what, and
    of which file, for errors."""

    def __init__(self, rules: Mapping[str, str], network: str, name: str) -> None:
        self._rules: Final = [(re.compile(pattern), new) for pattern, new in rules.items()]
        self._network, self._name = network, name
        self.stored: Final[dict[str, StoredArray]] = {}

    def base_of(self, key: str, base: str) -> str:
        """What a tensor is called whose name without its end is `base`."""
        new = next((m.expand(to) for rule, to in self._rules if (m := rule.fullmatch(base))), None)
        if new is None:
            raise self.unknown(key)
        return new

    def keep(self, key: str, new: str, array: StoredArray) -> None:
        if new in self.stored:
            raise FormatError(f"{self._name}: the tensor {key!r:.80} comes twice")
        self.stored[new] = array

    def unknown(self, key: str) -> FormatError:
        return FormatError(f"{self._name}: the tensor {key!r:.80}, which Singe does not know in {self._network}")
