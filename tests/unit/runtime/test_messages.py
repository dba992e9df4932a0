"""The messages of the public API say what was given, what was expected or what to do, in words of its users.

A message is read where it is raised. What a malformed file is refused for (FormatError and its kinds, and the readers of files in
`INSIDE`) names the place in the file and what was found there: there is nothing else to expect or to do."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import singe

ROOT = Path(singe.__file__).parent
ROOMS = (
    "array_api",
    "data",
    "dtypes.py",
    "fft.py",
    "tensors",
    "gradients.py",
    "host",
    "linalg.py",
    "metrics",
    "model",
    "nn",
    "optim",
    "random.py",
    "train",
)
KINDS = frozenset(("DTypeError", "DeviceError", "InputError", "NotImplementedError", "OutOfRange", "ShapeError"))
INSIDE = ("data/sources/cifar.py", "data/sources/tables.py", "train/monitor/reports/record.py")
SAYS = re.compile(
    r"expected|expects|; |needs? |must |supported|in its place|cannot |are written as|is written as|takes "
    r"|\b(add|call|cast|choose|convert|cut|give|install|leave|map|move|name|pass|pip|read|reshape|return|say|take|use|write)\b",
    re.IGNORECASE,
)
"""Words with which a message says what was expected, or what to do."""
PASSED_ON = re.compile(r"\{(e|advice|hint|instead\w*|INSTEAD|_PAIR|suggest\(.*\))\}$")
"""What ends in the text of another error, or in an advice that depends on the case."""
PRIVATE = re.compile(
    r"\b(Lifting|Tracer|Builder|DeviceValue|GraphNode|vjp|kwargs|args|None-type|todo|xxx)\b|\b_[a-z]\w+", re.IGNORECASE
)
"""Words of the library's own code."""
KNOWN = frozenset((
    "_random_samples",  # of PyTorch: an argument of FractionalMaxPool2d
))  # fmt: skip


def text_of(node: ast.expr) -> str | None:
    """A message as it is written, with the expressions in braces; None if it is made elsewhere."""
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.JoinedStr):
        parts = (
            v.value if isinstance(v, ast.Constant) else f"{{{ast.unparse(v.value)}}}"
            for v in node.values
            if isinstance(v, (ast.Constant, ast.FormattedValue))
        )
        return "".join(map(str, parts))
    return None


def messages() -> Iterator[tuple[str, str]]:
    """Where a public error is raised, and its message."""
    for room in ROOMS:
        path = ROOT / room
        for file in sorted(path.rglob("*.py")) if path.is_dir() else [path]:
            name = str(file.relative_to(ROOT))
            for node in ast.walk(ast.parse(file.read_text("utf-8"))):
                if (
                    isinstance(node, ast.Raise)
                    and isinstance(node.exc, ast.Call)
                    and node.exc.args
                    and name not in INSIDE
                ):
                    kind = ast.unparse(node.exc.func)
                    text = text_of(node.exc.args[0])
                    if kind in KINDS and text is not None:
                        yield f"{name}:{node.lineno}", text


@pytest.mark.slow
def test_messages_say_what_was_expected_or_what_to_do() -> None:
    found = dict(messages())
    assert len(found) > 400
    assert {where: text for where, text in found.items() if not SAYS.search(text) and not PASSED_ON.search(text)} == {}


@pytest.mark.slow
def test_messages_are_written_for_users() -> None:
    plain = {where: re.sub(r"\{[^{}]*\}", "", text) for where, text in messages()}
    wrong = {
        where: words
        for where, text in plain.items()
        if (words := [m[0] for m in PRIVATE.finditer(text) if m[0] not in KNOWN])
    }
    assert wrong == {}


@pytest.mark.slow
def test_messages_are_sentences_in_one_style() -> None:
    """No shouting, no full stop at the end, no "please": texts that are read together look alike."""
    wrong = {
        where: text
        for where, text in messages()
        if re.search(r"please|!$|(?<!\.)\.$|\bsorry\b|^[A-Z][a-z]+ [a-z]+ [a-z]", text)
        and not re.search(r"^(Gradients|Program|Session|Model|Adapt\w+|Arrow)\b", text)
    }
    assert wrong == {}


@pytest.mark.parametrize("text", ["the axis is wrong", "bad input {x}"])
def test_a_message_without_advice_would_be_found(text: str) -> None:
    assert not SAYS.search(text)
