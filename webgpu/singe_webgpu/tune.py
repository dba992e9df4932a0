"""Autotuning: the cuts with the best estimates are timed on the device, and the fastest is remembered on disk.

It is on by default on a GPU, and off on an adapter that runs on the CPU; SINGE_AUTOTUNE=0 and =1 override that. A
process spends at most BUDGET seconds. Results are kept per adapter, driver and version of this code generator. Exported
bundles never depend on them.

The file is JSON: {"format": 1, "cuts": {device: {product: cut}}}. It is replaced as a whole, so that processes may
share it: if two write at once, the newest results of one are lost and measured again. An entry is used only if it names
a cut that exists.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import os
import sys
import tempfile
import time
from collections.abc import Mapping
from functools import cache, partial
from math import prod
from pathlib import Path
from typing import Any, Final

from singe.extension import Contraction, DeviceError, Expr, Routine, show

from .kernels.choice import RATES, costs, print_cut, ranked, sizes_of
from .kernels.gemm import Cut
from .memory import Gpu
from .timing import kernel_seconds
from .variants import variants

VARIABLE: Final = "SINGE_AUTOTUNE"
HANDFUL: Final = 4
"""How many cuts are timed at most."""
NEAR: Final = 2.0
"""Only cuts whose estimate is within this factor of the best are timed."""
CLEARLY: Final = 0.95
"""A cut replaces the estimated best if it takes at most this part of its time."""
BUDGET: Final = 10.0
"""Seconds of search in a process; after that, estimates decide."""
TELL: Final = 1.0
"""Seconds of search after which a message is logged."""
LARGEST: Final = 1 << 20
"""A larger file is not read; bytes."""
KEPT: Final = 4096
"""Products remembered per device; the oldest are dropped first."""
FORMAT: Final = 1

_log: Final = logging.getLogger("singe.tune")


def wanted(software: bool) -> bool:
    """Whether the environment, or the adapter, asks for tuning."""
    return {"0": False, "1": True}.get(os.environ.get(VARIABLE, ""), not software)


class Tuner:
    """Chooses cuts by timing them; see the module's docstring."""

    def __init__(self, gpu: Gpu, device: str, path: Path | None = None) -> None:
        self._gpu = gpu
        self._cache = Cache(path or cache_path(), f"{device}, generator {_generator()}")
        self.spent = 0.0
        self.searched = 0

    @property
    def path(self) -> Path:
        """The file of results."""
        return self._cache.path

    def choose(self, routine: Routine, c: Contraction) -> Cut:
        """The fastest cut, measured now or before; the estimated best if the budget is spent or nothing runs."""
        order = ranked(routine, c)
        allowed = {str(cut): cut for cut in order}
        key = signature(routine, c, self._gpu.features)
        found = self._cache.get(key)
        if found in allowed:
            return allowed[found]
        tried = _worth(c, order)
        if len(tried) == 1 or self.spent >= BUDGET:
            return order[0]
        start = time.perf_counter()
        try:
            best = self._fastest(routine, c, tried)
        except DeviceError as e:
            _log.debug("%s: %s", key, e)
            return order[0]
        finally:
            self.spent += time.perf_counter() - start
        self.searched += 1
        if self.spent > TELL:
            _log.info("tuning kernels for this device: %d found", self.searched)
        self._cache.put(key, str(best))
        return best

    def _fastest(self, routine: Routine, c: Contraction, tried: list[Cut]) -> Cut:
        printed = [variants(routine.kernel.ports, partial(print_cut, routine, c, cut)) for cut in tried]
        runs = [kernel_seconds(self._gpu, routine.kernel, printed, s) for s in sizes_of(c)]
        seconds = [prod(times) ** (1 / len(times)) for times in zip(*runs, strict=True)]
        best = min(range(len(tried)), key=seconds.__getitem__)
        return tried[best if seconds[best] <= CLEARLY * seconds[0] else 0]


def _worth(c: Contraction, order: list[Cut]) -> list[Cut]:
    """The cuts to try, the estimated best first."""
    costs_of = costs(c, RATES)
    return [cut for cut in order[:HANDFUL] if costs_of[cut] <= NEAR * costs_of[order[0]]]


def signature(routine: Routine, c: Contraction, features: frozenset[str]) -> str:
    """Everything that a product's time depends on, except the device."""
    kinds = " ".join(str(p.dtype) for p in routine.kernel.ports)
    walks = f"{'k' if c.a_deep else 'm'}{'k' if c.b_deep else 'n'}"
    told = {name: fact for name, fact in routine.facts.items() if not isinstance(fact, Expr)}
    facts = " ".join(f"{name}={fact}" for name, fact in sorted(told.items()))
    parts = (
        routine.kernel.name, f"{show(c.batch)} {c.rows} × {c.depth} · {c.columns}", walks, kinds, facts,
        " ".join(sorted(features)),
    )  # fmt: skip
    return ", ".join(part for part in parts if part)


# --- on disk ----------------------------------------------------------------------------------------------------------


def cache_path() -> Path:
    """The file of results, in the user's cache folder."""
    given = os.environ.get("XDG_CACHE_HOME", "")
    if os.path.isabs(given):
        folder = Path(given)
    elif sys.platform == "win32":
        folder = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    elif sys.platform == "darwin":
        folder = Path.home() / "Library" / "Caches"
    else:
        folder = Path.home() / ".cache"
    return folder / "singe" / "webgpu-cuts.json"


class Cache:
    """The results for one device, read once and written as a whole."""

    def __init__(self, path: Path, device: str) -> None:
        self.path: Final = path
        self._device: Final = device
        self._warned = False
        self._cuts: dict[str, str] | None = None

    def get(self, key: str) -> str | None:
        if self._cuts is None:
            self._cuts = dict(self._read().get(self._device, {}))
        return self._cuts.get(key)

    def put(self, key: str, cut: str) -> None:
        self.get(key)
        assert self._cuts is not None
        self._cuts[key] = cut
        others = self._read()
        self._cuts = dict(list({**others.get(self._device, {}), **self._cuts}.items())[-KEPT:])
        # The newest device last: where the file grows too large, the others are forgotten first.
        devices = {name: cuts for name, cuts in others.items() if name != self._device} | {self._device: self._cuts}
        try:
            self._write(devices)
        except OSError as e:
            self._warn(f"cannot be written: {e}")

    def _read(self) -> dict[str, dict[str, str]]:
        try:
            with self.path.open("rb") as file:
                raw = file.read(LARGEST + 1)
        except FileNotFoundError:
            return {}
        except OSError as e:
            self._warn(f"cannot be read: {e}")
            return {}
        try:
            if len(raw) > LARGEST:
                raise ValueError(f"larger than {LARGEST} bytes")
            return _checked(json.loads(raw))
        except (ValueError, RecursionError) as e:
            self._warn(f"is not what Singe writes ({e}) and will be written anew")
            return {}

    def _write(self, devices: Mapping[str, Mapping[str, str]]) -> None:
        rest = dict(devices)
        while len(raw := json.dumps({"format": FORMAT, "cuts": rest}, indent=1, ensure_ascii=False).encode()) > LARGEST:
            if len(rest) == 1:
                return
            del rest[next(iter(rest))]
        self.path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=".webgpu-cuts-", dir=self.path.parent)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(raw)
            os.replace(name, self.path)
        except OSError:
            with contextlib.suppress(OSError):
                os.unlink(name)
            raise

    def _warn(self, what: str) -> None:
        if not self._warned:
            self._warned = True
            _log.warning("the cache of tuned kernels, %s, %s", self.path, what)


def _checked(data: Any) -> dict[str, dict[str, str]]:
    """The devices in a file's data; ValueError where it is anything else."""
    if not isinstance(data, dict) or data.get("format") != FORMAT or not isinstance(data.get("cuts"), dict):
        raise ValueError(f"expected an object of format {FORMAT}")
    for cuts in data["cuts"].values():
        if not isinstance(cuts, dict) or not all(isinstance(cut, str) for cut in cuts.values()):
            raise ValueError("expected cuts by product, by device")
    return data["cuts"]


@cache
def _generator() -> str:
    """A hash of the code that writes the kernels: results of other code are not used."""
    digest = hashlib.blake2b(digest_size=6)
    for path in sorted(Path(__file__).parent.rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()
