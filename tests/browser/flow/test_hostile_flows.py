"""Manifests of programs with flow that were changed, and runs that find sizes which cannot be: both are errors that say so."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import pytest
from changed import Edit, edited
from flows import FLOWS
from pages import node

from singe.errors import FormatError
from singe.program.container import PROGRAM, BlockPieces, file_pieces, read
from singe.program.format import from_bytes, to_bytes


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the bundles, by name."""
    folder = tmp_path_factory.mktemp("flows")
    for name, make in FLOWS.items():
        make().write(folder / name, name)
    return folder


def deep(program: dict[str, Any], depth: int = 40) -> None:
    for _ in range(depth):
        program["steps"] = [{"do": "if", "condition": 0, "then": program["steps"], "else": []}]


def more(program: dict[str, Any], index: int, **changed: Any) -> int:
    """Add a buffer like another one; its number."""
    program["buffers"].append({**program["buffers"][index], **changed})
    return len(program["buffers"]) - 1


def loop(program: dict[str, Any]) -> dict[str, Any]:
    return next(s for s in program["steps"] if s["do"] == "loop")


def bind(program: dict[str, Any]) -> dict[str, Any]:
    return next(s for s in program["steps"] if s["do"] == "bind")


def check(program: dict[str, Any]) -> dict[str, Any]:
    return next(s for s in program["steps"] if s["do"] == "check")


def host(program: dict[str, Any]) -> dict[str, Any]:
    return next(s for s in program["steps"] if s["do"] == "host")


HOSTILE: Final[dict[str, tuple[str, Edit]]] = {
    "no states": ("counter", lambda p: p.pop("states")),
    "a state of nothing": ("counter", lambda p: p["states"].__setitem__(0, None)),
    "a state without a name": ("counter", lambda p: p["states"][0].update(name=3)),
    "two states of one name": ("counter", lambda p: p["states"][1].update(name="count")),
    "a state's buffer": ("counter", lambda p: p["states"][0].update(buffer=99)),
    "a state in a slot": ("counter", lambda p: p["states"][0].update(buffer=0)),
    "a state's beginning": ("counter", lambda p: p["states"][0].update(initial=99)),
    "a beginning that is no weight": ("counter", lambda p: p["states"][0].update(initial=0)),
    "a state too far": ("counter", lambda p: p["buffers"][1].update(place=["state", 2])),
    "a state of open size": ("nested", lambda p: p.update(states=[{"name": "s", "buffer": 3, "initial": None}])
                             or p["buffers"][3].update(place=["state", 0])),
    "a buffer that is larger than its state": ("counter", lambda p: more(p, p["states"][0]["buffer"], shape=[2**20])),
    "a buffer that is larger than its input": ("counter", lambda p: more(p, p["inputs"][0], shape=[2**20])),
    "a buffer that is larger than its output": ("counter", lambda p: more(p, p["outputs"][0], shape=[2**20])),
    "a copy to a smaller buffer": ("counter", lambda p: p["steps"].append(
        {"do": "copy", "source": p["inputs"][0], "target": more(p, p["outputs"][0], shape=[1])})),
    "a deep tree": ("collatz", deep),
    "a list that is none": ("collatz", lambda p: loop(p).update(body=None)),
    "a step that is none": ("collatz", lambda p: loop(p)["body"].append(3)),
    "a loop without an end": ("collatz", lambda p: loop(p).update(condition=None)),
    "a condition out of range": ("collatz", lambda p: loop(p).update(condition=99)),
    "a condition of numbers": ("collatz", lambda p: loop(p).update(condition=0)),
    "an empty condition": ("collatz", lambda p: p["buffers"][loop(p)["condition"]].update(shape=[0])),
    "two inputs of one name": ("nested", lambda p: p["buffers"][p["inputs"][0]].update(name="flag")),
    "a count of nothing": ("nested", lambda p: loop(p).update(count="N")),
    "a count by an unknown size": ("nested", lambda p: loop(p).update(count=[[1, "M"]])),
    "a kernel in a loop": ("nested", lambda p: loop(p)["body"][0]["body"][0].update(kernel=99)),
    "too few buffers in a loop": ("nested", lambda p: loop(p)["body"][0]["body"][0]["buffers"].pop()),
    "a size that is never found": ("found", lambda p: p["steps"].remove(bind(p))),
    "a size found too late": ("found", lambda p: p["steps"].append(p["steps"].pop(p["steps"].index(host(p))))),
    "a size found in some turns only": ("found", lambda p: p["steps"].remove(host(p))),
    "a bind to nothing": ("found", lambda p: bind(p).update(buffer=None)),
    "a bind to two things": ("found", lambda p: bind(p).update(dim=1)),
    "a bind to floats": ("found", lambda p: bind(p).update(buffer=0)),
    "a bind to itself": ("found", lambda p: bind(p).update(buffer=None, dim=[[1, "K"]])),
    "a check of an unknown size": ("found", lambda p: check(p).update(dim=[[1, "L"]])),
    "a check of nothing": ("found", lambda p: check(p).update(dim=None)),
    "a host step's buffers": ("found", lambda p: host(p)["outputs"].append(99)),
    "a host step of no outputs": ("found", lambda p: host(p).update(outputs=[])),
    "a host step's attributes": ("found", lambda p: host(p).update(attrs=[])),
}  # fmt: skip


def spoilt(root: Path, folder: Path, name: str, edit: Edit) -> Path:
    """A copy of a bundle in which the program for wasm is changed."""
    return edited(root / name, folder, lambda manifest: edit(manifest["targets"]["wasm"]["program"]))


def test_hostile_manifests(root: Path, tmp_path: Path) -> None:
    folders = [spoilt(root, tmp_path / str(k), name, edit) for k, (name, edit) in enumerate(HOSTILE.values())]
    body = "return Promise.all(given.urls.map((url) => failure(() => load(url, { device: 'wasm' }))));"
    for what, answer in zip(HOSTILE, node(body, urls=[f.as_uri() for f in folders]), strict=True):
        assert answer.get("name") == "SingeError", (what, answer)
        assert answer["code"] == "format", (what, answer)


@pytest.mark.parametrize("what", HOSTILE)
def test_hostile_files(what: str) -> None:
    """Python refuses the same programs."""
    name, edit = HOSTILE[what]
    head, contents = read(to_bytes(FLOWS[name]().program("wasm")), name, PROGRAM)
    block = BlockPieces()
    block.add(contents)
    from_bytes(b"".join(file_pieces(head, block)), name)
    edit(head)
    with pytest.raises(FormatError, match=name):
        from_bytes(b"".join(file_pieces(head, block)), name)


def test_a_host_op_that_is_not_there_is_named_before_anything_runs(root: Path, tmp_path: Path) -> None:
    folder = spoilt(root, tmp_path / "found", "found", lambda p: host(p).update(op="divine"))
    answer = node("return failure(() => load(given.url));", url=folder.as_uri())
    assert answer["code"] == "device"
    assert "no op divine for the host" in answer["message"]


def test_a_negative_size_is_an_error(root: Path) -> None:
    body = "const model = await load(given.url); return failure(() => model.run({ x: Float32Array.of(-1, -2) }));"
    answer = node(body, url=(root / "found").as_uri())
    assert "the size K was found to be -1" in answer["message"]


def test_a_size_that_does_not_fit_is_an_error(root: Path) -> None:
    body = "const model = await load(given.url); return failure(() => model.run({ x: new Float32Array(501).fill(9) }));"
    answer = node(body, url=(root / "found").as_uri())
    assert answer["code"] == "input"
    assert "at most 1000 places" in answer["message"]
    assert "K = 2" in answer["message"]
