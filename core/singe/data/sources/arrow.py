"""Tables in files of Arrow (IPC, also streams) and Parquet, read by pyarrow. Only this module needs it (the extra `arrow`)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ...errors import FormatError, InputError
from ...files import reason
from ..dataset import Dataset, Field, inside


class ArrowTable(Dataset):
    """The rows of a Parquet or Arrow file as dicts by column; Arrow files are mapped, not read into memory.

    In a batch, columns of numbers are arrays of their dtype (with missing values: floats, and NaN for them), all others
    lists. columns: the names of those that are wanted.
    """

    def __init__(self, path: str | Path, columns: Sequence[str] | None = None) -> None:
        self._name = str(path)
        self._table = _read(path, None if columns is None else list(columns))

    def __len__(self) -> int:
        return self._table.num_rows

    def __getitem__(self, index: int) -> dict[str, Any]:
        (row,) = self.items([index])
        return row

    def items(self, indices: Sequence[int] | np.ndarray) -> list[dict[str, Any]]:
        columns = self.batch(indices)
        return [{name: values[i] for name, values in columns.items()} for i in range(len(indices))]

    def batch(self, indices: Sequence[int] | np.ndarray) -> dict[str, Any]:
        some = self._table.take(inside(indices, self))
        return {name: _values(column) for name, column in zip(some.column_names, some.columns, strict=True)}

    def column(self, field: Field) -> Any:
        if field not in self._table.column_names:
            return super().column(field)
        return _values(self._table.column(field))


def _values(column: Any) -> Any:
    arrow, _ = _pyarrow()
    kind = column.type
    if arrow.types.is_boolean(kind) or arrow.types.is_integer(kind) or arrow.types.is_floating(kind):
        if arrow.types.is_boolean(kind) and column.null_count:
            return column.to_pylist()
        return column.to_numpy()
    if arrow.types.is_list(kind) or arrow.types.is_large_list(kind) or arrow.types.is_fixed_size_list(kind):
        return [None if row is None else np.asarray(row) for row in column.to_pylist()]
    return column.to_pylist()


def _read(path: str | Path, columns: list[str] | None) -> Any:
    arrow, parquet = _pyarrow()
    try:
        with Path(path).open("rb") as file:
            head = file.read(6)
        if head[:4] == b"PAR1":
            table = parquet.read_table(path, memory_map=True)
        else:
            source = arrow.memory_map(str(path))
            table = (arrow.ipc.open_file if head == b"ARROW1" else arrow.ipc.open_stream)(source).read_all()
            table.validate(full=True)
    except OSError as e:
        if isinstance(e, arrow.ArrowException) or e.errno is None:
            raise FormatError(f"{path}: neither Parquet nor Arrow, or damaged: {e}") from None
        raise InputError(f"{path}: cannot be read: {reason(e)}") from None
    except arrow.ArrowException as e:
        raise FormatError(f"{path}: neither Parquet nor Arrow, or damaged: {e}") from None
    unknown = [name for name in columns or () if name not in table.column_names]
    if unknown:
        raise InputError(f"{path}: no columns {', '.join(unknown)}; it has {', '.join(table.column_names)}")
    return table if columns is None else table.select(columns)


def _pyarrow() -> Any:
    try:
        import pyarrow  # noqa: PLC0415  # pyright: ignore[reportMissingImports] (an extra, wanted only for such files)
        import pyarrow.ipc  # noqa: PLC0415  # pyright: ignore[reportMissingImports]
        import pyarrow.parquet  # noqa: PLC0415  # pyright: ignore[reportMissingImports]
    except ImportError:
        raise InputError("Arrow and Parquet files need pyarrow: pip install 'singe[arrow]'") from None
    return pyarrow, pyarrow.parquet
