"""How an operand's tile is loaded into workgroup memory: [depth][side], as vectors of four neighbouring sides.

The arrays are nested because shaders check each index: the check of a side is then done once for all depths.

A unit is what is loaded at once: a vector of four sides or, for quads whose depth is contiguous, four sides by four
depths. Neighbouring invocations read along the axis that is contiguous in memory.

Fetched  each invocation loads its units of the next tile into registers while the current tile is multiplied, and
         stores them to workgroup memory afterwards.
Filled   unit by unit, once the tile is free: for a depth of one part; and for operands that are no quads, since single
         elements would need too many registers and too much code to fetch ahead.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from ...code.statements import Statements
from ..vectorize import VECTOR_COMPONENTS, VECTOR_LENGTH


@dataclass(frozen=True)
class TileLayout:
    """The tile that a feed fills, and where it reads."""

    name: str  # "a" or "b": selects load_a and tile_a, or load_b and tile_b
    side: int  # elements of the tile across the depth
    depth: int
    team: int  # invocations that share the work, numbered by `member`
    deep_first: bool  # which axis is contiguous
    quad: bool  # whether a load gives four neighbours along that axis
    vector: str  # the vectors' type
    batch: str  # the first arguments of the loads
    first: str  # index in the matrix of the tile's first side
    start: str  # where this team's depths begin, in the matrix and in the array
    split: bool  # whether the load takes the digits of its row too
    four: bool  # whether one load gives all four sides

    @property
    def blocks(self) -> bool:
        """Whether a unit has four depths."""
        return self.quad and self.deep_first

    @property
    def units(self) -> int:
        return self.side // VECTOR_LENGTH * self.depth // (VECTOR_LENGTH if self.blocks else 1)

    @property
    def kind(self) -> str:
        """The type of a load."""
        return f"array<{self.vector}, {VECTOR_LENGTH}>" if self.blocks and self.four else self.vector

    def at(self, unit: str) -> tuple[str, str]:
        """The first depth of a unit, and which vector of the tile it is."""
        vectors, deeps = self.side // VECTOR_LENGTH, self.depth // (VECTOR_LENGTH if self.blocks else 1)
        if not self.deep_first:
            return f"{unit} / {vectors}i", f"{unit} % {vectors}i"
        return f"{unit} % {deeps}i" + (f" * {VECTOR_LENGTH}i" if self.blocks else ""), f"{unit} / {deeps}i"

    def loads(self, deep: str, vector: str, rows: str) -> list[str]:
        """The loads of a unit: vectors. deep: its depth in the matrix. rows: the name of the digits of its rows, if any."""
        sides = [f"{self.first} / {VECTOR_LENGTH}i + {vector}"] if self.four else self.sides(vector)
        out: list[str] = []
        for i, side in enumerate(sides[:1] if self.quad and not self.deep_first else sides):
            arguments = f"{side}, {deep}" if self.name == "a" else f"{deep}, {side}"
            more = f", {rows}[{i}]" if self.split else ""
            out.append(f"load_{self.name}({self.batch}{arguments}{more})")
        return out if self.quad or self.four else [f"{self.vector}({', '.join(out)})"]

    def put_rows(self, out: Statements, name: str, vector: str) -> None:
        """Bind a name to the digits of the four sides of a vector of the tile, if they have any."""
        if self.split:
            out.put(f"let {name} = rows_a({self.sides(vector)[0]});")

    def sides(self, vector: str) -> list[str]:
        """The indices in the matrix of the four sides of a vector of the tile."""
        first = f"{self.first} + {vector} * {VECTOR_LENGTH}i"
        return [first, *(f"{first} + {i}i" for i in range(1, VECTOR_LENGTH))]

    def place(self, deep: str, vector: str) -> str:
        return f"tile_{self.name}[{self.start}{deep}][{vector}]"

    def put(self, out: Statements, deep: str, vector: str, elements: Sequence[str]) -> None:
        """Write a unit into the tile. elements: its loads, names if the unit has four depths."""
        if not self.blocks:
            out.put(f"{self.place(deep, vector)} = {elements[0]};")
            return
        sides = [f"{elements[0]}[{i}]" for i in range(VECTOR_LENGTH)] if self.four else elements
        for i, part in enumerate(VECTOR_COMPONENTS):
            column = ", ".join(f"{side}.{part}" for side in sides)
            out.put(f"{self.place(f'{deep} + {i}i' if i else deep, vector)} = {self.vector}({column});")


class TileLoader(Protocol):
    """See the module's docstring; base is the index in the matrix of the tile's first depth."""

    @property
    def spot(self) -> TileLayout: ...

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
    """For quads, tile by tile."""

    spot: TileLayout

    @property
    def _turns(self) -> range:
        return range(-(-self.spot.units // self.spot.team))

    def _registers(self, turn: int) -> list[str]:
        """What the loads of a unit are kept in."""
        name = f"next_{self.spot.name}{turn}"
        return [f"{name}_{i}" for i in range(VECTOR_LENGTH)] if self.spot.blocks and not self.spot.four else [name]

    def _at(self, turn: int) -> tuple[str, str]:
        """The names of a unit's first depth and of its vector."""
        return f"{self.spot.name}_deep{turn}", f"{self.spot.name}_side{turn}"

    def prepare(self, out: Statements) -> None:
        for turn in self._turns:
            unit = f"(member + {turn * self.spot.team}i)" if turn else "member"
            for name, text in zip(self._at(turn), self.spot.at(unit), strict=True):
                out.put(f"let {name} = {text};")
            for register in self._registers(turn):
                out.put(f"var {register} = {self.spot.kind}();")
            self.spot.put_rows(out, f"rows{turn}", self._at(turn)[1])

    def fetch(self, out: Statements, base: str) -> None:
        # After the last part, elements beyond the depth are fetched but never used.
        for turn in self._turns:
            deep, side = self._at(turn)
            loads = self.spot.loads(f"{base} + {self.spot.start}{deep}", side, f"rows{turn}")
            for register, load in zip(self._registers(turn), loads, strict=True):
                out.put(f"{register} = {load};")

    def put(self, out: Statements, base: str) -> None:
        for turn in self._turns:
            left = self.spot.units - turn * self.spot.team
            if left < self.spot.team:
                with out.scope(f"if (member < {left}i)") as some:
                    self.spot.put(some, *self._at(turn), self._registers(turn))
            else:
                self.spot.put(out, *self._at(turn), self._registers(turn))


@dataclass(frozen=True)
class Filled:
    """For any operand."""

    spot: TileLayout

    def prepare(self, out: Statements) -> None:
        """Nothing is kept."""

    def fetch(self, out: Statements, base: str) -> None:
        """Nothing is fetched early."""

    def put(self, out: Statements, base: str) -> None:
        s = self.spot
        with out.scope(f"for (var unit = member; unit < {s.units}i; unit += {s.team}i)") as turn:
            for name, text in zip(("deep", "side"), s.at("unit"), strict=True):
                turn.put(f"let {name} = {text};")
            s.put_rows(turn, "rows", "side")
            found = s.loads(f"{base} + {s.start}deep", "side", "rows")
            if s.blocks:
                found = [turn.let(f"found{i}", load) for i, load in enumerate(found)]
            s.put(turn, "deep", "side", found)
