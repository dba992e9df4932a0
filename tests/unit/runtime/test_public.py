"""Public names: exactly those that are listed exist; extensions and demos use nothing else."""

from __future__ import annotations

import ast
import re
import tomllib
from pathlib import Path
from types import ModuleType
from typing import Final

import pytest

import singe
from singe import data, extension, nn

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize("module", [singe, nn, data])
def test_all_is_what_is_importable(module: ModuleType) -> None:
    for name in module.__all__:
        assert getattr(module, name) is not None
    public = {
        name for name, value in vars(module).items() if not name.startswith("_") and not isinstance(value, ModuleType)
    }
    assert len(set(module.__all__)) == len(module.__all__)
    more = {singe: {"nn", "__version__"}, nn: {"init"}}.get(module, set())
    assert public | more == set(module.__all__)


def test_private_modules_are_not_shown() -> None:
    assert set(singe.__all__) <= set(dir(singe))
    assert len(set(dir(singe))) == len(dir(singe))
    assert not [name for name in dir(singe) if not name.startswith("__") and getattr(singe, name, None) is None]
    assert {"topk", "conv2d", "randn", "optim"} <= set(dir(singe))
    assert not [name for name in dir(singe) if name.startswith("_") and name != "__version__"]


def test_public_names_are_no_submodules() -> None:
    """A name has one meaning: no function or class has the name of a module or a room."""
    assert [name for name in singe.__all__ if isinstance(getattr(singe, name), ModuleType)] == ["nn"]
    rooms = {path.stem for path in Path(singe.__file__).parent.iterdir() if not path.stem.startswith("_")}
    assert rooms & set(singe.__all__) == {"nn"}


@pytest.mark.slow
def test_extensions_have_one_door() -> None:
    """The packages for devices use of Singe what singe.extension lists, and nothing else; it lists nothing unused."""
    used: set[str] = set()
    for package in ("gpu/singe_gpu", "webgpu/singe_webgpu", "wasm/singe_wasm"):
        for path in (ROOT / package).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.Import):
                    assert not [a.name for a in node.names if a.name.partition(".")[0] == "singe"], path
                elif isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "singe":
                    assert node.module == "singe.extension", f"{path} imports {node.module}"
                    used |= {a.name for a in node.names}
    listed = set(extension.__all__)
    protocols = {
        "ArrayTarget",
        "Backend",
        "Decorator",
        "Device",
        "Executable",
        "Execution",
        "Target",
    }  # for type annotations of packages to come
    assert used | protocols == listed


PUBLIC_SCRIPTS = {
    "singe.js",
    "singe-element.js",
    "singe-ort.js",
    "singe-ort-global.js",
    "singe-picture.js",
    "singe-sound.js",
    "singe-tasks.js",
}
"""The scripts that pages import, from a bundle or from npm; other scripts of the runner are private."""


def demo_files(*suffixes: str) -> list[Path]:
    built = {".cache", "site", "node_modules"}
    found = (p for p in (ROOT / "demos").rglob("*") if p.suffix in suffixes)
    return [p for p in found if not built & set(p.relative_to(ROOT).parts)]


FOR_THE_SITE: Final = {
    "singe.files.zoo.sources": {"Wheel"},
    "singe.tools.export.page.own_page": {"CHAT", "TASK_PAGES", "own_page"},
    "singe.tools.export.page.scripts": {"LANGUAGE", "OF_TASKS", "compact", "readable_scripts"},
    "singe.tools.export.page.snippet": {"links"},
    "singe.tools.export.tuning": {"export_tuning"},
    "singe.train.examples.mnist": {"Digits", "MEAN", "STD"},
}
"""What builds the site and fetches its weights uses besides: the pages of bundles, whose scripts it serves small, and the network that
the training page has, too."""


def test_demos_use_public_names_only() -> None:
    """Python of the demos imports `singe`, `singe.nn` and `singe.data`, and of them what `__all__` lists and the submodules
    that are imported when they are used; so does Python in scripts."""
    public = {*singe.__all__, *vars(singe)["_SUBMODULES"]}
    names: dict[str, set[str]] = {
        "singe": public,
        "singe.nn": set(nn.__all__),
        "singe.data": set(data.__all__),
        **FOR_THE_SITE,
    }
    used: set[str] = set()
    for path in demo_files(".py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                assert not [a.name for a in node.names if a.name.startswith("singe.")], path
            elif isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "singe":
                assert {a.name for a in node.names} <= names.get(node.module or "", set()), f"{path}: {node.module}"
            elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "sg":
                assert node.attr in public, f"{path}: sg.{node.attr}"
                used.add(node.attr)
    assert {"export", "load_weights", "save"} <= used


def test_demos_import_public_scripts_only() -> None:
    used: set[str] = set()
    for path in demo_files(".js", ".cjs", ".html", ".ts"):
        imported = re.findall(r"""(?:from|import|import\()\s*["'][^"']*?/(singe[\w-]*\.js)["']""", path.read_text())
        assert set(imported) <= PUBLIC_SCRIPTS, path
        used |= set(imported)
    assert used >= {"singe.js", "singe-picture.js"}


def test_the_version_is_the_distributions() -> None:
    assert singe.__version__ == tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
