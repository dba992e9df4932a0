"""Loaders: batches of a seed whatever the workers, exact resumption, errors that name items, no thread left behind."""

from __future__ import annotations

import json
import threading
import time
from typing import Any

import numpy as np
import pytest

from singe import data
from singe.data import loader as module
from singe.errors import InputError

PATIENCE = 60.0
"""Seconds, within which even a busy machine lets a thread run."""
ITEMS = data.Dataset.of({"x": np.arange(46).reshape(23, 2), "i": np.arange(23)})
WORKERS = (0, 1, 3)


def threads() -> list[str]:
    return [t.name for t in threading.enumerate() if t.name.startswith("singe-loader")]


def noisy(batch: Any, draws: data.Draws) -> Any:
    return batch | {"noise": draws.uniform(shape=(2,))}


def epochs(loader: data.Loader, count: int) -> list[list[dict[str, np.ndarray]]]:
    return [list(loader) for _ in range(count)]


@pytest.mark.parametrize("workers", WORKERS)
def test_batches_depend_on_seed_and_epoch_alone(workers: int) -> None:
    make = lambda seed=5, workers=workers: data.Loader(ITEMS, 4, shuffle=True, seed=seed, workers=workers, transform=noisy)  # fmt: skip
    found, expected = epochs(make(), 3), epochs(make(workers=0), 3)
    np.testing.assert_equal(found, expected)
    orders = [np.concatenate([b["i"] for b in epoch]) for epoch in found]
    assert all(sorted(order) == list(range(23)) for order in orders)
    assert len({tuple(order) for order in orders}) == 3
    assert tuple(orders[0]) != tuple(np.concatenate([b["i"] for b in make(seed=6)]))
    noise = {int(i): n for b in found[1] for i, n in zip(b["i"], b["noise"], strict=True)}
    np.testing.assert_array_equal(noise[7], data.Draws(5, [7], epoch=1).uniform(shape=(2,))[0])
    assert not threads()


def test_the_last_batch_is_kept_or_dropped() -> None:
    assert [len(b["i"]) for b in data.Loader(ITEMS, 5)] == [5, 5, 5, 5, 3]
    dropping = data.Loader(ITEMS, 5, drop_last=True)
    assert len(list(dropping)) == len(dropping) == 4
    assert list(data.Loader([], 5)) == []
    np.testing.assert_array_equal(np.concatenate([b["i"] for b in data.Loader(ITEMS, 5)]), np.arange(23))


@pytest.mark.parametrize("workers", WORKERS)
@pytest.mark.parametrize("stop", [0, 1, 4, 5, 6, 11])
def test_a_state_resumes_exactly(workers: int, stop: int) -> None:
    """Six batches an epoch: stops before, in the middle of, at the end of the first and of the second epoch."""
    make = lambda workers=0: data.Loader(ITEMS, 4, shuffle=True, seed=1, workers=workers, transform=noisy)
    straight = [batch for epoch in epochs(make(), 3) for batch in epoch]
    first, seen = make(workers), 0
    while seen < stop:
        for _ in first:
            seen += 1
            if seen == stop:
                break
    state = json.loads(json.dumps(first.state()))
    assert (state["epoch"], state["batch"]) == divmod(stop, 6)
    second = make(workers)
    second.resume(state)
    assert second.state() == state
    rest: list[Any] = []
    while len(rest) < 18 - stop:
        rest += list(second)
    np.testing.assert_equal(rest, straight[stop:])


def test_an_epoch_that_was_left_is_not_repeated() -> None:
    loader, whole = (data.Loader(ITEMS, 4, shuffle=True, seed=0) for _ in range(2))
    firsts = [next(iter(loader))["i"].tolist() for _ in range(3)]
    assert firsts == [epoch[0]["i"].tolist() for epoch in epochs(whole, 3)]
    assert loader.epoch == 2
    unstarted = data.Loader(ITEMS, 4)
    iter(unstarted)
    assert unstarted.state()["epoch"] == 0


def test_two_iterations_of_one_loader_do_not_disturb_each_other() -> None:
    loader = data.Loader(ITEMS, 4, shuffle=True, workers=2)
    first, second = iter(loader), iter(loader)
    pairs = [(a["i"].tolist(), b["i"].tolist()) for a, b in zip(first, second, strict=True)]
    assert all(a == b for a, b in pairs)  # neither was begun when the other was made: both are the first epoch
    assert loader.epoch == 1


def test_states_of_other_loaders_are_refused() -> None:
    state = data.Loader(ITEMS, 4, seed=1).state()
    for other in (
        data.Loader(ITEMS, 5, seed=1),
        data.Loader(ITEMS, 4, seed=2),
        data.Loader(ITEMS, 4, seed=1, shuffle=True),
    ):
        with pytest.raises(InputError, match=r"of another loader: .* there, .* here"):
            other.resume(state)
    for wrong in ({"batch": 6}, {"batch": -1}, {"epoch": None}, {"epoch": -1}):
        with pytest.raises(InputError):
            data.Loader(ITEMS, 4, seed=1).resume(state | wrong)


def broken(item: dict[str, Any]) -> Any:
    if item["i"] == 13:
        raise KeyError("no such file")
    return item


@pytest.mark.parametrize("workers", WORKERS)
def test_errors_name_the_item_and_the_batch(workers: int) -> None:
    loader, seen = data.Loader(ITEMS.map(broken), 4, workers=workers), []
    with pytest.raises(KeyError, match="no such file") as error:
        seen.extend(loader)
    assert len(seen) == 3
    notes = "\n".join(error.value.__notes__)
    assert "while reading item 13 of" in notes
    assert "in batch 3 of epoch 0, which has the items 12, 13, 14, 15" in notes
    assert loader.state()["batch"] == 3
    assert not threads()


@pytest.mark.parametrize("workers", [1, 3])
def test_a_loop_that_is_left_leaves_no_thread(workers: int) -> None:
    made: list[int] = []
    loader = data.Loader(ITEMS.map(lambda item: made.append(item["i"]) or item), 1, workers=workers, prefetch=2)
    for number, _ in enumerate(loader):
        if number == 3:
            break
    del _
    deadline = time.monotonic() + PATIENCE
    while threads() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not threads()
    assert len(made) <= 4 + 2
    made.clear()
    slow = ITEMS.map(lambda item: (time.sleep(0.1), made.append(item["i"]), item)[2])
    iterator = iter(data.Loader(slow, 1, workers=1, prefetch=15))
    next(iterator)
    iterator.close()  # pyright: ignore[reportAttributeAccessIssue]
    assert not threads()
    assert len(made) < 15


def test_an_iteration_may_be_collected_by_a_worker() -> None:
    """A cycle of references is collected in whichever thread allocates."""
    inner = data.Loader(ITEMS, 1, workers=1)
    left = [iter(inner)]
    next(left[0])

    def collect(item: Any) -> Any:
        if left:
            left.clear()  # ends the inner iteration here, in a worker of the outer one
        return item

    assert len(list(data.Loader(ITEMS.map(collect), 4, workers=1))) == 6
    deadline = time.monotonic() + PATIENCE
    while threads() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not threads()


def test_workers_make_batches_ahead_and_at_once() -> None:
    meet = threading.Barrier(2, timeout=PATIENCE)  # passes only if two items are read at the same time
    loader = data.Loader(data.Dataset.of(range(4)).map(lambda x: (meet.wait(), x)[1]), 1, workers=2)
    assert [int(x[0]) for x in loader] == [0, 1, 2, 3]


def test_a_page_has_no_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "IN_PAGE", True)
    monkeypatch.setattr(module, "ThreadPoolExecutor", None)
    assert len(list(data.Loader(ITEMS, 4, workers=4))) == 6


def test_collate_and_transform_are_the_callers() -> None:
    texts = data.Dataset.of([[1, 2, 3], [4], [5, 6]])
    loader = data.Loader(texts, 2, collate=data.PadCollate(), transform=lambda batch, draws: (*batch, len(draws)))
    assert [(padded.shape, count) for padded, _, count in loader] == [((2, 3), 2), ((1, 2), 1)]


@pytest.mark.parametrize(
    "options", [{"batch_size": 0}, {"batch_size": 2.5}, {"workers": -1}, {"prefetch": 0}, {"seed": 1.5}]
)
def test_wrong_options_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        data.Loader(ITEMS, **options)
