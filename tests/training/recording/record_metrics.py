"""Writes recorded/metrics.npz: what scikit-learn, torchmetrics, sacrebleu, rouge_score, jiwer and SciPy compute on the data of
metric_cases.py. Run it with a Python that has them: `python tests/training/recording/record_metrics.py`."""

import sys
from pathlib import Path

import jiwer

sys.path.insert(0, str(Path(__file__).parents[1] / "peers"))

import metric_cases as data
import numpy as np
import sacrebleu
import torch
import torchmetrics.functional as tm
from rouge_score.rouge_scorer import RougeScorer
from scipy.linalg import sqrtm
from sklearn import metrics as sk
from torchmetrics.functional.image.ssim import _ssim_update

AVERAGES = ("micro", "macro", "weighted", None)


def t(x: np.ndarray) -> torch.Tensor:
    return torch.tensor(x)


def classification() -> dict[str, object]:
    guess, labels = data.CLASS_SCORES.argmax(1), (data.LABEL_SCORES > 0.5).astype(int)
    found: dict[str, object] = {"accuracy": sk.accuracy_score(data.CLASSES, guess)}
    for k in (2, 3):
        found[f"top{k}"] = sk.top_k_accuracy_score(data.CLASSES, data.CLASS_SCORES, k=k)
    for kind, y, x in (("classes", data.CLASSES, guess), ("labels", data.LABELS, labels)):
        for average in AVERAGES:
            at = f"{kind}/{average}"
            found[f"precision/{at}"] = sk.precision_score(y, x, average=average)
            found[f"recall/{at}"] = sk.recall_score(y, x, average=average)
            for beta in (0.5, 1.0, 2.0):
                found[f"f{beta:g}/{at}"] = sk.fbeta_score(y, x, beta=beta, average=average)
            found[f"iou/{at}"] = sk.jaccard_score(y, x, average=average)
    options = {"task": "multiclass", "num_classes": 5}
    found["specificity"] = tm.specificity(t(guess), t(data.CLASSES), average="macro", **options)
    binary = (data.BINARY_SCORES > 0.5).astype(int)
    found["binary/accuracy"] = sk.accuracy_score(data.BINARY, binary)
    found["binary/precision"] = sk.precision_score(data.BINARY, binary)
    found["binary/recall"] = sk.recall_score(data.BINARY, binary)
    found["binary/f1"] = sk.f1_score(data.BINARY, binary)
    found["hamming/labels"] = sk.hamming_loss(data.LABELS, labels)
    found["hamming/classes"] = sk.hamming_loss(data.CLASSES, guess)
    for normalize in ("true", "pred", "all", None):
        found[f"confusion/{normalize}"] = sk.confusion_matrix(data.CLASSES, guess, normalize=normalize)
    found["confusion/binary"] = sk.confusion_matrix(data.BINARY, binary)
    regions = data.REGION_SCORES.argmax(1)
    found["regions/dice"] = sk.f1_score(data.REGIONS.ravel(), regions.ravel(), average="macro")
    found["regions/iou"] = tm.jaccard_index(t(regions), t(data.REGIONS), task="multiclass", num_classes=3)
    kept = data.REGIONS != 0
    found["regions/iou/without 0"] = sk.jaccard_score(data.REGIONS[kept], regions[kept], average="micro")
    return found


def ranking() -> dict[str, object]:
    found: dict[str, object] = {
        "auroc/binary": sk.roc_auc_score(data.BINARY, data.BINARY_SCORES),
        "aucpr/binary": sk.average_precision_score(data.BINARY, data.BINARY_SCORES),
    }
    for average in ("macro", "weighted", None):
        found[f"auroc/labels/{average}"] = sk.roc_auc_score(data.LABELS, data.LABEL_SCORES, average=average)
        found[f"aucpr/labels/{average}"] = sk.average_precision_score(data.LABELS, data.LABEL_SCORES, average=average)
        every = (data.CLASSES[:, None] == np.arange(5)).astype(int)
        found[f"auroc/classes/{average}"] = sk.roc_auc_score(every, data.SHARES, average=average)
        found[f"aucpr/classes/{average}"] = sk.average_precision_score(every, data.SHARES, average=average)
    for thresholds in (7, 50):
        options = {"task": "multilabel", "num_labels": 4, "thresholds": thresholds}
        found[f"auroc/{thresholds}"] = tm.auroc(t(data.LABEL_SCORES), t(data.LABELS), **options)
        found[f"aucpr/{thresholds}"] = tm.average_precision(t(data.LABEL_SCORES), t(data.LABELS), **options)
    return found


def numbers() -> dict[str, object]:
    return {
        "mae": sk.mean_absolute_error(data.NUMBERS, data.GUESSES),
        "mse": sk.mean_squared_error(data.NUMBERS, data.GUESSES),
        "rmse": np.sqrt(sk.mean_squared_error(data.NUMBERS, data.GUESSES)),
        "r2": sk.r2_score(data.NUMBERS, data.GUESSES),
        "r2/one": sk.r2_score(data.NUMBERS[:, 0], data.GUESSES[:, 0]),
        "perplexity": tm.text.perplexity(t(data.LOGITS), t(data.TOKENS), ignore_index=-100),
    }


def texts() -> dict[str, object]:
    found: dict[str, object] = {"wer": jiwer.wer(data.FIRST, data.TEXTS), "cer": jiwer.cer(data.FIRST, data.TEXTS)}
    turned = [[(r[k] if k < len(r) else None) for r in data.REFERENCES] for k in range(3)]
    for n in (2, 4):
        bleu = sacrebleu.metrics.BLEU(tokenize="none", smooth_method="none", max_ngram_order=n, force=True)  # pyright: ignore
        found[f"bleu/{n}"] = bleu.corpus_score(data.TEXTS, turned).score / 100
    found["bleu/smooth"] = tm.bleu_score(data.TEXTS, data.REFERENCES, smooth=True)
    scorer = RougeScorer(["rouge1", "rouge2", "rougeL"], use_stemmer=False)
    for kind in ("1", "2", "L"):
        one = [scorer.score(r, x)[f"rouge{kind}"] for r, x in zip(data.FIRST, data.TEXTS, strict=True)]
        for measure in ("precision", "recall", "fmeasure"):
            found[f"rouge/{kind}/{measure[0]}"] = np.mean([getattr(s, measure) for s in one])
        many = [
            scorer.score_multi(r, x)[f"rouge{kind}"].fmeasure for r, x in zip(data.REFERENCES, data.TEXTS, strict=True)
        ]
        found[f"rouge/{kind}/many"] = np.mean(many)
    return found


def windows(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Similarity and contrast of each picture, over the windows within it. torchmetrics also takes windows that reach beyond
    it; the authors of SSIM do not."""
    options = {"gaussian_kernel": True, "sigma": 1.5, "data_range": 1.0}
    _, whole = _ssim_update(x, y, return_full_image=True, **options)
    _, contrast = _ssim_update(x, y, return_contrast_sensitivity=True, **options)
    return whole[..., 5:-5, 5:-5].mean((1, 2, 3)), contrast


def scales(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    total = torch.ones(len(x), dtype=x.dtype)
    for scale, power in enumerate((0.0448, 0.2856, 0.3001, 0.2363, 0.1333)):
        whole, contrast = windows(x, y)
        total *= (whole if scale == 4 else contrast) ** power
        x, y = (torch.nn.functional.avg_pool2d(z, 2) for z in (x, y))
    return total.mean()


def pictures() -> dict[str, object]:
    x, y = t(data.NOISY).double(), t(data.PICTURES).double()
    m1, m2 = data.GENERATED.mean(0), data.REAL.mean(0)
    c1, c2 = np.cov(data.GENERATED, rowvar=False), np.cov(data.REAL, rowvar=False)
    return {
        "psnr": tm.peak_signal_noise_ratio(x, y, data_range=1.0, dim=(1, 2, 3)),
        "ssim": windows(x, y)[0].mean(),
        "msssim": scales(x, y),
        "frechet": ((m1 - m2) ** 2).sum() + np.trace(c1 + c2 - 2 * np.real(sqrtm(c1 @ c2))),
    }


if __name__ == "__main__":
    everything = classification() | ranking() | numbers() | texts() | pictures()
    arrays = {k: np.asarray(v, np.float64) for k, v in everything.items()}
    flat = {"names": np.array(list(arrays)), "sizes": np.array([v.size for v in arrays.values()])}
    flat["values"] = np.concatenate([v.ravel() for v in arrays.values()])
    np.savez_compressed(Path(__file__).parents[1] / "recorded" / "metrics.npz", **flat)
    print(f"{len(arrays)} values")
