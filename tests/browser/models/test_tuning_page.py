"""LoRA in a page: a step trains there as in Python, and a language model writes with what the step has learnt; so does Python, with the
file that the page made of it."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sites import serving, until
from tiny_language import tiny_gguf

import singe as sg
from singe.tools.export.tuning import export_tuning
from singe.tools.serving.folder_server import Server

TEXT = "hello world, hello all of you"
STEPS = 8
TRAINS = """
const step = await load(FOLDER + "step/", { device: DEVICE, threads: 1 });
const llm = await load(FOLDER + "read/", { device: DEVICE, threads: 1, worker: false });
const greedy = { temperature: 0, maxTokens: 8 };
const session = step.session();
const found = { losses: [], before: await llm.generate("hello", greedy).text() };
const [batch] = await llm.examples(TEXT, step.inputs[0].shape[1]);
for (let k = 0; k < STEPS; k++) {
  const { loss } = await session.step(batch);
  found.losses.push(loss.data[0]);
}
const states = {};
for (const { name } of session.states) if (name.startsWith("model.")) states[name] = await session.read(name);
await llm.adapt(states);
found.after = await llm.generate("hello", greedy).text();
found.file = Array.from(new Uint8Array(await (await llm.adapterFile(states)).arrayBuffer()));
const other = llm.session();
found.other = await other.generate("hello", greedy).text();
await other.adapt(states);
found.same = await other.copy().generate("hello", greedy).text();
await other.generate("hello", greedy).text();
const resumed = llm.session();
await resumed.load(await other.save());
found.resumed = await resumed.generate("hello", greedy).text();
await llm.dispose();
await step.dispose();
"""
IN_NODE = "import { load } from SINGE;\n" + TRAINS + "process.stdout.write(JSON.stringify(found));"
PAGE = (
    '<!doctype html><meta charset="utf-8"><title>wait</title><link rel="icon" href="data:,"><script type="module">\n'
    'import { load } from "./read/singe.js";\n'
    + TRAINS
    + 'globalThis.found = found;\ndocument.title = "done";\n</script>'
)


@pytest.fixture(scope="module")
def tuning(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """A folder with a step and a model that reads; what Python's step makes of the text."""
    folder = tmp_path_factory.mktemp("tune")
    path = tiny_gguf(folder / "tiny.gguf")
    targets = ["q_proj", "v_proj", "down_proj"]
    bundles = export_tuning(path, folder, rank=4, length=32, lr=2e-2, learn=targets, context=64)
    assert any(w["file"].startswith("../read/") for w in bundles["step"].manifest["targets"]["wasm"]["weights"])
    llm = sg.language.load(path, "numpy", context=64, activations="float32")
    adapter = sg.language.lora(llm, 4, targets=targets, rng=0)
    step = sg.train.TrainStep(adapter, sg.optim.AdamW(2e-2), sg.language.next_token_loss, device="numpy", seed=0)
    batch = next(iter(sg.data.Loader(sg.language.examples(llm, TEXT, 32), 1)))
    greedy: Any = {"temperature": 0, "max_tokens": 8}
    wanted: dict[str, Any] = {
        "before": llm.generate("hello", **greedy).text,
        "losses": [float(step(*batch)) for _ in range(STEPS)],
    }
    llm.adapters["a"] = step.model
    wanted["after"] = llm.adapter("a").generate("hello", **greedy).text
    return folder, wanted


def written(script: str, device: str) -> str:
    filled = script.replace("TEXT", json.dumps(TEXT)).replace("STEPS", str(STEPS))
    return filled.replace("DEVICE", json.dumps(device))


def check(found: dict[str, Any], wanted: dict[str, Any], folder: Path) -> None:
    np.testing.assert_allclose(found["losses"], wanted["losses"], rtol=2e-3)
    assert found["losses"][-1] < found["losses"][0] / 2
    assert (found["before"], found["after"]) == (wanted["before"], wanted["after"])
    assert [found[name] for name in ("other", "same", "resumed")] == [wanted["before"], *[wanted["after"]] * 2]
    path = folder / "adapter.gguf"
    path.write_bytes(bytes(found["file"]))
    llm = sg.language.load(folder / "tiny.gguf", "numpy", context=64, activations="float32")
    llm.adapters["a"] = sg.language.load_adapter(llm, path)
    assert llm.adapter("a").generate("hello", temperature=0, max_tokens=8).text == wanted["after"]


@pytest.mark.slow
def test_in_node(tuning: Any) -> None:
    if shutil.which("node") is None:
        pytest.skip("no node here")
    folder, wanted = tuning
    script = written(IN_NODE, "wasm").replace("SINGE", json.dumps(f"{(folder / 'read').as_uri()}/singe.js"))
    done = subprocess.run(
        ["node", "--input-type=module", "-"], input=script.replace("FOLDER", json.dumps(f"{folder.as_uri()}/")),
        capture_output=True, text=True, timeout=240, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    check(json.loads(done.stdout), wanted, folder)


@pytest.mark.slow
def test_in_a_page_on_webgpu(browser: Any, tuning: Any) -> None:
    folder, wanted = tuning
    (folder / "page.html").write_text(written(PAGE, "webgpu").replace("FOLDER", json.dumps("./")))
    with serving(Server(folder, port=0)) as server, browser.new_page() as page:
        page.goto(f"{server.address}page.html")
        until(page, "document.title === 'done'", 300)
        check(page.evaluate("globalThis.found"), wanted, folder)
