"""Packages that are written for onnxruntime run in a page, unmodified: micropip takes their requirement as met by the wheel that stands
in for it, and their answers are those of onnxruntime here."""

from __future__ import annotations

import runpy
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest
from ort_packages import PROGRAMS, answers, site_of
from pyodides import IN_PAGE, Host, Tab, assembled, site

from singe import ort

pytestmark = [pytest.mark.slow, pytest.mark.full]
INSTALL: Final = """
import io, json, sys, zipfile
import js, micropip, numpy as np
from pyodide.http import pyfetch

async def prepared(name, shim):
    "Install the stand-in and a zip of packages, as a page does that has both beside it."
    await micropip.install(shim)
    response = await pyfetch(js.location.origin + f"/python/{name}.zip")
    sys.path.insert(0, f"/tmp/{name}")
    zipfile.ZipFile(io.BytesIO(await response.bytes())).extractall(f"/tmp/{name}")
    return list(map(str, micropip.list()))

async def program(name, device):
    import os, pathlib, tempfile
    import singe as sg
    await sg.device_async(device)
    os.environ["SINGE_DEVICE"] = device
    import programs
    found = programs.PROGRAMS[name](pathlib.Path(tempfile.mkdtemp()))
    import onnxruntime
    return {k: np.asarray(v).tolist() for k, v in found.items()} | {"module": onnxruntime.__name__}

async def requirement(wheel):
    "Install a package that requires onnxruntime."
    await micropip.install(wheel)
    import importlib.metadata
    return importlib.metadata.version("onnxruntime")
"""


def zipped(path: Path, folders: dict[Path, tuple[str, ...]]) -> None:
    """Write what these folders hold under these names to a zip, without compiled code; and the programs beside it."""
    with zipfile.ZipFile(path, "w") as out:
        out.write(PROGRAMS, "programs.py")
        out.writestr("ctc.onnx", runpy.run_path(str(PROGRAMS))["ctc"](28))
        for folder, names in folders.items():
            for name in names:
                for file in sorted((folder / name).rglob("*")):
                    if file.name == "METADATA" or file.suffix in (".py", ".onnx", ".json", ".npz", ".txt"):
                        out.write(file, file.relative_to(folder).as_posix())


def requiring(path: Path) -> None:
    """Write the wheel of a package without code that requires onnxruntime."""
    info = f"{path.name.rpartition('-py3')[0]}.dist-info"
    name, version = info.removesuffix(".dist-info").split("-")
    text = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\nRequires-Dist: onnxruntime>=1.20,<2\n"
    with zipfile.ZipFile(path, "w") as out:
        out.writestr(f"{info}/METADATA", text)
        out.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        out.writestr(f"{info}/RECORD", "")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return assembled(tmp_path_factory)


@pytest.fixture
def page(browser: Any, folder: Path) -> Iterator[tuple[Host, str]]:
    with site(folder) as address:
        yield Host("page", Tab(browser, address, IN_PAGE).ask, "", INSTALL), f"{address}python/"


def shim(folder: Path) -> str:
    (found,) = folder.glob("onnxruntime-*.whl")
    return found.name


def test_a_package_that_requires_onnxruntime_installs(page: tuple[Host, str], folder: Path) -> None:
    host, address = page
    requiring(folder / "needs_it-1.0-py3-none-any.whl")
    host.python(f"import micropip; await micropip.install('{address}{shim(folder)}')")
    assert host.call("requirement", f"{address}needs_it-1.0-py3-none-any.whl") == ort.__version__


@pytest.mark.timeout(900)
@pytest.mark.parametrize(("name", "device"), [("magika", "wasm"), ("magika", "webgpu"), ("onnx_asr", "wasm")])
def test_a_package_answers_in_a_page(
    page: tuple[Host, str], folder: Path, tmp_path: Path, name: str, device: str
) -> None:
    expected = answers(name, "onnxruntime", tmp_path)
    expected.pop("speech", None)  # of a file that the page has not
    import click  # noqa: PLC0415

    more = {Path(click.__file__).parents[1]: ("click",)} if name == "magika" else {}
    zipped(folder / f"{name}.zip", {site_of(name): (name, "dotenv", "onnx_asr-0.12.0.dist-info"), **more})
    host, address = page
    host.call("prepared", name, f"{address}{shim(folder)}")
    found = host.call("program", name, device)
    assert found.pop("module") == "singe.ort"
    assert found.keys() == expected.keys()
    for key, wanted in expected.items():
        if wanted.dtype.kind == "f":
            np.testing.assert_allclose(found[key], wanted, rtol=0, atol=5e-3, err_msg=key)
        else:
            assert found[key] == wanted.tolist(), key
