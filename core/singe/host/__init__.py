"""Models for clients elsewhere: `serve` answers the KServe v2 protocol (Open Inference Protocol) over HTTP, `Application` does it in any
ASGI server. The extra `host` installs what `serve` needs."""

from .application import Application
from .server import ModelServer, serve

__all__ = ["Application", "ModelServer", "serve"]
