"""Writes shapes.pt with PyTorch: the weights that fine_tuning.py starts from. `python demos/training/pretrain_torch.py`"""

from __future__ import annotations

from pathlib import Path

import torch
from pictures import pictures
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(
    nn.Conv2d(1, 8, 3, 1, 1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(8, 16, 3, 1, 1), nn.ReLU(), nn.MaxPool2d(2),
    nn.Flatten(), nn.Linear(256, 32), nn.ReLU(), nn.Linear(32, 4),
)  # fmt: skip
optimizer = torch.optim.AdamW(model.parameters(), 3e-3)
for seed in range(400):
    x, y = map(torch.from_numpy, pictures(64, seed))
    loss = nn.functional.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
x, y = map(torch.from_numpy, pictures(2000, 10**6))
print(f"{(model(x).argmax(1) == y).float().mean():.1%} of new pictures right")
torch.save(model.half().state_dict(), Path(__file__).with_name("shapes.pt"))
