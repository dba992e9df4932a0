"""The page's scripts: imports have no cycles, so that Python can turn a script and its imports into one data: URL."""

from __future__ import annotations

import base64
import re
from graphlib import TopologicalSorter

import pytest

from singe.errors import DeviceError
from singe.files.assets import page_scripts, static_folder
from singe.runtime.page import data_url

IMPORT = re.compile(r"""\b(?:from|import)\s*\(?\s*["']\./([^"']+)["']""")
"""Static and dynamic imports of another script, as in one folder."""


def test_imports_run_one_way() -> None:
    scripts = page_scripts()
    # What comments import are types, which may refer to each other.
    imports = {name: IMPORT.findall(re.sub(r"/\*.*?\*/", "", text, flags=re.S)) for name, text in scripts.items()}
    assert sum(map(len, imports.values())) > len(scripts)
    order = list(TopologicalSorter(imports).static_order())  # CycleError names a circle
    assert set(order) == set(scripts)


def test_imports_lead_to_a_script_where_it_lies() -> None:
    """In its folder of `static`, from which it can be served as it is."""
    paths = sorted(static_folder().rglob("*.js"))
    assert len({path.name for path in paths}) == len(paths) > 30
    for path in paths:
        found = re.findall(r'["\'](\.\.?/[^"\']*\.js)["\']', path.read_text("utf-8"))
        missing = [other for other in found if not (path.parent / other).is_file()]
        assert missing == [], path


def test_folders_import_in_the_order_that_the_readme_gives() -> None:
    """Static and dynamic imports: of scripts in the same folder, or on an earlier line of the order."""
    static = static_folder()
    lines = re.findall(r"^(\d+)\. (`.*`)$", (static / "README.md").read_text("utf-8"), re.M)
    order = {name: int(number) for number, names in lines for name in re.findall(r"`([^`]+)`", names)}
    paths = sorted(static.rglob("*.js"))
    place = {path: path.relative_to(static).parts[0] for path in paths}
    assert set(place.values()) == set(order)
    wrong = [
        f"{path.name} imports {other}"
        for path in paths
        for other in re.findall(r'["\'](\.\.?/[^"\']*\.js)["\']', path.read_text("utf-8"))
        for target in [place[(path.parent / other).resolve()]]
        if target != place[path] and order[target] >= order[place[path]]
    ]
    assert wrong == []


def test_a_script_is_one_url_with_all_that_it_imports() -> None:
    texts = {
        "a.js": 'import { b } from "./b.js";\nconst c = await import("./c.js");\n',
        "b.js": 'import { c } from "./c.js";\nexport const b = 1;\n',
        "c.js": "export const c = 2;\n",
    }
    made: dict[str, str] = {}
    url = data_url(texts, "a.js", made)
    assert made.keys() == {"a.js", "b.js", "c.js"}
    text = base64.b64decode(url.split(",")[1]).decode()
    assert text == f'import {{ b }} from "{made["b.js"]}";\nconst c = await import("{made["c.js"]}");\n'


def test_the_scripts_of_python_in_a_page_are_one_url() -> None:
    made: dict[str, str] = {}
    data_url(page_scripts(), "singe-python.js", made)
    assert {"singe-python.js", "singe-webgpu.js", "singe-wasm.js"} <= made.keys()


def test_types_that_a_comment_imports_are_left_out() -> None:
    made: dict[str, str] = {}
    data_url({"a.js": '/** @import { B } from "./b.js" */\nexport const a = 1;\n'}, "a.js", made)
    assert made.keys() == {"a.js"}


def test_a_circle_is_an_error_that_names_it() -> None:
    texts = {
        "a.js": 'import "./b.js";\n',
        "b.js": 'export const c = () => import("./c.js");\n',
        "c.js": 'import { c } from "./b.js";\n',
    }
    with pytest.raises(DeviceError, match=r"b\.js → c\.js → b\.js import one another"):
        data_url(texts, "a.js", {})
