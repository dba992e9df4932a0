"""`dataclass`, as in Python, but a class costs next to nothing when it is defined: Python takes half a millisecond for each.

The fields of a class are collected when it makes its first object; then `__init__` is compiled, and the other methods are closures over the
names of its fields. Python's own records of a class are made once something asks for them, as `fields` and `replace` do, or a class that
derives from it. Classes of either decorator derive from those of the other.
"""

from __future__ import annotations

from _thread import RLock
from dataclasses import MISSING, Field, FrozenInstanceError, field, fields
from dataclasses import dataclass as _recorded
from operator import attrgetter
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from dataclasses import dataclass as dataclass  # noqa: PLC0414 (for others)
else:

    def dataclass(cls=None, /, *, frozen=False, eq=True, repr=True, kw_only=False):
        if cls is None:
            return lambda cls: dataclass(cls, frozen=frozen, eq=eq, repr=repr, kw_only=kw_only)
        own = {name for name, value in vars(cls).items() if (name, value) != ("__hash__", None)}
        cls.__doc__ = cls.__doc__ or cls.__name__  # Python would write one, from the signature
        late = _Late(cls, frozen, kw_only)
        methods = {"__init__": _LateInit(late)}
        for name in _RECORDS:
            methods[name] = _LateRecord(late, name)
        if repr:
            methods["__repr__"] = late.repr_method
        if eq:
            methods["__eq__"] = late.waiting("__eq__", own)
            methods["__hash__"] = late.waiting("__hash__", own) if frozen else None
        if frozen:
            methods |= _guarding(late)
        for name in methods.keys() - own:
            setattr(cls, name, methods[name])
        return cls


_RECORDS = ("__dataclass_fields__", "__dataclass_params__", "__match_args__")
_SPECIAL = ("ClassVar", "InitVar", "KW_ONLY")
"""What an annotation names that is of no field, or of no plain one."""
_lock = RLock()


class _Late:
    """A class whose fields are not collected yet."""

    def __init__(self, cls: Any, frozen: bool, kw_only: bool) -> None:
        self.cls = cls
        self.frozen = frozen
        self._kw_only = kw_only
        self._is_recorded = False
        self._fields: Sequence[Field[Any]] | None = None
        # Meanwhile the class has what it has afterwards, too: the defaults.
        self._given = {name: value for name, value in vars(cls).items() if isinstance(value, Field)}
        for name, value in self._given.items():
            if value.default is MISSING:
                delattr(cls, name)
            else:
                setattr(cls, name, value.default)

    @property
    def fields(self) -> Sequence[Field[Any]]:
        if self._fields is None:
            self._fields = self._collected()
        return self._fields

    def _collected(self) -> Sequence[Field[Any]]:
        texts = vars(self.cls).get("__annotations__", {})
        plain = all(isinstance(text, str) and not any(word in text for word in _SPECIAL) for text in texts.values())
        if not plain or self.cls.__mro__[1:] != (object,):
            self.record()
            return fields(self.cls)
        found: list[Field[Any]] = []
        for name in texts:
            made = self._given.get(name) or field(default=vars(self.cls).get(name, MISSING))
            made.name = name
            if made.kw_only is MISSING:
                made.kw_only = self._kw_only
            found.append(made)
        return found

    def record(self) -> None:
        """Have Python collect the fields, if that is not done."""
        with _lock:
            if self._is_recorded:
                return
            cls = self.cls
            for name, value in self._given.items():
                setattr(cls, name, value)
            # Python compiles two methods of a class that it calls frozen, and derives none that is not from one that is.
            params = [p for p in (getattr(c, "__dataclass_params__", None) for c in cls.__mro__[1:]) if p and p.frozen]
            for p in params:
                p.frozen = False
            try:
                _recorded(cls, init=False, repr=False, eq=False, kw_only=self._kw_only, match_args=False)
            finally:
                for p in params:
                    p.frozen = True
            cls.__dataclass_params__.frozen = self.frozen
            if isinstance(vars(cls)["__match_args__"], _LateRecord):
                cls.__match_args__ = tuple(f.name for f in fields(cls) if f.init and not f.kw_only)
            self._is_recorded = True

    def waiting(self, name: str, own: set[str]) -> Callable[..., Any]:
        """A method that collects the fields, by which others come in its place, and calls the one of its name. own: what the class
        defines."""

        def method(instance: object, *others: object) -> Any:
            for other, function in _comparing(self).items():
                if other not in own:
                    setattr(self.cls, other, function)
            return vars(self.cls)[name](instance, *others)

        return method

    @property
    def repr_method(self) -> Callable[[Any], str]:
        @recursive_repr()
        def __repr__(instance: Any) -> str:
            shown = (f"{f.name}={getattr(instance, f.name)!r}" for f in self._all(instance) if f.repr)
            return f"{type(instance).__qualname__}({', '.join(shown)})"

        return __repr__

    def _all(self, instance: Any) -> Sequence[Field[Any]]:
        """The fields of an object, which may be of a class that derives from this one."""
        return self.fields if type(instance) is self.cls else fields(instance)


class _LateRecord:
    """What Python records of a class, which then takes this object's place."""

    def __init__(self, late: _Late, name: str) -> None:
        self._late = late
        self._name = name

    def __get__(self, instance: object | None, _: type | None = None) -> Any:
        self._late.record()
        return vars(self._late.cls)[self._name]


class _LateInit:
    """The `__init__` of a class, which is compiled, and takes this object's place, once it is asked for."""

    def __init__(self, late: _Late) -> None:
        self._late = late

    def __get__(self, instance: object | None, _: type | None = None) -> Any:
        function = _init(self._late)
        setattr(self._late.cls, "__init__", function)  # noqa: B010 (on a class, pyright forbids the assignment)
        return function if instance is None else function.__get__(instance)


def _init(late: _Late) -> Callable[..., None]:
    """What Python compiles too: a function with a parameter for each field."""
    cls = late.cls
    # The name of its module tells a function from those of users.
    known: dict[str, Any] = {"__name__": cls.__module__, "_put": object.__setattr__, "_UNSET": _UNSET}
    parameters: list[str] = []
    named: list[str] = []
    lines: list[str] = []
    for f in late.fields:
        value = f.name
        if f.default is not MISSING:
            known[f"_of_{f.name}"] = f.default
            value = f"{f.name}=_of_{f.name}"
        elif f.default_factory is not MISSING:
            known[f"_of_{f.name}"] = f.default_factory
            value = f"{f.name}=_UNSET"
            lines.append(f"if {f.name} is _UNSET: {f.name} = _of_{f.name}()")
        (named if f.kw_only else parameters).append(value)
        lines.append(f"_put(self, {f.name!r}, {f.name})" if late.frozen else f"self.{f.name} = {f.name}")
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


def _comparing(late: _Late) -> dict[str, Any]:
    """Equality of two objects of one class, and a hash of those that never change."""
    compared = _values([f.name for f in late.fields if f.compare])
    hashed = _values([f.name for f in late.fields if (f.compare if f.hash is None else f.hash)])

    def equal(self: object, other: object) -> bool:
        return compared(self) == compared(other) if other.__class__ is self.__class__ else NotImplemented

    def hash_(self: object) -> int:
        return hash(hashed(self))

    return {"__eq__": equal, "__hash__": hash_ if late.frozen else None}


def _values(names: Sequence[str]) -> Callable[[object], Any]:
    """The values of these attributes."""
    return attrgetter(*names) if names else lambda _: ()


def _guarding(late: _Late) -> dict[str, Any]:
    """Methods that refuse to change a field."""
    cls = late.cls

    def is_field(instance: object, name: str) -> bool:
        return type(instance) is cls or any(f.name == name for f in late.fields)

    def set_(self: object, name: str, value: object) -> None:
        if is_field(self, name):
            raise FrozenInstanceError(f"cannot assign to field {name!r}")
        super(cls, self).__setattr__(name, value)

    def delete(self: object, name: str) -> None:
        if is_field(self, name):
            raise FrozenInstanceError(f"cannot delete field {name!r}")
        super(cls, self).__delattr__(name)

    return {"__setattr__": set_, "__delattr__": delete}
