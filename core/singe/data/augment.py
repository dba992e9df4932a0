"""Random changes of images, a batch at a time. What happens to an image depends on the seed, the epoch and its index.

An `Augment` is the `transform` of a Loader: `Loader(train, 64, shuffle=True, transform=Augment(RandomCrop(32, 4), …))`.
Each step also changes images by itself: `RandomCrop(32, 4)(images, seed=0)`. Images are arrays (images, …, height, width)
of any dtype of integers or floats, which they keep; only Normalize makes float32. Names and arguments are torchvision's.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from ..errors import InputError
from .draws import Draws
from .steps import Step, checked
from .warp import ElasticTransform, Warp, warped


class Augment:
    """Steps one after the other, on a field of a batch: the first of a tuple by default; a batch that is an array itself.
    Affine steps that follow each other, with an ElasticTransform after them, sample the images once."""

    def __init__(self, *steps: Step, field: str | int = 0) -> None:
        self.steps: Final = steps
        self._field = field
        groups: list[list[Step]] = []
        for step in steps:
            if not isinstance(step, Step):
                raise InputError(f"Augment: got {step!r:.60}, expected steps such as RandomAffine(10)")
            last = groups[-1][-1] if groups else None
            joins = isinstance(step, Warp) and isinstance(last, Warp) and step.fill == last.fill
            if joins and not isinstance(last, ElasticTransform):
                groups[-1].append(step)
            else:
                groups.append([step])
        self._groups = groups

    def __repr__(self) -> str:
        return f"Augment({', '.join(map(repr, self.steps))})"

    def __call__(self, batch: Any, draws: Draws) -> Any:
        if isinstance(batch, np.ndarray):
            return self._changed(batch, draws)
        at = self._field
        if isinstance(batch, dict) and at in batch:
            return batch | {at: self._changed(batch[at], draws)}
        if isinstance(batch, (tuple, list)) and isinstance(at, int) and -len(batch) <= at < len(batch):
            parts = list(batch)
            parts[at] = self._changed(parts[at], draws)
            return tuple(parts)
        raise InputError(f"Augment: the batch has no field {at!r}; field= names that of the images")

    def _changed(self, images: Any, draws: Draws) -> np.ndarray:
        images = checked(images)
        for group in self._groups:
            warps = [step for step in group if isinstance(step, Warp)]
            images = warped(images, draws, warps) if warps else group[0].apply(images, draws)
        return images
