"""Expressions as instruction trees: scalar or four lanes wide, with explicit addresses and the loop level of each tree.

`lane` is the loop variable that runs in steps of four. Expressions that depend on it (or on an accumulator declared as a
vector) become a v128; all others stay scalar and are splat where vectors need them. A shift moves loop variables by
constants, ((var, amount), …): rows of a tile and unrolled vectors are one expression under different shifts, and a shift
in a linear index is a constant offset of the memory instruction. `other` is a loop variable that runs in blocks: what the
lanes would gather is loaded along it instead, and transposed (transposed.py).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Final, Self, TypeAlias

from singe.extension import Dim, Expr, Port, Size, affine, bool_, divides, float32, int32

from ..code import encode, simd
from ..code.encode import Body, Spelling, f32x4, get_local, i32, i32x4, ops
from ..code.values import I32, Value
from ..code.writer import EFFECT, Tree
from . import memory

Shift: TypeAlias = tuple[tuple[Expr, int], ...]


def lane_step(index: Expr, lane: Expr, varies: Callable[[Expr], bool]) -> Dim | None:
    """The distance between the elements of neighbouring lanes; None if they are not evenly spaced.

    Vectors always start at a multiple of four, so division by a multiple of four gives all four lanes the same result.
    """
    step: Dim = 0
    for atom, factor in affine.linear(index)[0].items():
        if atom is lane or (atom.word == "rem" and _fours(atom, lane)):
            step = step + factor
        elif varies(atom) and not _together(atom, lane, varies):
            return None
    return step


def _fours(e: Expr, lane: Expr) -> bool:
    """Whether the expression divides the lane variable by a multiple of four."""
    by = e.args[1]
    return e.args[0] is lane and by.word == "const" and by.value > 0 and by.value % 4 == 0


def _together(e: Expr, lane: Expr, varies: Callable[[Expr], bool]) -> bool:
    """Whether an expression that contains the lane variable is nevertheless equal in all four lanes."""
    if e.word == "div" and e.dtype is int32 and _fours(e, lane):
        return True
    return bool(e.args) and e.word != "load" and all(not varies(a) or _together(a, lane, varies) for a in e.args)


class SizeParameters(tuple[Dim, ...]):
    """The sizes that a function takes as parameters. Code that needs others is only a draft: it must be written again with
    those in `lacking` as parameters too, which are all that it needed."""

    lacking: dict[Dim, None]

    def __new__(cls, sizes: Iterable[Dim]) -> Self:
        made = super().__new__(cls, sizes)
        made.lacking = {}
        return made


class Lowering:
    """Lowers Exprs to Trees for one function, whose parameters thread_shares.py lists."""

    def __init__(
        self, ports: Sequence[Port], sizes: SizeParameters, scratch: bool = False, lane: Expr | None = None,
        other: Expr | None = None,
    ) -> None:  # fmt: skip
        self.ports: Final = tuple(ports)
        self.lane = lane
        self.other: Final = other
        self._first_size: Final = len(ports) + scratch
        self._sizes: Final = {d: self._first_size + i for i, d in enumerate(sizes)}
        self._lacking: Final = sizes.lacking
        last = self._first_size + len(sizes)
        self.part, self.parts = I32(number=last), I32(number=last + 1)
        self._values: dict[tuple[Expr, Shift, bool], Tree] = {}
        self._varying: set[Expr] = set()
        self._leaves: dict[Expr, frozenset[Expr]] = {}
        self._done: dict[tuple[Expr, Shift, int], Tree] = {}
        self._addresses: dict[tuple[int, Expr, Shift], tuple[Tree, int]] = {}
        self._blocks: dict[tuple[Expr, Shift], Sequence[Tree]] = {}
        self._stores: dict[tuple[int, Expr, Expr, Shift, int], Tree] = {}
        self._shared: dict[tuple[object, ...], Tree] = {}

    # --- declarations by templates

    def variable(self, var: Expr, local: I32, level: int) -> None:
        """A loop variable or other scalar that a local holds once `level` loops are open."""
        if var.word == "var":
            self._values[var, (), False] = _of_local(local, level)

    def accumulator(self, var: Expr, local: Value, level: int, shift: Shift = ()) -> None:
        """The local of an accumulator under a shift; it depends on every variable of the shift."""
        vector = local.kind == "v128"
        if vector:
            self._varying.add(var)
        self._values[var, shift, vector] = _of_local(local, level)

    # --- queries

    def leaves(self, e: Expr) -> frozenset[Expr]:
        """The variables below an expression."""
        found = self._leaves.get(e)
        if found is None:
            found = frozenset((e,)) if e.word == "var" else frozenset().union(*map(self.leaves, e.args))
            self._leaves[e] = found
        return found

    def varies(self, e: Expr) -> bool:
        """Whether lanes differ in it."""
        leaves = self.leaves(e)
        return self.lane in leaves or not self._varying.isdisjoint(leaves)

    def _relevant(self, e: Expr, shift: Shift) -> Shift:
        if not shift:
            return shift
        leaves = self.leaves(e)
        if not self._varying.isdisjoint(leaves):
            return shift
        return tuple([p for p in shift if p[0] in leaves])

    # --- sizes

    def dim(self, dim: Dim) -> Tree:
        """A dimension as an i32."""
        return self._share(
            ("dim", dim), lambda: Tree(self.size(dim).push, (), "i32", 0, isinstance(dim, int) or dim in self._sizes)
        )

    def size(self, dim: Dim) -> I32:
        """A dimension as a Value. What no parameter gives is noted as lacking; any value will do then."""
        if isinstance(dim, int):
            return I32.of(dim)
        if dim in self._sizes:
            return I32(number=self._sizes[dim])
        for known, number in self._sizes.items():
            if isinstance(known, Size) and divides(dim, known) and isinstance(factor := dim // known, int):
                return I32(number=number) * factor
        if not any(divides(dim, other) and isinstance(dim // other, int) for other in self._lacking):
            self._lacking[dim] = None
        return self.part

    def _share(self, key: tuple[object, ...], build: Callable[[], Tree]) -> Tree:
        found = self._shared.get(key)
        if found is None:
            found = self._shared[key] = build()
        return found

    def _binary(self, op: str, a: Tree, b: Tree) -> Tree:
        return self._share((op, a, b), lambda: Tree(ops(op), (a, b), "i32", max(a.level, b.level)))

    # --- addresses

    def address(self, port: int, index: Expr, shift: Shift = ()) -> tuple[Tree, int]:
        """The address of an element as (node, constant offset); the port after the last is scratch, of float32."""
        shift = self._relevant(index, shift)
        found = self._addresses.get((port, index, shift))
        if found is None:
            found = self._addresses[port, index, shift] = self._address(port, index, shift)
        return found

    def pointer(self, port: int) -> Tree:
        """The address of a port's first element."""
        return self._share(("port", port), lambda: Tree(get_local(port), (), "i32", 0, trivial=True))

    def scratch(self, at: Dim) -> Tree:
        """An address in the scratch port."""
        return (
            self.pointer(len(self.ports))
            if at == 0
            else self._binary("i32.add", self.pointer(len(self.ports)), self.dim(at))
        )

    def forget(self) -> None:
        """Drop all lowered expressions, before variables are declared again."""
        self._done.clear()
        self._addresses.clear()
        self._blocks.clear()
        self._stores.clear()

    def _address(self, port: int, index: Expr, shift: Shift) -> tuple[Tree, int]:
        size = float32.size if port == len(self.ports) else self.ports[port].dtype.size
        terms, constant = affine.linear(index)
        moved = dict(shift)
        parts: list[tuple[int, Tree, Dim]] = []
        positive = True
        for atom, factor in terms.items():
            if atom.word == "var":
                constant = constant + factor * moved.get(atom, 0)
                value = self._values[atom, (), False]
            else:
                value = self.scalar(atom, shift)
                positive = positive and (low := affine.bounds(atom)[0]) is not None and affine.at_least(low, 0)
            positive = positive and affine.at_least(factor, 0)
            parts.append((value.level, value, factor * size))
        total = self.pointer(port)
        offset = 0
        if isinstance(constant, int) and positive and 0 <= constant * size < 1 << 30:
            offset = constant * size
        elif constant != 0:
            total = self._binary("i32.add", total, self.dim(constant * size))
        for _, value, factor in sorted(parts, key=lambda p: p[0]):
            total = self._binary(
                "i32.add", total, value if factor == 1 else self._binary("i32.mul", value, self.dim(factor))
            )
        return total, offset

    def tree(self, e: Expr, shift: Shift, vectors: int) -> Tree:
        """The expression in the four lanes of one of so many vectors beside each other; 0: as one value."""
        return self.vector(e, shift, vectors) if vectors else self.scalar(e, shift)

    # --- scalars

    def scalar(self, e: Expr, shift: Shift = ()) -> Tree:
        """The expression as one value: that of the first lane, if lanes differ."""
        shift = self._relevant(e, shift)
        key = (e, shift, 0)
        found = self._done.get(key)
        if found is None:
            found = self._done[key] = self._scalar(e, shift)
        return found

    def _scalar(self, e: Expr, shift: Shift) -> Tree:
        kind = simd.VALUE[e.dtype]
        if e.word == "const":
            return Tree(_constant(e), (), kind, 0, trivial=True)
        if e.word == "size":
            return self.dim(e.value)
        if e.word == "var":
            if (e, shift, False) in self._values:
                return self._values[e, shift, False]
            return self._binary("i32.add", self._values[e, (), False], self.dim(dict(shift)[e]))
        if e.word == "load":
            address, offset = self.address(e.value, e.args[0], shift)
            return Tree(memory.load(self.ports[e.value].dtype, offset), (address,), kind, address.level)
        if (step := _step_of_polynomial(e)) is not None:
            args = tuple([self.scalar(a, shift) for a in step])
            return Tree(partial(Body.multiply_then_add, vector=False), args, kind, max(a.level for a in args))
        args = tuple([self.scalar(a, shift) for a in e.args])
        if e.word == "select":
            args = (args[1], args[2], args[0])
        return Tree(_scalar_spelling(e), args, kind, max(a.level for a in args))

    # --- vectors

    def vector(self, e: Expr, shift: Shift = (), vectors: int = 1) -> Tree:
        """The expression in four lanes. vectors: how many beside each other a turn of the loop of lanes takes."""
        shift = self._relevant(e, shift)
        key = (e, shift, vectors)
        found = self._done.get(key)
        if found is None:
            found = self._done[key] = self._vector(e, shift, vectors) if self.varies(e) else self._splat(e, shift)
        return found

    def _splat(self, e: Expr, shift: Shift) -> Tree:
        if e.word == "const":
            return Tree(
                f32x4(e.value) if e.dtype is float32 else i32x4(-int(e.value) if e.dtype is bool_ else e.value),
                (),
                "v128",
                0,
            )
        if e.word == "load" and self.ports[e.value].dtype is float32:
            address, offset = self.address(e.value, e.args[0], shift)
            return Tree(encode.memory("v128.load32_splat", offset), (address,), "v128", address.level)
        one = self.scalar(e, shift)
        return Tree(simd.SPLAT[e.dtype], (one,), "v128", one.level)

    def _vector(self, e: Expr, shift: Shift, vectors: int) -> Tree:
        if e.word == "var":
            if e is not self.lane:
                return self._values[e, shift, True]
            first = self.scalar(e, shift)
            return Tree(ops("i32x4.splat") + i32x4(0, 1, 2, 3) + ops("i32x4.add"), (first,), "v128", first.level)
        if e.word == "load":
            return self._vector_load(e, shift, vectors)
        if e.word in ("shl", "shr") and not self.varies(e.args[1]):
            args = (self.vector(e.args[0], shift, vectors), self.scalar(e.args[1], shift))
            return Tree(simd.SHIFT_BY_ONE_AMOUNT[e.word, e.dtype], args, "v128", max(a.level for a in args))
        if e.word == "select":
            condition, a, b = e.args
            uniform = not self.varies(condition)
            args = (
                self.vector(a, shift, vectors),
                self.vector(b, shift, vectors),
                self.scalar(condition, shift) if uniform else self.vector(condition, shift, vectors),
            )
            code: Spelling = ops("select.v128") if uniform else simd.VECTOR["select"][e.dtype]
            return Tree(code, args, "v128", max(x.level for x in args))
        if (step := _step_of_polynomial(e)) is not None:
            args = tuple([self.vector(a, shift, vectors) for a in step])
            return Tree(Body.multiply_then_add, args, "v128", max(a.level for a in args))
        args = tuple([self.vector(a, shift, vectors) for a in e.args])
        return Tree(_vector_spelling(e), args, "v128", max([a.level for a in args]))

    def _vector_load(self, e: Expr, shift: Shift, vectors: int) -> Tree:
        assert self.lane is not None
        stored = self.ports[e.value].dtype
        step = lane_step(e.args[0], self.lane, self.varies)
        if step is None:
            return self._looked_up(e, shift, vectors)
        assert isinstance(step, int)
        if self.other is not None and step and not memory.is_near(stored, step):
            along = dict(shift).get(self.other, 0)
            return self._transposed(e, tuple(p for p in shift if p[0] is not self.other), along - along % 4)[along % 4]
        if step == 1 and stored in memory.SIGN_OF_BYTES:
            place = dict(shift).get(self.lane, 0)
            first = place - place % 16
            if place % 4 == 0 and first + 16 <= 4 * vectors:
                return self._of_sixteen(e, shift, first)[place % 16 // 4]
        address, offset = self.address(e.value, e.args[0], shift)
        code = memory.load_lanes(stored, offset) if step == 1 else memory.gather(stored, offset, step)
        return Tree(code, (address,), "v128", address.level)

    def _of_sixteen(self, e: Expr, shift: Shift, first: int) -> Sequence[Tree]:
        """What four vectors beside each other load, from a place of the lane on, whose elements are bytes: one load."""
        assert self.lane is not None
        shift = (*(p for p in shift if p[0] is not self.lane), *(((self.lane, first),) if first else ()))
        if (e, shift) not in self._blocks:
            stored = self.ports[e.value].dtype
            address, offset = self.address(e.value, e.args[0], shift)
            whole = Tree(encode.memory("v128.load", offset), (address,), "v128", address.level)
            parts = [
                Tree(ops(f"i16x8.extend_{part}_i8x16_{memory.SIGN_OF_BYTES[stored]}"), (whole,), "v128", whole.level)
                for part in ("low", "high")
            ]
            self._blocks[e, shift] = [
                Tree(ops(f"i32x4.extend_{part}_i16x8_{memory.SIGN_OF_BYTES[stored]}"), (half,), "v128", half.level)
                for half in parts
                for part in ("low", "high")
            ]
        return self._blocks[e, shift]

    def _looked_up(self, e: Expr, shift: Shift, vectors: int) -> Tree:
        """A load at an index that each lane has computed."""
        stored = self.ports[e.value].dtype
        terms, constant = affine.linear(e.args[0])
        own = {atom: factor for atom, factor in terms.items() if self.varies(atom)}
        common = {atom: factor for atom, factor in terms.items() if atom not in own}
        address, _ = self.address(e.value, affine.from_linear(common, 0), shift)
        places = self.vector(affine.from_linear(own, constant), shift, vectors)  # may be negative without the constant
        return Tree(memory.look_up(stored), (address, places), "v128", max(address.level, places.level))

    def _transposed(self, e: Expr, shift: Shift, along: int) -> Sequence[Tree]:
        """What four turns of the other loop, from `along` on, load in their lanes."""
        assert self.lane is not None
        assert self.other is not None
        shift = (*shift, (self.other, along))
        if (e, shift) not in self._blocks:
            first, stored = dict(shift).get(self.lane, 0), self.ports[e.value].dtype
            rest = tuple(p for p in shift if p[0] is not self.lane)
            lines = []
            for number in range(4):
                address, offset = self.address(e.value, e.args[0], (*rest, (self.lane, first + number)))
                lines.append(Tree(memory.load_lanes(stored, offset), (address,), "v128", address.level))
            low, high = (
                [_shuffled(a, b, *lanes) for a, b in (lines[:2], lines[2:])] for lanes in ((0, 4, 1, 5), (2, 6, 3, 7))
            )
            self._blocks[e, shift] = [
                _shuffled(a, b, *lanes) for a, b in (low, high) for lanes in ((0, 1, 4, 5), (2, 3, 6, 7))
            ]
        return self._blocks[e, shift]

    # --- stores

    def store(self, port: int, index: Expr, value: Expr, shift: Shift = (), vectors: int = 0) -> Tree:
        """A write; the node leaves nothing on the stack."""
        key = (port, index, value, shift, vectors)
        found = self._stores.get(key)
        if found is None:
            found = self._stores[key] = self._store(port, index, value, shift, vectors)
        else:
            for a in found.args:  # as if there were another node
                a.uses += 1
        return found

    def _store(self, port: int, index: Expr, value: Expr, shift: Shift, vectors: int) -> Tree:
        address, offset = self.address(port, index, shift)
        stored = self.ports[port].dtype
        if not vectors:
            return Tree(memory.store(stored, offset), (address, self.scalar(value, shift)), "i32", EFFECT)
        assert self.lane is not None
        step = lane_step(index, self.lane, self.varies)
        assert isinstance(step, int)
        code = memory.store_lanes(stored, offset) if step == 1 else memory.scatter(stored, offset, step * stored.size)
        return Tree(code, (address, self.vector(value, shift, vectors)), "i32", EFFECT)


def _shuffled(a: Tree, b: Tree, *lanes: int) -> Tree:
    return Tree(encode.shuffle(*lanes), (a, b), "v128", max(a.level, b.level))


def _of_local(local: Value, level: int) -> Tree:
    assert local.number is not None
    return Tree(get_local(local.number), (), local.kind, level, trivial=True)


def _step_of_polynomial(e: Expr) -> tuple[Expr, Expr, Expr] | None:
    """a, b and c of a float32 e = a · b + c that is a step of a polynomial of b but its first: there c is a constant, and a such a step of
    b too, or its first. Other sums are rounded as they are written: places of pixels depend on it."""
    if e.word != "add" or e.dtype is not float32 or e.args[1].word != "const" or e.args[0].word != "mul":
        return None
    for a, b in (e.args[0].args, e.args[0].args[::-1]):
        if a.word == "add" and a.args[1].word == "const" and a.args[0].word == "mul" and b in a.args[0].args:
            return a, b, e.args[1]
    return None


def _constant(e: Expr) -> bytes:
    kind = simd.VALUE[e.dtype]
    if kind == "f32":
        return encode.f32(e.value)
    if kind == "f64":
        return encode.f64(e.value)
    return encode.i64(e.value) if kind == "i64" else i32(int(e.value))


def _scalar_spelling(e: Expr) -> Spelling:
    if e.word == "cast":
        return simd.CASTS[e.args[0].dtype, e.dtype]
    if e.word == "rounded":
        return simd.ROUNDINGS[e.value]
    if e.word in ("div", "rem") and e.dtype.is_int and e.args[1].word == "const" and e.args[1].value > 0:
        return ops(f"{simd.VALUE[e.dtype]}.{e.word}_{'s' if e.dtype.kind == 'int' else 'u'}")
    return simd.SCALAR[e.word][e.args[-1].dtype]


def _vector_spelling(e: Expr) -> Spelling:
    if e.word == "cast":
        return simd.VECTOR_CASTS[e.args[0].dtype, e.dtype]
    if e.word == "rounded":
        return simd.VECTOR_ROUNDINGS[e.value]
    if (
        e.word in simd.AGAINST_NUMBER
        and e.dtype is float32
        and e.args[1].word == "const"
        and not math.isnan(e.args[1].value)
    ):
        return simd.AGAINST_NUMBER[e.word]
    return simd.VECTOR[e.word][e.args[-1].dtype]
