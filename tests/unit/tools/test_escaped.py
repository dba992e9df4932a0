"""What comes from files and from others is shown with control characters escaped: by commands, in errors, progress, pages."""

from __future__ import annotations

import io
import json
import logging
import re
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from command_line import run
from onnx import TensorProto, helper

import singe as sg
from singe import nn
from singe.files import download
from singe.texts import escaped, in_html
from singe.tools import progress
from singe.train.events import Note
from singe.train.monitor.dashboard.canvas import Canvas
from singe.train.monitor.dashboard.plain import ProgressLines

EVIL = "a\x1b]0;owned\x07\x1b[2J\x9b31m\u202egnp\u2066\r\x00\x7f"
"""Changes a terminal's title, clears it, is red, turns round, and goes back to the first column."""
CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
ORDINARY = "é 漢字　\xa0🙂 👩\u200d🔬 नमस्ते مرحبا می\u200cخواهم C:\\new"


def test_control_characters_are_escaped_and_other_letters_stay() -> None:
    assert escaped("\x1b[31m\r\n\x9b\x00\u202e\u2066\u2028\ud800\U000e0041") == (
        r"\x1b[31m\r\n\x9b\x00\u202e\u2066\u2028\ud800\U000e0041"
    )
    assert escaped("a\n\tb\r", keep="\n\t") == "a\n\tb\\r"
    assert escaped(ORDINARY) == ORDINARY
    assert in_html("<\x1b>") == r"&lt;\x1b&gt;"
    for code in range(0x3000):
        if CONTROLS.match(chr(code)) or code in (9, 10):
            assert escaped(chr(code)).isascii()


def test_no_error_of_singe_controls_a_terminal() -> None:
    def kinds(kind: type[sg.SingeError]) -> list[type[sg.SingeError]]:
        return [kind, *(k for sub in kind.__subclasses__() for k in kinds(sub))]

    for kind in kinds(sg.SingeError):
        text = str(kind.__new__(kind, f"{EVIL}\nsecond line {ORDINARY}"))  # of some, the constructor takes more
        assert not CONTROLS.search(text)
        assert text.endswith(f"\nsecond line {ORDINARY}")


@pytest.fixture
def evil(tmp_path: Path) -> Path:
    """A model whose names are hostile."""
    value = helper.make_tensor_value_info
    name = EVIL.replace("\0", "")
    nodes = [helper.make_node("Relu", [f"x{name}"], [f"y{name}"], name=name)]
    graph = helper.make_graph(
        nodes,
        name,
        [value(f"x{name}", TensorProto.FLOAT, [f"N{name}", 2])],
        [value(f"y{name}", TensorProto.FLOAT, None)],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    path = tmp_path / "evil.onnx"
    path.write_bytes(model.SerializeToString())
    return path


def test_objects_of_files_print_names_escaped(evil: Path, tmp_path: Path) -> None:
    model = sg.load(evil, device="numpy")
    np.savez(tmp_path / "w.npz", **{EVIL.replace("\0", ""): np.ones(2)})
    reports: list[object] = []
    sg.load_weights(nn.Linear(2, 2), tmp_path / "w.npz", strict=False, report=reports.append)
    for shown in (
        model,
        model.inputs,
        model.outputs,
        sg.compile(model, np.ones((1, 2), np.float32)),
        *reports,
    ):
        for text in (str(shown), repr(shown)):
            assert not CONTROLS.search(text)
            assert r"\x1b" in text


@pytest.mark.slow
def test_commands_print_names_escaped(evil: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    np.save(tmp_path / "x.npy", np.ones((1, 2), np.float32))
    (tmp_path / "labels.txt").write_text(f"{EVIL.replace(chr(13), '')}\nb\n", "utf-8")
    for args in (
        ("inspect", evil, "--shapes", "--device", "wasm", "--kernels"),
        ("inspect", tmp_path / "no\x1b[31m\u202e.onnx"),
        ("run", evil, "--device", "numpy", "--input", f"x{EVIL.replace(chr(0), '')}={tmp_path}/x.npy", "--labels", tmp_path / "labels.txt"),
        ("run", evil, "--input", f"\x1b[31m={tmp_path}/x.npy"),
        ("runs", tmp_path / "\x1b[31m"),
        ("serve", tmp_path / "\x1b[31m"),
        ("bench", evil, "--device", "numpy", "--repeat", 1),
        ("diff", evil, "--devices", "wasm", "--input-shape", "\x9b=1"),
    ):  # fmt: skip
        code, out, err = run(capsys, *args)
        assert not CONTROLS.search(out + err), args
        assert r"\x1b" in out + err or r"\x9b" in out + err, (args, code, out, err)


def test_runs_are_listed_and_reported_escaped(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    facts = {
        "format": "singe-run/1",
        "run": EVIL,
        "device": EVIL,
        "message": EVIL,
        "reason": EVIL,
        "settings": {EVIL: EVIL},
    }
    for name in ("a", "b"):
        folder = tmp_path / "runs" / name
        folder.mkdir(parents=True)
        (folder / "run.json").write_text(json.dumps(facts | {"settings": {EVIL: EVIL + name}}))
        metric = EVIL.replace("\r", "").replace("\0", "")
        (folder / "epochs.csv").write_text(f"epoch,seconds,train.{metric},valid.{metric}\n1,1,2,3\n", "utf-8")
    code, out, err = run(capsys, "runs", tmp_path / "runs")
    assert code == 0
    assert out.count(r"\x1b[2J") > 6
    assert not CONTROLS.search(out + err)
    for names in (["a"], ["a", "b"]):
        page = tmp_path / "page.html"
        assert run(capsys, "runs", tmp_path / "runs", "--report", *names, "-o", page)[0] == 0
        text = page.read_text("utf-8")
        assert text.count(r"\x1b[2J") > 6
        assert not CONTROLS.search(text)


def test_dashboards_draw_text_escaped() -> None:
    canvas = Canvas(200, 2)
    canvas.text(0, 0, EVIL + ORDINARY)
    canvas.right(1, 190, EVIL)
    drawn = "".join(char for row in canvas.cells for char, _ in row)
    assert drawn.count(r"\x1b[2J") == 2
    assert not CONTROLS.search(drawn)
    screen = io.StringIO()
    ProgressLines(screen)(Note(EVIL))
    assert screen.getvalue().startswith(r"note: a\x1b]0;owned")
    assert not CONTROLS.search(screen.getvalue())


def test_lines_of_progress_are_escaped(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = io.StringIO()
    monkeypatch.setattr(screen, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setattr(progress, "PATIENCE", 0.001)
    with progress.notes(), progress.doing("loading"):
        logging.getLogger("singe").info(EVIL)
        end = time.monotonic() + 20
        while "owned" not in screen.getvalue() and time.monotonic() < end:
            time.sleep(0.005)
        logging.getLogger("singe").warning(EVIL)
    with download._shown(EVIL, 10) as show:
        show(10)
    text = screen.getvalue()
    assert text.count(r"\x1b[2J") == 3
    assert not CONTROLS.search(text.replace("\r\x1b[K", "").replace("\x1b[K", "").replace("\n", "").replace("\ra", "a"))


def test_commands_print_by_one_function() -> None:
    folder = Path(progress.__file__).parent
    for path in folder.rglob("*.py"):
        prints = re.findall(r"(?<![\w.`])print\((?!end=\"\", flush)", path.read_text("utf-8"))
        assert not prints or path.name == "report.py", path
