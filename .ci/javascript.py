"""Checks the JavaScript of static/: types, by tsc; rules and format, by biome; and that the declarations are those that tsc writes.

`python .ci/javascript.py` checks. With `--write` it writes the declarations and the format. The tools are those of
static/package-lock.json, installed once, in .venv/javascript. Where they cannot be had, a line says so and nothing fails.

`python .ci/javascript.py --build DIR` writes the scripts of a release into a folder: those of a bundle, as esbuild makes them
smaller, with source maps. The maps lack the texts of the modules, which `singe export` adds.

A declaration, such as static/singe-tasks.d.ts, is what tsc says of the module's functions and classes, and the module's
section of static/types/public.d.ts.
"""

from __future__ import annotations

import argparse
import fcntl
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
STATIC: Final = ROOT / "static"
TOOLS: Final = ROOT / ".venv" / "javascript"
PINS: Final = ("package.json", "package-lock.json", ".npmrc")
MAIN: Final = "singe"
_OFFLINE: Final = re.compile(
    r"ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ETIMEDOUT|ENETUNREACH|ENOTCACHED|E40[13]|network|CERT"
)
_SECTION: Final = re.compile(r"^// --- singe(?:/(\w+))?\n(.*?)(?=^// --- |\Z)", re.M | re.S)
_NAME: Final = re.compile(r"^export (?:declare )?(?:type|interface|class|const|function) (\w+)", re.M)
_TAGS: Final = re.compile(r"^ *\* @(?:param|returns|template|type|readonly)\b.*\n", re.M)
_SHORT: Final = re.compile(r"/\*\*\n *\* (.*)\n *\*/")


class UnavailableError(Exception):
    """Why the tools cannot be had."""


def tool(name: str) -> list[str]:
    """The command of a tool, which is installed first; of several processes that want one, one installs them."""
    stamp = TOOLS / sha256(b"".join((STATIC / pin).read_bytes() for pin in PINS)).hexdigest()
    if not stamp.exists():
        TOOLS.parent.mkdir(exist_ok=True)
        with TOOLS.with_suffix(".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not stamp.exists():
                _install(stamp)
    return ["node", str(TOOLS / "node_modules" / name)]


def _install(stamp: Path) -> None:
    if shutil.which("npm") is None:
        raise UnavailableError("there is no npm")
    shutil.rmtree(TOOLS, ignore_errors=True)
    TOOLS.mkdir()
    for pin in PINS:
        shutil.copy(STATIC / pin, TOOLS)
    command = ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--fetch-retries=1", "--loglevel=error"]
    done = subprocess.run(command, cwd=TOOLS, capture_output=True, text=True, check=False)
    told = (done.stderr or done.stdout).strip()
    if done.returncode and _OFFLINE.search(told):
        raise UnavailableError(f"npm's registry cannot be reached: {told.splitlines()[0]}")
    if done.returncode:
        sys.exit(f"npm ci failed: {told}")
    stamp.touch()


def tsc(*options: str) -> subprocess.CompletedProcess[str]:
    command = [*tool("typescript/bin/tsc"), "--project", str(STATIC), *options]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def biome(*options: str) -> bool:
    return (
        subprocess.run(
            [*tool("@biomejs/biome/bin/biome"), *options, "--colors=off", "--error-on-warnings"],
            cwd=STATIC,
            check=False,
        ).returncode
        == 0
    )


def declarations() -> Mapping[str, str]:
    """The declarations of the modules of the package, by file."""
    sections = {
        name or "": text for name, text in _SECTION.findall((STATIC / "types" / "public.d.ts").read_text("utf-8"))
    }
    named = {part: _NAME.findall(section) for part, section in sections.items()}
    found: dict[str, str] = {}
    with tempfile.TemporaryDirectory() as folder:
        # Its exit code is that of all modules, of which some cannot be declared.
        tsc("--noEmit", "false", "--declaration", "--emitDeclarationOnly", "--stripInternal", "--outDir", folder)
        for part, section in sections.items():
            name = f"{MAIN}-{part}" if part else MAIN
            text = (Path(folder) / f"{name}.d.ts").read_text("utf-8")
            first = re.match(r"/\*\*\n \* (.*)\n", text)
            assert first, name
            body = text[text.index("*/") + 3 :]
            body = re.sub(r"^import .*\n|^export \{ SingeError.*\n|^/\*\* @import .*\n", "", body, flags=re.M)
            body = _SHORT.sub(r"/** \1 */", _TAGS.sub("", body))
            body = re.sub(r"\{ [\w, ]+ \}\?: ", "options?: ", body).replace("export declare ", "export ")
            body = re.sub(r"^(?: {4})+", lambda spaces: spaces[0][: len(spaces[0]) // 2], body, flags=re.M)
            body = re.sub(r"\n(?=(?:/\*\*|export ))(?<!\*/\n)", "\n\n", body)
            body = f"{body.strip()}\n\n{section.strip()}\n"
            code = re.sub(r"/\*\*.*?\*/", "", body, flags=re.S)
            own = set(_NAME.findall(body))
            imports = ""
            for other, names in named.items() if part else ():
                if used := [n for n in names if n not in own and re.search(rf"\b{n}\b", code)]:
                    module = f"{MAIN}-{other}" if other else MAIN
                    imports += f'import type {{ {", ".join(sorted(used))} }} from "./{module}.js";\n'
            found[f"{name}.d.ts"] = f"/** {first[1]} */\n\n{imports}{imports and chr(10)}{body}"
    return found


def build(folder: Path) -> None:
    """Write the scripts of a release."""
    from singe.tools.export.page.scripts import joined_scripts  # noqa: PLC0415  # which a check does without

    esbuild = tool("esbuild/bin/esbuild")
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as place:
        # In one folder, and in place, so that a source map has the names of the modules alone.
        for name, data in joined_scripts().items():
            (Path(place) / name).write_bytes(data)
        names = sorted(path.name for path in Path(place).glob("*.js"))
        options = ["--minify", "--charset=utf8", "--target=es2022", "--sourcemap", "--sources-content=false"]
        places = ["--outdir=.", "--allow-overwrite", "--log-level=warning"]
        subprocess.run([*esbuild, *names, *options, *places], cwd=place, check=True)
        for path in Path(place).iterdir():
            shutil.copyfile(path, folder / path.name)


def check(write: bool) -> int:
    """The exit code."""
    if write:
        for name, text in declarations().items():
            (STATIC / name).write_text(text, "utf-8")
    checked = tsc()
    print(checked.stdout, end="")
    fits = biome("format", "--write", ".") and biome("lint", ".") if write else biome("ci", ".")
    other = [name for name, text in declarations().items() if (STATIC / name).read_text("utf-8") != text]
    for name in other:
        print(f"static/{name} is not what tsc writes of {name.removesuffix('.d.ts')}.js: run `make types`")
    return int(bool(checked.returncode or not fits or other))


def main() -> int:
    parser = argparse.ArgumentParser(description="Checks the JavaScript of static/, or builds that of a release.")
    parser.add_argument("--write", action="store_true", help="write the declarations and the format")
    parser.add_argument("--build", type=Path, metavar="DIR", help="write the scripts of a release into this folder")
    asked = parser.parse_args()
    try:
        if asked.build is None:
            return check(asked.write)
        build(asked.build)
    except UnavailableError as e:
        what = "checked" if asked.build is None else "built"
        print(f"static/: the JavaScript was not {what}: {e}", file=sys.stderr)
        return int(asked.build is not None)
    return 0


if __name__ == "__main__":
    sys.exit(main())
