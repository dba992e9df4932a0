"""How an operand's tile is loaded into workgroup memory: [depth][side], as vectors of four neighbouring sides.

The arrays are nested because shaders check each index: the check of a side is then done once for all depths.

Fetched  for operands that are quads: each invocation loads its share of the next tile into registers while the current
         tile is multiplied, and stores it to workgroup memory afterwards.
Filled   for other operands: element by element, once the tile is free.

Neighbouring invocations read along the axis that is contiguous in memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from ..code.wgsl import Statements
from .quads import PARTS, SIDE


@dataclass(frozen=True)
class Spot:
    """The tile that a feed fills, and where it reads."""

    name: str  # "a" or "b": selects load_a and tile_a, or load_b and tile_b
    side: int  # elements of the tile across the depth
    depth: int
    team: int  # invocations that share the work, numbered by `member`
    deep_first: bool  # which axis is contiguous
    vector: str  # the vectors' type
    batch: str  # the first arguments of the loads
    first: str  # index in the matrix of the tile's first side
    start: str  # where this team's part of the array begins
    split: bool  # whether the load takes the digits of its row too
    four: bool  # whether one load gives all four sides

    def loads(self, deep: str, vector: str, rows: str) -> list[str]:
        """The loads of the four sides of a vector of the tile. rows: the name of their digits, if they have any."""
        out: list[str] = []
        for i, side in enumerate([f"{self.first} / {SIDE}i + {vector}"] if self.four else self.sides(vector)):
            arguments = f"{side}, {deep}" if self.name == "a" else f"{deep}, {side}"
            more = f", {rows}[{i}]" if self.split else ""
            out.append(f"load_{self.name}({self.batch}{arguments}{more})")
        return out

    def put_rows(self, out: Statements, name: str, vector: str) -> None:
        """Bind a name to the digits of the four sides of a vector of the tile, if they have any."""
        if self.split:
            out.put(f"let {name} = rows_a({self.sides(vector)[0]});")

    def sides(self, vector: str) -> list[str]:
        """The indices in the matrix of the four sides of a vector of the tile."""
        first = f"{self.first} + {vector} * {SIDE}i"
        return [first, *(f"{first} + {i}i" for i in range(1, SIDE))]

    def place(self, deep: str, vector: str) -> str:
        return f"tile_{self.name}[{self.start}{deep}][{vector}]"


class Feed(Protocol):
    """See the module's docstring; base is the index in the matrix of the tile's first depth."""

    @property
    def spot(self) -> Spot: ...

    def prepare(self, out: Statements) -> None:
        """Before the loop over the depth."""
        ...

    def fetch(self, out: Statements, base: str) -> None:
        """Load what the next `put` writes."""
        ...

    def put(self, out: Statements, base: str) -> None:
        """Write the tile."""
        ...


@dataclass(frozen=True)
class Fetched:
    """For quads. A unit is one vector of four sides or, if the depth is contiguous, four sides by four depths."""

    spot: Spot

    @property
    def _units(self) -> int:
        s = self.spot
        return s.side // SIDE * (s.depth // SIDE if s.deep_first else s.depth)

    @property
    def _turns(self) -> range:
        return range(-(-self._units // self.spot.team))

    def _registers(self, turn: int) -> list[str]:
        """What the loads of a unit are kept in."""
        name = f"next_{self.spot.name}{turn}"
        return [f"{name}_{i}" for i in range(SIDE)] if self.spot.deep_first and not self.spot.four else [name]

    def _at(self, turn: int) -> tuple[str, str]:
        """The names of a unit's first depth and of its vector."""
        return f"{self.spot.name}_deep{turn}", f"{self.spot.name}_side{turn}"

    def prepare(self, out: Statements) -> None:
        s = self.spot
        kind = f"array<{s.vector}, {SIDE}>" if s.four else s.vector
        for turn in self._turns:
            deep, side = self._at(turn)
            unit = f"(member + {turn * s.team}i)" if turn else "member"
            if s.deep_first:
                out.put(f"let {deep} = {unit} % {s.depth // SIDE}i * {SIDE}i;")
                out.put(f"let {side} = {unit} / {s.depth // SIDE}i;")
            else:
                out.put(f"let {deep} = {unit} / {s.side // SIDE}i;")
                out.put(f"let {side} = {unit} % {s.side // SIDE}i;")
            for register in self._registers(turn):
                out.put(f"var {register} = {kind}();")
            s.put_rows(out, f"rows{turn}", side)

    def fetch(self, out: Statements, base: str) -> None:
        # After the last part, elements beyond the depth are fetched but never used.
        for turn in self._turns:
            deep, side = self._at(turn)
            loads = self.spot.loads(f"{base} + {deep}", side, f"rows{turn}")
            for register, load in zip(self._registers(turn), loads, strict=False):
                out.put(f"{register} = {load};")

    def put(self, out: Statements, base: str) -> None:
        for turn in self._turns:
            left = self._units - turn * self.spot.team
            if left < self.spot.team:
                with out.scope(f"if (member < {left}i)") as some:
                    self._put(some, turn)
            else:
                self._put(out, turn)

    def _put(self, out: Statements, turn: int) -> None:
        registers = self._registers(turn)
        deep, side = self._at(turn)
        if not self.spot.deep_first:
            out.put(f"{self.spot.place(deep, side)} = {registers[0]};")
            return
        sides = [f"{registers[0]}[{i}]" for i in range(SIDE)] if self.spot.four else registers
        for i, part in enumerate(PARTS):
            column = ", ".join(f"{side_}.{part}" for side_ in sides)
            place = self.spot.place(f"{deep} + {i}i" if i else deep, side)
            out.put(f"{place} = {self.spot.vector}({column});")


@dataclass(frozen=True)
class Filled:
    """For other operands: single elements would need too many registers and too much code to fetch ahead."""

    spot: Spot

    def prepare(self, out: Statements) -> None:
        """Nothing is kept."""

    def fetch(self, out: Statements, base: str) -> None:
        """Nothing is fetched early."""

    def put(self, out: Statements, base: str) -> None:
        s = self.spot
        vectors = s.side // SIDE
        with out.scope(f"for (var at = member; at < {vectors * s.depth}i; at += {s.team}i)") as turn:
            by = s.depth if s.deep_first else vectors
            deep, side = (f"at % {by}i", f"at / {by}i") if s.deep_first else (f"at / {by}i", f"at % {by}i")
            turn.put(f"let deep = {deep};")
            turn.put(f"let side = {side};")
            s.put_rows(turn, "rows", "side")
            loads = ", ".join(s.loads(f"{base} + deep", "side", "rows"))
            turn.put(f"{s.place('deep', 'side')} = {loads if s.four else f'{s.vector}({loads})'};")
