"""Kernel text is what gpu/README.md says: respelled, a C++ compiler accepts it, with its types and without conversions."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest
from gpu_kernels import casts, graph_of, templates
from respelling import respelled

from singe.compiler.compile import compile_graph
from singe.dtypes import float16, float32
from singe.errors import CompileError
from singe.graph import Graph
from singe_gpu.target import GpuTarget
from singe_webgpu.code.dialect import WGSL

GOLDEN: Final = Path(__file__).parents[2] / "golden"
PRELUDE: Final = Path(__file__).with_name("prelude.hpp")
FLAGS: Final = (
    "-std=c++20", "-fsyntax-only", "-Wall", "-Wextra", "-Wconversion", "-Wsign-conversion", "-Werror",
    "-Wno-unused",  # texts bind values that they may not need
)  # fmt: skip


@pytest.fixture(scope="module")
def compiler() -> str:
    found = shutil.which("g++")
    if found is None:
        pytest.skip("no g++ here, to compile kernel text as C++")
    return found


def errors(compiler: str, texts: Sequence[str]) -> str:
    """What the compiler says of C++ texts, which it reads as one file."""
    source = "\n".join((f'#include "{PRELUDE}"', *texts))
    command = [compiler, *FLAGS, "-x", "c++", "-"]
    return subprocess.run(command, input=source, capture_output=True, text=True, check=False).stderr


@pytest.mark.slow
def test_every_golden_text_is_respelled_to_cpp(compiler: str) -> None:
    paths = sorted(GOLDEN.glob("*.wgsl"))
    assert len(paths) > 15
    texts = [f'#line 1 "{p.name}"\n{respelled(p.read_text("utf-8"), p.stem)}' for p in paths]
    assert errors(compiler, texts) == ""


DAMAGED: Final = {
    "a name that nothing declares": ("b0[((", "b9[(("),
    "values of two types": ("(a0 + ", "(m + "),
    "an implicit conversion": ("i32(lane) %", "lane %"),
    "a port that is only read": ("b3[", "b2["),
    "an argument too few": ("load_a(m: i32, k: i32)", "load_a(m: i32)"),
    "a statement without an end": ("c0);", "c0)"),
}


@pytest.mark.slow
@pytest.mark.parametrize("damage", DAMAGED)
def test_what_is_no_kernel_text_is_refused(compiler: str, damage: str) -> None:
    before, after = DAMAGED[damage]
    text = (GOLDEN / "matmul_bias_relu.wgsl").read_text("utf-8")
    assert before in text
    assert errors(compiler, [respelled(text.replace(before, after, 1))]) != ""


# --- a dialect of which texts are C++ --------------------------------------------------------------------------------

CPP: Final = replace(
    WGSL, name="cpp", features=(), join=lambda parts: respelled(WGSL.join(parts)), bindings=lambda text: ()
)
"""C++ with WGSL's words and library, for devices without features."""


@pytest.mark.slow
@pytest.mark.parametrize("graphs", [casts, templates])
def test_a_dialect_prints_every_template_in_its_language(compiler: str, graphs: Callable[[], list[Graph]]) -> None:
    texts = {str(text) for graph in graphs() for text in compile_graph(graph, GpuTarget(CPP)).modules.values()}
    assert all(text.startswith("struct Shader") for text in texts)
    spaces = [f"namespace text{k} {{ {text} }}" for k, text in enumerate(sorted(texts))]
    assert errors(compiler, spaces) == ""


def test_a_dialect_without_features_has_one_text_of_a_kernel() -> None:
    graph = graph_of("matmul", ((64, 64), float16), ((64, 64), float16))
    counts = {d.name: len(compile_graph(graph, GpuTarget(d)).kernels[0].variants) for d in (WGSL, CPP)}
    assert counts["wgsl"] > 1 == counts["cpp"]


def test_a_word_without_a_spelling_for_a_type_is_refused_by_name() -> None:
    words = {**WGSL.words, "exp": {}}
    graph = graph_of("exp", ((64,), float32))
    with pytest.raises(CompileError, match=r"the dialect 'wgsl' has no spelling of the word 'exp' for float32"):
        compile_graph(graph, GpuTarget(replace(WGSL, words=words)))
