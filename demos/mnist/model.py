"""The digit classifier of the MNIST page, written with `singe.nn`. Its parameters are named as in the PyTorch file that
demos/weights.py fetches."""

from __future__ import annotations

import singe as sg
from singe import nn

INPUT = ("N", 1, 28, 28)
MEAN, STD = 0.1307 * 255, 0.3081 * 255
"""Of MNIST's pixels, 0 to 255. The network's input is (pixel − MEAN) / STD, white strokes on black."""


class DigitNet(nn.Module):
    """Three convolutions with pooling by two, and two linear layers: logits of ten digits."""

    conv_layers: nn.Sequential
    fc_layers: nn.Sequential

    def __init__(self) -> None:
        layers: list[nn.Module] = []
        for inputs, outputs in ((1, 32), (32, 64), (64, 128)):
            layers += [nn.Conv2d(inputs, outputs, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)]
        self.conv_layers = nn.Sequential(*layers)
        self.fc_layers = nn.Sequential(nn.Linear(128 * 3 * 3, 256), nn.ReLU(), nn.Linear(256, 10))

    def forward(self, x: sg.Tensor) -> dict[str, sg.Tensor]:
        return {"logits": self.fc_layers(self.conv_layers(x).flatten(1))}
