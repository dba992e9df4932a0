"""Errors of operators name what was written; reading a tensor while a function is traced says what to do."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import singe as sg
from singe import optim
from singe.train import TrainStep

DEVICES = {"numpy": sg.Numpy, "autodiff": lambda: sg.Autodiff(sg.Numpy())}
OPERATORS: dict[str, Callable[..., Any]] = {
    "a + b": operator.add, "a - b": operator.sub, "a * b": operator.mul, "a / b": operator.truediv, "a // b": operator.floordiv,
    "a % b": operator.mod, "a ** b": operator.pow, "a @ b": operator.matmul, "a < b": operator.lt, "a <= b": operator.le,
    "a > b": operator.gt, "a >= b": operator.ge, "a == b": operator.eq, "a != b": operator.ne,
}  # fmt: skip
BITS: dict[str, Callable[..., Any]] = {
    "a & b": operator.and_, "a | b": operator.or_, "a ^ b": operator.xor, "a << b": operator.lshift, "a >> b": operator.rshift,
}  # fmt: skip


def message(function: Callable[..., Any], *args: Any) -> str:
    with pytest.raises(sg.SingeError) as caught:
        function(*args)
    return str(caught.value)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("written", OPERATORS)
def test_an_operator_s_error_names_the_operator(written: str, device: str) -> None:
    on = DEVICES[device]()
    a, b = sg.ones((2, 3), device=on), sg.ones((4, 5), device=on)
    assert message(OPERATORS[written], a, b).startswith(f"{written}: ")
    assert message(OPERATORS[written], a, np.ones((4, 5), np.float32)).startswith(f"{written}: ")


@pytest.mark.parametrize("written", BITS)
def test_an_operator_of_bits_names_itself(written: str) -> None:
    a = sg.ones((2, 3), device="numpy")
    assert message(BITS[written], a, a).startswith(f"{written}: got float32")


@pytest.mark.parametrize("written", {**OPERATORS, **BITS})
@pytest.mark.parametrize("other", ["text", [1, 2], (3,), None, {}])
def test_an_operand_that_is_no_tensor_is_shown(written: str, other: Any) -> None:
    """On both sides; only equality has an answer for everything."""
    function, a = {**OPERATORS, **BITS}[written], sg.ones((2, 3), dtype=sg.int32, device="numpy")
    if written in ("a == b", "a != b"):
        assert function(a, other) is (written == "a != b")
        return
    for text in (
        (message(function, a, other), message(function, other, a)) if other != "text" else [message(function, a, other)]
    ):
        mirrored = written.translate(str.maketrans("<>", "><"))
        assert text.startswith((f"{written}: one operand is {other!r}", f"{mirrored}: one operand is {other!r}"))
        assert "expected a Tensor" in text


def test_a_product_of_matrices_with_a_number_says_how_to_multiply() -> None:
    a = sg.ones((2, 3), device="numpy")
    for text in (message(operator.matmul, a, 2), message(operator.matmul, 2.5, a)):
        assert "expected a Tensor or an array; a * b multiplies by a number" in text
    assert "one operand is 2, an int; expected" in message(operator.matmul, a, 2)


@pytest.mark.parametrize("written", ["-a", "~a", "abs(a)"])
def test_an_operator_of_one_operand_names_itself(written: str) -> None:
    a = sg.ones(3, device="numpy")
    a = a if written == "~a" else a > 0
    assert message(eval, written, {"a": a}).startswith(f"{written}: got ")


@pytest.mark.parametrize(
    "key", [5, (0, 0, 0), "x", 1.5, slice(None, None, 0), (..., ...), [9], np.ones(3, bool), np.ones(3)]
)
def test_an_index_s_error_names_the_index(key: Any) -> None:
    x = sg.ones((2, 3), device="numpy")
    assert message(operator.getitem, x, key).startswith("x[…]: ")
    assert message(lambda: x.at[key].set(1)).startswith(("x[…]: ", "x.at[…]"))


def sequence_index(x: Any) -> Any:
    return [1, 2, 3][x]


@pytest.mark.parametrize("function", [sequence_index, range])
def test_a_float_tensor_as_an_index_says_how_to_make_an_integer(function: Callable[..., Any]) -> None:
    text = message(function, sg.tensor(1.0, device="numpy"))
    assert text == "got a tensor of float32 as an index or a count, expected an integer; int(x) makes one"


READS: dict[str, Callable[[Any], Any]] = {
    "numpy()": lambda x: x.numpy(),
    "np.asarray(x)": np.asarray,
    "item()": lambda x: x.sum().item(),
    "tolist()": lambda x: x.tolist(),
    "float(x)": lambda x: float(x[0]),
    "int(x)": lambda x: int(x[0]),
    "bool(x)": lambda x: x if x.sum() > 0 else -x,
    "to": lambda x: x.to(sg.Numpy() if "wasm" in repr(x.device) else "wasm"),
}
TRACES: dict[str, Callable[[Callable[[Any], Any]], Any]] = {
    "grad": lambda f: sg.grad(lambda x: sg.tensor(f(x)).sum())(sg.ones(3, device="numpy")),
    "compile": lambda f: sg.compile(lambda x: sg.tensor(f(x)).sum(), sg.ones(3, device="numpy"), device="numpy"),
    "Model.of": lambda f: sg.Model.of(lambda x: sg.tensor(f(x)).sum(), {"x": (3,)}, "numpy"),
    "TrainStep": lambda f: TrainStep(
        sg.nn.Linear(3, 1), optim.SGD(0.1), lambda net, x: sg.tensor(f(net(x)[0])).sum(), device="numpy"
    )(np.ones((2, 3), np.float32)),
}  # fmt: skip


@pytest.mark.parametrize("trace", TRACES)
@pytest.mark.parametrize("read", READS)
def test_reading_a_tensor_while_a_function_is_traced_says_what_to_do(read: str, trace: str) -> None:
    text = message(TRACES[trace], READS[read])
    assert text.startswith(f"{read}: got ")
    assert "function is traced" in text
    advice = {"bool(x)": "sg.where(condition, x, y)", "to": "move its arguments before the call"}
    assert advice.get(read, "return the tensor") in text


def test_cpu_of_a_tensor_of_a_trace_says_what_to_do() -> None:
    text = message(sg.grad(lambda x: x.cpu().sum()), sg.ones(3, device="wasm"))
    assert text.startswith("to: got the device 'numpy' while a function is traced")
