"""A network on a device: it reads a source once, and says texts about it token by token. PairModel has a Model for each function, as Python
does; `whole` makes one Model of all, as a page has it, whose inputs' sizes say which function a run computes:

| function | sizes | gives |
|---|---|---|
| hear a source | T: 0; H: its tokens or samples | the states hold the source |
| say | N: 0; T tokens that follow, of which there are K then | scores after the last R |
| say side by side | N: the most texts, T: as many, one of each text | scores after each |

Inputs of other functions are empty.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final, Protocol

import numpy as np

from ...errors import FormatError, InputError
from ...model.kept import kept_by_graph
from ...model.model import Model
from ...model.session import Session
from ...model.source import GraphsBySizes
from ...runtime.device import Device
from ...runtime.devices import device as open_device
from ...tensors.functions.creation import zeros
from ...tensors.tensor import Tensor
from ..files import Tensors
from ..layers import PackedTokenTable
from .description import PairDescription, check_room
from .network import SAY_TYPES, PairNetwork, States, as_source, heard_bound, say_shapes, source_input, source_room
from .search import FollowedTexts

MOST_TEXTS: Final = 5
"""Side by side in a page, where a model's files do not ask for more."""
INPUTS: Final = ("source", "heard", "ids", "keys", "rows", "order")
Sizes = Mapping[str, int]
Outputs = tuple[dict[str, Tensor], dict[str, Tensor]]


class SourceReader(Protocol):
    """What reads a source, and says what follows the tokens of a text about it. room: positions of a source, and of a text."""

    @property
    def device(self) -> Device: ...
    @property
    def room(self) -> tuple[int, int]: ...
    def hear(self, source: Sequence[int] | np.ndarray) -> None:
        """Take a source: tokens, or samples."""
        ...

    def texts(self, count: int) -> FollowedTexts:
        """So many texts about the source, which have no tokens yet."""
        ...

    def whole(self, name: str, texts: int) -> Model:
        """All of it as one Model of this name, for at most so many texts side by side: see `whole`."""
        ...


class PairModel:
    """The Models of a network, which share its weights."""

    def __init__(self, description: PairDescription, tensors: Tensors, device: str | Device = "auto") -> None:
        self.description: Final = description
        self.device: Final = open_device(device)
        self.room: Final = source_room(description), description.room
        self._network: Final = PairNetwork(description, tensors)
        shape, dtype = source_input(description)
        hear = Model.of(
            self._network.hear, {"source": shape, "heard": (heard_bound(description), 0)}, self.device,
            dtypes={"source": dtype, "heard": "bool"}, states=self._network.heard(), name="hear",
        )  # fmt: skip
        self._hear: Final = kept_by_graph(hear)
        self._source: Final = self._hear.session()
        self._texts: Final[dict[int, SaidTexts]] = {}
        self.heard = 0
        """Tokens, or samples, of the source."""

    def hear(self, source: Sequence[int] | np.ndarray) -> None:
        self.heard = len(source)
        self._source(as_source(source, self.description.family.rotated), np.empty((self.heard, 0), np.bool_))

    def whole(self, name: str, texts: int) -> Model:
        check_room(self.description, texts)
        return whole(self._network, texts, self.device, name)

    def texts(self, count: int) -> SaidTexts:
        found = self._texts.get(count)
        if found is None:
            check_room(self.description, count)
            own = self._network.said(count)
            say = Model.of(
                self._network.say, say_shapes(self.description, count), self.device, dtypes=SAY_TYPES,
                states={**self._network.heard(), **own}, name="say",
            )  # fmt: skip
            found = self._texts[count] = SaidTexts(
                said_about(self._source, self._hear, kept_by_graph(say), own), self, count
            )
        found.used = 0
        return found


def said_about(source: Session, hear: Model, say: Model, own: Mapping[str, Any]) -> Session:
    """A session of `say` with the weights of `hear`, whose session holds what was heard, and with states of its own."""
    say.share_weights(hear)
    room = Model.of(_kept, {"nothing": (1,)}, hear.device, states=own, name="room")
    return say.joined([source, room.session()])


def _kept(nothing: Tensor, **states: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
    return nothing, states


class SaidTexts:
    """Texts about a source, side by side. used: how many tokens each has."""

    def __init__(self, session: Any, model: PairModel, count: int) -> None:
        self._session: Final = session
        self._model: Final = model
        self.count: Final = count
        self.used = 0

    def add(self, ids: Sequence[Sequence[int]], rows: int = 1, order: Sequence[int] | None = None) -> np.ndarray:
        self.used += len(ids[0])
        scores = self._session(
            np.array(ids, np.int32), np.empty((self.used, 0), np.bool_), np.empty((rows, 0), np.bool_),
            np.empty((self._model.heard, 0), np.bool_),
            np.arange(self.count, dtype=np.int32) if order is None else np.array(order, np.int32),
        )  # fmt: skip
        return scores.reshape(self.count, rows, -1)


def by_sizes(
    general: Callable[..., Any], functions: Sequence[tuple[Sizes, Callable[..., Any]]], shapes: Mapping[str, Sequence[int | str]],
    types: Mapping[str, str], states: States, device: str | Device, name: str, computed: str,
) -> Model:  # fmt: skip
    """A Model of functions over the same inputs and states, each with the sizes that choose it; `general` is that of all other sizes. They are
    words for particular sizes of one Program. computed: how products with packed weights are."""

    def of(function: Callable[..., Any], sizes: Sizes) -> Model:
        named = {
            key: tuple(sizes.get(x, x) if isinstance(x, str) else x for x in shape) for key, shape in shapes.items()
        }
        return Model.of(function, named, device, dtypes=types, states=states, name=name)

    other = of(general, {})
    source = GraphsBySizes(other.graph(), [(sizes, of(function, sizes).graph()) for sizes, function in functions])
    made = Model(source, other.device, name, computed, bounds=other.options.bounds)
    for sizes, _ in functions:
        made.specialise(**sizes)
    return made


def computing(network: Any) -> str:
    """How a network's products are computed: with packed weights in integers of 16 bits where that is faster, as language models do."""
    return "int16" if isinstance(network.embedding, PackedTokenTable) else "float32"


def whole(network: PairNetwork, most: int, device: str | Device, name: str) -> Model:
    """A network as a Model of this name, which says at most so many texts side by side."""
    d = network.description
    shape, dtype = source_input(d)
    shapes: dict[str, Sequence[int | str]] = {
        "source": shape, "heard": (heard_bound(d), 0), "ids": ("T",), "keys": (f"K<={d.room}", 0), "rows": ("R", 0), "order": ("N",),
    }  # fmt: skip
    types = {"source": dtype, "heard": "bool", "ids": "int32", "keys": "bool", "rows": "bool", "order": "int32"}

    def hear(source: Tensor, heard: Tensor, *_: Tensor, **states: Tensor) -> Outputs:
        own = {name: states[name] for name in network.heard()}
        return {"scores": zeros(0, d.vocabulary)}, {**states, **network.hear(source, heard, **own)[1]}

    def say(
        source: Tensor, heard: Tensor, ids: Tensor, keys: Tensor, rows: Tensor, order: Tensor, **states: Tensor
    ) -> Outputs:
        texts = order.shape[0] if isinstance(order.shape[0], int) and order.shape[0] else 1
        scores, updated = network.say(ids.reshape(texts, -1), keys, rows, heard, order, **states)
        return {"scores": scores}, updated

    functions: list[tuple[Sizes, Callable[..., Any]]] = [
        ({"T": 0}, hear), ({"N": 0, "T": 1, "R": 1}, say), ({"N": most, "T": most, "R": 1}, say),
    ]  # fmt: skip
    states = {**network.heard(), **network.said(most)}
    return by_sizes(say, functions, shapes, types, states, device, name, computing(network))


class WholePair:
    """Such a Model of a bundle: a SourceReader. most: texts side by side."""

    def __init__(self, model: Model, room: tuple[int, int], most: int, name: str) -> None:
        names = [x.name for x in model.inputs]
        if names != list(INPUTS):
            raise FormatError(f"{name}: its model takes {', '.join(names)}; expected {', '.join(INPUTS)}")
        self.model: Final = model
        self.room: Final = room
        self.most: Final = most
        self._session: Final = model.session()
        self._behind: Final = tuple(x for x in (model.inputs[0].shape or ())[1:] if isinstance(x, int))
        self._source: Final = model.inputs[0].dtype.numpy
        self._heard = 0

    @property
    def device(self) -> Device:
        return self.model.device

    def hear(self, source: Sequence[int] | np.ndarray) -> None:
        self._heard = len(source)
        self._run(as_source(source, bool(self._behind)), (), 0, 0, ())

    def texts(self, count: int) -> WholeTexts:
        return WholeTexts(partial(self._run, np.zeros((0, *self._behind), self._source)), self.most, count)

    def whole(self, name: str, texts: int) -> Model:
        return self.model

    def _run(self, source: np.ndarray, ids: Sequence[int], used: int, rows: int, order: Sequence[int]) -> np.ndarray:
        sizes = (np.empty((count, 0), np.bool_) for count in (used, rows))
        heard = np.empty((self._heard, 0), np.bool_)
        return self._session(source, heard, np.array(ids, np.int32), *sizes, np.array(order, np.int32))


class WholeTexts:
    """Texts about the source of a Model of one Program. say: the scores after tokens, of how many a text has then, of how many rows, and of the
    order of texts side by side; most: of them. used: how many tokens each has."""

    def __init__(
        self, say: Callable[[Sequence[int], int, int, Sequence[int]], np.ndarray], most: int, count: int
    ) -> None:
        if count > most:
            raise InputError(f"beams: {count}, expected at most {most}, for which this bundle was exported")
        self._say, self._most = say, most
        self.count: Final = count
        self.used = 0

    def add(self, ids: Sequence[Sequence[int]], rows: int = 1, order: Sequence[int] | None = None) -> np.ndarray:
        self.used += len(ids[0])
        if order is None:  # one text, or the beginning of all, which is said of the first
            return np.repeat(self._say(ids[0], self.used, rows, ())[None], self.count, 0)
        spare = [0] * (self._most - self.count)  # what the texts at the end say is not looked at
        scores = self._say([*(text[0] for text in ids), *spare], self.used, 1, [*order, *spare])
        return scores[: self.count, None]
