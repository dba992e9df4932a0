"""Checks files in the trace format of Chrome."""

from __future__ import annotations

import json
import math
from typing import Any


def check_trace(text: str) -> list[dict[str, Any]]:
    """Check the rules of Chrome's trace format for the events that are used here; returns the complete events."""

    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is no JSON")

    data = json.loads(text, parse_constant=refuse)
    assert isinstance(data["traceEvents"], list)
    assert data["displayTimeUnit"] in ("ms", "ns")
    lines: dict[tuple[int, int], list[dict[str, Any]]] = {}
    named: set[tuple[int, int]] = set()
    for event in data["traceEvents"]:
        assert isinstance(event["name"], str)
        assert isinstance(event["pid"], int)
        assert isinstance(event["tid"], int)
        assert math.isfinite(event["ts"])
        assert event["ts"] >= 0
        where = event["pid"], event["tid"]
        if event["ph"] == "M":
            assert event["name"] in ("process_name", "thread_name")
            assert isinstance(event["args"]["name"], str)
            if event["name"] == "thread_name":
                named.add(where)
            continue
        assert event["ph"] == "X"
        assert isinstance(event["cat"], str)
        assert math.isfinite(event["dur"])
        assert event["dur"] >= 0
        lines.setdefault(where, []).append(event)
    assert named == set(lines), "each line has a name, and each name a line"
    for events in lines.values():
        end = 0.0
        for event in sorted(events, key=lambda e: e["ts"]):
            assert event["ts"] >= end - 1e-3, f"{event['name']} begins before the one before it ends"
            end = event["ts"] + event["dur"]
    return [e for events in lines.values() for e in events]
