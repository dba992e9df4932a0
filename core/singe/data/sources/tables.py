"""Tables of typed columns: CSV files, and queries of SQLite databases. Items are dicts by column."""

from __future__ import annotations

import csv
import re
import threading
from array import array
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, contextmanager
from numbers import Integral, Real
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import quote

import numpy as np

from ...errors import FormatError, InputError
from ...files import reason
from ...files.places import local_file
from ..collate import collate
from ..dataset import ArrayDataset, Dataset, Field

MISSING: Final = ("", "NA", "N/A", "NaN", "nan", "null", "NULL", "None")
"""What stands for a missing value, if the caller does not say otherwise."""
STRIDE: Final = 100_000
"""Steps of SQLite from one look whether Ctrl-C was pressed to the next."""
MOST_ROWS: Final = 10_000_000
"""The most rows of a query: a database may have views without an end."""
_INT: Final = re.compile(r"\s*[+-]?[0-9]{1,18}\s*")
_FLOAT: Final = re.compile(
    r"\s*[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,4})?\s*|\s*[+-]?inf(?:inity)?\s*", re.I
)
_LARGEST: Final = float(np.finfo(np.float32).max)
_BOOLS: Final = {"true": 1, "yes": 1, "1": 1, "false": 0, "no": 0, "0": 0}


def _int(text: str) -> int:
    if not _INT.fullmatch(text):
        raise ValueError("an integer of at most 18 digits")
    return int(text)


def _float(text: str) -> float:
    found = float(text) if _FLOAT.fullmatch(text) else np.nan
    if not (abs(found) <= _LARGEST or (np.isinf(found) and "f" in text.lower())):
        raise ValueError("a number of float32")
    return found


def _bool(text: str) -> int:
    found = _BOOLS.get(text.strip().lower())
    if found is None:
        raise ValueError("true or false, yes or no, 1 or 0")
    return found


class _Kind(NamedTuple):
    """A type of column: how a cell is read, the code of the `array` that holds its numbers, their dtype at the end, and the
    type of what may fill it."""

    read: Callable[[str], Any]
    code: str
    dtype: Any
    filler: type


_KINDS: Final[Mapping[Any, _Kind]] = {
    int: _Kind(_int, "q", np.int64, Integral),
    float: _Kind(_float, "d", np.float32, Real),
    bool: _Kind(_bool, "b", np.bool_, Integral),
}
"""Columns of `str` and "category" have no row."""


class CSV(ArrayDataset):
    """The rows of a CSV file as dicts of numbers and strings. The file is read at once, in UTF-8; one at a URL is fetched into
    the cache, and compared with the hash of `#sha256=…` behind its address.

    columns: name ↦ int, float, bool, str or "category" (the place among the sorted values, which `categories` lists by
    name); columns that it lacks are left out. Without it, a column is of ints if all of its cells are, else of floats if
    they are, else of strings. header: whether the first line has the names; or the names.

    A cell of `missing` is NaN in a column of floats, itself in one of strings; elsewhere `fill`, name ↦ value, must have
    one. Numbers are int64, float32 and bool.
    """

    def __init__(
        self,
        path: str | Path,
        columns: Mapping[str, Any] | None = None,
        *,
        header: bool | Sequence[str] = True,
        delimiter: str = ",",
        missing: Sequence[str] = MISSING,
        fill: Mapping[str, Any] | None = None,
    ) -> None:
        for name, kind in (columns or {}).items():
            if kind not in _KINDS and kind not in (str, "category"):
                raise InputError(
                    f"CSV: got the type {kind!r:.40} for {name!r}, expected int, float, bool, str or 'category'"
                )
        if len(delimiter) != 1 or delimiter in '\r\n"':
            raise InputError(f"CSV: got the delimiter {delimiter!r:.40}, expected one character")
        self.categories: Final[dict[str, tuple[str, ...]]] = {}
        reader = _CsvReader(path, frozenset(missing), dict(fill or {}))
        super().__init__(reader.read(columns, header, delimiter, self.categories))


class _Column:
    """Cells of one column, converted as they come if the type is known."""

    def __init__(self, kind: Any) -> None:
        self.kind = kind
        self.values: Any = array(_KINDS[kind].code) if kind in _KINDS else []


class _CsvReader:
    def __init__(self, path: str | Path, missing: frozenset[str], fill: dict[str, Any]) -> None:
        self._path, self._missing, self._fill = path, missing, fill

    def read(self, wanted: Mapping[str, Any] | None, header: Any, delimiter: str, categories: dict[str, Any]) -> Any:
        try:
            with local_file(self._path).open(encoding="utf-8-sig", newline="") as file:
                rows = csv.reader(file, delimiter=delimiter, strict=True)
                names, columns = self._columns(rows, wanted, header)
                for row in rows:
                    if row or len(names) == 1:
                        self._add(row or [""], names, columns, rows.line_num)
        except OSError as e:
            raise InputError(f"{self._path}: cannot be read: {reason(e)}") from None
        except UnicodeDecodeError:
            raise FormatError(f"{self._path}: not UTF-8") from None
        except csv.Error as e:
            raise FormatError(f"{self._path}: malformed: {e}") from None
        return {name: self._array(name, column, categories) for name, column in columns.items()}

    def _columns(self, rows: Any, wanted: Any, header: Any) -> tuple[list[str], dict[str, _Column]]:
        if header is False:
            raise InputError("CSV: header=False says no names; give them: header=['x', 'y']")
        names = next(rows, []) if header is True else list(header)
        if not names or len(set(names)) < len(names):
            raise FormatError(f"{self._path}: the columns {names!r:.200} have no names, or twice the same")
        unknown = [name for name in {**(wanted or {}), **self._fill} if name not in names]
        if unknown:
            raise InputError(f"{self._path}: no columns {', '.join(map(repr, unknown))}; it has {', '.join(names)}")
        kinds: dict[str, Any] = {name: (wanted or {}).get(name) for name in (wanted or names)}
        for name, value in self._fill.items():
            if (kind := kinds.get(name, str)) in _KINDS and not isinstance(value, _KINDS[kind].filler):
                raise InputError(
                    f"CSV: fill has {value!r:.40} for {name!r}, a column of {kind.__name__}; give a value of that type"
                )
        return names, {name: _Column(kind) for name, kind in kinds.items()}

    def _add(self, row: list[str], names: list[str], columns: dict[str, _Column], line: int) -> None:
        if len(row) != len(names):
            raise FormatError(f"{self._path}, line {line}: {len(row)} cells, expected {len(names)}")
        for name, cell in zip(names, row, strict=True):
            column = columns.get(name)
            if column is None:
                continue
            if column.kind not in _KINDS:
                column.values.append(cell)
                continue
            try:
                column.values.append(self._number(name, cell, column.kind))
            except ValueError as e:
                raise FormatError(
                    f"{self._path}, line {line}: column {name!r}: got {cell!r:.60}, expected {e}"
                ) from None

    def _number(self, name: str, cell: str, kind: Any) -> Any:
        if cell in self._missing:
            if name in self._fill:
                return self._fill[name]
            if kind is not float:
                raise ValueError(
                    f"a value; fill={{{name!r}: …}} stands for missing ones, and columns of floats have NaN"
                )
            return np.nan
        return _KINDS[kind].read(cell)

    def _array(self, name: str, column: _Column, categories: dict[str, Any]) -> Any:
        if column.kind is None:
            return self._inferred(name, column.values)
        if column.kind is str:
            return self._filled(name, column.values)
        if column.kind == "category":
            cells = self._filled(name, column.values)
            if any(cell in self._missing for cell in cells):
                raise FormatError(
                    f"{self._path}: column {name!r}: a cell is missing; fill={{{name!r}: …}} gives its value"
                )
            categories[name] = tuple(sorted(set(cells)))
            place = {value: i for i, value in enumerate(categories[name])}
            return np.array([place[cell] for cell in cells], np.int64)
        return np.array(column.values).astype(_KINDS[column.kind].dtype)

    def _inferred(self, name: str, cells: list[str]) -> Any:
        lacking = any(cell in self._missing for cell in cells)
        for kind in (int, float):
            if (
                lacking
                and (kind is int or name in self._fill)
                and not isinstance(self._fill.get(name), _KINDS[kind].filler)
            ):
                continue
            try:
                return np.array([self._number(name, cell, kind) for cell in cells], _KINDS[kind].dtype)
            except ValueError:
                continue
        return self._filled(name, cells)

    def _filled(self, name: str, cells: list[str]) -> list[str]:
        return [self._fill[name] if c in self._missing else c for c in cells] if name in self._fill else cells


class SQLite(Dataset):
    """The rows of a query of an SQLite database, which is opened for reading only, as dicts by column.

    Rows are read at once: ints become int64, floats and ints with missing values float32, all else stays as it is. key: a
    column of the query that has a different value in every row, and an index; then only the keys are kept in memory, and
    rows are read when they are asked for, by a connection for each thread; COALESCE in the query stands for missing numbers.
    """

    def __init__(self, path: str | Path, query: str, parameters: Sequence[Any] = (), *, key: str | None = None) -> None:
        self._path, self._query, self._parameters = Path(path), query.strip().rstrip(";"), tuple(parameters)
        self._key = None if key is None else '"' + key.replace('"', '""') + '"'
        self._of_thread = threading.local()
        with closing(self._connect()) as connection, self._errors():
            if self._key is None:
                found = connection.execute(self._query, self._parameters)
                names = [column[0] for column in found.description or ()]
                rows = found.fetchmany(MOST_ROWS + 1)
            else:
                asked = f"SELECT {self._key} FROM ({self._query}) ORDER BY 1"
                names, rows = [], connection.execute(asked, self._parameters).fetchmany(MOST_ROWS + 1)
        if len(rows) > MOST_ROWS:
            raise InputError(f"SQLite: the query has more than {MOST_ROWS} rows; a LIMIT in it takes a part")
        if self._key is None:
            if not names or len(set(names)) < len(names):
                raise InputError(f"SQLite: the query has the columns {names}, expected different names; see AS in SQL")
            columns = list(zip(*rows, strict=True)) if rows else [()] * len(names)
            self._rows: Dataset | None = ArrayDataset({n: _typed(c) for n, c in zip(names, columns, strict=True)})
            self._keys: list[Any] = []
        else:
            self._rows, self._keys = None, [row[0] for row in rows]
            if len(set(self._keys)) < len(self._keys) or None in self._keys:
                raise InputError(
                    f"SQLite: the column {key!r} has a value twice, or none, and is no key; give key= the name of a column with a different value in each row"
                )

    def __len__(self) -> int:
        return len(self._keys) if self._rows is None else len(self._rows)

    def __getitem__(self, index: int) -> dict[str, Any]:
        return self.items([index])[0]

    def items(self, indices: Sequence[int] | np.ndarray) -> list[dict[str, Any]]:
        if self._rows is not None:
            return self._rows.items(indices)
        keys = [self._keys[self._at(i)] for i in indices]
        found: dict[Any, dict[str, Any]] = {}
        for start in range(0, len(keys), 500):  # SQLite takes a limited number of parameters
            some = keys[start : start + 500]
            query = f"SELECT {self._key}, * FROM ({self._query}) WHERE {self._key} IN ({', '.join('?' * len(some))})"
            with self._errors():
                rows = self._connection().execute(query, (*self._parameters, *some))
                names = [column[0] for column in rows.description]
                found |= {row[0]: dict(zip(names[1:], row[1:], strict=True)) for row in rows}
        if len(found) < len(set(keys)):
            raise InputError(f"{self._path}: rows are gone since the dataset was made; make the dataset anew")
        return [found[k] for k in keys]

    def batch(self, indices: Sequence[int] | np.ndarray) -> Any:
        return collate(self.items(indices)) if self._rows is None else self._rows.batch(indices)

    def column(self, field: Field) -> Any:
        return super().column(field) if self._rows is None else self._rows.column(field)

    def _connection(self) -> Any:
        if not hasattr(self._of_thread, "kept"):
            self._of_thread.kept = _KeptRows(self._connect())
        return self._of_thread.kept.connection

    def _connect(self) -> Any:
        sqlite3 = _sqlite3()
        if not self._path.is_file():
            raise InputError(f"{self._path}: no such file, expected the path of one; look for a slip in its name")
        with self._errors():
            address = f"file:{quote(str(self._path.resolve()))}?mode=ro"
            connection = sqlite3.connect(address, uri=True, check_same_thread=False)  # another thread may close it
            try:
                connection.set_progress_handler(lambda: 0, STRIDE)  # while it is called, Ctrl-C is heard
                connection.execute("PRAGMA trusted_schema = OFF")  # a file's views call no functions with effects
                connection.execute("PRAGMA schema_version")  # reads the file's head
            except BaseException:
                connection.close()
                raise
            return connection

    @contextmanager
    def _errors(self) -> Any:
        sqlite3 = _sqlite3()
        try:
            yield
        except (sqlite3.OperationalError, sqlite3.ProgrammingError, sqlite3.Warning) as e:
            if getattr(e, "sqlite_errorname", "") == "SQLITE_INTERRUPT":  # sqlite3 keeps the exception to itself
                raise KeyboardInterrupt from None
            raise InputError(f"{self._path}: {e}: {self._query:.200}") from None
        except sqlite3.DatabaseError as e:
            raise FormatError(f"{self._path}: {e}") from None


class _KeptRows:
    """A connection that is closed with its thread, or with the dataset."""

    def __init__(self, connection: Any) -> None:
        self.connection = connection

    def __del__(self) -> None:
        self.connection.close()


def _sqlite3() -> Any:
    try:
        import sqlite3  # noqa: PLC0415 (Python in a page has it only if it was installed)
    except ImportError:
        raise InputError("this Python has no sqlite3; in a page: await pyodide.loadPackage('sqlite3')") from None
    return sqlite3


def _typed(values: Sequence[Any]) -> Any:
    kinds = {type(v) for v in values}
    if kinds == {int}:
        return np.array(values, np.int64)
    if values and kinds <= {int, float, type(None)} and kinds != {type(None)}:
        return np.array([np.nan if v is None else v for v in values], np.float32)
    return list(values)
