"""The training page in Chromium: its steps are the native ones; it trains, stops, reads what is drawn, is taught, keeps its weights."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest
from desk import LOOKS, Desk, desk
from digits import HANDS
from sites import demos_build, demos_script, until

import singe as sg

ENOUGH: Final = 150
"""Steps after which most digits are read."""
STEPS: Final = """async ([url, device, batches]) => {
  const { load } = await import("/singe.js");
  const model = await load(url, { device });
  const session = model.session();
  const losses = [];
  for (const { x, y } of batches) {
    const given = { x: { data: Float32Array.from(x), shape: [64, 1, 28, 28] }, y: { data: Int32Array.from(y), shape: [64] } };
    losses.push((await session.step(given)).loss.data[0]);
  }
  await model.dispose();
  return losses;
}"""

BY_BOTH: Final = """async ([network, device]) => {
  const { Trainer } = await import("/shared/trainer.js");
  const { fetchDigits } = await import("/shared/digits.js");
  const digits = await fetchDigits("/train/digits.bin");
  const found = [];
  for (const python of [false, true]) {
    const trainer = await Trainer.open({ folder: `/train/model/${network}/`, network, device: python ? device : "wasm", python, digits });
    for (let k = 0; k < 5; k++) await trainer.step();
    const { losses } = trainer.history;
    const { right } = await trainer.evaluate(250);
    const tensors = await trainer.tensors();
    const kinds = tensors.map(({ name, dtype, shape, data }) => `${name} ${dtype} ${shape} ${data.constructor.name} ${data.length}`);
    await trainer.reset();
    await trainer.put(tensors, 5);
    const back = await trainer.evaluate(250);
    await trainer.dispose();
    found.push({ losses, right, kinds, back: back.right });
  }
  return found;
}"""
"""A few steps, evaluated, by singe.js and by Python, from the same weights on the same batches."""


@pytest.fixture(scope="module")
def page(browser: Any, address: str) -> Iterator[Desk]:
    with desk(browser, f"{address}train/", accept_downloads=True) as found:
        found.ready()
        yield found


@pytest.fixture
def trained(page: Desk) -> Desk:
    """The page with the network "small", which has learnt something."""
    if page.item("network").input_value() != "small":
        page.item("network").select_option("small")
        page.ready()
    if int(page.value("steps")) < ENOUGH:
        train(page, ENOUGH)
    return page


def draw(found: Desk, hand: str, digit: int) -> None:
    found.item("canvas").scroll_into_view_if_needed()
    box = found.item("canvas").bounding_box()
    for stroke in HANDS[hand].strokes(digit):
        (x, y), *rest = [(box["x"] + x * box["width"], box["y"] + y * box["height"]) for x, y in stroke]
        found.page.mouse.move(x, y)
        found.page.mouse.down()
        for point in rest:
            found.page.mouse.move(*point)
        found.page.mouse.up()


def train(found: Desk, steps: int) -> None:
    """Train for at least so many steps more, then stop."""
    before = int(found.value("steps"))
    found.item("train").click()
    until(found.page, f"Number(document.getElementById('steps').dataset.value) >= {before + steps}")
    found.item("train").click()
    found.ready()


def hues(found: Desk, name: str) -> float:
    """Which part of a canvas's pixels has a colour that is no grey."""
    return found.item(name).evaluate(
        """(canvas) => {
          const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
          let found = 0;
          for (let k = 0; k < data.length; k += 4) {
            const part = data.subarray(k, k + 3);
            found += data[k + 3] > 128 && Math.max(...part) - Math.min(...part) > 40;
          }
          return (4 * found) / data.length;
        }"""
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("network", "device"), [("plain", "wasm"), ("small", "wasm"), ("strong", "wasm"), ("small", "webgpu")]
)
def test_the_losses_of_its_steps_are_the_native_ones(page: Desk, network: str, device: str) -> None:
    made = demos_build().weights().model_module("train")
    rng = np.random.default_rng(0)
    batches = [(rng.random((64, 1, 28, 28), np.float32), rng.integers(0, 10, 64, np.int32)) for _ in range(3)]
    step = made.step(network)
    wanted = [step(x, y)[0] for x, y in batches]
    given = [{"x": x.ravel().tolist(), "y": y.tolist()} for x, y in batches]
    found = page.page.evaluate(STEPS, [f"/train/model/{network}/step/", device, given])
    np.testing.assert_allclose(found, wanted, rtol=1e-4 if device == "webgpu" else 1e-5)


def test_it_learns_and_reads_what_is_drawn(trained: Desk) -> None:
    page = trained
    assert float(page.value("accuracy")) > 0.85
    assert float(page.value("loss")) < 1.2
    assert float(page.value("speed")) > 0
    assert page.item("mistakes").locator("li").count() > 5
    assert page.item("filters").locator("canvas").count() == 12
    assert hues(page, "losses") > 0.001
    assert hues(page, "accuracies") > 0.001
    draw(page, "round", 1)
    until(page.page, "document.getElementById('prediction').dataset.value === '1'")
    page.item("clear").click()
    assert page.value("prediction") == ""
    steps = int(page.value("steps"))
    train(page, 20)
    assert int(page.value("steps")) >= steps + 20, "it goes on from where it was"


def test_it_is_taught(trained: Desk) -> None:
    page = trained
    assert page.item("learn").is_disabled()
    draw(page, "school", 7)
    page.item("teach-3").click()
    assert page.item("taught").locator("li").count() == 1
    page.item("learn").click()
    page.ready()
    draw(page, "school", 7)
    until(page.page, "document.getElementById('prediction').dataset.value === '3'")
    page.item("clear").click()
    page.item("forget").click()
    assert page.item("taught").locator("li").count() == 0
    assert page.item("learn").is_disabled()


def test_keys_take_strokes_back(page: Desk) -> None:
    draw(page, "school", 7)
    for disabled in (False, True):
        page.page.keyboard.press("Control+z")
        assert page.item("undo").is_disabled() == disabled
    assert page.item("teach-7").is_disabled()
    assert page.value("prediction") == ""


def test_weights_are_kept_as_a_file(trained: Desk, tmp_path: Path) -> None:
    page = trained
    with page.page.expect_download() as download:
        page.item("download").click()
    path = tmp_path / download.value.suggested_filename
    download.value.save_as(path)
    made = demos_build().weights().model_module("train")
    net = sg.load_weights(made.small(), path)
    assert path.name == "small.safetensors"
    page.ready()
    steps, accuracy = int(page.value("steps")), float(page.value("accuracy"))
    page.item("anew").click()
    page.ready()
    assert page.value("steps") == "0"
    page.item("upload").set_input_files(path)
    until(page.page, f"document.getElementById('steps').dataset.value === '{steps}'")
    page.ready()
    assert float(page.value("accuracy")) == pytest.approx(accuracy, abs=1e-9)
    draw(page, "round", 4)
    until(page.page, "document.getElementById('prediction').dataset.value !== ''")
    shown = [float(page.value(f"bar-{k}")) for k in range(10)]
    seen = page.item("view").evaluate(
        "(view) => [...view.getContext('2d').getImageData(0, 0, 28, 28).data.filter((v, i) => i % 4 === 0)]"
    )
    logits = net(sg.tensor(np.array(seen, np.float32).reshape(1, 1, 28, 28) / 255)).softmax(-1).numpy()[0]
    np.testing.assert_allclose(shown, logits, atol=0.02)  # the view has whole numbers
    page.item("clear").click()
    for head in (
        b"nothing of the kind",
        b"null",
        b'{"a": 1}',
        b'{"a": {"dtype": "F32", "shape": [2], "data_offsets": [-8, 0]}}',
    ):
        wrong = len(head).to_bytes(8, "little") + head
        page.item("upload").set_input_files({"name": "no.safetensors", "mimeType": "", "buffer": wrong})
        page.await_state("error")
        assert "no safetensors" in page.item("status").inner_text()
        page.item("network").select_option("plain")
        page.ready()
    page.item("upload").set_input_files(path)
    page.await_state("error")
    assert "another network" in page.item("status").inner_text()


def test_weights_of_the_command_line_are_read(page: Desk, tmp_path: Path) -> None:
    made = demos_build().weights().model_module("train")
    sg.save(made.strong(), tmp_path / "mnist.safetensors")
    page.item("network").select_option("strong")
    page.ready()
    page.item("upload").set_input_files(tmp_path / "mnist.safetensors")
    until(page.page, "document.getElementById('accuracy').dataset.value !== ''")
    page.ready()
    assert page.item("train").inner_text() == "500 more steps"


def test_another_network_is_chosen_while_one_trains(page: Desk) -> None:
    page.item("network").select_option("small")
    page.ready()
    page.item("train").click()
    until(page.page, "Number(document.getElementById('steps').dataset.value) > 5")
    page.item("network").select_option("plain")
    page.ready()
    assert page.value("steps") == "0"
    train(page, 10)
    assert page.item("filters").locator("canvas").count() == 64


def test_where_mnist_cannot_be_had_the_site_has_a_part_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*given: object, **rest: object) -> None:
        raise sg.InputError("no network")

    build = demos_build()
    monkeypatch.setattr(demos_script("kept"), "CACHE", tmp_path)
    monkeypatch.setattr(sg.data, "MNIST", fails)
    said: list[str] = []
    assert build.images_file(build.weights().model_module("train", "data"), said.append).name == "small.bin"
    assert "no network" in said[-1]


def test_a_part_of_mnist_is_called_so(browser: Any, address: str) -> None:
    small = demos_build().HERE / "train" / "small.bin"
    context = browser.new_context(service_workers="block")
    page = context.new_page()
    page.route("**/digits.bin", lambda route: route.fulfill(path=small))
    found = Desk(page)
    page.goto(f"{address}train/")
    found.ready()
    assert found.item("few").is_visible()
    assert found.item("many").inner_text() == "1,000"
    train(found, 30)
    assert "400 test images" in found.item("status").inner_text()
    context.close()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("network", "device"), [("plain", "numpy"), ("small", "wasm"), ("strong", "wasm"), ("small", "webgpu")]
)
def test_python_trains_as_javascript_does(page: Desk, python_site: Path, network: str, device: str) -> None:
    here, python = page.page.evaluate(BY_BOTH, [network, device])
    np.testing.assert_allclose(python["losses"], here["losses"], rtol=1e-4 if device == "webgpu" else 1e-5)
    assert python["kinds"] == here["kinds"]
    assert python["right"] == pytest.approx(here["right"], abs=0.01)
    assert python["back"] == python["right"]


@pytest.mark.slow
def test_it_trains_by_python(browser: Any, python_site: Path, address: str, tmp_path: Path) -> None:
    with desk(browser, f"{address}train/", accept_downloads=True) as found:
        found.choose("numpy")
        assert found.item("python").is_checked()
        assert found.item("python").is_disabled()
        found.choose("wasm", through_python=True)
        train(found, 40)
        assert float(found.value("accuracy")) > 0
        assert hues(found, "losses") > 0.0003
        draw(found, "round", 1)
        until(found.page, "document.getElementById('prediction').dataset.value !== ''")
        with found.page.expect_download() as download:
            found.item("download").click()
        path = tmp_path / "small.safetensors"
        download.value.save_as(path)
        found.ready()
        steps, accuracy = int(found.value("steps")), float(found.value("accuracy"))
        found.choose("wasm", through_python=False)
        assert found.value("steps") == "0"
        found.item("upload").set_input_files(path)
        until(found.page, f"document.getElementById('steps').dataset.value === '{steps}'")
        found.ready()
        assert float(found.value("accuracy")) == pytest.approx(accuracy, abs=0.005), "JavaScript goes on from them"
        assert [text for text in found.console.complaints if "Service Worker" not in text] == []


def test_without_python_its_choices_are_off(browser: Any, address: str) -> None:
    script = "const ask = fetch; self.fetch = (url, o) => String(url).endsWith('/start.js') ? Promise.resolve(Response.error()) : ask(url, o);"
    with desk(browser, f"{address}train/", script) as found:
        until(found.page, "document.querySelector('#backend option[value=numpy]').disabled")
        assert found.item("python").is_disabled()
        assert "built without Python" in found.item("reasons").inner_text()


@pytest.mark.slow
def test_it_trains_on_webgpu(browser: Any, address: str) -> None:
    with desk(browser, f"{address}train/") as found:
        if found.item("backend").locator("option[value=webgpu]").is_disabled():
            pytest.skip(found.item("reasons").inner_text())
        found.item("network").select_option("plain")
        found.ready()
        found.item("backend").select_option("webgpu")
        found.ready()
        train(found, 3)
        assert float(found.value("accuracy")) > 0
        assert [text for text in found.console.complaints if "Service Worker" not in text] == []


@pytest.mark.slow
@pytest.mark.parametrize("look", LOOKS)
def test_looks(browser: Any, address: str, look: str) -> None:
    with desk(browser, f"{address}train/", **LOOKS[look]) as found:
        train(found, 100)
        assert found.fits()
        assert found.small_targets() == []
        assert hues(found, "losses") > 0.001
        drawing, digits = (found.item(name).bounding_box() for name in ("canvas", "prediction"))
        beside = digits["x"] > drawing["x"] + drawing["width"]
        assert beside == (look != "phone"), "what is read stands beside the drawing, where there is room"
        found.page.evaluate("scrollTo(0, 0)")
        found.screenshot(f"train-{look}")
        assert [text for text in found.console.complaints if "Service Worker" not in text] == []
