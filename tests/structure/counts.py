"""Prints facts of the structure of a checkout, by which two of them can be compared: lines by room, and how often some things occur.

    python tests/structure/counts.py [FOLDER] [OTHER]

With OTHER, another checkout, both are printed side by side. The walk of a call is that of the interpreter that runs this, with
the package of each checkout.
"""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).parents[2]
PACKAGES: Final = {
    "core": "core/singe",
    "gpu": "gpu/singe_gpu",
    "webgpu": "webgpu/singe_webgpu",
    "cuda": "cuda/singe_cuda",
    "wasm": "wasm/singe_wasm",
}
WALK: Final = """
import sys
import singe as sg
x = sg.tensor([1.0, 2.0, 3.0], device="numpy")
for _ in range(3):
    x.exp()
found = []
sys.setprofile(lambda frame, event, _: found.append(frame.f_code.co_filename) if event == "call" else None)
x.exp()
sys.setprofile(None)
print(len(found) - 1, len({file for file in found if "singe" in file}))
"""
"""Prints how many Python functions a call that ran before enters, and in how many files of Singe."""


class Checkout:
    """The files of one checkout."""

    def __init__(self, root: Path) -> None:
        self.root: Final = root

    def python(self, *folders: str) -> Iterator[tuple[str, str]]:
        """The Python files of folders, of all packages if none is named: their paths from the root, and their texts."""
        for folder in folders or PACKAGES.values():
            for path in sorted((self.root / folder).rglob("*.py")):
                if ".cache" in path.relative_to(self.root).parts:  # packages of others, that tests installed
                    continue
                yield path.relative_to(self.root).as_posix(), path.read_text("utf-8")

    def scripts(self) -> Iterator[tuple[str, str]]:
        for path in sorted((self.root / "static").rglob("*.js")):
            if "node_modules" not in path.parts:
                yield path.relative_to(self.root).as_posix(), path.read_text("utf-8")

    def sites(self, pattern: str, *folders: str) -> int:
        """How many lines of Python hold a pattern."""
        return sum(len(re.findall(pattern, text)) for _, text in self.python(*folders))

    def rooms(self) -> Mapping[str, int]:
        """Lines by room of the core, of each other package, and of the scripts."""
        found: dict[str, int] = {}
        for path, text in self.python():
            parts = path.split("/")
            room = "/".join(parts[:3]) if parts[0] == "core" else "/".join(parts[:2])
            found[room.removesuffix(".py")] = found.get(room.removesuffix(".py"), 0) + text.count("\n")
        found["static (JavaScript)"] = sum(text.count("\n") for _, text in self.scripts())
        found["static (types by hand)"] = sum(
            p.read_text("utf-8").count("\n") for p in (self.root / "static").glob("*.d.ts")
        )
        return found

    def tests(self) -> Mapping[str, int]:
        """Lines of tests by folder."""
        found: dict[str, int] = {}
        for path, text in self.python("tests"):
            group = path.split("/")[1] if path.count("/") > 1 else "(files)"
            found[group] = found.get(group, 0) + text.count("\n")
        return found

    def shared_class_names(self) -> int:
        """How many names two or more classes of the packages share."""
        names: dict[str, int] = {}
        for _, text in self.python():
            for node in ast.parse(text).body:
                if isinstance(node, ast.ClassDef):
                    names[node.name] = names.get(node.name, 0) + 1
        return sum(n > 1 for n in names.values())

    def long_files(self) -> int:
        return sum(text.count("\n") > 500 for _, text in self.python())

    def import_exceptions(self) -> int:
        """How many imports the contract between rooms excepts."""
        contracts = tomllib.loads((self.root / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"][
            "contracts"
        ]
        return sum(len(c.get("ignore_imports", ())) for c in contracts)

    def walk(self) -> tuple[str, str]:
        """Python functions, and files, that a warm eager `x.exp()` on numpy enters."""
        paths = os.pathsep.join(str(self.root / Path(p).parent) for p in PACKAGES.values())
        done = subprocess.run(
            [sys.executable, "-c", WALK],
            env=os.environ | {"PYTHONPATH": paths},
            capture_output=True,
            text=True,
            check=False,
        )
        calls, files = done.stdout.split() if done.returncode == 0 else ("?", "?")
        return calls, files


FACTS: Final[Mapping[str, Callable[[Checkout], Any]]] = {
    "functions that a warm x.exp() enters": lambda c: c.walk()[0],
    "files that a warm x.exp() enters": lambda c: c.walk()[1],
    "methods of Tensor written by hand": lambda c: c.sites(r"(?m)^@method\n"),
    "tables of elementwise functions beside the rows": lambda c: c.sites(
        r"(?m)^(?:FUNCTIONS|ALSO|UNARY|BINARY|METHODS)\b.*=", "core/singe"
    ),
    "class names that several classes share": Checkout.shared_class_names,
    "files over 500 lines": Checkout.long_files,
    "sites of NumPy in rows (np.)": lambda c: c.sites(r"\bnp\.", "core/singe/ops"),
    "`target is None` and `is not None`": lambda c: c.sites(r"target is (?:not )?None", "core/singe"),
    "`Target | None` in signatures": lambda c: c.sites(r"Target \| None", "core/singe"),
    "functions that look at the caller's frame": lambda c: c.sites(r"_getframe", "core/singe/shapes"),
    "imports that the contract of the rooms excepts": Checkout.import_exceptions,
    "variables of modules that scripts hand over (let)": lambda c: sum(
        len(re.findall(r"(?m)^(?:export )?let \w+", text)) for _, text in c.scripts()
    ),
    "bytes of CHANGELOG.md": lambda c: (c.root / "CHANGELOG.md").stat().st_size,
}
"""What is counted ↦ its number in a checkout."""


def table(of: Callable[[Checkout], Mapping[str, Any]], checkouts: list[Checkout]) -> Iterator[str]:
    """Lines of a Markdown table: a row for each name that one of the checkouts has, and a sum where all are numbers."""
    found = [of(c) for c in checkouts]
    for name in dict.fromkeys(name for one in found for name in one):
        yield f"| {name} | " + " | ".join(f"{one.get(name, '')}" for one in found) + " |"
    if all(isinstance(value, int) for one in found for value in one.values()):
        yield "| **all** | " + " | ".join(f"{sum(one.values())}" for one in found) + " |"


def main() -> None:
    checkouts = [Checkout(Path(folder)) for folder in sys.argv[1:] or [ROOT]]
    head = " | ".join(c.root.resolve().name for c in checkouts)
    parts: Mapping[str, Callable[[Checkout], Mapping[str, Any]]] = {
        "what": lambda c: {name: count(c) for name, count in FACTS.items()},
        "lines of the product": Checkout.rooms,
        "lines of tests": Checkout.tests,
    }
    for title, of in parts.items():
        print(f"\n| {title} | {head} |\n|---|{'---|' * len(checkouts)}")
        print("\n".join(table(of, checkouts)))


if __name__ == "__main__":
    main()
