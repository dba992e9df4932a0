"""einsum: NumPy's notation, over any dtypes, lowered to matrix products."""

from __future__ import annotations

import numpy as np
import pytest

import singe as sg
from singe.dtypes import float32
from singe.errors import ShapeError
from singe.graph import Builder, Graph, Node, postorder

REFUSED = {
    "ij,jk->ik": "2 terms, got 1 operands",
    "ijk": "the term 'ijk' for 2 axes",
    "i": "the term 'i' for 2 axes",
    "i1": "expected letters",
    "i......": "expected letters",
    "ij->ijk": "the result names 'k' twice, or it is a letter that no term has",
    "ij->ii": "the result names 'i' twice",
    "ii": "different lengths|has the lengths",
}


def test_operands_of_different_types_meet() -> None:
    a, b = np.arange(6, dtype=np.int64).reshape(2, 3), np.linspace(0, 1, 12, dtype=np.float32).reshape(3, 4)
    got = sg.einsum("ij,jk", sg.tensor(a), b)
    assert got.dtype is float32
    np.testing.assert_allclose(got.numpy(), a.astype(np.float32) @ b, rtol=1e-6)


@pytest.mark.parametrize("equation", REFUSED)
def test_wrong_equations_are_refused(equation: str) -> None:
    with pytest.raises(ShapeError, match=REFUSED[equation]):
        sg.einsum(equation, sg.zeros((2, 3)))


def test_products_are_matrix_products() -> None:
    """Letters that are summed over go through `dot`, so that templates apply; what needs no sum does not."""

    def ops(*shapes: tuple[int, ...], equation: str) -> set[str]:
        b = Builder()
        inputs = [b.input(f"x{k}", shape, float32) for k, shape in enumerate(shapes)]
        graph = Graph(tuple(inputs), (b.einsum(*inputs, equation=equation),), ("y",))
        return {n.op for n in postorder(graph.outputs, below) if not n.is_input}

    def below(n: Node) -> tuple[Node, ...]:
        return tuple(n.lowered or n.inputs)

    assert "dot" in ops((2, 3, 4), (2, 4, 5), equation="bij,bjk->bik")
    assert ops((3, 4), (4, 5), equation="ij,jk->ik") <= {"einsum", "dot", "reshape"}
    assert "dot" not in ops((3,), (4,), equation="i,j->ij")
