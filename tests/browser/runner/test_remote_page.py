"""The device "remote": a bundle's program runs on a device that a server of this machine lends."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest
from bundles import assert_close, dtypes_case, packed, small_case, weighty_graph, write_bundle
from pages import Page, open_page, phases, stopped_by

import singe as sg
from singe.tools.export.bundle import export
from singe.tools.export.page.scripts import bundle_scripts

pytest.importorskip("websockets", reason="the extra `remote` is not installed")
pytestmark = pytest.mark.slow

LOAD: Final = """
const remote = { url: given.url, token: given.token };
const open = (name, more) => load("/bundles/" + name, { device: "remote", remote, ...more });
"""


@pytest.fixture(scope="module")
def chromium(browser: Any, bundle: Callable[[str], Path], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    bundle("dtypes")
    root = bundle("small").parent
    step = sg.train.TrainStep(
        sg.nn.Linear(3, 2, rng=0), sg.optim.SGD(0.1), lambda m, x: (m(x) ** 2).mean(), device="numpy"
    )
    if not (root / "step").exists():
        export(step.as_model(np.ones((4, 3), np.float32)), root / "step")
        export(sg.Model.of(lambda x: x + 1, {"x": (2,)}, "numpy"), root / "wasm_alone", ["wasm"])
    with open_page(browser, root) as page:
        yield page


@pytest.fixture
def server() -> Iterator[sg.remote.RemoteServer]:
    with sg.remote.RemoteServer("wasm", port=0) as found:
        yield found


def facts(server: sg.remote.RemoteServer) -> dict[str, Any]:
    return {"url": server.url, "token": server.token}


@pytest.mark.parametrize("lent", ["wasm", "webgpu"])
def test_outputs_are_those_of_a_device_of_the_page(chromium: Page, lent: str) -> None:
    try:
        sg.device(lent)
    except sg.DeviceError as e:
        pytest.skip(str(e))
    cases = [small_case(n) for n in (3, 1, 200, 2, 3)]
    inputs, expected = dtypes_case(37)
    body = """
    const answers = await answer(open, "small", {}, given.cases);
    const model = await open("dtypes");
    const dtypes = pack(await model.run(unpack(given.dtypes)));
    await model.dispose();
    return { ...answers, dtypes };
    """
    with sg.remote.RemoteServer(lent, port=0) as server:
        found = chromium.run(LOAD + body, cases=[packed(x) for x, _ in cases], dtypes=packed(inputs), **facts(server))
    for got, (_, wanted) in zip(found["outputs"], cases, strict=True):
        assert_close(got, wanted)
    assert_close(found["dtypes"], expected)
    assert found["device"] == "remote"
    assert phases(found["progress"]) == ["download", "compile", "ready", "run", "ready"]


def test_a_run_is_one_round_trip_and_sends_its_inputs(chromium: Page, server: sg.remote.RemoteServer) -> None:
    body = """
    const model = await open("small");
    const inputs = unpack(given.inputs);
    await model.run(inputs);
    const before = model.remote;
    const out = new Float32Array(800);
    await model.run(inputs, { outputs: { scores: out } });
    const after = model.remote;
    const sizes = Object.values(inputs).map(({ data }) => data.byteLength);
    await model.dispose();
    const beside = after.sent - before.sent - sizes.reduce((a, b) => a + b);
    return { trips: after.trips - before.trips, beside, filled: out.some(Boolean), device: after.device };
    """
    found = chromium.run(LOAD + body, inputs=packed(small_case(200)[0]), **facts(server))
    assert found["trips"] == 1
    print(f"{found['beside']} bytes beside the inputs")
    assert found["beside"] < 1000
    assert found["filled"]
    assert found["device"] == "wasm"


def test_weights_that_the_server_has_are_neither_fetched_nor_sent(chromium: Page) -> None:
    body = """
    const model = await open("weighty", { cache: false });
    const { sent } = model.remote;
    const found = pack(await model.run(unpack(given.inputs)));
    await model.dispose();
    return { found, sent };
    """
    folder = write_bundle(weighty_graph(), chromium.root / "weighty", "weighty")
    x = np.random.default_rng(0).normal(size=(2, 5, 7, 6)).astype(np.float32)
    found = []
    for weights in ((), (folder,)):
        chromium.asked.clear()
        with sg.remote.RemoteServer("wasm", port=0, weights=weights) as server:
            done = chromium.run(LOAD + body, inputs=packed({"x": x}), **facts(server))
        found.append((done["sent"], done["found"], any("/weights-" in path for path in chromium.asked)))
    (sent, expected, fetched), (less, same, again) = found
    assert (fetched, again) == (True, False)
    assert same == expected
    assert sent - less > 80_000


def test_weights_of_a_bundle_for_another_target_are_refused(chromium: Page) -> None:
    with pytest.raises(sg.InputError, match="it has no program for wgsl; export it again: singe export"):
        sg.remote.RemoteServer("webgpu", port=0, weights=[chromium.root / "wasm_alone"])


def test_states_are_kept_by_the_server(chromium: Page, server: sg.remote.RemoteServer) -> None:
    """Steps of training, sessions, copies, and states that are read and written: as on the page's own device."""
    body = """
    const told = [];
    for (const device of ["wasm", "remote"]) {
      const model = await load("/bundles/step", device === "wasm" ? { device } : { device, remote });
      const [name] = model.inputs.map(({ name }) => name);
      const batch = { [name]: { data: Float32Array.from({ length: 12 }, (_, k) => k / 6 - 1), shape: [4, 3] } };
      const [loss] = model.outputs.map(({ name }) => name);
      const losses = [];
      const once = async (runs) => losses.push((await runs.step(batch))[loss].data[0]);
      const session = model.session();
      for (let k = 0; k < 3; k++) await once(session);
      const copy = session.copy();
      await once(copy);
      await once(model);
      const weight = model.states.find(({ dtype, shape }) => dtype === "float32" && shape.join() === "2,3").name;
      const kept = await session.read(weight);
      await copy.write(weight, kept);
      losses.push(...kept, ...(await copy.read(weight)));
      await session.reset();
      await once(session);
      await model.dispose();
      told.push(losses);
    }
    return told;
    """
    here, there = chromium.run(LOAD + body, **facts(server))
    assert there == pytest.approx(here, rel=1e-6)
    assert here[0] == here[4] == here[-1] != here[1]


def test_what_is_refused_says_what_to_do(chromium: Page, server: sg.remote.RemoteServer) -> None:
    def failed(options: str, name: str = "small", **more: Any) -> tuple[str, str]:
        found = chromium.failed(LOAD + f"await open('{name}', {options});", **{**facts(server), **more})
        return found["code"], found["message"]

    code, text = failed("{}", token="no")
    assert code == "device"
    assert "the token is wrong: give the one that the server printed" in text
    code, text = failed("{}", url="ws://127.0.0.1:1")
    assert code == "device"
    assert "no server answers at ws://127.0.0.1:1: start one there: singe host" in text
    assert "--origin http://127.0.0.1" in text
    assert failed("{ remote: { url: 3 } }")[0] == "input"
    assert failed("{ remote: { url: 'http:/' } }")[0] in ("device", "input")
    assert "unknown option" in failed("{ colour: 1 }")[1]
    assert "it goes with device" in failed("{ device: 'wasm' }")[1]
    with sg.remote.RemoteServer("numpy", port=0) as other:
        code, text = failed("{}", **facts(other))
        assert (code, "singe host --device wasm" in text) == ("device", True)
    found = chromium.failed(LOAD + "const m = await open('small'); await m.run({ x: [1] });", **facts(server))
    assert found["code"] == "input"


@pytest.mark.full
def test_a_bundle_without_the_servers_target(chromium: Page) -> None:
    try:
        sg.device("webgpu")
    except sg.DeviceError as e:
        pytest.skip(str(e))
    with sg.remote.RemoteServer("webgpu", port=0) as server:
        found = chromium.failed(LOAD + "await open('wasm_alone');", **facts(server))
    assert found["code"] == "device"
    assert "singe export MODEL --targets wasm,webgpu" in found["message"]


@pytest.mark.full
def test_what_takes_several_frames(chromium: Page, server: sg.remote.RemoteServer) -> None:
    """Weights, inputs and outputs of more than a frame each."""
    body = """
    const model = await open("wide");
    const found = pack(await model.run(unpack(given.inputs)));
    await model.dispose();
    return { found, sent: model.remote.sent };
    """
    rng = np.random.default_rng(0)
    x, w = rng.normal(size=(600, 800)).astype(np.float32), rng.normal(size=(800, 900)).astype(np.float32)
    export(sg.Model.of(lambda x: x @ w, {"x": ("N", 800)}, "numpy"), chromium.root / "wide", ["wasm"])
    done = chromium.run(LOAD + body, inputs=packed({"x": x}), **facts(server))
    (name,) = done["found"]
    assert_close(done["found"], {name: x @ w})
    assert done["sent"] > x.nbytes + w.nbytes


def test_a_server_that_stops_rejects_all_that_wait(chromium: Page) -> None:
    body = """
    const model = await open("small");
    const inputs = unpack(given.inputs);
    await model.run(inputs);
    const runs = Array.from({ length: 3 }, () => failure(() => model.run(inputs)));
    await fetch(given.stop);
    await Promise.all(runs);
    const late = Array.from({ length: 3 }, () => failure(() => model.run(inputs)));
    return Promise.all(late);
    """
    server = sg.remote.RemoteServer("wasm", port=0)
    with stopped_by(server.stop) as stop:
        found = chromium.run(LOAD + body, inputs=packed(small_case(3)[0]), stop=stop, **facts(server))
    assert [one["code"] for one in found] == ["lost"] * 3
    assert all("it is late" in one["message"] for one in found)


def test_a_connection_that_is_lost_is_made_again(chromium: Page) -> None:
    """The next run sends the program to the server that is there now."""
    body = """
    const model = await open("small");
    const inputs = unpack(given.inputs);
    await model.run(inputs);
    await fetch(given.stop);
    const found = pack(await model.run(inputs));
    await model.dispose();
    return found;
    """
    inputs, expected = small_case(3)
    first = sg.remote.RemoteServer("wasm", port=0)
    second: list[sg.remote.RemoteServer] = []

    def renew(reason: str) -> None:
        first.stop(reason)
        second.append(sg.remote.RemoteServer("wasm", port=first.port, token=first.token))

    try:
        with stopped_by(renew) as stop:
            found = chromium.run(LOAD + body, inputs=packed(inputs), stop=stop, **facts(first))
    finally:
        for server in second:
            server.stop("the test is over")
    assert_close(found, expected)


def test_pages_without_it_fetch_nothing_of_it(chromium: Page) -> None:
    """Its script is loaded on demand, for arguments that do not fit a device of the page; a bundle has it as one file."""
    assert "singe-remote.js" in bundle_scripts()
    assert bundle_scripts()["singe.js"].count(b"remote") == 1
    assert "singe-connection.js" not in bundle_scripts()
    chromium.asked.clear()
    chromium.run("const model = await load('/bundles/small', { device: 'wasm', cache: false }); await model.dispose();")
    assert not [path for path in chromium.asked if "remote" in path or "connection" in path]


def test_a_bundles_own_scripts(browser: Any, chromium: Page, server: sg.remote.RemoteServer) -> None:
    """The scripts of a bundle, each joined of several modules."""
    body = """
    const { load: own } = await import("/bundles/small/singe.js");
    const model = await own("/bundles/small", { device: "remote", remote });
    const found = pack(await model.run(unpack(given.inputs)));
    await model.dispose();
    return found;
    """
    inputs, expected = small_case(3)
    assert_close(chromium.run(LOAD + body, inputs=packed(inputs), **facts(server)), expected)
