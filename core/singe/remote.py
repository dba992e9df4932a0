"""A device elsewhere: `serve` lends one of this machine to clients, for which it is `sg.Remote(address, token)`. The extra `remote`
installs what both need."""

from .runtime.remote.served_session import SessionLimits
from .runtime.remote.server import RemoteServer, serve
from .tracebacks import shorten_all as _shorten_all

__all__ = ["RemoteServer", "SessionLimits", "serve"]

_shorten_all(globals())
