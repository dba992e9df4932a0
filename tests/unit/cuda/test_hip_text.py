"""HIP is CUDA's text with another prelude, and CUDA's device by other names of functions: what can be seen of both without a card."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import pytest
from gpu_kernels import KERNELS, templates

import singe as sg
from singe.compiler.compile import compile_graph
from singe.graph import Graph
from singe_cuda.code.text import ENTRY_POINT
from singe_cuda.device import gpu
from singe_cuda.device.driver import compile_text
from singe_cuda.device.hip import HIP_DRIVER, HIPRTC, OPTIONS, whole
from singe_cuda.target import HipTarget

HOST: Final = Path(__file__).with_name("hip_host.hpp")
FLAGS: Final = ("-std=c++17", "-fsyntax-only", "-Wall", "-Wextra", "-Werror", "-Wno-unused", "-Wno-unknown-pragmas")
CARDS: Final = ("gfx90a", "gfx1030")
"""A card of 64 invocations in a wave, and one of 32."""
FUNCTIONS: Final = frozenset((
    "DeviceGet", "DeviceGetDefaultMemPool", "DeviceGetName", "DevicePrimaryCtxRelease", "DevicePrimaryCtxRetain", "DeviceSynchronize",
    "DeviceTotalMem", "DriverGetVersion", "CtxSetCurrent", "EventCreateWithFlags", "EventDestroy", "EventElapsedTime", "EventRecord",
    "FreeAsync", "FuncSetAttribute", "GetDeviceCount", "HostRegister", "MallocAsync", "MemPoolSetAttribute", "MemPoolTrimTo",
    "MemcpyDtoDAsync", "MemcpyDtoHAsync", "MemcpyHtoDAsync", "ModuleGetFunction", "ModuleLaunchKernel", "ModuleLoadData",
    "ModuleUnload", "StreamCreateWithFlags", "StreamDestroy", "StreamSynchronize",
))  # fmt: skip
"""Functions of HIP that take what those of CUDA's driver take."""


def texts(graphs: Callable[[], Sequence[Graph]]) -> list[str]:
    return sorted({str(text) for graph in graphs() for text in compile_graph(graph, HipTarget()).modules.values()})


def golden() -> list[str]:
    found = [HipTarget().print(kernel, ()) for kernel in KERNELS.values()]
    return sorted({str(code) for one in found if one for part in (one, *one.others) for code in part.code})


def together(codes: Sequence[str]) -> str:
    return whole(
        "\n".join(
            f"namespace text{k} {{\n{code.replace(f'{ENTRY_POINT}(', f'{ENTRY_POINT}{k}(')}\n}}"
            for k, code in enumerate(codes)
        )
    )


def test_no_text_asks_for_what_only_nvidias_cards_have() -> None:
    codes = golden()
    assert any("subgroupMax" in code for code in codes)
    assert not any(word in code for code in codes for word in ("subgroup_matrix", "copyAhead", "dot4I8Packed"))


@pytest.mark.slow
@pytest.mark.parametrize("made", [golden, lambda: texts(templates)], ids=["golden", "templates"])
def test_every_text_is_cpp_with_the_functions_of_hip(made: Callable[[], list[str]]) -> None:
    compiler = shutil.which("g++")
    if compiler is None:
        pytest.skip("no g++ here, to compile HIP as C++")
    source = f'#include "{HOST}"\n{together(made())}'
    said = subprocess.run(
        [compiler, *FLAGS, "-x", "c++", "-"], input=source, capture_output=True, text=True, check=False
    )
    assert said.stderr == ""


@pytest.mark.slow
@pytest.mark.parametrize("card", CARDS)
@pytest.mark.parametrize("made", [golden, lambda: texts(templates)], ids=["golden", "templates"])
def test_hips_compiler_takes_every_text(made: Callable[[], list[str]], card: str) -> None:
    try:
        HIPRTC.function("Version")
    except sg.DeviceError as e:
        pytest.skip(str(e))
    _, said = compile_text(together(made()), "kernels.hip", (*OPTIONS, f"--offload-arch={card}"), True, HIPRTC)
    assert said == ""


def test_each_function_of_the_driver_that_the_device_calls_has_hips_name() -> None:
    source = Path(gpu.__file__).read_text("utf-8")
    called = set(re.findall(r'(?:call|number)\(\s*"(\w+)"', source)) - {"DeviceGetAttribute"}
    assert len(called) > 25
    assert {HIP_DRIVER.names.get(name, name) for name in called} <= FUNCTIONS


def test_without_rocm_the_device_says_what_to_do() -> None:
    try:
        found = sg.Hip(99)
    except sg.DeviceError as e:
        assert "no ROCm is here (libamdhip64)" in str(e) or "no device hip:99; there" in str(e)  # noqa: PT017
    else:
        pytest.fail(f"{found} opened")
