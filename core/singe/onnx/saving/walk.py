"""A Graph becomes nodes of ONNX: each node by a Rule, as what it is lowered to, or as the words of its body.

What cannot be written is collected, with the reasons, so that all of it is refused at once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

from ...dtypes import COMPLEX, bool_, int64
from ...errors import CompileError
from ...graph import Graph, Node, postorder, symbols_of
from ...ir import scalar
from ...ops import SIZES as FOUND
from ...ops import Composite, Elementwise, Region, Result
from ...shapes import plain
from .block import Block, Constants, SizeSource, give_sizes, lacking
from .facts import LATEST, MOVES, ONLY_CAST, SINCE_TYPE, too_new
from .records import GraphRecord, NodeRecord, ValueRecord
from .rows import RULES
from .rows.sizes import SIZES
from .rules import Rule
from .words import elementwise

REASONS: Final = {
    **dict.fromkeys(
        ("random_bits", "random_uniform"), "ONNX's generators draw other numbers; take what is random as an input"
    ),
    "resize_tables": "a run computes the scales or sizes, in another way than nearest or linear; give them as numbers of the model",
}
"""A row ↦ why it has no form in ONNX, and what to do."""


class Refusals:
    """What cannot be written: each op and reason, and how often."""

    def __init__(self) -> None:
        self.reasons: Counter[tuple[str, str]] = Counter()

    def add(self, n: Node, reason: str) -> None:
        self.reasons[n.op, reason] += 1

    def text(self) -> str:
        """A line for each."""
        return "".join(
            f"\n  {op}{f' ({count} times)' if count > 1 else ''}: {reason}"
            for (op, reason), count in sorted(self.reasons.items())
        )


class Walk:
    """Writes the nodes of one model."""

    def __init__(self, constants: Constants) -> None:
        self.constants: Final = constants
        self.refused: Final = Refusals()
        self._chosen: dict[Node, Rule | None] = {}

    # --- what is written, and in which order ------------------------------------------------------------------------

    def rule(self, w: Block, n: Node) -> Rule | None:
        """The Rule that writes a node; None if there is none."""
        if n not in self._chosen:
            rules = RULES.get(n.op, ()) if n.row is not None else ()
            self._chosen[n] = next((rule for rule in rules if rule.takes(w, n)), None)
        return self._chosen[n]

    def _lowered(self, w: Block, n: Node) -> bool:
        return isinstance(n.row, Composite) and bool(n.lowered) and self.rule(w, n) is None

    def _needs(self, w: Block, n: Node) -> Sequence[Node]:
        """The nodes that are written before a node."""
        if n.is_const or w.find(n) is not None:
            return self._tellers(w, n) if n.is_const else ()
        if self._lowered(w, n):
            return n.lowered
        rule = self.rule(w, n)
        reads = n.inputs if rule is None else rule.reads(n)
        return (
            *(x for x in reads if not x.is_const or x.value is None or x.value.dtype == object),
            *self._tellers(w, n),
        )

    def _tellers(self, w: Block, n: Node) -> list[Node]:
        """The nodes that give the sizes which a node needs."""
        found = []
        for name in sorted(symbols_of(n)):
            for block in w.chain():
                teller = block.graph.size_nodes.get(name)
                if teller is not None and teller is not n:
                    found.append(teller)
                    break
        return found

    def fill(self, w: Block, roots: Sequence[Node]) -> None:
        """Write all that some nodes need."""
        for n in postorder(roots, lambda n: self._needs(w, n)):
            if w.find(n) is None and not n.is_const:
                w.values[n] = self._written(w, n)
                self._tell_sizes(w, n)

    def _tell_sizes(self, w: Block, n: Node) -> None:
        """Let the block find the sizes that a node gives."""
        names = n.attrs.get(FOUND, ()) if n.row is not None else ()
        dims = iter(names)
        for k, (shape, _) in enumerate(n.results if names else ()):
            for axis in range(len(shape)):
                name = next(dims)
                if name:
                    w.sizes[name] = self._size_of(n, k, axis)
        for name, teller in w.graph.size_nodes.items():
            if teller is n and name not in w.sizes:
                w.sizes[name] = lambda block: block.node(
                    "Reshape", block.cast(block.name(n), n.dtype, int64), block.vector([1])
                )

    @staticmethod
    def _size_of(n: Node, k: int, axis: int) -> SizeSource:
        if n.op in SIZES:
            return lambda block: SIZES[n.op](block, n, k)
        return lambda block: block.shape_of((block.find(n) or ())[k], axis)

    # --- one node ----------------------------------------------------------------------------------------------------

    def _written(self, w: Block, n: Node) -> tuple[str, ...]:
        try:
            return self._values(w, n)
        except CompileError as e:
            self.refused.add(n, str(e))
            return tuple(self.constants.fresh("refused") for _ in n.results)

    def _values(self, w: Block, n: Node) -> tuple[str, ...]:
        if n.is_input:
            raise CompileError(f"the value {n.name!r} is no input of the graph")
        if isinstance(n.row, Result):
            found = w.find(n.inputs[0])
            assert found is not None
            return (found[n.attrs["index"]],)
        if isinstance(n.row, Region):
            return self._branches(w, n) if n.op == "if" else self._loop(w, n)
        for kind in (*(kind for _, kind in n.results), *(kind for x in n.inputs for _, kind in x.results)):
            if too_new(kind, w.opset):
                raise CompileError(f"{kind} is newer than opset {w.opset}; give opset={SINCE_TYPE[kind.name]} or later")
            if kind.name in ONLY_CAST and n.op != "cast":
                raise CompileError(f"no op of ONNX but Cast takes {kind}; cast it first")
            if kind in COMPLEX:
                raise CompileError(
                    "ONNX's ops take no complex numbers; keep the real and the imaginary part as an axis of two"
                )
        if self._lowered(w, n):
            return tuple(w.name(x) for x in n.lowered)
        rule = self.rule(w, n)
        if rule is not None:
            reads = rule.reads(n)
            return _moved(w, n, rule, reads) if n.op in MOVES else _names(rule.write(w, n, *(w.name(x) for x in reads)))
        if isinstance(n.row, Elementwise):
            return (self._by_words(w, n, n.row),)
        raise CompileError(_advice(n, w.opset))

    def _by_words(self, w: Block, n: Node, row: Elementwise) -> str:
        used: set[scalar.Expr] = set()

        def body(*args: scalar.Expr) -> scalar.Expr:
            found = scalar.cast(row.body(*args, **n.attrs), n.dtype.compute)
            used.update(v for v in scalar.postorder([found]) if v.word == "var")
            return found

        made = elementwise(w, body, [(w.name(x), x.dtype) for x in n.inputs], n.dtype)
        # The value of an expression that does not depend on all of its inputs lacks their shape.
        return made if len(used) == len(n.inputs) or n.shape == () else w.node("Expand", made, w.shape(n.shape))

    # --- regions -----------------------------------------------------------------------------------------------------

    def _inner(self, w: Block, graph: Graph) -> Block:
        """The block of a region; the sizes that it takes from outside are computed there."""
        for name in sorted(graph.free):
            if w.knows(name):
                w.size(name)
        return Block(self.constants, graph, w)

    def _branches(self, w: Block, n: Node) -> tuple[str, ...]:
        condition, *captures = n.inputs
        attributes = {}
        for name, key in (("then_branch", "then"), ("else_branch", "otherwise")):
            graph: Graph = n.attrs[key]
            inner = self._inner(w, graph)
            inner.values.update((x, (w.name(c),)) for x, c in zip(graph.inputs, captures, strict=True))
            give_sizes(inner, {w.name(c): x for x, c in zip(graph.inputs, captures, strict=True)})
            self.fill(inner, graph.outputs)
            outputs = [self._output(inner, x, f"{name}.output") for x in graph.outputs]
            attributes[name] = GraphRecord(self.constants.fresh(name), [], outputs, inner.nodes)
        flag = w.name(condition) if condition.shape == () else w.reshape(w.name(condition), ())
        return w.several("If", len(n.results), flag, **attributes)

    def _loop(self, w: Block, n: Node) -> tuple[str, ...]:
        graph: Graph = n.attrs["body"]
        conditional, carried, count = n.attrs["conditional"], n.attrs["carried"], n.attrs.get("count")
        first, *rest = n.inputs if conditional else (None, *n.inputs)
        inner = self._inner(w, graph)
        names = [self.constants.fresh("carried") for _ in range(carried)]
        own = dict(zip(names, graph.inputs, strict=False))
        captured = {x: w.name(c) for x, c in zip(graph.inputs[carried:], rest[carried:], strict=True)}
        inner.values.update((x, (name,)) for name, x in own.items())
        inner.values.update((x, (name,)) for x, name in captured.items())
        give_sizes(inner, {**{name: x for x, name in captured.items()}, **own})
        turn, before = self.constants.fresh("turn"), self.constants.fresh("going_on")
        self.fill(inner, graph.outputs if conditional else graph.outputs[1:])
        if conditional:
            going = graph.outputs[0]
            flag = inner.name(going) if going.shape == () else inner.reshape(inner.name(going), ())
        else:
            flag = before
        after = self.constants.fresh("going_on")
        inner.nodes.append(_identity(flag, after))
        outputs = [ValueRecord(after, bool_, ()), *(self._output(inner, x, "carried.next") for x in graph.outputs[1:])]
        taken = [ValueRecord(turn, int64, ()), ValueRecord(before, bool_, ())]
        for k, (name, x) in enumerate(own.items()):
            same = [
                plain(d) == plain(e) == plain(f)
                for d, e, f in zip(rest[k].shape, x.shape, graph.outputs[k + 1].shape, strict=True)
            ]
            taken.append(
                ValueRecord(name, x.dtype, [d if known else None for d, known in zip(x.shape, same, strict=True)])
            )
        body = GraphRecord(self.constants.fresh("body"), taken, outputs, inner.nodes)
        start = w.const(True, bool_) if first is None else w.name(first)
        if first is not None and first.shape != ():
            start = w.reshape(start, ())
        most = "" if count is None else w.scalar(count)
        return w.several("Loop", carried, most, start, *(w.name(x) for x in rest[:carried]), body=body)

    def _output(self, w: Block, n: Node, stem: str) -> ValueRecord:
        """An output of a region, under a name of its own."""
        name = self.constants.fresh(stem)
        w.nodes.append(_identity(w.name(n), name))
        return ValueRecord(name, n.dtype, [d if isinstance(d, int) else None for d in n.shape])


def _identity(x: str, name: str) -> NodeRecord:
    return NodeRecord("Identity", [x], [name])


def _names(made: str | tuple[str, ...]) -> tuple[str, ...]:
    return made if isinstance(made, tuple) else (made,)


def _moved(w: Block, n: Node, rule: Rule, reads: Sequence[Node]) -> tuple[str, ...]:
    """The values of a row that moves elements, in their own type or in their compute type."""
    kind = n.inputs[0].dtype
    carrier = w.carrier(MOVES[n.op], kind)
    if carrier is None:
        raise lacking(MOVES[n.op], kind, w.opset)
    made = _names(
        rule.write(w, n, *(w.cast(w.name(x), kind, carrier) if x.dtype is kind else w.name(x) for x in reads))
    )
    return tuple(w.cast(y, carrier, kind) if own is kind else y for y, (_, own) in zip(made, n.results, strict=True))


def _advice(n: Node, opset: int) -> str:
    if n.op in REASONS:
        return REASONS[n.op]
    if n.row is not None and n.row.outside:
        return "an op of your own has no form in ONNX; write it as a function of Tensors"
    newer = (k for k in range(opset + 1, LATEST + 1) if any(rule.takes(_empty(k), n) for rule in RULES.get(n.op, ())))
    since = next(newer, None)
    if since is not None:
        return f"it has no form in opset {opset}; give opset={since} or later"
    return "it has no form in ONNX; write the model without it, or take its result as an input"


def _empty(opset: int) -> Block:
    return Block(Constants(opset), Graph((), (), ()))
