"""`dataclass`, as in Python, but its methods are not compiled when a class is defined, which takes half a millisecond a class.

`__init__` is compiled when a class makes its first object; the other methods are closures over the names of its fields. Classes of either
decorator derive from those of the other.
"""

from __future__ import annotations

from dataclasses import MISSING, FrozenInstanceError, fields
from operator import attrgetter
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from dataclasses import dataclass as dataclass  # noqa: PLC0414 (for others)
else:
    from dataclasses import dataclass as _collected

    def dataclass(cls=None, /, *, frozen=False, eq=True, repr=True, kw_only=False):
        if cls is None:
            return lambda cls: dataclass(cls, frozen=frozen, eq=eq, repr=repr, kw_only=kw_only)
        own = {name for name, value in vars(cls).items() if (name, value) != ("__hash__", None)}
        cls.__doc__ = cls.__doc__ or cls.__name__  # Python would write one, from the signature
        # Python compiles two methods of a class that it calls frozen, and derives none that is not from one that is.
        params = [p for p in (getattr(c, "__dataclass_params__", None) for c in cls.__mro__[1:]) if p and p.frozen]
        for p in params:
            p.frozen = False
        try:
            _collected(cls, init=False, repr=False, eq=False, kw_only=kw_only)
        finally:
            for p in params:
                p.frozen = True
        cls.__dataclass_params__.frozen = frozen
        methods = {"__init__": _LateInit(cls, frozen)}
        if repr:
            methods["__repr__"] = _repr
        if eq:
            methods |= _comparing(cls, frozen)
        if frozen:
            methods |= _guarding(cls)
        for name in methods.keys() - own:
            setattr(cls, name, methods[name])
        return cls


class _LateInit:
    """The `__init__` of a class, which is compiled, and takes this object's place, once it is asked for."""

    def __init__(self, owner: type, frozen: bool) -> None:
        self._owner = owner
        self._frozen = frozen

    def __get__(self, made: object | None, _: type | None = None) -> Any:
        function = _init(self._owner, self._frozen)
        setattr(self._owner, "__init__", function)  # noqa: B010 (on a class, pyright forbids the assignment)
        return function if made is None else function.__get__(made)


def _init(cls: Any, frozen: bool) -> Callable[..., None]:
    """What Python compiles too: a function with a parameter for each field."""
    # By the name of its module, a function is told from those of users.
    known: dict[str, Any] = {"__name__": cls.__module__, "_put": object.__setattr__, "_UNSET": _UNSET}
    parameters: list[str] = []
    named: list[str] = []
    lines: list[str] = []
    for f in fields(cls):
        value = f.name
        if f.default is not MISSING:
            known[f"_of_{f.name}"] = f.default
            value = f"{f.name}=_of_{f.name}"
        elif f.default_factory is not MISSING:
            known[f"_of_{f.name}"] = f.default_factory
            value = f"{f.name}=_UNSET"
            lines.append(f"if {f.name} is _UNSET: {f.name} = _of_{f.name}()")
        (named if f.kw_only else parameters).append(value)
        lines.append(f"_put(self, {f.name!r}, {f.name})" if frozen else f"self.{f.name} = {f.name}")
    if hasattr(cls, "__post_init__"):
        lines.append("self.__post_init__()")
    listed = ", ".join(["self", *parameters, *(["*", *named] if named else [])])
    exec(f"def __init__({listed}):\n " + "\n ".join(lines or ["pass"]), known)
    made = known["__init__"]
    made.__qualname__ = f"{cls.__qualname__}.__init__"
    return made


class _Unset:
    """A field that is not given."""

    def __repr__(self) -> str:
        return "<a new one>"


_UNSET = _Unset()


@recursive_repr()
def _repr(self: Any) -> str:
    told = (f"{f.name}={getattr(self, f.name)!r}" for f in fields(self) if f.repr)
    return f"{type(self).__qualname__}({', '.join(told)})"


def _comparing(cls: Any, frozen: bool) -> dict[str, Any]:
    """Equality of two objects of one class, and a hash of those that never change."""
    compared = _values([f.name for f in fields(cls) if f.compare])
    hashed = _values([f.name for f in fields(cls) if (f.compare if f.hash is None else f.hash)])

    def equal(self: object, other: object) -> bool:
        return compared(self) == compared(other) if other.__class__ is self.__class__ else NotImplemented

    def hash_(self: object) -> int:
        return hash(hashed(self))

    return {"__eq__": equal, "__hash__": hash_ if frozen else None}


def _values(names: Sequence[str]) -> Callable[[object], Any]:
    """The values of these attributes."""
    return attrgetter(*names) if names else lambda _: ()


def _guarding(cls: Any) -> dict[str, Any]:
    """Methods that refuse to change a field."""
    names = {f.name for f in fields(cls)}

    def set_(self: object, name: str, value: object) -> None:
        if type(self) is cls or name in names:
            raise FrozenInstanceError(f"cannot assign to field {name!r}")
        super(cls, self).__setattr__(name, value)

    def delete(self: object, name: str) -> None:
        if type(self) is cls or name in names:
            raise FrozenInstanceError(f"cannot delete field {name!r}")
        super(cls, self).__delattr__(name)

    return {"__setattr__": set_, "__delattr__": delete}
