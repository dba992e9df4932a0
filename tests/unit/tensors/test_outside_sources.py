"""Entropy of the system and the clock, in functions that are traced."""

from __future__ import annotations

import datetime
import functools
import os
import random
import secrets
import tempfile
import time
import uuid
import warnings
from collections.abc import Callable
from time import time_ns as now
from typing import Any

import numpy as np
import pytest
from numpy.random import PCG64 as Bits

import singe as sg

X = np.array([1, 2], np.float32)
SYSTEM = random.SystemRandom()

ENTROPY: dict[str, Callable[[], Any]] = {
    "PCG64": lambda: np.random.Generator(np.random.PCG64()).integers(2),
    "PCG64 by another name": lambda: np.random.Generator(Bits()).integers(2),
    "MT19937": lambda: np.random.Generator(np.random.MT19937()).integers(2),
    "Philox": lambda: np.random.Generator(np.random.Philox()).integers(2),
    "SFC64": lambda: np.random.Generator(np.random.SFC64()).integers(2),
    "SeedSequence": lambda: np.random.SeedSequence().generate_state(1)[0] % 2,
    "default_rng": lambda: np.random.default_rng().integers(2),
    "RandomState": lambda: np.random.RandomState().randint(2),
    "Random": lambda: random.Random().randint(0, 1),
    "urandom": lambda: os.urandom(1)[0] % 2,
    "randbelow": lambda: secrets.randbelow(2),
    "token_bytes": lambda: secrets.token_bytes(1)[0] % 2,
    "randbits": lambda: secrets.randbits(1),
    "randint": lambda: SYSTEM.randint(0, 1),
    "uuid1": lambda: uuid.uuid1().int % 2,
    "uuid4": lambda: uuid.uuid4().int % 2,
}
SEEDED: dict[str, Callable[[], Any]] = {
    "default_rng": lambda: np.random.default_rng(3).integers(9),
    "Generator": lambda: np.random.Generator(np.random.PCG64(3)).integers(9),
    "RandomState": lambda: np.random.RandomState(3).randint(9),
    "RandomState by name": lambda: np.random.RandomState(seed=3).randint(9),
    "jumped": lambda: np.random.Generator(np.random.PCG64(3).jumped()).integers(9),
    "Random": lambda: random.Random(3).randint(0, 9),
    "uuid5": lambda: uuid.uuid5(uuid.NAMESPACE_DNS, "singe").int % 9,
}
CLOCK: dict[str, Callable[[], Any]] = {
    "time": lambda: int(time.time()) // 10**6,
    "now": lambda: now() // 10**15,
    "perf_counter": lambda: int(time.perf_counter() * 0),
    "datetime.now": lambda: datetime.datetime.now().year,
    "today": lambda: datetime.date.today().year,
    "localtime": lambda: time.localtime().tm_year,
    "strftime": lambda: int(time.strftime("%Y")),
}


def times(read: Callable[[], Any]) -> Any:
    return sg.compile(lambda x: x * float(read()), X)


@pytest.mark.slow
@pytest.mark.parametrize("name", ENTROPY)
def test_entropy_is_refused_with_its_line_also_where_traces_may_agree(name: str) -> None:
    read = ENTROPY[name]
    called, line = name.partition(" ")[0], read.__code__.co_firstlineno
    for _ in range(5):  # half of the traces agree
        with pytest.raises(sg.InputError, match=rf"takes from {called} .* each time \(.*_sources.py, line {line}\)"):
            times(read)


@pytest.mark.parametrize("name", SEEDED)
def test_a_generator_with_a_seed_gives_the_same_in_each_run(name: str) -> None:
    program = times(SEEDED[name])
    for _ in range(2):
        np.testing.assert_array_equal(program(X), X * float(SEEDED[name]()))


def test_what_is_drawn_once_and_remembered_is_as_it_is_eagerly() -> None:
    @functools.cache
    def salt() -> int:
        return secrets.randbelow(1000)

    np.testing.assert_array_equal(times(salt)(X), X * salt())


def test_entropy_that_a_library_takes_for_itself_is_no_concern() -> None:
    def length() -> int:
        with tempfile.TemporaryFile() as file:
            return file.write(b"ab")

    np.testing.assert_array_equal(times(length)(X), X * 2)


@pytest.mark.parametrize("name", CLOCK)
def test_a_function_that_reads_the_clock_and_computes_the_same_is_named_in_a_warning(name: str) -> None:
    read = CLOCK[name]
    called, line = name.rpartition(".")[2], read.__code__.co_firstlineno
    with pytest.warns(UserWarning, match=rf"reads the clock, {called} \(.*_sources.py, line {line}\)") as told:
        times(read)
    assert len(told) == 1
    assert (told[0].filename, told[0].lineno) == (__file__, line)


def test_a_function_of_the_time_is_refused() -> None:
    with pytest.raises(sg.InputError, match=r"takes from perf_counter_ns what is something else each time"):
        times(lambda: time.perf_counter_ns() % 10**6)


def test_the_clock_is_named_once() -> None:
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("default")
        for _ in range(3):
            times(CLOCK["today"])
    assert len(told) == 1


def test_a_time_that_is_given_is_not_the_clock() -> None:
    np.testing.assert_array_equal(times(lambda: time.gmtime(0).tm_year)(X), X * 1970)
