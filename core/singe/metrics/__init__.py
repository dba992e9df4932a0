"""Metrics over batches of predictions and targets; see README.md in this folder."""

from ..tracebacks import shorten_all as _shorten_all
from ._metric import Metric as Metric
from ._metric import State as State
from ._metric import Tally as Tally
from .classes import Accuracy as Accuracy
from .classes import ConfusionMatrix as ConfusionMatrix
from .classes import Dice as Dice
from .classes import FBeta as FBeta
from .classes import Hamming as Hamming
from .classes import IoU as IoU
from .classes import Precision as Precision
from .classes import Recall as Recall
from .classes import Specificity as Specificity
from .pictures import MSSSIM as MSSSIM
from .pictures import PSNR as PSNR
from .pictures import SSIM as SSIM
from .pictures import FrechetDistance as FrechetDistance
from .progress import IterationSpeed as IterationSpeed
from .progress import Latest as Latest
from .progress import LearningRate as LearningRate
from .progress import Mean as Mean
from .ranking import AUCPR as AUCPR
from .ranking import AUROC as AUROC
from .regression import MAE as MAE
from .regression import MSE as MSE
from .regression import R2 as R2
from .regression import RMSE as RMSE
from .text import BLEU as BLEU
from .text import CER as CER
from .text import ROUGE as ROUGE
from .text import WER as WER
from .text import Perplexity as Perplexity

__all__ = [
    "AUCPR", "AUROC", "BLEU", "CER", "MAE", "MSE", "MSSSIM", "PSNR", "R2", "RMSE", "ROUGE", "SSIM", "WER", "Accuracy", "ConfusionMatrix", "Dice",
    "FBeta", "FrechetDistance", "Hamming", "IoU", "IterationSpeed", "Latest", "LearningRate", "Mean", "Metric", "Perplexity", "Precision", "Recall",
    "Specificity", "State", "Tally",
]  # fmt: skip

_shorten_all(globals())
