"""Whatever takes long says what it is doing, and measures on the device that was asked for."""

from __future__ import annotations

import io
import logging
import time
from collections.abc import Callable
from pathlib import Path
from pkgutil import resolve_name
from typing import Any, TypeVar

import numpy as np
import pytest

import singe as sg
from singe import nn
from singe.model.program import Program
from singe.runtime.device import Device
from singe.tools import cli, progress
from singe.tools.export import bundle
from singe.tools.progress import doing, notes


class Screen(io.StringIO):
    """Standard error as a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """What takes a hundredth of a second takes long."""
    monkeypatch.setattr(progress, "PATIENCE", 0.01)
    monkeypatch.setattr(progress, "PERIOD", 0.01)


S = TypeVar("S", bound=io.StringIO)


def error_stream(stream: S, monkeypatch: pytest.MonkeyPatch) -> S:
    """The stream as standard error; pytest sets its own one after fixtures have been made."""
    monkeypatch.setattr("sys.stderr", stream)
    return stream


def until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 20
    while not condition() and time.monotonic() < end:
        time.sleep(0.005)
    assert condition()


@pytest.mark.usefixtures("soon")
def test_a_terminal_has_one_line_that_is_cleared(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = error_stream(Screen(), monkeypatch)
    with doing("the whole") as work:
        until(lambda: "the whole …" in screen.getvalue())
        with doing("a part"):
            until(lambda: "a part …" in screen.getvalue())
        work("the rest \x1b[2J of it")
        until(lambda: r"the rest \x1b[2J of it …" in screen.getvalue())
    assert "\n" not in screen.getvalue()
    assert screen.getvalue().endswith("\r\x1b[K")
    assert work.seconds > 0


@pytest.mark.usefixtures("soon")
def test_elsewhere_there_are_few_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = error_stream(io.StringIO(), monkeypatch)
    with doing("the whole"):
        time.sleep(0.3)
    lines = plain.getvalue().splitlines()
    assert 1 <= len(lines) <= 3, "after 0.01, 0.06 and 0.31 seconds"
    assert all(line.startswith("the whole …") for line in lines)


@pytest.mark.parametrize("stream", [Screen, io.StringIO])
def test_what_is_quick_says_nothing(stream: type[io.StringIO], monkeypatch: pytest.MonkeyPatch) -> None:
    made = error_stream(stream(), monkeypatch)
    with notes(), doing("the whole") as work:
        work("a part")
        logging.getLogger("singe").info("a message")
    assert made.getvalue() == ""


@pytest.mark.usefixtures("soon")
def test_messages_of_the_library_are_what_is_being_done(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = error_stream(Screen(), monkeypatch)
    with notes(), doing("the whole"):
        logging.getLogger("singe.tune").info("measured %d of 9", 3)
        until(lambda: "measured 3 of 9 …" in screen.getvalue())
        logging.getLogger("singe").warning("take care")
        until(lambda: "singe: take care\n" in screen.getvalue())


@pytest.fixture
def model(tmp_path: Path) -> Path:
    sg.save(
        sg.Model.of(nn.Sequential(nn.Linear(4, 8), nn.ReLU()), {"x": (1, 4)}, device="numpy"), tmp_path / "net.singe"
    )
    np.save(tmp_path / "x.npy", np.zeros((1, 4), np.float32))
    return tmp_path / "net.singe"


COMMANDS: dict[str, tuple[str, str, Callable[[Path], list[Any]]]] = {
    "bench": (
        "singe.model.model:Model.program",
        "compiling",
        lambda m: ["bench", m, "--device", "numpy", "--repeat", 2],
    ),
    "bench of devices": (
        "singe.tools.measuring.bench:kernel_seconds",
        "numpy: product of 512³",
        lambda _: ["bench", "--device", "numpy"],
    ),
    "compile": (
        "singe.tools.commands:write_program",
        "writing",
        lambda m: ["compile", m, "--device", "numpy", "-o", m.parent / "p.singe"],
    ),
    "devices": ("singe.tools.commands:all_devices", "opening devices", lambda _: ["devices"]),
    "diff": ("singe.tools.commands:compare", "comparing", lambda m: ["diff", m, "--devices", "wasm"]),
    "export": ("singe.tools.exporting:export_bundle", "exporting", lambda m: ["export", m, "-o", m.parent / "b"]),
    "export's table": (
        "singe.tools.exporting:describe_bundle",
        "compressing, for the sizes with gzip",
        lambda m: ["export", m, "-o", m.parent / "b"],
    ),
    "run": (
        "singe.tools.commands:model_on_device",
        "loading",
        lambda m: ["run", m, "--device", "numpy", "--input", m.parent / "x.npy"],
    ),
}
"""The function that takes long, what is then said, and the command."""


@pytest.mark.slow
@pytest.mark.usefixtures("soon")
@pytest.mark.parametrize("what", COMMANDS)
def test_a_command_that_takes_long_says_what_it_does(what: str, model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name, said, argv = COMMANDS[what]
    taken = resolve_name(name)

    def slow(*args: Any, **named: Any) -> Any:
        until(lambda: f"{said} …" in plain.getvalue())
        return taken(*args, **named)

    plain = error_stream(io.StringIO(), monkeypatch)
    monkeypatch.setattr(name.replace(":", "."), slow)
    assert cli.main(list(map(str, argv(model)))) == 0


@pytest.fixture
def used(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """The names of the devices on which Programs ran."""
    names: set[str] = set()
    run = Program.run

    def noted(self: Program, arrays: Any) -> Any:
        names.add(self.device.name)
        return run(self, arrays)

    monkeypatch.setattr(Program, "run", noted)
    return names


def missing(name: str) -> bool:
    return not isinstance(sg.devices()[name], Device)


@pytest.mark.slow
@pytest.mark.parametrize("device", ["numpy", "wasm", "webgpu"])
def test_the_error_of_smaller_weights_is_measured_on_the_device_asked_for(
    device: str, model: Path, used: set[str], capsys: pytest.CaptureFixture[str]
) -> None:
    if missing(device):
        pytest.skip(f"no {device} here")
    for dtype in ("float16", "int8"):
        argv = ["export", model, "-o", model.parent / dtype, "--dtype", dtype, "--device", device, "--targets", "wasm"]
        assert cli.main(list(map(str, argv))) == 0
        assert used == {device}
        assert (f"measured on {device}" in capsys.readouterr().out) == (device != "numpy")
    errors = {
        on: bundle.draft(sg.load(model, "numpy"), ["wasm"], dtype="int8", device=on).alone() for on in ("numpy", device)
    }
    given = [max(e or 0 for e in made.deviation.errors.values()) for made in errors.values() if made.deviation]
    np.testing.assert_allclose(given, given[0], rtol=0.1)


def test_a_device_for_an_error_that_is_not_measured_is_refused(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["export", str(model), "-o", str(model.parent / "b"), "--device", "numpy"]) == 2
    assert "give --dtype float16 or int8, too" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize("device", ["numpy", "wasm"])
def test_bench_measures_on_the_device_asked_for(
    device: str, model: Path, used: set[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert cli.main(["bench", str(model), "--device", device, "--repeat", "2"]) == 0
    assert used == {device}
    assert f"device      {device}" in capsys.readouterr().out
    asked: list[str] = []
    monkeypatch.setattr("singe.tools.measuring.devices.peaks", lambda on, _: asked.append(on.name))
    monkeypatch.setattr("singe.tools.measuring.devices.describe_peaks", lambda *_: "")
    assert cli.main(["bench", "--device", device]) == 0
    assert asked == [device]
