"""demos/build.py: the site's files, an unchanged second build, a strict policy, relative paths."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from typing import Final

import pytest
from sites import ROOT, TASKS, demos_build, demos_script, language_of

build: Final = demos_build()
tasks: Final = demos_script("task_pages")
PAGES: Final = tuple(
    f"{name}index.html" for name in ("", "mnist/", "classify/", "train/", "write/", "tune/", "remote/")
)
LISTED: Final = re.compile(r"^const SITE = (\{.*\});$", re.M)


class Elements(HTMLParser):
    """The elements of a page: (tag, attributes)."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, {k: v or "" for k, v in attrs}))


def listing(site: Path) -> dict:
    """The service worker's list of the site's files."""
    found = LISTED.findall((site / build.WORKER).read_text())
    assert len(found) == 1
    return json.loads(found[0])


@pytest.mark.parametrize("name", PAGES)
def test_a_page_links_to_what_is_there_with_relative_paths(site: Path, name: str) -> None:
    found = Elements((site / name).read_text()).found
    given = [(tag, a[k]) for tag, a in found for k in ("href", "src") if k in a and not a[k].startswith(("data:", "#"))]
    links = [link for tag, link in given if not (tag == "a" and link.startswith("https://"))]
    assert links
    for link in links:
        assert not re.match(r"/|\w+:", link), f"{link} is not relative"
        target = ((site / name).parent / link.split("#")[0]).resolve()
        assert target.is_relative_to(site.resolve())
        assert (target / "index.html" if target.is_dir() else target).is_file(), link


@pytest.mark.parametrize("name", PAGES)
def test_a_page_has_a_strict_policy_and_keeps_it(site: Path, name: str) -> None:
    found = Elements((site / name).read_text()).found
    policy = next(a["content"] for _, a in found if a.get("http-equiv") == "Content-Security-Policy")
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    assert rules["default-src"] == "'none'"
    assert set(rules["script-src"].split()) <= {"'self'", "'wasm-unsafe-eval'", "blob:"}
    assert rules["style-src"] == "'self'"
    assert rules["base-uri"] == rules["form-action"] == "'none'"
    for tag, attributes in found:
        assert "style" not in attributes
        assert not any(k.startswith("on") for k in attributes), tag
        assert tag != "style"
        assert tag != "script" or "src" in attributes


@pytest.mark.parametrize("name", PAGES)
def test_a_page_can_be_read_by_a_screen_reader(site: Path, name: str) -> None:
    text = (site / name).read_text()
    found = Elements(text).found
    tags = [tag for tag, _ in found]
    assert next(a for tag, a in found if tag == "html")["lang"] == "en"
    assert tags.count("main") == tags.count("h1") == tags.count("title") == 1
    levels = [int(tag[1]) for tag in tags if re.fullmatch(r"h[1-6]", tag)]
    assert all(b <= a + 1 for a, b in pairwise(levels)), "a level of headings is left out"
    ids = [a["id"] for _, a in found if "id" in a]
    assert len(ids) == len(set(ids))
    assert next(a for tag, a in found if tag == "a")["href"] == "#main", "the first link skips to the content"
    for _, attributes in found:
        for key in ("aria-labelledby", "aria-describedby", "for"):
            assert set(attributes.get(key, "").split()) <= set(ids)
    assert all("alt" in a for tag, a in found if tag == "img")
    assert not re.search(r"user-scalable\s*=\s*no|maximum-scale", text)


def test_the_service_worker_names_every_file_with_its_hash(site: Path) -> None:
    known = listing(site)
    there = {p.relative_to(site).as_posix() for p in site.rglob("*") if p.is_file()} - {build.WORKER}
    assert known["files"].keys() == {p for p in there if not build.RUNNERS_OWN.fullmatch(p.rsplit("/", 1)[-1])}
    for name, digest in known["files"].items():
        assert hashlib.sha256((site / name).read_bytes()).hexdigest() == digest, name
    assert set(known["first"]) <= known["files"].keys()
    assert {*PAGES, "style.css", "singe.js", "mnist/model/model.json"} <= set(known["first"])
    fetched = sum((site / name).stat().st_size for name in known["first"])
    assert fetched < 1_100_000, "the first visit fetches pages and the pictures of the front page, not models"


def test_what_the_runner_keeps_is_not_kept_twice(site: Path) -> None:
    manifest = json.loads((site / "mnist/model/model.json").read_text())
    files = listing(site)["files"]
    for target in manifest["targets"].values():
        modules = target["modules"]
        named = [*target["weights"], *([modules] if "file" in modules else modules.values())]
        assert named
        assert not [f["file"] for f in named if f"mnist/model/{f['file']}" in files]


def test_the_pictures_model_is_small_and_knows_pictures(site: Path) -> None:
    folder = site / "classify/model"
    manifest = json.loads((folder / "model.json").read_text())
    for target in manifest["targets"].values():
        assert sum(w["bytes"] for w in target["weights"]) <= 9_500_000
    assert (manifest["image"]["size"], manifest["image"]["crop"]) == ([224, 224], 0.875)
    assert len(json.loads((folder / manifest["labels"]).read_text())) == 1000


def test_a_second_build_writes_nothing_anew_and_removes_what_is_old(site: Path, tmp_path: Path) -> None:
    copy = tmp_path / "site"
    shutil.copytree(site, copy)
    with_python = (site / "python/start.js").exists()
    language = language_of(site)
    build.build(copy, with_python, say=lambda text: None, language=language, tasks=TASKS)
    (copy / "mnist" / "old.js").write_text("old")
    (copy / "gone").mkdir()
    (copy / "style.css").write_text("changed")
    before = {p: p.stat().st_mtime_ns for p in copy.rglob("*") if p.is_file()}
    said: list[str] = []
    build.build(copy, with_python, say=said.append, language=language, tasks=TASKS)
    after = {p: p.stat().st_mtime_ns for p in copy.rglob("*") if p.is_file()}
    assert {p.relative_to(copy).as_posix() for p in before.keys() - after.keys()} == {"mnist/old.js"}
    assert {p.relative_to(copy).as_posix() for p in after if before.get(p) != after[p]} == {"style.css"}
    assert not (copy / "gone").exists()
    assert not [line for line in said if "making" in line or "assembling" in line]


def test_a_site_without_python_has_its_models_all_the_same(site: Path, tmp_path: Path) -> None:
    out = tmp_path / "site"
    build.build(out, with_python=False, say=lambda text: None, tasks=())
    assert not (out / "python/start.js").exists()
    assert (out / "mnist/model/model.json").read_bytes() == (site / "mnist/model/model.json").read_bytes()


def test_pages_link_to_the_documentation_if_it_is_there(
    site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def links(name: str) -> list[str]:
        return re.findall(r'href="([^"]*docs/index.html)"', (tmp_path / "site" / name).read_text())

    language = language_of(site)
    build.build(tmp_path / "site", with_python=False, say=lambda text: None, language=language, tasks=())
    assert {name: len(links(name)) for name in PAGES} == {name: 2 if name == "index.html" else 1 for name in PAGES}
    monkeypatch.setitem(sys.modules, "docsite", None)
    said: list[str] = []
    build.build(tmp_path / "site", with_python=False, say=said.append, language=language, tasks=())
    assert any(line.startswith("docs: left out") for line in said)
    assert not (tmp_path / "site/docs/index.html").exists()
    assert [links(name) for name in PAGES] == [[]] * len(PAGES)


def test_python_that_cannot_be_had_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    setup = build.module(ROOT / "wasm" / "pyodide", "setup")

    def fails(folder: Path, **rest: object) -> None:
        (folder / "half").write_text("of it")
        raise setup.SetupError("numpy: no network")

    monkeypatch.setattr(demos_script("kept"), "CACHE", tmp_path / "cache")
    monkeypatch.setattr(setup, "assemble", fails)
    said: list[str] = []
    assert build.python_files("0", said.append) == {}
    assert "no network" in said[-1]
    assert not list((tmp_path / "cache").rglob("half"))


def test_a_language_model_that_cannot_be_had_is_left_out(
    site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its pages then say how to get it."""

    def fails(name: str) -> Path:
        raise build.sg.InputError("no network")

    monkeypatch.setattr(build.sg.zoo, "fetch", fails)
    said: list[str] = []
    assert build.language_model(said.append) is None
    assert "no network" in said[-1]
    files = {p.relative_to(site).as_posix(): p for p in site.rglob("*") if p.is_file()}
    files[build.MISSING] = ROOT / "demos" / build.MISSING
    left = build.with_language(files, None, "0", said.append)
    assert build.MISSING not in left
    for name in build.LANGUAGE_PAGES:
        text = left[name].read_text()
        assert "make demo" in text
        assert Elements(text).found[0] == ("html", {"lang": "en"})
    with pytest.raises(build.BuildError, match="expected a GGUF"):
        build.with_language(files, tmp_path / "none.gguf", "0", said.append)


def test_a_task_whose_model_cannot_be_had_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(kind: str, model: str, weights: str = "") -> None:
        raise build.sg.InputError("no network")

    monkeypatch.setattr(demos_script("kept"), "CACHE", tmp_path)
    monkeypatch.setattr(build.sg, "task", fails)
    said: list[str] = []
    missing = {tasks.MODEL_MISSING: ROOT / "demos" / tasks.MODEL_MISSING}
    files = tasks.with_tasks(missing, "0", said.append, tasks.TASK_PAGES)
    assert files.keys() == {f"{page}/index.html" for page in tasks.TASK_PAGES}
    for path in files.values():
        assert "make demo" in path.read_text()
        assert Elements(path.read_text()).found[0] == ("html", {"lang": "en"})
    assert "no network" in said[-1]


def test_a_task_is_fetched_when_its_page_is_opened(site: Path) -> None:
    known = listing(site)
    assert not [
        name for name in known["first"] if name.startswith(("tasks/", *(f"{page}/" for page in tasks.TASK_PAGES)))
    ]
    for page, task in tasks.TASK_PAGES.items():
        needed = {f"{page}/index.html"}
        if (site / page / "model").exists():
            needed |= {
                f"{page}/model/model.json",
                f"{page}/model/singe-tasks.js",
                *(tasks.sample_address(sample) for sample in task.samples if sample in tasks.SAMPLES),
            }
        assert needed <= set(known["pages"][f"{page}/index.html"])


def test_a_language_model_is_fetched_when_its_page_is_opened(site: Path) -> None:
    if language_of(site) is None:
        pytest.skip("the site was built without a language model: gguf is not installed")
    known = listing(site)
    assert not [name for name in known["first"] if name.startswith(build.LANGUAGE_MODEL)]
    for page in build.LANGUAGE_PAGES:
        assert {"chat/model/model.json", "chat/model/singe.js"} <= set(known["pages"][page])


def test_a_folder_of_somebody_elses_is_not_touched(tmp_path: Path) -> None:
    (tmp_path / "letters.txt").write_text("dear")
    done = subprocess.run(
        [sys.executable, str(ROOT / "demos/build.py"), "-o", str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "give another folder" in done.stderr
    assert [p.name for p in tmp_path.iterdir()] == ["letters.txt"]
