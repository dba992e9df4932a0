"""Folders of runs that were made to do harm: what their three files say is too long, too deep, of other types, or without end."""

from __future__ import annotations

import json
import random
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any, TypeAlias

from singe.train.folder import BATCHES, EPOCHS, FACTS, FORMAT
from singe.train.monitor.logs import SqliteLog

TEXTS = (
    "\x1b]0;title\x07", "\x1b[2J\x1b[31mred", "a\r\nb", "\u202egnp.exe", "</title><script>alert(1)</script>", "\x9b31m", "x" * 5000, "\0",
    "\ud800", "é漢字🙂", "constructor", "__proto__", "", "-", "../../etc/passwd", "%s%n", "'; DROP TABLE batches; --", "\u2028",
)  # fmt: skip
NUMBERS = (
    0,
    -1,
    1,
    3,
    10**9,
    2**63,
    10**400,
    float("nan"),
    float("inf"),
    -float("inf"),
    1e308,
    -1e308,
    5e-324,
    0.5,
    True,
)


def value(rng: random.Random, depth: int = 0) -> Any:
    """Something that JSON can say."""
    kind = rng.randrange(6 if depth < 4 else 3)
    if kind == 0:
        return rng.choice(TEXTS)
    if kind == 1:
        return rng.choice(NUMBERS)
    if kind == 2:
        return rng.choice((None, [], {}))
    if kind == 3:
        return [value(rng, depth + 1) for _ in range(rng.randrange(4))]
    return {rng.choice(TEXTS): value(rng, depth + 1) for _ in range(rng.randrange(4))}


# --- run.json ---------------------------------------------------------------------------------------------------------

NAMES = ("run", "device", "began", "seconds", "epochs", "reason", "message", "settings", "modes", "best")
RIGHT: dict[str, Any] = {
    "run": "a", "device": "wasm", "began": "2026-01-01T00:00:00+00:00", "seconds": 1.0, "epochs": 3, "reason": "finished",
    "message": "", "settings": {"lr": 0.1}, "modes": {"loss": "least"}, "best": "loss",
}  # fmt: skip


def facts(rng: random.Random) -> bytes:
    """A file of facts, some of which are not as they should be."""
    deep = rng.choice([30, 400, 900, 100_000])
    match rng.randrange(8):
        case 0:
            return b'{"format": "singe-run/1", "settings": ' + b'{"a":' * deep + b"1" + b"}" * deep + b"}"
        case 1:
            return b"[" * deep + b"]" * rng.choice([0, deep])
        case 2:
            name = "k" * 100_000
            return json.dumps({"format": FORMAT, "settings": {name: {str(k): {name: 1} for k in range(20)}}}).encode()
        case 3:
            return json.dumps({"format": FORMAT, "settings": {str(k): k for k in range(20_000)}}).encode()
        case 4:
            dates = ("0001-01-01", "9999-12-31T23:59:59-23:59", "2026-13-01", "0001-01-01T00:00:00+23:59", "\u0662026")
            return json.dumps({"format": FORMAT, **RIGHT, "began": rng.choice(dates)}).encode()
        case 5:
            of_type = {name: rng.choice(TEXTS) for name, right in RIGHT.items() if isinstance(right, str)}
            return json.dumps({"format": FORMAT, **RIGHT, **of_type, "settings": {t: t for t in TEXTS}}).encode()
        case _:
            changed = {name: value(rng) for name in rng.sample(NAMES, rng.randrange(1, 4))}
            return json.dumps({"format": FORMAT, **RIGHT, **changed}).encode()


# --- epochs.csv -------------------------------------------------------------------------------------------------------


def epochs(rng: random.Random) -> bytes:
    """A table of epochs, some of whose cells are not as they should be."""
    heads = ["epoch", "step", "seconds", "train.loss", "valid.loss", f"train.{rng.choice(TEXTS)[:50]}"]
    match rng.randrange(7):
        case 0:
            return (
                "epoch,seconds," + ",".join(f"train.m{k}" for k in range(rng.choice([900, 200_000]))) + "\n1,1\n"
            ).encode()
        case 1:
            return b"epoch,seconds\n1,1,2,3,4\n"
        case 2:
            return b'epoch,seconds\n"1,1\n' + b"x" * 200_000
        case 3:
            return "\n".join([",".join(heads), *(f"{k},{k},1,{k}e300,-{k}e300,{k}" for k in range(9))]).encode(
                "utf-8", "replace"
            )
        case _:
            cells = (*map(str, NUMBERS), "x", "", "1e999", "9" * 5000, "\x1b[31m")
            rows = [",".join(rng.choice(cells) if rng.random() < 0.1 else str(k) for _ in heads) for k in range(1, 4)]
            return "\n".join([",".join(heads), *rows]).encode("utf-8", "replace")


# --- batches.sqlite ---------------------------------------------------------------------------------------------------

ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)"
COLUMNS = "phase TEXT, epoch INTEGER, batch INTEGER, step INTEGER, name TEXT, value REAL, seconds REAL"


def _script(path: Path, script: str, rows: list[tuple[Any, ...]] | None = None) -> None:
    with closing(sqlite3.connect(path)) as file:
        file.executescript(script)
        if rows:
            file.executemany("INSERT OR REPLACE INTO batches VALUES (?, ?, ?, ?, ?, ?, ?)", rows)
        file.commit()


def endless_view(path: Path, rng: random.Random) -> None:
    _script(
        path,
        f"CREATE VIEW batches AS {ENDLESS} SELECT 'train' phase, i epoch, i batch, i step, 'loss' name, 1.0 value, 1.0 seconds FROM n",
    )


def view_in_disguise(path: Path, rng: random.Random) -> None:
    """The list of what the file has calls the view a table."""
    endless_view(path, rng)
    _script(path, "PRAGMA writable_schema = ON; UPDATE sqlite_master SET type = 'table'")


def trigger(path: Path, rng: random.Random) -> None:
    _script(path, f"{SqliteLog.TABLES}; CREATE TRIGGER t AFTER INSERT ON batches BEGIN DELETE FROM epochs; END")


def computed_columns(path: Path, rng: random.Random) -> None:
    _script(path, "CREATE TABLE batches (phase TEXT AS ('train'), epoch INTEGER, batch INTEGER AS (length(replace(hex(zeroblob(1000000)), '0', 'abc'))), "
            "step INTEGER, name TEXT, value REAL, seconds REAL); INSERT INTO batches VALUES (1, 1, 'loss', 1, 1)")  # fmt: skip


def virtual_table(path: Path, rng: random.Random) -> None:
    _script(path, f"CREATE VIRTUAL TABLE batches USING fts5({', '.join(c.split()[0] for c in COLUMNS.split(', '))})")


def other_columns(path: Path, rng: random.Random) -> None:
    _script(
        path,
        rng.choice(
            [
                "CREATE TABLE batches (phase, epoch)",
                "CREATE TABLE other (a)",
                f"CREATE TABLE batches ({COLUMNS}, more TEXT)",
            ]
        ),
    )


def odd_rows(path: Path, rng: random.Random) -> None:
    """Right tables, in which anything stands anywhere."""
    cells = (*TEXTS[:8], *NUMBERS[:5], 1e308, float("inf"), b"\xff" * 3, None, -(2**62), "train", "loss")
    odd = [c for c in cells if not (isinstance(c, str) and "\ud800" in c)]
    rows = [tuple(rng.choice(odd) for _ in range(7)) for _ in range(50)]
    rows += [("train", rng.choice(odd), rng.choice(odd), 1, "loss", rng.choice(odd), 0.1) for _ in range(50)]
    rows = [tuple(c for c in row) for row in rows if not any(isinstance(c, int) and abs(c) >= 2**63 for c in row)]
    _script(path, f"CREATE TABLE batches ({COLUMNS})" if rng.random() < 0.7 else SqliteLog.TABLES, None)
    with closing(sqlite3.connect(path)) as file:
        for row in rows:
            try:
                file.execute("INSERT OR REPLACE INTO batches VALUES (?, ?, ?, ?, ?, ?, ?)", row)
            except sqlite3.Error:  # NULL in a primary key
                continue
        file.commit()


def many_names(path: Path, rng: random.Random) -> None:
    rows = [("train", 1, k, k, f"m{k}{rng.choice(TEXTS[:4])}", 1.0, 0.1) for k in range(rng.choice([50, 3000]))]
    _script(path, SqliteLog.TABLES, rows)


def long_text(path: Path, rng: random.Random) -> None:
    _script(path, SqliteLog.TABLES, [("train", 1, 1, 1, "x" * 3_000_000, 1.0, 0.1)])


def shared_pages(path: Path, rng: random.Random) -> None:
    """A tree in which every page refers to the next one hundreds of times: 5 pages with more rows than can be counted."""
    size = 4096
    _script(path, f"CREATE TABLE batches ({COLUMNS}); INSERT INTO batches VALUES ('train', 1, 1, 1, 'loss', 1.0, 0.1)")
    with closing(sqlite3.connect(path)) as file:
        ((leaf,),) = file.execute("SELECT rootpage FROM sqlite_master").fetchall()
    data = bytearray(path.read_bytes())
    held = data[(leaf - 1) * size : leaf * size]
    pages = len(data) // size
    levels = 5
    children = [pages + k + 1 for k in range(levels)]  # the pages after the root, the last of them the leaf
    count = 300

    def interior(child: int) -> bytes:
        cells = b"".join(child.to_bytes(4, "big") + b"\x01" for _ in range(count))
        start = size - len(cells)
        head = (
            b"\x05" + bytes(2) + count.to_bytes(2, "big") + start.to_bytes(2, "big") + b"\0" + child.to_bytes(4, "big")
        )
        return (head + b"".join((start + 5 * k).to_bytes(2, "big") for k in range(count))).ljust(start, b"\0") + cells

    data[(leaf - 1) * size : leaf * size] = interior(children[0])
    for k in range(levels - 1):
        data += interior(children[k + 1])
    data += held
    data[28:32] = (len(data) // size).to_bytes(4, "big")
    path.write_bytes(data)


def scrambled(path: Path, rng: random.Random) -> None:
    _script(
        path,
        SqliteLog.TABLES,
        [("train", e, b, e * 9 + b, "loss", 1.0, 0.1) for e in range(1, 4) for b in range(1, 90)],
    )
    data = bytearray(path.read_bytes())
    for _ in range(rng.randrange(1, 40)):
        data[rng.randrange(100, len(data))] = rng.randrange(256)
    path.write_bytes(data)


def hot_journal(path: Path, rng: random.Random) -> None:
    """A journal beside the file that names another journal, which would be removed with it."""
    _script(path, SqliteLog.TABLES, [("train", 1, 1, 1, "loss", 1.0, 0.1)])
    victim = str(path.parent / "victim").encode()
    end = len(victim).to_bytes(4, "big") + sum(victim).to_bytes(4, "big") + bytes.fromhex("d9d505f920a163d7")
    page = path.stat().st_size // 4096
    head = (
        bytes.fromhex("d9d505f920a163d7")
        + bytes(8)
        + page.to_bytes(4, "big")
        + (512).to_bytes(4, "big")
        + (4096).to_bytes(4, "big")
    )
    path.with_name(path.name + "-journal").write_bytes(
        head.ljust(512, b"\0") + (2**30 // 4096 + 1).to_bytes(4, "big") + victim + end
    )
    (path.parent / "victim").write_bytes(b"\0")


def link(path: Path, rng: random.Random) -> None:
    path.symlink_to(rng.choice(["/etc/passwd", "../../outside", "/dev/zero", path.name]))


Make: TypeAlias = Callable[[Path, random.Random], None]
DATABASES: tuple[Make, ...] = (
    endless_view, view_in_disguise, trigger, computed_columns, virtual_table, other_columns, odd_rows, odd_rows, odd_rows,
    many_names, long_text, shared_pages, scrambled, scrambled, hot_journal, link,
)  # fmt: skip
REFUSED = (endless_view, view_in_disguise, trigger, computed_columns, virtual_table, other_columns, shared_pages)
"""Those of which nothing may be shown."""


def hostile_run(folder: Path, rng: random.Random, number: int) -> str:
    """Write the files of a run, one or more of which are hostile; returns what was done."""
    folder.mkdir(parents=True)
    make = DATABASES[number % len(DATABASES)]
    done = [make.__name__]
    make(folder / BATCHES, rng)
    for name, hostile, right in ((FACTS, facts, json.dumps({"format": FORMAT, **RIGHT}).encode()),
                                 (EPOCHS, epochs, b"epoch,step,seconds,train.loss\n1,10,2.5,0.5\n2,20,2.5,0.25\n")):  # fmt: skip
        bad = rng.random() < 0.3
        (folder / name).write_bytes(hostile(rng) if bad else right)
        done += [name] if bad else []
    return f"{' and '.join(done)}, number {number}"
