"""@gutenye/ocr-browser, unmodified, bundled over Singe and over onnxruntime-web: a picture's lines are read the same."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any, Final

import pytest
from packaged import installed, write_pages
from pages import HEADERS
from sites import served_plainly

from singe.tools.export.stub import export_folder

pytestmark = [pytest.mark.slow, pytest.mark.nightly]

OCR: Final = "1.4.8"
DEVICES: Final = ("wasm", "webgpu")
"""For each there are bundles that have it alone, so that a package which names no device runs on it."""
LINES: Final = ("Neural networks", "run in this page", "1234567890")
APP: Final = """
import Ocr from "@gutenye/ocr-browser";
import { env } from "onnxruntime-web";

Object.assign(env.wasm, { wasmPaths: "/node_modules/onnxruntime-web/dist/", numThreads: 1 });

/** What is read in a picture of these lines. */
globalThis.read = async (folder, lines) => {
  const canvas = Object.assign(document.createElement("canvas"), { width: 480, height: 240 });
  const context = canvas.getContext("2d");
  context.fillStyle = "white";
  context.fillRect(0, 0, 480, 240);
  Object.assign(context, { fillStyle: "black", font: "36px sans-serif" });
  lines.forEach((line, k) => context.fillText(line, 40, 60 + 70 * k));
  const paths = { detectionPath: "ch_PP-OCRv4_det_infer.onnx", recognitionPath: "ch_PP-OCRv4_rec_infer.onnx", dictionaryPath: "ppocr_keys_v1.txt" };
  const models = Object.fromEntries(Object.entries(paths).map(([name, file]) => [name, `${folder}/${file}`]));
  const ocr = await Ocr.create({ models });
  return (await ocr.detect(canvas.toDataURL())).map(({ text }) => text);
};
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of each runtime, and the models: as they came, and with stubs in their places."""
    modules = installed(f"ocr-{OCR}", f"@gutenye/ocr-browser@{OCR}")
    folder = tmp_path_factory.mktemp("ocr")
    write_pages(folder, modules, APP, [f"--external:{name}" for name in ("fs", "path", "crypto")])
    shutil.copytree(modules / "@gutenye" / "ocr-models" / "assets", folder / "given")
    (folder / "given" / "ch_ppocr_mobile_v2.0_cls_infer.onnx").unlink()
    for device in DEVICES:
        assert not export_folder(folder / "given", folder / device, targets=[device]).left_out
    return folder


def test_lines_are_read_as_over_onnxruntime_web(browser: Any, site: Path) -> None:
    found = {}
    with served_plainly(site, HEADERS) as address:
        for name, models in (("own", "given"), *(("singe", device) for device in DEVICES)):
            page = browser.new_page()
            page.set_default_timeout(180_000)
            page.goto(f"{address}{name}.html")
            page.wait_for_function("() => !!globalThis.read")
            found[models] = page.evaluate("([folder, lines]) => read(folder, lines)", [f"/{models}", LINES])
            page.close()
    assert [line.replace(" ", "") for line in found["given"]] == [line.replace(" ", "") for line in LINES]
    for device in DEVICES:
        assert found[device] == found["given"], device
