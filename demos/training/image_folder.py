"""Pictures of one's own: a folder with a subfolder for each class, as photographs would lie there.

The script first draws such a folder with Pillow: circles, squares, triangles and stars, of many colours, sizes and turns, on a
darker ground, in PNG files of two sizes. From then on nothing knows how they were made: `data.ImageFolder` reads them,
`split(stratify=1)` holds some of each class back, and the loader's threads decode and change them while the network learns.

    python demos/training/image_folder.py [--device wasm] [--quick] [--pictures FOLDER]

With --pictures it trains on a folder of yours; it is drawn there if there is none.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
from command import run
from PIL import Image, ImageDraw

import singe as sg
from singe import data, metrics, nn, optim, train

SIZE = 32
CORNERS = {"circles": 40, "squares": 4, "triangles": 3, "stars": 10}


def draw(kind: str, rng: np.random.Generator) -> Image.Image:
    """One picture, of 48 × 48 or 64 × 40."""
    width, height = [(48, 48), (64, 40)][rng.integers(2)]
    ground, colour = rng.integers(0, 110, 3), rng.integers(110, 256, 3)
    picture = Image.new("RGB", (width, height), tuple(map(int, ground)))
    count, radius = CORNERS[kind], rng.uniform(9, 18)
    radii = np.where(np.arange(count) % 2, 0.45, 1.0) * radius if kind == "stars" else np.full(count, radius)
    angles = rng.uniform(0, 2 * np.pi) + 2 * np.pi * np.arange(count) / count
    x, y = width / 2 + rng.uniform(-3, 3), height / 2 + rng.uniform(-3, 3)
    corners = np.stack([x + radii * np.cos(angles), y + radii * np.sin(angles)], 1)
    ImageDraw.Draw(picture).polygon([(float(a), float(b)) for a, b in corners], fill=tuple(map(int, colour)))
    return picture


def draw_folder(folder: Path, each: int) -> None:
    """A folder of pictures: `each` of every class."""
    rng = np.random.default_rng(0)
    for kind in CORNERS:
        (folder / kind).mkdir(parents=True)
        for k in range(each):
            draw(kind, rng).save(folder / kind / f"{k:04}.png")


def network(classes: int) -> nn.Module:
    rng = np.random.default_rng(0)

    def block(inputs: int, outputs: int) -> list[nn.Module]:
        conv = nn.Conv2d(inputs, outputs, 3, padding=1, bias=False, rng=rng)
        return [conv, nn.BatchNorm2d(outputs), nn.ReLU(), nn.MaxPool2d(2)]

    return nn.Sequential(
        *block(3, 16), *block(16, 32), *block(32, 64), nn.Flatten(), nn.Dropout(0.2),
        nn.Linear(64 * 4 * 4, classes, rng=rng),
    )  # fmt: skip


def learn(folder: Path, device: str, quick: bool) -> dict[str, float]:
    sg.random.manual_seed(0)
    pictures = data.ImageFolder(folder, (SIZE, SIZE))
    learned, held = pictures.split(0.8, 0.2, seed=0, stratify=1)
    print(f"{len(learned)} pictures to learn and {len(held)} to judge by, of {', '.join(pictures.classes)}")
    to_unit = data.Normalize(128.0, 64.0)
    changed = data.Augment(data.RandomHorizontalFlip(), data.RandomAffine(15, (0.1, 0.1)), to_unit)
    epochs = 2 if quick else 15
    loader = data.Loader(learned, 32, shuffle=True, workers=2, drop_last=True, transform=changed)
    test = data.Loader(held, 100, transform=data.Augment(to_unit))
    rate = optim.CosineAnnealingLR(3e-3, epochs * len(loader))
    learner = train.Learner(
        network(len(pictures.classes)), optim.AdamW(rate), nn.CrossEntropyLoss(), [metrics.Accuracy()], device=device,
        dashboard="plain",
    )  # fmt: skip
    learner.fit(loader, test, epochs)
    model = learner.best
    logits = np.concatenate([model(sg.tensor(x)).numpy() for x, _ in test])
    wrong = np.flatnonzero(logits.argmax(1) != np.concatenate([y for _, y in test]))
    found = learner.evaluate(test, model)
    print(f"{found['accuracy']:.1%} of the pictures that were held back are named right")
    for k in wrong[:3]:
        print(f"  {pictures.paths[held.indices[k]]} was taken for one of the {pictures.classes[logits[k].argmax()]}")
    return found


def main(device: str, quick: bool, folder: str | None = None) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as made:
        place = Path(folder or Path(made) / "shapes")
        if not place.is_dir():
            draw_folder(place, 30 if quick else 300)
        return learn(place, device, quick)


if __name__ == "__main__":
    run(main, __doc__, pictures="with a subfolder of pictures for each class; drawn if there is none")
