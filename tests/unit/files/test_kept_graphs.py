"""A Graph that another process compiled is not compiled again, whatever made it; one that differs in anything is."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tiny_whisper
from tiny_voice import kokoro_in

import singe as sg
from singe.files import kept
from singe.model.kept import KeptModel, kept_by_graph
from singe.weights.digest import graph_digest

pytestmark = pytest.mark.slow

X = np.arange(12, dtype=np.float32).reshape(3, 4)
W = np.linspace(-1, 1, 16, dtype=np.float32).reshape(4, 4)


@pytest.fixture(autouse=True)
def cache_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SINGE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "compiled"


def product(weights: np.ndarray = W, axis: int = 1, name: str = "y", rows: int | str = "n") -> sg.Model:
    """The sums of relu(x @ w) along an axis."""

    def function(x: sg.Tensor) -> dict[str, sg.Tensor]:
        return {name: (x @ sg.tensor(weights)).relu().sum(axis)}

    return sg.Model.of(function, {"x": (rows, 4)}, "wasm")


def counter(first: float, states: str = "count") -> sg.Model:
    def function(x: sg.Tensor, **held: sg.Tensor) -> tuple[sg.Tensor, dict[str, sg.Tensor]]:
        total = held[states] + x
        return total, {states: total}

    return sg.Model.of(function, {"x": (1,)}, "wasm", states={states: np.array([first], np.float32)})


def was_kept(model: sg.Model, **shapes: tuple[int, ...]) -> bool:
    return model.program(shapes or None).data.seconds == 0


@pytest.mark.parametrize("device", ["numpy", "wasm"])
def test_an_equal_graph_is_not_compiled_again(device: str) -> None:
    def model() -> sg.Model:
        return kept_by_graph(product().on(sg.device(device), product().options))

    first = model()
    expected = first(X)
    assert not was_kept(first, x=(3, 4))
    second = model()
    np.testing.assert_array_equal(second(X), expected)
    np.testing.assert_array_equal(second(X[:1]), first(X[:1]))
    assert was_kept(second, x=(3, 4))
    np.testing.assert_allclose(expected, np.maximum(X @ W, 0).sum(1), rtol=1e-5)


CHANGED: list[Callable[[], sg.Model]] = [
    lambda: product(W + 1),
    lambda: product(W.astype(np.float16).astype(np.float32)),
    lambda: product(axis=0),
    lambda: product(name="z"),
    lambda: product(rows=3),
    lambda: product(rows="n<=8"),
    lambda: counter(0.0),
    lambda: counter(1.0),
    lambda: counter(0.0, "total"),
]


def test_each_difference_makes_another_program() -> None:
    kept_by_graph(product())(X)
    for change in CHANGED:
        for again in (False, True):
            plain, model = change(), kept_by_graph(change())
            given = X if plain.inputs[0].name == "x" and len(plain.inputs[0].shape or ()) == 2 else X[0, 1:2]
            np.testing.assert_array_equal(model(given), plain(given))
            assert was_kept(model, x=given.shape) == again
    digests = [graph_digest(change().graph()) for change in CHANGED if change().options.bounds == {}]
    assert None not in digests
    assert len({*digests, graph_digest(product().graph())}) == len(digests) + 1


def test_a_users_op_is_compiled_in_each_process() -> None:
    """Its function is not in the Graph."""

    def doubled(x: Any) -> Any:
        return x * 2

    twice = sg.op("twice_of_test", doubled)
    model = sg.Model.of(twice, {"x": (3,)}, "numpy")
    assert graph_digest(model.graph()) is None
    assert kept_by_graph(model) is model


def test_a_damaged_entry_is_made_anew(cache_folder: Path) -> None:
    expected = kept_by_graph(product())(X)
    kept.finish_keeping()
    entries = sorted(cache_folder.iterdir())
    assert {entry.name.partition("-")[0] for entry in entries} == {"model", "program", "wasm", "weights"}
    for entry in entries:
        whole = entry.read_bytes()
        entry.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
        np.testing.assert_array_equal(kept_by_graph(product())(X), expected)
        kept.finish_keeping()
        assert entry.read_bytes() == whole


def test_nothing_is_kept_where_it_is_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SINGE_CACHE", "off")
    model = product()
    assert kept_by_graph(model) is model


def test_the_next_process_compiles_no_voice(tmp_path: Path) -> None:
    """What Kokoro is joined to, in processes that order sets in other ways."""
    folder = kokoro_in(tmp_path)
    text = (
        "import sys, singe as sg\n"
        "speak = sg.task('speak', sys.argv[1], device='wasm')\n"
        "audio = speak('ba a!', phonemes=True).audio\n"
        "model = speak.model\n"
        "print(next(iter(model._programs)).data.seconds == 0, audio.tobytes().hex())"
    )
    told = [
        subprocess.run(
            [sys.executable, "-c", text, str(folder)],
            env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True, text=True, check=True, timeout=120,
        ).stdout.split()
        for seed in ("1", "2")
    ]  # fmt: skip
    assert [found for found, _ in told] == ["False", "True"]
    assert told[0][1] == told[1][1]


def test_a_whisper_shares_kept_weights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tiny_whisper.hugging_face(tmp_path / "whisper")
    window = tiny_whisper.window()

    def scores() -> np.ndarray:
        model = tiny_whisper.opened(folder).model("wasm")
        model.hear(window, float(window.max()), tiny_whisper.COUNT)
        return model.texts(1).add([tiny_whisper.IDS], len(tiny_whisper.IDS))

    compiled: list[sg.Model] = []
    real = KeptModel._compiled

    def counted(model: KeptModel, *given: Any) -> Any:
        compiled.append(model)
        return real(model, *given)

    monkeypatch.setattr(KeptModel, "_compiled", counted)
    expected = scores()
    assert [model.name for model in compiled] == ["hear", "say"]
    np.testing.assert_array_equal(scores(), expected)
    assert len(compiled) == 2
