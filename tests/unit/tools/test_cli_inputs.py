"""What the command line reads as inputs (archives, sounds, texts), and what it says of layers and to shells."""

from __future__ import annotations

import re
import shutil
import struct
import subprocess
import wave
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import run
from onnx import TensorProto, helper

from singe.files.sounds import resample
from singe.tools.inputs.texts import pieces

FLOAT, INT, STRING = TensorProto.FLOAT, TensorProto.INT64, TensorProto.STRING
Wrote = Callable[..., Path]
VOCABULARY = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "the", "fox", "##es", ",", "cafe", "日", "$")


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("singe.tools.progress.PATIENCE", 600.0)


@pytest.fixture
def copies(tmp_path: Path) -> Wrote:
    """Writes a model that gives its inputs back; each is (type, shape) by name. The output of `x` is `x_`."""

    def write(**inputs: tuple[int, Any]) -> Path:
        nodes = [helper.make_node("Identity", [name], [f"{name}_"]) for name in inputs]
        given = [helper.make_tensor_value_info(name, *what) for name, what in inputs.items()]
        made = [helper.make_tensor_value_info(f"{name}_", *what) for name, what in inputs.items()]
        model = helper.make_model(
            helper.make_graph(nodes, "g", given, made), opset_imports=[helper.make_opsetid("", 21)]
        )
        model.ir_version = 10
        (tmp_path / "m.onnx").write_bytes(model.SerializeToString())
        return tmp_path / "m.onnx"

    return write


def given_back(capsys: pytest.CaptureFixture[str], folder: Path, model: Path, names: str, *args: object) -> list[Any]:
    """The inputs that a copying model got."""
    written = [a for n in names.split() for a in ("--output", f"{n}_={folder}/{n}_.npy")]
    code, _, err = run(capsys, "run", model, "--device", "numpy", *args, *written)
    assert (code, err) == (0, "")
    return [np.load(folder / f"{n}_.npy") for n in names.split()]


# --- archives ---------------------------------------------------------------------------------------------------------


def test_an_archive_gives_all_inputs_and_files_the_others(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, copies: Wrote
) -> None:
    model = copies(a=(FLOAT, ["N"]), b=(INT, [2, 1]), c=(FLOAT, []))
    a, b, c = np.arange(3, dtype=np.float32), np.array([[4], [5]]), np.float32(6)
    np.savez(tmp_path / "ab.npz", a=a, b=b, unused=np.zeros(9))
    np.savez_compressed(tmp_path / "any.npz", other=c)
    args = ["--input", tmp_path / "ab.npz", "--input", f"c={tmp_path}/any.npz"]
    for found, wanted in zip(given_back(capsys, tmp_path, model, "a b c", *args), (a, b, c), strict=True):
        np.testing.assert_array_equal(found, wanted)
        assert found.dtype == wanted.dtype


# --- sounds -----------------------------------------------------------------------------------------------------------


def sound(path: Path, samples: np.ndarray, width: int, rate: int, channels: int = 1) -> Path:
    """Writes numbers from −1 to 1."""
    whole = np.clip(np.rint(samples * 2.0**31), -(2**31), 2**31 - 1).astype("<i4").view(np.uint8).reshape(-1, 4)
    raw = whole[:, 4 - width :] ^ (128 if width == 1 else 0)
    with wave.open(str(path), "wb") as file:
        file.setparams((channels, width, rate, 0, "NONE", ""))
        file.writeframes(raw.tobytes())
    return path


@pytest.mark.parametrize("width", [1, 2, 3, 4])
@pytest.mark.parametrize("shape", [["T"], [1, "T"], ["N", "T"], [1, "T", 1], [1, 1, 500]])
def test_a_sound_is_one_channel_of_floats(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, copies: Wrote, width: int, shape: list[Any]
) -> None:
    both = np.sin(np.arange(1000) * 0.1).reshape(500, 2) * 0.9
    path = sound(tmp_path / "s.wav", both.ravel(), width, 8000, channels=2)
    (found,) = given_back(capsys, tmp_path, copies(x=(FLOAT, shape)), "x", "--input", path)
    assert found.dtype == np.float32
    assert [n for n in found.shape if n != 1] == [500]
    assert [found.shape[k] for k, n in enumerate(shape) if n == 1] == [1] * shape.count(1)
    np.testing.assert_allclose(found.ravel(), both.mean(1), atol=2.0 ** (1 - 8 * width) + 1e-6)


def chunked(name: bytes, data: bytes, head: bytes) -> bytes:
    """A .wav file of a format, a chunk of odd length that says nothing about the samples, and a chunk of this name."""
    parts = (b"fmt ", head), (b"LIST", b"odd"), (name, data)
    body = b"".join(n + struct.pack("<I", len(d)) + d + b"\0" * (len(d) % 2) for n, d in parts)
    return b"RIFF" + struct.pack("<I", len(body) + 4) + b"WAVE" + body


@pytest.mark.parametrize("bits", [32, 64])
@pytest.mark.parametrize("extensible", [False, True])
def test_a_sound_of_floats(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, copies: Wrote, bits: int, extensible: bool
) -> None:
    """As editors and libraries write it: format 3, or the kind at the end of an extensible format."""
    both = np.sin(np.arange(1000) * 0.1).reshape(500, 2).astype(f"<f{bits // 8}") * 2
    head = struct.pack("<HHIIHH", 0xFFFE if extensible else 3, 2, 8000, 8000 * bits // 4, bits // 4, bits)
    if extensible:
        head += struct.pack("<HHIH", 22, bits, 3, 3) + bytes.fromhex("000000001000800000aa00389b71")
    path = tmp_path / "s.wav"
    path.write_bytes(chunked(b"data", both.tobytes(), head))
    (found,) = given_back(capsys, tmp_path, copies(x=(FLOAT, ["T"])), "x", "--input", path)
    np.testing.assert_allclose(found, both.mean(1), atol=1e-6)


@pytest.mark.slow
def test_a_sound_is_resampled(capsys: pytest.CaptureFixture[str], tmp_path: Path, copies: Wrote) -> None:
    """A tone stays the same tone; one too high for the new rate is gone."""
    model = copies(x=(FLOAT, ["T"]))
    for rate, wanted in ((44100, 16000), (8000, 16000), (16000, 8000)):
        low = np.sin(2 * np.pi * 1000 * np.arange(rate) / rate) / 2
        path = sound(tmp_path / "s.wav", low, 2, rate)
        (found,) = given_back(capsys, tmp_path, model, "x", "--input", path, "--rate", wanted)
        assert found.shape == (wanted,)
        same = np.sin(2 * np.pi * 1000 * np.arange(wanted) / wanted) / 2
        np.testing.assert_allclose(found[100:-100], same[100:-100], atol=2e-3)
    high = np.sin(2 * np.pi * 7000 * np.arange(16000) / 16000)
    assert abs(resample(high, 16000, 8000)[100:-100]).max() < 2e-3
    assert resample(np.zeros(0), 1, 2).size == 0


# --- texts ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("shape", "wanted"), [(["N"], (2,)), (["N", 1], (2, 1))])
def test_texts_are_strings(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, copies: Wrote, shape: list[Any], wanted: tuple[int, ...]
) -> None:
    model = copies(x=(STRING, shape))
    (found,) = given_back(capsys, tmp_path, model, "x", "--text", "a=b", "--text", "猫")
    assert found.shape == wanted
    assert found.ravel().tolist() == ["a=b", "猫"]
    code, out, _ = run(capsys, "run", model, "--device", "numpy", "--text", "a=b")
    assert code == 0
    assert "'a=b'" in out


def vocabulary(path: Path, *more: str) -> Path:
    path.write_text("\n".join((*VOCABULARY, *more)) + "\n", "utf-8")
    return path


def test_texts_become_the_inputs_of_a_bert(capsys: pytest.CaptureFixture[str], tmp_path: Path, copies: Wrote) -> None:
    words = vocabulary(tmp_path / "vocab.txt")
    given = ["--vocab", words, "--text", "The foxes", "--text", "the"]
    model = copies(input_ids=(INT, ["N", "L"]), attention_mask=(INT, ["N", "L"]), token_type_ids=(INT, ["N", "L"]))
    ids, mask, kinds = given_back(capsys, tmp_path, model, "input_ids attention_mask token_type_ids", *given)
    assert ids.tolist() == [[2, 4, 5, 6, 3], [2, 4, 3, 0, 0]]
    assert mask.tolist() == [[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]]
    assert not kinds.any()
    (ids,) = given_back(capsys, tmp_path, copies(input_ids=(TensorProto.INT32, [2, 6])), "input_ids", *given)
    assert (ids.dtype, ids.tolist()) == (np.int32, [[2, 4, 5, 6, 3, 0], [2, 4, 3, 0, 0, 0]])


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("The, THE", ["the", ",", "the"]),
        ("CAFÉ\t$fox\x00es", ["cafe", "$", "fox", "##es"]),
        ("日日 foxy", ["日", "日", "[UNK]"]),
        ("fox" * 40, ["[UNK]"]),
        ("", []),
    ],
)
def test_words_are_cut_into_the_longest_pieces(text: str, wanted: list[str]) -> None:
    numbers = {piece: n for n, piece in enumerate(VOCABULARY)}
    assert [VOCABULARY[n] for n in pieces(text, numbers)] == wanted


def test_a_vocabulary_of_large_letters_keeps_them() -> None:
    numbers = {piece: n for n, piece in enumerate((*VOCABULARY, "A", "The"))}
    assert pieces("The", numbers) == [len(VOCABULARY) + 1]
    assert pieces("THE", numbers) == [1]


# --- what is refused --------------------------------------------------------------------------------------------------

REFUSED = {
    "an archive of other names": (["--input", "{}/two.npz"], "no array 'x'; it has p, q"),
    "an archive that is none": (["--input", "{}/bad.npz"], "bad.npz"),
    "a sound that is none": (["--input", "{}/bad.wav"], "bad.wav: "),
    "a sound of another encoding": (["--input", "{}/law.wav"], "encoded as format 17; expected integers of 8, 16, 24"),
    "a sound of no number": (
        ["--input", "{}/nan.wav"],
        "samples that are not finite, or above 100; expected numbers around −1 to 1",
    ),
    "a sound of one sample a second": (["--input", "{}/slow.wav", "--rate", "16000"], "1 channels of 16 bits at 1 Hz"),
    "a sound for integers": (["--input", "{}/s.wav"], "takes no samples; expected floats"),
    "a rate of none": (["--input", "{}/s.wav", "--rate", "0"], "expected a number above 0"),
    "a text for numbers": (["--text", "a"], "--text needs one input of strings, or --vocab; the inputs are x: float32"),
    "a text in pieces for another input": (
        ["--text", "a", "--vocab", "{}/vocab.txt"],
        "needs an input named input_ids",
    ),
    "a vocabulary of labels": (["--text", "a", "--vocab", "{}/labels"], "[UNK], [CLS], [SEP], [PAD] is not in it"),
    "a vocabulary for nothing": (["--vocab", "{}/vocab.txt"], "--vocab needs a --text"),
}


def test_a_sound_for_features_is_refused(capsys: pytest.CaptureFixture[str], tmp_path: Path, copies: Wrote) -> None:
    path = sound(tmp_path / "s.wav", np.zeros(9), 2, 8000)
    code, _, err = run(capsys, "run", copies(x=(FLOAT, ["N", 80, 800])), "--input", path)
    assert code == 2
    assert "takes more than one row of samples: 80 rows" in err


@pytest.mark.parametrize("name", REFUSED)
def test_bad_files_are_code_2_and_one_line(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, copies: Wrote, name: str
) -> None:
    given, message = REFUSED[name]
    np.savez(tmp_path / "two.npz", p=np.zeros(1), q=np.zeros(1))
    for bad in ("bad.npz", "bad.wav", "labels"):
        (tmp_path / bad).write_text("cat\ndog\n")
    sound(tmp_path / "s.wav", np.zeros(9), 2, 8000)
    (tmp_path / "law.wav").write_bytes(chunked(b"data", bytes(9), struct.pack("<HHIIHH", 17, 1, 8000, 8000, 1, 4)))
    (tmp_path / "nan.wav").write_bytes(
        chunked(b"data", np.array([1, np.nan], "<f4").tobytes(), struct.pack("<HHIIHH", 3, 1, 8000, 8000, 4, 32))
    )
    sound(tmp_path / "slow.wav", np.zeros(9), 2, 1)
    vocabulary(tmp_path / "vocab.txt")
    args = [g.replace("{}", str(tmp_path)) for g in given]
    code, _, err = run(capsys, "run", copies(x=(INT if "integers" in name else FLOAT, ["N"])), *args)
    assert code == 2
    assert message in err
    assert err.count("\n") == 1


def test_a_text_and_a_file_for_one_input_and_one_too_long(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, copies: Wrote
) -> None:
    np.save(tmp_path / "x.npy", np.array(["a"]))
    args = ["--text", "a", "--input", f"x={tmp_path}/x.npy"]
    assert "--text gives this input too" in run(capsys, "run", copies(x=(STRING, ["N"])), *args)[2]
    args = ["--vocab", vocabulary(tmp_path / "vocab.txt"), "--text", "the the"]
    err = run(capsys, "run", copies(input_ids=(INT, ["N", 3])), *args)[2]
    assert "the text has 4 pieces, and the model takes 3" in err


# --- layers, shells ---------------------------------------------------------------------------------------------------


def test_inspect_lists_layers(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    nodes = [helper.make_node("Relu", ["x"], ["r"]), helper.make_node("Shape", ["r"], ["y"])]
    given = helper.make_tensor_value_info("x", FLOAT, ["N", 3])
    made = helper.make_tensor_value_info("y", INT, [2])
    model = helper.make_model(
        helper.make_graph(nodes, "g", [given], [made]), opset_imports=[helper.make_opsetid("", 21)]
    )
    model.ir_version = 10
    (tmp_path / "m.onnx").write_bytes(model.SerializeToString())
    code, out, _ = run(capsys, "inspect", tmp_path / "m.onnx", "--device", "numpy", "--shapes")
    assert code == 0
    assert re.search(r"^layer +op +dtype +shape\nr +Relu +float32 +\(N, 3\)\ny +Shape +int64 +\(2,\)$", out, re.M)
    assert "layer" not in run(capsys, "inspect", tmp_path / "m.onnx", "--device", "numpy")[1]


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash here")
@pytest.mark.parametrize(
    ("typed", "wanted"),
    [
        (["in"], ["inspect"]),
        (["run", "m.onnx", "--device", "w"], ["wasm", "webgpu"]),
        (["run", "m.onnx", "--ra"], ["--rate"]),
        (["run", "m."], []),
        (["inspect", "--sh"], ["--shapes"]),
        (["completion", ""], ["bash", "zsh"]),
        (["-"], ["--help", "--version"]),
    ],
)
def test_bash_completes(capsys: pytest.CaptureFixture[str], typed: list[str], wanted: list[str]) -> None:
    code, text, _ = run(capsys, "completion", "bash")
    assert code == 0
    ask = '\nCOMP_WORDS=(singe "$@"); COMP_CWORD=$#; _singe; echo "${COMPREPLY[@]}"'
    done = subprocess.run(["bash", "-c", text + ask, "bash", *typed], capture_output=True, text=True, check=True)
    assert (done.stdout.split(), done.stderr) == (wanted, "")


def test_both_shells_know_every_command_and_option(capsys: pytest.CaptureFixture[str]) -> None:
    tables = []
    for shell in ("bash", "zsh"):
        text = run(capsys, "completion", shell)[1]
        tables.append(re.findall(r"^    .*\) found=\".*$", text, re.M))
    assert tables[0] == tables[1]
    words = {w for line in tables[0] for w in line.partition("found=")[2].strip('"; ').split()}
    assert {"run", "diff", "completion", "--text", "--vocab", "--rate", "--shapes", "onnxruntime"} <= words
