"""What a reader refuses of a Program's words, and that any words that it accepts are a run that ends."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from time import process_time
from typing import Any, Final

import pytest
from containers import joined, split
from networks.every_group import WORDS, every_group
from networks.random_graphs import hostile_programs

from singe.errors import FormatError
from singe.program.checks import check_program
from singe.program.format import from_bytes, to_bytes
from singe.program.plan import Plan
from singe.program.program import ProgramData
from singe.program.words import AGAIN, COPY, JUMP, LOOP, STOP, UNLESS, execution_order

Change = Callable[[dict[str, Any]], Any]


def word(*changes: tuple[int, int]) -> Change:
    """Set the words at these positions."""
    return lambda h: [h["words"].__setitem__(at, value) for at, value in changes]


def with_words(*words: int) -> Change:
    """These words alone."""
    return lambda h: h.update(words=[*words])


def without(at: int, count: int) -> Change:
    def change(h: dict[str, Any]) -> None:
        del h["words"][at : at + count]

    return change


def behind(*words: int) -> Change:
    """More words at the end, which is 63."""
    return lambda h: h["words"].extend(words)


NOP: Final = (COPY, 3, 3, 0, 0)
"""A copy of x to y."""
FLAG: Final = 6

REFUSED: dict[str, tuple[Change, str]] = {
    # groups
    "a head alone": (behind(COPY), "the group at word 63 is not complete"),
    "a group that ends behind the words": (behind(COPY, 3, 3, 0), "the group at word 63 is not complete"),
    "a count below zero": (word((1, -1)), "the group at word 0 is not complete"),
    "a count that is too large": (word((61, 2**31 - 1)), "the group at word 60 is not complete"),
    "a kernel that is not there": (word((0, 1)), "word 0 is 1, expected one of 1 kernels"),
    "a head that is none": (word((0, -7)), "word 0 is -7, expected one of 1 kernels"),
    "a call with too few words": (
        with_words(0, 2, 0, 2),
        "the call of kernel 0 at word 0 has 2 words, expected 2 buffers and 1 sizes",
    ),
    "a call with too many words": (with_words(0, 4, 0, 2, 0, 0), "has 4 words, expected 2 buffers and 1 sizes"),
    "a copy with too few words": (with_words(COPY, 2, 3, 0), "a copy at word 0 has 2 words, expected 3"),
    "a jump without a distance": (behind(JUMP, 0), "a jump at word 63 has 0 words, expected 1"),
    "a branch with more words": (with_words(UNLESS, 3, 5, FLAG, 0), "a branch at word 0 has 3 words, expected 2"),
    "a loop with fewer words": (word((31, 2)), "a loop at word 30 has 2 words, expected 3"),
    "a turn's end with more words": (with_words(AGAIN, 2, 4, 0), "a turn's end at word 0 has 2 words, expected 1"),
    "a stop without a number": (behind(STOP, 0), "a stop at word 63 has 0 words, expected 1"),
    "a call of no buffer": (word((2, 44)), "the call of kernel 0 at word 0 names buffer 44 of 7"),
    "a call of a buffer below zero": (word((3, -1)), "the call of kernel 0 at word 0 names buffer -1 of 7"),
    "a copy from no buffer": (word((8, 7)), "a copy at word 5 names buffer 7 of 7"),
    "a copy to a buffer below zero": (word((7, -1)), "a copy at word 5 names buffer -1 of 7"),
    "a copy within a loop": (word((41, 44)), "a copy at word 39 names buffer 44 of 7"),
    "a branch on no buffer": (word((16, 7)), "a branch at word 13 names buffer 7 of 7"),
    "a size that is set": (word((4, 1)), "the call of kernel 0 at word 0 has 1 where a run sets a word, expected 0"),
    "bytes that are set": (word((9, -4)), "a copy at word 5 has -4 where a run sets a word, expected 0"),
    "turns that are left": (word((34, 2)), "a loop at word 30 has 2 where a run sets a word, expected 0"),
    "a count that is not there": (word((33, 1)), "a loop at word 30 has count 1 of 1"),
    "a count of turns below zero": (word((33, -1)), "a loop at word 30 has count -1 of 1"),
    "a stop that is not there": (word((12, 4)), "a stop at word 10 is stop 4 of 4"),
    "a stop below zero": (word((12, -1)), "a stop at word 10 is stop -1 of 4"),
    "a stop that reads no buffer": (lambda h: h["stops"][0].update(inputs=[7]), "a stop names buffer 7 of 7"),
    "a stop that writes no buffer": (lambda h: h["stops"][0].update(outputs=[7]), "a stop names buffer 7 of 7"),
    "a bind of no buffer": (lambda h: h["stops"][1].update(buffer=7), "a stop names buffer 7 of 7"),
    "a stop that no word names, of no buffer": (
        lambda h: h["stops"].append({**h["stops"][1], "buffer": 7}),
        "a stop names buffer 7 of 7",
    ),
    # what they name
    "a copy to a smaller buffer": (word((7, 4), (8, 5)), "a copy moves buffer 5 of 16 bytes to buffer 4 of 8"),
    "a condition of numbers": (word((16, 0)), "buffer 0 for a condition, expected one of bool"),
    "an empty condition": (
        lambda h: h["buffers"][FLAG].update(shape=[0]),
        "buffer 6 for a condition, expected one of bool that is not empty",
    ),
    "an op that writes nothing": (
        lambda h: h["stops"][0].update(outputs=[]),
        "a stop runs 'of_another_package' on the host and writes nothing",
    ),
    "a size that is bound twice": (lambda h: h["stops"][1].update(dim=3), "'M' to a buffer and to a dimension"),
    "a size that is bound to nothing": (lambda h: h["stops"][1].update(buffer=None), "or to neither"),
    "a size from floats": (
        lambda h: h["stops"][1].update(buffer=0),
        "a stop binds 'M' to buffer 0, expected one of int32 or int64",
    ),
    "a size from nothing": (
        lambda h: h["buffers"].append({**h["buffers"][1], "shape": [0]}) or h["stops"][1].update(buffer=7),
        "a stop binds 'M' to buffer 7, expected one of int32 or int64 that is not empty",
    ),
    # jumps
    "a jump into a group": (word((24, 9)), "a jump at word 22 jumps to word 31, where no group begins"),
    "a jump behind the end": (word((24, 42)), "a jump at word 22 jumps to word 64, where no group begins"),
    "a jump before the beginning": (word((53, -52)), "a jump at word 51 jumps to word -1, where no group begins"),
    "a branch into a group": (word((15, 1)), "a branch at word 13 jumps to word 14, where no group begins"),
    "a loop that leaves into a group": (word((32, 18)), "a loop at word 30 jumps to word 48, where no group begins"),
    "a turn's end that goes nowhere": (word((46, -8)), "a turn's end at word 44 jumps to word 36, where no group"),
    "a jump that stays": (word((24, 0)), "a jump at word 22 jumps back to where no condition ends the turns"),
    "a branch that stays": (word((15, 0)), "a branch at word 13 jumps back"),
    "a branch back": (word((37, -5)), "a branch at word 35 jumps back"),
    "a loop that stays": (word((32, 0)), "a loop at word 30 jumps back"),
    "a loop that leaves backwards": (word((32, -30)), "a loop at word 30 jumps back"),
    "a turn's end forward": (word((46, 3)), "a turn's end at word 44 does not count the turns of a loop"),
    "a turn's end that stays": (word((46, 0)), "a turn's end at word 44 does not count the turns of a loop"),
    "a turn's end at its loop": (word((46, -14)), "a turn's end at word 44 does not count the turns of a loop"),
    "a turn's end behind the first group of the turn": (
        word((46, -5)),
        "a turn's end at word 44 does not count the turns of a loop",
    ),
    "a turn's end without a loop": (word((51, AGAIN)), "a turn's end at word 51 does not count the turns of a loop"),
    "a turn's end of a loop that leaves elsewhere": (
        word((32, 24)),
        "a turn's end at word 44 does not count the turns of a loop that ends there",
    ),
    "a second turn's end": (
        with_words(LOOP, 3, 11, 0, 0, AGAIN, 1, 0, AGAIN, 1, -3),
        "a turn's end at word 5 does not count the turns",
    ),
    "a loop without a turn's end": (
        word((44, JUMP), (46, 3)),
        "the turns of the loop at word 30 do not end",
    ),
    "a jump into a loop": (word((24, 13)), "a jump leads to word 35, into a loop at word 30"),
    "a branch into a loop": (word((15, 26)), "a jump leads to word 39, into a loop at word 30"),
    "a branch to a turn's end": (word((15, 31)), "a jump leads to word 44, into a loop at word 30"),
    "a loop that leaves into another": (
        with_words(LOOP, 3, 13, 0, 0, LOOP, 3, 11, 0, 0, AGAIN, 1, -5, AGAIN, 1, -6),
        "a jump leads to word 13, into a loop at word 5",
    ),
    "a jump back into a loop": (word((53, -16), (37, 19)), "a jump at word 51 jumps back into a loop"),
    "a jump back to a call": (word((53, -51)), "a jump at word 51 jumps back to where no condition ends the turns"),
    "a jump back to a loop": (word((53, -21)), "a jump at word 51 jumps back to where no condition ends the turns"),
    "a jump back to a branch that does not leave": (
        word((53, -38)),
        "a jump at word 51 jumps back to where no condition ends the turns",
    ),
    "a jump back to a branch that leaves to the jump": (
        word((49, 4)),
        "a jump at word 51 jumps back to where no condition ends the turns",
    ),
    # what is reached, and sizes
    "a group that no way leads to": (
        with_words(JUMP, 1, 8, *NOP),
        "a copy at word 3 cannot be reached",
    ),
    "a call that no way leads to": (with_words(JUMP, 1, 8, *WORDS[:5]), "the call at word 3 cannot be reached"),
    "a check of a size that is found later": (
        word((56, 3), (62, 1)),
        "a stop at word 54 needs the size K before it is found",
    ),
    "a size of a size that is found later": (
        lambda h: h["stops"][2].update(dim=[[1, "M"]]) or word((56, 2), (59, 1))(h),
        "a stop at word 54 needs the size M before it is found",
    ),
    "a count of turns that is found later": (
        lambda h: h["counts"].__setitem__(0, [[1, "M"]]),
        "a loop at word 30 needs the size M before it is found",
    ),
    "a copy of a size that is found later": (
        lambda h: h["buffers"].append({**h["buffers"][2], "shape": [[[1, "M"]]]}) or word((7, 7))(h),
        "a copy at word 5 needs the size M before it is found",
    ),
    "a call of a size that is found later": (
        lambda h: h["buffers"].append({**h["buffers"][2], "shape": [[[1, "K"]]]}) or word((3, 7))(h),
        "the call at word 0 needs the size K before it is found",
    ),
    "a kernel's size that is found later": (
        lambda h: h["kernels"][0].update(sizes=[[[1, "K"]]]),
        "the call at word 0 needs the size K before it is found",
    ),
    "a kernel's groups of a size that is found later": (
        lambda h: h["kernels"][0]["variants"][0].update(groups=[[[1, "K"]], 1, 1]),
        "the call at word 0 needs the size K before it is found",
    ),
    "an attribute of a size that is found later": (
        lambda h: h["stops"][0]["attrs"].update(axes=[{"size": [[1, "K"]]}]),
        "a stop at word 10 needs the size K before it is found",
    ),
    "a size that only one branch finds": (
        lambda h: (
            h["buffers"][2].update(shape=[[[1, "M"]]]),
            h.update(words=[UNLESS, 2, 7, FLAG, STOP, 1, 1, *NOP[:2], 2, 0, 0]),
        ),
        "a copy at word 7 needs the size M before it is found",
    ),
    "a size that only a turn finds": (
        lambda h: (
            h["buffers"][2].update(shape=[[[1, "M"]]]),
            h.update(words=[LOOP, 3, 11, 0, 0, STOP, 1, 1, AGAIN, 1, -3, *NOP[:2], 2, 0, 0]),
        ),
        "a copy at word 11 needs the size M before it is found",
    ),
    "an output of a size that is never found": (
        lambda h: h["buffers"][3].update(shape=[[[1, "M"]], 4]) or h.update(words=[]),
        "output 0 needs the size M before it is found",
    ),
    # particular sizes
    "a buffer that is not there at some sizes": (
        lambda h: h["specialised"][0]["words"].__setitem__(8, 44),
        "specialised for {'N': 8}: a copy at word 5 names buffer 44 of 7",
    ),
    "a jump to nowhere at some sizes": (
        lambda h: h["specialised"][0]["words"].extend((JUMP, 1, 1)),
        "specialised for {'N': 8}: a jump at word 10 jumps to word 11, where no group begins",
    ),
    "a stop that is not there at some sizes": (
        lambda h: h["specialised"][0]["words"].extend((STOP, 1, 0)),
        "specialised for {'N': 8}: a stop at word 10 is stop 0 of 0",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_words_are_refused(name: str) -> None:
    change, message = REFUSED[name]
    head, block = split(to_bytes(every_group()))
    change(head)
    with pytest.raises(FormatError, match=re.escape(message)):
        from_bytes(joined(head, block))


ACCEPTED: dict[str, Change] = {
    "no words": with_words(),
    "a jump to the next group": with_words(*NOP, JUMP, 1, 3, *NOP),
    "a jump to the end": with_words(*NOP, UNLESS, 2, 9, FLAG, *NOP),
    "a loop without a turn's work": with_words(LOOP, 3, 8, 0, 0, AGAIN, 1, 0),
    "a loop in a loop": with_words(LOOP, 3, 16, 0, 0, LOOP, 3, 8, 0, 0, AGAIN, 1, 0, AGAIN, 1, -8),
    "a loop by condition in a loop by condition": with_words(
        UNLESS, 2, 14, FLAG, UNLESS, 2, 7, FLAG, JUMP, 1, -4, JUMP, 1, -11
    ),
    "a turn that ends early": with_words(LOOP, 3, 17, 0, 0, UNLESS, 2, 9, FLAG, *NOP, AGAIN, 1, -9),
    "a loop left early": with_words(LOOP, 3, 15, 0, 0, UNLESS, 2, 10, FLAG, JUMP, 1, 3, AGAIN, 1, -7, *NOP),
    "a loop with a count in one by condition": with_words(UNLESS, 2, 15, FLAG, LOOP, 3, 8, 0, 0, AGAIN, 1, 0, JUMP, 1, -12),
    "a size that both branches find": lambda h: (
        h["buffers"][2].update(shape=[[[1, "M"]]]),
        h.update(words=[UNLESS, 2, 10, FLAG, STOP, 1, 1, JUMP, 1, 6, STOP, 1, 1, *NOP[:2], 2, 0, 0]),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", ACCEPTED)
def test_words_of_other_shapes_than_the_compilers_are_read(name: str) -> None:
    head, block = split(to_bytes(every_group()))
    ACCEPTED[name](head)
    carry_out(from_bytes(joined(head, block)), {"N": 2})


def nested(depth: int) -> list[int]:
    """Loops in loops, then such by condition."""
    counted = [word for k in range(depth) for word in (LOOP, 3, 8 * (depth - k), 0, 0)]
    counted += [word for k in range(depth) for word in (AGAIN, 1, -8 * k)]
    tested = [word for k in range(depth) for word in (UNLESS, 2, 7 * (depth - k), FLAG)]
    return counted + tested + [word for k in range(depth) for word in (JUMP, 1, -4 - 7 * k)]


@pytest.mark.slow
def test_the_time_of_checks_does_not_grow_with_the_depth() -> None:
    program = replace(every_group(), specialised=(), words=tuple(nested(10_000)))
    start = process_time()
    check_program(program, "deep")
    assert process_time() - start < 5
    carry_out(replace(program, words=tuple(nested(10))), {"N": 0})


# --- any words that are accepted --------------------------------------------------------------------------------------


class Counted(list[int]):
    """Words that end a run which reads too many of them."""

    reads = 0

    def __getitem__(self, at: Any) -> Any:
        self.reads += 1
        assert self.reads < 100_000, "the run does not end"
        return super().__getitem__(at)


def carry_out(program: ProgramData, sizes: Mapping[str, int]) -> None:
    """Check that runs end and stay on groups, if conditions hold never, or at the first few times that they are read."""
    plan = Plan(program.at(sizes), sizes)
    work = {*plan.work}
    for truths in (0, 1, 2, 7):
        left = truths

        def holds(buffer: int) -> bool:
            nonlocal left
            assert 0 <= buffer < len(plan.program.buffers)
            left -= 1
            return left >= 0

        assert {*execution_order(Counted(plan.words), holds)} <= work


def changes(program: ProgramData) -> Iterator[tuple[int, int]]:
    """Positions of words, and other values for each."""
    starts = (*(g.at for g in program.groups), len(program.words))
    for at, old in enumerate(program.words):
        others = (old - 1, old + 1, -old, *range(-7, 4), len(program.buffers) - 1, 2**31 - 1, -(2**31) + 1)
        owner = max(start for start in starts if start <= at)
        yield from ((at, new) for new in sorted({*others, *(start - owner for start in starts)} - {old}))


@pytest.mark.slow
@pytest.mark.parametrize("number", [None, 2, 3, 11, 41, 8, 24])
def test_a_changed_word_is_refused_or_leaves_a_run_that_ends(number: int | None) -> None:
    """Of `every_group`, and of random graphs with control flow."""
    program, accepted = every_group(), 0
    if number is not None:
        _, head, block = hostile_programs.base("numpy", number)
        program = from_bytes(joined(head, block))
    sizes = dict.fromkeys(sorted(program.symbols), 2)
    for at, new in changes(program):
        changed = replace(program, words=(*program.words[:at], new, *program.words[at + 1 :]))
        try:
            check_program(changed, "changed")
        except FormatError:
            continue
        carry_out(changed, sizes)
        accepted += 1
    assert accepted
