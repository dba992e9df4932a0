"""Every family of language models goes into a page, packed or in floats, and writes there what it writes in Python."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any, Final

import pytest
from decoder_cases import CASES
from sites import served
from tiny_language import tiny_folder, tiny_gguf

import singe as sg

pytestmark = pytest.mark.full
CONTEXT: Final = 64
MESSAGES: Final = [{"role": "user", "content": "hello, wall"}]
WRITTEN: Final = """async ({ runner, url, device, messages }) => {
  const { load } = await import(runner);
  const llm = await load(url, { device });
  const text = await llm.chat(messages, { temperature: 0, maxTokens: 12 }).text();
  await llm.dispose();
  return text;
}"""


def packed(path: Path, case: str) -> Path:
    form = pytest.importorskip("gguf").GGMLQuantizationType.Q8_0
    return tiny_gguf(
        path.with_suffix(".gguf"), case, lambda _, x: form if x.ndim == 2 and x.shape[1] % 32 == 0 else None
    )


@pytest.mark.parametrize("form", [packed, tiny_folder])
@pytest.mark.parametrize(("case", "held"), [*((case, None) for case in CASES), ("qwen3", "int8")])
def test_pages_write_what_python_does(case: str, held: str | None, form: Any, tmp_path: Path, browser: Any) -> None:
    source, folder = form(tmp_path / "model", case), tmp_path / "chat"
    llm = sg.language.load(source, "wasm", context=CONTEXT, cache_dtype=held)
    wanted = llm.chat(MESSAGES, temperature=0, max_tokens=12).text
    # Floats, which WebGPU computes in, may decide a near tie otherwise than integers of 16 bits.
    floats = sg.language.load(source, "numpy", context=CONTEXT, cache_dtype=held)
    in_floats = floats.chat(MESSAGES, temperature=0, max_tokens=12).text
    sg.export(llm, folder)
    given = {
        "messages": MESSAGES,
        "device": "wasm",
        "runner": (folder / "singe.js").as_uri(),
        "url": f"{folder.as_uri()}/",
    }
    assert in_node(given) == wanted
    with served(folder) as address:
        page = browser.new_page()
        page.goto(f"{address}model.json")
        texts = {
            "wasm": wanted,
            **({"webgpu": in_floats} if form is packed else {}),
        }  # in software it takes long to compile
        for device, text in texts.items():
            assert page.evaluate(WRITTEN, {**given, "device": device, "runner": "/singe.js", "url": "./"}) == text
        page.close()


def in_node(given: dict[str, Any]) -> Any:
    if shutil.which("node") is None:
        pytest.skip("no node here")
    script = f"console.log(JSON.stringify(await ({WRITTEN})({json.dumps(given)})));"
    done = subprocess.run(
        ["node", "--input-type=module", "-"], input=script, capture_output=True, text=True, timeout=240, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
