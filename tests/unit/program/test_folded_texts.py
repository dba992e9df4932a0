"""Modules of a bundle in which lines that were there before are references."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from singe.errors import InputError
from singe.program.folded_texts import folded_texts, unfolded_texts

SCRIPT = Path(__file__).parents[3] / "static" / "program" / "singe-folded-texts.js"
UNROLLED = [f"s{i}_{k} = s{i}_{k} + left{i}.x * right[{k}i][{16 * k + 7}i];" for k in range(8) for i in range(8)]
TEXTS = {
    "w0": "\n".join(["fn main() {", "let x = 0x7f800000u;", "let y = 1.5e-05f;", "}"]),
    "w1": "\n".join(["fn main() {", *UNROLLED, "}", ""]),
    "w2": "\n".join(["fn main() {", "", *UNROLLED, *(f"let v{k} = {9 - k}i;" for k in range(10)), "}"]),
    "w3": "\n".join(f"let v{k} = 0{k}.0{2 * k}f + {10**15 * k}{10**15 * k};" for k in range(9)),
    "w4": "a\n" * 40,
    "w5": "",
}
WRONG = (
    ["=1,0"], ["a", "=1,1"], ["a", "=1+1"], ["a1", "b2", "=1+1"], ["a3", "a1", "=2+1"], ["a1", "a2", "=9+0"], ["a1 2", "a1", "=1+1"],
    ["a", "=999999999,0"], [f"a{2**53 - 2}", f"a{2**53 - 1}", "=1+1"],
)  # fmt: skip


def unfolded_in_node(texts: dict[str, str]) -> subprocess.CompletedProcess[str]:
    node = shutil.which("node")
    if node is None:
        pytest.skip("no node")
    code = f"""const {{ unfoldedTexts }} = await import({json.dumps(SCRIPT.as_uri())});
    let text = "";
    for await (const part of process.stdin) text += part;
    try {{
      process.stdout.write(JSON.stringify(unfoldedTexts(JSON.parse(text))));
    }} catch (error) {{
      process.stdout.write(String(error.code));
    }}"""
    command = [node, "--input-type=module", "-e", code]
    return subprocess.run(command, input=json.dumps(texts), capture_output=True, text=True, timeout=60, check=True)


def test_lines_that_were_there_are_references() -> None:
    short = folded_texts(TEXTS)
    assert unfolded_texts(short) == TEXTS
    # Of the loops: the first turns, then one reference; the second text has one for both.
    assert len(short["w1"].split("\n")) < 12
    assert len(short["w2"].split("\n")) < 9
    assert all(line in TEXTS["w3"].split("\n") for line in short["w3"].split("\n")[:3])


@pytest.mark.slow
def test_scripts_read_the_same_texts() -> None:
    assert json.loads(unfolded_in_node(folded_texts(TEXTS)).stdout) == TEXTS


@pytest.mark.parametrize("lines", WRONG)
def test_what_no_reference_can_mean_is_refused(lines: list[str]) -> None:
    with pytest.raises(ValueError, match=r"no such lines|no line goes on|at most|more than"):
        unfolded_texts({"w0": "\n".join(lines)})


@pytest.mark.slow
@pytest.mark.parametrize("lines", WRONG)
def test_scripts_refuse_it_too(lines: list[str]) -> None:
    assert unfolded_in_node({"w0": "\n".join(lines)}).stdout == "format"


@pytest.mark.parametrize(("bound", "fits"), [("MAX_CHARACTERS", 20), ("MAX_LINES", 4)])
def test_no_more_is_folded_than_readers_take(bound: str, fits: int, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = {"w0": "let a = 1;", "w1": "\n\nlet b;"}  # 20 characters in 4 lines, with the ends of lines
    monkeypatch.setattr(f"singe.program.folded_texts.{bound}", fits)
    assert unfolded_texts(folded_texts(texts)) == texts
    monkeypatch.setattr(f"singe.program.folded_texts.{bound}", fits - 1)
    with pytest.raises(
        InputError, match=r"have 20 characters in 4 lines, expected at most \d+ in \d+.*: export a smaller"
    ):
        folded_texts(texts)


def test_a_line_that_looks_like_a_reference_is_not_folded() -> None:
    with pytest.raises(ValueError, match="begins with ="):
        folded_texts({"w0": "=1,0"})
