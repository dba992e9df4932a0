"""A network that was trained leaves as an ONNX file, and the file is read and run, as one from anywhere is.

The network is the one that `singe train mnist` trained, with its batch open. `sg.onnx.save` writes it; `sg.load` reads any ONNX file:
it is checked, never executed, and compiled once for every size of the batch. The file is run on 1,000 images of MNIST that are here,
one by one and in batches, and the first answers are shown.

    python demos/training/onnx_inference.py [--device wasm] [--quick]
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import numpy as np
from command import run
from wgan import READER, few

import singe as sg
from singe.train.examples.mnist import Digits

BATCH = 100


def write(path: Path) -> None:
    """The trained network as an ONNX file, whose batch is open."""
    net = sg.load_weights(Digits(np.random.default_rng(0)), READER).eval()
    model = sg.Model.of(lambda pixels: {"logits": net(pixels)}, {"pixels": ("N", 1, 28, 28)}, name="digits")
    sg.onnx.save(model, path)


def main(device: str, quick: bool) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "digits.onnx"
        write(path)
        model = sg.load(path, device)
    print(
        f"{path.name} on {model.device.label}: {', '.join(map(str, model.inputs))} ↦ {', '.join(map(str, model.outputs))}"
    )
    images = few().partial(0, 100 if quick else 1000)
    pictures = np.stack([picture for picture, _ in images]).astype(np.float32) / 255
    labels = np.array([int(label) for _, label in images])
    model(pictures[:1])
    start = time.perf_counter()
    alone = np.concatenate([np.asarray(model(picture[None])) for picture in pictures])
    each = (time.perf_counter() - start) / len(pictures)
    together = np.concatenate([np.asarray(model(pictures[k : k + BATCH])) for k in range(0, len(pictures), BATCH)])
    for logits, label in zip(alone[:5], labels, strict=False):
        parts = np.exp(logits - logits.max())
        print(f"an image of {label}: read as {logits.argmax()}, {parts.max() / parts.sum():.1%}")
    found = {
        "accuracy": float((together.argmax(1) == labels).mean()),
        "difference": float(np.abs(alone - together).max()),
    }
    print(f"{found['accuracy']:.1%} of {len(labels)} images right; {each * 1e3:.2f} ms each")
    return found


if __name__ == "__main__":
    run(main, __doc__)
