"""Loading a model takes the memory of its weights once: they are mapped, or go to the device piece by piece."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from devices import RUNNERS
from onnx import TensorProto, helper

from singe.program.block import BlockWriter, SharedBlocks

SIDE, LAYERS = 1024, 28
MOST = 1.3
"""How much anonymous memory may grow, in multiples of the weights; pages of mapped files are not counted. Beside the
weights there is the compiler's copy of one of them at a time, so they are many and small; what a GPU's driver takes for
pipelines and for writing to buffers does not grow with the model (about 9 MB with llvmpipe)."""

LOAD = """
import sys, threading
import numpy as np
import singe as sg

def anonymous():
    with open("/proc/self/smaps_rollup") as lines:
        return next(1024 * int(line.split()[1]) for line in lines if line.startswith("Anonymous:"))

device = sg.device(sys.argv[1])
x = np.ones((1, int(sys.argv[3])), np.float32)
sg.compile(lambda a: a + 1, x, device=device)(x)
start = peak = anonymous()
done = threading.Event()

def watch():
    global peak
    while not done.wait(0.005):
        peak = max(peak, anonymous())

watcher = threading.Thread(target=watch)
watcher.start()
y = sg.load(sys.argv[2], device=device)(x)
done.set()
watcher.join()
print(peak - start, float(np.abs(y).sum()))
"""


@pytest.fixture(scope="module", params=["MatMul", "Gemm"])
def model(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A chain of products, each with its own weight, plain or transposed."""
    how = {"transB": 1} if request.param == "Gemm" else {}
    rng = np.random.default_rng(0)
    weights = [rng.random((SIDE, SIDE), dtype=np.float32) for _ in range(LAYERS)]
    nodes = [helper.make_node(request.param, [f"x{k}", f"w{k}"], [f"x{k + 1}"], **how) for k in range(LAYERS)]
    graph = helper.make_graph(
        nodes,
        "chain",
        [helper.make_tensor_value_info("x0", TensorProto.FLOAT, ("N", SIDE))],
        [helper.make_tensor_value_info(f"x{LAYERS}", TensorProto.FLOAT, ("N", SIDE))],
        [
            helper.make_tensor(f"w{k}", TensorProto.FLOAT, w.shape, (w / SIDE).tobytes(), raw=True)
            for k, w in enumerate(weights)
        ],
    )
    path = tmp_path_factory.mktemp("model") / "chain.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/smaps_rollup").exists(), reason="only Linux tells anonymous memory")
@RUNNERS
def test_weights_are_held_once(device_name: str, model: Path) -> None:
    command = [sys.executable, "-c", LOAD, device_name, str(model), str(SIDE)]
    # The allocator keeps no freed array: which ones it would keep depends on the turns of threads.
    settings = {**os.environ, "MALLOC_MMAP_THRESHOLD_": str(1 << 16)}
    answer = subprocess.run(command, capture_output=True, text=True, check=True, timeout=240, env=settings)
    told = answer.stdout.split()
    assert float(told[1]) > 0
    assert int(told[0]) / (LAYERS * SIDE * SIDE * 4) < MOST


@pytest.mark.parametrize("spill", [0, 1000, 1 << 30])
def test_a_block_is_the_same_in_a_file(spill: int) -> None:
    writer = BlockWriter(spill)
    pieces = [np.arange(count, dtype=np.uint8) for count in (3, 0, 256, 200, 17)]
    starts = [writer.add(piece) for piece in pieces]
    block = writer.block()
    assert starts == [0, 256, 256, 512, 768]
    assert block.size == writer.size == 1024
    for start, piece in zip(starts, pieces, strict=True):
        np.testing.assert_array_equal(block[start : start + piece.size], piece)
    assert not block[3:256].any()


@pytest.mark.parametrize("spill", [0, 1 << 30])
def test_pieces_of_one_checksum_are_told_apart(spill: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("singe.program.block.crc32", lambda data: 7)
    shared, held = SharedBlocks(), list[np.ndarray]()
    pieces = [np.full(300, k, np.uint8) for k in (1, 2, 1, 2)]
    for _ in range(2):  # the second Program finds some in the block of the first
        writer = BlockWriter(spill, shared)
        starts = [writer.add(piece) for piece in pieces]
        blocks = {0: writer.block()} | writer.others
        for start, piece in zip(starts, pieces, strict=True):
            at = max(s for s in blocks if s <= start)
            np.testing.assert_array_equal(blocks[at][start - at :][: piece.size], piece)
        held += blocks.values()


def test_without_room_on_the_disk_a_block_stays_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also what came to the file before it was full."""
    writer = BlockWriter(0)
    first = writer.add(np.full(300, 1, np.uint8))

    class Full:
        def __init__(self, file: object) -> None:
            self._file = file

        def __getattr__(self, name: str) -> object:
            return getattr(self._file, name)

        def write(self, data: bytes) -> int:
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(writer, "_file", Full(writer._file))
    second, third = writer.add(np.full(10, 2, np.uint8)), writer.add(np.full(5, 3, np.uint8))
    block = writer.block()
    assert [block[first : first + 300].min(), block[second], block[third]] == [1, 2, 3]
    assert block.size == 1024
