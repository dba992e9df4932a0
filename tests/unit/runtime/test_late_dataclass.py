"""A late dataclass is like Python's: each property holds of both."""

from __future__ import annotations

import copy
import inspect
import pickle
from collections.abc import Callable
from dataclasses import FrozenInstanceError, dataclass, field, fields, replace
from typing import Any

import pytest

from singe import late_dataclass

Made = Callable[..., Any]


def declared(make: Made) -> tuple[type[Any], type[Any], type[Any]]:
    """A frozen class, one that derives from it, and one whose objects change."""

    @make(frozen=True)
    class Base:
        """A class."""

        x: int
        name: str = field(default="a", compare=False)
        parts: list[int] = field(default_factory=list, hash=False, repr=False)

    @make(frozen=True, kw_only=True)
    class Derived(Base):
        scale: float = 1.5

        def __post_init__(self) -> None:
            if self.scale < 0:
                raise ValueError("a negative scale")

    @make
    class Loose:
        x: int
        y: int = 2

    return Base, Derived, Loose


WAYS = pytest.mark.parametrize("make", [dataclass, late_dataclass.dataclass], ids=["python", "late"])


@WAYS
def test_objects_compare_by_their_fields(make: Made) -> None:
    base, derived, loose = declared(make)
    assert base(1) == base(1, "b")
    assert base(1) != base(2)
    assert base(1) != derived(1)
    assert hash(base(1, "a", [1])) == hash(base(1, "b", [2]))
    assert base(1, parts=[1]) != base(1, parts=[2])
    assert loose(1) == loose(1, 2)
    with pytest.raises(TypeError, match="unhashable"):
        hash(loose(1))


@WAYS
def test_frozen_objects_do_not_change(make: Made) -> None:
    base, derived, loose = declared(make)
    for made in (base(1), derived(1)):
        with pytest.raises(FrozenInstanceError, match="'x'"):
            made.x = 2
        with pytest.raises(FrozenInstanceError, match="'x'"):
            del made.x
    changed = loose(1)
    changed.x = 3
    assert changed == loose(3)


@WAYS
def test_arguments_defaults_and_checks(make: Made) -> None:
    base, derived, _ = declared(make)
    assert base(1).parts is not base(1).parts
    assert replace(derived(1, scale=2.0), x=5) == derived(5, scale=2.0)
    with pytest.raises(ValueError, match="a negative scale"):
        derived(1, scale=-1.0)
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'x'"):
        base()
    with pytest.raises(TypeError, match="unexpected keyword argument 'y'"):
        base(1, y=2)
    assert list(inspect.signature(derived).parameters) == ["x", "name", "parts", "scale"]
    assert [f.name for f in fields(derived)] == ["x", "name", "parts", "scale"]


@WAYS
def test_objects_are_told_and_copied(make: Made) -> None:
    base, _, loose = declared(make)
    assert repr(base(1)).endswith("Base(x=1, name='a')")
    held: Any = loose(1)
    held.y = held
    assert repr(held).endswith("Loose(x=1, y=...)")
    assert copy.deepcopy(base(1, "b", [3])) == base(1, "b", [3])
    assert loose.__match_args__ == ("x", "y")


@late_dataclass.dataclass(frozen=True)
class Pickled:
    x: int
    y: tuple[int, ...] = ()


def test_objects_are_pickled() -> None:
    assert pickle.loads(pickle.dumps(Pickled(1, (2, 3)))) == Pickled(1, (2, 3))


@WAYS
def test_a_class_that_made_no_object_is_like_one_that_did(make: Made) -> None:
    """Objects come without `__init__` when they are copied or unpickled."""

    def unpickled(kind: type[Any], **values: Any) -> Any:
        made = object.__new__(kind)
        made.__dict__.update(values)
        return made

    base, derived, loose = declared(make)
    assert (base.name, hasattr(base, "x"), hasattr(base, "parts"), loose.y) == ("a", False, False, 2)
    assert (base.__match_args__, derived.__match_args__) == (("x", "name", "parts"), ("x", "name", "parts"))
    one, other = unpickled(base, x=1, parts=[]), unpickled(base, x=1, parts=[])
    assert (one == other, hash(one) == hash(other)) == (True, True)
    assert repr(unpickled(loose, x=1, y=3)).endswith("Loose(x=1, y=3)")
    with pytest.raises(FrozenInstanceError, match="'x'"):
        one.x = 2
    assert replace(one, x=2) == base(2, parts=[])


def test_methods_of_a_class_stay() -> None:
    @late_dataclass.dataclass(frozen=True)
    class Own:
        x: int

        def __repr__(self) -> str:
            return "own"

        def __eq__(self, other: object) -> bool:
            return True

        def __hash__(self) -> int:
            return 7

    assert (repr(Own(1)), Own(1) == 3, hash(Own(1))) == ("own", True, 7)


@pytest.mark.parametrize(
    ("base", "derived"), [(dataclass, late_dataclass.dataclass), (late_dataclass.dataclass, dataclass)]
)
def test_either_kind_derives_from_the_other(base: Made, derived: Made) -> None:
    @base(frozen=True)
    class One:
        x: int

    @derived(frozen=True)
    class Two(One):
        y: int = 2

    made = Two(1)
    assert (made.x, made.y, made == Two(1), hash(made) == hash(Two(1))) == (1, 2, True, True)
    for name in ("x", "y"):
        with pytest.raises(FrozenInstanceError):
            setattr(made, name, 3)
