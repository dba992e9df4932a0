"""Assemble the site of the front page and the demos: `python demos/build.py [-o DIR] [--without-python] [--language FILE] [--tasks PAGE ...]`.

The site is static files with relative paths, for any host and any sub-folder; demos/README.md has the layout. Slow parts
(the models' bundles, the wheel, Pyodide) are kept in demos/.cache under a hash of their sources, so that a second build
only copies files. Python in the page and the language model are optional: if their files cannot be fetched, the site is
built without them, and its pages say so.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import sys
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from kept import CACHE, HERE, ROOT, STATIC, BuildError, Say, files_under, keep, module
from page_parts import BACK, OFFLINE, filled
from task_pages import TASK_PAGES, sample_address, with_tasks

import singe as sg
from singe import nn
from singe.tools.export.page.own_page import CHAT, own_page
from singe.tools.export.page.scripts import LANGUAGE, OF_TASKS, compact, readable_scripts
from singe.tools.export.tuning import export_tuning

FOLDERS: Final = {
    "front": "",
    "prompt": "",
    "mnist": "mnist/",
    "classify": "classify/",
    "train": "train/",
    "remote": "remote/",
    "chat": "chat/",
    "write": "write/",
    "tune": "tune/",
    "tasks": "tasks/",
    "shared": "shared/",
}
"""A folder of demos/ ↦ where its files go in the site: the front page, and its prompt, at the root."""
SERVED: Final = frozenset((".html", ".css", ".js", ".json", ".jpg", ".jpeg", ".png", ".webp", ".svg", ".txt"))
"""The files of such a folder that are served: not its Python, not its README."""
DOCUMENTS: Final = {
    "readme.txt": ROOT / "README.md",
    "format.txt": STATIC / "README.md",
    "demos.txt": HERE / "README.md",
    "types.txt": STATIC / "singe.d.ts",
}
"""Copies for reading: any host shows .txt as text."""
SIDE: Final = 512
PRODUCTS: Final = 4
"""How many matrix products the benchmark does in a row, so that copies matter little."""
WORKER: Final = "service-worker.js"
PYTHON: Final = (
    HERE / "prompt" / "python" / "prompt.py",
    HERE / "train" / "python" / "in_page.py",
    HERE / "train" / "model.py",
)
"""The Python of the prompt and of the training page; it lies beside Pyodide in the site."""
PLACE: Final = "const SITE = { files: {}, first: [], pages: {} };"
"""The line of the service worker that the build fills in, once all other files are known."""
TO_DOCS: Final = re.compile(r'^.*href="(\.\./)?docs/index\.html".*\n', re.M)
"""The lines of a page that are left out where the documentation is."""
RUNNERS_OWN: Final = re.compile(
    r"(weights-[\w-]+-\d+\.bin|kernels-\w+\.(wasm|json)|(program-\w+|tokenizer)\.json|adapter\.bin)"
)
"""Files that the runner caches itself, by their hashes."""
LANGUAGE_MODEL: Final = "chat/model/"
"""The bundle of the pages that talk and write."""
LANGUAGE_PAGES: Final = ("chat/index.html", "write/index.html")
TUNED_MODEL: Final = "tune/model/"
"""The bundles of the page that teaches the model: `read`, whose scripts it uses, and `step`."""
TUNING_PAGE: Final = "tune/index.html"
TUNED_TOKENS: Final = 64
"""Tokens in a step: a few seconds on one thread."""
MISSING: Final = "chat/missing.html"
"""What stands in their place if there is no language model."""
OPENED_LATER: Final = {
    LANGUAGE_MODEL: LANGUAGE_PAGES,
    TUNED_MODEL: (TUNING_PAGE,),
    **{f"{page}/": (f"{page}/index.html",) for page in TASK_PAGES},
}
"""A bundle ↦ its pages. What they need is fetched when one of them is opened."""
TUNED_CONTEXT: Final = 512
CONTEXT: Final = 2048
"""How many tokens of a conversation the language model keeps: 94 MB of memory with SmolLM2."""


@dataclass(frozen=True)
class Demo:
    """A model of the site: where its bundle goes, how it is made, the dtype of its weights, options of the export."""

    folder: str
    make: Callable[[Path], sg.Model]
    dtype: str = "float32"
    options: Callable[[sg.Model], Mapping[str, Any]] = lambda model: {}
    record: str | None = None


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Assemble the site of the front page and the demos.")
    parser.add_argument("-o", "--output", type=Path, default=HERE / "site", metavar="DIR", help="default: demos/site")
    parser.add_argument("--without-python", action="store_true", help="leave out Pyodide, NumPy and the wheel")
    language = parser.add_mutually_exclusive_group()
    language.add_argument(
        "--language", type=Path, metavar="FILE", help="the language model, a GGUF; default: SmolLM2-135M"
    )
    language.add_argument("--without-language", action="store_true", help="leave out the language model")
    parser.add_argument(
        "--tasks", nargs="*", choices=tuple(TASK_PAGES), default=tuple(TASK_PAGES), metavar="PAGE",
        help=f"the pages of tasks that get their models, of {', '.join(TASK_PAGES)}; default: all",
    )  # fmt: skip
    given = parser.parse_args(arguments)
    try:
        model = None if given.without_language else given.language or language_model()
        build(given.output, with_python=not given.without_python, language=model, tasks=given.tasks)
    except (BuildError, sg.SingeError, weights().Unavailable, OSError) as e:
        print(f"error: {e}", file=sys.stderr)
        return 1
    return 0


def build(
    out: Path, with_python: bool = True, say: Say = print, language: Path | None = None, tasks: Collection[str] = tuple(TASK_PAGES)
) -> None:  # fmt: skip
    """Build the site in a folder; leftovers of an earlier build are removed. language: the GGUF of its language model, if it has one.
    tasks: the pages of TASK_PAGES that get their models; others say how to get them."""
    begun = time.perf_counter()
    if out.exists() and not (out.is_dir() and (not any(out.iterdir()) or (out / WORKER).is_file())):
        raise BuildError(f"{out}: holds something, and no site (no {WORKER}); give another folder with -o")
    out.mkdir(parents=True, exist_ok=True)
    files = {**page_files(), **document_files(), **documentation_files(say)}
    made = source_stamp()
    for demo in demos():
        files |= model_files(demo, made, say)
    files |= training_files(made, say)
    files |= python_files(made, say) if with_python else {}
    files = with_language(files, language, made, say)
    files = with_tasks(files, made, say, tasks)
    write_site(files, out)
    total = sum(path.stat().st_size for path in files.values())
    say(f"{out}: {len(files) + 1} files, {total / 1e6:.1f} MB, {time.perf_counter() - begun:.1f} s")


# --- what the site is made of: a path in the site ↦ the file that goes there -------------------------------------------


def page_files() -> dict[str, Path]:
    """The runner, in the site's root, and the pages."""
    apart = (LANGUAGE, OF_TASKS)  # these bundles have their own
    scripts = {name for name in readable_scripts() if not name.startswith(apart)}
    found = {p.name: p for p in files_under(STATIC) if p.name in scripts or p.name == "singe.d.ts"}
    for name, place in FOLDERS.items():
        folder = HERE / name
        found |= {place + p.relative_to(folder).as_posix(): p for p in files_under(folder) if p.suffix in SERVED}
    del found[WORKER]  # write_site writes it
    return found


def document_files() -> dict[str, Path]:
    return {f"docs/{name}": path for name, path in DOCUMENTS.items()}


def documentation_files(say: Say) -> dict[str, Path]:
    """The documentation's site; nothing if what makes it is not installed."""
    folder = CACHE / "site" / "docs"
    try:
        docs = module(ROOT / "docs", "docsite")
        docs.build(folder, say=lambda text: None, python="../")
    except ModuleNotFoundError as e:
        say(f"docs: left out; for them, pip install 'singe[docs]'. {e}")
        return {}
    return {f"docs/{p.relative_to(folder).as_posix()}": p for p in files_under(folder)}


def weights() -> ModuleType:
    return module(HERE, "weights")


def demos() -> list[Demo]:
    return [
        Demo("mnist/model", lambda cache: weights().mnist(), record="mnist.singe"),
        Demo("classify/model", weights().classify, "float16", classify_options, record="classify.singe"),
        Demo(
            "matmul",
            lambda cache: sg.Model.of(Products(), {"a": (SIDE, SIDE), "b": (SIDE, SIDE)}, "numpy", name="matmul"),
        ),
        Demo(
            "peaks",
            lambda cache: sg.Model.of(Peaks(rng=0), {"x": ("N", SIDE, SIDE), "v": ("M",)}, "numpy", name="peaks"),
            "int8",
        ),
    ]


def classify_options(model: sg.Model) -> Mapping[str, Any]:
    facts = weights().model_module("classify")
    picture = sg.PictureSpec((facts.SIDE, facts.SIDE), crop=facts.CROP, mean=(facts.MEAN,), std=(facts.STD,))
    return {"picture": picture, "labels": "imagenet"}


class Products(nn.Module):
    """a · b · … · b, for the benchmark."""

    def forward(self, a: sg.Tensor, b: sg.Tensor) -> dict[str, sg.Tensor]:
        for _ in range(PRODUCTS):
            a = a @ b
        return {"y": a}


class Peaks(nn.Module):
    """A matrix product with a weight, and an elementwise copy: they measure a device's peaks, at any size."""

    product: nn.Linear

    def __init__(self, *, rng: int) -> None:
        self.product = nn.Linear(SIDE, SIDE, bias=False, rng=rng)

    def forward(self, x: sg.Tensor, v: sg.Tensor) -> dict[str, sg.Tensor]:
        return {"y": self.product(x), "z": -v}


def model_files(demo: Demo, stamp: str, say: Say) -> dict[str, Path]:
    """A model's bundle, and its record for Python."""
    begun = time.perf_counter()

    def make(folder: Path) -> None:
        say(f"{demo.folder}: making the bundle …")
        model = demo.make(CACHE)
        if demo.record is not None:
            record = folder / demo.record
            sg.save(model, record, dtype=None if demo.dtype == "float32" else demo.dtype)
            # The pages run one picture at a time, and a bundle for one has fewer and smaller kernels.
            shapes = {x.name: (1, *x.shape[1:]) for x in model.inputs if x.shape is not None}
            model = sg.load(record, "numpy", shapes, model.name)
        sg.export(model, folder / "bundle", dtype=demo.dtype, **demo.options(model))

    kept = keep(f"{demo.folder.split('/', maxsplit=1)[0]}-{stamp}", make)
    say(f"{demo.folder}: {time.perf_counter() - begun:.1f} s")
    files = {f"{demo.folder}/{p.name}": p for p in files_under(kept / "bundle")}
    return files if demo.record is None else files | {f"python/{demo.record}": kept / demo.record}


def training_files(stamp: str, say: Say) -> dict[str, Path]:
    """The training page's images, and for each network that is trained in a page the bundles of a step and of the network
    itself: those of the training page, and the digit page's, which is taught a hand."""
    begun = time.perf_counter()

    def make(folder: Path) -> None:
        say("train/model: making the bundles …")
        training = weights().model_module("train")
        steps = {f"train/model/{name}": training.step(name) for name in training.NETWORKS}
        steps["mnist/teach"] = training.teaching(weights().digits())
        for place, step in steps.items():
            sg.export(step.as_model(*training.batch()), folder / place / "step")
            sg.export(training.reader(step.model, place.rsplit("/", 1)[-1]), folder / place / "read")

    kept = keep(f"training-{stamp}", make)
    files = {p.relative_to(kept).as_posix(): p for p in files_under(kept)}
    data = weights().model_module("train", "data")
    files["train/digits.bin"] = images_file(data, say)
    files["mnist/digits.bin"] = data.SMALL
    say(f"train: {time.perf_counter() - begun:.1f} s")
    return files


def images_file(data: ModuleType, say: Say) -> Path:
    """MNIST for the training page, as data.py packs it; a committed part of it if it cannot be fetched."""

    def make(folder: Path) -> None:
        (folder / "digits.bin").write_bytes(data.digits(CACHE / "mnist"))

    try:
        return keep(f"images-{data.stamp()}", make) / "digits.bin"
    except sg.SingeError as e:
        say(f"train: MNIST cannot be had, the page has a small part of it. {e}")
        return data.SMALL


def language_model(say: Say = print) -> Path | None:
    """The file of SmolLM2; None if it cannot be fetched."""
    try:
        return sg.zoo.fetch("zoo:smollm2")
    except sg.SingeError as e:
        say(f"chat: left out, the pages will say so. {e}")
        return None


def with_language(files: Mapping[str, Path], language: Path | None, stamp: str, say: Say) -> dict[str, Path]:
    """The site's files with a language model and its page; without one, these pages say how to get it."""
    others = {name: path for name, path in files.items() if name != MISSING}
    if language is None:
        return others | dict.fromkeys((*LANGUAGE_PAGES, TUNING_PAGE), files[MISSING])
    begun = time.perf_counter()
    if not language.is_file():
        raise BuildError(f"{language}: no such file, expected a GGUF")

    def make(folder: Path) -> None:
        say(f"chat: making the bundle of {language.name} …")
        sg.export(sg.language.load(language, "numpy", context=CONTEXT), folder / "model")
        (folder / CHAT).write_bytes(own_page(CHAT, OFFLINE, folder="./model/", site=BACK))

    def make_tuned(folder: Path) -> None:
        say(f"tune: making the bundles of {language.name} …")
        export_tuning(language, folder, length=TUNED_TOKENS, context=TUNED_CONTEXT)

    with language.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()[:16]
    name = f"{re.sub(r'[^A-Za-z0-9._-]', '_', language.stem)}-{stamp}{digest}"
    kept = keep(f"chat-{name}", make)
    say(f"chat: {time.perf_counter() - begun:.1f} s")
    begun = time.perf_counter()
    tuned = keep(f"tune-{name}", make_tuned)
    say(f"tune: {time.perf_counter() - begun:.1f} s")
    model = {f"{LANGUAGE_MODEL}{p.name}": p for p in files_under(kept / "model")}
    step = [p for p in files_under(tuned / "step") if not re.search(r"\.(js|map|ts|html)$", p.name)]
    learning = {f"{TUNED_MODEL}{p.relative_to(tuned).as_posix()}": p for p in (*files_under(tuned / "read"), *step)}
    return others | {LANGUAGE_PAGES[0]: kept / CHAT} | model | learning


def python_files(stamp: str, say: Say) -> dict[str, Path]:
    """Pyodide's folder; nothing if its files cannot be fetched."""
    setup = module(ROOT / "wasm" / "pyodide", "setup")
    begun = time.perf_counter()

    def make(folder: Path) -> None:
        say("python: assembling Pyodide, NumPy and Singe's wheel …")
        setup.assemble(folder, say=lambda text: say(f"python: {text}"))

    try:
        kept = keep(f"python-{stamp}", make)
    except (setup.SetupError, OSError, *setup.FAILURES) as e:
        say(f"python: left out, the pages will say so. {e}")
        return {}
    say(f"python: {time.perf_counter() - begun:.1f} s")
    return {f"python/{p.name}": p for p in (*files_under(kept), *PYTHON)}


# --- what takes time is kept -------------------------------------------------------------------------------------------


def source_stamp() -> str:
    """A hash of all sources of models, wheel and bundles."""
    folders = (ROOT / "core", ROOT / "gpu", ROOT / "webgpu", ROOT / "wasm", STATIC, HERE / "trained")
    scripts = (p for place in (HERE, *(HERE / name for name in FOLDERS)) for p in sorted(place.glob("*.py")))
    sources = [*(p for f in folders for p in files_under(f)), *scripts, ROOT / "pyproject.toml"]
    digest = hashlib.sha256()
    for path in sources:
        digest.update(f"{path.relative_to(ROOT)}\0{path.stat().st_size}\0".encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


# --- the folder --------------------------------------------------------------------------------------------------------


def write_site(files: Mapping[str, Path], out: Path) -> None:
    """Copy what changed, the runner's scripts without comments, pages with what all have in common and without links to documentation
    that is not there; then write the service worker, which names all files."""
    hashes, scripts, has_docs = {}, readable_scripts(), "docs/index.html" in files
    for name, source in sorted(files.items()):
        data = source.read_bytes()
        if STATIC in source.parents and source.name in scripts:
            data = "".join(f"{line}\n" for line, _ in compact(scripts[source.name].decode())).encode()
        elif source.suffix == ".html":
            text = filled(name, data.decode())
            data = (text if has_docs else TO_DOCS.sub("", text)).encode()
        hashes[name] = hashlib.sha256(data).hexdigest()
        put(out / name, data)
    put(out / WORKER, service_worker(hashes).encode())
    wanted = {out / name for name in files} | {out / WORKER}
    for path in sorted(out.rglob("*"), reverse=True):
        if path.is_dir() and not any(path.iterdir()):
            path.rmdir()
        elif not path.is_dir() and path not in wanted:
            path.unlink()


def put(path: Path, data: bytes) -> None:
    """Write a file. If it has these bytes already its time stays, by which servers know that it is unchanged."""
    if path.is_file() and path.read_bytes() == data:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


def service_worker(hashes: Mapping[str, str]) -> str:
    """The service worker with its list of files. At the first visit it fetches the pages' files and the manifests, but those of
    OPENED_LATER only when a page of them is opened."""
    listed = {name: digest for name, digest in hashes.items() if not RUNNERS_OWN.fullmatch(name.rsplit("/", 1)[-1])}
    apart = tuple(f"{demo.rsplit('/', 1)[0]}/" for demo in hashes if demo.endswith("/model.json"))
    later = ("python/", "docs/", "singe.d.ts", "classify/samples/", "train/digits.bin", "mnist/digits.bin", *apart)
    small = [name for name in listed if not name.startswith(later) or name.endswith(("/model.json", "/labels.json"))]
    of_tasks = ("tasks/", *(f"{page}/" for page in TASK_PAGES))
    first = [name for name in small if not name.startswith((*OPENED_LATER, *of_tasks))]
    pages: dict[str, list[str]] = {}
    for bundle, opened in OPENED_LATER.items():
        needed = [name for name in listed if name.startswith(bundle) and name.endswith((".js", "/model.json"))]
        for page in opened:
            samples = map(sample_address, TASK_PAGES[bundle[:-1]].samples) if bundle[:-1] in TASK_PAGES else ()
            pages[page] = [*needed, *(name for name in (page, *samples) if name in listed and name not in first)]
    site = {"files": listed, "first": first, "pages": pages}
    text = (HERE / "front" / WORKER).read_text("utf-8")
    if text.count(PLACE) != 1:
        raise BuildError(f"demos/front/{WORKER}: expected the line {PLACE} once")
    return text.replace(PLACE, f"const SITE = {json.dumps(site, separators=(',', ':'))};")


if __name__ == "__main__":
    sys.exit(main())
