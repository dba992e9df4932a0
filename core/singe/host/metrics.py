"""Counts of what a server of models does, and their text in the format of Prometheus. All of it happens in the thread of the event loop."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

TIMES: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Seconds: the upper bounds of the classes of times."""
ROWS: Final = (1, 2, 4, 8, 16, 32, 64, 128)


class Histogram:
    """How many values there were up to each bound, and their sum."""

    def __init__(self, bounds: Sequence[float]) -> None:
        self._bounds: Final = bounds
        self._counts: Final = [0] * (len(bounds) + 1)
        self._sum = 0.0

    def add(self, value: float) -> None:
        """Count a value."""
        self._counts[bisect_left(self._bounds, value)] += 1
        self._sum += value

    def lines(self, name: str, label: str) -> Iterator[str]:
        """Its lines, each with this label."""
        total = 0
        for bound, count in zip((*map(str, self._bounds), "+Inf"), self._counts, strict=True):
            total += count
            yield f'{name}_bucket{{{label},le="{bound}"}} {total}'
        yield f"{name}_sum{{{label}}} {self._sum:.9g}"
        yield f"{name}_count{{{label}}} {total}"


class ModelCounts:
    """Of one model. seconds: from a request's arrival to its answer; rows: of each run."""

    def __init__(self) -> None:
        self.requests = 0
        self.errors: Final = Counter[int]()
        self.seconds: Final = Histogram(TIMES)
        self.rows: Final = Histogram(ROWS)
        self.waiting: Callable[[], int] = lambda: 0

    def answered(self, status: int, seconds: float) -> None:
        """Count an answer."""
        self.requests += 1
        if status >= 400:
            self.errors[status] += 1
        self.seconds.add(seconds)


_KINDS: Final = {
    "singe_requests_total": ("counter", "Requests of inference that were answered."),
    "singe_errors_total": ("counter", "Those that were answered with an error, by status."),
    "singe_request_seconds": ("histogram", "Seconds from a request's arrival to its answer."),
    "singe_batch_rows": ("histogram", "Rows of the batches that ran; 1 for a model whose requests are not joined."),
    "singe_queue_length": ("gauge", "Requests that wait for their run."),
}


def prometheus_text(models: Mapping[str, ModelCounts]) -> str:
    """The counts of models, by their names."""
    lines = list[str]()
    for name, (kind, text) in _KINDS.items():
        lines += [f"# HELP {name} {text}", f"# TYPE {name} {kind}"]
        for model, counts in models.items():
            lines += _lines(name, f'model="{_label(model)}"', counts)
    return "\n".join((*lines, ""))


def _lines(name: str, label: str, counts: ModelCounts) -> Iterator[str]:
    match name:
        case "singe_requests_total":
            yield f"{name}{{{label}}} {counts.requests}"
        case "singe_errors_total":
            for status, count in sorted(counts.errors.items()):
                yield f'{name}{{{label},status="{status}"}} {count}'
        case "singe_request_seconds":
            yield from counts.seconds.lines(name, label)
        case "singe_batch_rows":
            yield from counts.rows.lines(name, label)
        case _:
            yield f"{name}{{{label}}} {counts.waiting()}"


def _label(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
