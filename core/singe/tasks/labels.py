"""The names of classes: sets that many models share, and files."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from ..errors import FormatError, InputError

COCO: Final = (
    "person,bicycle,car,motorcycle,airplane,bus,train,truck,boat,traffic light,fire hydrant,stop sign,parking meter,bench,bird,cat,"
    "dog,horse,sheep,cow,elephant,bear,zebra,giraffe,backpack,umbrella,handbag,tie,suitcase,frisbee,skis,snowboard,sports ball,kite,"
    "baseball bat,baseball glove,skateboard,surfboard,tennis racket,bottle,wine glass,cup,fork,knife,spoon,bowl,banana,apple,sandwich,"
    "orange,broccoli,carrot,hot dog,pizza,donut,cake,chair,couch,potted plant,bed,dining table,toilet,tv,laptop,mouse,remote,keyboard,"
    "cell phone,microwave,oven,toaster,sink,refrigerator,book,clock,vase,scissors,teddy bear,hair drier,toothbrush"
)  # fmt: skip
_GAPS: Final = (12, 26, 29, 30, 45, 66, 68, 69, 71, 83)
"""Of COCO's own numbers, 1 to 90, those that name nothing."""


def _numbered(first: int) -> tuple[str, ...]:
    """COCO's names by its own numbers, from `first` on."""
    names = iter(COCO.split(","))
    return tuple(f"class {k}" if k in (0, *_GAPS) else next(names) for k in range(91))[first:]


SETS: Final[Mapping[str, Sequence[str]]] = {
    "coco": tuple(COCO.split(",")), "coco-90": _numbered(1), "coco-91": _numbered(0), "face": ("face",), "person": ("person",),
}  # fmt: skip
_IMAGENET: Final = 1000
FILES: Final[Mapping[str, str]] = {"imagenet": "imagenet.json"}
"""Sets of labels by name: the 80 classes of COCO's detectors, by its own numbers with and without 0, those of detectors of one class, and in
files the 1,000 of ImageNet."""
_OF_PATHS: Final = "./\\"
"""What has one of these is the name of a file, also where there is none."""


def read_labels(path: str | None) -> Mapping[int, str] | None:
    """The names of classes, if a set or a file is named: a JSON list, a JSON object from numbers to names, or text with one name
    per line."""
    if path is None:
        return None
    if path in SETS:
        return dict(enumerate(SETS[path]))
    if path in FILES:
        path = str(Path(__file__).with_name(FILES[path]))
    try:
        text = Path(path).read_text("utf-8-sig")
    except UnicodeDecodeError as e:
        raise InputError(f"{path}: labels must be UTF-8 text: {e}") from e
    try:
        data = json.loads(text) if text.lstrip()[:1] in ("[", "{") else text.splitlines()
        return {int(k): str(v) for k, v in (data.items() if isinstance(data, dict) else enumerate(data))}
    except (ValueError, RecursionError) as e:
        raise InputError(
            f"{path}: expected a JSON list, a JSON object from numbers to names, or one name a line: {e}"
        ) from e


def labels_of(labels: str | Path | Sequence[str] | Mapping[int, str] | None) -> tuple[str, ...]:
    """Labels as they are given: a set by its name, a file, a list, names by number, or the name of a single class."""
    if labels is None:
        return ()
    if isinstance(labels, (str, Path)):
        if str(labels) not in (*SETS, *FILES) and not Path(labels).is_file():
            if isinstance(labels, str) and labels.strip() and not set(labels) & set(_OF_PATHS):
                return (labels,)
            raise InputError(
                f"labels: got {str(labels)!r}, expected a file, a list, the name of a single class, or one of {', '.join((*SETS, *FILES))}"
            )
        labels = read_labels(str(labels))
    if isinstance(labels, Mapping):
        return tuple(labels.get(k, f"class {k}") for k in range(max(labels, default=-1) + 1))
    return tuple(map(str, labels or ()))


def labels_of_config(config: Mapping[str, Any]) -> tuple[str, ...]:
    """Those of a config.json of Hugging Face; none if it says none."""
    names: Any = config.get("id2label")
    if not isinstance(names, dict):
        return ()
    missing = next((k for k in range(len(names)) if str(k) not in names), None)
    if missing is not None:
        raise FormatError(
            f"config.json: id2label has {len(names)} names, and none of class {missing}; expected those of 0 to {len(names) - 1}, or give labels"
        )
    return tuple(str(names[str(k)]) for k in range(len(names)))


def numberings(labels: Sequence[str]) -> Sequence[Sequence[str]]:
    """Labels, and the same in other numberings that models have: COCO's of TensorFlow and torchvision, less one, and of DETR; ImageNet's of
    TensorFlow, where 0 is the background."""
    if tuple(labels) == SETS["coco"]:
        return labels, SETS["coco-90"], SETS["coco-91"]
    if len(labels) == _IMAGENET and tuple(labels) == labels_of("imagenet"):
        return labels, ("background", *labels)
    return (labels,)
