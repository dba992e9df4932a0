"""Masks of findings take a picture's room only when they are asked for."""

from __future__ import annotations

import dataclasses
import pickle
import tracemalloc
import weakref

import numpy as np

from singe.tasks.kinds.detectors.boxes import findings
from singe.tasks.picture.spec import PictureInput
from singe.tasks.spec import TaskSpec


def test_masks_take_room_when_they_are_asked_for() -> None:
    """Of 300 findings in a picture of 12 megapixels, the arrays would have 3.6 GB."""
    count, picture = 300, np.broadcast_to(np.uint8(0), (3000, 4000, 4))
    outputs = {
        "boxes": np.tile(np.array([1000, 1000, 1200, 1100], np.float32), (count, 1)),
        "scores": np.ones(count, np.float32),
        "classes": np.zeros(count, np.int32),
        "masks": np.ones((count, 160, 160), np.float32),
        "mask_scale": np.array([[160 / 3000, 0], [160 / 4000, 0]], np.float32),
    }
    tracemalloc.start()
    found = findings(
        outputs, TaskSpec("detect", PictureInput((640, 640)), "", ("cat",)), picture, {"threshold": 0.5, "top": count}
    )
    assert "0.2% of the picture" in repr(found)
    assert tracemalloc.get_traced_memory()[1] < outputs["masks"].nbytes + 2_000_000
    tracemalloc.stop()
    assert len(found) == count
    mask = found[0].mask
    assert mask is not None
    assert (mask.shape, mask.dtype, np.count_nonzero(mask)) == ((3000, 4000), np.uint8, 200 * 100)
    assert found[0].mask is mask
    assert dataclasses.replace(found[0], label="dog").mask is mask
    assert pickle.loads(pickle.dumps(found[1])).mask.sum() == mask.sum()
    all_masks = weakref.ref(outputs.pop("masks"))
    assert all_masks() is None
