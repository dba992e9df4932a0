"""Bundles whose branches take something for granted of sizes: each is checked where it runs, in node and in a browser."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest
from bundles import MODELS, assert_close, packed
from pages import Page, node, open_page

from singe.dtypes import bool_, float32
from singe.graph import Builder, Graph
from singe.model.files import load
from singe.model.model import Model
from singe.ops import ROWS
from singe.shapes import deferring, size
from singe.tools.export.bundle import export

VOICE: Final = MODELS / "silero_vad.onnx"
WHERE: Final = ("node", "threads", "wasm", "webgpu")
RUN: Final = """
    const model = await load(given.url, given.options);
    const outputs = [];
    for (const inputs of given.cases) outputs.push(pack(await model.run(unpack(inputs))));
    const refused = [];
    for (const inputs of given.wrong) refused.push(await failure(() => model.run(unpack(inputs))));
    const again = pack(await model.run(unpack(given.cases[0])));
    await model.dispose();
    return { outputs, refused, again };
"""


def limited() -> Graph:
    """p ? eˣ : −x, where x has at most three columns in the one branch, and two at least in the other."""
    b, t = Builder(), size("T")
    p, x = b.input("p", (), bool_), b.input("x", (size("N"), t), float32)
    inner = b.input("x", x.shape, float32)
    branches = {
        "then": b.graph([inner], [b.exp(inner)], {3 - t: "T must be at most 3"}),
        "otherwise": b.graph([inner], [b.neg(inner)], {t - 2: "T must be at least 2"}),
    }
    return Graph((p, x), (b.node(ROWS["if"], p, x, **branches),), ("y",))


def refused() -> Graph:
    """p ? eˣ : a branch that cannot run."""
    b = Builder()
    p, x = b.input("p", (), bool_), b.input("x", (2, 3), float32)
    inner = b.input("x", x.shape, float32)
    otherwise = b.graph([inner], [b.expand(b.const(0, float32), shape=x.shape)], {-1: "p must hold"})
    return Graph(
        (p, x), (b.node(ROWS["if"], p, x, then=b.graph([inner], [b.exp(inner)]), otherwise=otherwise),), ("y",)
    )


def shortened() -> Graph:
    """p ? s · sᵀ : x · xᵀ, where s is eˣ without its last three columns: at fewer it would be of a negative length."""
    b, n, t = Builder(), size("N"), size("T")
    p, x = b.input("p", (), bool_), b.input("x", (n, t), float32)
    inner = b.input("x", x.shape, float32)
    part = b.slice(b.exp(inner), starts=(0, 0), steps=(1, 1), sizes=(n, t - 3))
    with deferring():
        kept = b.concat(part, b.neg(part), axis=1)
        branches = {
            "then": b.graph([inner], [b.matmul(kept, b.transpose(kept, perm=(1, 0)))]),
            "otherwise": b.graph([inner], [b.matmul(inner, b.transpose(inner, perm=(1, 0)))]),
        }
    return Graph((p, x), (b.node(ROWS["if"], p, x, **branches),), ("y",))


def small(p: bool, *shape: int) -> dict[str, np.ndarray]:
    return {"p": np.array(p), "x": np.random.default_rng(shape).normal(size=shape).astype(np.float32)}


def voice(rate: int, count: int, length: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng((rate, count, length))
    x, state = rng.normal(size=(count, length)) * 0.3, rng.normal(size=(2, count, 128))
    return {"input": x.astype(np.float32), "state": state.astype(np.float32), "sr": np.array(rate, np.int64)}


CASES: Final = {
    "limited": [small(True, 2, 1), small(False, 3, 4), small(True, 1, 3), small(False, 2, 2)],
    "refused": [small(True, 2, 3)],
    "shortened": [small(True, 2, 5), small(False, 3, 1), small(True, 1, 3), small(False, 2, 2)],
    "voice": [voice(r, n, c) for n in (1, 3) for r, c in ((16000, 512), (8000, 256), (16000, 576), (8000, 288))],
}
WRONG: Final = {
    "limited": [
        (small(True, 2, 5), "T must be at most 3 (got T = 5)"),
        (small(False, 2, 1), "T must be at least 2 (got T = 1)"),
    ],
    "refused": [(small(False, 2, 3), "p must hold")],
    "shortened": [(small(True, 2, 2), "T - 3 elements: expected a length of 0 or more (got T = 2)")],
    "voice": [
        (voice(16000, 1, 1024), "must be 1 (got input.1 = 1024)"),
        (voice(8000, 1, 512), "must be 1 (got input.1 = 512)"),
    ],
}


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("branches")
    export(Model(limited(), "numpy"), folder / "limited")
    export(Model(refused(), "numpy"), folder / "refused")
    export(Model(shortened(), "numpy"), folder / "shortened")
    if VOICE.exists():
        export(load(VOICE, "numpy"), folder / "voice")
    return folder


@pytest.fixture(scope="module")
def chromium(browser: Any, root: Path) -> Iterator[Page]:
    with open_page(browser, root) as page:
        yield page


def expected(name: str) -> list[dict[str, np.ndarray]]:
    if name in ("limited", "refused"):
        return [{"y": np.exp(c["x"]) if c["p"] else -c["x"]} for c in CASES[name]]
    if name == "shortened":
        given = [np.exp(c["x"])[:, :-3].repeat(2, 1) if c["p"] else c["x"] for c in CASES[name]]
        return [{"y": x @ x.T} for x in given]
    theirs = pytest.importorskip("onnxruntime").InferenceSession(VOICE)
    return [dict(zip(("output", "stateN"), theirs.run(None, c), strict=True)) for c in CASES[name]]


@pytest.mark.parametrize("where", WHERE)
@pytest.mark.parametrize("name", CASES)
def test_a_branch_checks_sizes_only_where_it_runs(
    request: pytest.FixtureRequest, root: Path, name: str, where: str
) -> None:
    if not (root / name).exists():
        pytest.skip(f"{VOICE.name} is absent: it belongs in {MODELS}")
    in_node = where in ("node", "threads")
    options = {"device": "wasm" if in_node else where, "threads": 2 if where == "threads" else 1}
    page = None if in_node else request.getfixturevalue("chromium")
    run: Any = node if page is None else page.run
    url = (root / name).as_uri() if page is None else f"/bundles/{name}"
    wrong = [packed(inputs) for inputs, _ in WRONG[name]]
    done = run(RUN, url=url, options=options, cases=[packed(c) for c in CASES[name]], wrong=wrong)
    wanted = expected(name)
    for found, outputs in zip((*done["outputs"], done["again"]), (*wanted, wanted[0]), strict=True):
        assert_close(found, outputs, 1e-3)
    for found, (_, text) in zip(done["refused"], WRONG[name], strict=True):
        assert found["code"] == "input"
        assert found["message"].endswith(text)
