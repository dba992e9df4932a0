"""The values of a JSON file, read by name and checked: messages say the place in the file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeVar

from ...errors import FormatError
from ...files.strings import MadeSequence

T = TypeVar("T")
MAX_SHORT: Final = 64
"""The characters of texts that are put into other texts."""


class Fields:
    """An object of a JSON file."""

    def __init__(self, value: object, place: str) -> None:
        if not isinstance(value, dict):
            raise FormatError(f"{place} is {type(value).__name__}, expected an object")
        self._values: dict[str, Any] = value
        self.place = place

    def __contains__(self, name: str) -> bool:
        return self._values.get(name) is not None

    def _fault(self, name: str, expected: str) -> FormatError:
        return FormatError(f"{self.place}.{name} is {self._values.get(name)!r:.80}, expected {expected}")

    def value(self, name: str) -> Any:
        return self._values.get(name)

    def text(self, name: str, default: str | None = None) -> str:
        value = self._values.get(name, default)
        if not isinstance(value, str):
            raise self._fault(name, "a text")
        return value

    def optional_text(self, name: str) -> str | None:
        return self.text(name) if name in self else None

    def short_text(self, name: str, default: str | None = None, limit: int = MAX_SHORT) -> str:
        value = self.text(name, default)
        if len(value) > limit:
            raise self._fault(name, f"at most {limit} characters")
        return value

    def flag(self, name: str, default: bool, or_none: bool = False) -> bool:
        value = self._values.get(name, default)
        if value is None and or_none:
            return default
        if not isinstance(value, bool):
            raise self._fault(name, "true or false")
        return value

    def count(self, name: str, limit: int, default: int | None = None) -> int:
        value = self._values.get(name, default)
        if type(value) is not int or not 0 <= value < limit:
            raise self._fault(name, f"a number below {limit}")
        return value

    def node(self, name: str) -> Fields:
        return Fields(self._values.get(name), f"{self.place}.{name}")

    def optional_node(self, name: str) -> Fields | None:
        return self.node(name) if name in self else None

    def list(self, name: str) -> Sequence[Any]:
        value = self._values.get(name)
        if not isinstance(value, list | MadeSequence):
            raise self._fault(name, "a list")
        return value

    def nodes(self, name: str) -> list[Fields]:
        return [Fields(item, f"{self.place}.{name}[{at}]") for at, item in enumerate(self.list(name))]

    def mapping(self, name: str) -> dict[str, Any]:
        value = self._values.get(name)
        if not isinstance(value, dict):
            raise self._fault(name, "an object")
        return value

    def choose(self, kinds: Mapping[str, T]) -> T:
        """What a table has for this object's `type`."""
        kind = self.text("type")
        if kind not in kinds:
            raise FormatError(f"{self.place} is of the type {kind!r:.60}, expected one of {', '.join(kinds)}")
        return kinds[kind]
