"""Devices that wrap a device."""

from .decorator import Decorator as Decorator
from .fusion import Fusion as Fusion
