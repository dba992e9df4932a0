"""The template that joins partial results of attention, where the keys are split over workgroups.

An invocation has a vector of a row's result, over every n-th split; the sums of the invocations with the same vector are
added at the end.
"""

from __future__ import annotations

from singe.extension import Attention, Dim, ceildiv

from ...code.shader import Shader, Text
from ...code.statements import Statements
from .parts import WEIGHT, AttentionParts, power, quotient, vectors


def print_join(a: Attention, splits: Dim, shared: int, shader: Shader) -> Text:
    """shared: how many invocations share the splits of a vector."""
    out, dim, width = Statements(shader), shader.dim, vectors(a.width)
    parts = AttentionParts(a, shader, splits)
    shader.functions.append(WEIGHT)
    across = power(width)
    threads = max(64, across * shared)
    rows = threads // (across * shared)
    total, port = a.points * a.rows, parts.result + 1
    groups = ceildiv(total, rows)
    out.put("let number = i32(group.x + group.y * groups.x);")
    out.put(f"if (number >= {dim(groups)}) {{ return; }}")
    out.put(f"let column = i32(lane) % {across}i;")
    out.put(f"let line = i32(lane) / {across}i % {shared}i;")
    out.put(f"let row = number * {rows}i + i32(lane) / {across * shared}i;")
    out.put(f"let first = min(row, {dim(total)} - 1i) * {dim(splits)};")
    out.put(f"var top = {parts.least};")
    out.put("var total = 0.0f;")
    out.put("var sum = vec4<f32>();")
    with out.scope(f"for (var split = line; split < {dim(splits)}; split += {shared}i)") as turn:
        turn.put(f"let at = (first + split) * {width + 1}i;")
        turn.put(f"let told = {shader.load_four(port, f'at + {width}i')};")
        turn.put(f"let value = {shader.load_four(port, f'at + min(column, {width - 1}i)')};")
        _add(turn, "told", "value")
    if shared > 1:
        shader.shared("sums", "vec4<f32>", threads)
        shader.shared("tolds", "vec2<f32>", threads)
        out.put("sums[lane] = sum;")
        out.put("tolds[lane] = vec2<f32>(top, total);")
        out.put("workgroupBarrier();")
        out.put("if (line > 0i) { return; }")
        with out.scope(f"for (var other = 1u; other < {shared}u; other++)") as turn:
            turn.put(f"let told = tolds[lane + other * {across}u];")
            turn.put(f"let value = sums[lane + other * {across}u];")
            _add(turn, "told", "value")
    with out.scope(f"if (row < {dim(total)})") as own:
        parts.put_result(own, "row", "column", quotient("sum", "total"))
    return shader.text(out.lines, threads, groups)


def _add(out: Statements, totals: str, value: str) -> None:
    out.put(f"let most = max(top, {totals}.x);")
    out.put("let factor = weight_of(top - most);")
    out.put(f"let share = weight_of({totals}.x - most);")
    out.put(f"sum = sum * factor + {value} * share;")
    out.put(f"total = total * factor + {totals}.y * share;")
    out.put("top = most;")
