"""What is given in place of a Tensor is computed with, or refused by an error that names the function and what was given."""

from __future__ import annotations

import inspect
import pickle
import re
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import singe as sg
from singe import array_api, fft, linalg, nn, random

GIVEN: dict[str, tuple[Any, str]] = {
    "an array": (np.ones((2, 3), np.float32), r"NumPy array|\(2, 3\)|float32|array\(\[|no elements|the reduction is"),
    "None": (None, "None|no tensors"),
    "a string": ("abc", "'abc'|'a'|str"),
    "a list": ([1.0, 2.0], r"\[1\.0, 2\.0\]|1\.0|list|rank 0|\(2,\)|\(1, 2\)"),
}
"""What is given ↦ what is in an error that shows it."""
MODULES: dict[str, ModuleType] = {"sg": sg, "linalg": linalg, "fft": fft, "random": random, "array_api": array_api}
X = np.ones((2, 3), np.float32)


def functions(module: ModuleType) -> Iterator[tuple[str, Callable[..., Any], list[inspect.Parameter]]]:
    """The public functions of a module that take Tensors, and their parameters that must be given."""
    for name in dir(module):
        found = getattr(module, name)
        if name[0] in "_S" or not callable(found) or inspect.isclass(found) or inspect.iscoroutinefunction(found):
            continue
        parameters = list(inspect.signature(found).parameters.values())
        if any(p.name == "self" or "Tensor" in str(p.annotation) for p in parameters):
            yield name, found, parameters


def calls(parameters: list[inspect.Parameter], tensor: sg.Tensor, given: Any) -> Iterator[list[Any]]:
    """Arguments in which one place of a Tensor has another value."""
    needed = [p for p in parameters if p.default is p.empty and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    for k, p in enumerate(needed):
        if p.name == "self" or "Tensor" in str(p.annotation):
            yield [given if i == k else plausible(q, tensor) for i, q in enumerate(needed)]
    if any(p.kind is p.VAR_POSITIONAL and "Tensor" in str(p.annotation) for p in parameters):
        yield [*(plausible(q, tensor) for q in needed), given]


def plausible(parameter: inspect.Parameter, tensor: sg.Tensor) -> Any:
    """What a call that succeeds may give."""
    text = str(parameter.annotation)
    if parameter.name == "self" or ("Tensor" in text and "Sequence" not in text):
        return tensor
    return [tensor] if "Sequence" in text else "...->..." if "str" in text else 1


def wrong(names: tuple[str, ...], text_of: str, call: Callable[[], Any]) -> str:
    """What is wrong with the answer to a call."""
    try:
        call()
    except (sg.SingeError, TypeError) as e:
        text = str(e)
        if not isinstance(e, sg.SingeError) and "argument" not in text:
            return f"{type(e).__name__}: {text:.100}"
        if not any(n in text for n in names):
            return f"does not name the function: {text:.100}"
        return "" if re.search(text_of, text) or "argument" in text else f"does not show what was given: {text:.100}"
    except Exception as e:
        return f"{type(e).__name__}: {e!s:.100}"
    return ""


@pytest.mark.slow
@pytest.mark.parametrize(("module", "kind"), [(m, k) for m in MODULES for k in GIVEN])
def test_functions_compute_with_what_they_get_or_refuse_it(module: str, kind: str) -> None:
    given, text = GIVEN[kind]
    tensor, found, count = sg.tensor(X), [], 0
    for name, function, parameters in functions(MODULES[module]):
        for args in calls(parameters, tensor, given):
            count += 1
            names = (name, getattr(function, "__name__", name))
            if said := wrong(names, text, lambda f=function, a=args: f(*a)):
                found.append(f"{module}.{name}{tuple(type(a).__name__ for a in args)}: {said}")
    assert not found
    assert count > 4


LAYERS: dict[str, tuple[Callable[[], Callable[..., Any]], Any]] = {
    "Linear": (lambda: nn.Linear(3, 2), None),
    "Embedding": (lambda: nn.Embedding(4, 2), 9),
    "Conv2d": (lambda: nn.Conv2d(3, 2, 1), "abc"),
    "LSTM": (lambda: nn.LSTM(3, 2), {}),
    "LayerNorm": (lambda: nn.LayerNorm(3), [1.0]),
    "MSELoss": (lambda: lambda x: nn.MSELoss()(x, sg.tensor(X)), None),
    "ReLU": (lambda: nn.Sequential(nn.ReLU(), nn.Linear(3, 2)), object()),
    "take": (lambda: sg.tensor(X).take, 1),
    "one_hot": (lambda: sg.one_hot, X),
    "bincount": (lambda: sg.bincount, X),
    "embedding": (lambda: lambda x: sg.embedding(x, sg.tensor(X)), X),
    "sum": (lambda: sg.sum, X),
}
"""Names in errors ↦ a layer or a function, and what it is given."""


@pytest.mark.parametrize("name", LAYERS)
def test_what_is_no_tensor_is_named_with_the_layer_or_function(name: str) -> None:
    make, given = LAYERS[name]
    function = make()
    with pytest.raises(sg.InputError, match=f"^{name}: (got .*|.*is a .*), expected a Tensor"):
        function(given)


def test_an_error_of_what_a_layer_of_a_user_takes_is_left() -> None:
    class Looks(nn.Module):
        def forward(self, x: Any) -> Any:
            return x.nothing

    with pytest.raises(AttributeError, match="nothing"):
        Looks()(None)


def test_a_program_says_how_it_is_saved_where_it_is_pickled() -> None:
    program = sg.compile(lambda x: x + 1, X, device="numpy")
    with pytest.raises(sg.InputError, match=r"Program.*program\.save\(path\)"):
        pickle.dumps(program)
