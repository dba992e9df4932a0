"""`model.profile` in a page: times add up, nothing is left out, and the work agrees with `singe bench`."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from itertools import groupby, pairwise
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest
from bundles import MODELS, Group, assert_close, groups_of, model_case, packed, small_case, write_bundle
from changed import edited
from networks.graphs import two_layers
from pages import Page, node, open_page

from singe.dtypes import float32
from singe.errors import DeviceError
from singe.graph import Builder, Graph
from singe.program.words import COPY
from singe.runtime.devices import device as open_device
from singe.shapes import size
from singe.tools import cli
from singe.tools.measuring import bench

DEVICES: Final = ("wasm", "webgpu")
SIDE: Final = 256
PROFILE: Final = """
const model = await load(given.url, { device: given.device, worker: given.worker ?? false });
const found = await model.profile(unpack(given.tensors), given.options);
await model.dispose();
return found;
"""


@pytest.fixture(params=DEVICES)
def device(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(scope="module")
def chromium(browser: Any, bundle: Callable[[str], Path]) -> Iterator[Page]:
    root = bundle("small").parent
    bundle("dtypes")
    bundle("mnist_cnn")
    for name, graph in {"layers": two_layers(), "uneven": uneven()}.items():
        write_bundle(graph, root / name, name)
    with open_page(browser, root) as page:
        yield page


def uneven() -> Graph:
    """A large product, and otherwise very little work."""
    b = Builder()
    x, v = b.input("x", (size("N"), SIDE), float32), b.input("v", (16,), float32)
    weight = b.const(np.random.default_rng(0).standard_normal((SIDE, SIDE)).astype(np.float32))
    return Graph((x, v), (b.matmul(x, weight), b.exp(v)), ("y", "w"))


def layers_case(rows: int) -> dict[str, np.ndarray]:
    return {"x": np.random.default_rng(1).standard_normal((rows, 16)).astype(np.float32)}


def uneven_case() -> dict[str, np.ndarray]:
    return {"x": np.ones((SIDE, SIDE), np.float32), "v": np.zeros(16, np.float32)}


def program(page: Page, name: str, device: str) -> dict[str, Any]:
    return json.loads((page.root / name / "model.json").read_text())["targets"][device]["program"]


def calls(program: dict[str, Any]) -> list[str]:
    """The labels of a run's calls and copies. Kernels of which each serves some sizes are neighbours over the same buffers:
    one of them runs."""

    def buffers(group: Group) -> list[int]:
        _, head, rest = group
        return rest[: program["kernels"][head]["ports"]] if head >= 0 else [COPY, *rest]

    heads = [next(same)[1] for _, same in groupby(groups_of(program), buffers)]
    return ["copy" if head == COPY else program["kernels"][head]["label"] for head in heads]


def check(found: dict[str, Any], count: int) -> None:
    """Check the rules that hold for every profile."""
    kernels = found["kernels"]
    total = sum(k["seconds"] for k in kernels) + sum(found["rest"].values())
    assert found["seconds"] == pytest.approx(total)
    assert found["seconds"] >= 0.999 * found["run"]
    if found["device"] == "wasm" or found["rest"]["readback"] > 0:
        assert found["seconds"] == pytest.approx(found["run"])
    assert sum(k["calls"] for k in kernels) == count
    assert [k["seconds"] for k in kernels] == sorted((k["seconds"] for k in kernels), reverse=True)
    assert min(0, *(k["seconds"] for k in kernels), *found["rest"].values()) == 0
    events = [e for e in found["trace"]["traceEvents"] if e["ph"] == "X"]
    assert sum(e["dur"] for e in events) == pytest.approx(1e6 * total)
    assert len([e for e in events if e["tid"] == 2]) == count
    assert all(a["ts"] + a["dur"] == pytest.approx(b["ts"]) for a, b in pairwise(events))


@pytest.mark.parametrize("worker", [False, True])
def test_it_adds_up_and_counts_each_step_once(chromium: Page, device: str, worker: bool) -> None:
    given = {"url": "/bundles/layers", "device": device, "tensors": packed(layers_case(5)), "worker": worker}
    found = chromium.run(PROFILE, **given, options={"seconds": 0.2})
    labels = calls(program(chromium, "layers", device))
    check(found, len(labels))
    assert found["device"] == device
    assert found["runs"] >= 1
    assert found["seconds"] > 0
    twice, *_ = [k for k in found["kernels"] if k["kind"] == "matmul"]
    assert (twice["calls"], twice["output"]) == (2, [5, 16])
    assert [e["name"] for e in found["trace"]["traceEvents"] if e.get("tid") == 2 and e["ph"] == "X"] == labels
    assert "copy" in labels


@pytest.mark.parametrize("name", ["mnist_cnn", "dtypes"])
def test_of_other_models(chromium: Page, device: str, name: str) -> None:
    inputs = {k: v[:1] for k, v in model_case(name)[0].items()} if name == "mnist_cnn" else dtypes_inputs()
    given = {"url": f"/bundles/{name}", "device": device, "tensors": packed(inputs)}
    found = chromium.run(PROFILE, **given, options={"seconds": 0.3})
    check(found, len(calls(program(chromium, name, device))))
    print(f"{name} on {device}: {found['seconds'] * 1e3:.2f} ms, {found['runs']} runs, {found['clock']}")
    for k in found["kernels"]:
        print(f"  {k['label']:40} {k['output']!s:20} {k['calls']} {k['seconds'] * 1e3:9.4f} ms")


def dtypes_inputs() -> dict[str, np.ndarray]:
    return {"h": np.ones(3, np.float16), "i": np.arange(3), "u": np.arange(3, dtype=np.uint8)}


CLOCKS: Final = {
    "wasm": (DEVICES[0], ""),
    "timestamps": (DEVICES[1], ""),
    "without the feature": (
        DEVICES[1],
        "options.gpuDevice = await (await navigator.gpu.requestAdapter()).requestDevice();",
    ),
    "timestamps that are all 0": (DEVICES[1], "GPUCommandEncoder.prototype.resolveQuerySet = () => {};"),
}
NAMES: Final = {
    "wasm": "performance.now(), in steps of",
    "timestamps": "the GPU's timestamps",
    "without the feature": "performance.now() around submits",
    "timestamps that are all 0": "performance.now() around submits",
}


@pytest.mark.parametrize("clock", CLOCKS)
def test_every_clock_sees_what_takes_long(chromium: Page, clock: str) -> None:
    """A product of 256³ beside 16 numbers; and times in seconds, by a clock of the test's own. A clock around submits also
    counts what other programs take in between: on a busy machine one of some profiles shows it."""
    device, prelude = CLOCKS[clock]
    body = f"""
    const options = {{ device: given.device }};
    const kept = GPUCommandEncoder.prototype.resolveQuerySet;
    {prelude}
    const model = await load("/bundles/uneven", options);
    const inputs = unpack(given.tensors);
    const times = [];
    for (let k = 0; k < 6; k++) {{
      const start = performance.now();
      await model.run(inputs);
      times.push(performance.now() - start);
    }}
    const before = model.memory;
    let found;
    for (let k = 0; k < 6; k++) {{
      found = await model.profile(inputs, {{ seconds: 0.6 }});
      if (found.kernels[0].seconds > 3 * found.kernels[1].seconds) break;
    }}
    const after = model.memory;
    await model.dispose();
    GPUCommandEncoder.prototype.resolveQuerySet = kept;
    options.gpuDevice?.destroy();
    return {{ ...found, least: Math.min(...times) / 1000, kept: JSON.stringify(before) === JSON.stringify(after) }};
    """
    found = chromium.run(body, device=device, tensors=packed(uneven_case()))
    check(found, 2)
    assert found["clock"].startswith(NAMES[clock])
    product, small = found["kernels"]
    assert (product["kind"], small["kind"]) == ("matmul", "elementwise")
    assert product["seconds"] > 3 * small["seconds"]
    assert product["seconds"] + small["seconds"] <= found["seconds"] * 1.0001
    assert found["least"] / 30 < found["run"] < found["least"] * 30, "in seconds"
    assert product["seconds"] > 0.2 * found["run"]
    assert found["kept"], "what it needed is freed"


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Measure peaks with small problems."""
    monkeypatch.setattr(bench, "GEMMS", (128, 128))
    monkeypatch.setattr(bench, "COPIES", (1 << 20, 1 << 20))
    monkeypatch.setattr(bench, "SAMPLE", 0.001)


def test_work_is_what_the_command_counts(
    chromium: Page, device: str, quick: None, capsys: pytest.CaptureFixture[str]
) -> None:
    """By kernel: label, kind, output, calls, operations and bytes, as `singe bench --profile --json` has them."""
    try:
        open_device(device)
    except DeviceError as e:
        pytest.skip(f"no {device} here: {e}")
    shape = ["--input-shape", "input=Nx1x28x28", "--batch", "3", "--repeat", "1"]
    model = str(MODELS / "mnist_cnn.onnx")
    assert cli.main(["bench", model, "--device", device, *shape, "--profile", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)["profile"]["kernels"]
    inputs = {k: v[:3] for k, v in model_case("mnist_cnn")[0].items()}
    given = {"url": "/bundles/mnist_cnn", "device": device, "tensors": packed(inputs)}
    found = chromium.run(PROFILE, **given, options={"seconds": 0})

    def facts(kernels: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
        names = ("label", "kind", "output", "calls", "flops", "bytes")
        return sorted(tuple(str(k[n]).strip("[]()").rstrip(",") for n in names) for k in kernels)

    assert facts(found["kernels"]) == facts(told)
    assert sum(k["flops"] for k in found["kernels"]) > 1e6


def test_no_seconds_run_nothing(chromium: Page, device: str) -> None:
    given = {"url": "/bundles/layers", "device": device, "tensors": packed(layers_case(3))}
    found = chromium.run(PROFILE, **given, options={"seconds": 0})
    check(found, len(calls(program(chromium, "layers", device))))
    assert (found["runs"], found["seconds"]) == (0, 0)
    (product,) = [k for k in found["kernels"] if k["kind"] == "matmul"]
    assert product["flops"] == 2 * 3 * 16 * (2 * 16 + 1)


def test_runs_before_and_after_are_right(chromium: Page, device: str) -> None:
    """Also those asked for while it measures, and where steps work in place."""
    inputs, expected = small_case(6)
    body = """
    const model = await load("/bundles/small", { device: given.device });
    const inputs = unpack(given.tensors);
    const runs = [model.run(inputs), model.profile(inputs, { seconds: 0.1 }), model.run(inputs)];
    const [first, , third] = await Promise.all(runs);
    const last = await model.run(inputs);
    await model.dispose();
    return [first, third, last].map(pack);
    """
    for found in chromium.run(body, device=device, tensors=packed(inputs)):
        assert_close(found, expected)


@pytest.mark.parametrize("worker", [False, True])
def test_what_cannot_be_is_refused(chromium: Page, worker: bool) -> None:
    body = """
    const model = await load("/bundles/layers", { device: "wasm", worker: given.worker });
    const x = new Float32Array(32);
    const found = [
      await failure(() => model.profile({ x: new Float32Array(3) })),
      await failure(() => model.profile({ x }, { seconds: -1 })),
      await failure(() => model.profile({ x }, { seconds: "long" })),
    ];
    await model.dispose();
    found.push(await failure(() => model.profile({ x })));
    return found.map(({ name, code }) => `${name} ${code}`);
    """
    codes = ["input"] * 3 + ["disposed"]
    assert chromium.run(body, worker=worker) == [f"SingeError {code}" for code in codes]


def test_work_that_a_bundle_does_not_say_right_is_unknown(chromium: Page, tmp_path: Path) -> None:
    def spoil(manifest: dict[str, Any]) -> None:
        first, second, *_ = manifest["targets"]["wasm"]["program"]["kernels"]
        del first["flops"]
        first["bytes"] = [[1, ["div", [[1, "M"]], 0]]]
        second["flops"] = -4
        second["bytes"] = {"no": "number"}

    folder = edited(chromium.root / "layers", tmp_path / "spoilt", spoil)
    found = node(PROFILE, url=folder.as_uri(), device="wasm", tensors=packed(layers_case(2)), options={"seconds": 0.05})
    check(found, len(calls(program(chromium, "layers", "wasm"))))
    assert sum(k["flops"] is None and k["bytes"] is None for k in found["kernels"]) == 2


def test_in_node(chromium: Page) -> None:
    folder = chromium.root / "layers"
    found = node(PROFILE, url=folder.as_uri(), device="wasm", tensors=packed(layers_case(4)), options={})
    check(found, len(calls(program(chromium, "layers", "wasm"))))
    assert found["runs"] > 1
