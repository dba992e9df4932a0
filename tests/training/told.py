"""A hook that tests give to a Learner, to see what it told."""

from __future__ import annotations

from typing import Any

from singe.train import BatchEnded, Event


class Told(list[Event]):
    """A hook that keeps the events."""

    __call__ = list.append

    def of(self, kind: type[Any]) -> list[Any]:
        return [event for event in self if isinstance(event, kind)]

    def losses(self) -> dict[int, float]:
        return {e.step: e.values["loss"] for e in self.of(BatchEnded) if e.phase == "train"}
