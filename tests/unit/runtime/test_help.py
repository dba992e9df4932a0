"""What people see of public objects who ask for help, or print them: a text for every name, a few lines for every object."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import singe as sg
from singe import nn, optim
from singe.onnx.backend import BackendRep
from singe.train import Learner, Listener, TrainStep
from singe.train.saving.checkpoints import Checkpoint

ROOMS = (
    "",
    "array_api",
    "array_api.linalg",
    "cluster",
    "data",
    "fft",
    "host",
    "linalg",
    "metrics",
    "nn",
    "nn.init",
    "optim",
    "random",
    "train",
)
LONGEST = 600
"""Characters of the text of an object."""


def public(module: ModuleType) -> dict[str, Any]:
    """The classes and functions of Singe that a module shows."""
    listed = getattr(module, "__all__", None) or (dir(module) if hasattr(module, "__array_api_version__") else None)
    names = listed or [
        name for name, x in vars(module).items() if str(getattr(x, "__module__", "")).startswith(module.__name__)
    ]
    found = {name: getattr(module, name) for name in names if not name.startswith("_")}
    return {name: x for name, x in found.items() if inspect.isclass(x) or inspect.isroutine(x)}


def own_text(x: Any) -> str:
    """Of a dataclass without one, Python makes a text that only repeats its fields."""
    text = (x.__doc__ or "").strip()
    return "" if inspect.isclass(x) and text.startswith(f"{x.__name__}(") else text


@pytest.mark.parametrize("room", ROOMS)
def test_help_says_something_for_every_public_name(room: str) -> None:
    module = import_module(f"singe.{room}" if room else "singe")
    assert (module.__doc__ or "").strip()
    names = public(module)
    assert names
    assert [name for name, x in names.items() if not own_text(x)] == []


@pytest.mark.parametrize("room", ROOMS)
def test_help_says_something_for_every_method(room: str) -> None:
    module = import_module(f"singe.{room}" if room else "singe")
    silent = []
    for name, x in public(module).items():
        for member in vars(x) if inspect.isclass(x) else ():
            kind = inspect.getattr_static(x, member)
            called = inspect.isroutine(kind) or isinstance(kind, (property, classmethod, staticmethod))
            if not member.startswith("_") and called and not inspect.getdoc(getattr(x, member)):
                silent.append(f"{name}.{member}")
    assert silent == []


@pytest.mark.parametrize("room", ROOMS)
def test_help_sends_nobody_to_a_file_that_it_does_not_show(room: str) -> None:
    module = import_module(f"singe.{room}" if room else "singe")
    shown = [
        (
            name if at is None else f"{name}.{at}",
            inspect.getdoc(x if at is None else inspect.getattr_static(x, at)) or "",
        )
        for name, x in public(module).items()
        for at in (None, *(vars(x) if inspect.isclass(x) else ()))
    ]
    assert [name for name, text in shown if "module's docstring" in text or "this folder" in text] == []


def network() -> nn.Module:
    return nn.Sequential(nn.Linear(64, 300), nn.ReLU(), *(nn.Linear(300, 300) for _ in range(8)), nn.Linear(300, 10))


def bundle(folder: Path) -> Any:
    return sg.export(sg.Model.of(network(), {"x": ("N", 64)}, device="numpy"), folder, ["wasm"])


def step(_: Path) -> TrainStep:
    return TrainStep(network(), optim.AdamW(1e-3), nn.MSELoss(), device="numpy")


def stateful(_: Path) -> sg.Model:
    """A model with many inputs and states."""

    def many(*given: sg.Tensor, **states: sg.Tensor) -> Any:
        return {f"output_{k}": x for k, x in enumerate(given)}, states

    shapes = {f"input_number_{k}": (4, 5) for k in range(40)}
    return sg.Model.of(
        many, shapes, "numpy", states={f"state_number_{k}": np.zeros((100, 100), np.float32) for k in range(40)}
    )


OBJECTS: dict[str, Callable[[Path], Any]] = {
    "bundle": bundle,
    "checkpoint": lambda _: Checkpoint(3, {"w": np.zeros((100, 100))}, {"progress": {"step": 3}}),
    "backend of ONNX": lambda _: BackendRep(sg.Model.of(network(), {"x": ("N", 64)}, device="numpy")),
    "learner": lambda folder: Learner(network(), optim.AdamW(1e-3), nn.MSELoss(), device="numpy", run=folder / "r"),
    "model": lambda _: sg.Model.of(network(), {"x": ("N", 64)}, device="numpy"),
    "model of many inputs": stateful,
    "program": lambda _: sg.Model.of(network(), {"x": ("N", 64)}, device="numpy").program(),
    "program of many states": lambda folder: stateful(folder).program(),
    "program's data": lambda _: sg.Model.of(network(), {"x": ("N", 64)}, device="numpy").program().data,
    "session": lambda folder: stateful(folder).session(),
    "training step": step,
    "weights": lambda folder: (sg.save(network(), folder / "w.safetensors"), sg.read_weights(folder / "w.safetensors"))[1],
}  # fmt: skip


@pytest.mark.parametrize("what", OBJECTS)
@pytest.mark.slow
def test_the_text_of_an_object_is_a_few_lines(what: str, tmp_path: Path) -> None:
    """It names the kind of object, and has no weights: those of `repr(bundle)` were its files, byte for byte."""
    text = repr(OBJECTS[what](tmp_path))
    assert len(text) <= LONGEST
    assert len(text.splitlines()) <= 5
    assert (
        text.strip("<")
        .split()[0]
        .lower()
        .startswith(
            ("backendrep", "bundle", "checkpoint", "learner", "model", "program", "session", "trainstep", "weights")
        )
    )


def test_help_of_a_listener_says_what_it_is() -> None:
    assert "each event of a run" in inspect.getdoc(Listener).lower()  # pyright: ignore[reportOptionalMemberAccess]


def test_random_shows_its_functions_only() -> None:
    assert all(inspect.isfunction(getattr(sg.random, name)) for name in dir(sg.random))
