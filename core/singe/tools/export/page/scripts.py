"""The runner's scripts as a bundle has them: one file with the modules that every page needs, the rare ones beside it.

`bundle_scripts()` gives those that a release built, or otherwise those of `joined_scripts()`, made of the readable modules in
static/ with nothing but Python. In a file, a module is a function that returns its exports, and imports are taken from what
these returned. A script passes the query of its own address on to the scripts that it loads, so that all of them are the same
version, and none is loaded twice. Lines stay lines, so that a source map is a list of lines. A release makes the same files
smaller with esbuild: `.ci/javascript.py --build`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping
from functools import cache
from graphlib import TopologicalSorter
from typing import Final

from ....errors import FormatError
from ....files.assets import DIST, page_scripts, static_folder

MAIN: Final = "singe.js"
TASKS: Final = "singe-tasks.js"
EAGER: Final = frozenset(
    f"singe{part}.js"
    for part in (
        "", "-arguments", "-cache", "-checks", "-files", "-format", "-model", "-plan", "-spawn", "-wasm", "-wasm-plan", "-words",
        "-worker", "-worker-model",
    )
)  # fmt: skip
"""The modules in the main file: what one of them imports at once is another."""
JOINED: Final[Mapping[str, frozenset[str]]] = {
    MAIN: EAGER,
    "singe-element.js": frozenset(("singe-element.js", "singe-element-source.js")),
    "singe-host.js": frozenset(("singe-elements.js", "singe-host.js", "singe-host-sizes.js")),
    "singe-language.js": frozenset(
        f"singe-language{part}.js"
        for part in (
            "",
            "-ahead",
            "-answer",
            "-filters",
            "-interpreter",
            "-lexer",
            "-methods",
            "-models",
            "-parser",
            "-patterns",
            "-sampling",
            "-session",
            "-steps",
            "-template",
            "-tokenizer",
            "-tools",
            "-values",
        )
    ),
    "singe-language-constraint.js": frozenset(
        f"singe-language-{part}.js" for part in ("automaton", "constraint", "grammar", "regular", "schema")
    ),
    "singe-ort.js": frozenset(("singe-ort.js", "singe-ort-stub.js")),
    "singe-remote.js": frozenset(("singe-connection.js", "singe-folded-texts.js", "singe-remote.js")),
    "singe-stream.js": frozenset(("singe-decode.js", "singe-sha256.js", "singe-stream.js")),
    "singe-task-runner.js": frozenset(
        f"singe-task-{part}.js" for part in ("answers", "crops", "landmarks", "ocr", "regions", "runner")
    ),
    "singe-task-hearing.js": frozenset(
        (
            *(
                f"singe-task-{part}.js"
                for part in ("beams", "courses", "hearing", "hearing-texts", "hearing-words", "sources")
            ),
            *(f"singe-language-{part}.js" for part in ("models", "patterns", "sampling", "steps", "tokenizer")),
        )
    ),
    "singe-task-moonshine.js": frozenset(
        (
            *(f"singe-task-{part}.js" for part in ("beams", "courses", "moonshine", "pairs", "sources")),
            *(f"singe-language-{part}.js" for part in ("models", "patterns", "steps", "tokenizer")),
        )
    ),
    "singe-task-translating.js": frozenset(
        (
            *(f"singe-task-{part}.js" for part in ("beams", "pairs", "translating")),
            *(f"singe-language-{part}.js" for part in ("models", "patterns", "steps", "tokenizer")),
        )
    ),
    "singe-task-sounds.js": frozenset(f"singe-task-{part}.js" for part in ("sounds", "sounds-rules", "sources")),
    "singe-task-speech.js": frozenset(("singe-task-speech.js", "singe-task-speech-english.js")),
    "singe-task-texts.js": frozenset(
        (
            *(f"singe-task-texts{part}.js" for part in ("", "-index", "-kinds")),
            *(f"singe-language-{part}.js" for part in ("models", "offsets", "patterns", "steps", "tokenizer")),
        )
    ),
    "singe-thread.js": frozenset(("singe-barrier.js", "singe-thread.js")),
    "singe-webgpu.js": frozenset(
        ("singe-folded-texts.js", "singe-gpu.js", "singe-gpu-pipelines.js", "singe-gpu-plan.js", "singe-webgpu.js")
    ),
    "singe-threads.js": frozenset(("singe-barrier.js", "singe-shared.js", "singe-threads.js", "singe-timing.js")),
}
"""A file ↦ the modules in it, where these are several."""

DROP_IN: Final = "singe-ort"
"""How names of the scripts of `singe/ort` begin, which are in the npm package and beside stubs, but not in other bundles."""
LANGUAGE: Final = "singe-language"
"""How names of the scripts begin that only language models need."""
OF_TASKS: Final = "singe-task-"
"""How names of the scripts begin that only tasks need."""
_PYTHON: Final = "singe-python.js"  # used only under Pyodide
_WORKER: Final = "singe-worker.js"  # in the main file, runs only where that is the script of a worker
_STATIC: Final = re.compile(r'^import \{ ([^}]*) \} from "\./([\w-]+\.js)";$', re.M)
_DYNAMIC: Final = re.compile(r'\bimport\("\./([\w-]+\.js)"\)')
_SPAWN: Final = re.compile(r'new URL\("\./([\w-]+\.js)", import\.meta\.url\), \{ type: "module" \}')
_EXPORT: Final = re.compile(r"^export (?=(?:async )?(?:function|class|const) (?:(\w+)|\[([^\]]*)\]))", re.M)
_LIST: Final = re.compile(r"^export \{ ([^}]*) \};$", re.M)
_DEFAULT: Final = re.compile(r"^export default (\w+);$", re.M)
_LEFT: Final = re.compile(r"^(?:import|export)\b.*", re.M)


def readable_scripts() -> dict[str, bytes]:
    """The modules of static/, in one folder."""
    return {name: text.encode() for name, text in page_scripts().items() if name != _PYTHON}


def bundler_scripts() -> dict[str, bytes]:
    """The modules for bundlers and node: those that every page needs import each other at once, so that a bundler makes one
    file of them. Rare ones stay as they are: Parcel loses what both kinds import at once."""

    def asked(match: re.Match[str]) -> str:
        return f"Promise.resolve({_name(match[1])})" if match[1] in EAGER else match[0]

    def changed(text: str) -> str:
        eager = sorted(EAGER.intersection(_DYNAMIC.findall(text)))
        return "".join(f'import * as {_name(m)} from "./{m}"; ' for m in eager) + _DYNAMIC.sub(asked, text)

    scripts = readable_scripts()
    return {**scripts, **{name: changed(scripts[name].decode("utf-8")).encode() for name in sorted(EAGER)}}


@cache
def bundle_scripts() -> Mapping[str, bytes]:
    """The files, and a source map for each; those of the drop-in are among them."""
    built = static_folder() / DIST
    if not built.is_dir():
        return joined_scripts()
    files = {path.name: path.read_bytes() for path in sorted(built.iterdir())}
    sources = {name: data.decode("utf-8") for name, data in readable_scripts().items()}
    return {name: _with_sources(data, sources) if name.endswith(".map") else data for name, data in files.items()}


def drop_in_scripts(readable: bool) -> dict[str, bytes]:
    """The scripts of `singe/ort`, which go into a bundle beside a stub."""
    scripts = readable_scripts() if readable else bundle_scripts()
    return {name: data for name, data in scripts.items() if name.startswith(DROP_IN)}


@cache
def joined_scripts() -> Mapping[str, bytes]:
    """The files as they are where no release built them, and a source map for each."""
    sources = {name: data.decode("utf-8") for name, data in readable_scripts().items()}
    alone = sources.keys() - frozenset().union(*JOINED.values())
    inside = {**{name: frozenset((name,)) for name in alone}, **JOINED}
    # What these import from a joined file that is not the main one is there by itself, too.
    for name in {other for m in alone for _, other in _STATIC.findall(sources[m])} - EAGER:
        inside.setdefault(name, frozenset((name,)))
    files: dict[str, bytes] = {}
    for name, members in sorted(inside.items()):
        lines = list(_file(name, members, sources))
        used = sorted({module for _, module, _ in lines if module})
        text = "".join(f"{line}\n" for line, _, _ in lines)
        files[name] = f"{text}//# sourceMappingURL={name}.map\n".encode()
        files[f"{name}.map"] = _source_map(name, lines, {module: sources[module] for module in used})
    return files


Line = tuple[str, str, int]
"""A line of a file, and its module and line there; the module is empty if it is from none."""


def _file(name: str, members: Collection[str], sources: Mapping[str, str]) -> Iterator[Line]:
    """The lines of a file with these modules, the last of which is the file's own."""
    imports = {m: [other for _, other in _STATIC.findall(sources[m])] for m in sorted(members)}
    order = [m for m in TopologicalSorter(imports).static_order() if m in members]
    order = [*(m for m in order if m not in (name, _WORKER)), *(m for m in (_WORKER, name) if m in members)]
    beside = sorted({other for found in imports.values() for other in found} - set(members))
    outside = sorted({MAIN if other in EAGER else other for other in beside})
    bodies = {m: _module(m, members, sources[m]) for m in order}
    if any("QUERY" in body for body, _ in bodies.values()) or outside:
        yield "const QUERY=new URL(import.meta.url).search;", "", 0
    if outside:
        names = ",".join(_name(other) for other in outside)
        given = ",".join(f'import("./{other}"+QUERY)' for other in outside)
        yield f"const[{names}]=await Promise.all([{given}]);", "", 0
    for module in order:
        body, exports = bodies[module]
        call = module != _WORKER
        yield f"const {_name(module)}={'(' if call else ''}()=>{{", "", 0
        for line, number in compact(body):
            yield line, module, number
        yield f"return{{{','.join(exports)}}};}}{')()' if call else ''};", "", 0
    if name == MAIN:
        asked = {other for m in sources.keys() - members for other in _asked(sources[m])}
        parts = ",".join(_name(m) for m in order if m in asked)
        yield f"export const parts={{{parts}}};", "", 0
        role = json.dumps(_WORKER.removesuffix(".js"))
        yield f'if(typeof WorkerGlobalScope==="function"&&globalThis.name==={role}){_name(_WORKER)}();', "", 0
    exports = bodies[name][1]
    if named := [n for n in exports if ":" not in n]:
        yield f"export const{{{','.join(named)}}}={_name(name)};", "", 0
    if len(named) < len(exports):
        yield f"export default {_name(name)}.default;", "", 0


def _asked(text: str) -> list[str]:
    """The modules that a module imports, at once or on demand."""
    return [other for _, other in _STATIC.findall(text)] + _DYNAMIC.findall(text)


def _module(name: str, members: Collection[str], text: str) -> tuple[str, list[str]]:
    """A module as the body of a function, with the lines where they were, and the names of its exports; of the default one `default:` and
    its name."""

    def place(other: str) -> str:
        return f"{_name(MAIN)}.parts.{_name(other)}" if other in EAGER and other not in members else _name(other)

    def imported(match: re.Match[str]) -> str:
        return f"const {{ {match[1].replace(' as ', ': ')} }} = {place(match[2])};"

    def asked(match: re.Match[str]) -> str:
        other = match[1]
        if other in members:
            return f"Promise.resolve({_name(other)})"
        if other not in EAGER:
            return f'import("./{other}" + QUERY)'
        return f'import("./{MAIN}" + QUERY).then(({{ parts }}) => parts.{_name(other)})'

    def spawned(match: re.Match[str]) -> str:
        if match[1] in members:
            return f'new URL(import.meta.url), {{ type: "module", name: "{match[1].removesuffix(".js")}" }}'
        return f'new URL("./{match[1]}" + QUERY, import.meta.url), {{ type: "module" }}'

    listed = [n for a, b in _EXPORT.findall(text) for n in re.findall(r"\w+", a or b)]
    listed += [n for found in _LIST.findall(text) for n in found.split(", ")]
    listed += [f"default:{n}" for n in _DEFAULT.findall(text)]
    text = _STATIC.sub(imported, _DEFAULT.sub("", _LIST.sub("", _EXPORT.sub("", text))))
    text = _SPAWN.sub(spawned, _DYNAMIC.sub(asked, text))
    if left := _LEFT.search(text):
        raise FormatError(f"{name}: {left[0]!r} is no import or export of the forms that are known here")
    return text, listed


def _name(module: str) -> str:
    """The variable of a module's exports."""
    return "$" + re.sub(r"\W", "_", module.removeprefix("singe").removeprefix("-").removesuffix(".js"))


# --- fewer bytes ------------------------------------------------------------------------------------------------------

_COMMENT: Final = re.compile(r"^[ \t]*(?:/\*(?:(?!\*/).)*\*/|//[^\n]*)[ \t]*$|(?<=[;{}]) // [^\n`\x22]*$", re.M | re.S)
"""A comment of whole lines, or at the end of a line."""
_TYPE: Final = re.compile(r"/\*\* @type \{(?:(?!\*/)[^\n])*\} \*/ ")
"""What tells the type of a value: `/** @type {T} */ (value)`."""


def compact(text: str) -> Iterator[tuple[str, int]]:
    """The lines of a script with something on them, without comments and indentation, and their numbers from 0."""
    bare = _TYPE.sub("", _COMMENT.sub(lambda found: "\n" * found[0].count("\n"), text))
    for number, line in enumerate(bare.split("\n")):
        if line.strip():
            yield line.strip(), number


# --- source maps ------------------------------------------------------------------------------------------------------

_DIGITS: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"


def _source_map(name: str, lines: Collection[Line], sources: Mapping[str, str]) -> bytes:
    """A source map, version 3, with the sources in it: each line begins where its own line did."""
    number = {module: k for k, module in enumerate(sources)}
    mappings: list[str] = []
    last = (0, 0)
    for _, module, line in lines:
        here = (number[module], line) if module else last
        moved = (0, here[0] - last[0], here[1] - last[1], 0)
        mappings.append("".join(map(_digits, moved)) if module else "")
        last = here
    facts = {"version": 3, "file": name, "sources": list(sources), "names": [], "mappings": ";".join(mappings)}
    return _with_sources(json.dumps(facts), sources)


def _with_sources(found: str | bytes, sources: Mapping[str, str]) -> bytes:
    """A source map with the texts of its sources."""
    facts = json.loads(found)
    facts["sourcesContent"] = [sources[name] for name in facts["sources"]]
    return json.dumps(facts, separators=(",", ":"), ensure_ascii=False).encode()


def _digits(value: int) -> str:
    """A number in base 64, variable length, its sign in the lowest bit."""
    rest = abs(value) << 1 | (value < 0)
    made = ""
    while True:
        rest, low = rest >> 5, rest & 31
        made += _DIGITS[low | (32 if rest else 0)]
        if not rest:
            return made
