"""Conversations as files: a page and Python go on from each other's; what is not whole, or of another model, is refused."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest
from tiny_language import tiny_gguf

import singe as sg

CONTEXT = 64
HELD = [70 + k % 7 for k in range(20)]
MORE = [*HELD, 80, 81, 82]
SCRIPT = """
import { readFile, writeFile } from "node:fs/promises";
const { load } = await import(FOLDER + "chat/singe.js");
const llm = await load(FOLDER + "chat/", { device: "wasm", threads: 1 });
const generated = async (session, ids, maxTokens) => {
  const answer = session.generate(ids, { temperature: 0, maxTokens });
  return [await answer.text(), answer.usage.reusedTokens];
};
const session = llm.session();
const empty = await session.save();
await generated(session, HELD, 1);
const file = await session.save();
await writeFile(new URL(FOLDER + "page.safetensors"), Buffer.from(await file.arrayBuffer()));
const found = { loaded: [], other: "", broken: [] };
for (const saved of [file, new Blob([await readFile(new URL(FOLDER + "python.safetensors"))])]) {
  const other = llm.session();
  await other.load(saved);
  found.loaded.push([other.tokens, ...(await generated(other, MORE, 8))]);
}
const failed = (given) => session.load(given).then(() => "", ({ code, message }) => `${code}: ${message}`);
found.other = await failed(new Blob([await readFile(new URL(FOLDER + "other.safetensors"))]));
const bytes = new Uint8Array(await file.arrayBuffer());
const length = new DataView(bytes.buffer).getUint32(0, true);
const text = new TextDecoder().decode(bytes.subarray(8, 8 + length));
const data = bytes.subarray(8 + length);
const [keys, values] = ["keys", "values"].map((word) => Object.keys(JSON.parse(text)).find((name) => name.startsWith(word)));
const rebuilt = (change, numbers = data) => {
  const header = JSON.parse(text);
  const made = change(header) ?? header;
  const head = new TextEncoder().encode(typeof made === "string" ? made : JSON.stringify(made));
  return new Blob([BigUint64Array.of(BigInt(head.length)), head, numbers]);
};
const wrong = [
  undefined, null, bytes, new Blob([]), new Blob([BigUint64Array.of(2n ** 63n), bytes]),
  rebuilt(() => "null"), rebuilt(() => "[".repeat(100_000)), rebuilt(() => ({ __metadata__: JSON.parse(text).__metadata__ , tokens: 3 })),
  rebuilt((h) => { h.__metadata__.format = "singe-session/2"; }),
  rebuilt((h) => { h[keys].shape[1] = 2 ** 40; }),
  rebuilt((h) => { h[keys].shape = [[]]; }),
  rebuilt((h) => { h[keys].dtype = "F64"; }),
  rebuilt((h) => { h[keys].data_offsets = [0]; }),
  rebuilt((h) => { h[keys].data_offsets = h[keys].data_offsets.map((at) => at + data.length); }),
  rebuilt((h) => { delete h[values]; }),
  rebuilt((h) => { h.tokens.shape = [2 ** 31]; }),
  rebuilt((h) => { h.tokens.shape = [CONTEXT + 1]; }),
  rebuilt((h) => { h.tokens.dtype = "F32"; }),
  rebuilt(() => undefined, new Uint8Array(data.length).fill(255)),
  ...Array.from({ length: 40 }, (_, k) => file.slice(0, Math.floor((file.size * k) / 40))),
];
for (const given of wrong) found.broken.push(await failed(given));
let state = 7;
const random = (below) => {
  state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
  return Math.floor((state / 2 ** 32) * below);
};
found.codes = [];
for (let k = 0; k < 300; k++) {
  const copy = bytes.slice(0, bytes.length);
  copy[random(8 + length)] = random(256);
  const said = await failed(new Blob([copy]));
  found.codes.push(said && said.split(":")[0]);
}
await session.load(file);
await failed(wrong[10]);
found.kept = [session.tokens, ...(await generated(session, MORE, 8))];
await session.load(empty);
found.empty = [session.tokens, ...(await generated(session, MORE, 8))];
await llm.dispose();
process.stdout.write(JSON.stringify(found));
"""


@pytest.mark.slow
@pytest.mark.full
@pytest.mark.parametrize(("case", "kind"), [("llama3", None), ("lfm2", None), ("qwen3", "int8")])
def test_a_page_and_python_go_on_from_each_others(tmp_path: Path, case: str, kind: str | None) -> None:
    if shutil.which("node") is None:
        pytest.skip("no node here")
    llm = sg.language.load(tiny_gguf(tmp_path / "tiny.gguf", case), "wasm", context=CONTEXT, cache_dtype=kind)
    sg.export(llm, tmp_path / "chat", targets=["wasm"])
    session = llm.session()
    session.feed(HELD)
    session.save(tmp_path / "python.safetensors")
    other = sg.language.load(tiny_gguf(tmp_path / "other.gguf", "qwen2"), "numpy", context=CONTEXT)
    other.session().save(tmp_path / "other.safetensors")
    script = SCRIPT
    for name, value in (("FOLDER", f"{tmp_path.as_uri()}/"), ("HELD", HELD), ("MORE", MORE), ("CONTEXT", CONTEXT)):
        script = script.replace(name, json.dumps(value))
    done = subprocess.run(
        ["node", "--input-type=module", "-"], input=script, capture_output=True, text=True, timeout=240, check=False
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    wanted = llm.generate(MORE, temperature=0, max_tokens=8).text
    held = [len(HELD), wanted, len(HELD)]
    assert found["loaded"] == [held, held]
    assert found["other"].startswith("input: load: a session of another model; give what save()")
    assert all(said.startswith("input: load: ") for said in found["broken"])
    assert set(found["codes"]) <= {"", "input"}
    assert (found["kept"], found["empty"]) == (held, [0, wanted, 0])
    session = llm.session()
    session.load(tmp_path / "page.safetensors")
    assert session.tokens == tuple(HELD)
    assert session.generate(MORE, temperature=0, max_tokens=8).text == wanted
