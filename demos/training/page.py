"""A network trained here and served in a page: train, export, `singe serve`.

`sg.export` writes a folder of static files, with a page that runs the network in the browser, by WebAssembly or WebGPU and
without Python. The folder can lie on any host. To fine-tune in the page, export a step: `TrainStep.as_model`.

    python demos/training/page.py [--device wasm] [--quick]
    singe serve shapes-page
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
from command import arguments
from fine_tuning import loss_of, network, right
from pictures import SHAPES, SIZE, pictures

import singe as sg
from singe import optim, train

FOLDER = "shapes-page"


def main(device: str, quick: bool) -> dict[str, float]:
    step = train.TrainStep(network(), optim.AdamW(3e-3), loss_of, device=device)
    for seed in range(20 if quick else 300):
        step(*pictures(64, seed))
    trained = step.model
    model = sg.Model.of(trained.eval(), {"picture": ("N", 1, SIZE, SIZE)})
    with tempfile.TemporaryDirectory() as trial:
        folder = Path(trial) / FOLDER if quick else Path(FOLDER)
        bundle = sg.export(model, folder, ["wasm"] if quick else None, labels=dict(enumerate(SHAPES)))
        size = sum(len(data) for name, data in bundle.files.items() if name.startswith("weights"))
    x, _ = pictures(100, seed=10**7)
    same = float(np.abs(model(x) - trained.to("numpy")(sg.tensor(x)).numpy()).max())
    found = {"accuracy": right(trained, 0.1), "bytes": size, "difference": same}
    print(f"{found['accuracy']:.1%} of new pictures right; {size:,} bytes of weights. Now: singe serve {FOLDER}")
    return found


if __name__ == "__main__":
    main(*arguments(__doc__))
