"""Which loop of a Kernel takes four lanes."""

from __future__ import annotations

from collections.abc import Iterable

from singe.extension import Expr, Kernel, Reduce, Scan, Stage, Store, scalar

from ..code import simd
from .lower import lane_step
from .memory import VECTOR_STORAGE, is_near


def lane_cost(kernel: Kernel, stages: Iterable[Stage], lane: Expr, near: bool = False) -> int | None:
    """How many loads and stores are not contiguous if the loop `lane` takes four lanes; None if it cannot.

    near: do not count loads whose elements are near each other.
    """
    depends: dict[Expr, bool] = {}

    def varies(e: Expr) -> bool:
        if e not in depends:
            depends[e] = (
                e is lane
                or (e.value is not None and e.word == "var" and e.value[1] is None)
                or any(map(varies, e.args))
            )
        return depends[e]

    def distance(port: int, index: Expr) -> int | None:
        step = lane_step(index, lane, varies)
        if kernel.ports[port].dtype not in VECTOR_STORAGE or not isinstance(step, int):
            return None
        return step if step * kernel.ports[port].dtype.size < 1 << 24 and step >= 0 else None

    def is_computed(load: Expr) -> bool:
        """Whether the load's index depends on other elements, of which each lane has its own."""
        if kernel.ports[load.value].dtype not in VECTOR_STORAGE or lane_step(load.args[0], lane, varies) is not None:
            return False
        return any(e.word == "load" and varies(e) for e in scalar.postorder([load.args[0]]))

    cost = 0
    seen: set[Expr] = set()
    waiting: list[Expr] = [s.value for s in stages]
    for s in stages:
        if not isinstance(s, Store):
            if s.value.dtype not in simd.LANES:
                return None
        else:
            step = distance(s.port, s.index)
            if not step:
                return None
            cost += step != 1
    while waiting:
        e = waiting.pop()
        if e in seen or not varies(e):
            continue
        seen.add(e)
        if any(x.dtype not in simd.LANES for x in (e, *e.args)):
            return None
        if e.word == "load":
            step = distance(e.value, e.args[0])
            if step is not None:
                cost += step != 1 and not (near and is_near(kernel.ports[e.value].dtype, step))
            elif is_computed(e):
                cost += 1
                waiting.append(e.args[0])
            else:
                return None
        else:
            waiting += e.args
    return cost


def choose_lane(kernel: Kernel) -> tuple[Expr | None, bool]:
    """The loop variable that takes four lanes, and whether it is an inner one."""
    options: list[tuple[int, bool, Expr]] = []
    reduces = any(isinstance(s, Reduce) for s in kernel.stages)
    scans = any(isinstance(s, Scan) for s in kernel.stages)
    for extents, variables, inner in ((kernel.grid, kernel.grid_vars, False), (kernel.inner, kernel.inner_vars, True)):
        if not extents or (isinstance(extents[-1], int) and extents[-1] < 4) or (inner and scans):
            continue
        stages = [s for s in kernel.stages if not inner or not isinstance(s, Store) or s.inner]
        cost = lane_cost(kernel, stages, variables[-1])
        if cost is not None:
            options.append((cost, inner, variables[-1]))
    options.sort(key=lambda o: o[:2])
    if not options:
        return None, False
    cost, inner, lane = options[0]
    if cost and reduces:  # many elements are read for each one that is stored
        folds = [s for s in kernel.stages if isinstance(s, Reduce)]
        return (None, False) if inner or lane_cost(kernel, folds, lane, near=True) else (lane, False)
    return (None, False) if cost and inner and len(options) > 1 else (lane, inner)
