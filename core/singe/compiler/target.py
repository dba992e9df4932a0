"""The protocol of a Target, for which Programs are compiled: a code generator, or arrays, on which ops are called one by one.

A Target needs no device. A code generator is found through the entry-point group `singe.targets`, so that this package
imports none. array_target.py has the Target of arrays.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import field
from functools import cache
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias

import numpy as np

from ..dtypes import DType
from ..errors import DeviceError
from ..late_dataclass import dataclass
from ..lazy_names import LateModule
from ..plugins import check_plugin, load_plugin
from ..program.program import HOST, ProgramData, Variant
from ..shapes import Dim, Shape

if TYPE_CHECKING:
    from ..ir.kernel import Kernel, Routine
    from ..ir.scalar import Expr
    from . import array_target
else:
    array_target = LateModule("compiler.array_target")

GROUP: Final = "singe.targets"
Packer: TypeAlias = Callable[[np.ndarray], np.ndarray]
"""An array of weights (or of their channel numbers) ↦ its elements in the order in which a kernel reads them."""


@dataclass(frozen=True)
class PackedPlaces:
    """Where a packer puts the elements of a constant of `count`: the index of one ↦ its index among the packed ones."""

    count: int
    of: Callable[[Expr], Expr]


@dataclass(frozen=True)
class Printed:
    """The code that a Target prints for one Kernel or Routine.

    code: in a form of the target's own (text, the body of a function); equal code is stored once. packers: for ports whose
    buffer is a constant, the function that lays out its elements as the code reads them. places: of some of these ports, whose packers
    keep all elements as they are; a kernel that gathers elements of the same constant then reads the packed ones. scratch: the bytes of a
    workspace, which the code takes as one more port, after the others. others: more code, dispatched after this one, with
    the same ports; `when` is 1 at the sizes at which it does work, otherwise 0, and then it has no workgroups. So there
    are versions for other values of the open sizes, and work in two steps: the second reads what the first left in
    the workspace, which all kernels of a Program share. sharing: other code for the same ports, over weights packed as for open sizes;
    steps for particular sizes use it if those weights are there already. flops: the float operations of a function that is
    no Kernel, in which they would be counted.
    """

    code: Any
    variants: tuple[Variant, ...]
    sizes: tuple[Dim, ...]
    packers: Mapping[int, Packer] = field(default_factory=dict)
    scratch: Dim = 0
    when: Dim = 1
    flops: Dim = 0
    others: tuple[Printed, ...] = ()
    sharing: Callable[[], Printed] | None = field(default=None, compare=False)
    places: Mapping[int, PackedPlaces] = field(default_factory=dict, compare=False)


@dataclass(frozen=True)
class Execution:
    """How Programs of a target run. The defaults are those of a code generator, whose kernels use memory as the Program plans it.

    fuses: a step is a kernel, which computes a group of ops. Otherwise each op is a step on the host, called with arrays, and
    a composite stays whole where the array library has a native function for it.
    views: a reshape shares the memory of its input, and is no step.
    allocates: a step makes an array for its result. Only an update overwrites its input, and an elementwise op a donated one.
    narrow: products take numbers of a few bits as they are; otherwise these become floats, which are faster.
    falls_back: a step on the host stands in for what the device cannot do, and is reported as that; with NumPy all steps are there.
    launches: a step costs about as much as the work on a short row, so small steps that do not depend on each other become one (the target
    has `print_beside` for that), and it pays to compile a decoder once more for one token.
    filled_by: how many tiles of products fill its largest devices, for which products of a long depth and long folds are split
    (rewrite/long_products.py, rewrite/long_folds.py).
    """

    fuses: bool = True
    views: bool = True
    allocates: bool = False
    narrow: bool = True
    falls_back: bool = True
    launches: bool = False
    filled_by: int = 1


class PrintsBeside(Protocol):
    """What a target whose `execution` has `launches` prints besides."""

    def print_beside(self, kernels: Sequence[Kernel]) -> Printed | None:
        """One kernel for several that do not depend on each other, all over the same ports; None if one step each is better."""
        ...


class Target(Protocol):
    """A code generator: Kernels and Routines in, text or bytes out. The attribute `execution`, an Execution, may be left out, and
    so may `confined`: why a Program of a stranger cannot harm the machine that runs it; `settings`: arguments, as data of JSON, with
    which its class makes the same target in another process; `kept_as`: on what its code depends beside its class and settings, without
    which its Programs are not kept from process to process; and `kept_part`: a function that gives what of a Program the next process
    on such a device needs, where that is not all."""

    name: str
    max_ports: int  # buffers that one kernel may name (the scratch port included)
    integers: bool  # whether its kernels for products in 8-bit integers are faster than those in float32
    counted: int  # the longest axis that is sorted by counting (lower/sorting_networks.py), with length² comparisons
    networks: bool  # whether longer axes are sorted by networks (lower/sorting_networks.py), not by a function for the opaque op
    repeated: (
        int  # the most operations on coordinates and open sizes that, repeated for each element, beat one more kernel
    )

    @property
    def dtypes(self) -> Collection[DType]:
        """The element types that its kernels read, compute and write."""
        ...

    def element_size(self, dtype: DType) -> int:
        """Bytes of one element in device memory (WGSL has no bytes, so a bool has four)."""
        ...

    def print(self, kernel: Kernel | Routine, constants: Collection[int]) -> Printed | None:
        """The code of a kernel. `constants`: the ports whose contents are known and may be packed. None for a Routine
        without a template: the compiler then prints its Kernel, and does not fuse a pooling into it."""
        ...

    def print_opaque(
        self,
        op: str,
        attrs: Mapping[str, Any],
        inputs: Sequence[tuple[Shape, DType]],
        results: Sequence[tuple[Shape, DType]],
    ) -> Printed | None:
        """The target's function for an opaque op, with the inputs and then the results as ports. None if there is no
        function: the op then runs on the host."""
        ...

    def link(self, printed: Sequence[Printed]) -> tuple[Mapping[str, str | bytes], Sequence[Sequence[Variant]]]:
        """The code of a whole Program as named modules, and the variants of each kernel, which name entries in them."""
        ...


def find_target(name: str, settings: Mapping[str, Any] | None = None) -> Target:
    """The target with this name, and with settings of another one (`settings_of`)."""
    if name == HOST:
        return array_target.ARRAYS
    make = load_plugin(GROUP, name, "target")
    try:
        made = make(**(settings or {}))
    except TypeError as e:
        raise DeviceError(
            f"the target {name!r} has no settings {settings!r:.200}: install one version of Singe on both sides"
        ) from e
    check_plugin(made, Target, GROUP, name, "target")
    return made


def execution_of(target: Target) -> Execution:
    return getattr(target, "execution", None) or _compiled()


def settings_of(target: Target) -> Mapping[str, Any]:
    """With what `find_target` makes the same target in another process."""
    return getattr(target, "settings", {})


def kept_as(target: Target) -> str | None:
    """On what the code of a target depends beside its class; None if its Programs are not kept from process to process."""
    mark = getattr(target, "kept_as", None)
    return None if mark is None else json.dumps([mark, settings_of(target)], sort_keys=True, default=list)


def kept_part(target: Target, program: ProgramData) -> ProgramData:
    """What of a Program the next process on such a device needs. What is for other devices is made again when it is saved."""
    part: Callable[[ProgramData], ProgramData] | None = getattr(target, "kept_part", None)
    return program if part is None else part(program)


def confinement(target: Target) -> str:
    """Why a Program of a stranger for this target cannot harm the machine that runs it; "" if it can, as native code does what it
    wants."""
    return getattr(target, "confined", "")


@cache
def _compiled() -> Execution:
    return Execution()
