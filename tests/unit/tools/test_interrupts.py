"""Ctrl-C ends every command within a second, whatever it does; a command that cannot write says so in a line and leaves nothing."""

from __future__ import annotations

import errno
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import singe as sg
from singe import nn
from singe.files import write, write_files
from singe.tools import cli

pytestmark = pytest.mark.skipif(os.name != "posix", reason="there are no pseudo-terminals")

START = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell lets its background jobs ignore Ctrl-C
import singe.tools.measuring.devices
from singe.tools import cli, commands, measuring
{patch}
sys.argv = ["singe", *{argv!r}]
sys.exit(cli.main())
"""
DEAF = """
import hashlib
def deaf(*_, **__):
    print("deaf", flush=True)
    hashlib.pbkdf2_hmac("sha256", b"x", b"y", 400_000_000)
"""
"""Native code that takes minutes, as a driver that compiles a kernel: Python notes a Ctrl-C, and raises when it returns."""
PATIENCE = 100.0
"""Seconds within which a process must have begun, on a machine that is busy."""
SECOND = 4.0
"""Seconds from Ctrl-C to the end of the process: one on a machine that does nothing else."""


class Process:
    """A command on a pseudo-terminal."""

    def __init__(self, argv: list[str], folder: Path, patch: str = "") -> None:
        self._terminal, screen = os.openpty()
        self.process = subprocess.Popen(
            [sys.executable, "-c", START.format(patch=patch, argv=argv)], stdin=screen, stdout=screen, stderr=screen, cwd=folder,
            env={**os.environ, "TERM": "xterm"}, start_new_session=True,
        )  # fmt: skip
        os.close(screen)
        self.text = ""

    def read(self, seconds: float) -> bool:
        """Read what was written, of which the terminal gives a part at a time; whether there was any."""
        if not select.select([self._terminal], [], [], seconds)[0]:
            return False
        try:
            part = os.read(self._terminal, 65536)
        except OSError:  # the process has closed the terminal
            time.sleep(0.01)
            return False
        self.text += part.decode("utf-8", "replace")
        return bool(part)

    def press(self, keys: str) -> None:
        os.write(self._terminal, keys.encode())

    def wait(self, shown: str) -> None:
        self.until(lambda: shown in self.text)

    def until(self, true: Callable[[], bool]) -> None:
        until = time.monotonic() + PATIENCE
        while not true():
            assert time.monotonic() < until, self.text
            assert self.process.poll() is None, self.text
            self.read(0.1)

    def interrupt(self) -> float:
        """Send Ctrl-C, and return after how many seconds the process ended."""
        return self.ended(signal.SIGINT)

    def ended(self, sent: signal.Signals | None) -> float:
        """After how many seconds the process ended."""
        start = time.monotonic()
        if sent is not None:
            self.process.send_signal(sent)
        try:
            while self.process.poll() is None:
                assert time.monotonic() < start + PATIENCE, f"it did not end: {self.text}"
                self.read(0.02)
            return time.monotonic() - start
        finally:
            self.process.kill()
            self.process.wait()
            while self.read(0.1):
                pass
            os.close(self._terminal)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    net = nn.Sequential(nn.Linear(4, 60_000), nn.Linear(60_000, 2))
    sg.save(sg.Model.of(net, {"x": (1, 4)}, device="numpy"), tmp_path / "net.singe")
    return tmp_path / "net.singe"


PLACES: dict[str, Callable[[Path], list[str]]] = {
    "commands.all_devices": lambda _: ["devices"],
    "commands.model_on_numpy": lambda model: ["inspect", str(model)],
    "measuring.devices.peaks": lambda _: ["bench", "--device", "numpy"],
    "commands.write_program": lambda model: ["compile", str(model), "--device", "numpy", "-o", "program.singe"],
}
"""Functions that commands call ↦ the command."""


IMPORTING = """
import os, signal
class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            os.kill(os.getpid(), signal.SIGINT)
signal.signal(signal.SIGINT, signal.default_int_handler)
import sys
sys.meta_path.insert(0, Interrupting())
"""
"""Python runs it as it starts: it sends Ctrl-C as soon as anything imports a module."""


@pytest.mark.slow
@pytest.mark.parametrize("way", ["module", "script"])
@pytest.mark.parametrize(
    "module", ["singe.nn", "numpy", "singe.errors", "singe.tools.cli", "singe.tools.options", "singe.tools.commands"]
)
def test_ctrl_c_ends_a_command_that_still_imports(way: str, module: str, tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(IMPORTING.format(module=module))
    script = tmp_path / "singe"
    script.write_text("import sys\nfrom singe.tools.cli import main\nsys.exit(main())")
    paths = os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(
        [sys.executable, *(["-m", "singe"] if way == "module" else [str(script)]), "devices"],
        env={**os.environ, "PYTHONPATH": paths}, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PATIENCE,
        check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (130, "")
    assert len(done.stderr.splitlines()) <= 2
    assert "Traceback" not in done.stderr


@pytest.mark.slow
def test_a_program_that_imports_singe_keeps_its_own_ctrl_c() -> None:
    text = "import signal, singe; assert signal.getsignal(signal.SIGINT) is not singe.starting._end"
    subprocess.run([sys.executable, "-c", text], check=True, timeout=PATIENCE)


@pytest.mark.slow
@pytest.mark.parametrize("place", PLACES)
def test_ctrl_c_ends_a_command_in_native_code(place: str, tmp_path: Path, model: Path) -> None:
    process = Process(PLACES[place](model), tmp_path, f"{DEAF}\n{place} = deaf")
    process.wait("deaf")
    assert process.interrupt() < SECOND
    assert process.process.returncode == 130
    assert "Traceback" not in process.text


@pytest.mark.slow
def test_ctrl_c_ends_a_training_whose_first_batch_is_compiled(tmp_path: Path) -> None:
    """Nothing would be lost, so that there is nothing to wait for."""
    patch = f"{DEAF}\nimport singe.train.steps.step\nsinge.train.steps.step.TrainStep.__call__ = deaf"
    process = Process(["train", "sums", "--device", "numpy", "--plain", "--run", "r"], tmp_path, patch)
    process.wait("deaf")
    assert process.interrupt() < SECOND
    assert process.process.returncode == 130
    assert "Traceback" not in process.text


SLOW_STEPS = """
import time, singe.ending, singe.train.steps.step
singe.ending.INTERRUPT_SECONDS = 60
step, count = singe.train.steps.step.TrainStep.__call__, 0
def slow(*given):
    global count
    count += 1
    if count == 3:
        print("third", flush=True)
        time.sleep(60)
    return step(*given)
singe.train.steps.step.TrainStep.__call__ = slow
"""
"""A third step that lasts. No end by force cuts off what a training says at its end, on a machine however busy."""
AT_ONCE = 30.0
"""Seconds from Ctrl-C to the end of a process that does not wait for that step."""


@pytest.mark.slow
@pytest.mark.parametrize("lost", [30.0, 0.0])
def test_ctrl_c_does_not_wait_for_a_long_batch_unless_much_would_be_lost(lost: float, tmp_path: Path) -> None:
    """Otherwise it says so, and the second one ends it. Both say what is kept."""
    patch = f"{SLOW_STEPS}\nfrom singe import ending\nending.MAX_LOST_SECONDS = {lost}"
    process = Process(["train", "sums", "--device", "numpy", "--plain", "--run", "r"], tmp_path, patch)
    process.wait("third")
    if not lost:
        process.process.send_signal(signal.SIGINT)
        process.wait("Ctrl-C again ends at once")
    assert process.interrupt() < AT_ONCE
    assert process.process.returncode == 130
    assert "2 steps in" in process.text
    assert "kept: nothing, as no checkpoint was written yet" in process.text
    assert "--resume" not in process.text


@pytest.mark.slow
@pytest.mark.parametrize("way", ["q", "Ctrl-C"])
def test_a_dashboard_that_was_asked_to_stop_ends_at_once_if_it_is_asked_again(way: str, tmp_path: Path) -> None:
    """Its terminal is one, though not that of the process."""
    patch = SLOW_STEPS.replace('print("third", flush=True)', 'open("third", "w").close()')
    patch += "\nimport singe.train.monitor.dashboard\nsinge.train.monitor.dashboard.usable = lambda *_: True"
    process = Process(["train", "sums", "--device", "numpy", "--run", "r"], tmp_path, patch)
    process.until((tmp_path / "third").exists)
    process.press("qy")
    process.wait("stopping after this batch")
    if way == "q":
        process.press("q")
    assert process.ended(signal.SIGINT if way == "Ctrl-C" else None) < AT_ONCE
    assert process.process.returncode == 130
    assert "2 steps in" in process.text
    assert "kept: nothing, as no checkpoint was written yet" in process.text
    assert "Traceback" not in process.text


@pytest.mark.slow
def test_ctrl_c_leaves_nothing_of_an_export(tmp_path: Path, model: Path) -> None:
    """Also where it ends the process by force while files are written."""
    patch = f"{DEAF}\nfrom singe.files import local\nlocal.os.replace = deaf"
    process = Process(["export", str(model), "-o", "out", "--targets", "wasm"], tmp_path, patch)
    process.wait("deaf")
    assert process.interrupt() < SECOND
    assert not (tmp_path / "out").exists()


def full(*_: object, **__: object) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "/somewhere/.singe-1234/weights.bin")


@pytest.mark.parametrize("there", [True, False])
def test_files_that_do_not_fit_leave_a_folder_as_it_was(
    there: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "a" / "b"
    if there:
        write_files(folder, {"x": b"old"})
    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(OSError, match="No space left") as caught:
        write_files(folder, {"x": b"new", "y": b"new"})
    assert caught.value.filename == str(folder)
    monkeypatch.undo()
    assert (tmp_path / "a").exists() == there
    if there:
        assert [(p.name, p.read_bytes()) for p in folder.iterdir()] == [("x", b"old")]


@pytest.mark.parametrize("kind", [OSError, KeyboardInterrupt])
@pytest.mark.parametrize("turn", range(5))  # two old files go, and three new ones come
def test_files_that_cannot_all_be_replaced_leave_a_folder_as_it_was(
    turn: int, kind: type[BaseException], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_files(tmp_path, {"a": b"old a", "z": b"old z"})
    replace, turns = os.replace, iter(range(100))

    def failing(source: Path, target: Path) -> None:
        if next(turns) == turn:
            raise kind(errno.ENOSPC, os.strerror(errno.ENOSPC))
        replace(source, target)

    monkeypatch.setattr(os, "replace", failing)
    with pytest.raises(kind):
        write_files(tmp_path, {"a": b"new a", "b": b"new b", "z": b"new z"})
    assert sorted((p.name, p.read_bytes()) for p in tmp_path.iterdir()) == [("a", b"old a"), ("z", b"old z")]
    write_files(tmp_path, {"a": b"new a", "b": b"new b", "z": b"new z"})
    assert sorted(p.read_bytes() for p in tmp_path.iterdir()) == [b"new a", b"new b", b"new z"]


def test_a_folder_in_the_place_of_a_file_stays(tmp_path: Path) -> None:
    write_files(tmp_path, {"a": b"old"})
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "mine").write_bytes(b"mine")
    with pytest.raises(OSError, match="directory"):
        write_files(tmp_path, {"a": b"new", "b": b"new"})
    assert (tmp_path / "a").read_bytes() == b"old"
    assert (tmp_path / "b" / "mine").read_bytes() == b"mine"


def test_an_interrupt_leaves_a_folder_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_files(tmp_path / "new", {"x": b"1"})
    with pytest.raises(KeyboardInterrupt):
        write(tmp_path / "file", [b"1"])
    assert list(tmp_path.iterdir()) == []


COMMANDS: dict[str, Callable[[Path, str], list[str]]] = {
    "export": lambda model, out: ["export", str(model), "-o", f"{out}/bundle", "--targets", "wasm"],
    "compile": lambda model, out: ["compile", str(model), "-o", f"{out}/p.singe", "--device", "numpy"],
    "run": lambda model, out: [
        "run", str(model), "--device", "numpy", "--input", f"x={model.parent}/x.npy", "--output", f"output={out}/y.npy"
    ],
    "bench": lambda model, out: ["bench", str(model), "--device", "numpy", "--repeat", "1", "--trace", f"{out}/t.json"],
    "runs": lambda model, out: ["runs", str(model.parent), "--report", "r", "-o", f"{out}/report.html"],
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("what", ["full", "read-only", "missing"])
@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_that_cannot_write_says_so_in_a_line(
    command: str, what: str, tmp_path: Path, model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The disk is full after 100 bytes of a file; the user of the tests may write everywhere but in the system's own folder."""
    np.save(model.parent / "x.npy", np.zeros((1, 4), np.float32))
    if command == "runs":
        assert (
            cli.main(["train", "sums", "--quick", "--device", "numpy", "--plain", "--run", str(model.parent / "r")])
            == 0
        )
        capsys.readouterr()
    out = {"full": str(tmp_path / "out"), "read-only": "/proc/1", "missing": "/proc/none"}[what]
    if what == "full":
        Path(out).mkdir()
    limit = "import resource, signal, sys; sys.dont_write_bytecode = True; "  # no module is cut short
    limit += "signal.signal(signal.SIGXFSZ, signal.SIG_IGN); "
    limit += "resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))" if what == "full" else ""
    argv = COMMANDS[command](model, out)
    made = subprocess.run(
        [sys.executable, "-c", START.format(patch=limit, argv=argv)], capture_output=True, text=True, check=False
    )
    lines = [line for line in made.stderr.splitlines() if not line.endswith("…")]
    assert made.returncode == 2, made.stderr
    assert len(lines) == 1, made.stderr
    assert lines[0].startswith(f"singe {command}: ")
    assert out in lines[0]
    if what == "full":
        assert list(Path(out).iterdir()) == []
