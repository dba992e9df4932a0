"""The command line on photographs: efficientnet_lite0 finds the right classes, and on every device that of one."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from singe.errors import DeviceError
from singe.runtime.devices import device
from singe.runtime.registry import backend_names

SHARED = Path(__file__).parents[4] / "shared"
MODEL, PHOTOS = SHARED / "models" / "efficientnet_lite0.onnx", SHARED / "photos"
SEEN = {
    "chelsea.png": {"tiger cat", "Egyptian cat", "tabby, tabby cat"},
    "coffee.png": {"espresso"},
    "flower.jpg": {"daisy"},
}
"""A photograph ↦ labels, one of which must come first."""
PICTURES = ("--size", "224", "--crop", "0.875", "--mean", "127", "--std", "128", "--layout", "nchw")


@pytest.mark.skipif(not (MODEL.exists() and PHOTOS.exists()), reason=f"{SHARED} is not here")
@pytest.mark.parametrize(
    ("name", "photo"),
    [(name, photo) for name in backend_names() for photo in SEEN if name == "numpy" or photo == "coffee.png"],
)
def test_the_first_label(name: str, photo: str) -> None:
    try:
        device(name)
    except DeviceError as e:
        pytest.skip(str(e))
    pytest.importorskip("PIL", reason="Pillow is not here")
    labels = PHOTOS / "imagenet_labels.json"
    command = [
        "run",
        MODEL,
        "--input",
        f"input={PHOTOS / photo}",
        "--device",
        name,
        "--top",
        "5",
        "--labels",
        labels,
        *PICTURES,
    ]
    done = subprocess.run(
        [sys.executable, "-m", "singe", *map(str, command)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    first = re.search(r"^ +1 +[\d.]+% +\d+  (.+)$", done.stdout, re.M)
    assert first is not None, done.stdout
    assert first[1] in SEEN[photo]
