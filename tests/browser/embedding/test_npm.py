"""The npm package: it installs offline, has types, and runs a bundle in node and with Vite, as the
files of demos/embed show."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest
from bundles import ROOT, STATIC, assert_close, packed, small_case, small_model
from embedded import EMBED, Digits, answer_of
from packages import npm, npm_package
from pages import node
from sites import Console, served_plainly

import singe as sg
from singe.tools.export.page.scripts import EAGER, MAIN, bundler_scripts, joined_scripts

TYPESCRIPT: Final = (
    f"typescript@{json.loads((STATIC / 'package.json').read_text('utf-8'))['devDependencies']['typescript']}"
)


def test_the_version_and_the_licence_are_those_of_the_project() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    package = json.loads((STATIC / "package.json").read_text("utf-8"))
    assert package["version"] == project["version"]
    assert (STATIC / "LICENSE").read_text("utf-8") == (ROOT / "LICENSE").read_text("utf-8")
    assert f'VERSION = "{project["version"]}"' in (STATIC / "program" / "singe-format.js").read_text("utf-8")


def test_the_package_installs_and_runs(bundle: Callable[[str], Path], package: Path, tmp_path: Path) -> None:
    with tarfile.open(package) as archive:
        names = set(archive.getnames())
    wanted = {path.name for pattern in ("singe*.js", "singe*.d.ts") for path in STATIC.rglob(pattern)}
    wanted -= {"singe-python.js"}
    wanted |= {"package.json", "README.md", "LICENSE", *(f"dist/{name}" for name in joined_scripts())}
    assert names == {f"package/{name}" for name in wanted}
    (tmp_path / "package.json").write_text('{"name": "user", "private": true}')
    npm("install", "--offline", str(package), cwd=tmp_path)
    inputs, expected = small_case(6)
    body = "return answer(load, given.url, {}, given.cases);"
    for runner in ("singe", "singe/dist/singe.js"):
        done = node(body, runner=runner, cwd=tmp_path, url=bundle("small").as_uri(), cases=[packed(inputs)])
        assert_close(done["outputs"][0], expected)
    found = node("return typeof (await import('singe/picture')).pictureToTensor;", runner="singe", cwd=tmp_path)
    assert found == "function"


def test_what_every_page_needs_is_imported_at_once() -> None:
    """Those modules load only others on demand."""
    comments = re.compile(r"/\*\*.*?\*/", re.S)  # which import types
    scripts = {name: comments.sub("", data.decode()) for name, data in bundler_scripts().items()}
    reached: set[str] = set()
    waiting = {MAIN}
    while waiting:
        name = waiting.pop()
        reached.add(name)
        waiting |= {*re.findall(r' from "\./([\w-]+\.js)"', scripts[name])} - reached
        assert not EAGER.intersection(re.findall(r'import\("\./([\w-]+\.js)"\)', scripts[name]))
    assert reached == EAGER - {"singe-worker.js"}


def test_every_module_that_is_imported_is_there() -> None:
    """Including scripts that are imported on demand, since a bundler follows these imports."""
    scripts = bundler_scripts()
    for script, data in scripts.items():
        for name in re.findall(r'"([./]*/[\w/-]+\.js)"', data.decode("utf-8")):
            assert name.removeprefix("./") in scripts, f"{script} imports {name}"


# --- the files of demos/embed ------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def digits(tmp_path_factory: pytest.TempPathFactory) -> Digits:
    folder = tmp_path_factory.mktemp("digits")
    return Digits(small_model(folder / "small.onnx"), folder / "small")


@pytest.fixture
def page(browser: Any) -> Iterator[Any]:
    """A page with storage of its own."""
    context = browser.new_context()
    yield context.new_page()
    context.close()


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The archive of the package."""
    return npm_package(tmp_path_factory.mktemp("package"))


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory, package: Path, digits: Digits) -> Path:
    """The project of demos/embed/vite, installed; it also exposes `load` to the tests."""
    folder = tmp_path_factory.mktemp("vite")
    shutil.copytree(EMBED / "vite", folder, dirs_exist_ok=True)
    shutil.copy(package, folder)
    shutil.copytree(digits.folder, folder / "public" / "model")
    (folder / "public" / "favicon.ico").touch()
    npm("install", cwd=folder)
    with (folder / "main.js").open("a") as main:
        main.write("\nglobalThis.load = load;\n")
    return folder


@contextmanager
def vite(project: Path) -> Iterator[str]:
    """Vite's development server."""
    command = ["node", "node_modules/vite/bin/vite.js", "--host", "127.0.0.1", "--port", "0"]
    environment = {**os.environ, "NO_COLOR": "1"}
    with subprocess.Popen(command, cwd=project, env=environment, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            found = (re.search(r"http://127\.0\.0\.1:\d+/", line) for line in process.stdout)
            yield next(match[0] for match in found if match)
        finally:
            process.terminate()


RUN: Final = """async (options) => {
  const model = await load("/model/", options);
  const { logits } = await model.run({ input: new Float32Array(784).fill(0.5) });
  const { device, worker } = model;
  await model.dispose();
  return [device, worker, logits.data.join(" ")];
}"""


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["development", "production"])
def test_vite(page: Any, project: Path, digits: Digits, mode: str) -> None:
    console = Console(page)
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    if mode == "production":
        subprocess.run(["npx", "vite", "build"], cwd=project, capture_output=True, timeout=120, check=True)
    with vite(project) if mode == "development" else served_plainly(project / "dist") as address:
        page.goto(address)
        digits.assert_answer(answer_of(page))
        for device in ("wasm", "webgpu"):
            for worker in (True, False):
                *found, text = page.evaluate(RUN, {"device": device, "worker": worker})
                assert found == [device, worker]
                digits.assert_answer(text)
        if mode == "development":  # it answers unknown addresses with the app's page
            code, text = page.evaluate("load('/nowhere/').catch(({ code, message }) => [code, message])")
            assert code == "format"
            assert "/nowhere/model.json: the server answers with a page, HTML; put the folder" in text
    assert any(re.search(r"/singe-worker[-.]", url) for url in asked)
    assert console.complaints == []


TYPED: Final = """
import {{ load, type LanguageModel }} from "singe";
import {{ task, type TaskAnswers }} from "singe/tasks";
import type {{ Answer, Label }} from "./task/model.d.ts";
import type {{ BundleModel }} from "./model/model.d.ts";
const model = await load<BundleModel>("./model/");
const {{ {output} }} = await model.run({{ {input}: new Float32Array(784) }});
export const first: number = {output}.data[0] ?? 0;
export const session: Promise<number> = model.session().run({{ {input}: [1] }}).then((found) => found.{output}.data.length);
const ask = await task<Answer>("./task/");
for (const {{ label }} of await ask("a.png")) if (label === "{label}") console.log(label);
export const known: Label = "cat";
const [face] = await (await task<TaskAnswers["faces"]>("./faces/"))("a.png");
export const left: number | undefined = face?.box.xmin;
const llm = await load<LanguageModel>("./chat/");
for await (const part of llm.chat([{{ role: "user", content: "Hi" }}], {{ maxTokens: 9 }})) console.log(part.length);
"""
"""A script that uses the types of two bundles."""


@pytest.mark.slow
def test_types(package: Path, digits: Digits, tmp_path: Path) -> None:
    """typed.ts, and what uses a bundle's types, is right for TypeScript, and what is wrong is not."""
    net = sg.Model.of(lambda x: x.mean((2, 3)), {"images": (1, 3, 8, 8)})
    sg.export(sg.task("classify", net, labels=["cat", "dog", 'a "quoted" */ one']), tmp_path / "task")
    shutil.copytree(digits.folder, tmp_path / "model")
    (tmp_path / "package.json").write_text('{ "private": true, "type": "module" }')
    npm("install", str(package), TYPESCRIPT, cwd=tmp_path)
    good = (EMBED / "typed.ts").read_text()
    wrong = {
        "a device": ('"auto"', '"tpu"'),
        "a code": ('"device") return', '"devices") return'),
        "a progress": ("onProgress })", "onProgress: (n: number) => n })"),
        "an input": ("data: pixels", 'data: ["1"]'),
        "a shape": ("[1, 1, 28, 28]", '"28x28"'),
        "a rate": ("48000", '"48 kHz"'),
        "an option of a task": ("{ labels }", "{ names: labels }"),
        "an output": ("logits?.data instanceof", "logits?.values instanceof"),
    }
    cases = {"good.ts": good, **{f"{k}.ts": good.replace(*change) for k, change in wrong.items()}}
    names = {"input": "input", "output": "logits", "label": "dog"}
    cases["good of a bundle.ts"] = TYPED.format(**names)
    for key in names:
        cases[f"no {key} of a bundle.ts"] = TYPED.format(**{**names, key: "other"})
    for name, text in cases.items():
        (tmp_path / name).write_text(text)
    for resolution in (("--module", "nodenext"), ("--module", "esnext", "--moduleResolution", "bundler")):
        command = ["npx", "tsc", "--strict", "--noEmit", "--target", "es2022", *resolution, *cases]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
        found = {line.split("(")[0] for line in done.stdout.splitlines() if ": error TS" in line}
        assert found == {name for name in cases if not name.startswith("good")}, done.stdout


@pytest.mark.slow
def test_the_modules_have_types_and_the_declarations_are_those_that_tsc_writes() -> None:
    command = [sys.executable, str(ROOT / ".ci" / "javascript.py")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    if "not checked" in done.stderr:
        pytest.skip(done.stderr.strip())
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_commonjs_script(package: Path, digits: Digits, tmp_path: Path) -> None:
    npm("install", "--offline", str(package), cwd=tmp_path)
    shutil.copy(EMBED / "commonjs.cjs", tmp_path)
    shutil.copytree(digits.folder, tmp_path / "model")
    done = subprocess.run(
        ["node", "commonjs.cjs"], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    digits.assert_answer(done.stdout)
