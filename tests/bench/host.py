"""A server of models under load, beside onnxruntime: latencies and rates with many clients at a time, on loopback.

`python tests/bench/host.py [--clients 200] [--seconds 60] [--device wasm]` serves one ONNX model, a network of digits, in a process of
its own: by `singe host`, with and without batches; by onnxruntime in a plain FastAPI server, where fastapi is installed; and by
onnxruntime behind Singe's own application. Each client sends a picture of its own as bytes, checks the answer, and sends it again. It
prints a table in Markdown; a request without a right answer counts as lost.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import re
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))
from host_load import Load, load, post

import singe as sg

TURNS: Final = 5
"""The servers take turns, since what else the machine does changes."""
PIXELS: Final = 28 * 28
HIDDEN: Final = 512
INFER: Final = "/v2/models/digits/infer"


def network() -> Any:
    """An ONNX model: two layers over pictures of any number."""
    import onnx  # noqa: PLC0415
    from onnx import helper, numpy_helper  # noqa: PLC0415

    rng = np.random.default_rng(0)
    weights = {"w": (PIXELS, HIDDEN), "b": (HIDDEN,), "v": (HIDDEN, 10), "c": (10,)}
    arrays = [numpy_helper.from_array((rng.normal(size=s) / 28).astype(np.float32), n) for n, s in weights.items()]
    nodes = [
        helper.make_node("Gemm", ["x", "w", "b"], ["h"]),
        helper.make_node("Relu", ["h"], ["r"]),
        helper.make_node("Gemm", ["r", "v", "c"], ["y"]),
    ]
    ports = [helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, ["N", k]) for n, k in (("x", PIXELS), ("y", 10))]
    graph = helper.make_graph(nodes, "digits", ports[:1], ports[1:], arrays)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


# --- servers ----------------------------------------------------------------------------------------------------------


def session(path: str) -> Any:
    import onnxruntime  # noqa: PLC0415

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(path, options)


def serve_fastapi(path: str) -> None:
    """onnxruntime as its users serve it: bytes in, bytes out."""
    import uvicorn  # noqa: PLC0415

    fastapi: Any = import_module("fastapi")  # which the project does not install
    run_in_threadpool: Any = import_module("fastapi.concurrency").run_in_threadpool
    run = session(path)

    async def infer(request: Any) -> Any:
        x = np.frombuffer(await request.body(), np.float32).reshape(-1, PIXELS)
        (y,) = await run_in_threadpool(run.run, None, {"x": x})
        return fastapi.Response(y.tobytes(), media_type="application/octet-stream")

    infer.__annotations__ = {"request": fastapi.Request}
    app = fastapi.FastAPI()
    app.post(INFER)(infer)
    listener = socket.create_server(("127.0.0.1", 0))
    print(f"http://127.0.0.1:{listener.getsockname()[1]}", flush=True)
    uvicorn.Server(uvicorn.Config(app, log_level="critical", access_log=False)).run([listener])


def serve_application(path: str, batch: int) -> None:
    """onnxruntime behind Singe's application."""
    with sg.host.ModelServer(path, port=0, token="", device="numpy", batch=batch) as server:
        served, run = server.application.models["digits"], session(path)
        served._run = lambda arrays: {"y": run.run(None, {"x": arrays["x"]})[0]}  # pyright: ignore[reportAttributeAccessIssue]
        print(server.url, flush=True)
        server.wait()


@contextmanager
def started(*command: str) -> Iterator[tuple[int, int]]:
    """The process and the port of a server in a process of its own."""
    with subprocess.Popen([sys.executable, *command], stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            (port,) = re.findall(r"http://127\.0\.0\.1:(\d+)", process.stdout.readline())
            yield process.pid, int(port)
        finally:
            process.terminate()


def processor_seconds(pid: int) -> float:
    """What a process has computed so far (Linux)."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measured(port: int, clients: int, seconds: float, plain: bool) -> Load:
    """plain: the body is the tensor and nothing else."""
    rng = np.random.default_rng(0)
    pictures = rng.random((clients, 1, PIXELS), np.float32)
    model = sg.load(network(), device="numpy")
    requests = []
    for x in pictures:
        entry = {"name": "x", "datatype": "FP32", "shape": [1, PIXELS], "parameters": {"binary_data_size": x.nbytes}}
        text = json.dumps({"inputs": [entry], "parameters": {"binary_data_output": True}}).encode()
        headers = {} if plain else {"Inference_Header_Content_Length": str(len(text))}
        requests.append(post(INFER, x.tobytes() if plain else text + x.tobytes(), **headers))
    right = [model(x) for x in pictures]
    return load(port, requests, right, seconds)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--clients", type=int, default=200)
    options.add_argument("--seconds", type=float, default=60)
    options.add_argument("--device", default="wasm")
    options.add_argument("--peer", nargs=3, metavar=("KIND", "FILE", "BATCH"), help=argparse.SUPPRESS)
    args = options.parse_args()
    if args.peer:
        kind, path, batch = args.peer
        serve_fastapi(path) if kind == "fastapi" else serve_application(path, int(batch))
        return
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "digits.onnx")
        Path(path).write_bytes(network().SerializeToString())
        host = ("-m", "singe", "host", path, "--port", "0", "--token", "", "--device", args.device)
        rows: dict[str, tuple[tuple[str, ...], bool]] = {
            f"singe host, {args.device}": (host, False),
            f"singe host --batch 32, {args.device}": ((*host, "--batch", "32"), False),
            "onnxruntime behind sg.host.Application": ((__file__, "--peer", "application", path, "1"), False),
            "onnxruntime behind it, batch 32": ((__file__, "--peer", "application", path, "32"), False),
        }
        if importlib.util.find_spec("fastapi"):
            rows["onnxruntime in a plain FastAPI server"] = ((__file__, "--peer", "fastapi", path, "1"), True)
        print(f"{args.clients} clients, {args.seconds:g} s each, in {TURNS} turns\n")
        print("| server | requests/s | p50, ms | p95 | p99 | most | processor, ms a request | lost |")
        print("|---|---|---|---|---|---|---|---|")
        with ExitStack() as stack:
            servers = [stack.enter_context(started(*command)) for command, _ in rows.values()]
            loads = [Load() for _ in rows]
            spent = [0.0] * len(rows)
            for _ in range(TURNS):
                for k, ((pid, port), (_, plain)) in enumerate(zip(servers, rows.values(), strict=True)):
                    before = processor_seconds(pid)
                    loads[k].add(measured(port, args.clients, args.seconds / TURNS, plain))
                    spent[k] += processor_seconds(pid) - before
        for name, found, seconds in zip(rows, loads, spent, strict=True):
            times = " | ".join(f"{found.at(q):.0f}" for q in (0.5, 0.95, 0.99, 1))
            each = seconds / max(len(found.seconds), 1) * 1e3
            print(f"| {name} | {found.rate:.0f} | {times} | {each:.2f} | {found.lost} of {found.asked} |")
            for text in sorted(set(found.wrong))[:3]:
                print(f"  {text}")


if __name__ == "__main__":
    main()
