"""What the table of a run's batches (batches.sqlite) tells.

The file may come from anywhere, and a database can say much: a view or a virtual table that bears the name of a table, and
never ends; pages that refer to one page a thousand times. So it is opened for reading only, must be a plain table with the
columns that a SqliteLog writes, and each question may take a number of SQLite's steps that grows with the bytes of the file.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, Final, TypeAlias, TypeVar

from ....errors import FormatError, InputError
from ....files import inside
from ...folder import BATCHES

Point: TypeAlias = tuple[float, float]
T = TypeVar("T")
COLUMNS: Final = ("phase", "epoch", "batch", "step", "name", "value", "seconds")
PLAIN: Final = ("CREATE TABLE ", "CREATE INDEX ", "CREATE UNIQUE INDEX ")
"""How the texts begin by which SQLite made what a file may hold."""
MOST_NAMES: Final = 1000
LONGEST_NAME: Final = 200
LARGEST: Final = 1 << 32
"""Bytes of the file."""
LONGEST_VALUE: Final = 1 << 16
"""Bytes of a value or a text in it."""
STEPS: Final = 10_000_000
STEPS_PER_BYTE: Final = 20
"""How many of SQLite's steps a question may take: a row has about 45 bytes, and takes about 100 steps."""
STRIDE: Final = 10_000
_ROWS: Final = (
    "FROM batches WHERE phase = 'train' AND epoch BETWEEN 0 AND 1e9 AND batch BETWEEN 0 AND 1e9"
    f" AND typeof(name) = 'text' AND length(name) <= {LONGEST_NAME}"
)
"""The rows that are looked at; texts and bytes are larger than every number."""


def batch_names(folder: Path) -> list[str]:
    """The values that batches of training have, by name, in their order."""
    command = f"SELECT DISTINCT name {_ROWS} ORDER BY name LIMIT {MOST_NAMES + 1}"
    found = _ask(folder / BATCHES, lambda ask: [name for (name,) in ask(command, ())], [])
    if len(found) > MOST_NAMES:
        raise FormatError(f"{folder / BATCHES}: values of more than {MOST_NAMES} names")
    return found


def batch_averages(folder: Path, count: int) -> dict[str, list[Point]]:
    """The values of the batches of training by name, as averages of at most about `count` parts; x is in epochs."""

    def question(ask: _Asks) -> dict[str, list[Point]]:
        ((most,),) = ask(f"SELECT MAX(batch) {_ROWS}", ())
        if not most or most < 1:
            return {}
        x = "(epoch - 1 + batch * 1.0 / ?)"
        ((first, last),) = ask(f"SELECT MIN{x}, MAX{x} {_ROWS}", (most, most))
        part = max((last - first) / count, 1e-9)
        rows = ask(
            f"SELECT name, AVG{x}, AVG(value) {_ROWS} AND value BETWEEN -1e300 AND 1e300 "
            f"GROUP BY name, CAST(({x} - ?) / ? AS INTEGER) ORDER BY 1, 2 LIMIT {MOST_NAMES * (count + 2)}",
            (most, most, first, part),
        )
        found: dict[str, list[Point]] = {}
        for name, at, value in rows:
            found.setdefault(name, []).append((at, value))
        return found

    return _ask(folder / BATCHES, question, {})


_Asks: TypeAlias = Callable[[str, Sequence[float]], list[Any]]
"""Takes a question and its parameters, and gives the rows."""


def check_batches(path: Path) -> None:
    """Refuse a file to which a run would be added if it is no plain table of batches."""
    _ask(path, lambda ask: None, None)


def _ask(path: Path, question: Callable[[_Asks], T], nothing: T) -> T:
    """What the table answers; nothing where there is none."""
    if not path.is_file():
        return nothing
    try:
        import sqlite3  # noqa: PLC0415
    except ImportError:  # it is not part of every Python
        return nothing
    for end in (
        "",
        "-wal",
        "-shm",
        "-journal",
    ):  # what SQLite may open; none of them may be a link that leads elsewhere
        inside(path.parent, path.name + end)
    size = path.stat().st_size
    if size > LARGEST:
        raise FormatError(f"{path}: has {size:,} bytes, expected at most {LARGEST:,}")
    limit = STEPS + STEPS_PER_BYTE * size
    left = limit

    def tick() -> bool:
        nonlocal left
        left -= STRIDE
        return left < 0

    def ask(command: str, values: Sequence[float]) -> list[Any]:
        nonlocal left
        left = limit
        return file.execute(command, values).fetchall()

    try:
        # Not even what a run that was killed left beside the file is cleared away: a journal can name any file, to be removed.
        with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as file:
            file.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LONGEST_VALUE)
            file.set_progress_handler(tick, STRIDE)
            file.execute("PRAGMA trusted_schema = OFF")
            return question(ask) if _is_table(ask, path) else nothing
    except (sqlite3.Error, UnicodeDecodeError) as e:  # the text of an error may be of the file
        if getattr(e, "sqlite_errorname", "") == "SQLITE_INTERRUPT":
            if left >= 0:  # Ctrl-C came while `tick` was called: sqlite3 keeps the exception to itself
                raise KeyboardInterrupt from None
            raise FormatError(f"{path}: a question takes more steps than a table of {size:,} bytes can need") from None
        if getattr(e, "sqlite_errorname", "").startswith("SQLITE_READONLY"):
            raise InputError(f"cannot read {path}: another process was writing it when it ended, or is now") from None
        raise FormatError(f"{path}: cannot be read as a run's batches: {e}") from None


def _is_table(ask: _Asks, path: Path) -> bool:
    """Whether there is a table; refuse what is no plain one with the columns of one."""
    held = ask(f"SELECT type, name, sql FROM sqlite_master LIMIT {MOST_NAMES}", ())
    for kind, name, text in held:
        if kind not in ("table", "index") or (text is not None and not str(text).upper().startswith(PLAIN)):
            raise FormatError(f"{path}: has the {kind!r:.40} {name!r:.60}, expected nothing but tables")
    columns = ask("SELECT name, hidden FROM pragma_table_xinfo('batches')", ())
    if held and columns != [(name, 0) for name in COLUMNS]:
        there = ", ".join(f"{name!r:.40}{' (computed)' if hidden else ''}" for name, hidden in columns[:10]) or "none"
        raise FormatError(
            f"{path}: the columns of its table batches are {there}, expected {', '.join(COLUMNS)}, none of them computed"
        )
    return bool(held)
