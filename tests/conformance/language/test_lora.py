"""LoRA: gradients are PyTorch's, packed weights count as they are, a text is learned, and adapters come from and go to files."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from decoder_cases import ADAPTED, ADAPTERS, lora_batch, read_fixture, weights_of
from devices import RUNNERS
from gguf_decoders import write_gguf
from tiny_language import tiny_gguf

import singe as sg
from singe.language import LanguageAdapter, LanguageModel
from singe.language.adapters.lora import with_added
from singe.language.layers import packed_layer
from singe.weights.safetensors import write_safetensors
from singe.weights.stored import PackedMatrix

RANK, ALPHA = 2, 6
TEXT = "hello world, hello all of you"


@pytest.fixture(scope="module")
def cases() -> Mapping[str, Any]:
    return read_fixture()["cases"]


@pytest.fixture(scope="module")
def recorded() -> Mapping[str, Mapping[str, np.ndarray]]:
    """What make_adapters.py wrote, by case."""
    found: dict[str, dict[str, np.ndarray]] = {name: {} for name in ADAPTED}
    with np.load(ADAPTERS) as arrays:
        for key in arrays.files:
            name, _, inner = key.partition(":")
            found[name][inner] = arrays[key]
    return found


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    return tiny_gguf(tmp_path / "tiny.gguf")


def model_folder(path: Path, case: Mapping[str, Any]) -> Path:
    path.mkdir()
    path.joinpath("config.json").write_text(json.dumps(case["config"]))
    write_safetensors(path / "model.safetensors", weights_of(case["shapes"]))
    return path


def peft_folder(path: Path, arrays: Mapping[str, np.ndarray], **changes: Any) -> Path:
    path.mkdir(exist_ok=True)
    told = {
        "peft_type": "LORA",
        "r": RANK,
        "lora_alpha": ALPHA,
        "bias": "none",
        "use_rslora": False,
        "alpha_pattern": {},
        **changes,
    }
    path.joinpath("adapter_config.json").write_text(json.dumps(told))
    write_safetensors(path / "adapter_model.safetensors", arrays)
    return path


def gradients(
    adapter: LanguageAdapter, device: str, batch: Any, folder: Path
) -> tuple[float, Mapping[str, np.ndarray]]:
    """The loss, and the gradients by PEFT's names."""
    step = sg.train.TrainStep(adapter, sg.optim.SGD(1.0), sg.language.next_token_loss, device=device)
    share = step.share(*batch)
    ends = np.cumsum([t.size for t in adapter.parameters()])
    parts = np.split(np.asarray(share.gradients), ends[:-1])
    adapter.with_state(
        {path: g.reshape(t.shape) for (path, t), g in zip(adapter.named_parameters(), parts, strict=True)}
    ).save(folder)
    return float(share.values["loss"]), sg.read_weights(folder / "adapter_model.safetensors")


def started(llm: LanguageModel) -> LanguageAdapter:
    """An adapter that changes something already."""
    adapter = sg.language.lora(llm, 3, targets=["q_proj", "k_proj", "o_proj", "down_proj"], rng=0)
    draws = np.random.default_rng(1)
    return adapter.map_parameters(lambda path, t: 0.2 * draws.standard_normal(t.shape))


@RUNNERS
@pytest.mark.slow
@pytest.mark.parametrize("name", ADAPTED)
def test_gradients_are_those_of_pytorch(name: str, cases: Any, recorded: Any, device_name: str, tmp_path: Path) -> None:
    llm = sg.language.load(model_folder(tmp_path / "model", cases[name]), "numpy", context=64)
    wanted = dict(recorded[name])
    loss = wanted.pop("loss")
    held = peft_folder(tmp_path / "adapter", weights_of({k: list(x.shape) for k, x in wanted.items()}))
    adapter = sg.language.load_adapter(llm, held)
    value, found = gradients(adapter, device_name, lora_batch(name), tmp_path / "gradients")
    assert value == pytest.approx(float(loss), rel=1e-5)
    assert found.keys() == wanted.keys()
    for key, x in wanted.items():
        np.testing.assert_allclose(found[key], x, atol=2e-5 * max(abs(x).max(), 1e-2), rtol=1e-3, err_msg=key)


def test_rows_are_in_the_order_of_the_file(cases: Any, recorded: Any, tmp_path: Path) -> None:
    """GGUF of this family has other rows than the folder; an adapter of PEFT serves both."""
    pytest.importorskip("gguf")
    case = cases["llama"]
    write_gguf(tmp_path / "m.gguf", case["config"], weights_of(case["shapes"]))
    llm = sg.language.load(tmp_path / "m.gguf", "numpy", context=64)
    wanted = dict(recorded["llama"])
    loss = wanted.pop("loss")
    held = peft_folder(tmp_path / "adapter", weights_of({k: list(x.shape) for k, x in wanted.items()}))
    adapter = sg.language.load_adapter(llm, held)
    value, found = gradients(adapter, "numpy", lora_batch("llama"), tmp_path / "gradients")
    assert value == pytest.approx(float(loss), rel=1e-5)
    for key, x in wanted.items():
        np.testing.assert_allclose(found[key], x, atol=2e-5 * abs(x).max(), rtol=1e-3, err_msg=key)
    other = sg.language.load(model_folder(tmp_path / "model", case), "numpy", context=64)
    adapter.save(tmp_path / "a.gguf")
    of_folder = sg.language.load_adapter(other, tmp_path / "a.gguf")
    same = sg.language.load_adapter(other, held)
    for name, m in same.matrices.items():
        np.testing.assert_array_equal(of_folder.matrices[name].lora_B.numpy(), m.lora_B.numpy())


@RUNNERS
@pytest.mark.slow
@pytest.mark.parametrize("kind", ["Q4_1", "Q8_0"])
def test_gradients_go_through_packed_weights(kind: str, cases: Any, device_name: str, tmp_path: Path) -> None:
    """They are those of the floats that the packed weights stand for, which the step does not hold."""
    gguf = pytest.importorskip("gguf")
    case, form = cases["llama3"], gguf.GGMLQuantizationType[kind]
    shapes = {k: x for k, x in case["shapes"].items() if not k.startswith(("model.layers.1", "model.layers.2"))}
    write_gguf(
        tmp_path / "packed.gguf", case["config"] | {"num_hidden_layers": 1}, weights_of(shapes), lambda name, x: form
    )
    llm = sg.language.load(tmp_path / "packed.gguf", "numpy", context=64)
    adapter, batch = started(llm), lora_batch("llama3")
    llm.adapters["a"] = adapter.map_parameters(lambda path, t: np.zeros(t.shape))
    floats = sg.language.lora(llm.merged("a"), 3, targets=["q_proj", "k_proj", "o_proj", "down_proj"]).with_state(
        adapter.state_dict()
    )
    value, found = gradients(adapter, device_name, batch, tmp_path / "packed")
    same, wanted = gradients(floats, "numpy", batch, tmp_path / "floats")
    assert value == pytest.approx(same, rel=1e-5)
    for key in wanted:
        x = wanted[key]
        np.testing.assert_allclose(found[key], x, atol=2e-5 * abs(x).max(), rtol=1e-3, err_msg=key)


@RUNNERS
@pytest.mark.slow
def test_a_text_is_learned(device_name: str, tiny: Path) -> None:
    llm = sg.language.load(tiny, device_name, context=64)
    data = sg.language.examples(llm, TEXT, 32)
    step = sg.train.TrainStep(
        sg.language.lora(llm, 4, rng=0), sg.optim.AdamW(1e-2), sg.language.next_token_loss, device=device_name
    )
    losses = [float(step(*batch)) for _ in range(12) for batch in sg.data.Loader(data, 1)]
    assert losses[-1] < losses[0] / 5
    before = llm.generate("hello", max_tokens=8, temperature=0).text
    llm.adapters["text"] = step.model
    tuned = llm.adapter("text")
    assert TEXT.startswith("hello" + tuned.generate("hello", max_tokens=8, temperature=0).text)
    assert llm.generate("hello", max_tokens=8, temperature=0).text == before
    ids = list(range(5, 25))
    np.testing.assert_allclose(tuned.logits(ids), llm.merged("text").logits(ids), atol=2e-3)


def test_a_step_holds_no_weights_of_the_model_and_a_learner_takes_it(tiny: Path) -> None:
    llm = sg.language.load(tiny, "numpy", context=64)
    adapter = sg.language.lora(llm, 2, targets=["v_proj"], rng=0)
    data = sg.data.Loader(sg.language.examples(llm, TEXT, 32), 1)
    learner = sg.train.Learner(adapter, sg.optim.SGD(0.1), sg.language.next_token_loss, device="numpy", dashboard=None)
    learner.fit(data, epochs=3)
    assert {path.rpartition(".")[0] for path in learner.model.state_dict()} == {f"blk.{i}.attn_v" for i in range(3)}
    step = sg.train.TrainStep(adapter, sg.optim.SGD(0.1), sg.language.next_token_loss, device="numpy")
    assert sum(x.size for name, x in step.state().items() if name.startswith("model.")) == adapter.parameter_count


def test_weights_whose_inputs_have_another_order_are_merged() -> None:
    draws = np.random.default_rng(0)
    order = draws.permutation(64).astype(np.int32)
    words, scale = draws.integers(0, 2**31, (8, 5)).astype(np.int32), draws.standard_normal((2, 5)).astype(np.float32)
    part = packed_layer(
        PackedMatrix(words, scale, np.full((2, 5), 8, np.float32), 4, 32, order), 64, np.ones(5, np.float32)
    )
    added, x = (
        draws.standard_normal((5, 64)).astype(np.float32),
        sg.tensor(draws.standard_normal((3, 64)).astype(np.float32)),
    )
    np.testing.assert_allclose(
        with_added(part, added)(x).numpy(), part(x).numpy() + x.numpy() @ added.T, rtol=1e-4, atol=1e-3
    )


def test_adapters_are_kept_and_switched(tiny: Path, tmp_path: Path) -> None:
    llm = sg.language.load(tiny, "numpy", context=64)
    ids = list(range(5, 25))
    plain = llm.logits(ids)
    one = started(llm)
    llm.adapters.update(one=one, none=sg.language.lora(llm, 2))
    assert abs(llm.adapter("one").logits(ids) - plain).max() > 0.1
    np.testing.assert_array_equal(llm.adapter("none").logits(ids), plain)
    assert llm.adapter("one") is llm.adapter("one") is llm.adapter("none").adapter("one")
    with pytest.raises(sg.InputError, match="there is no adapter 'two'; there are one, none"):
        llm.adapter("two")
    for path in (tmp_path / "peft", tmp_path / "a.gguf"):
        one.save(path)
        read = sg.language.load_adapter(llm, path)
        assert read.alpha == one.alpha
        for name, m in one.matrices.items():
            assert read.matrices[name].scale == m.scale
            np.testing.assert_array_equal(read.matrices[name].lora_B.numpy(), m.lora_B.numpy())
            np.testing.assert_array_equal(read.matrices[name].lora_A.numpy(), m.lora_A.numpy())
    session = llm.adapter("one").session()
    session.feed(ids)
    session.save(tmp_path / "s.safetensors")
    with pytest.raises(sg.InputError, match="of another model"):
        llm.session().load(tmp_path / "s.safetensors")


def test_gguf_adapters_are_as_llama_cpp_reads_them(tiny: Path, tmp_path: Path) -> None:
    gguf = pytest.importorskip("gguf")
    llm = sg.language.load(tiny, "numpy", context=64)
    sg.language.lora(llm, 3, targets=["down_proj"]).save(tmp_path / "a.gguf")
    read = gguf.GGUFReader(tmp_path / "a.gguf")
    told = {
        k: read.fields[k].contents()
        for k in ("general.type", "adapter.type", "general.architecture", "adapter.lora.alpha")
    }
    assert told == {
        "general.type": "adapter",
        "adapter.type": "lora",
        "general.architecture": "llama",
        "adapter.lora.alpha": 16.0,
    }
    shapes = {t.name: t.shape.tolist() for t in read.tensors}
    assert shapes["blk.0.ffn_down.weight.lora_a"] == [96, 3]
    assert shapes["blk.0.ffn_down.weight.lora_b"] == [3, 64]


def test_examples_of_a_text_follow_each_other(tiny: Path) -> None:
    llm = sg.language.load(tiny, "numpy", context=64)
    ids = [*llm.tokenizer.encode(TEXT), llm.tokenizer.eos]
    data = sg.language.examples(llm, TEXT, 10)
    tokens, labels, mask = (np.concatenate(x) for x in zip(*data, strict=True))
    count = int(mask.sum())
    assert tokens[:count].tolist() == ids[:-1]
    assert labels[:count].tolist() == ids[1:]
    assert count == len(ids) - 1
    assert len(tokens) == -(-count // 10) * 10


def test_of_a_conversation_the_answers_count(tiny: Path) -> None:
    llm = sg.language.load(tiny, "numpy", context=64)
    messages = [
        {"role": r, "content": c}
        for r, c in (("user", "Hi"), ("assistant", "yes"), ("user", "so"), ("assistant", "no"))
    ]
    tokens, labels, mask = sg.language.examples(llm, [messages], 64)[0]
    counted = [int(x) for x, m in zip(labels, mask, strict=True) if m]
    assert llm.tokenizer.decode(counted) == "yes\nno\n"
    assert len(tokens) == 64


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"peft_type": "LOHA"}, "an adapter of the kind 'LOHA'; Singe knows LORA"),
        ({"use_dora": True}, "use_dora is True, which Singe does not know; expected False"),
        ({"alpha_pattern": {"q_proj": 3}}, "alpha_pattern is"),
        ({"lora_alpha": -1}, "lora_alpha: -1, expected a number above 0"),
    ],
)
def test_unknown_kinds_of_adapters_are_refused(changes: Any, message: str, tiny: Path, tmp_path: Path) -> None:
    llm = sg.language.load(tiny, "numpy", context=64)
    with pytest.raises(sg.SingeError, match=message):
        sg.language.load_adapter(llm, peft_folder(tmp_path / "a", {}, **changes))


@pytest.mark.parametrize(
    ("key", "shape", "message"),
    [
        (
            "base_model.model.model.layers.9.self_attn.q_proj.lora_A.weight",
            (2, 64),
            "which Singe does not know in llama",
        ),
        (
            "base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight",
            (2, 64),
            "there is one matrix, expected two",
        ),
        ("base_model.model.model.layers.0.self_attn.q_proj.lora_embedding_A", (2, 64), "does not know"),
    ],
)
def test_adapters_of_other_models_are_refused(key: str, shape: Any, message: str, tiny: Path, tmp_path: Path) -> None:
    llm = sg.language.load(tiny, "numpy", context=64)
    with pytest.raises(sg.SingeError, match=message):
        sg.language.load_adapter(llm, peft_folder(tmp_path / "a", {key: np.zeros(shape, np.float32)}))


def test_matrices_of_another_size_are_refused(tiny: Path, tmp_path: Path) -> None:
    llm = sg.language.load(tiny, "numpy", context=64)
    begin = "base_model.model.model.layers.0.self_attn.q_proj.lora_"
    arrays = {f"{begin}A.weight": np.zeros((2, 32), np.float32), f"{begin}B.weight": np.zeros((64, 2), np.float32)}
    with pytest.raises(
        sg.ShapeError, match=r"the adapter's matrix for blk.0.attn_q is one of \(64, 32\), the model's is \(64, 64\)"
    ):
        sg.language.load_adapter(llm, peft_folder(tmp_path / "a", arrays))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rank": 0}, "got the rank 0, expected a whole number from 1"),
        ({"alpha": -1.0}, "got alpha=-1.0, expected a number above 0"),
        ({"targets": ["query"]}, "got targets=\\['query'\\], expected a list of some of q_proj, k_proj"),
    ],
)
def test_wrong_options_are_refused(options: Any, message: str, tiny: Path) -> None:
    with pytest.raises(sg.InputError, match=message):
        sg.language.lora(sg.language.load(tiny, "numpy", context=64), **options)
