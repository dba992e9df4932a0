"""Devices that wrap a device."""

from .autodiff import Autodiff as Autodiff
from .decorator import Decorator as Decorator
from .fusion import Fusion as Fusion
from .recorder import RecordedDevice as RecordedDevice
from .recorder import Recorder as Recorder
from .router import Router as Router
