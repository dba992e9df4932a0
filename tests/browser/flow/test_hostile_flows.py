"""Manifests of programs with flow that were changed, and runs that find sizes which cannot be: both are errors that say so."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import pytest
from bundles import STATIC, groups_of
from changed import Edit, edited
from flows import FLOWS
from pages import node

from singe.errors import FormatError
from singe.program.container import PROGRAM, BlockPieces, file_pieces, read
from singe.program.format import from_bytes, to_bytes
from singe.program.words import COPY, JUMP, LOOP, STOP, UNLESS


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the bundles, by name."""
    folder = tmp_path_factory.mktemp("flows")
    for name, make in FLOWS.items():
        make().write(folder / name, name)
    return folder


SUPPORT: Final = Path(__file__).parents[2] / "support"


def more(program: dict[str, Any], index: int, **changed: Any) -> int:
    """Add a buffer like another one; its number."""
    program["buffers"].append({**program["buffers"][index], **changed})
    return len(program["buffers"]) - 1


def stop(program: dict[str, Any], kind: str) -> dict[str, Any]:
    return next(s for s in program["stops"] if s["do"] == kind)


def head(program: dict[str, Any], kind: int) -> int:
    """The position of the first group with this head."""
    return next(at for at, found, _ in groups_of(program) if found == kind)


def put(program: dict[str, Any], at: int, *words: int) -> None:
    program["words"][at : at + len(words)] = words


def pass_over(program: dict[str, Any], kind: str) -> None:
    """Pass over the first stop of a kind."""
    numbers = [k for k, s in enumerate(program["stops"]) if s["do"] == kind]
    put(program, next(at for at, h, rest in groups_of(program) if h == STOP and rest[0] in numbers), JUMP, 1, 3)


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
    "a copy to a smaller buffer": ("counter", lambda p: p["words"].extend(
        [COPY, 3, more(p, p["outputs"][0], shape=[1]), p["inputs"][0], 0])),
    "words that are none": ("collatz", lambda p: p.update(words=None)),
    "a word that is none": ("collatz", lambda p: put(p, 0, "copy")),
    "a group without an end": ("collatz", lambda p: p["words"].pop()),
    "a loop without an end": ("collatz", lambda p: put(p, head(p, UNLESS), COPY, 2)),
    "a condition out of range": ("collatz", lambda p: put(p, head(p, UNLESS) + 3, 99)),
    "a condition of numbers": ("collatz", lambda p: put(p, head(p, UNLESS) + 3, 0)),
    "an empty condition": ("collatz", lambda p: p["buffers"][p["words"][head(p, UNLESS) + 3]].update(shape=[0])),
    "two inputs of one name": ("nested", lambda p: p["buffers"][p["inputs"][0]].update(name="flag")),
    "a count of nothing": ("nested", lambda p: p["counts"].__setitem__(0, "N")),
    "a count by an unknown size": ("nested", lambda p: p["counts"].__setitem__(0, [[1, "M"]])),
    "a count that is not there": ("nested", lambda p: p["counts"].clear()),
    "a kernel in a loop": ("nested", lambda p: put(p, head(p, 0), 99)),
    "a loop that is left elsewhere": ("nested", lambda p: put(p, head(p, LOOP) + 2, 5)),
    "a size that is never found": ("found", lambda p: pass_over(p, "bind")),
    "a size found in some turns only": ("found", lambda p: pass_over(p, "host")),
    "a bind to nothing": ("found", lambda p: stop(p, "bind").update(buffer=None)),
    "a bind to two things": ("found", lambda p: stop(p, "bind").update(dim=1)),
    "a bind to floats": ("found", lambda p: stop(p, "bind").update(buffer=0)),
    "a bind to itself": ("found", lambda p: stop(p, "bind").update(buffer=None, dim=[[1, "K"]])),
    "a check of an unknown size": ("found", lambda p: stop(p, "check").update(dim=[[1, "L"]])),
    "a check of nothing": ("found", lambda p: stop(p, "check").update(dim=None)),
    "a host stop's buffers": ("found", lambda p: stop(p, "host")["outputs"].append(99)),
    "a host stop of no outputs": ("found", lambda p: stop(p, "host").update(outputs=[])),
    "a host stop's attributes": ("found", lambda p: stop(p, "host").update(attrs=[])),
    "stops that are none": ("found", lambda p: p.pop("stops")),
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


WORDS: Final = json.loads((SUPPORT / "networks" / "hostile_words.json").read_text())


def test_hostile_words() -> None:
    """Those of hostile_words.json, which tests/unit/program reads too; the program that they change is let through."""
    body = f"""
    const {{ checkTarget }} = await import({json.dumps((STATIC / "program" / "singe-checks.js").as_uri())});
    return Promise.all(given.programs.map(async (program) => {{
      const [inputs, outputs] = [program.inputs, program.outputs].map((side) => side.map((i) => program.buffers[i]));
      const manifest = {{ targets: {{ wasm: {{ program, modules: {{}}, weights: [] }} }}, inputs, outputs }};
      try {{
        await checkTarget(manifest, "wasm", "wasm");
        return {{}};
      }} catch ({{ name, code, message }}) {{
        return {{ name, code, message }};
      }}
    }}));
    """
    programs = [WORDS["program"], *({**WORDS["program"], **case["changes"]} for case in WORDS["cases"])]
    first, *answers = node(body, programs=programs)
    assert first == {}
    for case, answer in zip(WORDS["cases"], answers, strict=True):
        assert (answer.get("name"), answer.get("code")) == ("SingeError", "format"), (case["name"], answer)
        assert case["text"] in answer["message"], (case["name"], answer)


def test_a_host_op_that_is_not_there_is_named_before_anything_runs(root: Path, tmp_path: Path) -> None:
    folder = spoilt(
        root, tmp_path / "found", "found", lambda p: [s.update(op="divine") for s in p["stops"] if s["do"] == "host"]
    )
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
