"""Datasets and batches: what is in them, in which order, and what is refused."""

from __future__ import annotations

from collections import Counter, namedtuple
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import singe as sg
from singe import data
from singe.errors import InputError, OutOfRange, ShapeError

Point = namedtuple("Point", "x y")


class Squares(data.Dataset):
    def __len__(self) -> int:
        return 10

    def __getitem__(self, index: int) -> int:
        return index**2


def arrays() -> data.Dataset:
    return data.Dataset.of((np.arange(20).reshape(10, 2), np.arange(10) % 3))


# --- datasets --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "last"),
    [([1, 2, 3], 3), (np.arange(3), 2), ((np.arange(3), ["a", "b", "c"]), (2, "c")), ({"x": np.arange(3), "y": [4, 5, 6]}, {"x": 2, "y": 6}),
     (range(5, 8), 7), ((sg.arange(3), np.arange(3)), (2, 2)), ({"x": (np.arange(3), np.arange(3) + 1)}, {"x": (2, 3)})],
)  # fmt: skip
def test_values_in_memory_are_datasets(values: Any, last: Any) -> None:
    made = data.Dataset.of(values)
    assert len(made) == 3
    assert made[2] == made[-1] == last
    assert len(list(made)) == 3
    with pytest.raises(OutOfRange, match=r"got index 3, and .* of 3 items has indices from 0 to 2"):
        made[3]


def test_values_that_are_no_dataset_are_refused() -> None:
    for values in (iter([1]), 3, "text", (np.arange(3), np.arange(4)), {}, ("a", "b"), (1, 2), np.array(3)):
        with pytest.raises(InputError):
            data.Dataset.of(values)


def test_datasets_made_of_others_have_their_items() -> None:
    base = Squares()
    assert list(base.map(lambda x: -x)) == [-(i**2) for i in range(10)]
    assert list(base.select([3, -1, 3])) == [9, 81, 9]
    assert list(base.partial(2, 5)) == list(base.partial(0.2, 0.5)) == [4, 9, 16]
    assert list(base.partial(-2)) == [64, 81]
    assert list(data.concat(base, [1, 2]))[8:] == [64, 81, 1, 2]
    assert data.zipped(base, range(10))[4] == (16, 4)
    assert [list(w) for w in base.window(4, 3)] == [[0, 1, 4, 9], [9, 16, 25, 36], [36, 49, 64, 81]]
    assert len(base.window(11)) == 0
    shuffled = base.shuffle(1)
    assert sorted(shuffled) == list(base) != list(shuffled)
    assert list(base.shuffle(1)) == list(shuffled) != list(base.shuffle(2))
    assert list(base.select([5, 3, 1]).select([2, 0])) == [1, 25]
    nested = base.select([5, 3, 1]).partial(1)
    assert (nested.dataset, list(nested.indices)) == (base, [3, 1])


def test_samples_repeat_items_with_replacement_only() -> None:
    base = data.Dataset.of(np.arange(50))
    assert len(set(base.sample(30, seed=1))) == 30
    drawn = Counter(int(x) for x in base.sample(50_000, replacement=True, seed=1))
    assert 850 < min(drawn.values()) < max(drawn.values()) < 1150
    with pytest.raises(InputError, match="51 items of 50; more than there are need replacement=True"):
        base.sample(51)


def drawn(seed: int) -> tuple[np.random.Generator, int]:
    """A generator, and any integer."""
    rng = np.random.default_rng(seed)
    return rng, int(rng.choice([0, -1, 1 << 70, rng.integers(-(1 << 62), 1 << 62)]))


def test_splits_share_no_item_and_have_the_fractions() -> None:
    for case in range(100):
        rng, any_integer = drawn(case)
        count, seed = int(rng.integers(201)) * (case > 0), None if case % 2 else any_integer
        fractions = rng.choice([0.0, 1.0, *rng.random(4)], rng.integers(1, 6))
        parts = [float(f) for f in fractions / max(fractions.sum(), 1)]
        made = data.Dataset.of(np.arange(count)).split(*parts, seed=seed)
        found = [int(x) for part in made for x in part]
        assert len(found) == len(set(found))
        assert all(abs(len(part) - p * count) <= 1 for part, p in zip(made, parts, strict=True)), (count, parts)
        assert seed is not None or found == sorted(found)


def test_stratified_splits_have_each_label_in_its_proportion() -> None:
    for case in range(100):
        rng, seed = drawn(case)
        labels = [int(x) for x in rng.integers(rng.integers(1, 5), size=rng.integers(1, 121))]
        part = float(rng.choice([0.0, 1.0, *rng.random(4)]))
        base = data.Dataset.of((np.arange(len(labels)), np.array(labels)))
        train, rest = base.split(part, 1 - part, seed=seed, stratify=1)
        assert len(train) + len(rest) == len(labels)
        for label, count in Counter(labels).items():
            # one, and the rounding of the whole
            assert abs(list(train.column(1)).count(label) - part * count) <= 1.5, (labels, part)
        again = base.split(part, 1 - part, seed=seed, stratify=labels)
        assert [int(x) for x, _ in train] == [int(x) for x, _ in again[0]]


def test_splits_by_count_and_what_they_refuse() -> None:
    base = Squares()
    assert [len(p) for p in base.split(7, 2)] == [7, 2]
    for parts, options, message in (
        ((11,), {}, "11 items together"), ((0.6, 0.6), {}, "together 1.2"), ((), {}, "expected counts"), ((-1,), {}, "expected counts"),
        ((0.5,), {"stratify": [0] * 10}, "needs a seed"), ((0.5,), {"seed": 0, "stratify": [0] * 9}, "one value for each of 10"),
        ((0.5,), {"seed": "a"}, "seed"), ((0.5,), {"seed": 0, "stratify": 2}, "field 2"),
    ):  # fmt: skip
        with pytest.raises(InputError, match=message):
            base.split(*parts, **options)


def test_fields_of_all_items_are_columns() -> None:
    made = data.concat(arrays(), arrays().partial(0, 2))
    np.testing.assert_array_equal(made.column(1), [*np.arange(10) % 3, 0, 1])
    np.testing.assert_array_equal(arrays().shuffle(0).column(1), [y for _, y in arrays().shuffle(0)])
    assert data.Dataset.of([{"name": "a"}, {"name": "b"}]).column("name") == ["a", "b"]


@pytest.mark.parametrize("indices", [[0.5], [[1]], [True], [10], [-11]])
def test_indices_that_are_none_are_refused(indices: Any) -> None:
    for use in (Squares().select, arrays().batch, arrays().shuffle(0).batch):
        with pytest.raises(InputError):
            use(indices)


def test_arrays_may_be_mapped_files(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.arange(12).reshape(6, 2))
    made = data.Dataset.of(np.load(tmp_path / "x.npy", mmap_mode="r"))
    np.testing.assert_array_equal(made.batch([5, 0]), [[10, 11], [0, 1]])


# --- batches ---------------------------------------------------------------------------------------------------------


def test_batches_have_the_structure_of_items() -> None:
    item = {"a": np.ones((2, 3), np.float16), "b": (1, 2.5, True, "x"), "c": Point(np.int8(3), [4, 5]), "d": sg.ones(2)}
    made = data.collate([item, item, item])
    assert made["a"].shape == (3, 2, 3)
    assert made["a"].dtype == np.float16
    assert [getattr(x, "dtype", x) for x in made["b"]] == [np.int64, np.float32, np.bool_, ["x"] * 3]
    assert isinstance(made["c"], Point)
    assert made["c"].x.dtype == np.int8
    np.testing.assert_array_equal(made["c"].y[1], [5, 5, 5])
    np.testing.assert_array_equal(made["d"], np.ones((3, 2), np.float32))
    assert data.collate([1, 2.5]).dtype == np.float32


def test_a_batch_of_arrays_is_that_of_their_items() -> None:
    for values in (
        (np.arange(20).reshape(10, 2), [f"{i}" for i in range(10)]),
        {"x": np.arange(10), "y": list(range(10))},
    ):
        made = data.Dataset.of(values)
        for some in (made, made.shuffle(3), data.zipped(made, made), made.map(lambda item: item)):
            batch, expected = some.batch([4, 2, 9]), data.collate(some.items([4, 2, 9]))
            assert repr(batch) == repr(expected)


@pytest.mark.parametrize(
    ("items", "message"),
    [([np.ones(2), np.ones(3)], r"\(2,\) and \(3,\)"), ([{"a": 1}, {"b": 1}], "keys"), ([(1, 2), (1,)], "another item is not"), ([1, "a"], "int, str"),
     ([1 << 70], "int64"), ([], "no items")],
)  # fmt: skip
def test_items_that_make_no_batch_are_refused(items: list[Any], message: str) -> None:
    with pytest.raises((InputError, ShapeError), match=message):
        data.collate(items)


def test_sequences_are_padded_and_masked() -> None:
    rows = [[1, 2, 3], [4], []]
    padded, mask = data.PadCollate(value=-1)(rows)
    np.testing.assert_array_equal(padded, [[1, 2, 3], [4, -1, -1], [-1, -1, -1]])
    np.testing.assert_array_equal(mask.sum(1), [3, 1, 0])
    assert (padded.dtype, mask.dtype) == (np.int64, np.bool_)
    ids, labels, mask = data.PadCollate(0, length=2, truncate=True)([(row, i) for i, row in enumerate(rows)])
    np.testing.assert_array_equal(ids, [[1, 2], [4, 0], [0, 0]])
    np.testing.assert_array_equal(labels, [0, 1, 2])
    np.testing.assert_array_equal(mask.sum(1), [2, 1, 0])
    items = [{"text": np.ones((n, 2), np.float32), "pair": np.arange(n + 1), "name": f"{n}"} for n in (1, 3)]
    made = data.PadCollate(("text", "pair"), length=5)(items)
    assert list(made) == ["text", "pair", "name", "text_mask", "pair_mask"]
    assert made["text"].shape == (2, 5, 2)
    np.testing.assert_array_equal(made["pair_mask"].sum(1), [2, 4])
    with pytest.raises(ShapeError, match="a sequence of 3, longer than 2; truncate=True"):
        data.PadCollate(length=2)(rows)
    for items in ([{"b": 1}], [3], [("a", "b")]):
        with pytest.raises((InputError, ShapeError)):
            data.PadCollate("a" if isinstance(items[0], dict) else 0)(items)
    for row, value in (([1, 2], 0.5), ([1, 2], np.nan), (np.uint8([1, 2]), -100)):
        with pytest.raises(InputError, match=r"value=.*that u?int\d+ can hold"):
            data.PadCollate(value=value)([row])
    for rows in ([[0.5], []], [[0.5], [1, 2]]):
        assert data.PadCollate(value=np.nan)(rows)[0].dtype == np.float32
    with pytest.raises(ShapeError, match="first axis only"):
        data.PadCollate()([np.ones((2, 3)), np.ones((2, 4))])
