"""One `fit` for a regression and a classification: columns of a CSV file, the best model kept, patience, and the loss of each
batch in an SQLite table that others can read while training goes on.

The file is written by rules: 4,000 houses with area, rooms, year and district, the price that follows from these (with noise
of 8,000, so that no model can be closer on average than 6,400), and whether the house was sold within a month, which depends
on how the price compares with the district's, and is right by chance in one of ten. `fit` knows neither task: it is given a
network, a loss and a metric.

    python demos/training/one_fit.py [--device wasm] [--quick]
"""

from __future__ import annotations

import csv
import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
from command import run

from singe import data, metrics, nn, optim, train

DISTRICTS = {"harbour": 1.4, "centre": 1.8, "hills": 1.1, "fields": 0.8}
INPUTS = 4 + len(DISTRICTS)


def write_houses(path: Path, count: int) -> None:
    rng = np.random.default_rng(0)
    with path.open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["area", "rooms", "year", "district", "price", "sold"])
        for _ in range(count):
            area, year = rng.uniform(30, 200), int(rng.integers(1900, 2025))
            rooms = max(1, round(area / 28 + rng.normal(0, 0.7)))
            district = str(rng.choice(list(DISTRICTS)))
            value = DISTRICTS[district] * 1500 * area * (0.7 + 0.3 * ((year - 1900) / 125) ** 2) + 5000 * rooms
            price = value + rng.normal(0, 8000)
            sold = (price / area < 1350 * DISTRICTS[district]) != (rng.random() < 0.1)
            table.writerow([f"{area:.1f}", rooms, year, district, f"{price:.0f}", "yes" if sold else "no"])


def features(house: dict[str, Any]) -> np.ndarray:
    """A row of the table as numbers of about the same size."""
    district = np.arange(len(DISTRICTS)) == house["district"]
    numbers = [house["area"] / 100, house["rooms"] / 4, (house["year"] - 1960) / 40, house["price"] / 200_000]
    return np.array([*numbers, *district], np.float32)


def price_of(house: dict[str, Any]) -> tuple[np.ndarray, np.ndarray]:
    """The regression: all but the price ↦ the price, in hundred thousands."""
    x = features(house)
    return np.where(np.arange(INPUTS) == 3, 0, x).astype(np.float32), np.array([house["price"] / 1e5], np.float32)


def sold_of(house: dict[str, Any]) -> tuple[np.ndarray, int]:
    """The classification: all columns ↦ whether the house was sold."""
    return features(house), int(house["sold"])


def network(outputs: int) -> nn.Module:
    rng = np.random.default_rng(0)
    return nn.Sequential(
        nn.Linear(INPUTS, 64, rng=rng),
        nn.ReLU(),
        nn.Linear(64, 64, rng=rng),
        nn.ReLU(),
        nn.Linear(64, outputs, rng=rng),
    )


def fit(
    model: nn.Module, items: data.Dataset, loss: nn.Module, metric: metrics.Metric, *,
    folder: Path, device: str, epochs: int, patience: int = 8,
) -> tuple[nn.Module, dict[str, float]]:  # fmt: skip
    """Train a model until the metric on data that was held back has not improved for some epochs. Returns the model of the
    best epoch, and the values of houses that were used neither to train nor to choose."""
    learn, valid, test = items.split(0.7, 0.15, 0.15, seed=0)
    watched = f"valid.{metric.name}"
    learner = train.Learner(
        model, optim.AdamW(3e-3), loss, [metric], device=device, run=folder, dashboard="plain",
        checkpoints=train.Checkpoints(best=watched), early_stopping=train.EarlyStopping(watched, patience),
    )  # fmt: skip
    learner.fit(data.Loader(learn, 64, shuffle=True, drop_last=True), data.Loader(valid, 200), epochs)
    return learner.best, learner.evaluate(data.Loader(test, 200), learner.best)


def main(device: str, quick: bool) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as folder:
        here = Path(folder)
        write_houses(here / "houses.csv", 300 if quick else 4000)
        kinds = {"area": float, "rooms": int, "year": int, "district": "category", "price": float, "sold": bool}
        houses = data.CSV(here / "houses.csv", kinds)
        shared: dict[str, Any] = {"device": device, "epochs": 3 if quick else 60}
        _, price = fit(network(1), houses.map(price_of), nn.MSELoss(), metrics.MAE(), folder=here / "price", **shared)
        _, sold = fit(
            network(2), houses.map(sold_of), nn.CrossEntropyLoss(), metrics.Accuracy(), folder=here / "sold", **shared
        )
        print(f"price: {price['MAE'] * 1e5:,.0f} off on average    sold: {sold['accuracy']:.1%} right")
        rows = 0
        for run in ("price", "sold"):  # another process may do the same while the run goes on
            with closing(sqlite3.connect(here / run / "batches.sqlite")) as table:
                found = table.execute("SELECT count(*), min(value) FROM batches WHERE phase='train' AND name='loss'")
                count, least = found.fetchone()
            rows += count
            print(f"{run}: {count} batches recorded, the least loss {least:.4f}")
        return {"MAE": price["MAE"], "accuracy": sold["accuracy"], "rows": rows}


if __name__ == "__main__":
    run(main, __doc__)
