"""A compiled function takes the value of each run out of whatever holds it: containers of the standard library, objects of classes
with methods of their own, places that were empty."""

from __future__ import annotations

import array
import collections
import configparser
import contextvars
import ctypes
import functools
import operator
import threading
import types
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import singe as sg

X = np.array([1.0, 2.0], np.float32)


def times(function: Callable[..., Any]) -> Any:
    return sg.compile(function, X, device="numpy")


class Attributes(dict[str, Any]):
    __getattr__ = dict.__getitem__


class Itself(dict[str, Any]):
    def __init__(self, **given: Any) -> None:
        super().__init__(given)
        self.__dict__ = self


class Looked(dict[str, Any]):
    def __getattr__(self, name: str) -> Any:
        return self[name]

    def __setattr__(self, name: str, value: Any) -> None:
        self[name] = value


class Thing:
    table: Any = (1.0,)
    fixed = 2.0

    def __init__(self, b: float = 2.0) -> None:
        self.b = b

    def times(self) -> float:
        return self.b

    def __call__(self, x: Any) -> Any:
        return x * self.b


class Other(Thing):
    def __call__(self, x: Any) -> Any:
        return x * -self.b


class Buffer(ctypes.Structure):
    _fields_ = (("b", ctypes.c_float),)


VARIABLE: contextvars.ContextVar[float] = contextvars.ContextVar("VARIABLE", default=2.0)
KEPT: Any = {"b": 2.0}
COMPUTED = 2.0
BY_NAME = getattr
NAME = "b"
GETTER = operator.attrgetter
Case = tuple[Callable[[Any], Any], Callable[[], Any]]


def or_else(x: Any, read: Callable[[], Any]) -> Any:
    try:
        return x * read()
    except (KeyError, AttributeError, NameError):
        return x


def of_a_default() -> Case:
    def function(x: Any, b: float = 2.0) -> Any:
        return x * b

    return (lambda x: function(x)), lambda: setattr(function, "__defaults__", (3.0,))  # noqa: PLW0108


def of_a_parser() -> Case:
    parser = configparser.ConfigParser()
    parser.read_dict({"a": {"Beta": "2.0"}})
    return (lambda x: x * parser.getfloat("a", "Beta")), lambda: parser.set("a", "beta", "3.0")


def of_a_proxy(by: Callable[[Any], Any]) -> Case:
    thing = Thing()
    proxy = by(thing)
    get: Any = proxy if isinstance(proxy, weakref.ref) else lambda: proxy
    return (lambda x: x * get().b), lambda: setattr(thing, "b", 3.0)


def of(held: Any, read: Callable[[Any, Any], Any], change: Callable[[Any], Any]) -> Case:
    return (lambda x: read(x, held)), lambda: change(held)


def of_memory() -> Case:
    held = memoryview(bytearray(np.array([2.0], np.float32).tobytes())).cast("f")
    return of(held, lambda x, h: x * h[0], lambda h: h.__setitem__(0, 3.0))


def of_a_thread() -> Case:
    local = threading.local()
    local.b = 2.0
    return of(local, lambda x, h: x * h.b, lambda h: setattr(h, "b", 3.0))


def of_a_function() -> Case:
    def held() -> None: ...

    vars(held)["gain"] = 2.0
    return of(held, lambda x, h: x * h.gain, lambda h: setattr(h, "gain", 3.0))


def of_a_global(name: str) -> Case:
    return (lambda x: or_else(x, lambda: LATER_37)), lambda: globals().__setitem__(name, 3.0)  # noqa: F821 # pyright: ignore


def of_a_computed_global() -> Case:
    names = {"name": "COMPUTED"}
    return (lambda x: x * globals()[names["name"]]), lambda: globals().__setitem__("COMPUTED", 3.0)


def of_a_builtin() -> Case:
    """A module gets a function that hides a builtin one."""
    module: dict[str, Any] = {}
    exec("def function(x): return x * abs(-2.0)", module)
    return module["function"], lambda: module.__setitem__("abs", lambda x: 3.0)


def of_code() -> Case:
    def function(x: Any) -> Any:
        return x * 2.0

    def other(x: Any) -> Any:
        return x * 3.0

    return function, lambda: setattr(function, "__code__", other.__code__)


def by_itemgetter() -> Case:
    get, held = operator.itemgetter("b"), {"b": 2.0}
    return of(held, lambda x, h: x * get(h), lambda h: h.update(b=3.0))


def by_methodcaller() -> Case:
    call = operator.methodcaller("times")
    return of(Thing(), lambda x, h: x * call(h), lambda h: setattr(h, "b", 3.0))


def by_attrgetter() -> Case:
    get = operator.attrgetter("a.b")
    return of(types.SimpleNamespace(a=Thing()), lambda x, h: x * get(h), lambda h: setattr(h.a, "b", 3.0))


def by_a_kept(name: str) -> Case:
    held = {"b": 2.0}
    get = getattr(held, name)
    return (lambda x: x * get("b")), lambda: held.update(b=3.0)


def by_a_partial() -> Case:
    part = functools.partial(lambda x, c: x * c, c=2.0)
    return part, lambda: part.keywords.__setitem__("c", 3.0)


def of_a_metaclass(change: Callable[[Any], Any], **own: Any) -> Case:
    meta = type("Meta", (type,), own)
    return of(meta("Of", (), {}), lambda x, h: x * h.b, lambda h: change(type(h)))


def of_a_metaclass_s_class() -> Case:
    return of(type("Meta", (type,), {"b": 2.0})("Of", (), {}), lambda x, h: x * h.b, lambda h: setattr(h, "b", 3.0))


def of_a_module() -> Case:
    module = types.ModuleType("of")
    vars(module)["b_b"] = 2.0
    return of(module, lambda x, h: x * getattr(h, f"{NAME}_{NAME}"), lambda h: setattr(h, "b_b", 3.0))


def of_a_keyword(change: Callable[[Any], Any]) -> Case:
    def function(x: Any, *, b: float = 2.0) -> Any:
        return x * b

    return function, lambda: change(function)


HOLDERS: dict[str, Callable[[], Case]] = {
    "dict.__getitem__ as __getattr__": lambda: of(Attributes(b=2.0), lambda x, h: x * h.b, lambda h: h.update(b=3.0)),
    "its own __dict__": lambda: of(Itself(b=2.0), lambda x, h: x * h.b, lambda h: h.update(b=3.0)),
    "__getattr__": lambda: of(Looked(b=2.0), lambda x, h: x * h.b, lambda h: setattr(h, "b", 3.0)),
    "UserDict": lambda: of(collections.UserDict(b=2.0), lambda x, h: x * h["b"], lambda h: h.update(b=3.0)),
    "UserList": lambda: of(collections.UserList([2.0]), lambda x, h: x * h[0], lambda h: h.__setitem__(0, 3.0)),
    "ChainMap": lambda: of(collections.ChainMap({}, {"b": 2.0}), lambda x, h: x * h["b"], lambda h: h.update(b=3.0)),
    "ChainMap's last": lambda: of(
        collections.ChainMap({}, {"b": 2.0}), lambda x, h: x * h["b"], lambda h: h.maps[1].update(b=3.0)
    ),
    "ConfigParser": of_a_parser,
    "function's attribute": of_a_function,
    "function's default": of_a_default,
    "function's code": of_code,
    "partial": by_a_partial,
    "itemgetter": by_itemgetter,
    "attrgetter": by_attrgetter,
    "methodcaller": by_methodcaller,
    "attrgetter made within": lambda: of(
        Thing(), lambda x, h: x * operator.attrgetter("b")(h), lambda h: setattr(h, "b", 3.0)
    ),
    "attrgetter with dots": lambda: of(
        types.SimpleNamespace(n=Thing()), lambda x, h: x * operator.attrgetter("n.b")(h), lambda h: setattr(h.n, "b", 3.0)
    ),
    "attrgetter of a class by another name": lambda: of(
        type("Of", (), {"b": 2.0}), lambda x, h: x * GETTER("b")(h), lambda h: setattr(h, "b", 3.0)
    ),
    "keyword default": lambda: of_a_keyword(lambda f: setattr(f, "__kwdefaults__", {"b": 3.0})),
    "keyword default in place": lambda: of_a_keyword(lambda f: f.__kwdefaults__.update(b=3.0)),
    "metaclass": lambda: of_a_metaclass(lambda m: setattr(m, "b", 3.0), b=2.0),
    "metaclass's property": lambda: of_a_metaclass(lambda m: setattr(m, "c", 3.0), b=property(lambda c: c.c), c=2.0),
    "metaclass's __getattr__": lambda: of_a_metaclass(
        lambda m: setattr(m, "c", 3.0), __getattr__=lambda c, name: c.c, c=2.0
    ),
    "class over its metaclass": of_a_metaclass_s_class,
    "get": lambda: by_a_kept("get"),
    "__getitem__": lambda: by_a_kept("__getitem__"),
    "a text": lambda: of({"b": 2.0}, lambda x, h: x * float("%(b)s" % h), lambda h: h.update(b=3.0)),  # noqa: UP031
    "format_map": lambda: of({"b": 2.0}, lambda x, h: x * float("{b}".format_map(h)), lambda h: h.update(b=3.0)),
    "ContextVar": lambda: ((lambda x: x * VARIABLE.get()), lambda: VARIABLE.set(3.0)),
    "threading.local": of_a_thread,
    "weakref.ref": lambda: of_a_proxy(weakref.ref),
    "weakref.proxy": lambda: of_a_proxy(weakref.proxy),
    "objects in an array of NumPy": lambda: of(
        np.array([Thing(), None], object), lambda x, h: x * h[0].b, lambda h: setattr(h[0], "b", 3.0)
    ),
    "objects in a set": lambda: of(
        {Thing()}, lambda x, h: x * sum(t.b for t in h), lambda h: setattr(next(iter(h)), "b", 3.0)
    ),
    "array": lambda: of(array.array("f", [2.0]), lambda x, h: x * h[0], lambda h: h.__setitem__(0, 3.0)),
    "memoryview": of_memory,
    "bytearray": lambda: of(bytearray(b"\2"), lambda x, h: x * h[0], lambda h: h.__setitem__(0, 3)),
    "ctypes": lambda: of(ctypes.c_float(2.0), lambda x, h: x * h.value, lambda h: setattr(h, "value", 3.0)),
    "ctypes.Structure": lambda: of(Buffer(2.0), lambda x, h: x * h.b, lambda h: setattr(h, "b", 3.0)),
    "globals()": lambda: ((lambda x: x * globals()["KEPT"]["b"]), lambda: globals().__setitem__("KEPT", {"b": 3.0})),
    "globals() by a computed name": of_a_computed_global,
    "a builtin's name": of_a_builtin,
    "__class__": lambda: of(Thing(), lambda x, h: h(x), lambda h: setattr(h, "__class__", Other)),
    "__dict__": lambda: of(Thing(), lambda x, h: h(x), lambda h: setattr(h, "__dict__", {"b": 3.0})),
    "attribute over a method": lambda: of(
        Thing(), lambda x, h: x * h.times(), lambda h: setattr(h, "times", lambda: 3.0)
    ),
    "attribute over a list": lambda: of(Thing(), lambda x, h: x * h.table[0], lambda h: setattr(h, "table", [3.0])),
    "attribute over a number": lambda: of(Thing(), lambda x, h: x * h.fixed, lambda h: setattr(h, "fixed", 3.0)),
    "key that was missing": lambda: of({}, lambda x, h: or_else(x, lambda: h["b"]), lambda h: h.update(b=3.0)),
    "attribute that was missing": lambda: of(
        types.SimpleNamespace(), lambda x, h: or_else(x, lambda: h.gain), lambda h: setattr(h, "gain", 3.0)
    ),
    "variable that was missing": lambda: of_a_global("LATER_37"),
    "defaultdict": lambda: of(
        collections.defaultdict(lambda: 2.0), lambda x, h: x * h["b"], lambda h: h.update(b=3.0)
    ),
    "setdefault": lambda: of({}, lambda x, h: x * h.setdefault("b", 2.0), lambda h: h.update(b=3.0)),
    "Counter": lambda: of(collections.Counter(), lambda x, h: x * h["b"], lambda h: h.update(b=3)),
    "getattr": lambda: of(Thing(), lambda x, h: x * getattr(h, "b"), lambda h: setattr(h, "b", 3.0)),  # noqa: B009
    "getattr of a variable": lambda: of(
        types.SimpleNamespace(key="b", b=2.0), lambda x, h: x * getattr(h, h.key), lambda h: setattr(h, "b", 3.0)
    ),
    "getattr of a class by a variable": lambda: of(
        type("Of", (), {"b": 2.0}), lambda x, h: x * getattr(h, NAME), lambda h: setattr(h, "b", 3.0)
    ),
    "getattr of a module by a computed name": of_a_module,
    "getattr by another name": lambda: of(Thing(), lambda x, h: x * BY_NAME(h, "b"), lambda h: setattr(h, "b", 3.0)),
    "attribute of a class": lambda: of(
        type("Empty", (), {}), lambda x, h: x * getattr(h, "gain", 2.0), lambda h: setattr(h, "gain", 3.0)
    ),
    "attribute of a module": lambda: of(
        types.ModuleType("empty"), lambda x, h: x * getattr(h, "gain", 2.0), lambda h: setattr(h, "gain", 3.0)
    ),
    "getattr with a default": lambda: of(
        types.SimpleNamespace(key="b"), lambda x, h: x * getattr(h, h.key, 2.0), lambda h: setattr(h, "b", 3.0)
    ),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", HOLDERS)
def test_a_value_in_any_holder_is_that_of_each_run(name: str) -> None:
    function, change = HOLDERS[name]()
    program = times(function)
    before = function(sg.tensor(X)).numpy()
    np.testing.assert_array_equal(program(X), before)
    change()
    expected = function(sg.tensor(X)).numpy()
    assert not np.array_equal(before, expected)
    np.testing.assert_array_equal(program(X), expected)


def test_a_call_method_that_a_class_gets_later_is_the_one_that_runs() -> None:
    class Scaled:
        def __call__(self, x: Any) -> Any:
            return x * 2

    scaled = Scaled()
    program = times(scaled)
    Scaled.__call__ = lambda self, x: x * 3  # pyright: ignore[reportAttributeAccessIssue]
    np.testing.assert_array_equal(program(X), X * 3)


def test_what_an_own_op_takes_from_outside_is_that_of_each_run() -> None:
    cfg = {"gain": 2.0}
    gained = sg.op("gained_37", lambda x: x * cfg["gain"])
    program = times(lambda x: gained(x) + 1)
    for cfg["gain"] in (2.0, 3.0, 2.0):
        np.testing.assert_array_equal(gained(sg.tensor(X)).numpy(), X * cfg["gain"])
        np.testing.assert_array_equal(program(X), X * cfg["gain"] + 1)


def test_getattr_of_a_constant_name_reads_that_attribute_alone() -> None:
    holder = types.SimpleNamespace(scale=2.0, images=np.zeros(20 << 20, np.float32), batches=iter([1]))
    program = times(lambda x: x * getattr(holder, "scale", 1.0))
    holder.images = None
    np.testing.assert_array_equal(program(X), X * 2)
    with pytest.raises(sg.InputError, match=r"holder\.batches"):
        times(lambda x: x * next(getattr(holder, "batches")))  # noqa: B009


def test_arrays_that_are_too_large_to_compare_are_refused_by_name() -> None:
    images = np.zeros(17 << 20, np.float32)
    with pytest.raises(sg.InputError, match=r"images, and with it more than 64 MB"):
        times(lambda x: x * images[0])
    images.setflags(write=False)
    np.testing.assert_array_equal(times(lambda x: x * images[0])(X), X * 0)


@pytest.mark.slow
def test_of_a_large_container_what_is_read_is_observed() -> None:
    pairs = [(k, 1.0) for k in range(20_000)]
    table = dict.fromkeys(range(200_000), 2.0)
    program = times(lambda x: x * len(pairs) + pairs[-1][1] + table[5])
    for _ in range(2):
        np.testing.assert_array_equal(program(X), X * len(pairs) + pairs[-1][1] + table[5])
        pairs.append((0, 5.0))
        table[5] += 1
    with pytest.raises(sg.InputError, match=r"more than 10000 values"):
        times(lambda x: x * sum(p[1] for p in pairs))


def test_pointers_are_refused() -> None:
    pointer = ctypes.pointer(ctypes.c_float(2.0))
    with pytest.raises(sg.InputError, match="pointer of ctypes"):
        times(lambda x: x * pointer[0])


def test_lists_in_lists_without_end_are_refused() -> None:
    held: Any = [2.0]
    for _ in range(2_000):
        held = [held]
    with pytest.raises(sg.InputError, match="too deep"):
        times(lambda x: x * len(held))
