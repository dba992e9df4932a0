"""Tables: typed columns of CSV files, queries of SQLite databases, Arrow and Parquet files."""

from __future__ import annotations

import math
import os
import re
import signal
import sqlite3
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from singe import data
from singe.data.sources import tables
from singe.errors import FormatError, InputError

TEXT = 'name,age,height,member,city\nAda,36,1.65,yes,London\nBob,41,NA,no,Paris\n"O\'Neil, C.",7,1.2e0,1,London\n'


def write(path: Path, text: str | bytes) -> Path:
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


# --- CSV -------------------------------------------------------------------------------------------------------------


def test_columns_without_types_are_ints_floats_or_strings(tmp_path: Path) -> None:
    for text in (TEXT, "\ufeff" + TEXT, TEXT.replace("\n", "\r\n"), TEXT + "\n\n"):
        found = data.CSV(write(tmp_path / "a.csv", text))
        assert len(found) == 3
        assert found[2] == {"name": "O'Neil, C.", "age": 7, "height": np.float32(1.2), "member": "1", "city": "London"}
        kinds = {k: getattr(v, "dtype", list) for k, v in found.columns.items()}
        assert kinds == {"name": list, "age": np.int64, "height": np.float32, "member": list, "city": list}
        assert math.isnan(found[1]["height"])
        batch = found.batch([2, 0])
        np.testing.assert_array_equal(batch["age"], [7, 36])
        assert batch["city"] == ["London", "London"]


def test_columns_have_the_types_that_are_given(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", TEXT)
    found = data.CSV(path, {"member": bool, "age": float, "city": "category", "height": float})
    assert list(found.columns) == ["member", "age", "city", "height"]
    np.testing.assert_array_equal(found.columns["member"], [True, False, True])
    np.testing.assert_array_equal(found.columns["city"], [0, 1, 0])
    assert found.categories == {"city": ("London", "Paris")}
    assert found.columns["age"].dtype == np.float32
    filled = data.CSV(path, {"height": float, "age": int}, fill={"height": 0.5})
    np.testing.assert_allclose(filled.columns["height"], [1.65, 0.5, 1.2])


def test_names_delimiters_and_missing_values_are_the_callers(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", "1;-;x\n2;5;y\n")
    found = data.CSV(path, header=["a", "b", "c"], delimiter=";", missing=["-"])
    assert found[0]["a"] == 1
    assert math.isnan(found[0]["b"])
    assert data.CSV(path, header=["a", "b", "c"], delimiter=";", missing=["-"], fill={"b": 9})[0]["b"] == 9
    assert len(data.CSV(write(tmp_path / "e.csv", "a,b\n"))) == 0
    assert [row["a"] for row in data.CSV(write(tmp_path / "f.csv", "a\n''\n3\n"), missing=["''"], fill={"a": 0.5})] == [
        0.5,
        3,
    ]


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [("a,b\n1\n", {}, "line 2: 1 cells, expected 2"), ("a,a\n1,2\n", {}, "twice the same"), ("", {}, "no names"), (b"a\n\xff\n", {}, "not UTF-8"),
     ('a\n"1\n', {}, "malformed"), ("a\n1\nx\n", {"columns": {"a": int}}, "line 3: column 'a': got 'x', expected an integer"),
     ("a\n1_0\n", {"columns": {"a": float}}, "expected a number"), ("a\n2\n", {"columns": {"a": bool}}, "true or false"),
     ("a,b\nNA,1\n", {"columns": {"a": int}}, "fill={'a': …}"), ("a,b\nNA,1\n", {"columns": {"a": "category"}}, "fill={'a': …}"),
     ("a\n" + "9" * 19 + "\n", {"columns": {"a": int}}, "18 digits"), ("a\n" + "x" * 200_000, {}, "malformed"),
     ("a\n1\n", {"columns": {"b": int}}, "no columns 'b'; it has a"), ("a\n1\n", {"columns": {"a": list}}, "got the type"),
     ("a\n1\n", {"header": False}, "header="), ("a\n1\n", {"delimiter": ""}, "delimiter"), ("a\n1\n", {"fill": {"z": 1}}, "no columns 'z'"),
     ("a\nNA\n", {"columns": {"a": int}, "fill": {"a": 1.5}}, "fill has 1.5 for 'a', a column of int")],
)  # fmt: skip
def test_malformed_csv_files_are_refused(text: Any, options: dict[str, Any], message: str, tmp_path: Path) -> None:

    with pytest.raises((FormatError, InputError), match=re.escape(message)):
        data.CSV(write(tmp_path / "a.csv", text), **options)


def test_large_numbers_without_a_type_stay_strings(tmp_path: Path) -> None:
    found = data.CSV(write(tmp_path / "a.csv", "a,b\n" + "9" * 40 + ",inf\n1,-inf\n"))
    assert found.columns["a"] == ["9" * 40, "1"]
    np.testing.assert_array_equal(found.columns["b"], [np.inf, -np.inf])


# --- SQLite ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def database(tmp_path: Path) -> Path:
    path = tmp_path / "a%20b?.db"
    connection = sqlite3.connect(path)
    with connection:
        connection.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, x REAL, n INTEGER, name TEXT, raw BLOB)")
        rows = [(3 * i, i / 2, None if i == 2 else i, f"row {i}", bytes([i % 256])) for i in range(1200)]
        connection.executemany("INSERT INTO t VALUES (?, ?, ?, ?, ?)", rows)
    connection.close()
    return path


QUERY = "SELECT id, x, coalesce(n, -1) AS n, name, raw FROM t WHERE id < ?;"


@pytest.mark.parametrize("key", [None, "id"])
def test_rows_of_a_query_are_items(key: str | None, database: Path) -> None:
    found = data.SQLite(database, QUERY, (3000,), key=key)
    assert len(found) == 1000
    assert {k: found[1][k] for k in ("id", "x", "name", "raw")} == {"id": 3, "x": 0.5, "name": "row 1", "raw": b"\1"}
    assert found[-1]["id"] == 2997
    batch = found.batch([5, 1, 5])
    np.testing.assert_array_equal(batch["id"], [15, 3, 15])
    assert batch["name"] == ["row 5", "row 1", "row 5"]
    loaded = [b["id"] for b in data.Loader(found, 700, workers=3, shuffle=True)]
    assert sorted(np.concatenate(loaded)) == list(range(0, 3000, 3))
    np.testing.assert_array_equal(found.column("id"), np.arange(0, 3000, 3))


def test_missing_values_of_numbers_are_nan(database: Path) -> None:
    found = data.SQLite(database, "SELECT n, count(*) AS c FROM t GROUP BY n HAVING n IS NULL OR n < 3")
    np.testing.assert_array_equal(found.column("n"), np.array([np.nan, 0, 1], np.float32))
    assert len(data.SQLite(database, "SELECT * FROM t WHERE 0")) == 0


@pytest.mark.parametrize(
    ("query", "key", "message"),
    [("SELECT * FROM missing", None, "no such table"), ("nonsense", None, "syntax error"), ("SELECT id, id FROM t", None, "different names"),
     ("SELECT * FROM t", "other", "InputError"), ("SELECT n FROM t", "n", "is no key"), ("DELETE FROM t", None, "readonly"),
     ("SELECT * FROM t WHERE id = ?", None, "bindings")],
)  # fmt: skip
def test_wrong_queries_are_refused(query: str, key: str | None, message: str, database: Path) -> None:
    with pytest.raises(InputError) as error:
        data.SQLite(database, query, key=key)
    assert message in str(error.value) or message == "InputError"


def test_a_query_without_an_end_is_refused(database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "MOST_ROWS", 1000)
    for key in (None, "i"):
        with pytest.raises(InputError, match="more than 1000 rows"):
            data.SQLite(
                database,
                "WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c LIMIT 5000) SELECT i FROM c",
                key=key,
            )


def test_files_that_are_no_database_are_refused(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="not a database"):
        data.SQLite(write(tmp_path / "a.db", b"no database at all" * 100), "SELECT 1")
    with pytest.raises(InputError, match="no such file"):
        data.SQLite(tmp_path / "none.db", "SELECT 1")


# --- Arrow and Parquet -----------------------------------------------------------------------------------------------


@pytest.fixture
def table() -> Any:
    arrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    return arrow.table({
        "x": arrow.array([0.5, None, 2.5], arrow.float32()), "n": [1, 2, 3], "maybe": [1, None, 3], "name": ["a", None, "c"], "ok": [True, False, True],
        "list": [[1, 2], [], [3]], "row": arrow.array([[1.0, 2.0]] * 3, arrow.list_(arrow.float32(), 2)),
    })  # fmt: skip


def arrow_files(table: Any, folder: Path) -> dict[str, Path]:
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    parquet.write_table(table, folder / "a.parquet", row_group_size=2)
    for name, make in (("a.arrow", arrow.ipc.new_file), ("a.arrows", arrow.ipc.new_stream)):
        with make(str(folder / name), table.schema) as writer:
            writer.write_table(table)
    return {path.name: path for path in folder.iterdir()}


@pytest.mark.parametrize("name", ["a.parquet", "a.arrow", "a.arrows"])
def test_rows_of_arrow_files_are_items(name: str, table: Any, tmp_path: Path) -> None:
    path = arrow_files(table, tmp_path)[name]
    found = data.ArrowTable(path)
    assert len(found) == 3
    row = found[-1]
    assert (row["x"], row["n"], row["name"], row["ok"], row["list"].tolist()) == (2.5, 3, "c", True, [3])
    batch = found.batch([2, 1])
    assert {k: getattr(v, "dtype", list) for k, v in batch.items()} == {
        "x": np.float32, "n": np.int64, "maybe": np.float64, "name": list, "ok": np.bool_, "list": list, "row": list,
    }  # fmt: skip
    np.testing.assert_array_equal(batch["x"], np.array([2.5, np.nan], np.float32))
    assert batch["name"] == ["c", None]
    np.testing.assert_array_equal(found.column("n"), [1, 2, 3])
    assert list(data.ArrowTable(path, ["n"])) == [{"n": 1}, {"n": 2}, {"n": 3}]
    padded = next(iter(data.Loader(found, 3, workers=2, collate=data.PadCollate("list"))))
    np.testing.assert_array_equal(padded["list_mask"].sum(1), [2, 0, 1])
    with pytest.raises(InputError, match="no columns z; it has x, n"):
        data.ArrowTable(path, ["z"])


def test_damaged_arrow_files_are_refused(table: Any, tmp_path: Path) -> None:
    for path in arrow_files(table, tmp_path).values():
        whole = path.read_bytes()
        for content in (whole[:-20], whole[:40], whole[:6] + b"\xff" * 40):
            path.write_bytes(content)
            with pytest.raises(FormatError, match="damaged"):
                data.ArrowTable(path)
    for content in (b"", b"PAR1", b"text"):
        with pytest.raises(FormatError):
            data.ArrowTable(write(tmp_path / "b", content))
    with pytest.raises(InputError, match="No such file"):
        data.ArrowTable(tmp_path / "none")


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="there is no signal to be sent to oneself")
def test_ctrl_c_ends_a_query_without_an_end(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "a.db") as file:
        file.execute(
            "CREATE VIEW v AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT COUNT(*) x FROM n"
        )
    file.close()
    timer = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        data.SQLite(tmp_path / "a.db", "SELECT * FROM v")
    timer.join()
