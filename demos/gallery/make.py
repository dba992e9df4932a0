"""The pictures of the front page's gallery, made of what the models of its pages answer: `python demos/gallery/make.py [NAME ...]`.

A picture is a drawing, NAME.svg beside this file, that the build puts into the front page, over a photo in ../front/gallery/ where it
has one. Both are committed, so that a build needs neither the models nor their time. The drawing's classes are those of
../front/front.css: `draw`, `pop`, `grow` and `wipe` say how a part comes, `wait-N` when.
"""

from __future__ import annotations

import gzip
import html
import sys
import tempfile
import textwrap
import wave as waves_of
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
from PIL import Image

import singe as sg

HERE: Final = Path(__file__).resolve().parent
DEMOS: Final = HERE.parent
PHOTOS: Final = DEMOS / "front" / "gallery"
WIDTH: Final = 280
HEIGHT: Final = 170
"""The drawing's own measures; its photo has twice as many pixels."""
QUALITY: Final = 62
WAITS: Final = 9
"""The steps in which parts come."""
LINE: Final = 13.5
Crop = tuple[int, int, int, int]


def photo(name: str, source: Path, crop: Crop) -> None:
    """A part of a picture, left, top, right and bottom, as a picture of the gallery."""
    with Image.open(source) as found:
        save(name, found.convert("RGB").crop(crop))


def save(name: str, picture: Image.Image, quality: int = QUALITY) -> None:
    PHOTOS.mkdir(exist_ok=True)
    picture.resize((2 * WIDTH, 2 * HEIGHT), Image.Resampling.LANCZOS).save(
        PHOTOS / f"{name}.webp", quality=quality, method=6
    )


def crop_of(left: int, top: int, width: int) -> Crop:
    return left, top, left + width, top + round(width * HEIGHT / WIDTH)


def into(points: Any, crop: Crop) -> Any:
    """Points of a picture as points of the drawing over its part."""
    left, top, right, _ = crop
    return (np.asarray(points, float)[:, :2] - (left, top)) * (WIDTH / (right - left))


def number(x: float) -> str:
    return f"{x:.1f}".rstrip("0").rstrip(".")


def wait(step: float) -> str:
    return f"wait-{min(WAITS, round(step))}"


def line(points: Any, style: str, step: float, closed: bool = False) -> str:
    path = "M" + "L".join(f"{number(x)} {number(y)}" for x, y in points) + ("z" if closed else "")
    return f'<path class="line draw {style} {wait(step)}" pathLength="1" d="{path}"/>'


def rectangle(left: float, top: float, right: float, bottom: float) -> list[tuple[float, float]]:
    return [(left, top), (right, top), (right, bottom), (left, bottom)]


def bar(x: float, y: float, width: float, height: float, style: str, step: float) -> str:
    place = f'x="{number(x)}" y="{number(y)}" width="{number(width)}" height="{number(height)}"'
    return f'<rect class="{style} {wait(step)}" {place}/>'


def text(x: float, y: float, said: str, style: str = "", step: float = 0) -> str:
    shown = f"{style} {wait(step)}".strip()
    return f'<text class="{shown}" x="{number(x)}" y="{number(y)}">{html.escape(said)}</text>'


def label(x: float, y: float, said: str, step: float) -> str:
    """A few words on a ground of their own, over a photo."""
    ground = bar(x, y, 6.2 * len(said) + 10, 17, "label", 0).replace(" wait-0", "")
    return f'<g class="pop {wait(step)}">{ground}{text(x + 5, y + 12.5, said)}</g>'


def bubble(x: float, y: float, width: float, lines: Sequence[str], style: str, step: float) -> str:
    """Words in a box, each line as if it were written."""
    box = f'<rect class="bubble {style}" x="{x}" y="{number(y)}" width="{width}" height="{number(len(lines) * LINE + 11)}" rx="6"/>'
    words = (text(x + 9, y + 15.5 + k * LINE, said, "wipe", step + 1 + k) for k, said in enumerate(lines))
    return f'<g class="pop {wait(step)}">{box}</g>{"".join(words)}'


def drawing(name: str, parts: Sequence[str]) -> None:
    inside = "\n".join(f"  {part}" for part in parts)
    (HERE / f"{name}.svg").write_text(f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" aria-hidden="true">\n{inside}\n</svg>\n')


# --- the cards ---------------------------------------------------------------------------------------------------------


def mnist(_: Path) -> None:
    """A digit that its network has not seen, and the ten probabilities."""
    _, _, images, truth = committed()
    pixels = images[truth == 5][0, 0]
    logits = np.asarray(weights().mnist()(pixels[None, None]))[0]
    shares = np.exp(logits - logits.max())
    shares /= shares.sum()
    parts = []
    for tone in range(1, 5):
        lit = np.argwhere(np.ceil(pixels * 4) == tone)
        path = "".join(f"M{12 + 5 * x} {15 + 5 * y}h5v5h-5z" for y, x in lit)
        parts.append(f'<path class="digit wipe wait-0" opacity="{tone / 4}" shape-rendering="crispEdges" d="{path}"/>')
    for digit, share in enumerate(shares):
        y = 15 + 14.2 * digit
        parts += [text(168, y + 9, str(digit), "quiet"), bar(180, y + 1, 84, 8, "rest", 0)]
        parts.append(bar(180, y + 1, max(0.8, 84 * share), 8, "temper grow", 4))
    drawing("mnist", parts)


def train(_: Path) -> None:
    """How the loss fell and the share of right answers rose, while the digits' network learnt."""
    record = np.genfromtxt(DEMOS / "trained" / "mnist.csv", delimiter=",", names=True)
    loss, right = record["trainloss"], record["validaccuracy"]
    xs = np.linspace(24, 216, len(record))
    down = np.stack([xs, 148 - 118 * loss / loss.max()], 1)
    up = np.stack([xs, 148 - 118 * (right - 0.95) / 0.05], 1)
    parts = ['<path class="axis" d="M18 16V154H262"/>', line(down, "violet", 0), line(up, "straw", 3)]
    parts += [
        text(222, down[-1][1] + 2, "loss", "quiet"),
        text(222, up[-1][1] + 4, f"{100 * right[-1]:.1f} %", "pop", 8),
    ]
    drawing("train", parts)


def committed() -> tuple[Any, Any, Any, Any]:
    """The digits of the training page that are committed: images to learn from and what they are, and those to test with."""
    raw = gzip.decompress(weights().model_module("train", "data").SMALL.read_bytes())
    count, tests = np.frombuffer(raw, "<u4", 2).tolist()
    labels = np.frombuffer(raw, np.uint8, count + tests, 8)
    images = np.frombuffer(raw, np.uint8, offset=8 + count + tests).reshape(-1, 1, 28, 28).astype(np.float32) / 255
    return images[:count], labels[:count], images[count:], labels[count:]


def classify(_: Path) -> None:
    source = DEMOS / "classify" / "samples" / "cat.jpg"
    facts = weights().model_module("classify")
    model = weights().classify(DEMOS / ".cache")
    task = sg.task("classify", model, labels="imagenet", mean=facts.MEAN, std=facts.STD)
    left, top, side = 411 // 2 - 120, 274 // 2 - 120, 240  # the middle, as the page takes it
    with Image.open(source) as found:
        answers = task(found.convert("RGB").crop((left, top, left + side, top + side)), top=3)
    photo("classify", source, crop_of(0, 8, 411))
    parts = ['<rect class="label" x="0" y="104" width="280" height="66"/>']
    for k, answer in enumerate(answers):
        y = 112 + 19 * k
        parts += [text(12, y + 9, answer.label.split(",")[0]), bar(120, y + 1, 108, 9, "rest", 0)]
        parts.append(bar(120, y + 1, 108 * answer.score, 9, "temper grow", 2 + 2 * k))
        parts.append(text(268, y + 9, f"{100 * answer.score:.0f} %", "end", 0))
    drawing("classify", parts)


def detect(_: Path) -> None:
    crop = crop_of(30, 12, 390)
    (face,) = sg.task("faces", "zoo:blazeface")(str(sample("astronaut.jpg")))
    photo("detect", sample("astronaut.jpg"), crop)
    (left, top), (right, bottom) = into([(face.box.xmin, face.box.ymin), (face.box.xmax, face.box.ymax)], crop)
    parts = [line(rectangle(left, top, right, bottom), "straw", 1, closed=True)]
    parts += [point(x, y, 4 + k / 2) for k, (x, y) in enumerate(into(face.landmarks, crop))]
    drawing("detect", [*parts, label(right + 6, top, f"face {100 * face.score:.0f} %", 4)])


def point(x: float, y: float, step: float, radius: float = 2.2) -> str:
    return f'<circle class="point pop {wait(step)}" cx="{number(x)}" cy="{number(y)}" r="{radius}"/>'


def cutout(_: Path) -> None:
    """Half of the picture as it was, and what is left of the other half."""
    crop = crop_of(0, 10, 512)
    mask = np.asarray(sg.task("cutout", "zoo:selfie")(str(sample("astronaut.jpg"))).mask)
    with Image.open(sample("astronaut.jpg")) as found:
        picture = found.convert("RGBA")
    picture.putalpha(Image.fromarray(mask.astype(np.uint8)))
    save("cutout", picture.crop(crop))
    photo("cutout-whole", sample("astronaut.jpg"), crop)
    whole = f'<image class="whole opaque" href="gallery/cutout-whole.webp" width="{WIDTH}" height="{HEIGHT}"/>'
    drawing("cutout", [whole, '<path class="line ink cut" d="M112 0V170"/>'])


HAND: Final = ((0, 1, 2, 3, 4), (0, 5, 6, 7, 8), (5, 9, 10, 11, 12), (9, 13, 14, 15, 16), (13, 17, 18, 19, 20), (0, 17))
BODY: Final = ((11, 12, 24, 23, 11), (11, 13, 15), (12, 14, 16), (23, 25, 27, 31), (24, 26, 28, 32), (7, 2, 0, 5, 8))


def hands(_: Path) -> None:
    crop = crop_of(60, 0, 840)
    source = str(sample("figure.jpg"))
    (body,) = sg.task("landmarks", "zoo:pose")(source)
    found = sg.task("landmarks", "zoo:hands")(source)
    photo("hands", sample("figure.jpg"), crop)
    points = into(body.landmarks, crop)
    parts = [line(points[list(chain)], "violet", k) for k, chain in enumerate(BODY)]
    parts += [
        line(into(hand.landmarks, crop)[list(chain)], "bronze", 4 + k / 2)
        for hand in found
        for k, chain in enumerate(HAND)
    ]
    parts += [point(x, y, 6, 1.1) for hand in found for x, y in into(hand.landmarks, crop)]
    drawing("hands", parts)


def ocr(_: Path) -> None:
    crop = crop_of(70, 20, 860)
    lines = list(sg.task("ocr", "zoo:ppocr-tiny")(str(sample("receipt.jpg"))))
    photo("ocr", sample("receipt.jpg"), crop)
    parts = [
        line(into(found.corners, crop), "straw" if k % 2 else "bronze", 8 * k / len(lines), closed=True)
        for k, found in enumerate(lines)
    ]
    read = " ".join(next(x.text for x in lines if x.text.startswith(begin)) for begin in ("Open", "except", "Mondays"))
    drawing("ocr", [*parts, label(8, 146, f"“{read}”", 9)])


QUERY: Final = "trouble with money"


def search(_: Path) -> None:
    pages = module("task_pages")
    found = pages._with_sentences(sg.task("search", "zoo:minilm"))(QUERY, top=3)
    parts = [
        '<rect class="field" x="12" y="12" width="256" height="26" rx="5"/>',
        text(22, 29, QUERY, "wipe strong", 0),
    ]
    for k, item in enumerate(found):
        y = 58 + 38 * k
        parts += [
            text(32, y + LINE * n, said, "pop", 3 + 2 * k) for n, said in enumerate(textwrap.wrap(item.label, 40)[:2])
        ]
        parts += [
            bar(14, y - 9, 10, 24, "rest", 0),
            bar(14, y - 9 + 24 * (1 - item.score), 10, 24 * item.score, "violet pop", 3 + 2 * k),
        ]
    drawing("search", parts)


def sounds(folder: Path) -> None:
    """When somebody speaks in one sound, over its waves, and the notes of another."""
    heard = sg.task("voices", "zoo:silero-vad")(str(folder / "talk.wav"))
    samples = wave(folder / "talk.wav")
    scale = 256 / (len(samples) / 22050)
    parts = [
        bar(12 + scale * x.start, 12, scale * (x.end - x.start), 52, "voice grow", k + 1) for k, x in enumerate(heard)
    ]
    parts.append(waves(samples, 12, 256, 38, 24))
    notes = list(sg.task("notes", "zoo:basic-pitch")(str(folder / "tune.wav")))
    low, high = min(x.pitch for x in notes), max(x.pitch for x in notes)
    last = max(x.end for x in notes)
    for x in notes:
        y = 154 - 72 * (x.pitch - low) / (high - low)
        parts.append(
            bar(12 + 256 * x.start / last, y, 256 * (x.end - x.start) / last - 1, 5, "straw grow", 9 * x.start / last)
        )
    drawing("sounds", parts)


def wave(file: Path) -> Any:
    with waves_of.open(str(file)) as found:
        return np.frombuffer(found.readframes(found.getnframes()), "<i2").astype(float) / 32768


def waves(samples: Any, x: float, width: float, middle: float, height: float) -> str:
    """The waves of a sound, as upright strokes."""
    loud = [np.abs(part).max() for part in np.array_split(samples, int(width / 2))]
    strokes = "".join(
        f"M{number(x + 2 * k)} {number(middle - height * a)}v{number(max(0.6, 2 * height * a))}"
        for k, a in enumerate(loud)
    )
    return f'<path class="line thin ink wipe wait-0" d="{strokes}"/>'


def clean(folder: Path) -> None:
    """The spectrum of a voice beside a fan, and what is left of it."""
    cleaned = sg.task("denoise", "zoo:nsnet2")(str(folder / "fan.wav"))
    before = spectrum(
        np.interp(
            np.arange(0, 4.2, 1 / 16000), np.arange(len(wave(folder / "fan.wav"))) / 22050, wave(folder / "fan.wav")
        )
    )
    after = spectrum(np.asarray(cleaned.audio, float)[: round(4.2 * 16000)])
    ends = np.percentile(before, 30), max(before.max(), after.max())
    for name, part in (("clean", after), ("clean-noisy", before)):
        heat = np.clip((part - ends[0]) / (ends[1] - ends[0]), 0, 1)[::-1]
        colours = np.stack([np.interp(heat, STOPS, channel) for channel in zip(*STEEL, strict=True)], -1)
        save(name, Image.fromarray(colours.astype(np.uint8)), 30)  # noise is dear
    noisy = f'<image class="whole" href="gallery/clean-noisy.webp" width="{WIDTH}" height="{HEIGHT}"/>'
    drawing("clean", [noisy, '<path class="line straw cut" d="M112 0V170"/>'])


STEEL: Final = ((12, 14, 17), (47, 94, 181), (132, 64, 143), (189, 117, 49), (240, 214, 130))
STOPS: Final = (0, 0.3, 0.55, 0.8, 1)


def spectrum(samples: Any) -> Any:
    """Decibels below 5 kHz, a column each 8 ms."""
    window = np.hanning(512)
    columns = [np.abs(np.fft.rfft(samples[k : k + 512] * window)) for k in range(0, len(samples) - 512, 128)]
    return 20 * np.log10(np.array(columns).T[:160] + 1e-3)


def speech(folder: Path) -> None:
    """What was spoken by one model, and is written down by another."""
    answer = sg.task("transcribe", "zoo:whisper-tiny-en")(str(folder / "talk.wav"))
    first = answer.chunks[0]
    said = textwrap.wrap(first.text.strip(), 40)
    samples = wave(folder / "talk.wav")[: round(first.end * 22050)]
    parts = [waves(samples, 12, 256, 44, 30)]
    parts += [text(14, 104 + 16 * k, words, "wipe", 2 + 2 * k) for k, words in enumerate(said)]
    drawing("speech", parts)


ASKED: Final = "What is the capital of France?"
BEGUN: Final = "The best thing about a walk in the forest is"


def chat(_: Path) -> None:
    answer = language().chat([{"role": "user", "content": ASKED}], max_tokens=24, temperature=0)
    drawing(
        "chat",
        [bubble(70, 14, 198, [ASKED], "asked", 0), bubble(12, 56, 226, textwrap.wrap("".join(answer), 38), "", 3)],
    )


def write(_: Path) -> None:
    more = "".join(language().generate(BEGUN, max_tokens=24, temperature=0))
    lines = textwrap.wrap(BEGUN + more, 38)[:5]
    parts = ['<rect class="field" x="12" y="12" width="256" height="146" rx="5"/>']
    done = 0
    for k, words in enumerate(lines):
        own = max(0, min(len(words), len(BEGUN) - done))
        done += len(words) + 1
        rest = f'<tspan class="quiet">{html.escape(words[own:])}</tspan>' if own < len(words) else ""
        shown = text(22, 36 + 18 * k, words[:own], "wipe", 2 * k)
        parts.append(shown.replace("</text>", f"{rest}</text>"))
    drawing("write", parts)


def language() -> Any:
    return sg.language.load(sg.zoo.fetch("zoo:smollm2"), "cpu", context=512)


def sample(name: str) -> Path:
    return DEMOS / "tasks" / "samples" / name


def module(name: str) -> Any:
    if str(DEMOS) not in sys.path:
        sys.path.insert(0, str(DEMOS))
    return __import__(name)


def weights() -> Any:
    return module("weights")


CARDS: Final[dict[str, Callable[[Path], None]]] = {
    "mnist": mnist, "train": train, "classify": classify, "detect": detect, "cutout": cutout, "hands": hands, "ocr": ocr,
    "search": search, "sounds": sounds, "clean": clean, "speech": speech, "chat": chat, "write": write,
}  # fmt: skip
"""A page ↦ what makes its picture."""


def main(names: Sequence[str]) -> None:
    with tempfile.TemporaryDirectory() as held:
        folder = Path(held)
        if {"sounds", "clean", "speech"} & set(names):
            module("kept").module(DEMOS / "tasks", "sample_sounds").write(folder)
        for name in names:
            CARDS[name](folder)
            print(name, flush=True)


if __name__ == "__main__":
    main(sys.argv[1:] or tuple(CARDS))
