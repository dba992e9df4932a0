"""What a language of GPUs is to the templates: a table of its types, words and features, and what joins a text.

Templates emit *kernel text*, which gpu/README.md defines. A Dialect says how it stores elements, how it spells the scalar
vocabulary, and which features its texts may require; `join` makes a whole text of the parts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple, TypeAlias

from singe.extension import CompileError, DType, Expr, scalar

from .rates import Cut, MatrixCut, Rate

SHADER_F16: Final = "shader-f16"
"""A feature of devices: elements and values of float16."""
SUBGROUPS: Final = "subgroups"
"""A feature of devices: operations over the invocations of a subgroup, which the entry point numbers."""
SUBGROUP_MATRIX: Final = "subgroup-matrix-f16-f32-16x16x16"
"""A kind of subgroup matrix, listed among the features; static/README.md says what it guarantees."""
WIDE_MATRIX: Final = "wide-matrix-f16-f32"
"""A feature of devices: four subgroups together multiply matrices of 16 bits straight from workgroup memory."""
INTEGER_MATRIX: Final = "subgroup-matrix-i8-i32-16x16x32"
"""A kind of subgroup matrix: bytes with a sign, 32 of them along the depth, and sums of 32 bits, which wrap."""
PACKED_MATRIX: Final = "packed-matrix-f16-f32"
"""A feature of devices: matrices of whole numbers of 4 or 8 bits, by those of floats in two parts, with float32 sums."""
PACKED_DOTS: Final = "packed_4x8_integer_dot_product"
"""A feature of the language, not of the device: instructions on four bytes in a word."""
ENTRY: Final = "main"
"""The name of the entry point."""

BARRIER: Final = "workgroupBarrier();"
"""The statement after which a workgroup's invocations see what the others wrote to workgroup memory."""

Spelling: TypeAlias = "str | Callable[[Expr, Sequence[str]], str]"
"""A template over the arguments' texts, or a function of the expression and those texts."""
Words: TypeAlias = Mapping[str, Mapping[DType, Spelling]]
"""word ↦ type of its (last) argument ↦ spelling."""


class Element(NamedTuple):
    """The type of an element in memory, its value from that and back; four: the values of a vec4 of it, "" if it cannot be read as one."""

    type: str
    load: str = "{0}"
    store: str = "{0}"
    four: str = ""

    @property
    def stores_vectors(self) -> bool:
        """Whether four elements can be written as a vector: not where an element is one."""
        return not self.type.startswith("vec")

    @property
    def takes_vectors(self) -> bool:
        """Whether a vector of values is written as it is."""
        return self.store == "{0}"


@dataclass(frozen=True)
class Matrices:
    """What texts with subgroup matrices may use.

    types: the elements of the operands ↦ their name in the types of matrices; float32 only if its products are as exact as in float32, or need not be.
    rates: for these, the cuts among which one is chosen, each with its measured times; wide ones, too, where devices may have the
    feature WIDE_MATRIX. workgroup_bytes, wide_bytes: of workgroup memory, and of that for wide cuts.
    ahead: whether `copyAhead`, `copiesEnd` and `copiesWait` are there, which copy from a port to workgroup memory while an
    invocation goes on. barrier: the statement after which a subgroup's invocations see what the others of it wrote to workgroup
    memory. integers: the cuts of products of 8-bit integers, where devices may have the feature INTEGER_MATRIX. packed: those of products
    with packed weights, where devices may have PACKED_MATRIX.
    """

    types: Mapping[DType, str]
    rates: Mapping[DType, Mapping[MatrixCut, Rate]]
    workgroup_bytes: int = 1 << 15
    wide_bytes: int = 0
    ahead: bool = False
    barrier: str = BARRIER
    integers: Mapping[MatrixCut, Rate] = field(default_factory=dict)
    packed: Mapping[MatrixCut, Rate] = field(default_factory=dict)


class ShaderParts(NamedTuple):
    """The parts of a text. Types, functions and body are kernel text.

    ports: for each port the type of its elements as they are bound, and whether they are written. size_vectors: how many
    vectors of four sizes the text reads. shared: arrays in workgroup memory, name ↦ type. threads: the invocations of a
    workgroup.
    """

    features: frozenset[str]
    ports: Sequence[tuple[str, bool]]
    size_vectors: int
    shared: Mapping[str, str]
    functions: Sequence[str]
    body: Sequence[str]
    threads: int


@dataclass(frozen=True, eq=False)
class Dialect:
    """A language; gpu/README.md says what each field must hold."""

    name: str
    types: Mapping[DType, str]
    """Compute type ↦ its name."""
    elements: Mapping[DType, Element]
    """How elements are stored: one row for each dtype that kernels compute."""
    element_size: Callable[[DType], int]
    """Bytes of an element in device memory: `dtype.size`, unless the language stores some dtypes in more."""
    words: Words
    """The scalar vocabulary; `scalar.complete` refuses a table that lacks a word."""
    vector_words: Words
    """The words that compute vectors of four, besides choices and casts: word ↦ type ↦ spelling."""
    literal: Callable[[bool | int | float, DType], str]
    """A constant of a compute type."""
    features: Sequence[str]
    """The features that a text may require, the more useful one first."""
    rates: Mapping[Cut, Rate]
    """The cuts of products without matrices, each with its measured times."""
    matrices: Matrices
    max_ports: int
    """How many buffers a kernel may bind."""
    join: Callable[[ShaderParts], str]
    """The whole text: what it declares, the library functions that it calls, its functions, and the entry point ENTRY."""
    bindings: Callable[[str], Sequence[str]]
    """How a whole text declares its buffers, in order: "storage, read", "storage, read_write" or, for sizes, "uniform"."""

    def spell(self, e: Expr, args: Sequence[str]) -> str:
        """The text of a word applied to the texts of its arguments."""
        dtype = e.args[-1].dtype
        if dtype not in self.words[e.word]:
            raise CompileError(
                f"the dialect {self.name!r} has no spelling of the word {e.word!r} for {dtype}: add it to `words`, or leave {dtype} "
                "out of `elements`, so that its ops stay on the host"
            )
        found = self.words[e.word][dtype]
        return found.format(*args) if isinstance(found, str) else found(e, args)

    def fold(self, word: str, dtype: DType, total: str, value: str) -> str:
        """The text of one step of a reduction: a word applied to an accumulator and a value."""
        step = scalar.make(word, (scalar.var("total", dtype), scalar.var("value", dtype)), dtype)
        return self.spell(step, (total, value))
