"""Texts that say what a query says, found by their vectors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from ...errors import InputError
from ...late_dataclass import dataclass
from ..answers import Arrays, Finding, Findings
from ..spec import TaskSpec
from ..text.index import TextIndex, read_index
from ..text.medium import TEXT, Asking, Reading
from .base import TaskKind
from .embed import HEADS, prompted, unit

QUERY: Final = "query"
PASSAGES: Final = ("passage", "document")
"""What models call the prompt of a query, and that of what is looked for."""
REACH: Final = 2000


@dataclass(frozen=True)
class Hit(Finding):
    """A text that was found. score: the cosine of its vector and the query's, from −1 to 1."""

    def _told_score(self) -> str:
        return f"{self.score:.3f}"


def _query(source: Any, spec: TaskSpec, settings: Mapping[str, Any]) -> Sequence[Asking]:
    name = settings["prompt"] or (QUERY if QUERY in spec.preparation.prompts else "")
    return prompted(source, spec, {"prompt": name})


def _hits(outputs: Arrays, spec: TaskSpec, reading: Reading, settings: Mapping[str, Any]) -> Findings:
    index: TextIndex | None = reading.held
    if index is None:
        raise InputError('search: there is nothing to look through: index = sg.task("search").index(texts)')
    top, reach, among = settings["top"], settings["reach"], settings["among"]
    for name, value, least in (("top", top, 1), ("reach", reach, 0)):
        if type(value) is not int or value < least:
            raise InputError(f"search: {name} is {value!r:.40}, expected a number from {least} on")
    if among is not None and not all(0 <= k < len(index.texts) for k in among):
        raise InputError(f"search: among: expected numbers of texts, below {len(index.texts)}")
    query = unit(reading.mean(outputs["vector"]), index.table.shape[1])
    hits = index.nearest(query, top, reach, among)
    return Findings(spec.kind, None, [Hit(index.texts[k], score, k) for k, score in hits], windows=reading.windows)


SEARCH: Final = TaskKind(
    "search", "the texts of an index that say what a query says", TEXT, HEADS, _hits, 512,
    settings={"top": 5, "prompt": "", "reach": REACH, "among": None}, asks=_query, holds=read_index, network="vectors",
)  # fmt: skip
