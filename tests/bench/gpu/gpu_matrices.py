"""gpu.py matrices: times products in a browser or on CUDA, in all cuts on subgroup matrices, and fits their rates.

It prints MATRIX_RATES of gpu/singe_gpu/rates.py; with `--device cuda:0` HALF_RATES of cuda/singe_cuda/code/rates.py, and with `--kind float32`
SINGLE_RATES, with `--kind int4` PACKED_RATES, of products by packed weights.
gpu_tune.py does the same for RATES, natively. To try a
new cut, add it to the table with any rate. gpu_page.py checks the products' results.
"""

from __future__ import annotations

import argparse
import json
import shlex
import tempfile
from collections.abc import Iterator, Mapping
from functools import partial
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any, Final

from gpu_page import asked
from gpu_tune import PLAIN_TILE, Collector, Row, fit, table, told, written

import singe as sg
from singe.compiler.compile import compile_graph
from singe.dtypes import dtype, float32, int32
from singe.graph import Builder, Graph
from singe.ir.contraction import contraction
from singe.ir.kernel import Routine
from singe.ops.kinds import ROWS
from singe_cuda.code.dialect import CUDA
from singe_gpu.code.shader import Shader, Text
from singe_gpu.code.variants import MATRIX_FEATURES, Print, variants
from singe_gpu.device.timing import text_seconds
from singe_gpu.dialect import PACKED_MATRIX, Dialect
from singe_gpu.kernels.products.gemm import print_contraction
from singe_gpu.kernels.products.matrix import fitting
from singe_gpu.kernels.products.packed import PackedProduct, packed_product
from singe_gpu.kernels.products.packed_matrix import fits, print_packed_matrix
from singe_gpu.rates import MatrixCut, Rate
from singe_webgpu.code.dialect import WGSL

SIZES: Final = (
    (4096, 4096, 4096), (2048, 2048, 2048), (1024, 1024, 1024), (512, 512, 512), (256, 256, 256), (8192, 1024, 1024),
    (1024, 4096, 1024), (1500, 384, 1536), (197, 768, 768), (197, 768, 3072), (197, 3072, 768), (196, 672, 112),
    (64, 4096, 4096), (16, 4096, 4096), (12544, 96, 24), (12544, 96, 16), (3136, 144, 24), (49, 1152, 320),
    (4096, 512, 512), (4096, 512, 2048), (4096, 2048, 512), (1024, 384, 384),
)  # fmt: skip
PACKED: Final = "int4"
"""The kind of products of floats by packed weights of 4 bits."""
BLOCK: Final = 32
PACKED_SIZES: Final = tuple(
    (m, k, n)
    for k, n in ((576, 576), (1536, 576), (576, 3072), (2048, 3072), (2048, 16384), (8192, 2048), (4096, 4096))
    for m in (8, 32, 128, 512, 4096)
)
WASTE: Final = 5.0
"""A cut is not timed if its tiles have this many times the elements of the product."""
PATIENCE: Final = 300
PAGE: Final = """<!doctype html><meta charset=utf-8><title>matrices</title><script type=module>
const AHEAD = 12, WARM_MS = 100, PASS_MS = 10, PASSES = 6, MOST = 2000;
async function measure() {
  const adapter = await navigator.gpu.requestAdapter({ powerPreference: "high-performance" });
  const { maxBufferSize, maxStorageBufferBindingSize, maxComputeWorkgroupStorageSize } = adapter.limits;
  const device = await adapter.requestDevice({
    requiredFeatures: ["shader-f16", "subgroups", "chromium-experimental-subgroup-matrix", "timestamp-query"],
    requiredLimits: { maxBufferSize, maxStorageBufferBindingSize, maxComputeWorkgroupStorageSize },
  });
  const texts = await (await fetch("texts.json")).json();
  const types = ["read-only-storage", "read-only-storage", "storage"];
  const layout = device.createBindGroupLayout({ entries: types.map((type, binding) => ({ binding, visibility: 4, buffer: { type } })) });
  const pipelineLayout = device.createPipelineLayout({ bindGroupLayouts: [layout] });
  const building = new Map();
  const build = (text) => building.has(text) || building.set(text, device.createComputePipelineAsync({
    layout: pipelineLayout, compute: { module: device.createShaderModule({ code: text.code }) },
  }));
  const querySet = device.createQuerySet({ type: "timestamp", count: 2 });
  const { MAP_READ, COPY_SRC, COPY_DST, STORAGE, QUERY_RESOLVE } = GPUBufferUsage;
  const marks = device.createBuffer({ size: 16, usage: QUERY_RESOLVE | COPY_SRC });
  const staging = device.createBuffer({ size: 16, usage: MAP_READ | COPY_DST });
  const seconds = [];
  let shape, buffers = [];
  for (const [at, text] of texts.entries()) {
    texts.slice(at, at + AHEAD).forEach(build);
    const [m, k, n] = text.shape;
    if (String(shape) !== String(text.shape)) {
      shape = text.shape;
      buffers.forEach((buffer) => buffer.destroy());
      buffers = [m * k, k * n, m * n].map((count) => device.createBuffer({ size: 16 * Math.ceil(count / 8), usage: STORAGE | COPY_DST }));
      for (const buffer of buffers.slice(0, 2)) {
        const some = Uint16Array.from({ length: buffer.size / 2 }, (_, i) => (Math.imul(i, 2654435761) >>> 16) & 0xbbff);
        device.queue.writeBuffer(buffer, 0, some); // halves below 1 of both signs
      }
    }
    const bound = device.createBindGroup({ layout, entries: buffers.map((buffer, binding) => ({ binding, resource: { buffer } })) });
    const pipeline = await building.get(text);
    const pass = async (count) => {
      const commands = device.createCommandEncoder();
      const timestampWrites = { querySet, beginningOfPassWriteIndex: 0, endOfPassWriteIndex: 1 };
      const steps = commands.beginComputePass({ timestampWrites });
      steps.setPipeline(pipeline);
      steps.setBindGroup(0, bound);
      for (let i = 0; i < count; i++) steps.dispatchWorkgroups(text.groups);
      steps.end();
      commands.resolveQuerySet(querySet, 0, 2, marks, 0);
      commands.copyBufferToBuffer(marks, 0, staging, 0, 16);
      device.queue.submit([commands.finish()]);
      await staging.mapAsync(GPUMapMode.READ);
      const [from, to] = new BigInt64Array(staging.getMappedRange().slice(0));
      staging.unmap();
      return Number(to - from) / 1e9 / count;
    };
    const count = Math.max(2, Math.min(MOST, Math.round(PASS_MS / 1000 / Math.max(1e-6, await pass(4)))));
    for (const end = performance.now() + WARM_MS; performance.now() < end; ) await pass(count); // an idle GPU's clock is low
    let least = Infinity;
    for (let i = 0; i < PASSES; i++) least = Math.min(least, await pass(count));
    seconds.push(least);
  }
  return { adapter: adapter.info.description, seconds };
}
measure().catch((error) => ({ error: String(error.stack ?? error) })).then((told) => fetch("/told", { method: "POST", body: JSON.stringify(told) }));
</script>"""


def product(m: int, k: int, n: int, kind: str) -> Graph:
    b = Builder()
    if kind == PACKED:
        x, w = b.input("x", (m, k), float32), b.input("w", (k // 8, n), int32)
        scale = b.input("scale", (k // BLOCK, n), float32)
        y = b.apply(ROWS["dot_blocks"], x, w, scale, b.const(8.0, float32), bits=4, block=BLOCK)
        return Graph((x, w, scale), (y,), ("y",))
    x, w = b.input("x", (m, k), dtype(kind)), b.input("w", (k, n), dtype(kind))
    return Graph((x, w), (b.matmul(x, w),), ("y",))


def rates_of(dialect: Dialect, kind: str) -> Mapping[MatrixCut, Rate]:
    return dialect.matrices.packed if kind == PACKED else dialect.matrices.rates[dtype(kind)]


def tried(dialect: Dialect, kind: str) -> Iterator[tuple[tuple[int, int, int], Routine, MatrixCut, Print]]:
    """Each product in each cut that is worth timing, with what prints it."""
    for m, k, n in PACKED_SIZES if kind == PACKED else SIZES:
        compile_graph(product(m, k, n, kind), collector := Collector(dialect))
        (routine,) = collector.routines
        c, packed = contraction(routine), packed_product(dialect, routine)
        assert c is not None
        rates = rates_of(dialect, kind)
        for cut in fitting(dialect, c, rates) if packed is None else (cut for cut in rates if fits(packed, cut)):
            held = -(-m // cut.rows) * cut.rows * -(-n // cut.columns) * cut.columns
            if held <= WASTE * m * n:
                write = partial(written, routine, c, cut) if packed is None else partial(written_packed, packed, cut)
                yield (m, k, n), routine, cut, write


def written_packed(p: PackedProduct, cut: MatrixCut, shader: Shader) -> Text:
    """A product with packed weights in a cut."""
    if PACKED_MATRIX in shader.features:
        return print_packed_matrix(p, cut, shader)
    shader.wanted_features.add(PACKED_MATRIX)
    return print_contraction(p.c, PLAIN_TILE, shader)


def texts() -> list[dict[str, Any]]:
    """The shader texts for a browser."""
    found = []
    for shape, routine, cut, write in tried(WGSL, "float16"):
        code, groups = write(Shader(WGSL, routine.kernel.ports, frozenset(MATRIX_FEATURES)))
        found.append({"cut": str(cut), "shape": shape, "code": code, "groups": groups})
    return found


def measured(device: str, kind: str) -> list[Row]:
    """The seconds of each product in each cut on a device of this process, in the form of gpu_tune.py."""
    backend: Any = getattr(sg.device(device).eager, "backend")  # noqa: B009
    dialect = backend.target.dialect
    rows: list[Row] = []
    for (m, k, n), several in groupby(tried(dialect, kind), itemgetter(0)):
        every = list(several)
        _, routine, *_ = every[0]
        printed = [variants(dialect, routine.kernel.ports, write) for *_, write in every]
        times = dict(
            zip(
                map(str, (cut for _, _, cut, _ in every)),
                text_seconds(backend.gpu, dialect, routine.kernel, printed, {}),
                strict=True,
            )
        )
        rows.append({"batch": 1, "rows": m, "depth": k, "columns": n, "count": 1, "times": times})
    return rows


def survey(browser: str, flags: list[str]) -> list[Row]:
    """The seconds of each product in each cut, in the form of gpu_tune.py."""
    given = texts()
    with tempfile.TemporaryDirectory(prefix="singe-page-") as name:
        (Path(name) / "index.html").write_text(PAGE, "utf-8")
        (Path(name) / "texts.json").write_text(json.dumps(given), "utf-8")
        answer = asked(Path(name), browser, flags, patience=PATIENCE)
    if "error" in answer:
        raise SystemExit(answer["error"])
    print(answer["adapter"])
    rows: dict[tuple[int, ...], Row] = {}
    for text, seconds in zip(given, answer["seconds"], strict=True):
        m, k, n = text["shape"]
        row = rows.setdefault((m, k, n), {"batch": 1, "rows": m, "depth": k, "columns": n, "count": 1, "times": {}})
        row["times"][text["cut"]] = seconds
    return list(rows.values())


def main(arguments: list[str], folder: Path) -> None:
    parser = argparse.ArgumentParser(prog="gpu.py matrices", description=__doc__)
    parser.add_argument("--browser", default="/usr/bin/chromium")
    parser.add_argument("--device", help="a device of CUDA, instead of a browser")
    parser.add_argument(
        "--kind", choices=("float16", "float32", PACKED), default="float16", help="the elements, on CUDA"
    )
    parser.add_argument("--flags", default="", help="the browser's flags, as a shell would take them")
    parser.add_argument("--out", type=Path, help="write all times as JSON")
    parser.add_argument("--times", type=Path, help="fit times that --out wrote instead of taking them")
    args = parser.parse_args(arguments)
    if args.times:
        rows = json.loads(args.times.read_text("utf-8"))
    else:
        rows = measured(args.device, args.kind) if args.device else survey(args.browser, shlex.split(args.flags))
        if args.out:
            args.out.write_text(json.dumps(rows, indent=1), "utf-8")
    for row in rows:
        work = 2 * row["rows"] * row["depth"] * row["columns"]
        best = sorted(row["times"].items(), key=lambda item: item[1])[:3]
        speeds = ", ".join(f"{cut} {seconds * 1e6:.1f} µs ({work / seconds / 1e12:.3g})" for cut, seconds in best)
        print(f"{row['rows']} × {row['depth']} · {row['columns']}: {speeds}")
    present = rates_of(CUDA if args.device else WGSL, args.kind)
    print(f"by the present rates: {told(rows, present)}")
    rates = fit(rows, present)
    print(f"as fitted: {told(rows, rates)}\n\n{table(rates)}")
