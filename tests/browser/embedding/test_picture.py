"""singe-picture.js in Chromium: its tensors equal those of core/singe/tasks/picture/spec.py; invalid pictures are refused."""

from __future__ import annotations

import re
import struct
import zlib
from base64 import b64decode, b64encode
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bundles import MODELS, ROOT, STATIC
from sites import served

from singe import load
from singe.tasks.picture import spec as images
from singe.tasks.picture.spec import PictureSpec

PHOTOS = ROOT.parent / "shared" / "photos"
LITE0 = PictureSpec((224, 224), 3, 0.875, (127.0,), (128.0,), "nchw")
SPECS = {
    "lite0": LITE0,
    "wide, every channel its own": PictureSpec((64, 160), 3, 1.0, (123.0, 117.0, 104.0), (58.0, 57.0, 57.0), "nhwc"),
    "grey and larger than most pictures": PictureSpec((600, 500), 1, 1.0, (0.0,), (255.0,), "nchw"),
}


@pytest.fixture(scope="module")
def page(browser: Any) -> Iterator[Any]:
    with served(STATIC) as address, browser.new_page() as page:
        page.goto(f"{address}singe.js")
        yield page


SCRIPT = """async ({ data, spec, source, length }) => {
  const { pictureToTensor } = await import("/singe-picture.js");
  const bytes = Uint8Array.from(atob(data), (c) => c.charCodeAt(0));
  const parts = [bytes];
  for (let left = length ?? 0; left > 0; left -= 1 << 24) parts.push(new Uint8Array(Math.min(left, 1 << 24)));
  const blob = new Blob(parts);
  try {
    let given = blob;
    if (source) {
      const bitmap = await createImageBitmap(blob, { colorSpaceConversion: "none" });
      const context = new OffscreenCanvas(bitmap.width, bitmap.height).getContext("2d");
      context.drawImage(bitmap, 0, 0);
      given = { bitmap, canvas: context.canvas, data: context.getImageData(0, 0, bitmap.width, bitmap.height) }[source];
    }
    const tensor = await pictureToTensor(given, spec);
    const raw = new Uint8Array(tensor.buffer);
    let text = "";
    for (let i = 0; i < raw.length; i += 4096) text += String.fromCharCode(...raw.subarray(i, i + 4096));
    return { data: btoa(text) };
  } catch ({ name, code, message }) {
    return { name, code, message };
  }
}"""


def asked(page: Any, data: bytes, spec: PictureSpec = LITE0, **more: Any) -> dict[str, str]:
    """The result of pictureToTensor for a file."""
    fields = {k: list(v) if isinstance(v, tuple) else v for k, v in vars(spec).items() if k != "input"}
    return page.evaluate(SCRIPT, {"data": b64encode(data).decode(), "spec": fields, **more})


def tensor(page: Any, data: bytes, spec: PictureSpec, **more: Any) -> np.ndarray:
    answer = asked(page, data, spec, **more)
    assert "data" in answer, answer
    return np.frombuffer(b64decode(answer["data"]), np.float32)


def in_pixels(values: np.ndarray, spec: PictureSpec) -> np.ndarray:
    """Elements times std, so that differences are in units of 1/255 of the full range."""
    shape = (spec.channels, -1) if spec.layout == "nchw" else (-1, spec.channels)
    std = np.array(spec.std, np.float32).reshape((-1, 1) if spec.layout == "nchw" else (1, -1))
    return values.reshape(shape) * std


def photos() -> list[Any]:
    names = sorted(p.name for p in PHOTOS.glob("*.*") if p.suffix != ".json") if PHOTOS.exists() else []
    return names or [pytest.param("", marks=pytest.mark.skip(f"no photos in {PHOTOS}"))]


@pytest.mark.parametrize("spec", SPECS.values(), ids=SPECS.keys())
@pytest.mark.parametrize("photo", photos())
def test_photos_become_what_python_makes_of_them(page: Any, photo: str, spec: PictureSpec) -> None:
    found = in_pixels(tensor(page, (PHOTOS / photo).read_bytes(), spec), spec)
    expected = in_pixels(images.read_picture(PHOTOS / photo, spec).reshape(-1), spec)
    difference = np.abs(found - expected)
    assert difference.max() <= 3.01, f"{difference.max()} units of 1/255"
    assert difference.mean() <= 0.25, f"{difference.mean()} units of 1/255 in the mean"


@pytest.mark.skipif(not (PHOTOS.exists() and MODELS.exists()), reason="needs ../shared")
def test_photos_are_classified_alike(page: Any) -> None:
    model = load(MODELS / "efficientnet_lite0.onnx", device="numpy")
    for photo in photos():
        theirs = tensor(page, (PHOTOS / photo).read_bytes(), LITE0).reshape(1, 3, 224, 224)
        ours = images.read_picture(PHOTOS / photo, LITE0)
        assert np.argmax(model(theirs)) == np.argmax(model(ours)), photo


# --- pictures of our own ---------------------------------------------------------------------------------------------


def drawn(size: tuple[int, int] = (61, 37), mode: str = "RGB") -> Any:
    """A picture with four different corners."""
    from PIL import Image  # noqa: PLC0415

    x, y = np.meshgrid(np.linspace(0, 255, size[0]), np.linspace(0, 255, size[1]))
    channels = [x, y, 255 - x, 255 - y][: len(mode)]
    return Image.fromarray(np.stack(channels, -1).astype(np.uint8), mode=None)


def file_of(picture: Any, kind: str, **options: Any) -> bytes:
    out = BytesIO()
    picture.save(out, kind, **options)
    return out.getvalue()


def expected(tmp_path: Path, data: bytes, spec: PictureSpec) -> np.ndarray:
    path = tmp_path / "picture.png"
    path.write_bytes(data)
    return images.read_picture(path, spec).reshape(-1)


SMALL = PictureSpec((20, 24), 3, 0.8, (0.0,), (1.0,), "nhwc")


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "GIF", "BMP", "WEBP", "WEBP lossless", "AVIF"])
def test_kinds_of_files(page: Any, tmp_path: Path, kind: str) -> None:
    pytest.importorskip("PIL")
    name, _, lossless = kind.partition(" ")
    data = file_of(drawn(), name, **({"lossless": True} if lossless else {"quality": 90} if kind == "AVIF" else {}))
    difference = np.abs(tensor(page, data, SMALL) - expected(tmp_path, data, SMALL))
    assert difference.max() <= 3, difference.max()


@pytest.mark.parametrize("turn", range(1, 9))
def test_exif_says_how_a_picture_is_turned(page: Any, tmp_path: Path, turn: int) -> None:
    pil = pytest.importorskip("PIL.Image")
    exif = pil.Exif()
    exif[0x0112] = turn
    data = file_of(drawn(), "JPEG", exif=exif, quality=95)
    difference = np.abs(tensor(page, data, SMALL) - expected(tmp_path, data, SMALL))
    assert difference.max() <= 3, difference.max()


def test_what_is_transparent_lies_on_white(page: Any, tmp_path: Path) -> None:
    pytest.importorskip("PIL")
    data = file_of(drawn(mode="RGBA"), "PNG")
    assert np.abs(tensor(page, data, SMALL) - expected(tmp_path, data, SMALL)).max() <= 3


@pytest.mark.parametrize("source", ["bitmap", "canvas", "data"])
def test_what_a_canvas_draws_is_a_picture(page: Any, source: str) -> None:
    pytest.importorskip("PIL")
    data = file_of(drawn(), "PNG")
    assert np.array_equal(tensor(page, data, SMALL, source=source), tensor(page, data, SMALL))


PIXELS = """async (alpha) => {
  const { PixelRoom, pixelsOf } = await import("/singe-picture.js");
  const image = new ImageData(9, 5);
  for (const k of image.data.keys()) image.data[k] = k % 4 < 3 ? (37 * k) % 256 : k === 179 ? alpha : 255;
  const context = new OffscreenCanvas(9, 5).getContext("2d", { willReadFrequently: true });
  context.putImageData(image, 0, 0);
  const bitmap = await createImageBitmap(context.canvas);
  const frame = new VideoFrame(bitmap, { timestamp: 0 });
  const found = await Promise.all([context.canvas, bitmap, frame].map((source) => pixelsOf(source)));
  const room = new PixelRoom();
  await pixelsOf(new VideoFrame(new Uint8Array(4096).fill(7), { format: "RGBX", codedWidth: 32, codedHeight: 32, timestamp: 0 }), room);
  found.push(await pixelsOf(frame, room));
  frame.close();
  return found.map(({ data, width, height }) => [data.constructor.name, width, height, [...data]]);
}"""


def test_pixels_are_the_same_with_and_without_a_canvas(page: Any) -> None:
    """A bitmap or a frame needs none, unless transparent pixels must be blended with white."""
    canvas, *others = page.evaluate(PIXELS, 255)
    assert canvas[:3] == ["Uint8Array", 9, 5]
    assert others == [canvas] * 3
    expected = np.array([*canvas[3][:-4], 199, 213, 228, 255])
    for found in page.evaluate(PIXELS, 100)[:2]:
        assert np.abs(np.array(found[3]) - expected).max() <= 1


FRAME = """async (format) => {
  const { pixelsOf } = await import("/singe-picture.js");
  const [width, height] = [16, 8];
  const data = new Uint8Array(width * height * 1.5);
  for (const k of data.keys()) data[k] = k < width * height ? 40 + ((13 * (k % width) + 5 * k) % 160) : 128 + (k % 9);
  const colorSpace = { primaries: "bt709", transfer: "bt709", matrix: "bt709", fullRange: false };
  const frame = new VideoFrame(data, { format, codedWidth: width, codedHeight: height, timestamp: 0, colorSpace });
  const found = await pixelsOf(frame);
  const context = new OffscreenCanvas(width, height).getContext("2d", { willReadFrequently: true });
  context.drawImage(frame, 0, 0);
  frame.close();
  const wanted = context.getImageData(0, 0, width, height).data;
  return [found.width, found.height, Math.max(...found.data.map((x, k) => Math.abs(x - wanted[k])))];
}"""


@pytest.mark.parametrize("format", ["I420", "NV12"])
def test_pixels_of_a_camera_s_frame_are_those_that_a_canvas_draws(page: Any, format: str) -> None:
    width, height, far = page.evaluate(FRAME, format)
    assert (width, height) == (16, 8)
    assert far <= 2


@pytest.mark.parametrize("size", [(5000, 3), (3, 5000), (1500, 1200), (1, 1)])
def test_any_proportions(page: Any, tmp_path: Path, size: tuple[int, int]) -> None:
    """Larger ones are taken out of the picture in several strips."""
    pytest.importorskip("PIL")
    data = file_of(drawn(size), "PNG")
    assert np.abs(tensor(page, data, SMALL) - expected(tmp_path, data, SMALL)).max() <= 1


def png_head(width: int, height: int) -> bytes:
    """The beginning of a PNG that claims this width and height."""
    body = b"IHDR" + struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + struct.pack(">I", 13) + body + struct.pack(">I", zlib.crc32(body)) + bytes(32)


JPEG_HEAD = b"\xff\xd8" + b"\xff\xe1" + struct.pack(">H", 9000) + bytes(8998)


@pytest.mark.parametrize(
    ("data", "what"),
    [
        (b"", "this one is empty"),
        (b"%PDF-1.7 and so on, and on, and on and on", "expected a JPEG, PNG, GIF, WebP, AVIF or BMP file"),
        (b"<svg xmlns='http://www.w3.org/2000/svg' width='9' height='9'/>", "expected a JPEG, PNG"),
        (b"\x89PNG\r\n\x1a\n", "expected a JPEG"),
        (png_head(8, 8), "cannot be decoded"),
        (png_head(0, 8), "0 × 8 pixels"),
        (png_head(10000, 10000), "10000 × 10000 pixels, more than can be read"),
        (png_head(40000, 2), "40000 × 2 pixels, more than can be read"),
        (JPEG_HEAD, "ends before its picture begins"),
        (JPEG_HEAD + b"\xff\xc0\x00\x11\x08\x40\x00\x40\x00\x03" + bytes(9), "16384 × 16384 pixels, more than"),
        (b"\xff\xd8\xff\xe0\x00\x00" + bytes(40), "ends before"),
    ],
)  # fmt: skip
def test_what_is_no_picture_is_refused(page: Any, data: bytes, what: str) -> None:
    answer = asked(page, data)
    assert (answer.get("name"), answer.get("code")) == ("SingeError", "input"), answer
    assert what in answer["message"]


def test_a_picture_of_100_megapixels_is_refused_before_it_is_decoded(page: Any) -> None:
    pil = pytest.importorskip("PIL.Image")
    data = file_of(pil.new("L", (10000, 10000)), "PNG")
    answer = asked(page, data)
    assert answer["code"] == "input"
    assert "10000 × 10000 pixels, more than can be read" in answer["message"]


@pytest.mark.parametrize(
    "spec",
    [{"size": [1 << 14, 1 << 14]}, {"size": [0, 4]}, {"channels": 4}, {"crop": 2}, {"std": [0]}, {"mean": []}, {"layout": "x"}],
    ids=str,
)  # fmt: skip
def test_specs_are_checked(page: Any, spec: dict[str, Any]) -> None:
    fields = {k: list(v) if isinstance(v, tuple) else v for k, v in vars(SMALL).items() if k != "input"}
    data = b64encode(png_head(8, 8)).decode()
    answer = page.evaluate(SCRIPT, {"data": data, "spec": {**fields, **spec}})
    assert answer["code"] == "input"
    assert f"the spec's {next(iter(spec))}" in answer["message"]


def test_the_module_that_puts_pixels_in_order_is_made_of_its_text() -> None:
    """Behind what the script holds come the names that the text gives to locals."""
    assembler = pytest.importorskip("wasmtime").wat2wasm
    script = (STATIC / "singe-picture.js").read_text("utf-8")
    (held,) = map(b64decode, re.findall(r'ARRANGE =\s+"([^"]+)"', script))
    assembled = bytes(assembler((Path(__file__).parent / "pixels.wat").read_text("utf-8")))
    assert assembled[: len(held)] == held
    assert re.match(rb"\0.\x04name", assembled[len(held) :])
