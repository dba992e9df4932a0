"""The Python of the prompt and of the documentation's cells; prompt-worker.js runs this file under Pyodide.

Contract: sources share one dict of names, `scope`, in which top-level `await` works. `evaluate` never raises: what a source
raises is text. `input()` is answered by the page. singe_prompt_page is what the worker offers.
"""

import ast
import asyncio
import base64
import builtins
import codeop
import functools
import importlib.metadata
import json
import keyword
import linecache
import os
import re
import signal
import sys
import traceback
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any

import micropip
import numpy as np
import pyodide_js
from packaging.requirements import InvalidRequirement, Requirement
from pyodide.code import eval_code_async
from singe_prompt_page import awaitAnswer, canAnswer, takeForbidden

import singe as sg

LONGEST = 20_000
"""The most characters of an answer; those in the middle of a longer one are left out."""
LARGEST = 10_000_000
"""The most characters or bytes of a drawing."""
MARKUP: dict[str, Callable[[Any], str]] = {
    "_repr_html_": str,
    "_repr_svg_": str,
    "_repr_png_": lambda png: f'<img src="data:image/png;base64,{base64.b64encode(png).decode()}">',
}
"""A method by which objects describe themselves to notebooks ↦ what makes HTML of its result."""
NOTHING_ANSWERS = (
    "input: nothing can answer here. A prompt in a page that is isolated (with the headers COOP and COEP) answers; "
    "write the text into the source instead"
)
PLACES = """\
Wheels of pure Python can come from
- this site: await micropip.install("./NAME-VERSION-py3-none-any.whl")
- a file that was added to the prompt: await micropip.install("emfs:./NAME-VERSION-py3-none-any.whl")
- PyPI and other servers, if there is a network, if they let other pages read their files (CORS), and if this site's \
Content-Security-Policy allows it.
Of the packages that Pyodide builds (such as pillow or scipy), this site has numpy only."""
NO_SHELL = "This is Python and no shell; pip is here: import micropip; await micropip.install({})"
NO_MODULE = 'If PyPI has {0} as a wheel of pure Python: import micropip; await micropip.install("{0}")'
NO_BUILT = "{0} is one of the packages that Pyodide builds, of which this site has numpy only{1}"
INSTEAD = {"matplotlib": "; long Tensors of one axis are drawn as curves, those of pixels as pictures"}
"""A module that is built for Pyodide ↦ what to use here."""
PIP = re.compile(r"\s*[!%]?pip3? install\s+(.+)")
FAILED = "{} not installed: what is needed could not be fetched"

compiler = codeop.CommandCompiler()
compiler.compiler.flags |= ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
scope: dict[str, Any] = {"__name__": "__main__", "np": np, "sg": sg}
count = 0
running: asyncio.Task[Any] | None = None
begun = dropped = 0  # the numbers of the last source that began, and of the last that may not begin
missed = False  # an interrupt came where no source computed: the one that begins next is meant, unless `interrupt` comes before


def is_whole(source: str) -> bool:
    """Whether a source is not the beginning of a longer statement; a wrong one is whole, too."""
    try:
        return isinstance(compiler(source, "<prompt>", "exec"), CodeType)
    except (SyntaxError, ValueError, OverflowError):
        return True


async def evaluate(source: str, number: int) -> tuple[str, bool, str]:
    """The text to show, whether it is an error's, and HTML of drawings; number: which of the page's sources it is."""
    global begun, count, missed, running  # noqa: PLW0603
    begun = number
    count += 1
    name = f"<prompt {count}>"
    linecache.cache[name] = (len(source), None, [line + "\n" for line in source.split("\n")], name)
    try:
        running = asyncio.current_task()  # from here on an interrupt raises
        if missed or number <= dropped:
            return "KeyboardInterrupt", True, ""
        value = await eval_code_async(source, scope, filename=name)
        if value is not None:
            scope["_"] = value
        text, html = ("", "") if value is None else (repr(value), drawings(value))
        return shortened(text), False, html
    except BaseException as error:
        running = None  # no interrupt ends what follows
        if isinstance(error, asyncio.CancelledError):
            error = KeyboardInterrupt().with_traceback(error.__traceback__)
        sys.last_exc = error
        return shortened("\n".join((explained(error), *advice(error, source)))), True, ""
    finally:
        running = None
        missed = False
        sys.stdout.flush()
        sys.stderr.flush()


def drawings(value: Any) -> str:
    """The HTML, SVG or PNG by which a value describes itself to notebooks. An array is shown as a Tensor is."""
    try:
        if isinstance(value, np.ndarray):
            value = sg.tensor(value, device="numpy")
        for name, markup in MARKUP.items():
            if (describe := getattr(type(value), name, None)) is not None and (found := describe(value)) is not None:
                return markup(found) if len(found) <= LARGEST else ""
    except Exception:  # the text says what it is; an object need not be able to draw itself
        pass
    return ""


def explained(error: BaseException) -> str:
    """A traceback with the frames of what was typed and of files beside it; sys.last_exc has the others."""
    found = traceback.TracebackException.from_exception(error)
    todo = [found]
    while todo:
        part = todo.pop()
        own = [f for f in part.stack if f.filename.startswith(("<prompt", os.getcwd()))]
        part.stack = traceback.StackSummary.from_list(own)
        todo += [p for p in (part.__cause__, part.__context__, *(part.exceptions or ())) if p is not None]
    return "".join(found.format()).rstrip()


def advice(error: BaseException, source: str) -> tuple[str, ...]:
    """What to do about a package that is missing."""
    if isinstance(error, SyntaxError) and (pip := PIP.match(source)):
        return (NO_SHELL.format(json.dumps(pip[1].split())),)
    if isinstance(error, ModuleNotFoundError) and error.name is not None and "." not in error.name:
        built = error.name in pyodide_js._api._import_name_to_package_name.to_py()
        return ((NO_BUILT if built else NO_MODULE).format(error.name, INSTEAD.get(error.name, "")),)
    return ()


def shortened(text: str) -> str:
    if len(text) <= LONGEST:
        return text
    half = LONGEST // 2
    return f"{text[:half]}\n[{len(text) - 2 * half} characters left out]\n{text[-half:]}"


def interrupt(number: int) -> None:
    """End what waits in an await; if the source has not begun, it never will."""
    global dropped, missed  # noqa: PLW0603
    missed = False
    if running is not None:
        running.cancel()
    elif begun < number:
        dropped = number


def interrupted(_: int, frame: FrameType | None) -> None:
    """SIGINT: end what a source computes. It may come at any moment, and the event loop's own code, which runs before, after
    and between what sources compute, must not be ended."""
    global missed  # noqa: PLW0603
    while frame is not None:
        code = frame.f_code
        if code.co_filename.startswith("<prompt") or (code is evaluate.__code__ and running is not None):
            raise KeyboardInterrupt
        frame = frame.f_back
    missed = True


def completions(source: str) -> tuple[str, list[str]]:
    """The name, perhaps begun, at the end of a source, and the names that begin with it: of the scope and of Python, or of
    the object before the last dot. What stands before that dot is looked up, and properties in it run; of what may follow
    the dot only the names are read."""
    word = re.findall(r"[\w.]*$", source)[0]
    path, dot, stem = word.rpartition(".")
    try:
        names = dir(named(path)) if dot else (*scope, *dir(builtins), *keyword.kwlist)
    except Exception:  # no such name, or an object's own __getattr__ or __dir__ raised it
        names = ()
    return stem, sorted({n for n in names if n.startswith(stem) and (stem or not n.startswith("_"))})


def named(path: str) -> object:
    """The object of a name with dots."""
    first, *rest = path.split(".")
    return functools.reduce(getattr, rest, scope[first] if first in scope else getattr(builtins, first))


def answered(prompt: object = "", /) -> str:
    """input(): the page shows the prompt and answers."""
    if not canAnswer():
        raise RuntimeError(NOTHING_ANSWERS)
    print(prompt, end="", flush=True)
    answer = awaitAnswer()
    if answer is None:
        raise KeyboardInterrupt
    return answer


plain_install = micropip.install


async def install(requirements: str | list[str], *given: Any, **named: Any) -> None:
    """micropip.install, whose errors say where packages may come from; what micropip only prints is an error, too."""
    takeForbidden()  # what the policy forbade earlier is no reason of this call's
    try:
        await plain_install(requirements, *given, **named)
        wanted = [requirements] if isinstance(requirements, str) else requirements
        if missing := [name for name in map(distribution, wanted) if name is not None and not has(name)]:
            raise ValueError(FAILED.format(", ".join(missing)))
    except Exception as error:
        await asyncio.sleep(0.1)  # the browser reports what its policy forbids a moment later
        for note in (takeForbidden(), PLACES):
            if note is not None:
                error.add_note(note)
        raise


def distribution(requirement: str) -> str | None:
    """The name of what is wanted; None for the address of a wheel."""
    try:
        return Requirement(requirement).name
    except InvalidRequirement:
        return None


def has(name: str) -> bool:
    try:
        return importlib.metadata.distribution(name) is not None
    except importlib.metadata.PackageNotFoundError:
        return False


micropip.install = install
builtins.input = answered
signal.signal(signal.SIGINT, interrupted)
banner = f"Python {sys.version.split()[0]}, NumPy {np.__version__}, Singe {sg.__version__}"
