"""Changes to ONNX models that keep them well-formed protobuf: to attributes, types, dimensions, edges, graphs that nodes own,
functions, versions and external data. `change` makes a few.

Each change is a function in CHANGES: it edits the model of a Subject, and raises NotHere (also as an IndexError of a choice
among nothing) if the model has nothing to change.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import onnx
from onnx import GraphProto, NodeProto, helper, numpy_helper
from onnx_subject import MAX_BYTES, NotHere, Subject, graphs, nodes
from onnx_value_changes import VALUES, Change

# --- edges -----------------------------------------------------------------------------------------------------------


def _edge(s: Subject) -> None:
    """A node reads another value: a later one, its own, an outer one or none."""
    n = s.one_of([n for n in nodes(s.model) if len(n.input)])
    n.input[s.rng.randrange(len(n.input))] = s.one_of(n.output) if s.chance(0.1) else s.name()


def _inputs(s: Subject) -> None:
    """A node has fewer inputs, more, or in another order."""
    n = s.node()
    match s.rng.randrange(4):
        case 0:
            del n.input[s.rng.randrange(len(n.input))]
        case 1:
            n.input.insert(s.rng.randrange(len(n.input) + 1), s.name())
        case 2:
            s.rng.shuffle(n.input)
        case _:
            n.input.extend([s.name()] * s.one_of((1, 2, 300)))


def _outputs(s: Subject) -> None:
    """A node gives another name to an output, has fewer, or more."""
    n = s.node()
    match s.rng.randrange(4):
        case 0:
            n.output[s.rng.randrange(len(n.output))] = s.name()
        case 1:
            del n.output[s.rng.randrange(len(n.output))]
        case 2:
            n.output.extend([s.name() if s.chance(0.5) else f"more{k}" for k in range(s.one_of((1, 3, 300)))])
        case _:
            s.rng.shuffle(n.output)


def _results(s: Subject) -> None:
    """A graph, or a function, has other outputs: fewer, one twice, an input, a value from within."""
    g = s.one_of([*graphs(s.model)])
    match s.rng.randrange(4):
        case 0:
            del g.output[s.rng.randrange(len(g.output))]
        case 1:
            g.output.append(s.one_of(g.output))
        case 2:
            g.output.append(helper.make_empty_tensor_value_info(s.name()))
        case _:
            s.one_of(g.output).name = s.name()


def _parameters(s: Subject) -> None:
    """A graph has other inputs."""
    g = s.graph()
    match s.rng.randrange(4):
        case 0:
            del g.input[s.rng.randrange(len(g.input))]
        case 1:
            g.input.append(s.one_of(g.input))
        case 2:
            g.input.append(helper.make_tensor_value_info(s.name(), 1, s.one_of(((), ("N",), (2, 3)))))
        case _:
            s.one_of(g.input).name = s.name()


def _order(s: Subject) -> None:
    """A node is left out, is there twice, or is elsewhere."""
    body = s.body()
    k = s.rng.randrange(len(body))
    match s.rng.randrange(3):
        case 0:
            del body[k]
        case 1:
            body.append(body[k])
        case _:
            moved = NodeProto()
            moved.CopyFrom(body[k])
            del body[k]
            body.insert(s.rng.randrange(len(body) + 1), moved)


def _op(s: Subject) -> None:
    """A node is of another op, or of an op's name in another domain."""
    n, other = s.node(), s.one_of(list(nodes(s.other())))
    if s.chance(0.8):
        n.op_type = other.op_type
    if s.chance(0.8):
        n.domain = other.domain
    if s.chance(0.1):
        n.op_type = s.one_of(("", "NoSuchOp", "Loop", "If", "Constant"))


def _foreign(s: Subject) -> None:
    """Nodes of another model read this one's values; their last results are outputs."""
    other = s.other()
    names: dict[str, str] = {}
    inner = s.model.graph
    for t in other.graph.initializer:
        names[t.name] = f"f_{t.name}"
        inner.initializer.add().CopyFrom(t)
        inner.initializer[-1].name = names[t.name]
    for v in other.graph.input:
        names[v.name] = names.get(v.name, s.name())
    for n in other.graph.node:
        for o in n.output:
            names[o] = f"f_{o}" if o else ""
        made = inner.node.add()
        made.CopyFrom(n)
        made.input[:] = [names.get(i, i) for i in n.input]
        made.output[:] = [names[o] for o in n.output]
    for v in other.graph.output:
        inner.output.append(helper.make_empty_tensor_value_info(names.get(v.name, v.name)))
    s.model.functions.extend(other.functions)
    have = {o.domain for o in s.model.opset_import}
    s.model.opset_import.extend(o for o in other.opset_import if o.domain not in have)


# --- graphs and functions --------------------------------------------------------------------------------------------


def _graphs(s: Subject) -> None:
    """A graph that a node owns is another one of the model, or has captured names swapped."""
    owned = [a for n in nodes(s.model) for a in n.attribute if a.HasField("g")]
    a = s.one_of(owned)
    match s.rng.randrange(3):
        case 0:
            other = GraphProto()
            other.CopyFrom(s.graph())
            a.g.CopyFrom(other)
        case 1:
            inner = {o for n in a.g.node for o in n.output} | {v.name for v in a.g.input}
            captured = sorted({i for n in a.g.node for i in n.input if i and i not in inner})
            one, two = s.one_of(captured), s.name()
            swap = {one: two, two: one}
            for n in a.g.node:
                n.input[:] = [swap.get(i, i) for i in n.input]
        case _:
            a.g.initializer.append(numpy_helper.from_array(np.zeros(s.one_of(((), (2,))), np.float32), s.name()))


def _nested(s: Subject) -> None:
    """A node is within an If, or a Loop, of as many levels."""
    body = s.body()
    k = s.rng.randrange(len(body))
    inner = NodeProto()
    inner.CopyFrom(body[k])
    levels = s.one_of((1, 2, 5, 15))
    for level in range(levels):
        outputs = [o or f"none{level}" for o in inner.output]
        branch = helper.make_graph(
            [inner], f"level{level}", [], [helper.make_empty_tensor_value_info(o) for o in outputs]
        )
        yes = helper.make_node("Constant", [], [f"yes{level}"], value=numpy_helper.from_array(np.array(s.chance(0.5))))
        if s.chance(0.5):
            condition = s.name() if s.chance(0.4) else f"yes{level}"
            inner = helper.make_node("If", [condition], list(inner.output), then_branch=branch, else_branch=branch)
        else:
            again = helper.make_empty_tensor_value_info("c")
            scalars = [helper.make_tensor_value_info("i", 7, ()), helper.make_tensor_value_info("c", 9, ())]
            turn = helper.make_graph([inner], f"turn{level}", scalars, [again, *branch.output])
            count = s.name() if s.chance(0.5) else ""
            inner = helper.make_node("Loop", [count, f"yes{level}"], list(inner.output), body=turn)
        body.insert(0, yes)
    body[k + levels].CopyFrom(inner)


def _function(s: Subject) -> None:
    """A node is a call of a function of the model, which may call itself, lack attributes or an opset."""
    n = s.node()
    if any(a.HasField("g") for a in n.attribute) and s.chance(0.5):
        raise NotHere
    inner = NodeProto()
    inner.CopyFrom(n)
    names = [a.name for a in n.attribute] if s.chance(0.5) else []
    for a in inner.attribute:
        if a.name in names:
            name, kind = a.name, a.type
            a.Clear()
            a.name, a.type, a.ref_attr_name = name, kind, name
    inputs = list(dict.fromkeys(i for i in n.input if i))
    imports = list(s.model.opset_import)
    made = helper.make_function("own", "Outlined", inputs, [o for o in n.output if o], [inner], imports, names)
    made.opset_import.append(helper.make_opsetid("own", 1))
    if s.chance(0.3):
        called = helper.make_node("Outlined", inputs, [f"again_{o}" for o in made.output], domain="own")
        made.node.append(called)
        if s.chance(0.7):
            made.output[:] = [f"again_{o}" for o in made.output]
    if s.chance(0.15):
        del made.opset_import[:]
    if s.chance(0.15):
        made.input[:] = made.input[: s.rng.randrange(len(made.input) + 1)]
    if s.chance(0.15):
        made.output[:] = [s.name()]
    outputs = [o for o in n.output if o]
    given = [a for a in n.attribute if a.name in names and s.chance(0.8)]
    n.CopyFrom(helper.make_node("Outlined", inputs, outputs, domain="own"))
    n.attribute.extend(given)
    s.model.functions.append(made)
    s.model.opset_import.append(helper.make_opsetid("own", 1))


def _function_parts(s: Subject) -> None:
    """A function has other inputs, outputs, attributes, opsets, or the name of an op."""
    f = s.one_of(s.model.functions)
    match s.rng.randrange(6):
        case 0:
            s.rng.shuffle(f.input)
        case 1:
            f.input.append(s.name())
        case 2:
            f.output[s.rng.randrange(len(f.output))] = s.name()
        case 3:
            del f.opset_import[:]
        case 4:
            f.attribute.append(s.one_of(("alpha", "axis", "body")))
        case _:
            n = s.node()
            f.name, f.domain = n.op_type, n.domain


def _version(s: Subject) -> None:
    """An opset is of another version, named twice, or missing; or the file's version is another."""
    match s.rng.randrange(6):
        case 0:
            s.model.ir_version = s.one_of((0, 1, 2, 3, 7, 11, 99, -1, 2**62))
        case 1:
            s.model.opset_import.append(
                helper.make_opsetid(s.one_of(("", "ai.onnx", "ai.onnx.ml", "x")), s.one_of((1, 7, 13, 99)))
            )
        case 2:
            del s.model.opset_import[s.rng.randrange(len(s.model.opset_import))]
        case _:
            s.one_of(s.model.opset_import).version = s.one_of((*range(1, 29), 0, -1, 99, 2**31, 2**63 - 1))


CHANGES: Final[Sequence[Change]] = (
    *VALUES, _edge, _edge, _inputs, _outputs, _results, _parameters, _order, _op, _op, _foreign, _foreign, _graphs, _nested, _function,
    _function_parts, _version,
)  # fmt: skip


def change(subject: Subject) -> str:
    """Make one to four changes; returns their names. A change that does not apply is drawn again."""
    made: list[str] = []
    wanted = subject.one_of((1, 1, 2, 2, 3, 4))
    for _ in range(40):
        if len(made) == wanted:
            break
        before = subject.model.SerializeToString(), dict(subject.feed), dict(subject.files)
        chosen = subject.one_of(CHANGES)
        try:
            chosen(subject)
            if subject.model.ByteSize() <= MAX_BYTES:
                made.append(chosen.__name__)
                continue
        except Exception:  # onnx's own functions refuse, in many ways, what earlier changes made
            pass
        subject.model, subject.feed, subject.files = onnx.ModelProto.FromString(before[0]), *before[1:]
    return ", ".join(made)
