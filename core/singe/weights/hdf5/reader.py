"""HDF5 files as Weights: names are paths of groups, and what Keras stores of an optimizer is left out.

Keras 3 names a weight by its place, as "layers/dense/vars/0"; Keras 2 by its layer and its name, as
"dense/dense/kernel:0", which in a file of a whole model are below "model_weights".
"""

from __future__ import annotations

from typing import Final

from ...errors import FormatError
from ..archive import Archive
from ..stored import StoredArray, Weights
from .datasets import dataset
from .objects import SIGNATURE, File, links_of, messages_of, root_of

KERAS: Final = "model.weights.h5"
"""The entry of a Keras archive that has the weights."""
MODEL: Final = "model_weights"
OPTIMIZERS: Final = ("optimizer", "optimizer_weights")
_LONGEST: Final = 1000
"""The most characters of a name: each array has the names of all its groups in its own."""


def is_hdf5(data: memoryview) -> bool:
    return data[: len(SIGNATURE)] == SIGNATURE


def read_keras(archive: Archive, name: str) -> Weights:
    """The weights in an archive that Keras 3 wrote."""
    data = archive.read(KERAS)
    if not is_hdf5(data):
        raise FormatError(f"{name}: {KERAS} is not HDF5; it starts with {bytes(data[:8])!r}")
    return read_hdf5(data, name)


def read_hdf5(data: memoryview, name: str) -> Weights:
    """The datasets of all groups."""
    file = File(data, name)
    root = root_of(file)
    links = links_of(messages_of(file, root))
    if links is None:
        raise file.fault(root, "no group, expected the root of the file")
    if MODEL in links:
        model = links[MODEL]
        links = links_of(messages_of(file, model))
        if links is None:
            raise file.fault(model, f"{MODEL!r} is no group")
    found: dict[str, StoredArray] = {}
    pending = [(k, at) for k, at in reversed(links.items()) if k not in OPTIMIZERS]
    while pending:
        what, at = pending.pop()
        if len(what) > _LONGEST:
            raise file.fault(at, f"the name {what!r:.80} has {len(what)} characters, at most {_LONGEST} are read")
        messages = messages_of(file, at)
        inner = links_of(messages)
        if inner is None:
            found[what] = dataset(file, messages, at, f"the dataset {what!r:.80}")
        else:
            pending.extend((f"{what}/{k}", place) for k, place in reversed(inner.items()))
    return Weights(found)
