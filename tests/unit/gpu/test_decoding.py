"""A token of a decoder on GPUs: how many dispatches a layer takes, that they compute what the plain steps do, and that tokens share
commands."""

from __future__ import annotations

import itertools
import re
from dataclasses import replace
from typing import Any, Final

import numpy as np
import pytest
from decoder_cases import config_of, read_fixture, weights_of

from singe.compiler.compile import compile_graph
from singe.dtypes import float32
from singe.language.choosing import LATEST_TOKEN, NOT_CHOSEN, remembered
from singe.language.decoder import ONE_TOKEN, TYPES, Decoder, bounded
from singe.language.description import of_config
from singe.language.files import Tensors
from singe.language.sampling import Sampler, SamplingOptions
from singe.model.model import Model
from singe.ops.products.blocks import packed
from singe.program import words
from singe.program.program import ProgramData
from singe.shapes import known
from singe.weights.stored import PackedMatrix, StoredArray
from singe_cuda.code.dialect import CUDA
from singe_gpu.device import recording, runtime
from singe_gpu.dialect import Dialect
from singe_gpu.target import GpuTarget
from singe_webgpu.code.dialect import WGSL

MAX_DISPATCHES_PER_LAYER: Final = {("llama", "float16"): 8, ("qwen2", "float32"): 8, ("qwen3", "int8"): 13}
"""By the type of the cache. Qwen3 has norms of heads, which take two; for the scales of eight bits, the largest numbers are found first."""
MAX_OTHER_DISPATCHES: Final = 4
"""The number of the token, the embedding, the rotations, the last norm with the scores."""
MAX_DISPATCHES_OF_A_CHOICE: Final = 12
"""Of few tokens: with more, the likeliest are found in several turns."""
ROOM: Final = 64
"""The positions for which a decoder has room."""


def quantised(name: str, weight: np.ndarray, zeros: bool) -> StoredArray:
    """A matrix (outputs, inputs) in 4 bits, with a zero for each block or one for all."""

    def made() -> PackedMatrix:
        blocks = weight.T.reshape(-1, 32, len(weight))
        low, high = blocks.min(1), blocks.max(1)
        scale = (high - low) / np.float32(15) if zeros else np.abs(blocks).max(1) / np.float32(7)
        zero = -low / scale if zeros else np.full(scale.shape, 8, np.float32)
        q = np.clip(np.round(blocks / scale[:, None] + zero[:, None]), 0, 15)
        return PackedMatrix(
            packed(q.reshape(weight.shape[::-1]).astype(np.uint32), 4),
            scale,
            zero if zeros else np.asarray(8, np.float32),
            4,
            32,
        )

    return StoredArray(weight.shape, float32, name, lambda: weight, made)


def decoder(case: str, device: str, zeros: bool = False, cache_dtype: str = "float32") -> Model:
    """A decoder of few weights in 4 bits, specialised for a token."""
    description = of_config(config_of(case), ROOM, "config.json")
    row, stored = description.architecture, dict[str, StoredArray]()
    for name, array in weights_of(read_fixture()["cases"][case]["shapes"]).items():
        base, _, end = name.rpartition(".")
        new = next(m.expand(to) for rule, to in row.tensors.items() if (m := re.fullmatch(rule, base)))
        one = array + np.float32(1) if row.one_plus and new.endswith("norm") else array
        kept = StoredArray(one.shape, float32, "float32", lambda one=one: one)
        stored[f"{new}.{end}"] = quantised(name, one, zeros) if one.ndim == 2 else kept
    network = Decoder(description, Tensors(stored, case), ROOM, cache_dtype)
    model = Model.of(
        network.forward,
        bounded(ROOM),
        device,
        dtypes=TYPES,
        states=network.states(),
    )
    for sizes in ONE_TOKEN:
        model.specialise(**sizes)
    return model


def dispatches(program: ProgramData, **sizes: int) -> list[str]:
    """The labels of what a run at these sizes dispatches."""
    part = program.at(sizes)
    found = []
    for g in part.groups:
        assert g.head >= words.COPY, "calls of kernels, and copies"
        if g.head == words.COPY:
            continue
        code = program.kernels[g.head]
        if all(known(d, sizes) for d in code.variants[0].groups):
            found.append(code.label)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("dialect", [WGSL, CUDA], ids=lambda d: d.name)
@pytest.mark.parametrize(("case", "cache_dtype"), MAX_DISPATCHES_PER_LAYER)
def test_a_layer_takes_few_dispatches_for_a_token(case: str, cache_dtype: str, dialect: Dialect) -> None:
    model = decoder(case, "numpy", cache_dtype=cache_dtype)
    program = compile_graph(model.graph(), GpuTarget(dialect), replace(model.options, specialised=model.specialised))
    layers = config_of(case)["num_hidden_layers"]
    for sizes, used in itertools.product(ONE_TOKEN, (1, ROOM)):
        found = dispatches(program, **sizes, K=used)
        most = (
            layers * MAX_DISPATCHES_PER_LAYER[case, cache_dtype]
            + MAX_OTHER_DISPATCHES
            + sizes["S"] * MAX_DISPATCHES_OF_A_CHOICE
        )
        assert len(found) <= most, found


def require_webgpu() -> None:
    """Skip a test where there is no adapter."""
    pytest.importorskip("wgpu")
    from wgsl_checks import this_gpu  # noqa: PLC0415 (it needs wgpu)

    this_gpu()


def text_of(model: Model) -> np.ndarray:
    """The scores of a text: four tokens at once, then token by token."""
    session = model.session()
    ids = np.random.default_rng(3).integers(0, 90, 12).astype(np.int32)
    parts = [(0, 4), *((k, k + 1) for k in range(4, 12))]
    one = np.empty((1, 0), np.bool_)
    runs = (session(ids[a:b], np.empty((b, 0), np.bool_), one, *NOT_CHOSEN).values() for a, b in parts)
    return np.concatenate([scores for scores, _ in runs])


def chosen_text(model: Model, follows: bool) -> list[int]:
    """Tokens that runs choose. follows: a run takes the token before by what the run before has left, not from the host."""
    session, sampler = model.session(), Sampler(SamplingOptions(seed=5, repeat_penalty=1.2))
    ids, latest = np.array([3, 14, 15], np.int32), [3, 14, 15]
    tokens = list[int]()
    for used in range(3, 20):
        before = remembered([*latest[:-1], LATEST_TOKEN] if follows and tokens else latest)
        used_, none = np.empty((used, 0), np.bool_), np.empty((0, 0), np.bool_)
        _, (token,) = session(ids, used_, none, sampler.row(90), before).values()
        tokens.append(int(token))
        latest.append(int(token))
        ids = np.array([LATEST_TOKEN if follows else token], np.int32)
    return tokens


@pytest.mark.slow
def test_runs_choose_as_the_host_does() -> None:
    """The same tokens on numpy and webgpu, whether the host tells a run the token before or not, as the host chooses from the scores."""
    require_webgpu()
    session, sampler = decoder("llama", "numpy").session(), Sampler(SamplingOptions(seed=5, repeat_penalty=1.2))
    wanted, latest = list[int](), [3, 14, 15]
    for used in range(3, 20):
        new = np.array(latest[3:][-1:] or latest, np.int32)
        sizes = np.empty((used, 0), np.bool_), np.empty((1, 0), np.bool_)
        (scores,), _ = session(new, *sizes, *NOT_CHOSEN).values()
        wanted.append(sampler.choose(scores[:90], latest).token)
        latest.append(wanted[-1])
    for device, follows in (("numpy", True), ("webgpu", False), ("webgpu", True)):
        assert chosen_text(decoder("llama", device), follows) == wanted


@pytest.mark.slow
@pytest.mark.parametrize("zeros", [False, True], ids=["zero for all", "zeros of blocks"])
@pytest.mark.parametrize("case", ["llama", "qwen2", "gemma3"])
def test_a_text_token_by_token_has_the_scores_of_numpy(case: str, zeros: bool) -> None:
    require_webgpu()
    wanted, found = (text_of(decoder(case, device, zeros)) for device in ("numpy", "webgpu"))
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4 * np.abs(wanted).max())


@pytest.mark.slow
def test_tokens_share_commands(monkeypatch: pytest.MonkeyPatch) -> None:
    """The length is read from a buffer: commands are made once for many tokens."""
    require_webgpu()
    made: list[object] = []

    class Counted(recording.Recording):
        def __init__(self, *args: Any) -> None:
            made.append(self)
            super().__init__(*args)

    monkeypatch.setattr(runtime, "Recording", Counted)
    text_of(decoder("llama", "webgpu"))
    assert len(made) == 2  # of the first four tokens, and of one
