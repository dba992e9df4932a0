"""Folders of runs that were made to do harm are read or refused in bounded time, and what is shown of them is plain text."""

from __future__ import annotations

import random
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path
from types import FrameType

import pytest
from devices import slow
from hostile_runs import REFUSED, Make, computed_columns, endless_view, hostile_run, hot_journal, trigger

import singe as sg
from singe.tools.runs import describe_runs
from singe.train.events import RunBegan
from singe.train.monitor.logs import SqliteLog
from singe.train.monitor.reports import read_run, report

SECONDS = 5.0
"""Of processor time, for one folder."""


class Endless(BaseException):
    pass


@pytest.mark.skipif(sys.platform == "win32", reason="there is no alarm that interrupts")
@pytest.mark.parametrize("count", [16, *slow(500)])
def test_hostile_folders_are_read_or_refused_in_bounded_time(count: int, tmp_path: Path) -> None:
    def late(number: int, frame: FrameType | None) -> None:
        raise Endless

    rng, shown = random.Random(count), 0
    handler = signal.signal(signal.SIGVTALRM, late)
    try:
        for number in range(count):
            folder = tmp_path / f"run{number}"
            done = hostile_run(folder, rng, number)
            signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS)
            try:
                texts = [describe_runs(folder), report([read_run(folder)])]
            except sg.SingeError:
                continue
            except (Endless, KeyboardInterrupt):
                pytest.fail(f"{done}: not read in {SECONDS} seconds")
            except Exception as e:
                raise AssertionError(f"{done}: {e!r:.200}") from e
            finally:
                signal.setitimer(signal.ITIMER_VIRTUAL, 0)
            shown += 1
            assert len(texts[1]) < 3_000_000, done
            for text in texts:
                odd = [c for c in text if not c.isprintable() and c not in "\n\u200d"]
                assert not odd, f"{done}: {odd[:3]}"
            assert "<script" not in texts[1], done
    finally:
        signal.signal(signal.SIGVTALRM, handler)
    assert 0.1 * count < shown < 0.9 * count


@pytest.mark.parametrize("make", REFUSED)
def test_what_is_no_plain_table_is_refused(make: Make, tmp_path: Path) -> None:
    (tmp_path / "epochs.csv").write_text("epoch,seconds,train.loss\n1,1,1\n")
    make(tmp_path / "batches.sqlite", random.Random(0))
    with pytest.raises(sg.FormatError, match=r"batches\.sqlite: (has the|the columns|a question|cannot)"):
        report([read_run(tmp_path)])


def test_a_computed_column_is_named(tmp_path: Path) -> None:
    (tmp_path / "epochs.csv").write_text("epoch,seconds,train.loss\n1,1,1\n")
    computed_columns(tmp_path / "batches.sqlite", random.Random(0))
    with pytest.raises(
        sg.FormatError, match=r"are 'phase' \(computed\), 'epoch', 'batch' \(computed\).*none of them computed"
    ):
        report([read_run(tmp_path)])


@pytest.mark.parametrize("make", [endless_view, trigger, hot_journal])
def test_a_run_that_goes_on_adds_nothing_to_what_is_no_plain_table(make: Make, tmp_path: Path) -> None:
    make(tmp_path / "batches.sqlite", random.Random(0))
    with pytest.raises(sg.SingeError):
        SqliteLog(tmp_path / "batches.sqlite")(RunBegan("a", 1, {"train": 1}, "numpy"))


def test_a_journal_removes_no_other_file(tmp_path: Path) -> None:
    """SQLite, asked to write, removes the file that a journal names."""
    hot_journal(tmp_path / "batches.sqlite", random.Random(0))
    (tmp_path / "epochs.csv").write_text("epoch,seconds,train.loss\n1,1,1\n")
    with pytest.raises(sg.InputError, match="another process was writing it"):
        report([read_run(tmp_path)])
    assert (tmp_path / "victim").exists()


def test_a_link_that_leads_out_is_refused(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "secret.csv").write_text("epoch,seconds,train.loss\n1,1,1\n")
    (tmp_path / "run" / "epochs.csv").symlink_to("../secret.csv")
    with pytest.raises(sg.FormatError, match="leads out of the folder"):
        read_run(tmp_path / "run")


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGINT for another process")
def test_ctrl_c_ends_a_question(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A table so large that a question takes long, which it may."""
    with sqlite3.connect(tmp_path / "batches.sqlite") as file:
        file.executescript(
            "CREATE TABLE batches (phase TEXT, epoch INTEGER, batch INTEGER, step INTEGER, name TEXT, value REAL, seconds REAL);"
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000000)"
            "INSERT INTO batches SELECT 'train', i / 1000, i % 1000, i, 'm' || i % 7, 1.0, 1.0 FROM n"
        )
    file.close()
    (tmp_path / "epochs.csv").write_text("epoch,seconds,train.loss\n1,1,1\n")
    command = [
        sys.executable,
        "-m",
        "singe",
        "runs",
        str(tmp_path),
        "--report",
        str(tmp_path),
        "-o",
        str(tmp_path / "x.html"),
    ]
    process = subprocess.Popen(command, stderr=subprocess.PIPE)
    shm = tmp_path / "batches.sqlite"
    deadline = time.monotonic() + 60
    while not _is_open(process.pid, shm) and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.01)
    time.sleep(0.3)
    assert process.poll() is None
    start = time.monotonic()
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert (process.returncode, said) == (130, b"")
    assert time.monotonic() - start < 5  # on a machine that does much else


def _is_open(process: int, path: Path) -> bool:
    """Whether a process has a file open."""
    try:
        return any(link.resolve() == path for link in Path(f"/proc/{process}/fd").iterdir())
    except OSError:
        return False
