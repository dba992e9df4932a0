"""Random functions that draw: compiled they give what they give eagerly, run by run."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np
import pytest
from devices import RUNNERS

import singe as sg
from singe import nn

SHAPE = (2, 3, 4)
X = np.linspace(-1, 1, 24, dtype=np.float32).reshape(SHAPE)
Part = Callable[[sg.Tensor], sg.Tensor]


def in_block(inner: Part) -> Part:
    def function(x: sg.Tensor) -> sg.Tensor:
        with nn.drawing(nn.next_key(x)):
            return inner(x)

    return function


def by_gradient(inner: Part) -> Part:
    return lambda x: sg.value_and_grad(lambda y: inner(y).square().mean())(x)[1][""] + x


DRAWS: tuple[Part, ...] = (
    lambda x: x + sg.randn_like(x),
    lambda x: x * sg.rand(3, 4),
    lambda x: x - sg.rand_like(x).round(),
    lambda x: x[:, sg.randperm(3)],
    lambda x: x + sg.randint(-2, 3, SHAPE).cast(sg.float32),
    lambda x: x * sg.multinomial(sg.ones(4), 4).cast(sg.float32),
    nn.Dropout(0.3).train(),
    nn.Dropout1d(0.3).train(),
    nn.GaussianNoise(0.2).train(),
    nn.RReLU().train(),
    lambda x: sg.random.normal(nn.next_key(x), (4,)) + x,
)
PLAIN: tuple[Part, ...] = (
    lambda x: x.tanh(),
    lambda x: x + x.mean(-1, keepdim=True),
    lambda x: x * 0.5,
    lambda x: x.flip(0),
)
AROUND = (in_block, by_gradient, sg.checkpoint)


def drawn(rng: Random, depth: int = 0) -> Part:
    """A chain of parts, some of which have a chain inside."""
    parts: list[Part] = []
    for _ in range(rng.randint(1, 3)):
        kind = rng.random()
        if kind < 0.25 and depth < 2:
            parts.append(rng.choice(AROUND)(drawn(rng, depth + 1)))
        else:
            parts.append(rng.choice(DRAWS if kind < 0.8 else PLAIN))

    def function(x: Any) -> Any:
        for part in parts:
            x = part(x)
        return x

    return function


def check(seed: int, device: str) -> None:
    rng = Random(seed)
    function = drawn(rng)
    program = sg.compile(function, X, device=device)
    eager = [rng.random() < 0.4 for _ in range(4)]
    sg.manual_seed(seed)
    want = [function(sg.tensor(X)).numpy() for _ in eager]
    sg.manual_seed(seed)
    for is_eager, wanted in zip(eager, want, strict=True):
        got = function(sg.tensor(X)).numpy() if is_eager else program(X)
        np.testing.assert_allclose(got, wanted, rtol=1e-3, atol=1e-4, err_msg=f"function {seed}")


@RUNNERS
def test_random_functions_draw_the_same_eagerly_and_compiled(device_name: str) -> None:
    for seed in range(1):
        check(seed, device_name)


@pytest.mark.slow
@pytest.mark.parametrize(("first", "end"), [(1, 20), (20, 100)])
@RUNNERS
def test_many_random_functions_draw_the_same_eagerly_and_compiled(device_name: str, first: int, end: int) -> None:
    for seed in range(first, end):
        check(seed, device_name)
