"""Writes recorded/losses.npz: PyTorch's values and gradients of the cases of loss_cases.py, computed in float64.

Run it with a Python that has torch: `python tests/training/recording/record_losses.py`.
"""

import sys
from pathlib import Path

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).parents[1] / "peers"))

from loss_cases import CASES, Case


def tensor(value: np.ndarray, learned: bool = False) -> torch.Tensor:
    array = np.asarray(value)
    wide = array.astype(np.float64) if array.dtype.kind == "f" else array
    return torch.tensor(wide, requires_grad=learned)


class LpLoss(torch.nn.Module):
    def __init__(self, p: float, reduction: str) -> None:
        super().__init__()
        self.p, self.reduction = p, reduction

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return reduced((x - y).abs() ** self.p, self.reduction)


class GramMatrixLoss(torch.nn.Module):
    """Equations 3 to 5 of Gatys et al., "Image style transfer using convolutional neural networks", 2016, for one layer."""

    def __init__(self, layer_weights: list[float], reduction: str) -> None:
        super().__init__()
        self.weight, self.reduction = layer_weights[0], reduction

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        channels, places = x.shape[1], x[0, 0].numel()
        a, g = (torch.einsum("ncp,ndp->ncd", t.flatten(2), t.flatten(2)) for t in (x, y))
        loss = ((a - g) ** 2).sum((1, 2)) / (4 * channels**2 * places**2)
        return reduced(loss * self.weight, self.reduction)


class RNNTLoss(torch.nn.Module):
    """Graves, "Sequence transduction with recurrent neural networks", 2012: equation 16, and the loss that follows it."""

    def __init__(self, reduction: str, blank: int = -1, fused_log_softmax: bool = True) -> None:
        super().__init__()
        self.blank, self.fused, self.reduction = blank, fused_log_softmax, reduction

    def forward(
        self, x: torch.Tensor, targets: torch.Tensor, steps: torch.Tensor, lengths: torch.Tensor
    ) -> torch.Tensor:
        x = x.log_softmax(-1) if self.fused else x
        losses = [
            -self.total(*each) for each in zip(x, targets.tolist(), steps.tolist(), lengths.tolist(), strict=True)
        ]
        return reduced(torch.stack(losses), self.reduction)

    def total(self, x: torch.Tensor, target: list[int], steps: int, length: int) -> torch.Tensor:
        sums: dict[tuple[int, int], torch.Tensor] = {(0, 0): x.new_zeros(())}
        for t in range(steps):
            for u in range(length + 1):
                ways = []
                if t:
                    ways.append(sums[t - 1, u] + x[t - 1, u, self.blank])
                if u:
                    ways.append(sums[t, u - 1] + x[t, u - 1, target[u - 1]])
                if ways:
                    sums[t, u] = torch.logsumexp(torch.stack(ways), 0)
        return sums[steps - 1, length] + x[steps - 1, length, self.blank]


OURS = {"RNNTLoss": RNNTLoss, "LpLoss": LpLoss, "GramMatrixLoss": GramMatrixLoss}
"""Losses that PyTorch lacks."""


def reduced(loss: torch.Tensor, reduction: str) -> torch.Tensor:
    return {"none": loss, "mean": loss.mean(), "sum": loss.sum()}[reduction]


def recorded(name: str, case: Case) -> dict[str, np.ndarray]:
    inputs = [tensor(x, k in case.by) for k, x in enumerate(case.inputs)]
    options = {k: tensor(v) if isinstance(v, np.ndarray) else v for k, v in case.options.items()}
    first = inputs[0]
    if case.after == "log_softmax":
        first = first.log_softmax(min(1, first.ndim - 1))
    if case.after == "log_softmax of the last axis":
        first = first.log_softmax(-1)
    made = OURS.get(case.loss) or getattr(torch.nn, case.loss)
    loss = made(**options)(first, *inputs[1:])
    loss.sum().backward()
    found = {"value": loss.detach().numpy()}
    for k in case.by:
        grad = inputs[k].grad
        assert grad is not None
        found[f"by{k}"] = grad.numpy()
    return {f"{name}/{k}": v.astype(np.float32) for k, v in found.items()}


if __name__ == "__main__":
    everything = {k: v for name, case in CASES.items() for k, v in recorded(name, case).items()}
    np.savez_compressed(Path(__file__).parents[1] / "recorded" / "losses.npz", **everything)
    print(f"{len(CASES)} cases with torch {torch.__version__}")
