"""A network trained here and served in a page: train, export, `singe serve`.

`sg.export` writes a folder of static files, with a page that runs the network in the browser, by WebAssembly or WebGPU and
without Python. The folder can lie on any host. To fine-tune in the page, export a step: `TrainStep.as_model`.

    python demos/training/page.py [--device wasm] [--quick] [--out shapes-page]
    singe serve shapes-page
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from command import run
from fine_tuning import network, right
from pictures import SHAPES, SIZE, pictures

import singe as sg
from singe import nn, optim, train


def main(device: str, quick: bool, out: str | None = None) -> dict[str, float]:
    folder = Path(out or "shapes-page")
    step = train.TrainStep(network(), optim.AdamW(3e-3), nn.CrossEntropyLoss(), device=device)
    for seed in range(20 if quick else 300):
        step(*pictures(64, seed))
    trained = step.model
    model = sg.Model.of(trained.eval(), {"picture": ("N", 1, SIZE, SIZE)})
    bundle = sg.export(model, folder, ["wasm"] if quick else None, labels=dict(enumerate(SHAPES)))
    size = sum(len(data) for name, data in bundle.files.items() if name.startswith("weights"))
    x, _ = pictures(100, seed=10**7)
    same = float(np.abs(model(x) - trained.to("numpy")(sg.tensor(x)).numpy()).max())
    found = {"accuracy": right(trained, 0.1), "bytes": size, "difference": same}
    print(f"{found['accuracy']:.1%} of new pictures right; {size:,} bytes of weights. To see it: singe serve {folder}")
    return found


if __name__ == "__main__":
    run(main, __doc__, out="for the page (default: shapes-page)")
