"""Metrics equal what scikit-learn, torchmetrics, sacrebleu, rouge_score, jiwer and SciPy compute (record_metrics.py), in one
batch and in several."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import metric_cases as data
import numpy as np
import pytest
from recorded import recorded

import singe as sg
from singe import metrics
from singe.errors import DTypeError, InputError, ShapeError, SingeError
from singe.metrics import (
    AUCPR,
    AUROC,
    BLEU,
    CER,
    MAE,
    MSE,
    MSSSIM,
    PSNR,
    R2,
    RMSE,
    ROUGE,
    SSIM,
    WER,
    Accuracy,
    ConfusionMatrix,
    Dice,
    FBeta,
    FrechetDistance,
    Hamming,
    IoU,
    Metric,
    Perplexity,
    Precision,
    Recall,
    Specificity,
)

CLASSES = data.CLASS_SCORES, data.CLASSES
LABELS = data.LABEL_SCORES, data.LABELS
BINARY = data.BINARY_SCORES, data.BINARY
REGIONS = data.REGION_SCORES, data.REGIONS
NUMBERS = data.GUESSES, data.NUMBERS
ONE = data.GUESSES[:, 0], data.NUMBERS[:, 0]
TEXTS = data.TEXTS, data.FIRST
MANY = data.TEXTS, data.REFERENCES
PICTURES = data.NOISY, data.PICTURES
AVERAGES: tuple[Any, ...] = ("micro", "macro", "weighted", None)
AREAS: tuple[Any, ...] = ("macro", "weighted", None)

CASES: dict[str, tuple[Metric, tuple[Any, Any]]] = {
    "accuracy": (Accuracy(), CLASSES),
    "top2": (Accuracy(top_k=2), CLASSES),
    "top3": (Accuracy(top_k=3), CLASSES),
    **{
        f"{name}/{kind}/{average}": (make(average=average), batch)
        for kind, batch in (("classes", CLASSES), ("labels", LABELS))
        for average in AVERAGES
        for name, make in {
            "precision": Precision, "recall": Recall, "iou": IoU,
            "f0.5": partial(FBeta, beta=0.5), "f1": FBeta, "f2": partial(FBeta, beta=2.0),
        }.items()
    },
    "specificity": (Specificity(), CLASSES),
    "binary/accuracy": (Accuracy(), BINARY),
    "binary/precision": (Precision(), BINARY),
    "binary/recall": (Recall(average="micro"), BINARY),
    "binary/f1": (FBeta(), BINARY),
    "hamming/labels": (Hamming(), LABELS),
    "hamming/classes": (Hamming(), CLASSES),
    **{f"confusion/{n}": (ConfusionMatrix(normalize=n), CLASSES) for n in ("true", "pred", "all", None)},
    "confusion/binary": (ConfusionMatrix(), BINARY),
    "regions/dice": (Dice(), REGIONS),
    "regions/iou": (IoU(), REGIONS),
    "regions/iou/without 0": (IoU(average="micro", ignore_index=0), REGIONS),
    "auroc/binary": (AUROC(), BINARY),
    "aucpr/binary": (AUCPR(), BINARY),
    **{
        f"{name}/{kind}/{average}": (make(average=average), batch)
        for kind, batch in (("classes", (data.SHARES, data.CLASSES)), ("labels", LABELS))
        for average in AREAS
        for name, make in {"auroc": AUROC, "aucpr": AUCPR}.items()
    },
    **{f"auroc/{n}": (AUROC(thresholds=n), LABELS) for n in (7, 50)},
    **{f"aucpr/{n}": (AUCPR(thresholds=n), LABELS) for n in (7, 50)},
    "mae": (MAE(), NUMBERS),
    "mse": (MSE(), NUMBERS),
    "rmse": (RMSE(), NUMBERS),
    "r2": (R2(), NUMBERS),
    "r2/one": (R2(), ONE),
    "perplexity": (Perplexity(ignore_index=-100), (data.LOGITS, data.TOKENS)),
    "wer": (WER(), TEXTS),
    "cer": (CER(), TEXTS),
    "bleu/2": (BLEU(n=2), MANY),
    "bleu/4": (BLEU(), MANY),
    "bleu/smooth": (BLEU(smooth=True), MANY),
    **{
        f"rouge/{kind}/{measure[0]}": (ROUGE(kind=kind, measure=measure), TEXTS)
        for kind in ("1", "2", "L")
        for measure in ("precision", "recall", "f")
    },
    **{f"rouge/{kind}/many": (ROUGE(kind=kind), MANY) for kind in ("1", "2", "L")},
    "psnr": (PSNR(), PICTURES),
    "ssim": (SSIM(), PICTURES),
    "msssim": (MSSSIM(), PICTURES),
    "frechet": (FrechetDistance(), (data.GENERATED, data.REAL)),
}  # fmt: skip


def test_every_recording_is_compared() -> None:
    assert set(CASES) == set(recorded("metrics"))


@pytest.mark.parametrize("name", CASES)
def test_values_are_those_of_other_packages(name: str) -> None:
    metric, (prediction, target) = CASES[name]
    want = recorded("metrics")[name]
    np.testing.assert_allclose(np.ravel(metric(prediction, target)), want, rtol=2e-6, atol=1e-12)
    tally = metric.tally()
    count = min(len(prediction), len(target))
    for start in range(0, count, 3):
        last = start + 3 >= count - 2
        stop = None if last else start + 3
        tally.update(prediction[start:stop], target[start:stop])
        if last:
            break
    np.testing.assert_allclose(np.ravel(tally.value()), want, rtol=2e-6, atol=1e-12, err_msg="in batches")
    assert tally.state is not None
    assert all(isinstance(x, np.ndarray) for x in tally.state.values())


def test_tensors_and_arrays_give_the_same() -> None:
    for metric, (prediction, target) in CASES.values():
        if isinstance(prediction, np.ndarray) and not isinstance(metric, MSSSIM):
            x = prediction.astype(np.float32)
            got = metric(sg.tensor(x), sg.tensor(target))
            np.testing.assert_allclose(got, metric(x, target.astype(np.float32) if target.dtype == float else target))


def test_types_that_numpy_lacks_are_read_as_numbers() -> None:
    scores = sg.tensor(np.round(data.CLASS_SCORES * 4) / 4)
    assert Accuracy()(scores.cast("bfloat16"), data.CLASSES) == Accuracy()(scores, data.CLASSES)
    numbers = sg.tensor(np.round(data.NUMBERS))
    assert MAE()(numbers.cast("bfloat16"), numbers + 1) == 1


def test_classes_as_numbers_are_the_same_as_scores() -> None:
    guess = data.CLASS_SCORES.argmax(1)
    for make in (Precision, Recall, IoU, ConfusionMatrix):
        np.testing.assert_allclose(make(num_classes=5)(guess, data.CLASSES), make()(*CLASSES))
    assert Accuracy()(guess, data.CLASSES) == Accuracy()(*CLASSES)


def test_ignored_places_do_not_count() -> None:
    kept = data.CLASSES != 2
    for make in (Accuracy, Precision, Recall, FBeta, ConfusionMatrix):
        np.testing.assert_allclose(make(ignore_index=2)(*CLASSES), make()(data.CLASS_SCORES[kept], data.CLASSES[kept]))


def test_a_tally_tells_each_batch_and_all_and_can_go_on_from_its_state() -> None:
    tally = Accuracy().tally()
    assert math.isnan(tally.value())
    assert tally.update(np.array([1, 2, 3]), np.array([1, 2, 0])) == pytest.approx(2 / 3)
    assert tally.update(np.array([1]), np.array([0])) == 0
    assert tally.value() == 0.5
    again = Accuracy().tally()
    again.state = tally.state
    again.update(np.array([5, 5]), np.array([5, 5]))
    assert again.value() == pytest.approx(4 / 6)
    assert tally.value() == 0.5
    tally.reset()
    assert math.isnan(tally.value())


def test_published_values() -> None:
    # Papineni et al., 2002, example 2: the clipped precision of single words is 2/7.
    assert BLEU(n=1)(
        ["the the the the the the the"], [["the cat is on the mat", "there is a cat on the mat"]]
    ) == pytest.approx(2 / 7)
    # Levenshtein's distance of these two words, in every textbook, is 3.
    assert CER()(["sitting"], ["kitten"]) == pytest.approx(3 / 6)
    # Fawcett, "An introduction to ROC analysis", 2006: a scorer that ranks at random has the area 0.5, a perfect one 1.
    assert AUROC()(np.array([0.5, 0.5]), np.array([0, 1])) == 0.5
    assert AUROC()(np.array([0.1, 0.9]), np.array([0, 1])) == 1
    # A uniform distribution over 50 tokens has the perplexity 50.
    assert Perplexity()(np.zeros((3, 50)), np.array([1, 2, 3])) == pytest.approx(50)


def test_the_progress_of_a_run() -> None:
    loss = metrics.Mean().tally()
    loss.update(2.0, 3)
    loss.update(sg.tensor(6.0), 1)
    assert loss.value() == 3
    rate = metrics.LearningRate().tally()
    rate.update(0.1)
    rate.update(0.01)
    assert rate.value() == 0.01
    speed = metrics.IterationSpeed().tally()
    speed.update(10, 2.0)
    speed.update(10, 3.0)
    assert speed.value() == 4
    assert [m.name for m in (loss.metric, rate.metric, speed.metric)] == [
        "loss",
        "learning rate",
        "iterations per second",
    ]


def test_what_lacks_examples_is_nan_and_equal_pictures_are_perfect() -> None:
    assert math.isnan(AUROC()(np.array([0.2, 0.3]), np.array([1, 1])))
    assert math.isnan(R2()(np.ones(3), np.ones(3)))
    assert PSNR()(data.PICTURES, data.PICTURES) == math.inf
    assert SSIM()(data.PICTURES, data.PICTURES) == pytest.approx(1)
    assert FrechetDistance()(data.REAL, data.REAL) == pytest.approx(0, abs=1e-8)
    assert BLEU()(["a b"], ["c d"]) == 0
    assert ROUGE()([""], ["a"]) == 0


@pytest.mark.parametrize(
    ("call", "kind", "text"),
    [
        (lambda: Accuracy()(np.zeros((4, 3)), np.zeros(4)), DTypeError, "the targets are float64, expected integers"),
        (lambda: Accuracy()(np.zeros((4, 3)), np.zeros(3, int)), ShapeError, r"predictions \(4, 3\) and targets \(3,\)"),
        (lambda: Accuracy(top_k=4)(np.zeros((4, 3)), np.zeros(4, int)), InputError, "top_k is 4, and there are 3 classes"),
        (lambda: Precision()(np.zeros(4, int), np.zeros(4, int)), InputError, "num_classes="),
        (lambda: Precision()(np.zeros((2, 3)), np.array([0, 3])), InputError, "classes from 0 to 3, expected 0 to 2"),
        (lambda: Recall(average="mean"), InputError, "average is 'mean', expected one of 'micro'"),  # pyright: ignore
        (lambda: MAE()(np.zeros(3), np.zeros((3, 1))), ShapeError, r"the predictions are \(3,\), the targets \(3, 1\)"),
        (lambda: Perplexity()(np.zeros((2, 9, 4)), np.zeros((2, 4), int)), ShapeError, "the vocabulary is the last axis"),
        (lambda: Perplexity()(np.zeros((2, 4)), np.array([1, -100])), InputError, "classes from -100 to 1, expected 0 to 3"),
        (lambda: WER()(["a"], ["a", "b"]), InputError, "1 texts and 2 references"),
        (lambda: SSIM()(np.zeros((1, 1, 8, 8)), np.zeros((1, 1, 8, 8))), ShapeError, "expected more than 10 rows"),
        (lambda: MSSSIM()(np.zeros((1, 1, 64, 64)), np.zeros((1, 1, 64, 64))), ShapeError, "at least 176 rows"),
        (lambda: FrechetDistance()(np.zeros(3), np.zeros(3)), ShapeError, r"expected \(batch, features\)"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused(call: Any, kind: type[SingeError], text: str) -> None:
    with pytest.raises(kind, match=text):
        call()
