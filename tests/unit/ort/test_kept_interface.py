"""What a session says of its model is kept: it is the same in the next process, which does not decode the file, and of this file only."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from calls import (
    ADD,
    BRANCHES,
    CLASSES,
    DEFAULT,
    FEED,
    MAKES_SEQUENCE,
    ONE_NAME,
    OPTIONAL,
    RANKLESS,
    SEQUENCE,
    SIZES,
    TWO,
    UNSAID,
    X,
    Y,
)

import singe as sg
from singe import ort
from singe.files.kept import keep_entry
from singe.ort.model import model_file

DECODED = {"SEQUENCE": SEQUENCE, "OPTIONAL": OPTIONAL, "RANKLESS": RANKLESS}
"""Models that are decoded in each process: that of open ranks until a run gives them, as others are compiled anew."""
KEPT = {
    "ADD": ADD, "TWO": TWO, "SIZES": SIZES, "ONE_NAME": ONE_NAME, "UNSAID": UNSAID, "DEFAULT": DEFAULT, "BRANCHES": BRANCHES,
    "CLASSES": CLASSES,
}  # fmt: skip
Count = Callable[[], int]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where entries are."""
    monkeypatch.setenv("SINGE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("SINGE_DEVICE", "numpy")
    return tmp_path / "cache" / "compiled"


@pytest.fixture
def decoded(monkeypatch: pytest.MonkeyPatch) -> Count:
    """How often a file was decoded."""
    original, seen = model_file.reading.decoded, list[str]()

    def counting(data: memoryview, name: str, *others: Any) -> Any:
        seen.append(name)
        return original(data, name, *others)

    monkeypatch.setattr(model_file.reading, "decoded", counting)
    return lambda: len(seen)


def said(session: ort.InferenceSession) -> Any:
    ports = (session.get_inputs(), session.get_outputs(), session.get_overridable_initializers())
    return [[(a.name, a.type, a.shape) for a in some] for some in ports], session.get_modelmeta()


def described(data: bytes) -> bytes:
    """The model with all that a file says of itself."""
    model = onnx.load_from_string(data)
    model.producer_name, model.domain, model.doc_string, model.model_version = "maker", "org.example", "a\nb é", 7
    model.graph.doc_string = "graph"
    onnx.helper.set_model_props(model, {"names": "{0: 'cat'}", "": "empty"})
    return model.SerializeToString()


@pytest.mark.parametrize("way", ["file", "bytes"])
@pytest.mark.parametrize("name", [*KEPT, *DECODED])
def test_the_next_session_says_the_same(
    name: str, way: str, tmp_path: Path, decoded: Count, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = described((KEPT | DECODED)[name])
    (tmp_path / "m.onnx").write_bytes(data)
    given = tmp_path / "m.onnx" if way == "file" else data
    first = said(ort.InferenceSession(given))
    assert decoded() == 1
    second = said(ort.InferenceSession(given))
    assert decoded() == (1 if name in KEPT else 2)
    monkeypatch.setenv("SINGE_CACHE", "off")
    third = said(ort.InferenceSession(given))
    assert decoded() == (2 if name in KEPT else 3)
    assert first == second == third
    assert first[1].custom_metadata_map == {"names": "{0: 'cat'}", "": "empty"}


@pytest.mark.parametrize("name", ["wasm", "numpy"])
def test_the_next_session_gives_a_list_too(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SINGE_DEVICE", name)
    x = np.arange(3, dtype=np.float32)
    for _ in range(2):
        try:
            (found,) = ort.InferenceSession(MAKES_SEQUENCE).run(None, {"x": x})
        except sg.DeviceError as e:
            pytest.skip(f"no device {name}: {e}")
        assert [part.tolist() for part in found] == [x.tolist()] * 2


def test_sizes_of_the_options_are_kept_apart(decoded: Count) -> None:
    def inputs(**sizes: int) -> list[list[Any]]:
        options = ort.SessionOptions()
        for name, size in sizes.items():
            options.add_free_dimension_override_by_name(name, size)
        return [a.shape for a in ort.InferenceSession(SIZES, options).get_inputs()]

    for count in (3, 3):
        assert inputs(A=4, B=4) == [[4], [4]]
        assert inputs(A=5, B=5) == [[5], [5]]
        assert inputs() == [["A"], ["B"]]
        assert decoded() == count


def test_a_changed_file_is_another(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    for data, names in ((ADD, ["x", "y"]), (DEFAULT, ["x"]), (ADD, ["x", "y"])):
        path.write_bytes(data)
        assert [a.name for a in ort.InferenceSession(path).get_inputs()] == names


@pytest.mark.parametrize("change", ["other bytes", "cut"])
def test_a_file_that_changes_before_it_is_decoded_is_refused(change: str, tmp_path: Path, folder: Path) -> None:
    """What is kept is of the file as it was."""
    path = tmp_path / "m.onnx"
    path.write_bytes(DEFAULT)
    ort.InferenceSession(path)
    session = ort.InferenceSession(path)
    assert [a.name for a in session.get_inputs()] == ["x"]
    with path.open("r+b") as file:
        if change == "cut":
            file.truncate(0)
        else:
            file.write(b"\x08\x05")
    with pytest.raises(sg.SingeError, match=r"the file has changed since it was loaded; load it again"):
        session.run(None, {"x": X, "w": Y})


def test_external_data_decides(tmp_path: Path, decoded: Count) -> None:
    """Of a file that names others: these may change, or go."""
    path = tmp_path / "m.onnx"

    def save(weights: list[float]) -> None:
        model = onnx.load_from_string(DEFAULT)
        del model.graph.input[1]
        for weight in model.graph.initializer:
            weight.raw_data = np.array(weights, np.float32).tobytes()
            weight.ClearField("float_data")
        onnx.save(model, str(path), save_as_external_data=True, location="w.bin", size_threshold=0)

    def answer() -> list[float]:
        return ort.InferenceSession(path).run(None, {"x": X[:1] * 0})[0][0].tolist()

    save([1, 2, 3])
    assert [answer(), answer(), decoded()] == [[1, 2, 3], [1, 2, 3], 1]
    save([4, 5, 6])
    assert answer() == [4, 5, 6]
    (tmp_path / "w.bin").unlink()
    with pytest.raises(sg.SingeError, match=r"w\.bin"):
        answer()


@pytest.mark.parametrize("harm", ["bytes", "cut", "other data", "wrong shape", "writable by others"])
def test_a_damaged_entry_is_made_anew(harm: str, folder: Path, decoded: Count) -> None:
    expected = said(ort.InferenceSession(ADD))
    (entry,) = folder.glob("interface-*")
    whole, key = entry.read_bytes(), entry.name.partition("-")[2]
    if harm == "bytes":
        entry.write_bytes(whole[:-3] + b"\0" + whole[-2:])
    elif harm == "cut":
        entry.write_bytes(whole[:-3])
    elif harm == "writable by others":
        entry.chmod(0o666)
    else:
        told: Any = json.loads(whole[256:]) | {"inputs": [["x", ["tensor", "float32", [{}], None]]]}
        keep_entry("interface", key, "x", [json.dumps(told if harm == "wrong shape" else [1]).encode()])
    assert said(ort.InferenceSession(ADD)) == expected
    assert decoded() == 2
    if harm != "writable by others":
        assert entry.read_bytes() == whole
    assert np.array_equal(ort.InferenceSession(ADD).run(None, FEED)[0], X + 1)


def test_nothing_is_kept_of_a_model_that_options_change(folder: Path, decoded: Count) -> None:
    """Their weights are not the file's."""
    for k in (1, 2):
        options = ort.SessionOptions()
        options.add_initializer("w", ort.OrtValue.ortvalue_from_numpy(Y * k))
        assert np.array_equal(ort.InferenceSession(DEFAULT, options).run(None, {"x": X})[0], X + k)
        assert decoded() == k
    assert not [*folder.glob("interface-*")]
