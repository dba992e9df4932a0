"""Files of a training: checkpoints that are whole or recognised as damaged, logs, settings."""

from __future__ import annotations

import csv
import os
import sqlite3
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import numpy as np
import pytest

import singe as sg
from singe.errors import FormatError, InputError
from singe.train.best_value import EarlyStopping, Watch
from singe.train.config import plain, read_config, write_config
from singe.train.events import BatchEnded, EpochBegan, EpochEnded, Event, RunBegan, Stopped
from singe.train.monitor.logs import CsvLog, SqliteLog, TensorBoardLog
from singe.train.saving import checkpoints
from singe.train.saving.checkpoints import Checkpoint, CheckpointFolder
from singe.weights.safetensors import safetensors_pieces

# --- checkpoints ------------------------------------------------------------------------------------------------------


def checkpoint(step: int) -> Checkpoint:
    rng = np.random.default_rng(step)
    arrays = {
        "model.weight": rng.normal(size=(3, 4)).astype(np.float32),
        "optimizer.step": np.array(step),
        "model.none": np.zeros((0, 2), np.float16),
    }
    return Checkpoint(step, arrays, {"epoch": 2, "history": [{"loss": 0.1 + 0.2, "other": float("nan")}]})


def test_a_checkpoint_is_read_as_it_was_written(tmp_path: Path) -> None:
    folder = CheckpointFolder(str(tmp_path / "checkpoints"), keep=2)
    assert folder.newest(print) is None
    written = checkpoint(7)
    path = folder.write(written)
    found = folder.newest(print)
    assert found is not None
    assert found.step == 7
    assert found.facts["history"][0]["loss"] == 0.1 + 0.2
    for name, array in written.arrays.items():
        np.testing.assert_array_equal(found.arrays[name], array)
        assert found.arrays[name].dtype == array.dtype
    assert set(sg.read_weights(path)) == set(written.arrays)


def test_the_newest_stay(tmp_path: Path) -> None:
    folder = CheckpointFolder(tmp_path, keep=2)
    (tmp_path / "step-00000001.safetensors.part").write_bytes(b"left by a process that was killed")
    for step in (3, 10, 12, 20):
        folder.write(checkpoint(step))
    assert folder.steps() == [20, 12]
    assert sorted(p.name for p in tmp_path.iterdir()) == ["step-00000012.safetensors", "step-00000020.safetensors"]


def test_a_damaged_checkpoint_is_passed_over(tmp_path: Path) -> None:
    """Each way of cutting the newest off, and each changed byte, is recognised; the one before it is used."""
    folder = CheckpointFolder(tmp_path, keep=2)
    folder.write(checkpoint(1))
    path = folder.write(checkpoint(2))
    whole = path.read_bytes()
    rng = np.random.default_rng(0)
    damages = [whole[:n] for n in (0, 4, 8, 100, len(whole) // 2, len(whole) - 1)] + [whole + b"x"]
    for at in [0, 8, 20, len(whole) - 1, *rng.integers(len(whole), size=60)]:
        changed = bytearray(whole)
        changed[at] ^= 1 << int(rng.integers(8))
        damages.append(bytes(changed))
    passed = 0
    for data in damages:
        path.write_bytes(data)
        told: list[str] = []
        found = folder.newest(told.append)
        assert found is not None
        if found.step == 2:  # a byte of the header that means nothing: a space, or the time of writing
            for name, array in checkpoint(2).arrays.items():
                np.testing.assert_array_equal(found.arrays[name], array)
        else:
            assert len(told) == 1
            assert str(path) in told[0]
            passed += 1
    assert passed > len(damages) * 0.8
    folder.write(checkpoint(2))
    assert folder.newest(pytest.fail) is not None


def test_a_full_disk_leaves_the_last_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = CheckpointFolder(tmp_path, keep=1)
    folder.write(checkpoint(1))

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        folder.write(checkpoint(2))
    assert [p.name for p in tmp_path.iterdir()] == ["step-00000001.safetensors"]


# --- what is watched --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["[" * 100_000, "[1, 2]", "{"])
def test_facts_of_a_checkpoint_that_are_no_facts_are_refused(tmp_path: Path, text: str) -> None:
    """Whoever writes a checkpoint writes its hash, too."""
    arrays = {"w": np.ones(2, np.float32)}
    metadata = {"singe": checkpoints.FORMAT, "facts": text, "sha256": checkpoints._digest(text, arrays)}
    (tmp_path / "a").write_bytes(b"".join(map(bytes, safetensors_pieces(arrays, metadata))))
    with pytest.raises(FormatError, match="its facts are"):
        checkpoints.read_arrays(tmp_path / "a")


def test_the_best_value_is_the_first_of_the_best() -> None:
    least, most = Watch("valid.loss", "least"), Watch("valid.accuracy", "most", min_delta=0.1)
    seen = [least.see(k, {"valid.loss": v}) for k, v in enumerate([3.0, 2.0, 2.0, float("nan"), 1.0], 1)]
    assert seen == [True, True, False, False, True]
    assert (least.best, least.epoch) == (1.0, 5)
    assert [most.see(k, {"valid.accuracy": v}) for k, v in enumerate([0.5, 0.55, 0.7], 1)] == [True, False, True]
    again = Watch("valid.loss", "least")
    again.resume(least.state())
    assert not again.see(6, {"valid.loss": 1.0})
    with pytest.raises(InputError, match=r"no value 'valid.loss'.*train.loss"):
        least.see(6, {"train.loss": 1.0})
    with pytest.raises(InputError, match="patience is 0"):
        EarlyStopping(patience=0)


# --- logs -------------------------------------------------------------------------------------------------------------


def run_of(first: int, last: int, batch: int = 0, batches: int = 3) -> Iterator[Event]:
    """The events of a run that begins after this batch of its first epoch."""
    yield RunBegan("r", last, {"train": batches, "valid": 1}, "numpy", first, batch, (first - 1) * batches + batch)
    for epoch in range(first, last + 1):
        yield EpochBegan(epoch)
        step = (epoch - 1) * batches
        for k in range(batch + 1 if epoch == first else 1, batches + 1):
            yield BatchEnded(epoch, "train", k, {"loss": 1 / (step + k)}, 0.5, 8, None, step + k)
        yield BatchEnded(epoch, "valid", 1, {"loss": 1.5}, 0.5, 8, None, step + batches)
        values = {"loss": 0.5 / epoch, "accuracy": 0.25}
        yield EpochEnded(epoch, {"train": values, "valid": {"loss": 2.0}}, 1.5, 24, False, step + batches)
    yield Stopped("finished", last, 1.0)


LOSSES = [0.5 / epoch for epoch in range(1, 6)]


def test_the_csv_file_has_a_row_an_epoch(tmp_path: Path) -> None:
    path = tmp_path / "epochs.csv"
    for first, last in ((1, 3), (3, 5)):  # the second run goes on from a checkpoint before the end of the third epoch
        log = CsvLog(path)
        for event in run_of(first, last, batch=0 if first == 1 else 2):
            log(event)
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == ["epoch", "step", "seconds", "train.loss", "train.accuracy", "valid.loss"]
    assert [int(row["epoch"]) for row in rows] == [1, 2, 3, 4, 5]
    assert [float(row["train.loss"]) for row in rows] == LOSSES


def test_batches_are_in_the_sqlite_table_as_they_end(tmp_path: Path) -> None:
    path = tmp_path / "log.sqlite"
    for first, last in ((1, 3), (3, 5)):
        log = SqliteLog(path)
        for event in run_of(first, last, batch=0 if first == 1 else 2):
            log(event)
            if isinstance(event, BatchEnded):
                other = sqlite3.connect(path)
                found = other.execute("SELECT value FROM batches WHERE phase = ? AND epoch = ? AND batch = ?",
                                      (event.phase, event.epoch, event.batch)).fetchall()  # fmt: skip
                other.close()
                assert found == [(event.values["loss"],)]
    assert [p.name for p in tmp_path.iterdir()] == ["log.sqlite"]
    other = sqlite3.connect(path)
    steps = other.execute("SELECT step, value FROM batches WHERE phase = 'train' ORDER BY step").fetchall()
    epochs = other.execute("SELECT value FROM epochs WHERE phase = 'train' AND name = 'loss' ORDER BY epoch").fetchall()
    other.close()
    assert steps == [(k, 1 / k) for k in range(1, 16)]
    assert epochs == [(v,) for v in LOSSES]


def crc32c(data: bytes) -> int:
    """The checksum as its definition has it: the remainder of a division of polynomials, bit by bit."""
    found = 0xFFFFFFFF
    for byte in data:
        found ^= byte
        for _ in range(8):
            found = (found >> 1) ^ (0x82F63B78 * (found & 1))
    return found ^ 0xFFFFFFFF


def masked(data: bytes) -> int:
    crc = crc32c(data)
    return ((crc >> 15 | crc << 17 & 0xFFFFFFFF) + 0xA282EAD8) & 0xFFFFFFFF


def fields_of(data: bytes) -> list[tuple[int, object]]:
    """(number, value) of each field of a protocol buffer."""

    def varint() -> int:
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    at, found = 0, []
    while at < len(data):
        key = varint()
        if key & 7 == 0:
            value: object = varint()
        else:
            size = {1: 8, 5: 4}.get(key & 7) or varint()
            value = data[at : at + size]
            assert len(data) >= at + size
            at += size
            if key & 7 in (1, 5):
                value = struct.unpack("<d" if key & 7 == 1 else "<f", value)[0]
        found.append((key >> 3, value))
    return found


def records_of(path: Path) -> Iterator[dict[int, object]]:
    data = path.read_bytes()
    at = 0
    while at < len(data):
        length, check = struct.unpack_from("<QI", data, at)
        assert check == masked(data[at : at + 8])
        body = data[at + 12 : at + 12 + length]
        assert struct.unpack_from("<I", data, at + 12 + length) == (masked(body),)
        yield dict(fields_of(body))
        at += 16 + length


def test_the_checksum_is_the_published_one() -> None:
    assert crc32c(b"123456789") == 0xE3069283


def test_tensorboard_files_hold_the_values(tmp_path: Path) -> None:
    for first, last in ((1, 3), (3, 5)):
        log = TensorBoardLog(tmp_path)
        for event in run_of(first, last, batch=0 if first == 1 else 2):
            log(event)
    files = sorted(tmp_path.iterdir(), key=lambda p: p.stat().st_mtime_ns)
    assert len(files) == 2
    assert all(p.name.startswith("events.out.tfevents.") for p in files)
    values: dict[str, dict[int, float]] = {}
    for path in files:
        head, *rest = records_of(path)
        assert head[3] == b"brain.Event:2"
        for found in rest:
            step = found[2]
            assert isinstance(step, int)
            if 7 in found:  # a run that goes on: what was recorded after the checkpoint is dropped
                assert fields_of(found[7]) == [(1, 1)]  # pyright: ignore[reportArgumentType]
                assert step == 9
                values = {tag: {k: v for k, v in steps.items() if k < step} for tag, steps in values.items()}
                continue
            for _, value in fields_of(found[5]):  # pyright: ignore[reportArgumentType]
                tag, number = (v for _, v in fields_of(value))  # pyright: ignore[reportArgumentType]
                values.setdefault(tag.decode(), {})[step] = number  # pyright: ignore
    assert sorted(values) == ["batch/loss", "train/accuracy", "train/loss", "valid/loss"]
    assert values["batch/loss"] == {k: float(np.float32(1 / k)) for k in range(1, 16)}
    assert values["train/loss"] == {3 * (k + 1): float(np.float32(v)) for k, v in enumerate(LOSSES)}


# --- settings ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Rates:
    rate: float = 0.1
    steps: tuple[int, ...] = (1, 2)


@dataclass(frozen=True)
class Settings:
    name: str = "a"
    width: int = 3
    plain: bool = False
    kind: Literal["small", "large"] = "small"
    most: int | None = None
    rates: Rates = field(default_factory=Rates)


def test_settings_are_read_as_they_were_written(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    for settings in (Settings(), Settings("b", 4, True, "large", 5, Rates(1.0, (3,)))):
        for given in (path, str(path)):
            write_config(given, settings)
            assert read_config(given, Settings) == settings
    path.write_text('{"width": 7, "rates": {"rate": 2}}')
    assert read_config(path, Settings) == Settings(width=7, rates=Rates(2.0))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"width": "7"}', "width: got '7', expected int"),
        ('{"width": true}', "width: got True, expected int"),
        ('{"hight": 7}', "Settings has no field hight; it has name, width"),
        ('{"kind": "medium"}', "expected one of small, large"),
        ('{"rates": {"steps": 3}}', "rates: steps: got 3, expected a list"),
        ("{", "not JSON"),
        ("[" * 100_000, "not JSON"),
    ],
)
def test_wrong_settings_are_refused(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "config.json"
    path.write_text(text)
    with pytest.raises(FormatError, match=message):
        read_config(path, Settings)
    with pytest.raises(InputError, match="expected a dataclass"):
        plain(3)
