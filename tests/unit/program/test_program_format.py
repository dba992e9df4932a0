"""The file format singe/3: as documented, the same after a round trip, and refused when it is damaged."""

from __future__ import annotations

import errno
import json
import os
import re
import time
import tracemalloc
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from containers import flipped, joined, split, with_hostile_values
from networks.every_group import WORDS, every_group

import singe as sg
from singe.compiler.compile import compile_graph
from singe.compiler.target import find_target
from singe.dtypes import float32
from singe.errors import DeviceError, FormatError, InputError
from singe.files import write
from singe.graph import Builder, Graph
from singe.model.program import write_program
from singe.program.container import checking
from singe.program.format import STATE, from_bytes, header, made, read_program, to_bytes
from singe.program.program import HOST, ProgramData, State
from singe.runtime.registry import open_backend
from singe.shapes import size

DOCUMENT = Path(__file__).parents[3] / "static" / "README.md"
BACKENDS = {HOST: "numpy", "wasm": "wasm", "wgsl": "webgpu"}
"""A target ↦ the backend that runs its Programs."""


def small_program(target: str) -> ProgramData:
    """relu(x · w + b), with a symbolic batch."""
    b = Builder()
    x = b.input("x", (size("N"), 3), float32)
    w = b.const(np.arange(6, dtype=np.float32).reshape(3, 2) - 2)
    y = b.relu(b.add(b.matmul(x, w), b.const(np.array([0.5, -0.5], np.float32))))
    return compile_graph(Graph((x,), (y,), ("y",)), find_target(target))


def documented_program() -> ProgramData:
    """relu(x + c): the example of the document."""
    b = Builder()
    x = b.input("x", (size("N"), 4), float32)
    y = b.relu(b.add(x, b.const(np.array([-1, 0, 1, 2], np.float32))))
    return compile_graph(Graph((x,), (y,), ("y",)), find_target("wgsl"))


# --- the document -----------------------------------------------------------------------------------------------------


def written_fields() -> set[str]:
    """Every field that a file can have, with `.` between levels, except keys that are names (of modules,
    attributes, facts)."""
    found: set[str] = set()

    def walk(data: Any, path: str) -> None:
        if isinstance(data, list):
            for item in data:
                walk(item, path)
        elif isinstance(data, dict):
            path = re.sub(r"^specialised\.(buffers|stops|checks)", r"\1", path)
            if path in ("modules", "facts", "bounds") or path.endswith((".attrs", ".sizes")):
                data = {"*": next(iter(data.values()))} if path == "modules" else {}
            for key, value in data.items():
                name = f"{path}.{key}" if path else key
                found.add(name)
                walk(value, name)

    walk(split(to_bytes(every_group()))[0], "")
    walk(STATE.encode(State("key", 0, None, 1)), "states")
    return found


def test_the_document_names_every_field_and_no_other() -> None:
    """A field's row in a table of static/README.md starts with its name in backquotes: | `buffers.place` | … |"""
    of_programs = DOCUMENT.read_text().split("## The bundle")[0]
    documented = set(re.findall(r"^\| `([a-z0-9_.*]+)` \|", of_programs, re.M))
    assert documented == written_fields()
    assert set(header(every_group())) == {f for f in written_fields() if "." not in f} - {"blocks", "modules", "sha256"}


def test_the_example_in_the_document_is_what_is_written() -> None:
    text, code = re.findall(r"^```(?:json|wgsl)\n(.*?)^```", DOCUMENT.read_text(), re.M | re.S)
    program = documented_program()
    head, _ = split(to_bytes(program))
    shown = json.loads(text)
    assert shown == head
    assert code == program.modules["w0"]


# --- round trips ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("target", BACKENDS)
def test_a_program_runs_the_same_after_a_round_trip(target: str, tmp_path: Path) -> None:
    program = small_program(target)
    write_program(program, tmp_path / "p.singe")
    again = read_program(tmp_path / "p.singe")
    assert to_bytes(again) == to_bytes(program)
    try:
        backend = open_backend(BACKENDS[target])
    except DeviceError as e:
        pytest.skip(f"{target}: {e}")
    for batch in (1, 3):
        x = np.random.default_rng(batch).standard_normal((batch, 3), np.float32)
        one, two = (backend.download(backend.prepare(p).run([backend.upload(x)])[0]) for p in (program, again))
        assert one.shape == (batch, 2)
        np.testing.assert_array_equal(one, two)


def test_every_kind_of_group_survives() -> None:
    program = every_group()
    again = from_bytes(to_bytes(program))
    assert program.words == WORDS
    assert header(again) == header(program)
    assert (again.groups, again.counts, again.modules) == (program.groups, program.counts, program.modules)


def test_composites_that_stay_whole_survive() -> None:
    """A step that looks at the norm of its gradients has some on NumPy."""
    given = sg.nn.Linear(2, 2, rng=0), sg.optim.SGD(0.1), sg.nn.CrossEntropyLoss()
    step = sg.train.TrainStep(*given, device="numpy", seed=0, nonfinite="stop")
    program = step.program(np.ones((3, 2), np.float32), np.array([0, 1, 0])).data
    assert {"joint_norm", "checks"} <= {getattr(stop, "op", "") for stop in program.stops}
    data = to_bytes(program)
    assert from_bytes(data).stops == program.stops
    with pytest.raises(FormatError, match="'layer_norm' on the host, which only a graph has"):
        made(json.loads(json.dumps(header(program)).replace("joint_norm", "layer_norm")), {}, program.weights, "p")


def test_saving_copies_no_weights(tmp_path: Path) -> None:
    program = replace(every_group(), weights=np.ones(1 << 23, np.uint8))
    tracemalloc.start()
    try:
        write_program(program, tmp_path / "p.singe")
        (_, peak) = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < program.weights.size / 8
    assert (tmp_path / "p.singe").read_bytes() == to_bytes(program)


def test_a_file_that_is_saved_over_stays_for_who_has_mapped_it(tmp_path: Path) -> None:
    path = tmp_path / "m.singe"
    model = sg.Model.of(lambda x: x @ np.eye(64, dtype=np.float32), {"x": ("N", 64)}, "numpy")
    sg.save(model, path)
    held, x = sg.load(path, "numpy"), np.ones((1, 64), np.float32)
    sg.compile(sg.Model.of(lambda x: {"y": -x}, {"x": (64,)}, "numpy")).save(path)
    np.testing.assert_array_equal(held(x), x)


def test_two_writers_of_one_file_do_not_disturb_each_other(tmp_path: Path) -> None:
    path = tmp_path / "a"

    def pieces() -> Iterator[bytes]:
        yield b"one"
        write(path, [b"another"])
        yield b" whole"

    write(path, pieces())
    assert path.read_bytes() == b"one whole"
    assert list(tmp_path.iterdir()) == [path]


def test_an_error_of_writing_names_the_file_that_was_asked_for(tmp_path: Path) -> None:
    def pieces() -> Iterator[bytes]:
        yield b"one"
        (tmp_path / "source").read_bytes()

    with pytest.raises(FileNotFoundError) as none:
        write(tmp_path / "none" / "a", [b"one"])
    assert str(none.value).endswith(f"No such file or directory: '{tmp_path / 'none' / 'a'}'")
    with pytest.raises(FileNotFoundError, match="source"):
        write(tmp_path / "a", pieces())
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_can_only_be_read_is_refused_with_the_name_that_was_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: Path, *_: Any, **__: Any) -> None:
        raise OSError(errno.EROFS, "Read-only file system", str(path))

    monkeypatch.setattr(Path, "open", refuse)
    monkeypatch.setattr(Path, "unlink", refuse)
    with pytest.raises(OSError, match="Read-only") as refused:
        write(tmp_path / "p.singe", [b"one"])
    assert refused.value.filename == str(tmp_path / "p.singe")


@pytest.mark.skipif(os.name != "posix", reason="there are no named pipes elsewhere")
def test_a_pipe_is_written_to_and_not_replaced(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    try:
        write(tmp_path / "pipe", [b"one", b" whole"])
        assert os.read(reader, 100) == b"one whole"
    finally:
        os.close(reader)
    assert (tmp_path / "pipe").is_fifo()


def test_a_missing_file_is_an_input_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="No such file"):
        read_program(tmp_path / "none.singe")


# --- damage -----------------------------------------------------------------------------------------------------------


def test_another_version_is_named() -> None:
    head, block = split(to_bytes(every_group()))
    with pytest.raises(
        FormatError, match="'singe/2', this version of Singe reads 'singe/3'; compile, export or save the model again"
    ):
        from_bytes(joined(head | {"format": "singe/2"}, block))


def test_truncation_at_every_offset() -> None:
    data = to_bytes(small_program(HOST))
    for count in range(len(data)):
        with pytest.raises(FormatError):
            from_bytes(data[:count])


def accepts_or_refuses(data: bytes) -> bool:
    """Whether a file is read. The result must be a FormatError, or a Program with valid numbers;
    anything else fails the test."""
    start = time.process_time()
    try:
        p = from_bytes(data)
    except FormatError:
        return False
    finally:
        assert time.process_time() - start < 2
    assert p.slots <= len(p.buffers)
    for b in p.buffers:
        if b.place[0] == "weights":
            p.view(b).view(np.uint8)
    return True


@pytest.mark.slow
def test_flipped_bytes() -> None:
    data = to_bytes(every_group())
    for damaged in flipped(data, 2000):
        accepts_or_refuses(damaged)


def test_flipped_bytes_in_the_block_are_noticed() -> None:
    data = to_bytes(small_program("wgsl"))
    start = len(data) - len(split(data)[1])
    for damaged in flipped(data, 200, start):
        with pytest.raises(FormatError, match="sha256"):
            from_bytes(damaged)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(4))
def test_every_value_replaced_by_hostile_ones(part: int) -> None:
    """The hash is corrected, so that only the other checks can refuse the file."""
    for data in islice(with_hostile_values(to_bytes(every_group())), part, None, 4):
        accepts_or_refuses(data)


REFUSED: dict[str, tuple[Callable[[dict[str, Any]], Any], str]] = {
    "a buffer in a slot that is not there": (lambda h: h["buffers"][2].update(place=["slot", 9]), "slot 9 of 1"),
    "an input that is not there": (lambda h: h["buffers"][0].update(place=["input", 1]), "input 1 of 1"),
    "an output that is not there": (lambda h: h["buffers"][3].update(place=["output", 7]), "output 7 of 1"),
    "a place that is none": (lambda h: h["buffers"][0].update(place=["heap", 0]), "place 'heap'"),
    "weights beyond the block": (lambda h: h["buffers"][1].update(place=["weights", 256]), "8 bytes at 256 of 256"),
    "weights that are not aligned": (lambda h: h["buffers"][1].update(place=["weights", 8]), "8 bytes at 8"),
    "weights of an open size": (lambda h: h["buffers"][1].update(shape=[[[1, "N"]]]), "bytes at 0"),
    "a negative dimension": (lambda h: h["buffers"][0].update(shape=[-3, 4]), "negative"),
    "elements of three bytes": (lambda h: h["buffers"][0].update(size=3), "3 bytes"),
    "an input that lies elsewhere": (lambda h: h.update(inputs=[2]), "input 0 is buffer 2"),
    "a module that is not there": (lambda h: h["kernels"][0]["variants"][0].update(entry="w9"), "'w9'"),
    "more slots than buffers": (lambda h: h.update(slots=2**40), "slots"),
    "a kernel with no variant": (lambda h: h["kernels"][0].update(variants=[]), "no complete variant"),
    "a block beyond the file": (lambda h: h["blocks"].update(weights=[0, 10**9]), "the file holds"),
    "a field that is missing": (lambda h: h.pop("slots"), "slots"),
    "a state that is not there": (lambda h: h["buffers"][4].update(place=["state", 2]), "state 2 of 2"),
    "a state of an open size": (lambda h: h["buffers"][5].update(shape=[[[1, "N"]]]), "expected one of fixed shape"),
    "a state that starts as what is no weight": (lambda h: h["states"][0].update(initial=0), "expected a weight"),
    "keys that are no two words": (lambda h: h["states"][1].update(draws=1), "expected two uint32 numbers"),
    "a count of draws below 0": (lambda h: h["states"][1].update(draws=-1), "expected a count"),
    "a buffer larger than its input": (
        lambda h: h["buffers"].append({**h["buffers"][0], "shape": [[[4, "N"], [1]]]}),
        "buffer 7 takes 16*N + 4 bytes in input 0, which has 16*N",
    ),
    "a buffer larger than its state": (
        lambda h: h["buffers"].append({**h["buffers"][5], "shape": [5]}),
        "buffer 7 takes 20 bytes in state 1, which has 16",
    ),
    "a buffer of strings in an input of numbers": (
        lambda h: h["buffers"].append({**h["buffers"][0], "dtype": "string", "size": 0}),
        "buffer 7 of string lies in input 0, which is of float32",
    ),
    "a buffer in an output without memory": (
        lambda h: (
            h["buffers"][3].update(place=["input", 0]),
            h["buffers"].append({**h["buffers"][3], "place": ["output", 0]}),
        ),
        "buffer 7 lies in output 0, which has no memory of its own",
    ),
    "more elements than a kernel counts": (lambda h: h["buffers"][2].update(shape=[2**31]), "2147483648 elements"),
    "words that are no list": (lambda h: h.update(words="x"), "expected a list, got 'x'"),
    "a word that is no number": (lambda h: h["words"].append(True), "expected a word, an integer of 32 bits, got True"),
    "a word of more bits": (
        lambda h: h["words"].append(2**31),
        "expected a word, an integer of 32 bits, got 2147483648",
    ),
    "a stop of no kind": (lambda h: h["stops"][0].update(do="jump"), "unknown stop 'jump', expected one of host"),
    "a name that is none": (lambda h: h["stops"][0].update(op=None), "expected a string, got None"),
    "two states of one name": (lambda h: h["states"][1].update(name="count"), "two states have one name"),
    "an input of another shape at some sizes": (
        lambda h: h["specialised"][0]["buffers"][0].update(shape=[9, 4]),
        "specialised for {'N': 8}: buffer 0 is not 'x' at these sizes",
    ),
    "fewer buffers at some sizes": (lambda h: h["specialised"][0].update(buffers=[], slots=0), "buffer 0 of 0"),
    "a bound below zero": (lambda h: h["bounds"].update(N=-1), "-1"),
    "dimensions within dimensions within …": (lambda h: h["counts"].__setitem__(0, nested(40)), "a dimension must be"),
}


def nested(depth: int) -> Any:
    return [[1, ["div", nested(depth - 1), 2]]] if depth else [[1, "N"]]


@pytest.mark.parametrize("name", REFUSED)
def test_references_out_of_range(name: str) -> None:
    damage, message = REFUSED[name]
    head, block = split(to_bytes(every_group()))
    damage(head)
    with pytest.raises(FormatError, match=re.escape(message)):
        from_bytes(joined(head, block))


# --- ranges -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "change",
    [
        {"input": 1}, {"input": -1}, {"input": "x"}, {"part": []}, {"part": [{"start": 0, "step": 0, "count": 1}] * 2},
        {"part": [{"start": 0, "step": 1}] * 2}, {"least": [[1, "M"]]}, {"most": None}, {"ignored": 0.5}, {"text": 7},
        {"part": [{"start": [[1, "Q"]], "step": 1, "count": 1}] * 2},
    ],
)  # fmt: skip
def test_a_range_that_points_nowhere_is_refused(change: dict[str, Any]) -> None:
    head = json.loads(json.dumps(header(every_group())))
    head["ranges"][0] |= change
    with pytest.raises(FormatError), checking("the file"):
        made(head, every_group().modules, every_group().weights, "the file")
