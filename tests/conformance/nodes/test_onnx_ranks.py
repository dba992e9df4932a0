"""Ifs whose branches differ in rank: sizes decide them, and what follows says of which branch it can do with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
import pytest
from onnx_devices import DEVICES, MODELS, check, check_relative, need
from peer import answers, session
from test_onnx_control import BOOL, INT64, constant, floats, graph, model, node, on_devices, value

from singe import Model, ShapeError, UnsupportedOp, load, save
from singe.errors import SizeNeeded
from singe.graph import Builder
from singe.model.description import describe_model
from singe.onnx.choice import at_least_zero
from singe.onnx.importer import MAX_CHOICES
from singe.shapes import known, size

SHAPE = ["N", "W", 4]
NUMBERS = [constant("one", np.array(1)), constant("axes", np.array([1])), constant("weight", floats(4, 5))]


def squeeze(x: str, y: str, condition: Sequence[Any] = ()) -> list[Any]:
    """What PyTorch writes for y = x.squeeze(1); condition: nodes that compute it from the width `{y}_width`."""
    branches = [
        graph([node("Squeeze", f"{x} axes", f"{y}_s")], [], [value(f"{y}_s", None)]),
        graph([node("Identity", x, f"{y}_w")], [], [value(f"{y}_w", None)]),
    ]
    return [
        node("Shape", x, f"{y}_shape"),
        node("Gather", f"{y}_shape one", f"{y}_width"),
        *(condition or [node("Equal", f"{y}_width one", f"{y}_narrow")]),
        node("If", f"{y}_narrow", y, then_branch=branches[0], else_branch=branches[1]),
    ]


def whole(nodes: list[Any], *more: Any, result: Any = None) -> Any:
    return model([*NUMBERS, *nodes], [value("x", SHAPE), *more], [result or value("y", None)])


def agree_on(device: str, made: Any, *cases: dict[str, np.ndarray]) -> Model:
    """One Program for all cases, which agrees with onnxruntime."""
    need(device)
    theirs = session(made)
    ours = load(made.SerializeToString(), device=DEVICES[device])
    assert not ours.needed
    for given in cases:
        check([ours(given)], theirs.run(None, given), 1e-5, 1e-5)
    assert len({id(ours.program({k: a.shape for k, a in given.items()}, given)) for given in cases}) == 1
    return ours


@on_devices
def test_the_branch_with_which_the_rest_can_be_imported_is_taken(device: str) -> None:
    made = whole([*squeeze("x", "z"), node("Gemm", "z weight", "y")])
    ours = agree_on(device, made, {"x": floats(3, 1, 4)}, {"x": floats(1, 1, 4)})
    with pytest.raises(ShapeError, match="Gemm"):
        ours(floats(2, 3, 4))
    (text,) = {text for _, text in ours.program().data.checks if "If" in text}
    assert "(If): the other branch does not fit (node 7 (Gemm): " in text
    assert text.endswith(", so W must be 1")


@on_devices
def test_a_branch_that_must_not_be_squeezed_is_taken(device: str) -> None:
    """A product by three axes, so that the width must not be 1."""
    made = whole([*squeeze("x", "z"), constant("order", np.array([2, 0])), node("Transpose", "z", "y", perm=[2, 0, 1])])
    ours = agree_on(device, made, {"x": floats(3, 2, 4)}, {"x": floats(1, 3, 4)})
    with pytest.raises(ShapeError, match="perm"):
        ours(floats(2, 1, 4))
    assert any(text.endswith("so W must not be 1") for _, text in ours.program().data.checks)


@on_devices
def test_what_a_branch_takes_for_granted_is_checked_where_it_runs(device: str) -> None:
    """Within an If on a value: W must be 1 in one branch, and 2 at least in the other."""
    then = graph([*squeeze("x", "z"), node("Gemm", "z weight", "t")], [], [value("t", None)])
    otherwise = graph(
        [*squeeze("x", "v"), node("Transpose", "v", "u", perm=[1, 0, 2]), node("ReduceMax", "u", "m", axes=[0], keepdims=0),
         node("Gemm", "m weight", "e")], [], [value("e", None)],
    )  # fmt: skip
    made = whole([node("If", "p", "y", then_branch=then, else_branch=otherwise)], value("p", [], BOOL))
    cases = [{"x": floats(n, w, 4), "p": np.array(w == 1)} for n, w in ((2, 1), (3, 5), (1, 2), (5, 1))]
    ours = agree_on(device, made, *cases)
    for p, wrong, words in ((True, 3, "must be 1"), (False, 1, "must not be 1")):
        with pytest.raises(ShapeError, match=rf"If.*If.*W {words} \(got W = {wrong}\)"):
            ours({"x": floats(2, wrong, 4), "p": np.array(p)})
    check_relative({"y": ours(cases[0])}, {"y": ours(cases[0])}, 0)  # a refused run leaves nothing behind


@on_devices
@pytest.mark.parametrize("turns", [0, 3])
def test_what_a_loop_carries_decides(device: str, turns: int) -> None:
    body = graph(
        [*squeeze("x", "z"), node("Add", "before z", "after"), node("Identity", "go", "on")],
        [value("i", [], INT64), value("go", [], BOOL), value("before", ["N", 4])],
        [value("on", [], BOOL), value("after", None)],
    )
    made = whole([node("Loop", "count _ first", "y", body=body)], value("count", [], INT64), value("first", ["N", 4]))
    given = {"x": floats(2, 1, 4), "count": np.array(turns), "first": floats(2, 4)}
    ours = agree_on(device, made, given)
    wrong = {**given, "x": floats(2, 3, 4)}
    if turns:
        with pytest.raises(ShapeError, match=r"W must be 1 \(got W = 3\)"):
            ours(wrong)
    else:
        np.testing.assert_array_equal(ours(wrong), given["first"])


@on_devices
@pytest.mark.parametrize("first", [True, False])
def test_the_other_branch_of_the_if_around_decides(device: str, first: bool) -> None:
    """The squeezed value is a result of its branch; the other branch gives two axes."""
    ends = graph(squeeze("x", "z"), [], [value("z", None)])
    sums = graph([node("ReduceMax", "x", "m", axes=[1], keepdims=0)], [], [value("m", None)])
    branches = {"then_branch": ends, "else_branch": sums} if first else {"then_branch": sums, "else_branch": ends}
    made = whole([node("If", "p", "t", **branches), node("Exp", "t", "y")], value("p", [], BOOL))
    ours = agree_on(device, made, *({"x": floats(2, w, 4), "p": np.array((w == 1) == first)} for w in (1, 3)))
    with pytest.raises(ShapeError, match=r"W must be 1 \(got W = 3\)"):
        ours({"x": floats(2, 3, 4), "p": np.array(first)})


def test_what_fits_both_branches_is_asked_for() -> None:
    """A reason that several sizes share is told once."""
    condition = [
        constant("zero", np.array(0)),
        node("Gather", "z_shape zero", "z_height"),
        node("Equal", "z_height z_width", "z_narrow"),
    ]
    made = whole([*squeeze("x", "z", condition), node("Exp", "z", "y")])
    ours = load(made.SerializeToString(), device="numpy")
    assert ours.needed.sizes.keys() == {"N", "W"}
    assert not ours.needed.inputs
    text = describe_model(ours)
    assert "one program for each set of  the size N, the size W\n" in text
    assert text.count("the condition must be known before a run") == 1


def test_conditions_on_values_are_asked_for() -> None:
    nodes = squeeze("x", "z", [node("Equal", "z_width k", "z_narrow")])
    made = whole([*nodes, node("Gemm", "z weight", "y")], value("k", [], INT64))
    ours = load(made.SerializeToString(), device="numpy")
    assert ours.needed.inputs.keys() == {"k"}
    assert ours(x=floats(2, 1, 4), k=np.array(1)).shape == (2, 5)


def test_both_reasons_are_told_where_neither_branch_fits() -> None:
    made = whole([*squeeze("x", "z"), constant("filter", floats(2, 3, 1, 1)), node("Conv", "z filter", "y")])
    with pytest.raises(SizeNeeded, match=r"neither branch fits: .*Conv.*; .*Conv"):
        load(made.SerializeToString(), device="numpy").graph()


def test_a_wrong_choice_shows_in_a_later_if() -> None:
    """With the wrong branch of the first If neither branch of the second one fits."""
    later = squeeze("x", "v")[-1]
    later.input[0] = "z_narrow"
    after = [node("Transpose", "v", "t", perm=[1, 0]), node("MatMul", "z t", "u"), node("Gemm", "u t", "y")]
    made = whole([*squeeze("x", "z"), later, *after])
    ours = load(made.SerializeToString(), device="numpy", input_shapes={"x": (4, "W", 4)})
    assert not ours.needed
    assert ours(floats(4, 1, 4)).shape == (4, 4)


@pytest.mark.parametrize("count", [MAX_CHOICES // 2, 3 * MAX_CHOICES])
@pytest.mark.parametrize("soon", [True, False])
def test_many_ifs_take_little_time(count: int, soon: bool) -> None:
    """What follows tells the branch of each, soon or at the end. Where that would take many attempts, sizes are asked for."""
    ifs = [[*squeeze("x", f"z{k}"), node("Exp", f"z{k}", f"e{k}")] for k in range(count)]
    gemms = [[node("Gemm", f"e{k} weight", f"g{k}")] for k in range(count)]
    lists = [part for pair in zip(ifs, gemms, strict=True) for part in pair] if soon else [*ifs, *gemms]
    sums = node("Sum", " ".join(f"g{k}" for k in range(count)), "y")
    made = whole([*(n for part in lists for n in part), sums])
    start = process_time()
    ours = load(made.SerializeToString(), device="numpy")
    assert bool(ours.needed.sizes) == (not soon or count > MAX_CHOICES)
    assert process_time() - start < 20


def test_ops_that_are_lacking_are_listed_before_any_branch_is_tried() -> None:
    nodes = [*squeeze("x", "z"), node("Gemm", "z weight", "g"), node("NoSuch", "g", "h"), node("NorThis", "h", "y")]
    with pytest.raises(UnsupportedOp, match="NoSuch") as e:
        load(whole(nodes).SerializeToString(), device="numpy").graph()
    assert sorted(e.value.ops) == ["NoSuch", "NorThis"]


@on_devices
@pytest.mark.parametrize("fits", [True, False])
@pytest.mark.parametrize("rows", ["N", 3])
def test_only_a_run_that_takes_a_branch_that_cannot_run_is_refused(
    device: str, fits: bool, rows: Any, tmp_path: Path
) -> None:
    """fits: the value of the condition for which the branch fits; its result may have a length that a run finds."""
    need(device)
    sound = graph([node("NonZero", "x", "places"), node("Cast", "places", "a", to=1)], [], [value("a", None)])
    unfit = graph([node("Gemm", "wide weight", "b")], [], [value("b", None)])  # of three axes
    branches = (sound, unfit) if fits else (unfit, sound)
    nodes = [
        *NUMBERS, node("Unsqueeze", "x axes", "wide"), node("Neg", "x", "minus"),
        node("If", "p", "y", then_branch=branches[0], else_branch=branches[1]),
    ]  # fmt: skip
    made = model(nodes, [value("p", [], BOOL), value("x", [rows, 4])], [value("y", None), value("minus", None)])
    ours = load(made.SerializeToString(), device=DEVICES[device])
    assert not ours.needed
    save(ours, tmp_path / "m.singe")
    x = floats(3, 4).round()
    for loaded in (ours, load(tmp_path / "m.singe", device=DEVICES[device])):
        check(list(loaded(np.array(fits), x).values()), [np.array(x.nonzero(), np.float32), -x], 0, 0)
        with pytest.raises(
            ShapeError, match=rf"^If 'y': its condition is {str(not fits).lower()}, and that .*\(Gemm\)"
        ):
            loaded(np.array(not fits), x)
        programs = {id(loaded.program({"p": (), "x": (n, 4)})) for n in ((3,) if rows == 3 else (3, 4, 5))}
        assert len(programs) == 1


def test_where_both_branches_can_run_and_differ_in_rank_the_condition_must_be_known() -> None:
    branches = graph([node("Squeeze", "x axes", "s")], [], [value("s", None)]), graph([node("Identity", "x", "w")], [], [value("w", None)])  # fmt: skip
    nodes = [*NUMBERS, node("If", "p", "y", then_branch=branches[0], else_branch=branches[1])]
    made = model(nodes, [value("p", [], BOOL), value("x", [3, 1, 4])], [value("y", None)])
    ours, x = load(made.SerializeToString(), device="numpy"), floats(3, 1, 4)
    assert [*ours.needed.inputs] == ["p"]
    check([ours(np.array(True), x), ours(np.array(False), x)], [x[:, 0], x], 0, 0)


CONDITIONS = {
    "not": ([node("Equal", "z_width one", "q"), node("Not", "q", "p"), node("Not", "p", "z_narrow")], "W must be 1"),
    "less": ([node("Less", "z_width two", "z_narrow")], "W must be less than 2"),
    "more": ([node("Greater", "two z_width", "z_narrow")], "2 must be greater than W"),
    "and": (
        [node("LessOrEqual", "z_width one", "p"), node("GreaterOrEqual", "z_width one", "q"), node("And", "p q", "z_narrow")],
        "its condition must be true",
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", CONDITIONS)
def test_conditions_are_of_several_kinds(kind: str) -> None:
    nodes, words = CONDITIONS[kind]
    made = whole([constant("two", np.array(2)), *squeeze("x", "z", nodes), node("Gemm", "z weight", "y")])
    ours = agree_on("CPU", made, {"x": floats(2, 1, 4)})
    assert any(text.endswith(f"so {words}") for _, text in ours.program().data.checks)


def test_conditions_of_sizes_become_dimensions() -> None:
    """Random ones: the dimension is at least 0 where the condition holds, and only there."""
    rng = np.random.default_rng(0)

    def side(b: Builder) -> Any:
        return b.const(rng.choice([size("A"), size("B"), size("A") + size("B") - 3, 2, 4]))

    def drawn(b: Builder, depth: int) -> Any:
        if depth and rng.random() < 0.7:
            word = rng.choice(["logical_not", "logical_and", "logical_or"])
            return getattr(b, word)(*(drawn(b, depth - 1) for _ in range(1 if word == "logical_not" else 2)))
        word = rng.choice(["equal", "less", "less_equal", "greater", "greater_equal"])
        return getattr(b, word)(side(b), side(b))

    for _ in range(60):
        state = rng.bit_generator.state
        dim = at_least_zero(b := Builder(), drawn(b, 3))
        assert dim is not None
        for a in range(6):
            for c in range(6):
                numbers = {"A": a, "B": c}
                rng.bit_generator.state = state
                b = Builder()
                b.const = lambda d, b=b, numbers=numbers: Builder.const(b, known(d, numbers))  # pyright: ignore[reportAttributeAccessIssue]
                wanted = b.value_of(drawn(b, 3))
                assert wanted is not None
                assert (known(dim, numbers) >= 0) == bool(wanted)


# --- a real model -----------------------------------------------------------------------------------------------------

VOICE = MODELS / "silero_vad.onnx"


def check_voice(got: Mapping[str, np.ndarray], wanted: Mapping[str, np.ndarray]) -> None:
    """The probability of noise may be 1e-4: what a float32 cannot tell from it is no error."""
    assert got.keys() == wanted.keys()
    for name, theirs in wanted.items():
        largest = max(float(np.abs(theirs).max()), 0.1)
        np.testing.assert_allclose(got[name], theirs, rtol=0, atol=1e-4 * largest, err_msg=name)


@on_devices
def test_a_voice_detector_is_one_program(device: str) -> None:
    """At both sample rates, with and without the context that its callers put in front of a piece."""
    need(device)
    if not VOICE.exists():
        pytest.skip(f"{VOICE.name} is absent: it belongs in {MODELS}")
    theirs, ours = session(VOICE), load(VOICE, device=DEVICES[device])
    assert not ours.needed
    programs = set()
    for rate, length in ((16000, 512), (8000, 256), (16000, 576), (8000, 288)):
        for n in (2, 3, 8):
            given = {"input": 0.3 * floats(n, length), "state": floats(2, n, 128), "sr": np.array(rate)}
            check_voice(ours(given), answers(theirs, given))
            programs.add(ours.program({k: a.shape for k, a in given.items()}, given))
    assert len(programs) == 1
    for rate, length in ((16000, 1024), (8000, 512)):
        with pytest.raises(ShapeError, match=rf"If_0.*decoder/If.*must be 1 \(got input\.1 = {length}\)"):
            ours(input=floats(1, length), state=floats(2, 1, 128), sr=np.array(rate))


@on_devices
@pytest.mark.parametrize(("rate", "length", "other"), [(16000, 512, 8000), (8000, 288, 16000)])
def test_a_voice_detector_of_fixed_shapes_runs_at_its_rate(device: str, rate: int, length: int, other: int) -> None:
    need(device)
    if not VOICE.exists():
        pytest.skip(f"{VOICE.name} is absent: it belongs in {MODELS}")
    shapes = {"input": (1, length), "state": (2, 1, 128)}
    theirs, ours = session(VOICE), load(VOICE, DEVICES[device], shapes)
    assert not ours.needed
    given = {"input": 0.3 * floats(1, length), "state": floats(2, 1, 128), "sr": np.array(rate)}
    wanted = answers(theirs, given)
    check_voice(ours.program()(given), wanted)
    if length == 512:
        with pytest.raises(ShapeError, match=r"^If 'If_0_outputs_0': its condition is false, .*\(LSTM\)"):
            ours({**given, "sr": np.array(other)})
