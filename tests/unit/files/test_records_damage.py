"""Damaged and hostile records are refused, or give a valid Graph."""

from __future__ import annotations

import copy
import re
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from containers import flipped, joined, split, with_hostile_values
from networks.control_graphs import sound_flow

import singe as sg
from singe.dtypes import float32, int64
from singe.graph import Builder, Graph
from singe.shapes import size
from singe.weights.records import model_record, read_graph, read_weights, weights_record


def sound_model() -> bytes:
    """A record of a model with every kind of node and several rows."""
    b = Builder()
    x = b.input("x", (size("N"), 2, 6, 6), float32)
    w = b.const(np.random.default_rng(0).standard_normal((4, 2, 3, 3)).astype(np.float32))
    y = b.conv(x, w, strides=(1, 1), dilations=(1, 1), before=(1, 1), after=(1, 1), group=1)
    y = b.max_pool(
        b.leaky_relu(y, alpha=0.5),
        window=(1, 1, 2, 2), strides=(1, 1, 2, 2), dilations=(1,) * 4, before=(0,) * 4, after=(0,) * 4,
    )  # fmt: skip
    y = b.reshape(b.transpose(y, perm=(0, 2, 3, 1)), shape=(size("N"), 36))
    z = b.add(b.cast(b.reduce_sum(y, axes=(1,)), to=int64), b.gather(b.shape_of(y), b.const(1), axis=0))
    z = b.slice(b.softmax(b.cast(z, to=float32), axis=0), starts=(0, 0), steps=(1, 1), sizes=(size("N"), 1))
    return model_record(Graph((x,), (z, y), ("z", "y")))


def accepts_or_refuses(data: bytes) -> bool:
    """Whether a file is read. The result must be a FormatError or a valid Graph; anything else fails the test."""
    start = time.process_time()
    try:
        graph = read_graph(data)
    except sg.FormatError:
        return False
    finally:
        assert time.process_time() - start < 20
    assert model_record(read_graph(model_record(graph))) == model_record(graph)
    return True


def test_truncation_at_every_offset() -> None:
    data = weights_record({"a": np.ones(3, np.float32)})
    for end in range(len(data)):
        with pytest.raises(sg.FormatError):
            read_weights(data[:end])


@pytest.mark.slow
@pytest.mark.parametrize("sound", [sound_model, sound_flow])
def test_flipped_bytes(sound: Callable[[], bytes]) -> None:
    data = sound()
    assert accepts_or_refuses(data)
    for damaged in flipped(data, 1500):
        accepts_or_refuses(damaged)


@pytest.mark.slow
@pytest.mark.parametrize("sound", [sound_model, sound_flow])
def test_every_value_replaced_by_hostile_ones(sound: Callable[[], bytes]) -> None:
    """With the hash made right again: what is left standing is the checks alone. What is read compiles, or says why not."""
    compiled = 0
    for data in with_hostile_values(sound()):
        if accepts_or_refuses(data):
            try:
                model = sg.Model(read_graph(data), "numpy")
                model.program({p.name: (1, 2, 6, 6)[: len(p.shape or ())] for p in model.inputs})
                compiled += 1
            except sg.SingeError:
                pass
    assert compiled


REFUSED: dict[str, tuple[Callable[[dict[str, Any]], Any], str]] = {
    "an input that is not there": (lambda h: h.update(inputs=[99]), "an input is number 99 of"),
    "an input that is none": (lambda h: h.update(inputs=[0, 1]), "an input is not an input node"),
    "an input twice": (lambda h: h.update(inputs=[0, 0]), "or is listed twice"),
    "an input that is left out": (lambda h: h.update(inputs=[]), "need an input that is not among the inputs"),
    "an output that is not there": (lambda h: h["outputs"][0].update(node=99), "an output is number 99 of"),
    "no outputs": (lambda h: h.update(outputs=[]), "without outputs"),
    "two outputs of one name": (lambda h: h["outputs"][0].update(name="y"), "two outputs have one name"),
    "a node over one behind it": (lambda h: h["nodes"][2].update(inputs=[0, 2]), "node 2: its input is number 2 of 2"),
    "a constant that is not there": (lambda h: h["nodes"][1].update(array=7), "node 1: its array is number 7 of"),
    "an op that is not there": (lambda h: h["nodes"][2].update(op="warp"), "node 2: there is no op 'warp'"),
    "a derivative of derivatives": (lambda h: h["nodes"][2].update(op="exp" + "_d0" * 9), "there is no op 'exp_d0_d0"),
    "too many elements": (lambda h: h["nodes"][0].update(shape=[2**20, 2, 2**20, 6]), "elements: at most"),
    "a negative dimension": (lambda h: h["nodes"][0].update(shape=[-1, 2, 6, 6]), "input gives the shape (-1, 2, 6, 6)"),
    "an attribute of another kind": (lambda h: h["nodes"][3]["attrs"].update(alpha="big"), "'alpha' is 'big'"),
    "an attribute that is none": (lambda h: h["nodes"][3]["attrs"].update(beta=1), "beta"),
    "a field that is missing": (lambda h: h.pop("nodes"), "nodes"),
    "an array beyond the file": (lambda h: h["arrays"][0].update(shape=[2**30]), "the file holds"),
    "an array that is not aligned": (lambda h: h["arrays"][0].update(at=4), "a multiple of 256"),
    "an array that is no halved one": (lambda h: h["arrays"][0].update(stored="int32"), "float32 is stored as int32"),
    "an array of no dtype": (lambda h: h["arrays"][0].update(dtype="f4,(9)i4"), "unknown dtype 'f4,(9)i4', expected one of"),
    "an array of half a shape": (lambda h: h["arrays"][0].update(shape="4"), "a shape of an array is '4'"),
    "arrays that overlap": (
        lambda h: h["arrays"].append({"dtype": "uint8", "stored": "uint8", "shape": [9], "at": 0}),
        "begins within",
    ),
    "another content": (lambda h: h.update(holds="music"), "a record of 'music', expected 'model'"),
    "another version": (lambda h: h.update(format="singe-record/2"), "reads 'singe-record/1'"),
}  # fmt: skip


def op(head: dict[str, Any], name: str) -> dict[str, Any]:
    return next(n for n in head["nodes"] if n.get("op") == name)


def deep(head: dict[str, Any]) -> None:
    """An If in an If in an If …"""
    inner = copy.deepcopy(op(head, "if"))
    for _ in range(40):
        outer = copy.deepcopy(op(head, "if"))
        outer["attrs"]["then"]["graph"]["nodes"] = [
            {"input": "i", "dtype": "float32", "shape": [[[1, "N"]]]}, {"input": "c", "dtype": "bool", "shape": []},
            {**inner, "inputs": [1, 0]},
        ]  # fmt: skip
        inner = outer
    op(head, "if")["attrs"] = inner["attrs"]


FLOWS_REFUSED: dict[str, tuple[Callable[[dict[str, Any]], Any], str]] = {
    "a region that takes another shape": (
        lambda h: op(h, "if")["attrs"]["then"]["graph"]["nodes"][0].update(shape=[1000]),
        "if: value 0 is input(N,):float32, and a region takes it as input(1000,):float32",
    ),
    "a carried value by a size that is another's": (
        lambda h: op(h, "loop")["attrs"]["body"]["graph"]["nodes"][0].update(shape=[[[1, "N"], [1]]]),
        "and a region takes it as",
    ),
    "a region without a graph": (lambda h: op(h, "if")["attrs"].update(then=3), "malformed header"),
    "a region that reads what is outside": (
        lambda h: op(h, "if")["attrs"]["otherwise"]["graph"].update(inputs=[]), "the outputs need an input",
    ),
    "regions without end": (deep, "graphs are nested more than 16 deep"),
    "more carried values than there are": (lambda h: op(h, "loop")["attrs"].update(carried=9), "9 values are carried"),
    "a size that nothing tells": (
        lambda h: op(h, "expand")["attrs"].update(shape=[{"size": [[1, "Q"]]}]), "needs the size Q, which no node before it",
    ),
    "a size that is told later": (
        lambda h: next(n for n in h["nodes"] if "tells" in n).pop("tells"), "needs the size size.0, which no node before it",
    ),
    "a size that is told twice": (
        lambda h: op(h, "nonzero")["attrs"].update(found=["", "N"]), "gives the size N, which has a value already",
    ),
    "a size that is no integer": (lambda h: h["nodes"][0].update(tells=["Q"]), "gives a size, expected one integer"),
    "a state that is none": (lambda h: h["states"][0].update(node=3), "expected one fixed shape"),
    "a state of another shape": (lambda h: h["states"][0].update(updated=2), "expected one fixed shape"),
    "a state that is an input": (lambda h: h.update(inputs=[0, 1]), "an input is not an input node, or is listed twice"),
    "a state that begins otherwise": (lambda h: h["states"][1].update(initial=0), "begins as"),
    "two states of one name": (lambda h: h["states"][1].update(name="count"), "two states have one name"),
}  # fmt: skip


@pytest.mark.parametrize("name", FLOWS_REFUSED)
def test_control_flow_and_states_that_do_not_fit_are_refused(name: str) -> None:
    damage, message = FLOWS_REFUSED[name]
    head, block = split(sound_flow())
    damage(head)
    with pytest.raises(sg.FormatError, match=re.escape(message)):
        read_graph(joined(head, block))


@pytest.mark.parametrize("name", REFUSED)
def test_what_points_nowhere_is_refused(name: str) -> None:
    damage, message = REFUSED[name]
    head, block = split(sound_model())
    damage(head)
    with pytest.raises(sg.FormatError, match=re.escape(message)):
        read_graph(joined(head, block))


@pytest.mark.parametrize(
    ("attrs", "words"),
    [
        ({"sizes": (1, 1, 1, 1 << 30), "scales": (1.0, 1.0, 1.0, 1.0)}, "more than 16777216 weights"),
        ({"scales": (1.0, 1.0, 1.0, 1e-12), "antialias": True}, "more than 16777216 weights"),
        ({"scales": (1.0, 1.0, 1.0, 0.0)}, "expected a number above 0"),
        ({"scales": (1.0, 1.0, 1.0, "x")}, "the attribute 'scales' is"),
        ({"mode": "sharp"}, "mode 'sharp'"),
    ],
)
def test_tables_are_not_made_for_whoever_asks(attrs: dict[str, Any], words: str) -> None:
    b = Builder()
    x = b.input("x", (1, 1, 1, 8), float32)
    y = b.resize(x, sizes=(1, 1, 1, 12), scales=(1.0, 1.0, 1.0, 1.5), mode="linear")
    head, block = split(model_record(Graph((x,), (y,), ("y",))))
    head["nodes"][-1]["attrs"] |= attrs
    with pytest.raises(sg.FormatError, match=words):
        read_graph(joined(head, block))


def test_many_names_for_one_array_take_its_memory_once() -> None:
    head, block = split(weights_record({"a": np.ones(1 << 16, np.float32)}, "float16"))
    head["arrays"] = [{**head["arrays"][0], "name": f"a{k}"} for k in range(2000)]
    found = read_weights(joined(head, block))
    assert len(found) == 2000
    assert len({a.ctypes.data for a in found.values()}) == 1
    head["arrays"][1]["name"] = "a0"
    with pytest.raises(sg.FormatError, match="two arrays have one name"):
        read_weights(joined(head, block))
