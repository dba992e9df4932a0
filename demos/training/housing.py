"""The prices of houses in California: a regression from a table, with columns that are counts, places and kinds.

Each row is a block of houses in the census of 1990. The file is fetched (1.4 MB, compared with its hash), or read from
`--data FOLDER`, where it is housing.csv; `--quick` takes the 400 rows that are here. What is not in the table in this form is
computed: rooms, bedrooms and people for each household. Every input then has the mean 0 and the deviation 1 of the rows for training;
a number that is missing is the mean. The network has two layers; prices are in hundred thousands of dollars, and what the
census wrote as "500,001 and more" stays 5.00001.

    python demos/training/housing.py [--device wasm] [--quick] [--data FOLDER]
"""

from __future__ import annotations

import tempfile
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from command import run

from singe import data, metrics, nn, optim, train

ADDRESS = (
    "https://raw.githubusercontent.com/ageron/handson-ml2/master/datasets/housing/housing.csv"
    "#sha256=8a3727f4cf54ac1a327f69b1d5b4db54c5834ea81c6e4efc0d163300022a685e"
)
SAMPLE = Path(__file__).with_name("housing_sample.csv")
SHORES = ("<1H OCEAN", "INLAND", "ISLAND", "NEAR BAY", "NEAR OCEAN")
"""The values of the column ocean_proximity."""
BATCH = 128


def numbers(block: dict[str, Any]) -> tuple[np.ndarray, np.ndarray]:
    """A row of the table ↦ the inputs, and the price."""
    households = block["households"]
    found = (
        block["median_income"], block["housing_median_age"], block["latitude"], block["longitude"],
        block["total_rooms"] / households, block["total_bedrooms"] / households, block["population"] / households,
        np.log(block["population"]),
    )  # fmt: skip
    shore = [block["ocean_proximity"] == name for name in SHORES]
    return np.array([*found, *shore], np.float32), np.array([block["median_house_value"] / 1e5], np.float32)


def table(source: str | None, quick: bool) -> data.Dataset:
    if quick and source is None:
        return data.CSV(SAMPLE)
    return data.CSV(ADDRESS if source is None else Path(source) / "housing.csv")


def main(device: str, quick: bool, source: str | None = None) -> dict[str, float]:
    blocks = [numbers(block) for block in table(source, quick)]
    inputs, prices = (np.stack(column) for column in zip(*blocks, strict=True))
    order = np.random.default_rng(0).permutation(len(blocks))
    known = inputs[order[: len(order) * 7 // 10]]
    scaled = np.nan_to_num((inputs - np.nanmean(known, 0)) / (np.nanstd(known, 0) + 1e-6)).astype(np.float32)
    items = data.Dataset.of((scaled[order], prices[order]))
    ends = (0, len(known), len(order) * 17 // 20, len(order))
    learn, valid, test = (items.partial(*part) for part in pairwise(ends))
    rng = np.random.default_rng(0)
    model = nn.Sequential(
        nn.Linear(inputs.shape[1], 64, rng=rng), nn.ReLU(), nn.Linear(64, 64, rng=rng), nn.ReLU(), nn.Linear(64, 1, rng=rng)
    )  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        learner = train.Learner(
            model, optim.AdamW(2e-3), nn.MSELoss(), [metrics.MAE()], device=device, run=folder, dashboard="plain", seed=0,
            checkpoints=train.Checkpoints(best="valid.MAE"), early_stopping=train.EarlyStopping("valid.MAE", 10),
        )  # fmt: skip
        batch = 16 if quick else BATCH
        shuffled = data.Loader(learn, batch, shuffle=True, seed=0, drop_last=True)
        learner.fit(shuffled, data.Loader(valid, batch), 3 if quick else 20)
        found = learner.evaluate(data.Loader(test, batch), learner.best)
    always = float(np.abs(prices[order[ends[2] :]] - prices[order[: ends[1]]].mean()).mean())
    print(f"{found['MAE'] * 1e5:,.0f} dollars off on average; the mean of all prices is {always * 1e5:,.0f} off")
    return {"MAE": found["MAE"], "always": always}


if __name__ == "__main__":
    run(main, __doc__, data="the folder that has housing.csv, in place of fetching it")
