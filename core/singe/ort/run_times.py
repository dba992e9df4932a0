"""What `enable_profiling` writes: the times of a session's runs, and of the steps of one, in the form of onnxruntime's files."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, TypeVar

from ..errors import DeviceError
from .errors import Fail
from .model.variants import Variants
from .settings.warned import warn_once

_Found = TypeVar("_Found")


class RunTimes:
    """The times of runs since it was made. `began`: that moment, in nanoseconds of the clock that counts them."""

    def __init__(self, prefix: str) -> None:
        self._name: Final = f"{prefix}_{time.strftime('%Y-%m-%d_%H-%M-%S')}.json"
        self.began: Final = time.perf_counter_ns()
        self._events: Final = list[dict[str, Any]]()
        self._last: Mapping[str, Any] | None = None

    def of(self, feed: Mapping[str, Any], run: Callable[[], _Found]) -> _Found:
        """The result of a run, whose time is noted."""
        self._last = feed
        start = time.perf_counter_ns()
        found = run()
        self._note("Session", "model_run", (start - self.began) / 1e3, (time.perf_counter_ns() - start) / 1e3, {})
        return found

    def _note(self, kind: str, name: str, start: float, taken: float, facts: Mapping[str, str]) -> None:
        self._events.append(
            {
                "cat": kind, "pid": os.getpid(), "tid": threading.get_native_id(), "dur": round(taken), "ts": round(start), "ph": "X",
                "name": name, "args": dict(facts),
            }
        )  # fmt: skip

    def write(self, variants: Variants, provider: str) -> str:
        """Write the file, with the steps of one more run on the inputs of the last; its name."""
        if self._last is not None:
            start = (time.perf_counter_ns() - self.began) / 1e3
            try:
                steps = variants.profile(self._last).steps
            except DeviceError as e:
                warn_once(f"end_profiling: the file has no times of steps: {e}")
                steps = []
            for k, step in enumerate(steps):
                facts = {"op_name": step["name"], "provider": provider, "node_index": str(k)}
                self._note("Node", f"{step['name']}_kernel_time", start + step["ts"], step["dur"], facts)
        try:
            Path(self._name).write_text(json.dumps(self._events), "utf-8")
        except OSError as e:
            raise Fail(f"end_profiling: {self._name} cannot be written: {e}") from e
        return self._name
