"""LoRA: beside a frozen matrix W, which may be packed, a product of two narrow ones is learned: x Wᵀ + (x Aᵀ) Bᵀ · alpha / rank.

The frozen decoder is no part of the module's state: its weights are constants of what is compiled, so that a step of training holds
them once, a checkpoint has the adapter alone, and the models with several adapters share them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from ...errors import InputError, ShapeError
from ...ir.arrays.numpy import NUMPY_ARRAYS
from ...nn import Module, PackedLinear
from ...nn.init import by_inputs
from ...ops.products.blocks import unpacked
from ...runtime.random_keys import Rng, one_generator
from ...shapes import show
from ...tensors.functions.creation import tensor
from ...tensors.tensor import Tensor
from ..decoder import Decoder
from ..description import DecoderDescription
from ..layers import Matrix, Projections, Reordered
from .names import hugging_names, target_of

if TYPE_CHECKING:
    from ..llm import LanguageModel

MAX_RANK: Final = 1024


class LowRank(Module):
    """What is added to the product of x with a matrix (outputs, inputs). lora_A: (rank, inputs); lora_B: (outputs, rank)."""

    lora_A: Tensor
    lora_B: Tensor
    scale: float

    def __init__(self, down: Tensor, up: Tensor, scale: float) -> None:
        self.lora_A, self.lora_B, self.scale = down, up, scale

    def forward(self, x: Tensor) -> Tensor:
        return x.cast(self.lora_A.dtype).linear(self.lora_A).linear(self.lora_B).cast(x.dtype) * self.scale

    @property
    def shape(self) -> tuple[int, int]:
        """Of the matrix."""
        return int(self.lora_B.shape[0]), int(self.lora_A.shape[1])

    def matrix(self) -> np.ndarray:
        """The product as one matrix."""
        up, down = (np.asarray(t.numpy(), np.float32) for t in (self.lora_B, self.lora_A))
        return up @ down * np.float32(self.scale)


class AdaptedProjections(Module):
    """Projections of which some matrices have an adapter."""

    def __init__(self, frozen: Projections, matrices: Mapping[str, LowRank]) -> None:
        self.frozen = frozen
        self.added = [matrices.get(name) for name in frozen.names]

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        made = self.frozen(x)
        if len(self.added) == len(made):
            return tuple(y if a is None else y + a(x) for y, a in zip(made, self.added, strict=True))
        (added,) = self.added  # one matrix holds them all
        assert added is not None
        whole = added(x)
        ends = pairwise(accumulate(self.frozen.sizes, initial=0))
        return tuple(y + whole[..., a:b] for y, (a, b) in zip(made, ends, strict=True))


class Frozen:
    """A decoder that a module uses and does not own: nothing that trains, saves or copies the module sees its weights."""

    def __init__(self, network: Decoder, description: DecoderDescription, name: str) -> None:
        self.network, self.description, self.name = network, description, name

    def __deepcopy__(self, memo: Any) -> Frozen:
        return self

    def __repr__(self) -> str:
        return f"<decoder of {self.name}>"


class LanguageAdapter(Module, inline="matrices"):
    """An adapter of a language model: `sg.language.lora` makes one, `TrainStep` and `Learner` train it.

    Called with ids (texts, T), it gives the scores (texts, T, vocabulary) of what follows each. `save` writes it, `load_adapter` reads it,
    and `llm.adapters["name"] = lora` keeps it.
    """

    matrices: dict[str, LowRank]

    def __init__(self, frozen: Frozen, matrices: Mapping[str, LowRank], alpha: float) -> None:
        """matrices: by GGUF's names of the frozen ones, without ".weight"."""
        self.frozen, self.matrices, self.alpha = frozen, dict(matrices), alpha

    def forward(self, tokens: Tensor) -> Tensor:
        return adapted(self.frozen.network, self.matrices).scores(tokens)

    def save(self, path: str | Path) -> None:
        """Write it: as a GGUF file, if the path ends in .gguf, otherwise as a folder with adapter_model.safetensors and
        adapter_config.json, as PEFT does."""
        from .files import save_adapter  # noqa: PLC0415 (which imports this module)

        save_adapter(self, Path(path))


def lora(
    llm: LanguageModel,
    rank: int = 8,
    alpha: float = 16.0,
    targets: Sequence[str] | None = None,
    *,
    rng: Rng = None,
) -> LanguageAdapter:
    """An adapter of a language model that changes nothing yet, to be trained:

        adapter = sg.language.lora(llm, rank=8)
        step = sg.train.TrainStep(adapter, sg.optim.AdamW(1e-3), sg.language.next_token_loss, device="wasm")
        for tokens, labels, mask in sg.data.Loader(sg.language.examples(llm, text), 1):
            print(step(tokens, labels, mask))
        llm.adapters["mine"] = step.model
        print(llm.adapter("mine").generate("Once", max_tokens=20).text)

    alpha: by alpha / rank is multiplied what it adds. targets: the matrices, as the model's folder calls them
    ("q_proj", "v_proj"); all of attention and of the feed-forward parts, if there are none. The weights of the model stay as they are.
    """
    if type(rank) is not int or not 1 <= rank <= MAX_RANK:
        raise InputError(f"lora: got the rank {rank!r:.40}, expected a whole number from 1 to {MAX_RANK}")
    if not isinstance(alpha, (int, float)) or not math.isfinite(alpha) or alpha <= 0:
        raise InputError(f"lora: got alpha={alpha!r:.40}, expected a number above 0")
    shapes = matrix_shapes(llm.network)
    names = hugging_names(llm.description)
    known = dict.fromkeys(target_of(names[x]) for x in shapes)
    if targets is not None:
        unknown = [t for t in targets if t not in known]
        if unknown or not targets or isinstance(targets, str):
            raise InputError(f"lora: got targets={targets!r:.80}, expected a list of some of {', '.join(known)}")
    generator = one_generator(rng)
    matrices = {
        x: LowRank(
            by_inputs((rank, inputs), inputs, rng=generator),
            tensor(np.zeros((outputs, rank), np.float32)),
            alpha / rank,
        )
        for x, (outputs, inputs) in shapes.items()
        if targets is None or target_of(names[x]) in targets
    }
    return LanguageAdapter(frozen_of(llm), matrices, float(alpha))


def frozen_of(llm: LanguageModel) -> Frozen:
    return Frozen(llm.network, llm.description, llm.decoder.name)


def _projections(network: Decoder) -> Iterator[Projections]:
    """Those of the layers."""
    for layer in network.layers:
        yield from (part for _, part in layer.named_modules() if isinstance(part, Projections))


def matrix_shapes(network: Decoder) -> dict[str, tuple[int, int]]:
    """(outputs, inputs) of the matrices of a decoder's layers, by GGUF's names without ".weight"."""
    found: dict[str, tuple[int, int]] = {}
    for p in _projections(network):
        sizes = [sum(p.sizes)] if len(p.names) == 1 else p.sizes
        found |= {name: (size, p.inputs) for name, size in zip(p.names, sizes, strict=True)}
    return found


def check_matrices(what: str, network: Decoder, matrices: Mapping[str, LowRank]) -> None:
    """Refuse the matrices of an adapter that is one of another model."""
    shapes = matrix_shapes(network)
    for name, m in matrices.items():
        if name not in shapes:
            raise InputError(
                f"{what}: the adapter has a matrix for {name!r:.80}, which this model has not; they are of two models"
            )
        if m.shape != shapes[name]:
            raise ShapeError(
                f"{what}: the adapter's matrix for {name} is one of {show(m.shape)}, the model's is {show(shapes[name])}"
            )


def adapted(network: Decoder, matrices: Mapping[str, LowRank]) -> Decoder:
    """The decoder with an adapter beside its matrices."""
    return network.with_modules(
        {p: AdaptedProjections(p, matrices) for p in _projections(network) if not matrices.keys().isdisjoint(p.names)}
    )


def merged(network: Decoder, matrices: Mapping[str, LowRank]) -> Decoder:
    """The decoder with an adapter added to its matrices, which are floats then."""
    return network.with_modules(
        {p: _merged(p, matrices) for p in _projections(network) if not matrices.keys().isdisjoint(p.names)}
    )


def _merged(p: Projections, matrices: Mapping[str, LowRank]) -> Projections:
    sizes = [sum(p.sizes)] if len(p.names) == 1 else p.sizes
    added = [matrices[name].matrix() if name in matrices else None for name in p.names]
    if len(p.parts) == 1:
        whole = np.concatenate(
            [np.zeros((n, p.inputs), np.float32) if a is None else a for a, n in zip(added, sizes, strict=True)]
        )
        return p.replace(parts=[with_added(p.parts[0], whole)])
    return p.replace(parts=[part if a is None else with_added(part, a) for part, a in zip(p.parts, added, strict=True)])


def with_added(part: Module, added: np.ndarray) -> Matrix:
    """A layer with a matrix (outputs, inputs) added to its own."""
    layer = part.layer if isinstance(part, Reordered) else part
    assert isinstance(layer, (PackedLinear, Matrix))
    if isinstance(layer, PackedLinear):
        words, scale, zero = (t.numpy() for t in (layer.words, layer.scale, layer.zero))
        weight = unpacked(NUMPY_ARRAYS, words, scale, zero, layer.bits, layer.block)[: added.shape[1]].T
    else:
        weight = layer.weight.numpy()
    whole = added.copy()
    whole[:, part.order.numpy() if isinstance(part, Reordered) else slice(None)] += weight
    return Matrix(tensor(whole), None).replace(bias=layer.bias)
