"""Ready models as their rows say: fetched from a source that answers here, loaded, and as near to onnxruntime as real models are."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from peer import answers, session

from singe import load, task, zoo
from singe.errors import InputError
from singe.files.zoo import ZooFile, ZooModel
from singe.tasks import PictureMap

pytestmark = [pytest.mark.slow, pytest.mark.full]
BOUND = 1e-3
"""How far an output may be, of its largest value."""
FLOOR = 1e-6
"""How far an output may be in any case: of noise, a detector's probabilities are all next to 0."""
OPEN = 96
"""The number for a dimension that a model leaves open."""
SILERO = {
    "input": np.random.default_rng(0).standard_normal((3, 576), np.float32) * 0.1,
    "h": np.zeros((1, 1, 128), np.float32),
    "c": np.zeros((1, 1, 128), np.float32),
}
VOICE = {
    "input": np.array([[1, 0, 20, 0, 59, 0, 24, 0, 120, 0, 27, 0, 100, 0, 10, 0, 2]], np.int64),
    "input_lengths": np.array([17], np.int64),
    "scales": np.array([0, 1, 0], np.float32),  # no noise, whose numbers differ
}
GIVEN: dict[str, dict[str, np.ndarray]] = {"silero-vad": SILERO, "joe": VOICE}
"""What is given to models that take more than numbers to compute with."""
SAMPLES = Path(__file__).parents[3] / "demos" / "tasks" / "samples"
ASKED = [m for m in zoo.models.values() if m.expected]
NUMBER = re.compile(r"[\d.]+")
HEARD = ("kokoro",)
"""Models whose answers change in length with the last digit: test_speech_models listens to them."""
FILES = [(m, f) for m in zoo.models.values() for f in m.files if f.name.endswith(".onnx") and m.name not in HEARD]


@pytest.fixture(scope="session", autouse=True)
def _cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All tests of a worker fetch into one folder, none into that of the user."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SINGE_CACHE", str(tmp_path_factory.mktemp("zoo")))
        return tmp_path_factory.getbasetemp()


def fetched(model: ZooModel, file: ZooFile) -> Path:
    try:
        return zoo.fetch(f"zoo:{model.name}/{file.name}")
    except InputError as e:
        pytest.skip(f"cannot be fetched here: {e}")


@pytest.mark.parametrize("device", ["numpy", "wasm"])
@pytest.mark.parametrize(("model", "file"), FILES, ids=[f"{m.name}/{f.name}" for m, f in FILES])
def test_agrees_with_onnxruntime(model: ZooModel, file: ZooFile, device: str) -> None:
    path = fetched(model, file)
    peer = session(path)
    rng = np.random.default_rng(0)
    given = dict(GIVEN.get(model.name, {}))
    for spec in () if given else peer.get_inputs():
        known = [d if isinstance(d, int) else model.options.get("size", OPEN) for d in spec.shape]
        shape = known if isinstance(spec.shape[0], int) else [1, *known[1:]]
        if "int" in spec.type:
            given[spec.name] = np.ones(shape, spec.type.removeprefix("tensor(").removesuffix(")"))
        else:
            given[spec.name] = rng.random(shape, np.float32)
    expected = answers(peer, given)
    found = load(str(path), device)(given)
    outputs = found if isinstance(found, dict) else {next(iter(expected)): found}
    for name, wanted in expected.items():
        error = np.abs(outputs[name] - wanted).max()
        assert error <= BOUND * np.abs(wanted).max() + FLOOR, f"{name}: off by {error:.2e}"


def first(answer: Any) -> str:
    """What an answer says first, in words."""
    if isinstance(answer, PictureMap):
        return f"a {answer.name} of {answer.values.mean():.1f} in the mean"
    return str(answer[0])


@pytest.mark.parametrize("device", ["numpy", "wasm"])
@pytest.mark.parametrize("model", ASKED, ids=[m.name for m in ASKED])
def test_a_task_answers_for_its_sample_what_its_row_says(model: ZooModel, device: str) -> None:
    for file in model.files:
        fetched(model, file)
    assert model.expected
    sample, wanted = model.expected
    found = first(task(model.task, f"zoo:{model.name}", device=device)(SAMPLES / sample))
    assert NUMBER.sub("", found) == NUMBER.sub("", wanted)
    for mine, theirs in zip(NUMBER.findall(found), NUMBER.findall(wanted), strict=True):
        assert abs(float(mine) - float(theirs)) <= 1, f"{found}, expected {wanted}"
