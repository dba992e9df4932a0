"""Words that every reader refuses, in Python as in JavaScript: the table of networks/hostile_words.json."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import networks
import numpy as np
import pytest

from singe.errors import FormatError
from singe.program.container import checking
from singe.program.format import made
from singe.program.program import ProgramData

TABLE: Final[dict[str, Any]] = json.loads((Path(networks.__file__).parent / "hostile_words.json").read_text())
CASES: Final[dict[str, Any]] = {case["name"]: case for case in TABLE["cases"]}
MODULES: Final = {v["entry"].split(":")[0]: b"" for k in TABLE["program"]["kernels"] for v in k["variants"]}


def read(changes: dict[str, Any]) -> ProgramData:
    """The Program with these fields of its header replaced."""
    with checking("the program"):
        return made(TABLE["program"] | changes, MODULES, np.zeros(0, np.uint8), "the program")


def test_the_program_itself_is_read() -> None:
    assert read({}).words == tuple(TABLE["program"]["words"])
    assert len(CASES) == len(TABLE["cases"]), "names differ"


@pytest.mark.parametrize("name", CASES)
def test_hostile_words_are_refused(name: str) -> None:
    """With the text that Python has, where that is another one than JavaScript's."""
    case = CASES[name]
    with pytest.raises(FormatError) as caught:
        read(case["changes"])
    assert case.get("python", case["text"]) in str(caught.value)
