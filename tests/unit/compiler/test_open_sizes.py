"""One Program serves all sizes: an encoder of any length and a convolutional net of any height and width.

Results are compared with those of a Program compiled for just that size.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import numpy as np
import pytest
from devices import RUNNERS
from networks.open_networks import convolutional, encoder

import singe as sg
from singe.compiler.array_target import ARRAYS
from singe.compiler.compile import compile_graph
from singe.compiler.options import Options
from singe.compiler.target import find_target
from singe.dtypes import bool_, float32
from singe.errors import DeviceError, InputError, ShapeError
from singe.graph import Builder, Graph, specialise
from singe.model import model as models
from singe.model.model import Model
from singe.model.program import Program
from singe.model.sizes import without_bounds
from singe.ops import ROWS
from singe.program.format import from_bytes, to_bytes
from singe.program.plan import Plan
from singe.program.program import ProgramData, Specialised
from singe.runtime.devices import device as open_device
from singe.shapes import deferring, size

CLOSE = 1e-4
"""The largest allowed difference, relative to the largest value: the order of sums may differ."""


@dataclass(frozen=True)
class Network:
    """A network, the sizes at which it is run, and a function that makes its inputs at given sizes."""

    graph: Callable[[], Graph]
    sizes: Sequence[Mapping[str, int]]
    inputs: Callable[[Mapping[str, int]], list[np.ndarray]]


def words(sizes: Mapping[str, int]) -> list[np.ndarray]:
    rng = np.random.default_rng(sizes["L"])
    shape = sizes["N"], sizes["L"]
    mask = (rng.random(shape) < 0.9).astype(np.float32)
    mask[:, 0] = 1
    return [rng.integers(0, 100, shape), mask]


def picture(sizes: Mapping[str, int]) -> list[np.ndarray]:
    rng = np.random.default_rng(sizes["H"])
    return [rng.standard_normal((sizes["N"], 3, sizes["H"], sizes["W"])).astype(np.float32)]


NETWORKS = {
    "encoder": Network(
        partial(encoder, 2, 16, 2), [{"N": n, "L": k} for k in (1, 2, 7, 64, 128, 511, 512) for n in (1, 3)], words
    ),
    "convolutional": Network(
        partial(convolutional, 4), [{"N": 1, "H": h, "W": w} for h, w in ((160, 160), (224, 160), (320, 320), (640, 640))],
        picture,
    ),
}  # fmt: skip
EACH = pytest.mark.parametrize("name", NETWORKS)


def alone(graph: Graph, sizes: Mapping[str, int], given: Sequence[np.ndarray]) -> np.ndarray:
    """The outputs of a Program for these sizes alone, on NumPy."""
    return Program(compile_graph(specialise(graph, sizes), ARRAYS), open_device("numpy")).run(given)[0]


def close(found: np.ndarray, wanted: np.ndarray) -> None:
    assert found.shape == wanted.shape
    np.testing.assert_allclose(found, wanted, rtol=0, atol=CLOSE * np.abs(wanted).max())


@pytest.mark.slow
@RUNNERS
@EACH
def test_one_program_serves_all_sizes(name: str, device_name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    compiled: list[ProgramData] = []

    def counted(*args: object, **kwargs: object) -> ProgramData:
        compiled.append(compile_graph(*args, **kwargs))  # pyright: ignore[reportArgumentType]
        return compiled[-1]

    monkeypatch.setattr(models.compiling, "compile_graph", counted)
    network = NETWORKS[name]
    graph = network.graph()
    model = Model(graph, device_name)
    weights: set[int] = set()
    for sizes in network.sizes:
        given = network.inputs(sizes)
        close(model(*given), alone(graph, sizes, given))
        weights.add(model.program().memory["weights"])
    assert len(compiled) == 1
    assert len(weights) == 1


# --- steps for particular sizes ---------------------------------------------------------------------------------------


def written(part: ProgramData | Specialised) -> tuple[Any, ...]:
    """What a run does."""
    return part.words, part.counts, part.stops


@pytest.mark.slow
@RUNNERS
@EACH
def test_specialised_sizes_share_the_weights_and_the_program(name: str, device_name: str) -> None:
    network = NETWORKS[name]
    graph, device = network.graph(), open_device(device_name)
    some, others = network.sizes[-1], network.sizes[0]
    only = dict(list(some.items())[-1:])  # the other sizes stay open
    made = compile_graph(graph, device.target, Options(specialised=[(s, specialise(graph, s)) for s in (only, some)]))
    program = Program(from_bytes(to_bytes(made)), device)
    plain = Program(compile_graph(graph, device.target), device)
    assert [s.sizes for s in program.data.specialised] == [some, only], "the closest fit comes first"
    first, second = program.data.specialised
    assert written(program.data.at(some)) == written(first)
    assert written(program.data.at({**some, "N": 9})) == written(second)
    assert written(program.data.at(others)) == written(plain.data)
    for sizes in (some, {**some, "N": 2}, others, some):
        given = network.inputs(sizes)
        close(program.run(given)[0], alone(graph, sizes, given))
    # What is folded for a size is new: positions of the encoder, for one. The weights themselves are there once.
    assert program.memory["weights"] < 1.1 * plain.memory["weights"] + 8192


def test_sizes_that_are_not_open_cannot_be_specialised() -> None:
    graph = encoder(1)
    with pytest.raises(InputError, match="specialised for K = 3: the open sizes are L, N"):
        compile_graph(graph, ARRAYS, Options(specialised=[({"K": 3}, graph)]))


@pytest.mark.slow
@RUNNERS
def test_a_model_specialises_in_one_program(device_name: str) -> None:
    model = Model(encoder(2, 16, 2), device_name)
    model.specialise(N=1, L=7)
    for sizes in ({"N": 1, "L": 7}, {"N": 2, "L": 7}):
        given = words(sizes)
        close(model(*given), alone(model.graph(), sizes, given))
    (own,) = model.program().data.specialised
    assert own.sizes == {"N": 1, "L": 7}
    assert model.program({"words": (1, 7), "mask": (1, 7)}) is model.program()
    with pytest.raises(InputError, match="specialise: K: the open sizes are N, L"):
        model.specialise(K=1)


def joined() -> Graph:
    """The sum of rows of lengths N and M: only numbers tell whether the lengths are equal, or one of them is 1."""
    b = Builder()
    x, y = (b.input(name, (size(d),), float32) for name, d in (("x", "N"), ("y", "M")))
    return Graph((x, y), (b.add(x, y),), ("z",))


@RUNNERS
def test_sizes_that_the_open_steps_cannot_serve_get_steps_in_the_same_program(device_name: str) -> None:
    """N and M are taken to be equal; where one of them is 1, it is repeated instead."""
    with deferring():
        model = Model(joined(), device_name)
    for n, m in ((3, 3), (1, 4), (5, 1), (2, 2)):
        x, y = np.arange(n, dtype=np.float32), np.ones(m, np.float32)
        np.testing.assert_array_equal(model(x, y), x + y)
    assert [s.sizes for s in model.program().data.specialised] == [{"N": 1, "M": 4}, {"N": 5, "M": 1}]
    with pytest.raises(ShapeError):
        model(np.ones(2, np.float32), np.ones(3, np.float32))
    assert len(model.program().data.specialised) == 2


# --- sizes in functions that are traced -------------------------------------------------------------------------------

OF_SIZES: dict[str, tuple[Any, Any]] = {
    "argmax": (lambda x: x.argmax(0), lambda x: x.argmax(0)),
    "argmin of all": (lambda x: x.argmin(), lambda x: x.argmin()),
    "arange": (lambda x: x.sum(1) + sg.arange(x.shape[0]), lambda x: x.sum(1) + np.arange(len(x))),
    "arange by steps": (lambda x: sg.arange(x.shape[0], -1, -2) + x[0, :1].cast("int64") * 0, lambda x: np.arange(len(x), -1, -2)),
    "ones": (lambda x: x + sg.ones(x.shape), lambda x: x + 1),
    "full": (lambda x: x + sg.full(x.shape, x.shape[0]), lambda x: x + len(x)),
    "an operand": (lambda x: 2 - x.shape[0] * x / x.size, lambda x: 2 - len(x) * x / x.size),
    "clip": (lambda x: x.clip(1, x.shape[0]), lambda x: x.clip(1, len(x))),
    "full_like": (lambda x: sg.full_like(x, x.shape[0] // 2), lambda x: np.full_like(x, len(x) // 2)),
    "a slice": (lambda x: x[: x.shape[0] // 2], lambda x: x[: len(x) // 2]),
}  # fmt: skip


@RUNNERS
@pytest.mark.parametrize("name", OF_SIZES)
def test_a_function_may_use_its_open_sizes(name: str, device_name: str) -> None:
    function, reference = OF_SIZES[name]
    model = Model.of(function, {"x": ("N", 3)}, device_name)
    for rows in (4, 1, 7):
        x = np.random.default_rng(rows).standard_normal((rows, 3)).astype(np.float32)
        np.testing.assert_allclose(model(x), reference(x), rtol=1e-5, atol=1e-5)


WIDE: Final = 1 << 20
"""Elements of a row of more bytes than lie before an array in the memory of a device that has just been opened."""
OVER_NOTHING: Mapping[str, Callable[[Any, Any], Any]] = {
    "joined": lambda x, y: sg.concat([x, y]) * y,
    "padded": lambda x, y: sg.pad(x, ((1, 0), (0, 0)), value=2.0) * y,
}  # fmt: skip


@RUNNERS
@pytest.mark.parametrize("name", OVER_NOTHING)
def test_an_open_size_of_zero_is_read_within_the_memory(name: str, device_name: str) -> None:
    model = Model.of(OVER_NOTHING[name], {"x": ("N", WIDE), "y": (1, WIDE)}, device_name)
    for rows in (0, 1):
        found = model(np.full((rows, WIDE), 2, np.float32), np.full((1, WIDE), 2, np.float32))
        np.testing.assert_array_equal(found, np.full((rows + 1, WIDE), 4, np.float32))


def test_what_needs_a_number_names_the_size_that_has_none() -> None:
    for function in (
        lambda x: x * float(x.shape[0]),
        lambda x: x * (x.shape[0] / 2),
        lambda x: x * (x.shape[0] * 0.5),
        lambda x: x + np.ones(x.shape, np.float32),
        lambda x: sum(range(x.shape[0])) * x,
    ):
        with pytest.raises(ShapeError, match="the size N has no number until a run"):
            Model.of(function, {"x": ("N", 3)}, "numpy")
    with pytest.raises(
        ShapeError, match=r"axis 0 of \(N, 3\) has no number until a run, so that the number of pieces is open"
    ):
        Model.of(lambda x: x.split(2)[0], {"x": ("N", 3)}, "numpy")
    for function in (lambda x: x * len(x), lambda x: next(iter(x))):
        with pytest.raises(ShapeError, match=r"axis 0 of \(N, 3\) has no length until a run"):
            Model.of(function, {"x": ("N", 3)}, "numpy")
    with pytest.raises(InputError, match=r"arange: got 0\.5, N and the step 1, expected integers beside sizes"):
        Model.of(lambda x: sg.arange(0.5, x.shape[0]) + x[:, 0], {"x": ("N", 3)}, "numpy")
    with pytest.raises(DeviceError, match="only while the function is traced"):
        sg.ones((size("N"), 3))


# --- bounds -----------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@RUNNERS
def test_memory_for_a_bound_is_taken_once(device_name: str) -> None:
    graph, device = encoder(2, 16, 2), open_device(device_name)
    short = {"N": 1, "L": 7}
    own = [(short, specialise(graph, short))]
    program = Program(compile_graph(graph, device.target, Options(specialised=own, bounds={"L": 128})), device)
    scratch = set()
    for length in (1, 128, 7, 64):
        given = words({"N": 1, "L": length})
        close(program.run(given)[0], alone(graph, {"N": 1, "L": length}, given))
        scratch.add(program.memory["scratch"])
    assert len(scratch) == 1
    assert program.data.slot_bytes({"N": 1, "L": 1}) == program.data.slot_bytes({"N": 1, "L": 128})


@RUNNERS
def test_a_run_beyond_a_bound_is_refused(device_name: str) -> None:
    device = open_device(device_name)
    program = Program(compile_graph(encoder(1, 16, 2), device.target, Options(bounds={"L": 128})), device)
    with pytest.raises(ShapeError, match=r"L must be at most 128, its bound \(got N = 1, L = 129\)"):
        program.run(words({"N": 1, "L": 129}))


def branches_of_sizes() -> Graph:
    """y is stretched where M is 1, which open steps do not do; at sizes that no steps can do with, the other branch runs."""
    b = Builder()
    p, x, y = b.input("p", (), bool_), b.input("x", (size("N"), 4), float32), b.input("y", (size("M"), 4), float32)
    u, v = b.input("u", x.shape, float32), b.input("v", y.shape, float32)
    with deferring():
        branches = {"then": b.graph([u, v], [b.add(u, v)]), "otherwise": b.graph([u, v], [b.neg(u)])}
    made = b.node(ROWS["if"], p, x, y, **branches)
    return Graph((p, x, y), (made,), ("z",))


def test_words_for_bounded_sizes_are_set_again() -> None:
    """As a new plan has them; if a check holds at the one and not at the other, a new plan is needed."""
    runs = 0
    for graph, all_sizes in (
        (encoder(1, 16, 2), [{"N": 2, "L": n} for n in (1, 128, 7, 64, 7)]),
        (branches_of_sizes(), [{"N": n, "M": m} for n, m in ((3, 3), (5, 5), (3, 2), (3, 3), (8, 8))]),
    ):
        bounds = {"L": 128} if "L" in all_sizes[0] else {"N": 8, "M": 8}
        program = compile_graph(graph, find_target("wasm"), Options(bounds=bounds))
        plan = Plan(program, all_sizes[0])
        for sizes in all_sizes[1:]:
            before, fresh = [*plan.words], Plan(program, sizes)
            changed = plan.refit(sizes)
            if changed is None:
                assert plan.words == before
                assert plan.stops.keys() != fresh.stops.keys()
                continue
            runs += 1
            assert plan.words == fresh.words
            named = {at: number for number, places in changed.items() for at in places}
            assert {
                at: a for at, (a, b) in enumerate(zip(plan.words, before, strict=True)) if a != b
            }.items() <= named.items()
    assert runs > 5


@RUNNERS
def test_bounded_sizes_come_one_after_another(device_name: str) -> None:
    model = Model(branches_of_sizes(), device_name, bounds={"N": 8, "M": 8})
    for count, other in ((3, 3), (5, 5), (3, 2), (1, 1), (3, 3)):
        x, y = (np.random.default_rng(k).normal(size=(k, 4)).astype(np.float32) for k in (count, other))
        np.testing.assert_array_equal(model(np.array(False), x, y), -x)
        if count == other:
            np.testing.assert_array_equal(model(np.array(True), x, y), x + y)
        else:
            with pytest.raises(ShapeError, match="got M = 2, N = 3"):
                model(np.array(True), x, y)


def test_a_bound_stands_in_a_shape() -> None:
    shapes, bounds = without_bounds({"x": ("N", "L <= 512", 3), "mask": ("N", "L")})
    assert shapes == {"x": ("N", "L", 3), "mask": ("N", "L")}
    assert bounds == {"L": 512}
    for wrong in ("L<=", "<=5", "L<=x", "L<512", "", "1L", "L*2", -1, None, 1.5, True):
        with pytest.raises(InputError, match="expected a number, a name, or a name with a bound"):
            without_bounds({"x": (wrong,)})  # pyright: ignore[reportArgumentType]
    for shape in ("NC", 3, None):
        with pytest.raises(InputError, match=r"the shape of .x. is .+, expected a tuple of numbers and names"):
            without_bounds({"x": shape})  # pyright: ignore[reportArgumentType]
    kept = ("input.1", "unk__12", "N", 0, 3)
    assert without_bounds({"x": kept}) == ({"x": kept}, {})
    with pytest.raises(InputError, match="L has the bounds 3 and 4"):
        without_bounds({"x": ("L<=3",), "y": ("L<=4",)})


def test_a_model_refuses_what_is_beyond_its_bounds() -> None:
    model = Model.of(lambda x: x.exp(), {"x": ("N<=3", 2)}, "numpy")
    assert model(np.zeros((3, 2), np.float32)).shape == (3, 2)
    with pytest.raises(ShapeError, match="N is 4, and must be at most 3, its bound"):
        model(np.zeros((4, 2), np.float32))
    with pytest.raises(ShapeError, match="N is 4"):
        model.specialise(N=4)
    with pytest.raises(InputError, match="a bound is given for K: the open sizes are N, L"):
        Model(encoder(1), "numpy", bounds={"K": 3})


def test_a_model_is_specialised_for_numbers_only() -> None:
    model = Model.of(lambda x: x.exp(), {"x": ("N", 2)}, "numpy")
    for wrong in (-1, 1.5, "a", None):
        with pytest.raises(InputError, match=r"specialise: N is .+, expected a number, 0 or more"):
            model.specialise(N=wrong)  # pyright: ignore[reportArgumentType]
    assert model(np.zeros((3, 2), np.float32)).shape == (3, 2)


def test_what_is_beyond_a_bound_cannot_be_specialised() -> None:
    graph = encoder(1)
    with pytest.raises(InputError, match="specialised for L = 513, expected 0 to 512"):
        compile_graph(graph, ARRAYS, Options(specialised=[({"L": 513}, graph)], bounds={"L": 512}))


def test_sizes_that_a_branch_takes_otherwise_get_steps_of_their_own() -> None:
    model = Model(branches_of_sizes(), "numpy")
    a, one, two = (np.random.default_rng(k).normal(size=(k, 4)).astype(np.float32) for k in (3, 1, 2))
    for _ in range(2):
        np.testing.assert_array_equal(model(np.array(True), a, a), a + a)
        np.testing.assert_array_equal(model(np.array(True), a, one), a + one)
        np.testing.assert_array_equal(model(np.array(False), a, two), -a)
        with pytest.raises(ShapeError, match="got M = 2, N = 3"):
            model(np.array(True), a, two)


@pytest.mark.parametrize("op", ["reduce_prod", "reduce_sum"])
def test_sizes_that_are_folded_stay_sizes(op: str) -> None:
    """As in Tensordot of TensorFlow, which multiplies lengths of a shape."""
    n, b = size("n"), Builder()
    lengths = [b.reshape(b.const(d), shape=(1,)) for d in (n, 4)]
    found = b.value_of(getattr(b, op)(b.concat(*lengths, axis=0), axes=(0,)))
    assert found is not None
    assert found.item() == {"reduce_prod": n * 4, "reduce_sum": n + 4}[op]
