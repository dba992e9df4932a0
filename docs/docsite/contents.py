"""What the site holds: its parts, and the pages of each, in order."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final


@dataclass(frozen=True)
class Page:
    """A page: its path in the site without .html, its title in lists, and its source.

    source: a Markdown file, from the repository's root; or "made:NAME", the text that made.py has for that name.
    """

    path: str
    title: str
    source: str


@dataclass(frozen=True)
class Part:
    """A group of pages under one heading, with a line that says what is in it."""

    title: str
    text: str
    pages: tuple[Page, ...] = field(default=())


def _own(folder: str, *pages: tuple[str, str]) -> tuple[Page, ...]:
    """Pages whose files lie in a folder of docs/."""
    return tuple(Page(f"{folder}/{name}", title, f"docs/{folder}/{name}.md") for name, title in pages)


def _rooms(*rooms: str) -> tuple[Page, ...]:
    """The READMEs of the rooms of core/singe."""
    return tuple(Page(f"rooms/{room}", f"The room {room}", f"core/singe/{room}/README.md") for room in rooms)


def _modules(*names: str) -> tuple[Page, ...]:
    return tuple(Page(f"python/{name}", name, f"made:{name}") for name in names)


PARTS: Final = (
    Part(
        "Start",
        "Five minutes, by one of these doors.",
        _own("start", ("page", "In a page"), ("python", "In Python"), ("gpu", "On a GPU"), ("tour", "A tour, here")),
    ),
    Part(
        "Guides",
        "One task each.",
        (
            *_own(
                "guides",
                ("export", "Export and embed"),
                ("deploy", "Deploy"),
                ("bundlers", "Bundlers"),
                ("frameworks", "React, Vue, Svelte"),
                ("onnxruntime-web", "From onnxruntime-web"),
            ),
            *_own(
                "guides",
                ("devices", "Devices"),
                ("remote", "A device elsewhere"),
                ("host", "Serve models"),
                ("tasks", "Tasks"),
                ("pictures", "Pictures"),
                ("texts", "Texts"),
                ("sounds", "Sounds and texts"),
                ("speech", "Speech"),
                ("language", "Language models"),
                ("tokenizers", "Tokenizers and chat templates"),
                ("tflite", "TensorFlow Lite models"),
                ("quantise", "Quantise"),
                ("profile", "Profile"),
                ("train", "Train"),
            ),
            *_own(
                "guides",
                ("onnxruntime", "From onnxruntime"),
                ("coming", "From other frameworks"),
                ("write", "Write a model"),
                ("extend", "Extend"),
            ),
            Page("guides/tensors", "Tensors", "docs/tensors.md"),
            Page("guides/own-kernels", "Own ops and kernels", "docs/own-kernels.md"),
            Page("guides/cluster", "Several machines", "docs/cluster.md"),
            Page("guides/scaling", "How training scales", "docs/scaling.md"),
            Page("guides/pyodide", "Python in a page", "wasm/pyodide/README.md"),
        ),
    ),
    Part(
        "Book",
        "How Singe works.",
        (
            *_own("book", ("way", "A model on its way"), ("rows", "Rows"), ("tracing", "Tensors and graphs")),
            *_own("book", ("compiler", "The compiler"), ("memory", "Memory"), ("numpy", "The NumPy backend")),
            *_own("book", ("wgsl", "The WGSL generator"), ("wasm", "The WebAssembly generator")),
            *_own("book", ("runner", "The JavaScript runner"), ("training", "Training")),
            Page("book/glossary", "Glossary", "docs/glossary.md"),
            *_rooms("ops", "ir", "graph", "compiler", "program", "runtime", "tensors", "nn", "model"),
            *_rooms("optim", "data", "metrics", "train", "weights", "onnx", "tflite", "host", "ort", "tools"),
            Page("book/format", "Programs and bundles", "static/README.md"),
            Page("book/contributing", "Contributing", "CONTRIBUTING.md"),
        ),
    ),
    Part(
        "Reference",
        "Made from the code.",
        (
            *_modules("singe", "singe.Tensor", "singe.nn", "singe.optim", "singe.data", "singe.metrics", "singe.train"),
            *_modules(
                "singe.random",
                "singe.linalg",
                "singe.fft",
                "singe.array_api",
                "singe.cluster",
                "singe.host",
                "singe.extension",
            ),
            Page("reference/javascript", "JavaScript", "made:javascript"),
            Page("reference/commands", "Command line", "made:commands"),
            Page("reference/errors", "Errors", "made:errors"),
            Page("reference/ops", "Ops of ONNX", "docs/ops.md"),
            Page("reference/models", "Families of models", "docs/models.md"),
            Page("reference/readme", "README", "README.md"),
            Page("reference/changes", "Changes", "CHANGELOG.md"),
        ),
    ),
    Part(
        "Comparison",
        "Measured, with the commands.",
        (
            Page("comparison/peers", "Beside others", "docs/comparison.md"),
            Page("comparison/measurements", "Measurements", "docs/measurements/README.md"),
            *_own(
                "measurements",
                ("page-cpu", "Pages on the CPU"),
                ("page-gpu", "Pages on a GPU"),
                ("first-answer", "The first answer"),
                ("python", "Python"),
                ("training", "Training"),
            ),
            *_own(
                "measurements",
                ("wasm-kernels", "WebAssembly kernels"),
                ("gpu-kernels", "GPU kernels"),
                ("moving-data", "Ops that move data"),
                ("quantised", "Quantised models"),
                ("open-sizes", "Open sizes"),
                ("results", "Results"),
            ),
        ),
    ),
)


def pages() -> Iterator[Page]:
    for part in PARTS:
        yield from part.pages
