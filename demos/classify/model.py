"""EfficientNet-Lite0, the classifier of the pictures' page, written with `singe.nn`. Its parameters are named as in the
PyTorch file that demos/weights.py fetches."""

from __future__ import annotations

import singe as sg
from singe import nn

SIDE = 224
INPUT = ("N", 3, SIDE, SIDE)
CROP = 224 / 256
"""The part of the picture's shorter side that is used."""
MEAN, STD = 127.0, 128.0
"""The network's input is (pixel − MEAN) / STD, with pixels from 0 to 255."""
STAGES = (
    # blocks, kernel size, stride of the first block, expansion, channels
    (1, 3, 1, 1, 16),
    (2, 3, 2, 6, 24),
    (2, 5, 2, 6, 40),
    (3, 3, 2, 6, 80),
    (3, 5, 1, 6, 112),
    (4, 5, 2, 6, 192),
    (1, 3, 1, 6, 320),
)


class SameConv(nn.Conv2d):
    """A convolution with TensorFlow's SAME padding, for sides that are a multiple of the stride: the output's side is the
    input's divided by the stride, and an odd padding goes to the end. The weights were trained with TensorFlow."""

    def __init__(self, inputs: int, outputs: int, window: int, stride: int = 1, groups: int = 1) -> None:
        super().__init__(inputs, outputs, window, stride, groups=groups, bias=False)

    def forward(self, x: sg.Tensor) -> sg.Tensor:
        assert isinstance(self.stride, int)
        zeros = self.weight.shape[-1] - self.stride
        side = (zeros // 2, zeros - zeros // 2)
        return super().forward(x.pad(((0, 0), (0, 0), side, side)) if zeros else x)


def norm(channels: int) -> nn.BatchNorm2d:
    return nn.BatchNorm2d(channels, eps=1e-3, momentum=0.01)


class Block(nn.Module):
    """An inverted bottleneck: expand, depthwise convolution, project; with a skip connection if the shapes agree."""

    _expand_conv: SameConv | None
    _bn0: nn.BatchNorm2d | None
    _depthwise_conv: SameConv
    _bn1: nn.BatchNorm2d
    _project_conv: SameConv
    _bn2: nn.BatchNorm2d
    skip: bool

    def __init__(self, inputs: int, outputs: int, window: int, stride: int, expansion: int) -> None:
        wide = inputs * expansion
        self._expand_conv = SameConv(inputs, wide, 1) if expansion > 1 else None
        self._bn0 = norm(wide) if expansion > 1 else None
        self._depthwise_conv = SameConv(wide, wide, window, stride, groups=wide)
        self._bn1 = norm(wide)
        self._project_conv = SameConv(wide, outputs, 1)
        self._bn2 = norm(outputs)
        self.skip = stride == 1 and inputs == outputs

    def forward(self, x: sg.Tensor) -> sg.Tensor:
        y = x
        if self._expand_conv is not None and self._bn0 is not None:
            y = self._bn0(self._expand_conv(y)).clip(0, 6)
        y = self._bn1(self._depthwise_conv(y)).clip(0, 6)
        y = self._bn2(self._project_conv(y))
        return y + x if self.skip else y


class EfficientNetLite0(nn.Module):
    """Pictures of 224 × 224 to logits of ImageNet's thousand classes."""

    _conv_stem: SameConv
    _bn0: nn.BatchNorm2d
    _blocks: list[Block]
    _conv_head: SameConv
    _bn1: nn.BatchNorm2d
    _fc: nn.Linear

    def __init__(self) -> None:
        channels = 32
        self._conv_stem = SameConv(3, channels, 3, 2)
        self._bn0 = norm(channels)
        self._blocks = []
        for count, window, stride, expansion, outputs in STAGES:
            for number in range(count):
                self._blocks.append(Block(channels, outputs, window, 1 if number else stride, expansion))
                channels = outputs
        self._conv_head = SameConv(channels, 1280, 1)
        self._bn1 = norm(1280)
        self._fc = nn.Linear(1280, 1000)

    def forward(self, x: sg.Tensor) -> dict[str, sg.Tensor]:
        x = self._bn0(self._conv_stem(x)).clip(0, 6)
        for block in self._blocks:
            x = block(x)
        x = self._bn1(self._conv_head(x)).clip(0, 6)
        return {"logits": self._fc(x.mean((2, 3)))}
