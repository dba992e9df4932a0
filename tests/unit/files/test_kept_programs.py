"""What is kept from one process to the next: it answers as what is compiled anew does, and is used only where it can be trusted."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import singe as sg
from singe.files import digest_of as whole_digest_of
from singe.files import kept
from singe.model.kept import KeptSource
from singe.tools.cli import main

X = np.arange(12, dtype=np.float32).reshape(3, 4)
W = np.linspace(-1, 1, 20, dtype=np.float32).reshape(4, 5)
DEVICES = ("numpy", "wasm", "webgpu")


@pytest.fixture(autouse=True)
def cache_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SINGE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture(params=DEVICES)
def device(request: pytest.FixtureRequest) -> sg.Device:
    try:
        return sg.device(request.param)
    except sg.DeviceError as e:
        pytest.skip(f"no {request.param} here: {e}")


def saved(path: Path, weights: np.ndarray = W, external: bool = False) -> Path:
    """A file of relu(x @ w), of an open batch."""
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["p"]), helper.make_node("Relu", ["p"], ["y"])],
        "product",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 4])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 5])],
        [numpy_helper.from_array(weights, "w")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    extra = {"save_as_external_data": True, "location": "w.bin", "size_threshold": 0} if external else {}
    onnx.save(model, path, **extra)
    return path


def reshaping(path: Path) -> Path:
    """A file whose shapes depend on the values of an input."""
    graph = helper.make_graph(
        [helper.make_node("Reshape", ["x", "shape"], ["y"])],
        "reshaping",
        [
            helper.make_tensor_value_info("x", TensorProto.FLOAT, [3, 4]),
            helper.make_tensor_value_info("shape", TensorProto.INT64, [2]),
        ],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["a", "b"])],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), path)
    return path


def was_kept(model: sg.Model) -> bool:
    """Whether a Model was made without its file being read."""
    return isinstance(model.source, KeptSource) and model.source._made is None


def answer(weights: np.ndarray = W) -> np.ndarray:
    return np.maximum(X @ weights, 0)


def test_the_second_load_neither_reads_nor_compiles(tmp_path: Path, device: sg.Device) -> None:
    path = saved(tmp_path / "m.onnx")
    first = sg.load(path, device)
    assert not was_kept(first)
    expected = first(X)
    second = sg.load(path, device)
    assert (second.inputs, second.outputs, repr(second)) == (first.inputs, first.outputs, repr(first))
    np.testing.assert_array_equal(second(X), expected)
    np.testing.assert_array_equal(second(X[:1]), first(X[:1]))
    assert was_kept(second)
    assert second.program().data.seconds == 0
    np.testing.assert_allclose(expected, answer(), rtol=1e-5)


def test_the_hash_of_a_file_is_kept_until_it_is_written_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, computed = tmp_path / "m.bin", list[Path]()

    def digest_of(path: Path) -> str:
        computed.append(path)
        return whole_digest_of(path)

    monkeypatch.setattr(kept, "digest_of", digest_of)
    path.write_bytes(b"one")
    assert kept.digest_as_kept(path) == kept.digest_as_kept(path) == whole_digest_of(path)
    assert len(computed) == 2  # it was written to just now, and may be again at the same time
    monkeypatch.setattr(kept, "SETTLED_NS", 0)
    assert kept.digest_as_kept(path) == kept.digest_as_kept(path) == whole_digest_of(path)
    assert len(computed) == 3
    before = path.stat()
    while path.stat().st_ctime_ns == before.st_ctime_ns:
        path.write_bytes(b"two")
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert kept.digest_as_kept(path) == whole_digest_of(path)
    assert len(computed) == 4


def test_bytes_and_records_are_kept_too(tmp_path: Path) -> None:
    path = saved(tmp_path / "m.onnx")
    record = tmp_path / "m.singe"
    sg.save(sg.load(path, "numpy"), record)
    for source in (path.read_bytes(), record):
        assert sg.load(source, "wasm")(X).shape == (3, 5)
        again = sg.load(source, "wasm")
        np.testing.assert_allclose(again(X), answer(), rtol=1e-5)
        assert was_kept(again)


def test_values_that_a_program_depends_on_are_part_of_its_key(tmp_path: Path) -> None:
    path = reshaping(tmp_path / "m.onnx")
    shapes = [(4, 3), (2, 6), (4, 3)]
    for again in (False, True):
        model = sg.load(path, "wasm")
        for shape in shapes:
            np.testing.assert_array_equal(model(X, np.array(shape)), X.reshape(shape))
        assert was_kept(model) == again


def test_states_go_on_from_kept_programs(tmp_path: Path) -> None:
    path = saved(tmp_path / "m.onnx", W[:, :4].copy())
    found = []
    for _ in range(2):
        model = sg.load(path, "wasm", input_shapes={"x": (3, 4)}, states={"x": "y"})
        assert [s.name for s in model.states] == ["x"]
        assert model() == {}
        found.append(was_kept(model))
    assert found == [False, True]


@pytest.mark.parametrize(
    "change",
    [
        lambda path: saved(path, W + 1),
        lambda path: path.with_name("w.bin").write_bytes((W + 1).tobytes()),
    ],
    ids=["the file", "the file beside it"],
)
def test_what_has_changed_is_compiled_anew(tmp_path: Path, change: Callable[[Path], object]) -> None:
    path = saved(tmp_path / "m.onnx", external=True)
    np.testing.assert_allclose(sg.load(path, "wasm")(X), answer(), rtol=1e-5)
    np.testing.assert_allclose(sg.load(path, "wasm")(X), answer(), rtol=1e-5)
    change(path)
    np.testing.assert_allclose(sg.load(path, "wasm")(X), answer(W + 1), rtol=1e-5)


def test_options_and_devices_have_programs_of_their_own(tmp_path: Path) -> None:
    path = saved(tmp_path / "m.onnx")
    given = [
        {"device": "wasm"},
        {"device": "numpy"},
        {"device": "wasm", "input_shapes": {"x": (3, 4)}},
        {"device": "wasm", "input_shapes": {"x": ("n<=7", 4)}},
        {"device": "wasm", "donate": ("x",)},
    ]
    for options in given:
        assert not was_kept(sg.load(path, **options))
    for options in given:
        assert was_kept(sg.load(path, **options))


def test_a_file_that_changes_after_it_was_loaded_is_refused_where_it_is_read(tmp_path: Path) -> None:
    path = saved(tmp_path / "m.onnx")
    sg.load(path, "wasm")(X)
    model = sg.load(path, "wasm")
    np.testing.assert_allclose(model(X), answer(), rtol=1e-5)
    saved(path, W + 1)
    with pytest.raises(sg.InputError, match=r"has changed since it was loaded; load it again"):
        model.graph()
    np.testing.assert_allclose(model(X), answer(), rtol=1e-5)


@pytest.mark.slow
def test_a_damaged_entry_is_made_anew(tmp_path: Path, cache_folder: Path) -> None:
    path = saved(tmp_path / "m.onnx")
    sg.load(path, "wasm")(X)
    kept.finish_keeping()
    names = sorted(p.name for p in (cache_folder / "compiled").iterdir())
    assert {name.partition("-")[0] for name in names} == {"model", "program", "wasm", "weights"}
    for name in names:
        entry = cache_folder / "compiled" / name
        whole = entry.read_bytes()
        for damaged in (b"", whole[:100], whole[:-1], whole[:-1] + bytes([whole[-1] ^ 1]), bytes(len(whole))):
            entry.write_bytes(damaged)
            np.testing.assert_allclose(sg.load(path, "wasm")(X), answer(), rtol=1e-5)
            kept.finish_keeping()
            assert entry.read_bytes() == whole


@pytest.mark.parametrize("what", ["the folder", "its files"])
@pytest.mark.parametrize("kind", ["mode", "owner"])
def test_what_others_could_have_written_is_not_used(
    what: str, kind: str, tmp_path: Path, cache_folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = saved(tmp_path / "m.onnx")
    sg.load(path, "wasm")(X)
    kept.finish_keeping()
    folder = cache_folder / "compiled"
    for place in [folder] if what == "the folder" else list(folder.iterdir()):
        if kind == "mode":
            place.chmod(place.stat().st_mode | 0o020)
        elif os.geteuid() != 0:
            pytest.skip("only root gives files to another user")
        else:
            os.chown(place, 12345, -1)
    with caplog.at_level(logging.WARNING, "singe"):
        model = sg.load(path, "wasm")
    assert not was_kept(model)
    np.testing.assert_allclose(model(X), answer(), rtol=1e-5)
    assert "is not yours alone" in caplog.text


def test_a_link_in_the_place_of_the_folder_is_not_followed(tmp_path: Path, cache_folder: Path) -> None:
    path = saved(tmp_path / "m.onnx")
    sg.load(path, "wasm")(X)
    kept.finish_keeping()
    (cache_folder / "compiled").rename(tmp_path / "elsewhere")
    (cache_folder / "compiled").symlink_to(tmp_path / "elsewhere")
    assert not was_kept(sg.load(path, "wasm"))


@pytest.mark.parametrize("off", ["off", "0", "False"])
def test_nothing_is_kept_where_it_is_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, off: str) -> None:
    monkeypatch.setenv("SINGE_CACHE", off)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    path = saved(tmp_path / "m.onnx")
    for _ in range(2):
        model = sg.load(path, "wasm")
        model(X)
        assert not was_kept(model)
    assert list(tmp_path.iterdir()) == [path]


def test_a_disk_that_is_nearly_full_and_a_folder_that_cannot_be_are_no_errors(
    tmp_path: Path, cache_folder: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(kept, "FREE_DISK_BYTES", 1 << 62)
    path = saved(tmp_path / "m.onnx")
    np.testing.assert_allclose(sg.load(path, "wasm")(X), answer(), rtol=1e-5)
    kept.finish_keeping()
    assert not list((cache_folder / "compiled").iterdir())
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setenv("SINGE_CACHE", str(tmp_path / "file"))
    with caplog.at_level(logging.WARNING, "singe"):
        np.testing.assert_allclose(sg.load(path, "wasm")(X), answer(), rtol=1e-5)
    assert not caplog.records


def test_the_least_recently_used_go_when_there_are_too_many(cache_folder: Path) -> None:
    for k in range(6):
        kept.keep_entry("program", kept.entry_key(k), f"entry {k}", [bytes(1000)])
        kept.finish_keeping()
        os.utime(cache_folder / "compiled" / f"program-{kept.entry_key(k)}", (k, k))
    assert kept.recall_entry("program", kept.entry_key(0)) is not None  # which uses it
    kept.trim(most=3)
    assert {e.text for e in kept.entries()} == {"entry 0", "entry 4", "entry 5"}
    kept.trim(most_bytes=1500)
    assert [e.text for e in kept.entries()] == ["entry 0"]


@pytest.mark.slow
def test_processes_share_what_is_kept(tmp_path: Path) -> None:
    """Several at once that compile the same, and one after them, which compiles nothing."""
    path = saved(tmp_path / "m.onnx")
    text = (
        "import sys, numpy as np, singe as sg\n"
        "m = sg.load(sys.argv[1], 'wasm')\n"
        "y = m(np.arange(12, dtype=np.float32).reshape(3, 4))\n"
        "print(m.program().data.seconds == 0, y.tobytes().hex())"
    )
    command = [sys.executable, "-c", text, str(path)]
    together = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    told = [p.communicate(timeout=120)[0].split() for p in together]
    last = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    assert last[0] == "True"
    assert {y for _, y in [*told, last]} == {last[1]}


def test_the_command_lists_and_clears(tmp_path: Path, cache_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cache"]) == 0
    assert f"0 B in {cache_folder / 'compiled'}" in capsys.readouterr().out
    sg.load(saved(tmp_path / "digits.onnx"), "wasm")(X)
    assert main(["cache"]) == 0
    told = capsys.readouterr().out
    assert "digits on wasm" in told
    assert "machine code" in told
    assert main(["cache", "--clear"]) == 0
    assert "removed" in capsys.readouterr().out
    kept.finish_keeping()
    assert not list((cache_folder / "compiled").iterdir())


def test_a_kept_program_is_saved_whole(tmp_path: Path) -> None:
    """What is kept is for the engine here; a file is for others, too."""
    path = saved(tmp_path / "net.onnx")
    written = [tmp_path / "first.singe", tmp_path / "next.singe"]
    for each in written:
        model = sg.load(path, device="wasm")
        model.specialise(n=3)
        model(X)
        model.program({"x": X.shape}).save(each)
    programs = [sg.Program.load(each, "wasm") for each in written]
    assert [*programs[0].data.modules] == [*programs[1].data.modules]
    assert "simd" in programs[1].data.modules
    assert programs[0].data.modules == programs[1].data.modules
    np.testing.assert_array_equal(programs[1](X), answer())
    model = sg.load(path, device="wasm")
    model.specialise(n=3)
    kept_program = model.program({"x": X.shape})
    assert len(kept_program.data.modules) == 1
    del model
    kept_program.save(tmp_path / "again.singe")
    assert "simd" in sg.Program.load(tmp_path / "again.singe", "wasm").data.modules
