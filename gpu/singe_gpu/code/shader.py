"""One shader of a dialect: its ports, sizes, workgroup memory and functions, around the body of `main`.

The text binds a buffer `b0`, `b1`, … for each port, in order; then, when the kernel uses sizes, `sizes`, vectors of four
int32. It depends only on the kernel and on the features that it may use.

Integers of fewer than 32 bits take a word each, but constant ones are packed; see Packed.

A float16 always takes two bytes in memory. With `shader-f16` it is an f16; without, two of them share a u32. A float16
that is written alone then needs atomic operations on the u32, since another invocation may write the other half.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from singe.extension import Dim, DType, Port, float16

from ..dialect import SHADER_F16, Dialect, ShaderParts

BITS_PER_WORD: Final = 32
"""Bits of a word."""
WORDS: Final = 0
"""Instead of a number of elements: the four u32 that hold them."""
_PAIR: Final = "u32"
"""Two float16 where shaders have no f16; a vec2 of these holds four."""
_WRITTEN_SINGLY: Final = f"atomic<{_PAIR}>"
"""The element type of a port whose float16 are written one by one where shaders have no f16."""


@dataclass(frozen=True)
class Packed(Port):
    """A port of constant integers of fewer than 32 bits, as many to a word as it holds, the first in the lowest bits."""

    @staticmethod
    def holds(dtype: DType) -> bool:
        return dtype.is_int and dtype.bits < BITS_PER_WORD

    @property
    def each(self) -> int:
        """Elements of a word."""
        return BITS_PER_WORD // self.dtype.bits

    @property
    def word(self) -> str:
        """The type of a word: reading bits of an i32 extends their sign."""
        return "i32" if self.dtype.kind == "int" else "u32"

    def words(self, array: np.ndarray) -> np.ndarray:
        """The words of an array's elements."""
        bits, each = self.dtype.bits, self.each
        padded = np.zeros((-(-array.size // each), each), np.uint32)
        padded.reshape(-1)[: array.size] = array.reshape(-1).astype(np.int64) & (1 << bits) - 1
        return np.bitwise_or.reduce(padded << np.arange(0, BITS_PER_WORD, bits, dtype=np.uint32), axis=1)

    def load(self, name: str, index: str) -> str:
        """The i32 of an element."""
        bits = self.dtype.bits
        at = f"u32({index}) % {self.each}u * {bits}u"
        text = f"extractBits({name}[({index}) / {self.each}i], {at}, {bits}u)"
        return text if self.word == "i32" else f"bitcast<i32>({text})"

    def load_four(self, name: str, number: str) -> str:
        """The vec4<i32> of four bytes."""
        return f"four_{'' if self.word == 'i32' else 'unsigned_'}bytes({name}[{number}])"


class Text(NamedTuple):
    """A finished shader: its code, and how many workgroups run it."""

    code: str
    groups: Dim


class Shader:
    """A shader under construction; `text` closes it."""

    def __init__(
        self,
        dialect: Dialect,
        ports: Sequence[Port],
        features: frozenset[str] = frozenset(),
        sizes: list[Dim] | None = None,
    ) -> None:
        """features: those that the text may use, and then requires. sizes: the sizes that other variants read."""
        self.dialect = dialect
        self.ports = ports
        self.features = features
        self.wanted_features: set[str] = set()  # features that would make the kernel faster
        self.sizes: list[Dim] = [] if sizes is None else sizes
        self.sizes_used = 0  # how many of the sizes this text reads, counted from the first
        self.workgroup: dict[str, str] = {}
        self.vectors: dict[int, int] = {}  # the ports that are bound as vectors: of four elements, or WORDS
        self.functions: list[str] = []
        self._fresh = 0

    def fresh(self) -> str:
        """A new name for a value."""
        self._fresh += 1
        return f"v{self._fresh}"

    def dim(self, dim: Dim) -> str:
        """A dimension as an i32: a literal, or an element of the uniform."""
        if isinstance(dim, int):
            return f"{dim}i"
        if dim not in self.sizes:
            self.sizes.append(dim)
        at = self.sizes.index(dim)
        self.sizes_used = max(self.sizes_used, at + 1)
        return f"sizes[{at // 4}].{'xyzw'[at % 4]}"

    def load(self, port: int, index: str) -> str:
        """The element of a port, as its compute type."""
        at = self.ports[port]
        if isinstance(at, Packed):
            return at.load(f"b{port}", index)
        if self._pairs(port):
            pair = f"b{port}[({index}) / 2i]"
            return f"half_of({f'atomicLoad(&{pair})' if self.ports[port].written else pair}, {index})"
        return self.dialect.elements[self.ports[port].dtype].load.format(f"b{port}[{index}]")

    def _pairs(self, port: int) -> bool:
        return self.ports[port].dtype is float16 and SHADER_F16 not in self.features

    def has_vectors(self, port: int) -> bool:
        """Whether a port that nothing writes may be read four elements at a time."""
        return self.stored_vectors(port) and not self.ports[port].written

    def stored_vectors(self, port: int) -> bool:
        """Whether four elements of a port are a vector that can be read."""
        at = self.ports[port]
        return at.each == 4 if isinstance(at, Packed) else bool(self.dialect.elements[at.dtype].four)

    def stores_vectors(self, port: int) -> bool:
        """Whether four elements of a port can be written as a vector."""
        return self.dialect.elements[self.ports[port].dtype].stores_vectors

    def takes_vectors(self, port: int) -> bool:
        """Whether a vector of values is written as it is."""
        return self.dialect.elements[self.ports[port].dtype].takes_vectors

    def load_vector(self, port: int, index: str) -> str:
        """Four elements of a port from an index that is a multiple of four; all reads of the port must then be vectors."""
        return self.load_four(port, f"{index} / 4i")

    def load_four(self, port: int, number: str) -> str:
        """The same, by the number of the vector."""
        at = self.ports[port]
        if isinstance(at, Packed):
            return at.load_four(f"b{port}", number)
        self.vectors[port] = 4
        text = f"b{port}[{number}]"
        if self._pairs(port):
            return f"four_halves({text})"
        return self.dialect.elements[self.ports[port].dtype].four.format(text)

    def has_words(self, port: int, kind: DType) -> bool:
        """Whether a port that nothing writes may be read as words: one of elements of this kind."""
        return self.ports[port].dtype is kind and not self.ports[port].written

    def load_words(self, port: int, index: str) -> str:
        """16 bytes of elements from an index that is a multiple of their number, without conversion: a vec4<u32>."""
        return f"b{port}[{self._number_of_words(port, index)}]"

    def copy_words(self, port: int, index: str, place: str) -> str:
        """The statement that begins to copy such words to a place in workgroup memory."""
        return f"copyAhead(&{place}, b{port}, {self._number_of_words(port, index)});"

    def _number_of_words(self, port: int, index: str) -> str:
        self.vectors[port] = WORDS
        return f"{index} >> {(16 // self.ports[port].dtype.size).bit_length() - 1}u"

    def store(self, port: int, index: str, value: str) -> str:
        """The statement that writes an element of a port."""
        if self._pairs(port):
            self.wanted_features.add(SHADER_F16)
            pair = f"b{port}[at / 2i]"
            clear, set_ = f"atomicAnd(&{pair}, 0xffff0000u >> shift)", f"atomicOr(&{pair}, half_bits({value}) << shift)"
            return f"{{ let at = {index}; let shift = 16u * (u32(at) & 1u); {clear}; {set_}; }}"
        return f"b{port}[{index}] = {self.dialect.elements[self.ports[port].dtype].store.format(value)};"

    def store_vector(self, port: int, index: str, values: str | Sequence[str]) -> str:
        """The statement that writes four elements of a port from an index that is a multiple of four; see load_vector.

        values: the texts of the four, or that of their vector if the port takes vectors.
        """
        self.vectors[port] = 4
        if self._pairs(port):
            pairs = (f"pair_of({', '.join(values[i : i + 2])})" for i in (0, 2))
            return f"b{port}[{index} / 4i] = vec2<u32>({', '.join(pairs)});"
        element = self.dialect.elements[self.ports[port].dtype]
        if not isinstance(values, str):
            values = f"vec4<{element.type}>({', '.join(map(element.store.format, values))})"
        return f"b{port}[{index} / 4i] = {values};"

    def shared(self, name: str, element: str, count: int) -> str:
        """An array in workgroup memory."""
        self.workgroup[name] = f"array<{element}, {count}>"
        return name

    def text(self, body: Sequence[str], threads: int, groups: Dim) -> Text:
        """The shader whose entry point has this body, for the given numbers of workgroups and invocations."""
        parts = ShaderParts(
            self.features,
            [(self._element(number), port.written) for number, port in enumerate(self.ports)],
            -(-self.sizes_used // 4),
            self.workgroup,
            self.functions,
            body,
            threads,
        )
        return Text(self.dialect.join(parts), groups)

    def _element(self, number: int) -> str:
        """The type of a port's elements as they are bound."""
        port, vector = self.ports[number], self.vectors.get(number, 1)
        if isinstance(port, Packed):
            return port.word
        if vector == WORDS:
            return f"vec4<{_PAIR}>"
        if self._pairs(number):
            return f"vec2<{_PAIR}>" if vector == 4 else _WRITTEN_SINGLY if port.written else _PAIR
        return (
            f"vec4<{self.dialect.elements[port.dtype].type}>" if vector == 4 else self.dialect.elements[port.dtype].type
        )
