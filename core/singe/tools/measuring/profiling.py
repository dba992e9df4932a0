"""A profile beside the highest rates of its device, as a table and as JSON."""

from __future__ import annotations

from typing import Any

from ...late_dataclass import dataclass
from ...model.profiling import REST, Profile
from ...report import LEFT, RIGHT, quantity, table


@dataclass(frozen=True)
class Peaks:
    """The highest measured rates of a device, per second: floating-point operations in a matrix product, and bytes read
    and written by an elementwise kernel that exceeds its caches."""

    flops: float
    bytes: float
    gemm: str
    copied: int


# --- as text, JSON, and a trace ---------------------------------------------------------------------------------------


def describe_profile(profile: Profile, peaks: Peaks, most: int | None = None) -> str:
    """A table by time that adds up to the run; the `most` slowest kernels have a row each."""
    columns = [
        ("kernel", LEFT), ("kind", LEFT), ("output", LEFT), ("calls", RIGHT), ("ms", RIGHT), ("share", RIGHT), ("GFLOP", RIGHT),
        ("GFLOP/s", RIGHT), ("of peak", RIGHT), ("GB/s", RIGHT), ("of peak", RIGHT),
    ]  # fmt: skip
    shown = profile.kernels[:most]
    rows: list[tuple[Any, ...]] = []
    for k in shown:
        work = ("", "", "")
        if k.flops:
            work = (f"{k.flops / 1e9:.3f}", *_rate(k.flops, k.seconds, peaks.flops))
        rows.append((
            k.label, k.kind, k.output, k.calls, _ms(k.seconds), _share(k.seconds, profile), *work,
            *_rate(k.bytes, k.seconds, peaks.bytes),
        ))  # fmt: skip
    blank = ("",) * 5
    others = profile.kernels[len(shown) :]
    if others:
        taken = sum(k.seconds for k in others)
        calls = sum(k.calls for k in others)
        rows.append((f"{len(others)} others", "", "", calls, _ms(taken), _share(taken, profile), *blank))
    for name, taken in profile.rest.items():
        if not taken:
            continue
        rows.append((name, "", REST[name], "", _ms(taken), _share(taken, profile), *blank))
    rows.append(("together", "", "", "", _ms(profile.seconds), "100.0%", *blank))
    kinds: dict[str, float] = {}
    for k in profile.kernels:
        kinds[k.kind] = kinds.get(k.kind, 0.0) + k.seconds
    by_kind = ", ".join(
        f"{kind} {_share(taken, profile)}" for kind, taken in sorted(kinds.items(), key=lambda i: -i[1])
    )
    notes = [
        f"kinds: {by_kind}",
        f"times: {profile.clock}; means of the faster half of {profile.runs} runs",
        f"peaks: {quantity(peaks.flops, 'FLOP/s')} ({peaks.gemm}), {quantity(peaks.bytes, 'B/s')} "
        f"(an elementwise copy of {quantity(peaks.copied, 'B')}; data in a cache may exceed 100%)",
    ]
    return "\n".join([table(columns, rows), "", *notes])


def _ms(taken: float) -> str:
    return f"{taken * 1e3:.3f}"


def _rate(count: float, taken: float, peak: float) -> tuple[str, str]:
    rate = count / taken if taken > 0 else 0.0
    return (f"{rate / 1e9:.1f}", f"{rate / peak:.0%}") if rate else ("", "")


def _share(taken: float, profile: Profile) -> str:
    return f"{taken / profile.seconds:.1%}" if profile.seconds else ""


def profile_data(profile: Profile, peaks: Peaks) -> dict[str, Any]:
    """The same as JSON data; times in seconds, rates a second."""
    kernels = [
        {
            "label": k.label, "kind": k.kind, "output": k.output, "calls": k.calls, "seconds": k.seconds,
            "share": k.seconds / profile.seconds, "flops": k.flops, "bytes": k.bytes,
            "of_peak_flops": None if not k.flops or not k.seconds else k.flops / k.seconds / peaks.flops,
            "of_peak_bytes": None if not k.seconds else k.bytes / k.seconds / peaks.bytes,
        }
        for k in profile.kernels
    ]  # fmt: skip
    return {
        "clock": profile.clock,
        "runs": profile.runs,
        "seconds": profile.seconds,
        "kernels": kernels,
        "rest": dict(profile.rest),
    }
