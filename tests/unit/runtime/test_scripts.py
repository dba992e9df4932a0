"""The page's scripts: imports have no cycles, so that Python can turn a script and its imports into one data: URL."""

from __future__ import annotations

import base64
import re
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

from singe.errors import DeviceError
from singe.runtime.files.assets import static_folder
from singe.runtime.files.page import data_url

IMPORT = re.compile(r"""\b(?:from|import)\s*\(?\s*["']\./([^"']+)["']""")
"""Static and dynamic imports of another script in the folder."""


def test_imports_run_one_way() -> None:
    scripts = {path.name: path.read_text("utf-8") for path in static_folder().glob("*.js")}
    imports = {name: IMPORT.findall(text) for name, text in scripts.items()}
    assert sum(map(len, imports.values())) > len(scripts)
    order = list(TopologicalSorter(imports).static_order())  # CycleError names a circle
    assert set(order) == set(scripts)


def test_a_script_is_one_url_with_all_that_it_imports(tmp_path: Path) -> None:
    (tmp_path / "a.js").write_text('import { b } from "./b.js";\nconst c = await import("./c.js");\n')
    (tmp_path / "b.js").write_text('import { c } from "./c.js";\nexport const b = 1;\n')
    (tmp_path / "c.js").write_text("export const c = 2;\n")
    made: dict[str, str] = {}
    url = data_url(tmp_path, "a.js", made)
    assert made.keys() == {"a.js", "b.js", "c.js"}
    text = base64.b64decode(url.split(",")[1]).decode()
    assert text == f'import {{ b }} from "{made["b.js"]}";\nconst c = await import("{made["c.js"]}");\n'


def test_a_circle_is_an_error_that_names_it(tmp_path: Path) -> None:
    (tmp_path / "a.js").write_text('import "./b.js";\n')
    (tmp_path / "b.js").write_text('export const c = () => import("./c.js");\n')
    (tmp_path / "c.js").write_text('import { c } from "./b.js";\n')
    with pytest.raises(DeviceError, match=r"b\.js → c\.js → b\.js import one another"):
        data_url(tmp_path, "a.js", {})
