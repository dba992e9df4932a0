"""Programs of random graphs with one to three changes of their headers, most of them of words, counts and stops: each is
refused, or runs, but never ends in an error of another kind than Singe's, nor takes much memory.

python tests/support/networks/random_graphs/hostile_programs.py numpy 0 3000      # these seeds; prints each failure and how many there are
"""

from __future__ import annotations

import argparse
import copy
import random
import signal
import sys
import traceback
from collections.abc import Iterator, Sequence
from functools import cache, partial
from itertools import accumulate
from pathlib import Path
from typing import Any, Final

if __name__ == "__main__":
    sys.path[:0] = [str(Path(__file__).parents[2])]

import numpy as np
from containers import HOSTILE, joined, places, split
from forked import forked

from networks.random_graphs.draw_flow import Drawn, draw
from networks.random_graphs.drawn import kinds_on
from singe.compiler.compile import compile_graph
from singe.errors import SingeError
from singe.program.format import from_bytes, to_bytes
from singe.program.words import AGAIN, JUMP, LOOP, UNLESS
from singe.runtime.devices import device as open_device

SECONDS: Final = 10
"""After so long a case ends: a changed loop may go on forever."""
MOST_BYTES: Final = 1 << 30
"""The most memory that a case may take."""
JUMPS: Final = (JUMP, UNLESS, LOOP, AGAIN)
BASES: Final = 60
"""How many random graphs there are: one for the seeds with an equal remainder."""


@cache
def base(device_name: str, number: int) -> tuple[Drawn, dict[str, Any], bytes]:
    """A random graph, and the header and the block of its Program."""
    drawn = draw(number, kinds_on(device_name))
    backend: Any = open_device(device_name).backend  # pyright: ignore[reportAttributeAccessIssue]
    return drawn, *split(to_bytes(compile_graph(drawn.graph, backend.target)))


def at(data: Any, path: tuple[Any, ...]) -> Any:
    """The value in JSON data at this path."""
    for key in path:
        data = data[key]
    return data


WORK: Final = ("words", "counts", "stops")
"""The fields that say what a run does."""


def change(head: dict[str, Any], rng: random.Random) -> None:
    """Change one value of a header: to a hostile one, to another value of the same name, or in its order or number; or
    change whole groups of words."""
    paths = [p for p in places(head) if p and p[0] not in ("sha256", "format", "blocks", "modules", "facts")]
    draw = rng.random()
    if draw < 0.25 and change_groups(head, rng):
        return
    field = rng.choice(WORK)
    work = [p for p in paths if p[0] == field]
    path = rng.choice(work if work and draw < 0.7 else paths)
    inner, key = at(head, path[:-1]), path[-1]
    value = inner[key]
    match rng.randrange(6):
        case 0:
            inner[key] = copy.deepcopy(rng.choice(HOSTILE))
        case 1 if type(value) is int:
            inner[key] = rng.choice((value + 1, value - 1, 2 * value, -value, rng.randrange(-7, 8), 10**9))
        case 2:
            del inner[key]
        case 3 if isinstance(inner, list):
            inner.insert(rng.randrange(len(inner) + 1), copy.deepcopy(value))
        case 4 if isinstance(inner, list):
            other = rng.randrange(len(inner))
            inner[key], inner[other] = inner[other], value
        case _:
            names = [k for k in path if isinstance(k, str)]
            alike = [p for p in paths if [k for k in p if isinstance(k, str)] == names and len(p) == len(path)]
            inner[key] = copy.deepcopy(at(head, rng.choice(alike)))


def groups_of(words: Sequence[Any]) -> list[list[int]]:
    """The groups of words; none if an earlier change left no whole ones."""
    found: list[list[int]] = []
    at = 0
    while at < len(words):
        count = words[at + 1] if at + 1 < len(words) else None
        group = list(words[at : at + 2 + count]) if type(count) is int and count >= 0 else []
        if len(group) < 2 or len(group) != 2 + group[1] or any(type(word) is not int for word in group):
            return []
        found.append(group)
        at += len(group)
    return found


def change_groups(head: dict[str, Any], rng: random.Random) -> bool:
    """Take a whole group away, double it, put it elsewhere, or let it jump to another one; most of the time all jumps lead
    to the same groups as before. Returns whether there are groups."""
    if not isinstance(head.get("words"), list):
        return False
    groups = groups_of(head["words"])
    if not groups:
        return False
    starts = {at: k for k, at in enumerate(accumulate(map(len, groups), initial=0))}
    end = [0, 0]
    there = [*groups, end]
    leads = {
        id(g): there[starts[at + g[2]]]
        for at, g in zip(starts, groups, strict=False)
        if g[0] in JUMPS and g[1] and at + g[2] in starts
    }
    k = rng.randrange(len(groups))
    group = groups[k]
    match rng.randrange(4):
        case 0:
            del groups[k]
            for jump, to in leads.items():
                if to is group:
                    leads[jump] = there[k + 1]
        case 1:
            again = [*group]
            groups.insert(rng.randrange(len(groups) + 1), again)
            if id(group) in leads:
                leads[id(again)] = leads[id(group)]
        case 2:
            groups.insert(rng.randrange(len(groups)), groups.pop(k))
        case _:
            jumps = [g for g in groups if id(g) in leads]
            if jumps:
                leads[id(rng.choice(jumps))] = rng.choice(there)
    if rng.random() < 0.9:
        places = {id(g): at for g, at in zip((*groups, end), accumulate(map(len, groups), initial=0), strict=True)}
        for g in groups:
            if id(g) in leads and id(leads[id(g)]) in places:
                g[2] = places[id(leads[id(g)])] - places[id(g)]
    head["words"] = [word for g in groups for word in g]
    return True


def case(device_name: str, seed: int) -> tuple[Drawn, bytes]:
    """A graph, and a file of its Program with changes."""
    drawn, head, block = base(device_name, seed % BASES)
    rng, head = random.Random(seed), copy.deepcopy(head)
    for _ in range(rng.choice((1, 1, 2, 3))):
        change(head, rng)
    return drawn, joined(head, block)


def attempt(device_name: str, seed: int) -> bool:
    """Read, prepare and run a case; whether it was run. Errors that are not Singe's are raised."""
    drawn, data = case(device_name, seed)
    try:
        backend: Any = open_device(device_name).backend  # pyright: ignore[reportAttributeAccessIssue]
        program = backend.prepare(from_bytes(data))
        states = program.new_states()
        for n, m in ((3, 2), (1, 1), (0, 5)):
            arrays = drawn.arrays({"N": n, "M": m}, 0)
            if len(arrays) != len(program.program.inputs):
                return False
            run = program.run([backend.upload(np.array(a)) for a in arrays], states)
            for y in run:
                backend.download(y)
    except SingeError:
        return False
    return True


def fault(device_name: str, seed: int) -> str:
    """The end of the traceback of an error that is not Singe's."""
    try:
        attempt(device_name, seed)
    except BaseException:
        return traceback.format_exc(limit=-3)[-3000:]
    return ""


def failures(device_name: str, seeds: range) -> Iterator[str]:
    """What went wrong, case by case. Each case has a process of its own."""
    for number in range(BASES):
        base(device_name, number)
    for seed in seeds:
        text, ended, taken = forked(partial(fault, device_name, seed), SECONDS)
        if ended not in (0, signal.SIGALRM):
            text = f"ended by signal {ended}"
        if taken > MOST_BYTES:
            text += f"took {taken / 1e9:.1f} GB"
        if text:
            yield f"seed {seed} on {device_name}: {text}"


def main() -> int:
    parser = argparse.ArgumentParser(description="Read and run changed Programs.")
    parser.add_argument("device")
    parser.add_argument("first", type=int)
    parser.add_argument("end", type=int)
    options = parser.parse_args()
    count = 0
    for text in failures(options.device, range(options.first, options.end)):
        print(text)
        count += 1
    print(f"{count} of {options.end - options.first} fail")
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main())
