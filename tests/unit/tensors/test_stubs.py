"""The stubs that list the names of singe, and Tensor's methods, for editors are those that the sources give."""

from __future__ import annotations

import ast

from stubs import DOOR, METHODS, NAMED, NAMES, stub_of_door, stub_of_methods, stub_of_named, stub_of_names

import singe as sg


def test_the_stubs_are_current() -> None:
    assert METHODS.read_text() == stub_of_methods(), "run `python tests/stubs.py`"
    assert NAMED.read_text() == stub_of_named(), "run `python tests/stubs.py`"
    assert NAMES.read_text() == stub_of_names(), "run `python tests/stubs.py`"
    assert DOOR.read_text() == stub_of_door(), "run `python tests/stubs.py`"


def test_the_stub_has_all_names() -> None:
    """Those that it imports for types alone are not imported as themselves, and so are not public in it."""
    shown: set[str] = set()
    for node in ast.parse(NAMES.read_text()).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            shown.add(node.name)
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            shown.add(node.target.id)
        elif isinstance(node, ast.ImportFrom):
            shown |= {a.name for a in node.names if a.asname == a.name or a.name in sg.__all__}
    assert shown == set(dir(sg))


def test_parameters_have_pytorchs_names_too() -> None:
    names = stub_of_names()
    assert "def softmax(x: Tensor, axis: _int = -1" in names
    assert "def softmax(x: Tensor, dim: _int = -1" in names
