"""Prints any Kernel as a shader, in one of two styles.

points      one invocation for each point of the grid, or for four neighbouring points of a large kernel that only
            stores; inner loops are loops. For elementwise kernels, short reductions, and reductions whose neighbouring
            points are contiguous in memory.
workgroups  one workgroup for each point of the grid. Its invocations share the inner loops and then combine their
            results: with subgroup operations (a variant) or through a tree in workgroup memory. For long reductions.

Stages over inner loops run in passes. A pass walks the inner loops once for all stages that do not depend on a result
of the same pass.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Final

from singe.extension import (
    Dim,
    Expr,
    Kernel,
    Reduce,
    Scan,
    Store,
    affine,
    ceildiv,
    dim_max,
    dim_min,
    float32,
    guessed,
    identity,
    int32,
    product,
    scalar,
    symbols,
)

from ..code.shader import Shader, Text
from ..code.statements import Statements
from ..dialect import SUBGROUPS
from .vectorize import VECTOR_LENGTH, in_fours, loads, put_four

POINTS_TO_FILL: Final = 1 << 17
"""This many points fill any device: with more, workgroups are larger and an invocation computes several points."""
MAX_ELEMENTS_IN_ONE_INVOCATION: Final = 32
"""A reduction over at most this many elements stays in one invocation."""
WORKGROUP_OVERHEAD: Final = 256
"""The overhead of a workgroup, in elements that one invocation reduces, divided by the number of points."""
POINTS_TO_SATURATE: Final = 1024
"""With this many points, one invocation per point keeps a device busy."""
MAX_CACHED_ELEMENTS: Final = 1 << 24
"""Up to this many elements, caches make strided reads by workgroups cheap."""
MAX_OPEN_WORKGROUPS: Final = 1 << 15
"""The most workgroups for an open number of points: starting more of them takes longer than running them."""
ASSUMED_POINTS: Final = 4
"""The value assumed for an open size among the points of a kernel."""
ASSUMED_INNER_LENGTH: Final = 256
"""The value assumed for an open size among the inner loops."""
LEAST_SUBGROUP: Final = 4
"""The smallest subgroup."""
_SUBGROUP: Final = {"add": "subgroupAdd", "mul": "subgroupMul", "max": "subgroupMax", "min": "subgroupMin"}


@dataclass(frozen=True)
class _Distribution:
    """How points are distributed: invocations per workgroup, and points (or fours of points) per invocation."""

    threads: int
    turns: int = 1


@dataclass
class _Pass:
    """One walk over the inner loops."""

    reduces: list[Reduce] = field(default_factory=list)
    scans: list[Scan] = field(default_factory=list)
    stores: list[Store] = field(default_factory=list)

    @property
    def roots(self) -> list[Expr]:
        return [r.value for r in (*self.reduces, *self.scans)] + [e for s in self.stores for e in (s.index, s.value)]


def print_kernel(kernel: Kernel, shader: Shader, style: str | None = None) -> Text:
    """The kernel in the given style, or in the style that suits it at guessed sizes."""
    style = style or _style(kernel)
    points = product(kernel.grid)
    if style == "points":
        side = VECTOR_LENGTH if _fours(kernel, shader, points) else 1
        cut = _cut(ceildiv(points, side))
        threads = cut.threads
        body = _points(kernel, shader, cut, side)
        groups: Dim = ceildiv(points, threads * cut.turns * side)
        if not isinstance(groups, int):
            groups = dim_min(groups, MAX_OPEN_WORKGROUPS)
    else:
        threads = _threads(points, product(kernel.inner))
        body = _workgroups(kernel, shader, threads)
        groups = points
    return shader.text(body, threads, groups)


def suits_beside(kernel: Kernel) -> bool:
    """Whether a kernel is small, and computes its points one by one."""
    points = product(kernel.grid)
    return not kernel.inner and isinstance(points, int) and 0 < points < POINTS_TO_FILL


def print_beside(kernels: Sequence[Kernel], shader: Shader) -> Text:
    """Kernels that `suits_beside` takes, over the same ports: each has workgroups of its own."""
    out = Statements(shader)
    threads = _cut(0).threads
    out.put("let tile = i32(group.x + group.y * groups.x);")
    first = 0
    for kernel in kernels:
        points = product(kernel.grid)
        assert isinstance(points, int)
        end = first + ceildiv(points, threads)
        with out.scope(f"if (tile >= {first}i && tile < {end}i)") as own:
            own.put(f"let point = (tile - {first}i) * {threads}i + i32(lane);")
            with own.scope(f"if (point < {points}i)") as inside:
                _point(inside, kernel)
        first = end
    return shader.text(out.lines, threads, first)


def styles(kernel: Kernel) -> list[tuple[str, Dim]]:
    """The styles that suit a kernel, each with a dimension that is 1 at the sizes for which it is chosen, otherwise 0."""
    apart = _apart(kernel)
    return [(style, when) for style, when in (("workgroups", 1 - apart), ("points", apart)) if when != 0]


def _style(kernel: Kernel) -> str:
    """The style at guessed sizes."""
    guesses = dict.fromkeys(symbols(kernel.inner), ASSUMED_INNER_LENGTH) | dict.fromkeys(
        symbols(kernel.grid), ASSUMED_POINTS
    )
    return "points" if guessed(_apart(kernel), guesses) else "workgroups"


def _apart(kernel: Kernel) -> Dim:
    """A dimension: 1 if one invocation computes each point, 0 if a workgroup does."""
    points, inner = product(kernel.grid), product(kernel.inner)
    short = 1 - dim_min(inner // (MAX_ELEMENTS_IN_ONE_INVOCATION + 1), 1)
    if short == 1 or not any(isinstance(s, Reduce) for s in kernel.stages):
        return 1
    crowded = dim_max(dim_min(points // (WORKGROUP_OVERHEAD * inner + 1), 1), short)
    if _inner_contiguous(kernel):
        return crowded
    return dim_max(
        crowded, dim_min(points // POINTS_TO_SATURATE, 1) * dim_min(points * inner // (MAX_CACHED_ELEMENTS + 1), 1)
    )


def _guess(dim: Dim, each: int = ASSUMED_POINTS) -> int:
    return guessed(dim, each)


def _fours(kernel: Kernel, shader: Shader, points: Dim) -> bool:
    """Whether an invocation computes four neighbouring points: if the kernel has only contiguous stores, and is large or may
    be at some sizes."""
    if (isinstance(points, int) and points < POINTS_TO_FILL) or kernel.inner:
        return False
    stores = [s for s in kernel.stages if isinstance(s, Store)]
    last = kernel.grid_vars[-1]
    return len(stores) == len(kernel.stages) and in_fours(stores, last, shader)


def _inner_contiguous(kernel: Kernel) -> bool:
    """Whether some reduced load is contiguous along the last inner loop."""
    last = next((v for v in reversed(kernel.inner_vars) if v.word == "var"), None)
    reduced = scalar.postorder([s.value for s in kernel.stages if isinstance(s, Reduce)])
    return any(affine.linear(e.args[0])[0].get(last) == 1 for e in reduced if e.word == "load" and last is not None)


def _cut(points: Dim) -> _Distribution:
    if not isinstance(points, int) or points < POINTS_TO_FILL:
        return _Distribution(64)
    return _Distribution(256) if points < 16 * POINTS_TO_FILL else _Distribution(256, 4)


def _threads(points: Dim, inner: Dim) -> int:
    """Invocations per workgroup: if there are many workgroups, few invocations with more work each are faster."""
    inner = _guess(inner, ASSUMED_INNER_LENGTH)
    busy = _guess(points) >= POINTS_TO_SATURATE
    return 64 if inner <= (1024 if busy else 256) else 128 if busy and inner <= 2048 else 256


def _passes(kernel: Kernel) -> tuple[list[_Pass], list[Store]]:
    """The passes, and the stores after them (no port is both written and read, so their order is free)."""
    passes: list[_Pass] = []
    last: list[Store] = []
    for stage in kernel.stages:
        if isinstance(stage, Store) and not (stage.inner and kernel.inner):
            last.append(stage)
            continue
        roots = [stage.index, stage.value] if isinstance(stage, Store) else [stage.value]
        below = set(scalar.postorder(roots))
        if not passes or any(r.accumulator in below for r in passes[-1].reduces):
            passes.append(_Pass())
        if isinstance(stage, Reduce):
            passes[-1].reduces.append(stage)
        elif isinstance(stage, Scan):
            passes[-1].scans.append(stage)
        else:
            passes[-1].stores.append(stage)
    return passes, last


def bind_coordinates(out: Statements, flat: str, names: Sequence[tuple[Expr, Dim]]) -> None:
    """Bind loop variables to the coordinates of a flat index, which is a name; a loop of one turn needs no variable."""
    # A loop of no turns never runs, but some languages reject a division by the constant zero.
    turning = [(v, d if d != 0 else 1) for v, d in names if v.word == "var"]
    if not all(isinstance(d, int) for _, d in turning[1:]):
        _unflatten_open(out, flat, turning)
        return
    for position, (v, _) in enumerate(turning):
        rest = product(d for _, d in turning[position + 1 :])
        text = flat if rest == 1 else f"{flat} / {out.shader.dim(rest)}"
        if position:
            wrap = out.shader.dim(turning[position][1])
            text = f"({text}) % {wrap}" if rest != 1 else f"{text} % {wrap}"
        out.let(v.value[0], text, v)


def _unflatten_open(out: Statements, flat: str, names: Sequence[tuple[Expr, Dim]]) -> None:
    """The same with one division per variable, since divisions by values that are not constant are slow."""
    (first, _), *others = names
    for v, d in reversed(others):
        by = out.shader.dim(d)
        whole = out.let(out.shader.fresh(), f"{flat} / {by}")
        out.let(v.value[0], f"{flat} - {whole} * {by}", v)
        flat = whole
    out.let(first.value[0], flat, first)


def _store(out: Statements, stores: Sequence[Store]) -> None:
    if len(stores) > 1:  # a store may overwrite an element that another one reads: load it before
        for e in loads(s.value for s in stores):
            if out.shader.ports[e.value].written and e not in out.names:
                out.let(out.shader.fresh(), out.value(e), e)
    roots = [e for s in stores for e in (s.index, s.value)]
    texts = iter(out.values(roots))
    for s in stores:
        out.put(out.shader.store(s.port, next(texts), next(texts)))


def _fold(out: Statements, reduces: Sequence[Reduce | Scan], names: Sequence[str]) -> None:
    for r, name, text in zip(reduces, names, out.values([r.value for r in reduces]), strict=True):
        out.put(f"{name} = {out.shader.dialect.fold(r.word, r.value.dtype, name, text)};")


def _start(out: Statements, r: Reduce | Scan, name: str) -> None:
    start, dialect = identity(r.word, r.value.dtype), out.shader.dialect
    out.put(f"var {name}: {dialect.types[start.dtype]} = {dialect.literal(start.value, start.dtype)};")


def _points(kernel: Kernel, shader: Shader, cut: _Distribution, side: int) -> list[str]:
    out = Statements(shader)
    count = ceildiv(product(kernel.grid), side)
    points = shader.dim(count)
    body = _four if side == VECTOR_LENGTH else _point
    group = "(group.x + group.y * groups.x)"
    if not isinstance(count, int):
        first, all_ = f"i32(group.x * {cut.threads}u + lane)", f"i32(groups.x) * {cut.threads}i"
        with out.scope(f"for (var point = {first}; point < {points}; point += {all_})") as turn:
            body(turn, kernel)
        return out.lines
    if cut.turns == 1:
        out.put(f"let point = i32({group} * {cut.threads}u + lane);")
        out.put(f"if (point >= {points}) {{ return; }}")
        body(out, kernel)
        return out.lines
    share = cut.threads * cut.turns
    out.put(f"let first = i32({group} * {share}u + lane);")
    # A workgroup beyond the last point returns before its index could overflow.
    out.put(f"let end = min(first, {points} - {share}i) + {share}i;")
    with out.scope(f"for (var point = first; point < end; point += {cut.threads}i)") as turn:
        body(turn, kernel)
    return out.lines


def _four(out: Statements, kernel: Kernel) -> None:
    """The stores at four points; `point` numbers the fours."""
    *outer, last = zip(kernel.grid_vars, kernel.grid, strict=True)
    along, extent = last
    four = scalar.var("four", int32, ceildiv(extent, VECTOR_LENGTH))
    bind_coordinates(out, "point", [*outer, (four, ceildiv(extent, VECTOR_LENGTH))])
    first = f"{out.names[four]} * {VECTOR_LENGTH}i" if four.word == "var" else "0i"  # one four needs no variable
    out.let(along.value[0], first, along)
    put_four(out, [s for s in kernel.stages if isinstance(s, Store)], along, {})


def _point(out: Statements, kernel: Kernel) -> None:
    """The stages at the point of number `point`."""
    bind_coordinates(out, "point", list(zip(kernel.grid_vars, kernel.grid, strict=True)))
    passes, last = _passes(kernel)
    for walk in passes:
        for r in (*walk.reduces, *walk.scans):
            _start(out, r, r.name)
        with ExitStack() as stack:
            inner = out
            for v, d in zip(kernel.inner_vars, kernel.inner, strict=True):
                inner.hoist(walk.roots)
                if v.word == "var":
                    name = v.value[0]
                    header = f"for (var {name} = 0i; {name} < {out.shader.dim(d)}; {name}++)"
                    inner = stack.enter_context(inner.scope(header))
                    inner.names[v] = name
            _fold(inner, walk.reduces, [r.name for r in walk.reduces])
            _fold(inner, walk.scans, [s.name for s in walk.scans])
            inner.names.update((s.accumulator, s.name) for s in walk.scans)
            _store(inner, walk.stores)
        out.names.update((r.accumulator, r.name) for r in walk.reduces)
    _store(out, last)


def put_folds(out: Statements, kernel: Kernel, threads: int) -> None:
    """Write the folds of a kernel with one inner loop, for a workgroup; afterwards all invocations have the results."""
    for walk in _passes(kernel)[0]:
        _walk(out, walk, list(zip(kernel.inner_vars, kernel.inner, strict=True)), product(kernel.inner), threads)


def _walk(out: Statements, walk: _Pass, turns: Sequence[tuple[Expr, Dim]], length: Dim, threads: int) -> None:
    """One walk of a workgroup over the inner loops, whose invocations then have the results."""
    parts = [f"{r.name}_part" for r in walk.reduces]
    for r, part in zip(walk.reduces, parts, strict=True):
        _start(out, r, part)
    out.hoist(walk.roots)
    # A single loop is walked directly; several are walked as one flat index and split.
    turn = turns[0][0].value[0] if len(turns) == 1 else "turn"
    total = out.shader.dim(length)
    with out.scope(f"for (var {turn} = i32(lane); {turn} < {total}; {turn} += {threads}i)") as inner:
        if len(turns) == 1:
            inner.names[turns[0][0]] = turn
        else:
            bind_coordinates(inner, turn, turns)
        _fold(inner, walk.reduces, parts)
        _store(inner, walk.stores)
    if not walk.reduces:
        return
    words = all(
        r.value.dtype in (float32, int32) for r in walk.reduces
    )  # a subgroup takes the parts of a pair one by one
    if words:
        out.shader.wanted_features.add(SUBGROUPS)
    gather = _subgroups if words and SUBGROUPS in out.shader.features else _tree
    gather(out, walk.reduces, parts, threads)


def _workgroups(kernel: Kernel, shader: Shader, threads: int) -> list[str]:
    out = Statements(shader)
    out.put("let point = i32(group.x + group.y * groups.x);")
    out.put(f"if (point >= {shader.dim(product(kernel.grid))}) {{ return; }}")
    bind_coordinates(out, "point", list(zip(kernel.grid_vars, kernel.grid, strict=True)))
    passes, last = _passes(kernel)
    turns = [(v, d) for v, d in zip(kernel.inner_vars, kernel.inner, strict=True) if v.word == "var"]
    for walk in passes:
        _walk(out, walk, turns, product(kernel.inner), threads)
    if last:
        with out.scope("if (lane == 0u)") as inner:
            _store(inner, last)
    return out.lines


def _tree(out: Statements, reduces: Sequence[Reduce], parts: Sequence[str], threads: int) -> None:
    dialect = out.shader.dialect
    arrays = [out.shader.shared(f"{r.name}_parts", dialect.types[r.value.dtype], threads) for r in reduces]
    for array, part in zip(arrays, parts, strict=True):
        out.put(f"{array}[lane] = {part};")
    out.put("workgroupBarrier();")
    with out.scope(f"for (var half = {threads // 2}u; half > 0u; half >>= 1u)") as turn:
        with turn.scope("if (lane < half)") as low:
            for r, array in zip(reduces, arrays, strict=True):
                step = dialect.fold(r.word, r.value.dtype, f"{array}[lane]", f"{array}[lane + half]")
                low.put(f"{array}[lane] = {step};")
        turn.put("workgroupBarrier();")
    for r, array in zip(reduces, arrays, strict=True):
        out.let(r.name, f"{array}[0]", r.accumulator)


def _subgroups(out: Statements, reduces: Sequence[Reduce], parts: Sequence[str], threads: int) -> None:
    # In a one-dimensional workgroup, neighbours are neighbours in subgroups too, whatever the subgroup size.
    count, dialect = threads // LEAST_SUBGROUP, out.shader.dialect
    arrays = [out.shader.shared(f"{r.name}_teams", dialect.types[r.value.dtype], count) for r in reduces]
    teams = [out.let(f"{r.name}_team", _folded(r, part)) for r, part in zip(reduces, parts, strict=True)]
    with out.scope("if (member == 0u)") as first:
        for array, team in zip(arrays, teams, strict=True):
            first.put(f"{array}[lane / members] = {team};")
    out.put("workgroupBarrier();")
    for r, array in zip(reduces, arrays, strict=True):
        out.put(f"var {r.name} = {array}[0];")
    with out.scope(f"for (var other = 1u; other < {threads}u / members; other++)") as turn:
        for r, array in zip(reduces, arrays, strict=True):
            turn.put(f"{r.name} = {dialect.fold(r.word, r.value.dtype, r.name, f'{array}[other]')};")
    out.names.update((r.accumulator, r.name) for r in reduces)


def _folded(r: Reduce, part: str) -> str:
    """Combine a subgroup's parts. Languages do not specify NaN in a subgroup's maximum and minimum."""
    text = f"{_SUBGROUP[r.word]}({part})"
    if r.word in ("max", "min") and r.value.dtype is float32:
        return f"select({text}, nan(), subgroupAny(is_nan({part})))"
    return text
