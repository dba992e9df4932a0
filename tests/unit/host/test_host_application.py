"""The ASGI application of models, called without a server: routes, who may ask, batches, the queue, and its end."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Coroutine, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from kserve import Answer, call, request
from networks.control_graphs import endless

import singe as sg
from singe import nn
from singe.awaitables import resolve
from singe.host import Application, application, bodies
from singe.host.batching import ServedModel
from singe.runtime.eager import EagerDevice
from singe.runtime.registry import open_backend
from singe.tensors.tensor import Tensor
from singe.time_limits import opened_for

X = np.array([[1, 2, 3], [4, 5, 6]], np.float32)
ONE = "requests run one by one"


def two(x: Tensor) -> dict[str, Tensor]:
    return {"double": x * 2, "sum": x.sum(axis=1)}


def model(function: Callable[..., Any] = two, shape: tuple[int | str, ...] = ("N", 3), name: str = "m") -> sg.Model:
    return sg.Model.of(function, {"x": shape}, device="numpy", name=name)


def asked(app: Application, *requests: Coroutine[Any, Any, Answer]) -> list[Answer]:
    """The answers of requests that are made at once."""

    async def work() -> list[Answer]:
        found = await asyncio.gather(*requests)
        await app.stop("the test is over")
        return found

    return asyncio.run(work())


def ask(app: Application, path: str, body: Any = None, method: str = "", **headers: str) -> Answer:
    return asked(app, call(app, path, body, method, **headers))[0]


def infer(app: Application, inputs: Mapping[str, np.ndarray], binary: bool = False, **more: Any) -> Any:
    body, headers = request(inputs, binary, **more)
    return call(app, "/v2/models/m/infer", body, **headers)


# --- routes -----------------------------------------------------------------------------------------------------------


def test_what_there_is_is_described() -> None:
    app = Application(model())
    assert ask(app, "/v2").json["extensions"] == ["binary_tensor_data"]
    app = Application({"m": model(), "other": model()})
    for path in ("/v2/models/m", "/v2/models/m/versions/1"):
        assert ask(Application(model()), path).json == {
            "name": "m",
            "versions": ["1"],
            "platform": "singe",
            "inputs": [{"name": "x", "datatype": "FP32", "shape": [-1, 3]}],
            "outputs": [
                {"name": "double", "datatype": "FP32", "shape": [-1, 3]},
                {"name": "sum", "datatype": "FP32", "shape": [-1]},
            ],
        }
    assert ask(app, "/v2/models/other").json["name"] == "other"
    assert ask(Application(model()), "/v2/models/m/ready").json == {"name": "m", "ready": True}


def test_it_may_be_a_part_of_a_larger_application() -> None:
    assert ask(Application(model()), "/v2/models/m/ready", root="/ml").json["ready"]


def test_it_is_ready_until_it_is_stopped() -> None:
    app = Application(model(), token="secret")
    assert ask(app, "/v2/health/ready").json == {"ready": True}  # and then it is stopped
    assert ask(app, "/v2/health/live").status == 200
    ready = ask(app, "/v2/health/ready")
    assert (ready.status, ready.json) == (503, {"ready": False})


@pytest.mark.parametrize("binary", [False, True])
@pytest.mark.parametrize("device", ["numpy", pytest.param("wasm", marks=pytest.mark.slow)])
def test_a_run_has_all_outputs_or_those_that_are_wanted(device: str, binary: bool) -> None:
    try:
        made = sg.Model.of(two, {"x": ("N", 3)}, device=device, name="m")
    except sg.DeviceError as e:
        pytest.skip(str(e))
    app = Application(made)
    every, one = asked(
        app, infer(app, {"x": X}, binary, id="a"), infer(app, {"x": X}, binary, outputs=[{"name": "sum"}])
    )
    assert every.outputs["double"].tolist() == (X * 2).tolist()
    assert every.outputs["sum"].tolist() == [6, 15]
    assert list(one.outputs) == ["sum"]
    assert ("inference-header-content-length" in every.headers) is binary
    if not binary:
        assert (every.json["model_name"], every.json["id"]) == ("m", "a")


def test_texts_and_scalars_and_values_that_decide_shapes() -> None:
    def repeated(x: Tensor, k: Tensor) -> Tensor:
        return x + k

    made = sg.Model.of(repeated, {"x": (2,), "k": ()}, dtypes={"k": "float32"}, device="numpy", name="m")
    app = Application(made)
    (found,) = asked(app, infer(app, {"x": np.ones(2, np.float32), "k": np.array(3, np.float32)}))
    assert next(iter(found.outputs.values())).tolist() == [4, 4]


def test_each_request_begins_with_the_initial_states() -> None:
    def counted(x: Tensor, count: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        return x + count, {"count": count + 1}

    made = sg.Model.of(counted, {"x": (1,)}, states={"count": np.zeros(1, np.float32)}, device="numpy", name="m")
    app = Application(made, batch=4)
    assert app.models["m"].alone
    one = {"x": np.ones(1, np.float32)}
    assert [a.outputs["output"].tolist() for a in asked(app, infer(app, one), infer(app, one))] == [[1], [1]]


def test_files_are_called_by_their_names(tmp_path: Path) -> None:
    path = tmp_path / "digits.singe"
    sg.save(model(), path)
    compiled = tmp_path / "compiled.singe"
    model().program().save(compiled)
    app = Application([path, compiled], "numpy")
    body, _ = request({"x": X})
    for name in ("digits", "compiled"):
        assert ask(Application([path, compiled], "numpy"), f"/v2/models/{name}/infer", body).outputs[
            "sum"
        ].tolist() == [6, 15]
    assert list(app.models) == ["digits", "compiled"]
    with pytest.raises(sg.InputError, match="two models are called 'digits'"):
        Application([path, path], "numpy")


@pytest.mark.parametrize(
    ("models", "options", "match"),
    [
        ([], {}, "give at least one"),
        ({"a/b": None}, {}, "without a slash"),
        ("m", {"batch": 0}, "batch: got 0"),
        ("m", {"queue": 0}, "queue: got 0"),
        ("m", {"wait": -1.0}, "wait: got -1.0"),
    ],
)
def test_what_cannot_be_served_is_refused(models: Any, options: Any, match: str) -> None:
    with pytest.raises(sg.InputError, match=match):
        Application(model() if models == "m" else models, **options)


def test_models_of_other_types_are_refused() -> None:
    made = sg.Model.of(lambda x: x, {"x": (2,)}, dtypes={"x": "complex64"}, device="numpy", name="waves")
    with pytest.raises(sg.InputError, match="waves: 'x' is of the type complex64"):
        Application(made)


# --- requests that are wrong ------------------------------------------------------------------------------------------

OK, _ = request({"x": X})
BAD: list[tuple[str, bytes | None, str, dict[str, str], int]] = [
    ("/", None, "", {}, 404),
    ("/v2/", None, "", {}, 200),
    ("/v3", None, "", {}, 404),
    ("/v2/models", None, "", {}, 404),
    ("/v2/models/q", None, "", {}, 404),
    ("/v2/models/q/infer", OK, "", {}, 404),
    ("/v2/models/m/versions/2", None, "", {}, 404),
    ("/v2/models/m/versions/1/infer", OK, "", {}, 200),
    ("/v2/models/m/load", OK, "", {}, 404),
    ("/v2/models/../../etc/passwd", None, "", {}, 404),
    ("/v2/models/m\n/infer", OK, "", {}, 404),
    ("/v2/models/m", OK, "", {}, 405),
    ("/v2/models/m/infer", None, "", {}, 405),
    ("/v2/models/m/infer", OK, "PUT", {}, 405),
    ("/v2/health/live", OK, "", {}, 405),
    ("/v2/models/m/infer", b"", "", {}, 400),
    ("/v2/models/m/infer", b"{}", "", {}, 400),
    ("/v2/models/m/infer", OK[:-1], "", {}, 400),
    ("/v2/models/m/infer", OK, "", {"Content-Length": "-1"}, 400),
    ("/v2/models/m/infer", OK, "", {"Content-Length": "1e3"}, 400),
    ("/v2/models/m/infer", OK, "", {"Content-Length": "³"}, 400),
    ("/v2/models/m/infer", OK, "", {"Content-Length": "99999999999"}, 413),
    ("/v2/models/m/infer", OK + bytes(3000), "", {}, 413),
    ("/v2/models/m/infer", OK, "", {"Inference-Header-Content-Length": "x"}, 400),
    ("/v2/models/m/infer", OK, "", {"Inference-Header-Content-Length": "9999"}, 400),
    ("/v2/models/m/infer", OK, "", {"Inference-Header-Content-Length": "9"}, 400),
    ("/v2/models/m/infer", OK, "", {"Content-Encoding": "gzip"}, 415),
    ("/v2/models/m/infer", OK, "", {"Host": "evil.example"}, 403),
    ("/v2/models/m/infer", OK, "", {"Origin": "https://evil.example"}, 403),
    ("/v2/models/m/infer", OK, "", {"Origin": "http://[::1"}, 403),
    ("/v2/models/m/infer", request({"x": X[:, :2]})[0], "", {}, 400),
    ("/v2/models/m/infer", request({"x": X.astype(np.float64)})[0], "", {}, 400),
    ("/v2/models/m/infer", request({"x": X, "y": X})[0], "", {}, 400),
]  # fmt: skip


@pytest.mark.parametrize(("path", "body", "method", "headers", "status"), BAD)
def test_each_request_gets_its_status(
    path: str, body: bytes | None, method: str, headers: dict[str, str], status: int
) -> None:
    app = Application(model(), body=2000)
    answer = ask(app, path, body, method, **headers)
    assert answer.status == status
    if status != 200:
        assert list(answer.json) == ["error"]
    assert app._held.size == 0


def test_a_body_without_a_length_is_counted_as_it_comes() -> None:
    app = Application(model(), body=2000)
    pieces = [b"x" * 900] * 3
    answer = ask(app, "/v2/models/m/infer", pieces)
    assert answer.status == 413
    left = ask(Application(model()), "/v2/models/m/infer", [OK[:20], OK[20:]])
    assert left.status == 200


def test_bodies_may_hold_so_much_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bodies, "MAX_HELD_BYTES", 10)
    app = Application(model())
    answer = ask(app, "/v2/models/m/infer", OK)
    assert (answer.status, answer.headers["retry-after"]) == (503, "1")
    assert app._held.size == 0


def test_a_body_that_does_not_come_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bodies, "BODY_SECONDS", 0.01)
    app, sent = Application(model()), []

    async def never() -> Any:
        await asyncio.Event().wait()

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {"type": "http", "method": "POST", "path": "/v2/models/m/infer", "headers": [(b"host", b"localhost")]}
    asyncio.run(app(scope, never, send))
    assert sent[0]["status"] == 408


def test_a_client_that_takes_nothing_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(application, "SEND_SECONDS", 0.01)
    app = Application(model())

    async def receive() -> Any:
        return {"type": "http.request"}

    async def never(message: Any) -> None:
        await asyncio.Event().wait()

    scope = {"type": "http", "method": "GET", "path": "/v2", "headers": [(b"host", b"localhost")]}
    with pytest.raises(TimeoutError):
        asyncio.run(app(scope, receive, never))


def test_headers_that_decide_come_once() -> None:
    app, sent = Application(model()), []

    async def receive() -> Any:
        return {"type": "http.request"}

    async def send(message: Any) -> None:
        sent.append(message)

    headers = [(b"host", b"localhost"), (b"host", b"evil.example")]
    asyncio.run(app({"type": "http", "method": "GET", "path": "/v2", "headers": headers}, receive, send))
    assert sent[0]["status"] == 400


@pytest.mark.parametrize(
    ("given", "status"),
    [
        ("", 401),
        ("Bearer", 401),
        ("Bearer wrong", 401),
        ("Basic secret", 401),
        ("Bearer ü", 401),
        ("bearer secret", 200),
    ],
)
def test_the_token_is_asked_for(given: str, status: int) -> None:
    headers = {"Authorization": given} if given else {}
    answer = ask(Application(model(), token="secret"), "/v2/models/m/infer", OK, **headers)
    assert answer.status == status
    assert status == 200 or answer.headers["www-authenticate"] == "Bearer"


def test_pages_that_may_ask_are_told_so() -> None:
    app = Application(model(), origins=["https://page.example"], token="secret")
    asking = ask(app, "/v2/models/m/infer", b"", "OPTIONS", Origin="https://page.example")
    assert asking.status == 204
    assert "authorization" in asking.headers["access-control-allow-headers"]
    assert asking.headers["access-control-allow-origin"] == "https://page.example"
    assert ask(app, "/v2/models/m/infer", b"", "OPTIONS", Origin="https://other.example").status == 403


def test_an_unexpected_error_is_printed_and_not_told(capsys: pytest.CaptureFixture[str]) -> None:
    app = Application(model())

    def broken(*_: Any) -> Any:
        raise MemoryError("\x1b[2J")

    app.models["m"]._run = broken  # pyright: ignore[reportAttributeAccessIssue]
    (answer,) = asked(app, infer(app, {"x": X}))
    assert answer.status == 500
    assert "the server has printed why" in answer.json["error"]
    assert "MemoryError: \\x1b[2J" in capsys.readouterr().err


def test_counts_are_there_for_prometheus() -> None:
    app = Application(model(), batch=4, wait=0.5)
    asked(app, *(infer(app, {"x": X}) for _ in range(2)), call(app, "/v2/models/m/infer", b"{}"))
    lines = ask(app, "/metrics").body.decode().splitlines()
    assert 'singe_requests_total{model="m"} 3' in lines
    assert 'singe_errors_total{model="m",status="400"} 1' in lines
    assert 'singe_request_seconds_count{model="m"} 3' in lines
    assert 'singe_batch_rows_bucket{model="m",le="2"} 0' in lines
    assert 'singe_batch_rows_bucket{model="m",le="4"} 1' in lines
    assert 'singe_queue_length{model="m"} 0' in lines
    assert all(line.startswith("#") or len(line.split(" ")) == 2 for line in lines)


# --- batches ----------------------------------------------------------------------------------------------------------


def test_joined_requests_get_what_they_get_alone() -> None:
    rng = np.random.default_rng(0)
    layer = nn.Linear(3, 5, rng=0)
    given = [rng.normal(size=(n, 3)).astype(np.float32) for n in (1, 2, 3, 1, 8, 9, 1, 4, 0)]
    alone, joined = (Application(model(layer), batch=n, wait=0.05) for n in (1, 8))
    assert joined.models["m"].alone == ""
    one, many = (
        [a.outputs for a in asked(app, *(infer(app, {"x": x}, True) for x in given))] for app in (alone, joined)
    )
    for a, b in zip(one, many, strict=True):
        np.testing.assert_allclose(a["output"], b["output"], rtol=1e-5, atol=1e-6)
    assert joined.models["m"].counts.rows._counts[0] == 2  # those of no row, and of more than a batch
    assert sum(joined.models["m"].counts.rows._counts) < len(given)


def test_a_full_batch_does_not_wait() -> None:
    app = Application(model(), batch=4, wait=60)
    body, _ = request({"x": X})

    async def work() -> list[Answer]:
        return await asyncio.wait_for(asyncio.gather(*(call(app, "/v2/models/m/infer", body) for _ in range(4))), 30)

    assert [a.status for a in asyncio.run(work())] == [200] * 4


def test_a_wrong_request_spoils_no_other_of_its_batch() -> None:
    table = np.arange(5, dtype=np.float32)

    def looked_up(x: Tensor) -> Tensor:
        return sg.tensor(table)[x]

    made = sg.Model.of(looked_up, {"x": ("N",)}, dtypes={"x": "int64"}, device="numpy", name="m")
    app = Application(made, batch=8, wait=0.05)
    assert app.models["m"].alone == ""
    right, wrong = {"x": np.array([1, 4])}, {"x": np.array([1, 99])}
    found = asked(app, infer(app, right), infer(app, wrong), infer(app, right))
    assert [a.status for a in found] == [200, 400, 200]
    assert found[2].outputs["output"].tolist() == [1, 4]


MIXED: list[tuple[Callable[..., Any], tuple[int | str, ...], str]] = [
    (lambda x: x - x.mean(axis=0), ("N", 3), "rows of a batch depend on each other"),
    (lambda x: x.sum(axis=0), ("N", 3), "the first size of each input and output"),
    (lambda x: x * 2, (2, 3), "the first size of each input and output"),
    (lambda x: x @ x.T, ("N", 3), "N is in other places than the first"),
    (lambda x: x.reshape(-1), ("N", 3), "the first size of each input and output"),
]  # fmt: skip


@pytest.mark.parametrize(("function", "shape", "why"), MIXED)
def test_rows_that_depend_on_each_other_are_not_joined(
    function: Callable[..., Any], shape: tuple[int | str, ...], why: str
) -> None:
    served = ServedModel("m", model(function, shape), batch=8)
    assert served.alone.startswith(ONE)
    assert why in served.alone
    assert served._most == 1


def test_a_bound_of_rows_bounds_the_batch() -> None:
    assert ServedModel("m", model(shape=("N<=4", 3)), batch=8)._most == 4
    assert ServedModel("m", model(lambda x: x * 2, ("N", "L<=4", 3)), batch=8)._most == 8


# --- the queue and the end --------------------------------------------------------------------------------------------


class Slow:
    """A model whose runs wait until they may go on."""

    def __init__(self, app: Application) -> None:
        self.begun, self.may = threading.Event(), threading.Event()
        served = app.models["m"]
        run = served._run

        def slow(arrays: Any) -> Any:
            self.begun.set()
            assert self.may.wait(60)
            return run(arrays)

        served._run = slow  # pyright: ignore[reportAttributeAccessIssue]


async def first(app: Application, slow: Slow) -> asyncio.Task[Answer]:
    """A request that runs."""
    task = asyncio.ensure_future(infer(app, {"x": X}))
    await asyncio.to_thread(slow.begun.wait, 60)
    return task


async def queued(app: Application, count: int) -> None:
    """Wait until so many requests wait."""
    while app.models["m"].counts.waiting() < count:
        await asyncio.sleep(0)


def test_a_full_queue_is_503_and_the_loop_answers_meanwhile() -> None:
    app = Application(model(), queue=2)
    slow = Slow(app)

    async def work() -> None:
        running = await first(app, slow)
        waiting = [asyncio.ensure_future(infer(app, {"x": X})) for _ in range(2)]
        await queued(app, 2)
        refused = await infer(app, {"x": X})
        assert (refused.status, refused.headers["retry-after"]) == (503, "1")
        assert (await call(app, "/v2/models/m/ready")).status == 200
        assert 'singe_queue_length{model="m"} 2' in (await call(app, "/metrics")).body.decode()
        slow.may.set()
        assert [a.status for a in await asyncio.gather(running, *waiting)] == [200] * 3

    asyncio.run(work())


@pytest.mark.parametrize("name", ["numpy", "wasm"])
def test_a_run_that_never_ends_is_504_and_the_next_is_answered(name: str) -> None:
    with opened_for(0.3):
        device = EagerDevice(resolve(open_backend(name), ""))
    app = Application({"m": sg.Model(endless(), device)}, seconds=0.3)
    x = np.ones(2, np.float32)

    async def work() -> None:
        for given, status in ((x, 504), (-x, 200), (x, 504), (-x, 200)):
            answer = await infer(app, {"x": given})
            assert answer.status == status
            if status == 504:
                assert b"the answer was not there after 0.3 s, and the server allows no more" in answer.body

    asyncio.run(work())


def test_who_waits_for_a_run_that_cannot_be_stopped_gets_504() -> None:
    app = Application(model(), seconds=0.2)
    slow = Slow(app)

    async def work() -> None:
        running = await first(app, slow)
        assert [a.status for a in await asyncio.gather(running, infer(app, {"x": X}))] == [504, 504]
        slow.may.set()
        await app.stop("the test is over")

    asyncio.run(work())


def test_the_end_finishes_what_runs_and_refuses_what_waits() -> None:
    app = Application(model())
    slow = Slow(app)

    async def work() -> None:
        running = await first(app, slow)
        waiting = asyncio.ensure_future(infer(app, {"x": X}))
        await queued(app, 1)
        ending = asyncio.ensure_future(app.stop("it was stopped"))
        refused = await waiting
        assert (refused.status, refused.json["error"]) == (503, "it was stopped")
        assert (await infer(app, {"x": X})).status == 503
        assert not ending.done()
        slow.may.set()
        await ending
        assert (await running).status == 200
        assert app.refused == 1

    asyncio.run(work())


def test_a_server_that_tells_of_its_life_ends_it() -> None:
    app = Application(model())
    messages, sent = [{"type": "lifespan.startup"}, {"type": "lifespan.shutdown"}], []

    async def receive() -> Any:
        return messages.pop(0)

    async def send(message: Any) -> None:
        sent.append(message["type"])

    asyncio.run(app({"type": "lifespan"}, receive, send))
    assert sent == ["lifespan.startup.complete", "lifespan.shutdown.complete"]
    assert json.loads(ask(app, "/v2/health/ready").body) == {"ready": False}
