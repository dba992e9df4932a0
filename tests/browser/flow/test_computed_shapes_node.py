"""Exported models whose shapes depend on data: singe.js runs one Program on all data, and refuses invalid numbers."""

from __future__ import annotations

from pathlib import Path

import pytest
from bundles import assert_close, packed
from networks.computed_shapes import ASKED, IMPOSSIBLE, MODELS, asking
from pages import node
from peer import answers, session

from singe.model.files import load
from singe.tools.export.bundle import export


@pytest.mark.parametrize("name", MODELS)
def test_one_program_serves_all_data(name: str, tmp_path: Path) -> None:
    made, data = MODELS[name]()
    export(load(made.SerializeToString(), "numpy"), tmp_path)
    theirs = session(made)
    body = "return answer(load, given.url, { device: 'wasm' }, given.cases);"
    done = node(body, url=tmp_path.as_uri(), cases=[packed(given) for given in data])
    for found, given in zip(done["outputs"], data, strict=True):
        assert_close(found, answers(theirs, given))


@pytest.mark.parametrize("op", ASKED)
def test_what_cannot_be_is_refused(op: str, tmp_path: Path) -> None:
    export(load(asking(op), "numpy"), tmp_path)
    body = """
    const model = await load(given.url, { device: "wasm" });
    const run = (s) => model.run({ s: BigInt64Array.from(s, BigInt) });
    const refused = [];
    for (const s of given.impossible) refused.push(await failure(() => run(s)));
    return { refused, shape: (await run(given.value)).y.shape };
    """
    *_, value, shape = ASKED[op]
    impossible = [*(s.tolist() for s in IMPOSSIBLE), [2**31 - 1, 1]]
    done = node(body, url=tmp_path.as_uri(), value=value.tolist(), impossible=impossible)
    assert all(r["name"] == "SingeError" for r in done["refused"]), done
    assert done["shape"] == list(shape)
