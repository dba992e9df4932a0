"""Tasks of pictures beside their leaders of npm, from a frame to findings, in one Chromium, taking turns.

    python tests/bench/races/pictures_page.py [--only blazeface] [--threads 1] [--rounds 30] [--site DIR]
    python tests/bench/races/pictures_page.py --only ppocr-tiny [--picture letter.jpg] --rounds 3
    python tests/bench/races/pictures_page.py --camera 10

Each is asked for what an ImageBitmap shows. Beside onnxruntime-web 1.30, which runs the network alone, stand a canvas that resizes and a loop
that normalises; beside MediaPipe's tasks-vision 1.1.0 its own task, by its CPU delegate, with the same files; beside tesseract.js 7 with its
data for English (`4.0.0_best_int`), which is given a PNG file, texts of a page of 32 lines that is drawn here, and of a letter. A time is processor time of all
the browser's processes, so that other programs on the machine count little. --camera: frames a second of a stream of 640 x 480 at 30 frames
a second, for so many seconds in each of two turns, beside the other's. --site: a folder that keeps what is exported.
"""

from __future__ import annotations

import argparse
import io
import re
import shutil
import statistics
import struct
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
import zipfile
from pathlib import Path
from typing import Any, Final

import numpy as np
from PIL import Image, ImageDraw, ImageFont
from playwright.sync_api import Page, sync_playwright

import singe as sg
from singe.files import zoo
from singe.late_dataclass import dataclass
from singe.tasks.picture.pixels import pixels_of
from singe.tools.serving.folder_server import Server

sys.path.insert(0, str(Path(__file__).parents[1]))

from ort_web import CHROMIUM, FLAGS, package

ROOT: Final = Path(__file__).parents[3]
SAMPLES: Final = ROOT / "demos" / "tasks" / "samples"
VISION: Final = "@mediapipe/tasks-vision"
VISION_VERSION: Final = "1.1.0"
TESSERACT: Final = ("tesseract.js", "tesseract.js-core", "@tesseract.js-data/eng")
TESSERACT_VERSIONS: Final = ("7.0.0", "7.0.0", "1.0.0")
PAGE_OF_TEXT: Final = ("page.png", 1240, 1754)
"""A picture that is drawn here: 32 lines of 82 characters, of a guide."""
MARK: Final = "singe-pictures-race"
AT_ONCE: Final = 20
"""Answers in a turn, unless they take long."""
SETTLED: Final = 2
"""Seconds until a stream is steady."""


@dataclass(frozen=True)
class Race:
    """kind: of Singe's task; name: its model of the zoo; picture: a sample, and the size at which it is shown; peer: how the page opens the
    other, with the arguments that follow; at_once: answers in a turn."""

    kind: str
    name: str
    picture: tuple[str, int, int]
    peer: tuple[Any, ...]
    at_once: int = AT_ONCE


_MASKS: Final = {"outputConfidenceMasks": True, "outputCategoryMask": False}
RACES: Final = (
    Race("faces", "blazeface-onnx", ("astronaut.jpg", 512, 512), ("onnx", "blazeface.onnx", 128, 127.5, 127.5)),
    Race("classify", "page-orientation", ("letter.jpg", 900, 1150), ("onnx", "page_orientation.onnx", 224, 116, 58)),
    Race("faces", "blazeface", ("astronaut.jpg", 640, 480), ("vision", "FaceDetector", "blazeface.tflite", "detectForVideo", {})),
    Race("cutout", "selfie", ("astronaut.jpg", 640, 480), ("vision", "ImageSegmenter", "selfie.tflite", "segmentForVideo", _MASKS)),
    Race("landmarks", "hands", ("figure.jpg", 640, 480), ("vision", "HandLandmarker", "hands.task", "detectForVideo", {"numHands": 2})),
    Race("ocr", "ppocr-tiny", PAGE_OF_TEXT, ("tesseract",), 1),
    Race("ocr", "ppocr-tiny", ("letter.jpg", 900, 1150), ("tesseract",), 2),
)  # fmt: skip
PAGE: Final = """<!doctype html><meta charset=utf-8><title>race</title><video muted></video>
<script type=module>
const runs = {}, tasks = {};
const opens = {
  async onnx(threads, file, side, mean, std) {
    const ort = await import("./node_modules/onnxruntime-web/dist/ort.wasm.min.mjs");
    ort.env.wasm.wasmPaths = "/node_modules/onnxruntime-web/dist/";
    ort.env.wasm.numThreads = threads;
    const session = await ort.InferenceSession.create(`./files/${file}`, { executionProviders: ["wasm"] });
    const context = new OffscreenCanvas(side, side).getContext("2d", { willReadFrequently: true });
    const { shape } = session.inputMetadata[0];
    const isLast = shape[3] === 3;
    return async (picture) => {
      context.drawImage(picture, 0, 0, side, side);
      const { data } = context.getImageData(0, 0, side, side);
      const x = new Float32Array(3 * side * side);
      for (let k = 0; k < side * side; k++)
        for (let c = 0; c < 3; c++) x[isLast ? 3 * k + c : c * side * side + k] = (data[4 * k + c] - mean) / std;
      const given = new ort.Tensor("float32", x, isLast ? [1, side, side, 3] : [1, 3, side, side]);
      return Object.keys(await session.run({ [session.inputNames[0]]: given })).join(" ");
    };
  },
  async vision(threads, kind, file, method, options) {
    const vision = await import("./node_modules/VISION/vision_bundle.mjs");
    const files = await vision.FilesetResolver.forVisionTasks("/node_modules/VISION/wasm");
    const model = new Uint8Array(await (await fetch(`./files/${file}`)).arrayBuffer());
    const made = await vision[kind].createFromOptions(files, { baseOptions: { modelAssetBuffer: model, delegate: "CPU" }, runningMode: "VIDEO", ...options });
    let time = 0;
    return async (picture) => {
      const found = made[method](picture, (time += 33));
      if (found.confidenceMasks) {
        const mask = found.confidenceMasks.at(-1).getAsFloat32Array();
        found.close();
        return mask.reduce((a, b) => a + b, 0) / mask.length;
      }
      return JSON.stringify(found.detections?.map((one) => one.boundingBox) ?? found.landmarks.map((points) => points[0]));
    };
  },
  async tesseract(threads) {
    const { createWorker } = (await import("./node_modules/tesseract.js/dist/tesseract.esm.min.js")).default;
    const [workerPath, corePath] = ["/node_modules/tesseract.js/dist/worker.min.js", "/node_modules/tesseract.js-core"];
    const worker = await createWorker("eng", 1, { workerPath, corePath, langPath: "/node_modules/@tesseract.js-data/eng/4.0.0_best_int", cacheMethod: "none" });
    let file;
    return async (picture) => {
      if (!file) {
        const canvas = new OffscreenCanvas(picture.width, picture.height);
        canvas.getContext("2d").drawImage(picture, 0, 0);
        file = await canvas.convertToBlob();
      }
      return (await worker.recognize(file)).data.text;
    };
  },
};
const told = (answer) => JSON.stringify(answer, (_, x) => (ArrayBuffer.isView(x) ? x.length : x));
window.open_ = async (name, threads) => {
  const { task } = await import("SCRIPTS/singe-tasks.js");
  tasks[name] = await task(`./bundles/${name}/`, { device: "wasm", threads });
};
window.prepare = async (name, threads, picture, width, height, [how, ...given]) => {
  await open_(name, threads);
  const blob = await (await fetch(`./files/${picture}`)).blob();
  const shown = await createImageBitmap(blob, { resizeWidth: width, resizeHeight: height });
  const other = await opens[how](threads, ...given);
  runs.singe = async () => told(await tasks[name](shown));
  runs.other = async () => other(shown);
};
window.times = async (who, count) => {
  let [least, answer] = [Infinity, ""];
  for (let k = 0; k < count; k++) {
    const begun = performance.now();
    answer = await runs[who]();
    least = Math.min(least, performance.now() - begun);
  }
  return [least, String(answer).slice(0, 150)];
};
window.follow = async (name, threads, [how, ...given]) => {
  await open_(name, threads);
  const other = await opens[how](threads, ...given);
  const video = document.querySelector("video");
  video.srcObject = await navigator.mediaDevices.getUserMedia({ video: { width: 640, height: 480, frameRate: 30 } });
  await video.play();
  let following = { stop() {} };
  window.begin = (who) => {
    following.stop();
    window.taken = [];
    if (who === "singe") return void (following = tasks[name].stream(video, (_, { milliseconds }) => taken.push(milliseconds)));
    let isOn = true;
    following = { stop: () => (isOn = false) };
    const next = async () => {
      const begun = performance.now();
      await other(video);
      taken.push(performance.now() - begun);
      if (isOn) video.requestVideoFrameCallback(next);
    };
    video.requestVideoFrameCallback(next);
  };
  return [video.videoWidth, video.videoHeight];
};
window.ready = true;
</script>"""


def with_normalisation(model: bytes, mean: float, std: float) -> bytes:
    """A TFLite file with what MediaPipe's tasks read of its first input: a Model's table of its own is put before the file's."""
    own = struct.unpack_from("<I", model)[0]
    table = own - struct.unpack_from("<i", model, own)[0]
    count = (struct.unpack_from("<H", model, table)[0] - 4) // 2
    places = [struct.unpack_from("<H", model, table + 4 + 2 * k)[0] for k in range(count)]
    version = struct.unpack_from("<I", model, own + places[0])[0]
    at = {
        k: own + place + struct.unpack_from("<I", model, own + place)[0]
        for k, place in enumerate(places)
        if place and k
    }
    buffers = [
        at[4] + 4 + 4 * k + struct.unpack_from("<I", model, at[4] + 4 + 4 * k)[0]
        for k in range(struct.unpack_from("<I", model, at[4])[0])
    ]
    facts = _facts_of(mean, std)
    head = bytearray(b"\0\0\0\0TFL3")

    def place(data: bytes) -> int:
        head.extend(bytes(-len(head) % 4))
        head.extend(data)
        return len(head) - len(data)

    def vtable(*fields: int) -> bytes:
        return struct.pack(f"<{2 + len(fields)}H", 4 + 2 * len(fields), 28, *fields)

    shapes = place(vtable(4, 8, 12, 16, 20, 0, 24))
    root = place(struct.pack("<i6I", 0, version, 0, 0, 0, 0, 0))
    lists = place(struct.pack("<I", len(buffers) + 1) + bytes(4 * (len(buffers) + 1)))
    named = place(struct.pack("<2I", 1, 0))
    fields = place(struct.pack("<5H", 8, 12, 4, 8, 0))
    entry = place(struct.pack("<i2I", 0, 0, len(buffers)))
    name = place(struct.pack("<I", 15) + b"TFLITE_METADATA\0")
    stored = place(struct.pack("<4H", 6, 8, 4, 0))
    buffer = place(struct.pack("<iI", 0, 0))
    data = place(struct.pack("<I", len(facts)))
    head.extend(facts)
    head.extend(bytes(-len(head) % 16))
    start = len(head)

    def point(where: int, to: int) -> None:
        struct.pack_into("<I", head, where, to - where)

    for where, shape in ((root, shapes), (entry, fields), (buffer, stored)):
        struct.pack_into("<i", head, where, where - shape)
    point(0, root)
    for offset, to in (
        (8, start + at[1]),
        (12, start + at[2]),
        (16, start + at.get(3, at[2])),
        (20, lists),
        (24, named),
    ):
        point(root + offset, to)
    if 3 not in at:
        struct.pack_into("<H", head, shapes + 4 + 2 * 3, 0)
    for k, to in enumerate(buffers):
        point(lists + 4 + 4 * k, start + to)
    point(lists + 4 + 4 * len(buffers), buffer)
    point(named + 4, entry)
    point(entry + 4, name)
    point(buffer + 4, data)
    return bytes(head) + model


def _facts_of(mean: float, std: float) -> bytes:
    """TFLite's metadata of one input: by how it is normalised."""
    import flatbuffers  # noqa: PLC0415 (a package of the importer)

    b = flatbuffers.Builder(256)

    def table(count: int, *fields: tuple[int, int]) -> int:
        b.StartObject(count)
        for k, offset in fields:
            b.PrependUOffsetTRelativeSlot(k, offset, 0)
        return b.EndObject()

    def vector(offset: int) -> int:
        b.StartVector(4, 1, 4)
        b.PrependUOffsetTRelative(offset)
        return b.EndVector()

    numbers: list[int] = []
    for value in (mean, std):
        b.StartVector(4, 1, 4)
        b.PrependFloat32(value)
        numbers.append(b.EndVector())
    options = table(2, (0, numbers[0]), (1, numbers[1]))
    b.StartObject(2)
    b.PrependUint8Slot(0, 1, 0)
    b.PrependUOffsetTRelativeSlot(1, options, 0)
    units = vector(b.EndObject())
    name = b.CreateString("image")
    tensors = vector(table(7, (0, name), (4, units)))
    graphs = vector(table(10, (2, tensors)))
    b.Finish(table(8, (3, graphs)), b"M001")
    return bytes(b.Output())


def write_files(root: Path, races: list[Race]) -> None:
    """What the page fetches: the bundles of Singe's tasks, and the files of the others."""
    files = root / "files"
    files.mkdir(parents=True, exist_ok=True)
    for race in races:
        if not (root / "bundles" / race.name).exists():
            sg.export(
                sg.task(race.kind, f"zoo:{race.name}", device="wasm"), root / "bundles" / race.name, targets=["wasm"]
            )
        if race.picture == PAGE_OF_TEXT:
            draw_page(files / race.picture[0])
        else:
            shutil.copy(SAMPLES / race.picture[0], files)
        if race.kind == "ocr":
            continue
        own = {name.split("/")[-1]: Path(path).read_bytes() for name, path in zoo.fetch_all(f"zoo:{race.name}").items()}
        if race.peer[0] == "onnx":
            (files / race.peer[1]).write_bytes(own[race.peer[1]])
        elif race.name == "hands":
            made = io.BytesIO()
            with zipfile.ZipFile(made, "w") as task:
                for name, of in (
                    ("hand_detector.tflite", "palms.tflite"),
                    ("hand_landmarks_detector.tflite", "hand.tflite"),
                ):
                    task.writestr(name, with_normalisation(own[of], 0.0, 255.0))
            (files / race.peer[2]).write_bytes(made.getvalue())
        else:
            ((name, model),) = own.items()
            (files / name).write_bytes(
                with_normalisation(model, *((127.5, 127.5) if race.kind == "faces" else (0.0, 255.0)))
            )


def draw_page(path: Path) -> None:
    text = re.sub(
        r"```.*?```|[^ -~]|[`*_|#\[\]()-]",
        " ",
        (ROOT / "docs" / "guides" / "tasks.md").read_text("utf-8"),
        flags=re.DOTALL,
    )
    lines = textwrap.wrap(" ".join(word for word in text.split() if len(word) < 22), 82)[:32]
    page = Image.new("RGB", PAGE_OF_TEXT[1:], "white")
    for k, line in enumerate(lines):
        ImageDraw.Draw(page).text((80, 80 + 48 * k), line, "black", ImageFont.load_default(24))
    page.save(path)


def installed(name: str, *packages: str) -> Path:
    """The folder of packages of npm, which are fetched once."""
    cache = ROOT / "tests" / ".cache" / name
    if not (cache / "node_modules").exists():
        command = ["npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix", str(cache)]
        subprocess.run([*command, *packages], check=True, stdout=subprocess.DEVNULL)
    return cache / "node_modules"


def write_peers(root: Path) -> None:
    vision = installed(f"vision-{VISION_VERSION}", f"{VISION}@{VISION_VERSION}")
    versions = [f"{name}@{version}" for name, version in zip(TESSERACT, TESSERACT_VERSIONS, strict=True)]
    texts = installed(f"tesseract-{TESSERACT_VERSIONS[0]}", *versions)
    for name, folder in (
        (VISION, vision / VISION),
        ("onnxruntime-web", package() / "node_modules" / "onnxruntime-web"),
        *((name, texts / name) for name in TESSERACT),
    ):
        if not (root / "node_modules" / name).exists():
            shutil.copytree(folder, root / "node_modules" / name, ignore=shutil.ignore_patterns("*.map"))


def write_camera(path: Path, race: Race) -> None:
    """A video of a sample, 640 x 480, that moves a little."""
    pixels = pixels_of(SAMPLES / race.picture[0])[..., :3]
    with path.open("wb") as file:
        file.write(b"YUV4MPEG2 W640 H480 F30:1 Ip A1:1 C420jpeg\n")
        for k in range(60):
            turn = 2 * np.pi * k / 60
            y, x = (np.linspace(0.5, side - 0.5, out) for side, out in zip(pixels.shape, (480, 640), strict=False))
            rows = np.clip(y + 8 * np.sin(turn), 0, pixels.shape[0] - 1).astype(int)
            columns = np.clip(x + 8 * np.cos(turn), 0, pixels.shape[1] - 1).astype(int)
            red, green, blue = np.moveaxis(pixels[rows][:, columns].astype(np.float32), 2, 0)
            luma = 0.299 * red + 0.587 * green + 0.114 * blue
            others = [128 + 0.564 * (blue - luma), 128 + 0.713 * (red - luma)]
            halves = [x.reshape(240, 2, 320, 2).mean((1, 3)) for x in others]
            file.write(
                b"FRAME\n" + b"".join(np.clip(x, 0, 255).round().astype(np.uint8).tobytes() for x in (luma, *halves))
            )


def processor_times() -> tuple[float, float]:
    """Seconds that the race's browser has computed so far: its pages, and all of it."""
    taken: dict[str, tuple[int, bool]] = {}
    group = ""
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            command = (folder / "cmdline").read_text()
            if CHROMIUM.split("/")[-1] not in command:
                continue
            own = (folder / "stat").read_text().rsplit(") ", 1)[1].split()[2]
            if MARK in command and "--type=" not in command:
                group = own
            time = sum(int((x / "schedstat").read_text().split()[0]) for x in (folder / "task").iterdir())
            taken[f"{own} {folder.name}"] = time, "--type=renderer" in command
        except OSError:  # it has ended
            continue
    mine = [pair for key, pair in taken.items() if key.split()[0] == group]
    return sum(time for time, is_page in mine if is_page) / 1e9, sum(time for time, _ in mine) / 1e9


def raced(page: Page, race: Race, threads: int, rounds: int) -> str:
    page.evaluate("(given) => prepare(...given)", [race.name, threads, *race.picture, list(race.peer)])
    times: dict[str, list[tuple[float, float, float]]] = {"singe": [], "other": []}
    for number in range(rounds + 1):
        for who, taken in times.items():
            begin = processor_times()
            least, answer = page.evaluate("(given) => times(...given)", [who, race.at_once])
            if number:  # the first turn warms up
                own, all_ = (
                    1e3 * (now - then) / race.at_once for now, then in zip(processor_times(), begin, strict=True)
                )
                taken.append((own, all_, least))
            else:
                print(f"  {who}: {answer}", flush=True)
    told: list[str] = []
    for k, what in enumerate(("page", "browser", "clock")):
        one, other = ([row[k] for row in taken] for taken in times.values())
        ratios = statistics.median(one) / statistics.median(other), min(one) / min(other)
        pairs = [f"{statistics.median(x):.2f} ({min(x):.2f})" for x in (one, other)]
        told.append(f"{what} {' beside '.join(pairs)}: {ratios[0]:.2f} ({ratios[1]:.2f})")
    return f"{race.name}, {race.picture[0]}, {threads} threads, ms: {'; '.join(told)}"


def followed(page: Page, race: Race, threads: int, seconds: int) -> str:
    """Frames a second, the median of the time of each, and its processor time."""
    width, height = page.evaluate("(given) => follow(...given)", [race.name, threads, list(race.peer)])
    told: list[str] = []
    for who in ("singe", "other", "singe", "other"):
        page.evaluate("(who) => begin(who)", who)
        time.sleep(SETTLED)
        count, begin, start = page.evaluate("taken.length"), processor_times(), time.perf_counter()
        time.sleep(seconds)
        times, end, stop = page.evaluate("taken"), processor_times(), time.perf_counter()
        kept = times[count:]
        own, all_ = (1e3 * (now - then) / len(kept) for now, then in zip(end, begin, strict=True))
        rate = len(kept) / (stop - start)
        told.append(
            f"{who} {rate:.1f} frames/s, {statistics.median(kept):.1f} ms each, page {own:.1f}, browser {all_:.1f}"
        )
    return f"{race.name}, {threads} threads, {width} x {height}: {'; '.join(told)}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=sorted({race.name for race in RACES}))
    parser.add_argument("--picture", help="only the races with this picture")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--camera", type=int, default=0)
    parser.add_argument("--site", type=Path)
    args = parser.parse_args()
    races = [
        race
        for race in RACES
        if args.only in (None, race.name)
        and args.picture in (None, race.picture[0])
        and (not args.camera or race.peer[0] == "vision")
    ]
    with tempfile.TemporaryDirectory(prefix="singe-race-") as folder, sync_playwright() as playwright:
        root = args.site or Path(folder)
        write_files(root, races)
        write_peers(root)
        with Server(root, port=0) as server:
            threading.Thread(target=server.serve_forever, daemon=True).start()
            for race in races:
                (root / "index.html").write_text(
                    PAGE.replace("VISION", VISION).replace("SCRIPTS", f"./bundles/{race.name}"), "utf-8"
                )
                flags = [*FLAGS, f"--user-agent={MARK} Chrome"]
                if args.camera:
                    write_camera(root / "camera.y4m", race)
                    own = "--use-fake-device-for-media-stream --use-fake-ui-for-media-stream --use-file-for-fake-video-capture"
                    flags += f"{own}={root / 'camera.y4m'}".split(" ")
                browser = playwright.chromium.launch(executable_path=CHROMIUM, args=flags)
                page = browser.new_page()
                page.goto(server.address)
                page.wait_for_function("window.ready === true")
                told = (
                    followed(page, race, args.threads, args.camera)
                    if args.camera
                    else raced(page, race, args.threads, args.rounds)
                )
                print(told, flush=True)
                browser.close()
            server.shutdown()


if __name__ == "__main__":
    main()
