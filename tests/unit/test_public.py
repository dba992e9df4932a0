"""The public door: what it says is there is there, and nothing else is."""

from __future__ import annotations

import tomllib
from pathlib import Path
from types import ModuleType

import pytest

import singe
from singe import nn

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("module", [singe, nn])
def test_all_is_what_is_importable(module: ModuleType) -> None:
    public = {
        name for name, value in vars(module).items() if not name.startswith("_") and not isinstance(value, ModuleType)
    }
    assert len(set(module.__all__)) == len(module.__all__)
    assert public | ({"nn", "__version__"} if module is singe else set()) == set(module.__all__)
    for name in module.__all__:
        assert getattr(module, name) is not None


def test_private_modules_are_not_shown() -> None:
    assert dir(singe) == singe.__all__
    assert not [name for name in dir(singe) if name.startswith("_") and name != "__version__"]


def test_public_names_are_no_submodules() -> None:
    """`singe.device` and `singe.compile` are functions, though files of these names exist."""
    assert [name for name in singe.__all__ if isinstance(getattr(singe, name), ModuleType)] == ["nn"]


def test_the_version_is_the_distributions() -> None:
    assert singe.__version__ == tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
