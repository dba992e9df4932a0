"""Manifests with odd values in any place: each is loaded and run, or refused with an error that says so. Nothing hangs."""

from __future__ import annotations

import copy
import json
import random
from pathlib import Path
from typing import Any, Final

import pytest
from flows import FLOWS
from networks.quantised_nets import quantised
from pages import open_page

from singe.model.files import load
from singe.tools.export.bundle import export

COUNT: Final = 500
ODD: Final[tuple[Any, ...]] = (
    "constructor", "toString", "__proto__", "", "a/b", "..", "\0", None, True, False, -1, 0, 1, 1.5, 2**31, 2**53, 1e308,
    [], {}, [[]], [None], {"__proto__": {"file": "x"}}, [[1, "constructor"]], [[1, ["div", 1, 0]]], "words", "int8",
)  # fmt: skip
BODY: Final = """
const { ARRAYS } = await import("/static/program/singe-format.js");
const { fetch } = globalThis;
const found = [];
for (const text of given.texts) {
  globalThis.fetch = (url, ...rest) => (String(url).includes("model.json") ? Promise.resolve(new Response(text)) : fetch(url, ...rest));
  let model;
  const said = [];
  const late = new Promise((_, fail) => setTimeout(() => fail(new Error("it took too long")), 10_000));
  try {
    model = await Promise.race([load(given.url, { device: "wasm", cache: false, threads: 1 }), late]);
    said.push("loaded");
    const inputs = Object.fromEntries(model.inputs.map(({ name, dtype, shape }) => {
      const sides = shape.map((d) => (typeof d === "number" ? d : 1));
      const data = new ARRAYS[dtype](sides.reduce((a, b) => a * b, 1));
      return [name, { data, shape: sides }];
    }));
    await Promise.race([model.run(inputs), late]);
    said.push("run");
  } catch ({ name, code, message }) {
    said.push(name, code ?? "", message);
  }
  await model?.dispose();
  found.push(said);
}
globalThis.fetch = fetch;
return found;
"""


def places(data: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    return [path, *(p for key, value in inner for p in places(value, (*path, key)))]


def changed(manifest: dict[str, Any], every: list[tuple[Any, ...]], rng: random.Random) -> str:
    """The manifest with one to three odd values, missing ones, or names that every object has."""
    found = copy.deepcopy(manifest)
    for _ in range(rng.randint(1, 3)):
        *way, last = rng.choice(every)
        try:
            holder = found
            for key in way:
                holder = holder[key]
            what = rng.random()
            if what < 0.2:
                del holder[last]
            elif what < 0.35 and isinstance(holder, dict):
                holder[rng.choice(("constructor", "__proto__", "toString"))] = holder.pop(last)
            elif what < 0.5 and isinstance(holder, list):
                holder.insert(last, copy.deepcopy(holder[last]))
            else:
                holder[last] = copy.deepcopy(rng.choice(ODD))
        except (KeyError, IndexError, TypeError):
            continue  # an earlier change took the place away
    return json.dumps(found)


@pytest.mark.slow
def test_odd_manifests(browser: Any, tmp_path: Path) -> None:
    for name in ("counter", "found", "nested"):
        FLOWS[name]().write(tmp_path / name, name)
    (tmp_path / "model.onnx").write_bytes(quantised("dynamic uint8", 70))
    export(load(tmp_path / "model.onnx", "numpy"), tmp_path / "quantised")
    rng = random.Random(0)
    names = ("counter", "found", "nested", "quantised")
    ways = {"loaded": 0, "SingeError": 0}
    with open_page(browser, tmp_path) as page:
        for name in names:
            manifest = json.loads((tmp_path / name / "model.json").read_text())
            del manifest["targets"]["webgpu"]
            every = [p for p in places(manifest) if p]
            if name == "quantised":  # half of the changes are among the weights
                every += [p for p in every if p[:3] == ("targets", "wasm", "weights")] * 4
            texts = [changed(manifest, every, rng) for _ in range(COUNT // len(names))]
            for text, said in zip(texts, page.run(BODY, texts=texts, url=f"/bundles/{name}/"), strict=True):
                assert said[0] == "loaded" or said[0] == "SingeError", (text[:3000], said)
                assert said[-1] == "run" or "SingeError" in said, (text[:3000], said)
                ways[said[0]] += 1
    assert min(ways.values()) > COUNT // 20
