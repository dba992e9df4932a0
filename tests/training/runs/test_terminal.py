"""The dashboard on a terminal, driven in tmux: keys, sizes, and the terminal given back however the program ends."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("tmux") is None, reason="no tmux here: apt-get install tmux"),
]
ROOT = Path(__file__).parents[3]
SCRIPT = Path(__file__).parent / "made_runs.py"
PATIENCE = 120.0


class Tmux:
    """A terminal with a shell in it."""

    def __init__(self, folder: Path) -> None:
        self.socket = folder / "tmux"
        shell = "env -i PATH=/usr/bin:/bin LANG=C.UTF-8 TERM=$TERM PS1='$ ' bash --norc --noprofile"
        self.call("-f", os.devnull, "-u", "new-session", "-d", "-x", "90", "-y", "26", shell)

    def call(self, *words: str) -> str:
        done = subprocess.run(["tmux", "-S", str(self.socket), *words], capture_output=True, check=True, timeout=30)
        return done.stdout.decode()

    def screen(self) -> str:
        return self.call("capture-pane", "-p")

    def keys(self, *keys: str) -> None:
        self.call("send-keys", *keys)

    def run(self, *ways: str) -> None:
        self.keys(f"PYTHONPATH={ROOT / 'core'} {sys.executable} {SCRIPT} {' '.join(ways)}", "Enter")
        self.wait(lambda text: "stop" in text and "──" in text)

    def wait(self, wanted: Callable[[str], bool]) -> str:
        """The screen as soon as it is as wanted."""
        end = time.monotonic() + PATIENCE
        while not wanted(text := self.screen()):
            assert time.monotonic() < end, f"not seen:\n{text}"
            time.sleep(0.05)
        return text

    def given_back(self) -> str:
        """The screen of the shell, whose terminal is as it was before the program."""
        self.wait(lambda text: text.rstrip().endswith("$"))
        self.keys("clear; stty -a | grep -o '.icanon\\|.echo ' | tr -d '\\n'; echo .", "Enter")
        self.wait(lambda text: text.startswith(" icanon echo ."))
        return self.call("display", "-p", "#{alternate_on} #{cursor_flag} #{wrap_flag}").strip()


@pytest.fixture
def tmux(tmp_path: Path) -> Iterator[Tmux]:
    terminal = Tmux(tmp_path)
    yield terminal
    terminal.call("kill-server")


def test_keys_choose_a_metric_and_stop_after_a_question(tmux: Tmux) -> None:
    tmux.run()
    tmux.wait(lambda text: " loss   ● train" in text)
    tmux.keys("Down")
    tmux.wait(lambda text: " accuracy   ● train" in text and "▸ accuracy" in text)
    tmux.keys("Right", "s")
    tmux.wait(lambda text: "▸ accuracy" in text)
    tmux.keys("q")
    tmux.wait(lambda text: "Stop after this batch?" in text)
    tmux.keys("n")
    tmux.wait(lambda text: "q stop" in text)
    tmux.keys("q", "y")
    tmux.wait(lambda text: "mnist has ended" in text)
    assert tmux.given_back() == "0 1 1"


def test_the_screen_fits_each_size_that_the_terminal_takes(tmux: Tmux) -> None:
    tmux.run()
    for width, height in ((60, 18), (30, 8), (12, 3), (140, 44), (90, 26)):
        tmux.call("resize-window", "-x", str(width), "-y", str(height))
        text = tmux.wait(partial(_fits, width=width, height=height))
        assert ("└" in text) == (height >= 18), text


def _fits(text: str, width: int, height: int) -> bool:
    lines = text.removesuffix("\n").split("\n")
    whole = len(lines) == height and max(map(len, lines)) <= width
    return whole and lines[0].startswith(" mnist") and lines[-1].startswith(" ↑↓ metric")


@pytest.mark.parametrize("way", ["fail", "ctrl-c", "twice", "term", "hup"])
def test_the_terminal_is_given_back_however_the_program_ends(tmux: Tmux, way: str) -> None:
    tmux.run(*(["fail"] if way == "fail" else ["stubborn"]))
    if way == "ctrl-c":
        tmux.keys("C-c")
    elif way == "twice":
        tmux.keys("q", "y", "q")
    elif way in ("term", "hup"):
        shell = tmux.call("display", "-p", "#{pane_pid}").strip()
        found = subprocess.run(["ps", "-o", "pid=", "--ppid", shell], capture_output=True, check=True).stdout.split()
        os.kill(int(found[0]), {"term": 15, "hup": 1}[way])
    expected = {
        "fail": "RuntimeError: the 20th batch fails",
        "ctrl-c": "KeyboardInterrupt",
        "twice": "KeyboardInterrupt",
        "term": "Terminated",
        "hup": "Hangup",
    }
    text = tmux.wait(lambda text: expected[way] in text)
    assert "──" not in text
    assert tmux.given_back() == "0 1 1"


def test_a_run_that_is_suspended_gives_the_terminal_back_until_it_goes_on(tmux: Tmux) -> None:
    tmux.run()
    tmux.keys("C-z")
    tmux.wait(lambda text: "Stopped" in text)
    assert tmux.given_back() == "0 1 1"
    tmux.keys("fg", "Enter")
    tmux.wait(lambda text: "q stop" in text and "──" in text)
    tmux.keys("q", "y")
    tmux.wait(lambda text: "mnist has ended" in text)
    assert tmux.given_back() == "0 1 1"


def test_what_is_printed_meanwhile_comes_when_the_terminal_is_given_back(tmux: Tmux) -> None:
    tmux.run("print")
    tmux.wait(lambda text: "line 1 on standard error" in text and "q stop" in text)
    tmux.keys("q", "y")
    text = tmux.wait(lambda text: "mnist has ended" in text)
    assert "line 1 on standard output\nline 1 on standard error\nmnist has ended" in text


def test_in_the_background_and_in_a_pipe_there_are_lines(tmux: Tmux) -> None:
    tmux.keys(f"PYTHONPATH={ROOT / 'core'} {sys.executable} {SCRIPT} | cat", "Enter")
    tmux.wait(lambda text: "mnist: 20 epochs on wasm" in text)
    assert tmux.call("display", "-p", "#{alternate_on}").strip() == "0"
    tmux.keys("C-c")
