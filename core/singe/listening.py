"""What the servers of Singe share: on which addresses they listen, and which requests they answer.

A server listens on loopback. Beyond it a token is needed. A page elsewhere must not reach a server of this machine: a `Host` that names
neither an address nor this server is refused, since its name may have been made to lead here (DNS rebinding), and so is the `Origin`
of a page that is neither of this machine nor listed.
"""

from __future__ import annotations

import hmac
import os
import re
import secrets
import socket
from collections.abc import Collection
from ipaddress import ip_address
from typing import Final
from urllib.parse import urlsplit

from .errors import InputError

LOOPBACK: Final = "127.0.0.1"
MAX_PORT: Final = (1 << 16) - 1
TOKEN_BYTES: Final = 16


def is_loopback(host: str) -> bool:
    """Whether an address, or a name, is of this machine alone."""
    try:
        return ip_address(host.removeprefix("[").removesuffix("]")).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def in_url(host: str) -> str:
    """An address, or a name, as a URL has it."""
    return f"[{host}]" if ":" in host else host


def checked_port(port: int) -> int:
    """A number of a port, or an error."""
    if not 0 <= port <= MAX_PORT:
        raise InputError(f"port {port}: expected a number from 0 (any that is free) to {MAX_PORT}")
    return port


def chosen_token(token: str | None, variable: str, host: str, lent: str) -> str:
    """The token that clients must give: this one, else that of a variable of the environment, else one that is made. lent: what a
    client could use, for the error of an empty one beyond loopback."""
    given = os.environ.get(variable) if token is None else token
    chosen = secrets.token_hex(TOKEN_BYTES) if given is None else given
    if not chosen and not is_loopback(host):
        raise InputError(f"anyone who reaches {host} could use {lent}: give a token, or none to have one made")
    return chosen


def is_token(given: str, token: str) -> bool:
    """Whether the token that was given is the right one, compared in a time that does not tell how much of it is right."""
    return hmac.compare_digest(given.encode(errors="replace"), token.encode(errors="replace"))


class Callers:
    """Who may ask a server, by the headers Host and Origin. host: the address on which it listens; names: what else it is called;
    origins: those of pages that may ask beside the pages of this machine."""

    def __init__(self, host: str, names: Collection[str] = (), origins: Collection[str] = ()) -> None:
        self._origins: Final = {o.rstrip("/").lower() for o in origins}
        self._names: Final = {n.lower() for n in (host, *names, "localhost", socket.gethostname())}

    def refusal(self, url: str, host: str | None, origin: str | None) -> str:
        """Why a request with these headers is not answered, or "". url: the server's."""
        if not self.is_own_name(host or ""):
            return f"this server is {url}, and not {host!r:.80}; list other names that lead to it"
        if origin is not None and not self._is_allowed(origin):
            return f"pages of {origin!r:.80} may not connect; list their origin"
        return ""

    def is_own_name(self, host: str) -> bool:
        """Whether a Host header names the server: by an address, or by a name that nobody else can lead here."""
        name = re.sub(r":\d*$", "", host.strip().lower())
        try:
            ip_address(name.removeprefix("[").removesuffix("]"))
        except ValueError:
            return name in self._names or name.endswith(".localhost")
        return True

    def _is_allowed(self, origin: str) -> bool:
        if origin.lower() in self._origins:
            return True
        try:
            host = urlsplit(origin).hostname or ""
        except ValueError:
            return False
        return is_loopback(host)
