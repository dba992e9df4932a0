"""A target for GPUs: Kernels and Routines in, shaders of its dialect out. It needs no device."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from singe.extension import (
    CompileError,
    DType,
    Execution,
    Expr,
    Kernel,
    Printed,
    Routine,
    Shape,
    Variant,
    attention,
    collapse,
)

from .code.bounds import drop_unneeded_clamps
from .code.shader import Packed
from .code.variants import for_all_sizes, variants
from .dialect import Dialect
from .kernels import scatter
from .kernels.attention import print_attention
from .kernels.nest import print_beside, print_kernel, styles, suits_beside
from .kernels.products.cut_choice import has_template, product_of
from .kernels.products.cuts import Choose, print_product
from .kernels.products.cuts import choose as estimated
from .kernels.products.packed_rows import packed_rows, print_packed_rows


class GpuTarget:
    """The code generator for a dialect; see compiler/target.py. The code of a kernel is one text for each variant.

    choose: chooses the cuts of products; by estimates, if nothing else does.
    """

    integers: bool = False
    counted: int = 4096
    networks: bool = True
    repeated: int = 48
    execution: Execution = Execution(launches=True, filled_by=2048)

    def __init__(self, dialect: Dialect, choose: Choose | None = None, tuned_for: str | None = None) -> None:
        """choose: the cuts of products (by default estimates do). tuned_for: the device for which it chooses by times."""
        self.dialect = dialect
        self.kept_as: str | None = "" if choose is None else tuned_for
        self.name: str = dialect.name
        self.max_ports: int = dialect.max_ports
        self.dtypes: frozenset[DType] = frozenset(dialect.elements)
        self.choose: Choose = choose or partial(estimated, dialect)

    def element_size(self, dtype: DType) -> int:
        return self.dialect.element_size(dtype)

    def print(self, kernel: Kernel | Routine, constants: Collection[int]) -> Printed | None:
        narrow = [k for k in sorted(constants) if Packed.holds(kernel.ports[k].dtype)]
        ports = tuple(Packed(p.dtype) if k in narrow else p for k, p in enumerate(kernel.ports))
        nest = kernel.kernel if isinstance(kernel, Routine) else kernel
        found: Kernel | Routine = replace(nest.with_roots(drop_unneeded_clamps(nest.roots), nest.grid), ports=ports)
        if isinstance(kernel, Routine):
            facts = {
                name: drop_unneeded_clamps([fact])[0] if isinstance(fact, Expr) else fact
                for name, fact in kernel.facts.items()
            }
            found = replace(kernel, kernel=found, facts=facts)
        printed = self._print(found)
        packers = {k: Packed(kernel.ports[k].dtype).words for k in narrow}
        return None if printed is None else replace(printed, packers=packers)

    def _print(self, kernel: Kernel | Routine) -> Printed | None:
        if len(kernel.ports) > self.max_ports:
            raise CompileError(
                f"kernel {kernel.name}: {len(kernel.ports)} buffers, the target {self.name!r} binds {self.max_ports} at most"
            )
        if isinstance(kernel, Routine):
            few = packed_rows(self.dialect, kernel)
            if few is not None:
                return for_all_sizes([variants(self.dialect, kernel.ports, partial(print_packed_rows, few))])
            if kernel.kind == "matmul_blocks_with_rows" or not has_template(self.dialect, kernel):
                return None
        found = product_of(kernel) if isinstance(kernel, Routine) else None
        if isinstance(kernel, Routine) and found is not None and 0 not in (found.rows, found.columns, found.depth):
            return print_product(self.dialect, kernel, found, self.choose)
        nest = collapse(kernel.kernel if isinstance(kernel, Routine) else kernel)
        # With one output per invocation and a short window, neighbouring invocations read neighbouring elements.
        is_conv = isinstance(kernel, Routine) and kernel.kind.startswith("conv")
        return for_all_sizes(
            variants(self.dialect, kernel.ports, partial(print_kernel, nest, style=style), when)
            for style, when in ([("points", 1)] if is_conv else styles(nest))
        )

    def print_beside(self, kernels: Sequence[Kernel]) -> Printed | None:
        if not all(map(suits_beside, kernels)):
            return None
        found = [k.with_roots(drop_unneeded_clamps(k.roots), k.grid) for k in kernels]
        return variants(self.dialect, kernels[0].ports, partial(print_beside, found))

    def print_opaque(
        self,
        op: str,
        attrs: Mapping[str, Any],
        inputs: Sequence[tuple[Shape, DType]],
        results: Sequence[tuple[Shape, DType]],
    ) -> Printed | None:
        if op in scatter.OPS:
            return scatter.print_scatter(self.dialect, op, attrs, inputs)
        if op == "attention":
            found = attention(attrs, inputs)
            return None if found is None else print_attention(self.dialect, found)
        return None

    def link(self, printed: Sequence[Printed]) -> tuple[Mapping[str, str | bytes], Sequence[Sequence[Variant]]]:
        names: dict[str, str] = {}
        variants = [
            [
                replace(v, entry=names.setdefault(text, f"w{len(names)}"))
                for text, v in zip(p.code, p.variants, strict=True)
            ]
            for p in printed
        ]
        return {name: text for text, name in names.items()}, variants
