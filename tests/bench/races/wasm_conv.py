"""3×3 convolution kernels of the target "wasm": by products over windows, by Winograd, and onnxruntime-web's.

    python tests/bench/races/wasm_conv.py [--shapes 56x56x64x64,…] [--rounds 10]

A shape is height x width x channels x outputs, stride 1, SAME padding, with bias and ReLU. All run on one thread of one
Chromium, in turns. Rates count the operations of direct convolution over the thread's CPU time, the best of all rounds.
Errors are from float64, relative to the largest value.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import onnx
from kernels_page import PEER, Given, Page, site
from onnx import TensorProto, helper
from playwright.sync_api import sync_playwright

from singe.dtypes import bool_, float32
from singe.ir import affine, scalar
from singe.ir.kernel import Kernel, Port, Reduce, Routine, Store, loop_vars
from singe.shapes import known
from singe_wasm.code.encode import module
from singe_wasm.kernels.lower import SizeParameters
from singe_wasm.kernels.products import contraction, tiles, winograd
from singe_wasm.levels import LEVELS, PAGES
from singe_wasm.library import LIBRARY

sys.path.insert(0, str(Path(__file__).parents[1]))

from ort_web import CHROMIUM, FLAGS, VERSION

SHAPES: Final = (
    "56x56x64x64,28x28x128x128,14x14x256x256,7x7x512x512,112x112x32x64,80x80x16x16,160x160x24x24,56x80x96x24,"
    "14x14x32x64,7x7x64x128,112x112x8x8,28x28x8x64,28x28x64x8,28x28x32x32,13x13x128x128,20x20x64x64,9x9x64x64,6x6x16x16,224x224x3x64,224x224x4x64"
)

Shape = tuple[int, int, int, int]


def convolution(shape: Shape) -> Routine:
    """relu(conv(x, w) + bias), channels last."""
    height, width, channels, outputs = shape
    grid, inner = (1, height, width, outputs), (3, 3, channels)
    n, y, x, o = loop_vars("g", grid)
    v, u, c = loop_vars("r", inner)
    inside, read = scalar.const(True, bool_), []
    for place, tap, length in ((y, v, height), (x, u, width)):
        q = place + tap - 1
        inside = scalar.and_(inside, scalar.and_(scalar.le(0, q), scalar.lt(q, length)))
        read.append(scalar.clip(q, 0, length - 1))
    value = scalar.load(0, affine.flatten((n, *read, c), (1, height, width, channels)), float32)
    weight = scalar.load(1, affine.flatten((v, u, c, o), (*inner, outputs)), float32)
    total = Reduce("a0", "add", scalar.select(inside, value, 0.0) * weight)
    done = scalar.maximum(total.accumulator + scalar.load(2, o, float32), 0.0)
    ports = (Port(float32), Port(float32), Port(float32), Port(float32, True))
    facts = {
        "x": 0, "w": 1, "x_shape": (1, height, width, channels), "w_shape": (*inner, outputs), "strides": (1, 1),
        "dilations": (1, 1), "pads": (1, 1), "group": 1,
    }  # fmt: skip
    return Routine(
        "conv", Kernel(ports, grid, inner, (total, Store(3, affine.flatten((n, y, x, o), grid), done))), facts
    )


@dataclass(frozen=True)
class Made:
    """A kernel: its module, its weights, its scratch."""

    code: bytes
    weights: np.ndarray
    scratch: int


@dataclass(frozen=True)
class Case:
    """A convolution with its inputs, and its kernels by name."""

    shape: Shape
    x: np.ndarray
    w: np.ndarray
    bias: np.ndarray
    kernels: Mapping[str, Made]

    @property
    def name(self) -> str:
        return "x".join(map(str, self.shape))

    @property
    def work(self) -> int:
        return 18 * int(np.prod(self.shape))

    def wanted(self) -> np.ndarray:
        height, width, _, outputs = self.shape
        padded = np.pad(self.x.astype(np.float64), ((1, 1), (1, 1), (0, 0)))
        total = np.zeros((height, width, outputs)) + self.bias
        for i in range(3):
            for j in range(3):
                total += padded[i : i + height, j : j + width] @ self.w[i, j].astype(np.float64)
        return np.maximum(total, 0)

    def error(self, who: str, answer: np.ndarray) -> float:
        height, width, _, outputs = self.shape
        wanted = self.wanted()
        if who == PEER:
            answer = answer.reshape(outputs, height, width).transpose(1, 2, 0)
        return float(np.abs(answer.reshape(wanted.shape) - wanted).max() / wanted.max())


def case(shape: Shape) -> Case:
    height, width, channels, outputs = shape
    rng = np.random.default_rng(0)
    x = rng.standard_normal((height, width, channels), np.float32)
    w = rng.standard_normal((3, 3, channels, outputs), np.float32) / np.float32(3 * channels**0.5)
    routine = convolution(shape)
    kernels: dict[str, Made] = {}
    direct = contraction.schedule(routine, {1})
    assert direct is not None
    for name in PAGES:
        level, sizes = LEVELS[name], SizeParameters(())
        code = module({"k0": contraction.print_contraction(direct, sizes, level)}, LIBRARY, level.relaxed)
        kernels[f"products.{name}"] = Made(code, direct.pack(w), int(known(direct.scratch, {})))
        if channels % 4 == outputs % 4 == 0:
            fewer = winograd.SquareSchedule(routine, routine.facts)  # whether it is worth it or not
            code = module({"k0": tiles.print_tiles(fewer, SizeParameters(()), level)}, LIBRARY, level.relaxed)
            kernels[f"Winograd.{name}"] = Made(code, w, fewer.scratch)
    return Case(shape, x, w, rng.standard_normal(outputs).astype(np.float32), kernels)


def onnx_model(c: Case) -> bytes:
    height, width, channels, outputs = c.shape
    value, array = helper.make_tensor_value_info, onnx.numpy_helper.from_array
    graph = helper.make_graph(
        [helper.make_node("Conv", ["x", "w", "b"], ["z"], pads=[1, 1, 1, 1]), helper.make_node("Relu", ["z"], ["y"])],
        "convolution", [value("x", TensorProto.FLOAT, [1, channels, height, width])],
        [value("y", TensorProto.FLOAT, [1, outputs, height, width])],
        [array(np.ascontiguousarray(c.w.transpose(3, 2, 0, 1)), "w"), array(c.bias, "b")],
    )  # fmt: skip
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    return made.SerializeToString()


def files(c: Case) -> dict[str, bytes]:
    """The files of a case that the page needs, by name."""
    first = np.ascontiguousarray(c.x.transpose(2, 0, 1))
    found = {"x": first.tobytes(), "last": c.x.tobytes(), "bias": c.bias.tobytes(), "onnx": onnx_model(c)}
    for who, kernel in c.kernels.items():
        found |= {f"{who}.w": kernel.weights.tobytes(), who: kernel.code}
    return {f"{c.name}.{kind}": content for kind, content in found.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shapes", default=SHAPES)
    parser.add_argument("--rounds", type=int, default=10)
    args = parser.parse_args()
    shapes = [tuple(map(int, text.split("x"))) for text in args.shapes.split(",")]
    if any(len(s) != 4 or min(s) < 1 for s in shapes):
        parser.error(f"--shapes: got {args.shapes!r}, expected height x width x channels x outputs, as in 56x56x64x64")
    cases = [case(s) for s in shapes]  # pyright: ignore[reportArgumentType]
    names = [*dict.fromkeys(who for c in cases for who in c.kernels), PEER]
    needed = {name: content for c in cases for name, content in files(c).items()}
    with site(needed) as address, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        print(f"Chromium {browser.version}, {PEER} {VERSION}, one thread, GFLOP/s (error)\n")
        columns = ["height × width × channels → outputs", *names, "chosen"]
        print(f"| {' | '.join(columns)} |\n|{'---|' * len(columns)}", flush=True)
        page = Page(browser, address)
        for c in cases:
            height, width, channels, outputs = c.shape
            given = {who: Given(who, ("last", f"{who}.w", "bias"), made.scratch) for who, made in c.kernels.items()}
            answers = page.open(c.name, (1, channels, height, width), height * width * outputs, given)
            errors = {who: c.error(who, answer) for who, answer in answers.items()}
            for who, error in errors.items():
                if error > 1e-4:
                    raise SystemExit(
                        f"{c.name}: the answer of {who} is {error:.1e} off, expected 1e-4 of the largest value"
                    )
            best = page.best(list(answers), args.rounds)
            cells = [f"{c.work / best[who] / 1e9:.1f} ({errors[who]:.0e})" if who in best else "" for who in names]
            chosen = "products" if winograd.schedule(convolution(c.shape)) is None else "Winograd"
            print(
                f"| {' × '.join(map(str, c.shape[:3]))} → {c.shape[3]} | {' | '.join(cells)} | {chosen} |", flush=True
            )
        browser.close()


if __name__ == "__main__":
    main()
