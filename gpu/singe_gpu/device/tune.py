"""Autotuning: the cuts with the best estimates are timed on the device, and the fastest is remembered on disk.

It is on by default on a GPU, and off on an adapter that runs on the CPU; SINGE_AUTOTUNE=0 and =1 override that. A
process spends at most SEARCH_SECONDS seconds. Results are kept per adapter, driver and version of this code generator. Exported
bundles never depend on them.

The file is JSON: {"format": 1, "cuts": {device: {product: cut}}}. It is replaced as a whole, so that processes may
share it: if two write at once, the newest results of one are lost and measured again. An entry is used only if it names
a cut that exists.
"""

from __future__ import annotations

import contextlib
import hashlib
import inspect
import json
import logging
import os
import tempfile
import time
from collections.abc import Mapping
from functools import cache, partial
from math import prod
from pathlib import Path
from typing import Any, Final

import numpy as np

from singe.extension import Contraction, DeviceError, Expr, Routine, cache_folder, is_off, show

from ..code.variants import variants
from ..dialect import Dialect
from ..kernels.products.cut_choice import Sizes, costs, extents, print_cut, ranked
from ..kernels.products.cuts import Cuts, choose, divided, outputs, samples
from ..rates import Cut
from .memory import Gpu
from .timing import text_seconds

VARIABLE: Final = "SINGE_AUTOTUNE"
MAX_TIMED_CUTS: Final = 4
"""The most cuts that are timed for a product of fixed sizes."""
MAX_ESTIMATE_RATIO: Final = 2.0
"""Only cuts whose estimate is within this factor of the best are timed."""
REPLACING_TIME_RATIO: Final = 0.95
"""A cut replaces the estimated best if it takes at most this part of its time."""
SEARCH_SECONDS: Final = 10.0
"""Seconds of search in a process; after that, estimates decide."""
SECONDS_BEFORE_MESSAGE: Final = 1.0
"""Seconds of search after which a message is logged."""
MAX_CUTS_PER_SAMPLE: Final = 2
"""The most cuts that are timed at each sample of open sizes."""
SAMPLE_STRIDE: Final = 3
"""One of this many samples of open sizes is timed."""
MAX_TIMED_MULTIPLY_ADDS: Final = 1 << 32
"""A product of open sizes is timed only at samples with at most this many multiply-adds."""
MAX_FILE_BYTES: Final = 1 << 20
"""The largest file of results that is read, in bytes."""
MAX_KEPT_PRODUCTS: Final = 4096
"""Products remembered per device; the oldest are dropped first."""
FORMAT: Final = 1

_log: Final = logging.getLogger("singe.tune")


def wanted(software: bool) -> bool:
    """Whether the environment, or the adapter, asks for tuning."""
    return {"0": False, "1": True}.get(os.environ.get(VARIABLE, ""), not software)


class Tuner:
    """Chooses cuts by timing them; see the module's docstring."""

    def __init__(self, gpu: Gpu, dialect: Dialect, device: str, path: Path | None = None) -> None:
        self._gpu = gpu
        self._dialect = dialect
        self._cache = Cache(path or cache_path(), f"{device}, {dialect.name}, generator {_generator(dialect)}")
        self.spent = 0.0
        self.searched = 0

    @property
    def path(self) -> Path | None:
        """The file of results, if they are kept."""
        return self._cache.path

    def choose(self, routine: Routine, c: Contraction) -> Cuts:
        """The fastest cuts, measured now or before; the estimated best if the budget is spent, or if nothing runs or is to compute."""
        key = cache_key(routine, c, self._gpu.features)
        found = _parsed(self._cache.get(key), ranked(self._dialect, routine, c, samples(c)[0]))
        if found:
            return found
        some = _timed(c)
        tried = _worth(self._dialect, routine, c, some)
        if len(tried) == 1 or self.spent >= SEARCH_SECONDS or not min(outputs(c, sizes) for sizes in some):
            return choose(self._dialect, routine, c)
        start = time.perf_counter()
        try:
            best = self._fastest(routine, c, tried, some)
        except DeviceError as e:
            _log.debug("%s: %s", key, e)
            return choose(self._dialect, routine, c)
        finally:
            self.spent += time.perf_counter() - start
        self.searched += 1
        if self.spent > SECONDS_BEFORE_MESSAGE:
            _log.info("tuning kernels for this device: %d found", self.searched)
        self._cache.put(key, _text(best))
        return best

    def _fastest(self, routine: Routine, c: Contraction, tried: list[Cut], some: list[Sizes]) -> Cuts:
        ports = routine.kernel.ports
        printed = [variants(self._dialect, ports, partial(print_cut, routine, c, cut)) for cut in tried]
        times = np.array([text_seconds(self._gpu, self._dialect, routine.kernel, printed, sizes) for sizes in some])
        for row, sizes in zip(times, some, strict=True):
            costs_of = costs(c, self._dialect.rates, sizes)
            row[min(range(len(tried)), key=lambda k: costs_of[tried[k]])] *= REPLACING_TIME_RATIO
        counts = [outputs(c, sizes) for sizes in some]
        # Between the samples that were timed, and beyond them, logarithms are interpolated.
        every = sorted({outputs(c, sizes) for sizes in samples(c)})
        logs = [np.interp(np.log(every), np.log(counts), column) for column in np.log(times).T]
        return divided(every, tried, np.exp(np.array(logs).T))


def _timed(c: Contraction) -> list[Sizes]:
    """The samples at which cuts are timed: every third one that is quick enough, including the largest."""
    every = samples(c)
    quick = [sizes for sizes in every if prod(extents(c, sizes)) <= MAX_TIMED_MULTIPLY_ADDS] or every[:1]
    return quick[::-1][::SAMPLE_STRIDE][::-1]


def _worth(dialect: Dialect, routine: Routine, c: Contraction, some: list[Sizes]) -> list[Cut]:
    """The cuts to try: at each of these sizes, those with the best estimates."""
    found: dict[Cut, None] = {}
    for sizes in some:
        costs_of, order = costs(c, dialect.rates, sizes), ranked(dialect, routine, c, sizes)
        most = MAX_TIMED_CUTS if len(some) == 1 else MAX_CUTS_PER_SAMPLE
        found.update(
            dict.fromkeys(cut for cut in order[:most] if costs_of[cut] <= MAX_ESTIMATE_RATIO * costs_of[order[0]])
        )
    return list(found)


def _text(cuts: Cuts) -> str:
    """Cuts as text for the file: one cut, or each with the least number of outputs for which it is used."""
    return str(cuts[0][1]) if len(cuts) == 1 else "; ".join(f"{first}: {cut}" for first, cut in cuts)


def _parsed(text: str | None, possible: list[Cut]) -> Cuts:
    """The cuts in a text; none if it is invalid or names a cut that is not possible."""
    names = {str(cut): cut for cut in possible}
    found: list[tuple[int, Cut]] = []
    for part in (text or "").split("; "):
        first, colon, name = part.rpartition(": ")
        if name not in names or (colon and not first.isdecimal()):
            return []
        found.append((int(first or 0), names[name]))
    starts = [first for first, _ in found]
    return found if starts[0] == 0 and starts == sorted(set(starts)) else []


def cache_key(routine: Routine, c: Contraction, features: frozenset[str]) -> str:
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


def cache_path() -> Path | None:
    """The file of results; None if nothing is kept."""
    return None if is_off() else cache_folder() / "gpu-cuts.json"


class Cache:
    """The results for one device, read once and written as a whole; without a path they are those of this process."""

    def __init__(self, path: Path | None, device: str) -> None:
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
        if self.path is None:
            return
        others = self._read()
        self._cuts = dict(list({**others.get(self._device, {}), **self._cuts}.items())[-MAX_KEPT_PRODUCTS:])
        # The newest device last: where the file grows too large, the others are forgotten first.
        devices = {name: cuts for name, cuts in others.items() if name != self._device} | {self._device: self._cuts}
        try:
            self._write(self.path, devices)
        except OSError as e:
            self._warn(f"cannot be written: {e}")

    def _read(self) -> dict[str, dict[str, str]]:
        if self.path is None:
            return {}
        try:
            with self.path.open("rb") as file:
                raw = file.read(MAX_FILE_BYTES + 1)
        except FileNotFoundError:
            return {}
        except OSError as e:
            self._warn(f"cannot be read: {e}")
            return {}
        try:
            if len(raw) > MAX_FILE_BYTES:
                raise ValueError(f"larger than {MAX_FILE_BYTES} bytes")
            return _checked(json.loads(raw))
        except (ValueError, RecursionError) as e:
            self._warn(f"is not in Singe's format ({e}) and will be replaced")
            return {}

    def _write(self, path: Path, devices: Mapping[str, Mapping[str, str]]) -> None:
        rest = dict(devices)
        while (
            len(raw := json.dumps({"format": FORMAT, "cuts": rest}, indent=1, ensure_ascii=False).encode())
            > MAX_FILE_BYTES
        ):
            if len(rest) == 1:
                return
            del rest[next(iter(rest))]
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=".gpu-cuts-", dir=path.parent)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(raw)
            os.replace(name, path)
        except OSError:
            with contextlib.suppress(OSError):
                os.unlink(name)
            raise

    def _warn(self, what: str) -> None:
        if not self._warned:
            self._warned = True
            _log.warning("the cache of tuned kernels, %s, %s", self.path, what)


def _checked(data: Any) -> dict[str, dict[str, str]]:
    """The devices in a file's data; ValueError if the data has another form."""
    if not isinstance(data, dict) or data.get("format") != FORMAT or not isinstance(data.get("cuts"), dict):
        raise ValueError(f"expected an object of format {FORMAT}")
    for cuts in data["cuts"].values():
        if not isinstance(cuts, dict) or not all(isinstance(cut, str) for cut in cuts.values()):
            raise ValueError("expected cuts by product, by device")
    return data["cuts"]


@cache
def _generator(dialect: Dialect) -> str:
    """A hash of the code that writes the kernels, this package's and the dialect's: results of other code are not used."""
    digest = hashlib.blake2b(digest_size=6)
    for folder in (Path(__file__).parents[1], Path(inspect.getfile(dialect.join)).parent):
        for path in sorted(folder.rglob("*.py")):
            digest.update(path.read_bytes())
    return digest.hexdigest()
