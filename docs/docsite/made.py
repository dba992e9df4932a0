"""The pages of reference, as Markdown made from the code: of Python, JavaScript, the command line and errors."""

from __future__ import annotations

import argparse
import ast
import importlib
import inspect
import re
import textwrap
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import Any, Final

import singe
from singe import errors
from singe.ops import ROWS, Elementwise
from singe.tensors import tensor
from singe.tools.options import parser

ROOT: Final = Path(__file__).parents[2]
TYPES: Final = ROOT / "static" / "singe.d.ts"
WIDTH: Final = 100

Function = ast.FunctionDef | ast.AsyncFunctionDef


def text_of(name: str) -> str:
    """The Markdown of a made page."""
    return MADE[name]() if name in MADE else _tensor() if name == "singe.Tensor" else _module(name)


# --- Python ------------------------------------------------------------------------------------------------------------


def _module(name: str) -> str:
    """All public names of a module: functions, then classes with their methods, then the others."""
    module = importlib.import_module(name)
    found = {k: getattr(module, k) for k in _public(module)}
    functions = {k: v for k, v in found.items() if not inspect.isclass(v) and callable(v)}
    classes = {
        k: v for k, v in found.items() if inspect.isclass(v) and k != "Tensor" and v.__module__.startswith("singe")
    }
    parts = [f"# {name}", _doc(module)]
    if name == "singe":
        parts.append("Every method of [Tensor](singe.Tensor.html) is a function, too: `sg.exp(x)` is `x.exp()`.")
    if functions:
        parts += ["## Functions", *(_function(k, v) for k, v in sorted(functions.items(), key=lambda p: p[0].lower()))]
    if classes:
        parts += ["## Classes", *(_class(k, v) for k, v in sorted(classes.items(), key=lambda p: p[0].lower()))]
    others = [
        k
        for k, v in found.items()
        if k not in functions and k not in classes and k != "Tensor" and not inspect.ismodule(v)
    ]
    if others:
        parts += ["## Other names", ", ".join(f"`{k}`" for k in others)]
    return "\n\n".join(p for p in parts if p) + "\n"


def _public(module: Any) -> list[str]:
    names = getattr(module, "__all__", None) or [k for k, v in vars(module).items() if _belongs(v)]
    return [k for k in names if not k.startswith("_")]


def _belongs(value: Any) -> bool:
    """Whether a name of a module that lists none is Singe's, and not one that it imports for its own use."""
    return getattr(value, "__module__", "").startswith("singe") and not inspect.ismodule(value)


def _function(name: str, value: Callable[..., Any], level: int = 3) -> str:
    return f"{'#' * level} {name}\n\n```python\n{_signature(name, value)}\n```\n\n{_doc(value)}"


def _class(name: str, kind: type) -> str:
    """A class: how it is made, what it is, and the methods that it or a base in Singe declares with a docstring."""
    parts = [_function(name, kind)]
    members = {k: v for k, v in vars(kind).items() if not k.startswith("_")}
    rows = [(k, v.__func__ if isinstance(v, (classmethod, staticmethod)) else v) for k, v in members.items()]
    for key, value in rows:
        if isinstance(value, property) and value.__doc__:
            parts.append(f"**`{name}.{key}`**: {_doc(value)}")
        elif inspect.isfunction(value) and value.__doc__ and key != "forward":
            parts.append(f"**`{_signature(f'{name}.{key}', value)}`**: {_doc(value)}")
    return "\n\n".join(parts)


def _signature(name: str, value: Any) -> str:
    """How it is called: without quotes around annotations, and in lines if it is long."""
    try:
        signature = inspect.signature(value)
    except (TypeError, ValueError):
        return f"{name}(…)"
    text = re.sub(r"'([^']*)'", r"\1", f"{name}{signature}") if "'" in str(signature) else f"{name}{signature}"
    text = re.sub(r"<function \S*<lambda> at \w+>", "…", text)
    return re.sub(r"<[\w.]+ ([\w.]+)[^>]*>", r"\1", text).replace("(self, ", "(").replace("(self)", "()")


def _doc(value: Any) -> str:
    """A docstring as Markdown: as it is written, with what Markdown would take for markup of its own escaped."""
    text = inspect.cleandoc(getattr(value, "__doc__", None) or "")
    if inspect.isclass(value) and text.startswith(f"{value.__name__}("):  # made by dataclass
        return ""
    return _escaped(text)


def _escaped(text: str) -> str:
    """Outside of code, which is in backticks or indented, `<`, `*`, `_` and `[` are characters as others."""
    text = re.sub(r"(?:(?<=\n\n)|\A)(?: {4}.*(?:\n|\Z)(?:\n(?= {4}))*)+", _fenced, text)
    pieces = re.split(r"(```.*?```|``.*?``|`[^`\n]*`)", text, flags=re.S)
    return "".join(p if i % 2 else re.sub(r"([<*_\[\]#])", r"\\\1", p) for i, p in enumerate(pieces))


def _fenced(block: re.Match[str]) -> str:
    """An indented block of a docstring, which is an example in Python, between fences."""
    return f"```python\n{textwrap.dedent(block.group()).rstrip()}\n```\n"


def _tensor() -> str:
    """All methods of Tensor, from the stub that lists them, with what the row of each says."""
    tree = ast.parse(Path(tensor.__file__).with_suffix(".pyi").read_text("utf-8"))
    (kind,) = (n for n in tree.body if isinstance(n, ast.ClassDef) and n.name == "Tensor")
    members = [n for n in kind.body if isinstance(n, Function)]
    named = sorted((n for n in members if not n.name.startswith("_")), key=lambda n: n.name.lower())
    operators = [n.name for n in members if n.name.startswith("__")]
    parts = [
        "# singe.Tensor",
        _escaped(inspect.cleandoc(singe.Tensor.__doc__ or "")),
        "Each method gives a new Tensor, unless it says otherwise. How names compare with PyTorch's and NumPy's: "
        "[Tensors](../guides/tensors.html). Each is a function of `singe`, too.",
        "## Methods",
        *(_method(name, list(nodes)) for name, nodes in groupby(named, key=lambda n: n.name)),
        "## Operators",
        ", ".join(f"`{k}`" for k in sorted(operators)),
    ]
    return "\n\n".join(parts) + "\n"


def _method(name: str, nodes: Sequence[Function]) -> str:
    """A method with all ways to call it: the stub has one for each set of names of its arguments."""
    calls = "\n".join(_call(n) for n in nodes)
    texts = dict.fromkeys(_escaped(ast.get_docstring(n) or "") for n in nodes)
    return "\n\n".join([f"### {name}", f"```python\n{calls}\n```", *texts, _row(name)]).rstrip()


def _call(node: Function) -> str:
    prefix = "await " if isinstance(node, ast.AsyncFunctionDef) else ""
    arguments = re.sub(r"^self(, )?(/, )?", "", ast.unparse(node.args))
    gives = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    is_property = any(isinstance(d, ast.Name) and d.id == "property" for d in node.decorator_list)
    call = f"{prefix}x.{node.name}" + ("" if is_property else f"({arguments})") + gives
    return re.sub(r"(?<!\w)_(bool|complex|float|int)\b", r"\1", call)


def _row(name: str) -> str:
    """What the row of a method says beyond its docstring."""
    row = ROWS.get(name)
    if row is None:
        return ""
    facts = ["an elementwise op" if isinstance(row, Elementwise) else f"an op ({type(row).__name__})"]
    onnx = getattr(row, "onnx", None)
    facts += [f"ONNX: `{onnx}`"] if isinstance(onnx, str) else []
    return f"*{'; '.join(facts)}*"


# --- JavaScript --------------------------------------------------------------------------------------------------------


def _javascript() -> str:
    """The modules that pages import, and the declarations of their types, each under its name with its comment as text."""
    parts = [
        "# JavaScript",
        "Made from the types that editors read. The modules are in every bundle and in the npm package.",
    ]
    for script in sorted(path.name.removesuffix(".d.ts") for path in TYPES.parent.glob("singe*.d.ts")):
        text = TYPES.with_name(f"{script}.d.ts").read_text("utf-8")
        head, *_ = text.split("\n", 1)
        types = f"In a bundle it is `{script}.js`. [Its types](../../static/{script}.d.ts)."
        parts += [f"## {script.replace('-', '/')}", _comment(head), types]
        for comment, declaration, name in declarations(text):
            parts += [f"### {name}", _comment(comment), f"```ts\n{declaration.rstrip()}\n```"]
    return "\n\n".join(p for p in parts if p) + "\n"


def declarations(text: str) -> Iterator[tuple[str, str, str]]:
    """Each exported declaration: its comment, its text and its name."""
    pattern = re.compile(
        r"((?:^/\*\*(?:(?!\*/).)*\*/\n)?)^(export (?:declare )?(?:\w+) (\w+).*?)(?=^(?:/\*\*|export |declare )|\Z)",
        re.M | re.S,
    )
    for found in pattern.finditer(text):
        yield found[1], found[2], found[3]


def _comment(text: str) -> str:
    lines = re.sub(r"^/\*\*|\*/$", "", text.strip()).splitlines()
    return "\n".join(re.sub(r"^\s*\* ?", "", line).strip() for line in lines).strip()


# --- the command line --------------------------------------------------------------------------------------------------


def _commands() -> str:
    """Each command, from the parser: how it is called, and its options."""
    root = parser(examples=False)
    parts = ["# Command line", "Made from what `singe COMMAND --help` prints. `python -m singe` is the same as `singe`.",
             "Exit codes: 0; 1 if `diff` finds a difference; 2 for an error that the caller can fix, with one line on standard "
             "error; 130 when interrupted; 143 when SIGTERM ended a training, which can be resumed."]  # fmt: skip
    (commands,) = (a for a in root._actions if isinstance(a, argparse._SubParsersAction))
    for name, command in commands.choices.items():
        formatter = argparse.HelpFormatter(command.prog, width=WIDTH)
        formatter.add_usage(command.usage, command._actions, command._mutually_exclusive_groups)
        usage = formatter.format_help().strip().removeprefix("usage: ")
        options = [_option(a) for a in command._actions if a.dest != "help"]
        table = "\n".join(["| option | what it does |", "|---|---|", *options])
        parts += [f"## singe {name}", _escaped(command.description or ""), f"```text\n{usage}\n```", table]
    return "\n\n".join(parts) + "\n"


def _option(action: argparse.Action) -> str:
    given = action.metavar if isinstance(action.metavar, str) else "{" + ",".join(map(str, action.choices or ())) + "}"
    value = "" if action.nargs == 0 or given == "{}" else f" {given}"
    called = ", ".join(f"`{o}{value}`" for o in action.option_strings) or f"`{given}`"
    return f"| {called.replace('|', chr(92) + '|')} | {_escaped(action.help or '').replace('|', chr(92) + '|')} |"


# --- errors ------------------------------------------------------------------------------------------------------------


def _errors() -> str:
    """The tree of Python's errors, and the codes of JavaScript's."""
    rows = [
        f"| {'&nbsp;' * 4 * depth}`{kind.__name__}` | {', '.join(f'`{b.__name__}`' for b in kind.__bases__ if b.__module__ == 'builtins')} "
        f"| {_escaped(' '.join(inspect.cleandoc(kind.__doc__ or '').split()))} |"
        for kind, depth in _tree(errors.SingeError, 0)
    ]
    codes = next(comment for comment, _, name in declarations(TYPES.read_text("utf-8")) if name == "Code")
    return "\n".join([
        "# Errors", "",
        "An error says what was given, what was expected, and what to do. On the command line it is one line and the exit code 2; `--verbose` adds the traceback.",  # noqa: E501
        "", "## In Python", "", "| error | is also a | when |", "|---|---|---|", *rows, "",
        "`singe.errors` has all of them, `singe` those that programs catch.", "",
        "## In JavaScript", "", "A `SingeError` has a `code`:", "", _comment(codes), "",
    ])  # fmt: skip


def _tree(kind: type, depth: int) -> Iterator[tuple[type, int]]:
    yield kind, depth
    for sub in kind.__subclasses__():
        if sub.__module__ == errors.__name__:
            yield from _tree(sub, depth + 1)


MADE: Final[dict[str, Callable[[], str]]] = {
    "javascript": cache(_javascript),
    "commands": cache(_commands),
    "errors": cache(_errors),
}
