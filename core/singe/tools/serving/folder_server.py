"""A development server for static files, with the headers that Singe's pages need; standard library only.

Every response isolates the page (COOP, COEP and CORP, which threads in WebAssembly need) and has the right type. A single
range is answered with 206, text is compressed if the client accepts that, and ETag and Last-Modified avoid sending
unchanged files. Only regular files inside the folder are served, none with a path component that starts with a dot, also
through symbolic links; a folder is served as its index.html, or as a list of what is in it. The server listens on loopback by default.

A page elsewhere must not read these files: a `Host` that names neither this server nor an address is refused, since its
name may have been made to lead here (DNS rebinding). So is a request whose end is in doubt, and the connection closed.
"""

from __future__ import annotations

import errno
import gzip
import os
import re
import socket
import socketserver
import stat
import sys
from argparse import Namespace
from collections import OrderedDict
from collections.abc import Sequence
from email.utils import formatdate, parsedate_to_datetime
from functools import partial
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from io import BytesIO
from pathlib import Path
from threading import Lock
from time import monotonic
from typing import IO, Any, Final
from urllib.parse import quote, unquote_to_bytes

from ...errors import InputError
from ...listening import LOOPBACK, Callers, checked_port, in_url
from ...texts import say
from .listing import listing

PORT: Final = 8000
HEADERS: Final = {
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Embedder-Policy": "require-corp",
    "Cross-Origin-Resource-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
}
"""Sent with every response, including errors."""
TYPES: Final = {
    ".css": "text/css; charset=utf-8",
    ".csv": "text/csv; charset=utf-8",
    ".gif": "image/gif",
    ".htm": "text/html; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".ico": "image/x-icon",
    ".jpeg": "image/jpeg",
    ".jpg": "image/jpeg",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".map": "application/json",
    ".md": "text/markdown; charset=utf-8",
    ".mjs": "text/javascript; charset=utf-8",
    ".png": "image/png",
    ".py": "text/x-python; charset=utf-8",
    ".svg": "image/svg+xml",
    ".ts": "text/plain; charset=utf-8",
    ".txt": "text/plain; charset=utf-8",
    ".wasm": "application/wasm",
    ".webmanifest": "application/manifest+json",
    ".webp": "image/webp",
    ".whl": "application/zip",
    ".woff2": "font/woff2",
    ".zip": "application/zip",
}
"""Used instead of the system's table, which may have .js as text/plain and lack .wasm."""
OTHER: Final = "application/octet-stream"
_COMPRESSED: Final = re.compile(r"text/|application/(json|manifest\+json|wasm)|image/svg")
_HASHED: Final = re.compile(r".*[.-][0-9a-f]{16,64}\.\w+(\?.*)?|.*\?v=[0-9a-f]{16,64}")
"""An address that contains the hash of what is there, in the name or as a version: that never changes."""
SMALLEST: Final = 512
LARGEST: Final = 16 << 20
"""Smaller and larger files are not compressed; bytes."""
CACHED: Final = 64 << 20
"""The most bytes of compressed files that are kept."""
CHUNK: Final = 1 << 18
LISTED: Final = 20
"""How many pages are listed when a folder without a page of its own is served."""
PATIENCE: Final = 30.0
"""Seconds that a connection may be silent, and that a client may take to receive CHUNK bytes."""
REQUEST_PATIENCE: Final = 10.0
"""Seconds from the first byte of a request to its last."""
LONGEST_HEAD: Final = 1 << 16
"""The most bytes of a request's line and headers."""
_END: Final = b"\r\n\r\n"
"""What ends the head of a request."""
_LINE: Final = re.compile(rb"[!#-'*+\-.^-z|~\w]+:[^\r\n\0]*")
"""A header's line. Programs differ in what they make of others: a space before the colon, a line that goes on."""


class Gzipped:
    """A cache of compressed files by path and state; the least recently used are dropped first."""

    def __init__(self, limit: int = CACHED) -> None:
        self.limit: Final = limit
        self.size = 0
        self._lock: Final = Lock()
        self._held: Final[OrderedDict[tuple[Path, str], bytes]] = OrderedDict()

    def get(self, path: Path, tag: str, file: IO[bytes]) -> bytes:
        """The compressed contents of an open file; `tag` changes when they do."""
        key = (path, tag)
        with self._lock:
            if key in self._held:
                self._held.move_to_end(key)
                return self._held[key]
        data = gzip.compress(file.read(LARGEST), 6, mtime=0)
        with self._lock:
            if key not in self._held and len(data) <= self.limit:
                self._held[key] = data
                self.size += len(data)
            while self.size > self.limit:
                self.size -= len(self._held.popitem(last=False)[1])
        return data


class Server(socketserver.ThreadingMixIn, socketserver.TCPServer):
    """Serves a folder; a thread for each connection."""

    daemon_threads = True
    request_queue_size = 128
    allow_reuse_address = os.name != "nt"  # there it would share the port with another server

    def __init__(self, folder: str | Path, host: str = LOOPBACK, port: int = PORT, verbose: bool = False) -> None:
        self.folder: Final = Path(folder).resolve()
        self.verbose: Final = verbose
        self.gzipped: Final = Gzipped()
        if not self.folder.is_dir():
            raise InputError(f"{folder}: expected a folder to serve")
        checked_port(port)
        self.callers: Final = Callers(host)
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        try:
            super().__init__((host, port), _Handler)
        except OSError as e:
            raise InputError(_why(e, host, port)) from e

    @property
    def address(self) -> str:
        host, port = self.server_address[:2]
        return f"http://{in_url(str(host))}:{port}/"

    def pages(self) -> list[str]:
        """The addresses of the pages in folders of this one, where it has no page of its own."""
        if (self.folder / "index.html").exists():
            return []
        found = sorted(p.parent.name for p in self.folder.glob("*/index.html") if not p.parent.name.startswith("."))
        return [f"{self.address}{quote(name)}/" for name in found[:LISTED]]

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that disconnects early is not an error."""
        if not isinstance(sys.exception(), (ConnectionError, TimeoutError)):
            super().handle_error(request, client_address)


def serve(args: Namespace) -> None:
    """The command `serve`: serves a folder until interrupted."""
    with Server(args.folder, args.host, args.port, args.verbose) as server:
        say(f"{server.folder} is at {server.address} (Ctrl-C ends)")
        for address in server.pages():
            say(f"  {address}")
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            say()


def _why(e: OSError, host: str, port: int) -> str:
    if e.errno == errno.EADDRINUSE:
        return f"port {port} of {host} is taken: give another with --port (0 takes any that is free)"
    if e.errno == errno.EACCES:
        return f"port {port} of {host} may not be opened by this user: give one above 1023 with --port"
    return f"cannot listen on {host}, port {port}: {e.strerror or e}; give an address of this machine with --host"


def find_file(folder: Path, path: str) -> Path | None:
    """The file or folder for a URL's path, with symbolic links resolved; None if there is none to serve.

    A component that is empty, starts with a dot (such as `..`) or contains any system's separator matches nothing.
    """
    if not path.startswith("/"):
        return None
    try:
        parts = unquote_to_bytes(path[1:]).decode("utf-8").split("/")
    except UnicodeDecodeError:
        return None
    if parts[-1] == "":
        parts.pop()
    if any(not p or p.startswith(".") or any(c in "\\:\0" for c in p) for p in parts):
        return None
    try:
        found = folder.joinpath(*parts).resolve(strict=True)
    except (OSError, RuntimeError, ValueError):  # absent, too long, a loop of links
        return None
    if not found.is_relative_to(folder) or any(p.startswith(".") for p in found.relative_to(folder).parts):
        return None
    return found


def open_within(folder: Path, path: Path) -> IO[bytes] | None:
    """Open a file that `find_file` found; None if it is no regular file. A link that took the place of the file, or of a
    folder on the way to it, is not followed."""
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    try:
        if os.open in os.supports_dir_fd:
            at = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
            for part in path.relative_to(folder).parts:
                above, at = at, -1
                try:
                    at = os.open(part, flags, dir_fd=above)
                finally:
                    os.close(above)
        else:
            at = os.open(path, flags)
    except OSError:
        return None
    if stat.S_ISREG(os.fstat(at).st_mode):
        return os.fdopen(at, "rb")
    os.close(at)
    return None


class _Handler(BaseHTTPRequestHandler):
    server: Server  # pyright: ignore[reportIncompatibleVariableOverride]
    protocol_version = "HTTP/1.1"
    server_version = "singe"
    sys_version = ""
    timeout = PATIENCE
    _received = b""

    def setup(self) -> None:
        super().setup()
        self.rfile.close()  # each request brings its own

    def handle_one_request(self) -> None:
        """Read the head of one request, within a time for all of it, and answer it."""
        head = self._read_head()
        if head is None:
            self.close_connection = True
            return
        self.rfile = BytesIO(head)  # of which the base class reads
        self.raw_requestline = self.rfile.readline(LONGEST_HEAD)
        if not self.parse_request():
            return
        self.rfile.seek(0)
        problem = self._doubt(self.rfile.read().split(b"\r\n")[1:-2])
        host = self.headers.get("Host", "")
        if not head.endswith(_END):
            self.close_connection = True
            long = len(head) > LONGEST_HEAD
            status = HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE if long else HTTPStatus.BAD_REQUEST
            self._problem(status, f"The head of a request ends with an empty line, after at most {LONGEST_HEAD} bytes.")
        elif problem:
            self.close_connection = True
            self._problem(HTTPStatus.BAD_REQUEST, problem)
        elif host and not self.server.callers.is_own_name(host):
            self.close_connection = True
            self._problem(HTTPStatus.MISDIRECTED_REQUEST, f"This server is {self.server.address}: open that address.")
        else:
            getattr(self, f"do_{self.command}", self._refuse)()
        self.wfile.flush()

    def _read_head(self) -> bytes | None:
        """The bytes up to the empty line that ends a head, and that line; what follows is kept. Without such a line, the head is
        too long or was cut off. None: there is no more."""
        end, data = -1, self._received
        deadline = monotonic() + (REQUEST_PATIENCE if data else PATIENCE)
        while (end := data.find(_END)) < 0 and len(data) <= LONGEST_HEAD:
            if (left := deadline - monotonic()) <= 0:
                return None
            self.connection.settimeout(left)
            try:
                more = self.connection.recv(LONGEST_HEAD)
            except OSError:
                return None
            if not more:
                break
            if not data:
                deadline = monotonic() + REQUEST_PATIENCE
            data += more
        self.connection.settimeout(PATIENCE)
        if not data:
            return None
        if end < 0:  # parsed as far as it goes, to say what is wrong
            self._received = b""
            return data
        end += len(_END)
        self._received = data[end:]
        return data[:end]

    def _doubt(self, lines: Sequence[bytes]) -> str:
        """What makes it doubtful where this request ends, or for whom it is; "" if nothing does."""
        wrong = next((line for line in lines if not _LINE.fullmatch(line)), None)
        if wrong is not None:
            return f"This is no header: {wrong[:80].decode('latin-1')!r}"
        lengths = self.headers.get_all("Content-Length", [])
        if len(lengths) > 1 or not all(re.fullmatch(r"\d{1,18}", x, re.A) for x in lengths):
            return "Content-Length must be one number."
        if "Transfer-Encoding" in self.headers:
            return "Requests with Transfer-Encoding are not taken."
        hosts = self.headers.get_all("Host", [])
        if len(hosts) > 1 or (not hosts and self.request_version == "HTTP/1.1"):
            return "There must be one Host."
        return ""

    def do_GET(self) -> None:
        if self.headers.get("Content-Length", "0").strip("0"):
            self.close_connection = True  # an unread body must not be taken for the next request
        path, sign, query = self.path.partition("#")[0].partition("?")
        found = find_file(self.server.folder, path)
        if found is not None and found.is_dir():
            if not path.endswith("/"):
                # Relative URLs in the page need the slash.
                self._empty(HTTPStatus.MOVED_PERMANENTLY, {"Location": _slashed(path) + sign + query})
                return
            index = find_file(self.server.folder, f"{path}index.html")
            if index is None or not index.is_file():
                self._list(found, path)
                return
            found = index
        elif path.endswith("/"):
            found = None
        file = None if found is None else open_within(self.server.folder, found)
        if found is None or file is None:
            self._problem(HTTPStatus.NOT_FOUND, "There is no such file here.")
            return
        with file:
            self._send(found, file)

    do_HEAD = do_GET

    def _list(self, folder: Path, path: str) -> None:
        body = listing(folder, path, partial(find_file, self.server.folder))
        headers = {"Content-Type": TYPES[".html"], "Content-Length": str(len(body)), "Cache-Control": "no-store"}
        self._head(HTTPStatus.OK, headers)
        if self.command == "GET":
            self.wfile.write(body)

    def _refuse(self) -> None:
        self.close_connection = True
        self._problem(HTTPStatus.METHOD_NOT_ALLOWED, "Only GET and HEAD are answered.", {"Allow": "GET, HEAD"})

    do_POST = do_PUT = do_PATCH = do_DELETE = do_OPTIONS = _refuse

    def _send(self, path: Path, file: IO[bytes]) -> None:
        """Send a file: all of it, compressed or not, a range of it, or 304 if it is unchanged."""
        state = os.fstat(file.fileno())
        size, kind = state.st_size, TYPES.get(path.suffix.lower(), OTHER)
        tag = f"{state.st_mtime_ns:x}-{size:x}"
        may_compress = _COMPRESSED.match(kind) is not None and SMALLEST <= size <= LARGEST
        headers = {
            "Content-Type": kind,
            "Accept-Ranges": "bytes",
            "Cache-Control": "public, max-age=31536000, immutable" if _HASHED.fullmatch(self.path) else "no-cache",
            "Last-Modified": formatdate(state.st_mtime, usegmt=True),
            "ETag": f'"{tag}"',
            **({"Vary": "Accept-Encoding"} if may_compress else {}),
        }
        wanted = self.headers.get("Range") if self.command == "GET" and self._range_holds(headers) else None
        compressed = None
        if may_compress and wanted is None and accepts_gzip(self.headers.get("Accept-Encoding", "")):
            compressed = self.server.gzipped.get(path, tag, file)
            headers |= {"Content-Encoding": "gzip", "ETag": f'"{tag}-gzip"'}
        if self._unchanged(headers, state.st_mtime):
            self._empty(HTTPStatus.NOT_MODIFIED, {k: v for k, v in headers.items() if not k.startswith("Content-")})
            return
        if compressed is not None:
            self._head(HTTPStatus.OK, headers | {"Content-Length": str(len(compressed))})
            if self.command == "GET":
                self.wfile.write(compressed)
            return
        part = None if wanted is None else parse_range(wanted, size)
        if part is not None and not part:
            self._problem(
                HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE,
                f"The file has {size} bytes.",
                {"Content-Range": f"bytes */{size}"},
            )
            return
        if part is not None:
            headers["Content-Range"] = f"bytes {part.start}-{part.stop - 1}/{size}"
        span = range(size) if part is None else part
        self._head(HTTPStatus.OK if part is None else HTTPStatus.PARTIAL_CONTENT, headers | {"Content-Length": str(len(span))})  # fmt: skip
        if self.command == "GET":
            self._copy(file, span)

    def _range_holds(self, headers: dict[str, str]) -> bool:
        """Whether the file is still the one that the range request refers to (If-Range)."""
        given = self.headers.get("If-Range")
        return given is None or given in (headers["ETag"], headers["Last-Modified"])

    def _unchanged(self, headers: dict[str, str], modified: float) -> bool:
        """Whether the client has this version; If-None-Match takes precedence over If-Modified-Since."""
        tags = self.headers.get("If-None-Match")
        if tags is not None:
            held = [t.strip().removeprefix("W/") for t in tags.split(",")]
            return "*" in held or headers["ETag"] in held
        try:
            since = parsedate_to_datetime(self.headers.get("If-Modified-Since", "")).timestamp()
        except (TypeError, ValueError, OverflowError):
            return False
        return int(modified) <= since

    def _copy(self, file: IO[bytes], span: range) -> None:
        file.seek(span.start)
        left = len(span)
        while left and (data := file.read(min(left, CHUNK))):
            self.wfile.write(data)
            left -= len(data)
        if left:
            self.close_connection = True  # the file shrank: the announced length is wrong now

    def _problem(self, status: HTTPStatus, text: str, headers: dict[str, str] | None = None) -> None:
        body = f"{status.value} {status.phrase}. {text}\n".encode()
        plain = {"Content-Type": TYPES[".txt"], "Content-Length": str(len(body)), "Cache-Control": "no-store"}
        self._head(status, plain | (headers or {}))
        if self.command != "HEAD":
            self.wfile.write(body)

    def _empty(self, status: HTTPStatus, headers: dict[str, str]) -> None:
        self._head(status, headers if status is HTTPStatus.NOT_MODIFIED else headers | {"Content-Length": "0"})

    def _head(self, status: HTTPStatus, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()

    def end_headers(self) -> None:
        for name, value in HEADERS.items():
            self.send_header(name, value)
        super().end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        if self.server.verbose:
            super().log_message(format, *args)


def _slashed(path: str) -> str:
    """A folder's path with a slash, quoted again: a header must not contain the client's raw text."""
    return quote(unquote_to_bytes(path)) + "/"


def accepts_gzip(header: str) -> bool:
    """Whether an Accept-Encoding header accepts gzip, by name or by `*`."""
    weights: dict[str, float] = {}
    for item in header.lower().split(","):
        name, *parameters = (part.strip() for part in item.split(";"))
        weight = next((p[2:] for p in parameters if p.startswith("q=")), "1")
        weights[name] = float(weight) if re.fullmatch(r"[01](\.\d{0,3})?", weight) else 0.0
    return weights.get("gzip", weights.get("*", 0.0)) > 0


def parse_range(header: str, size: int) -> range | None:
    """The bytes of a Range header: empty if out of range, None for the whole file (several ranges, or invalid)."""
    match = re.fullmatch(r"bytes=\s*(\d{0,18})-(\d{0,18})\s*", header, re.A)
    first, last = match.groups() if match else ("", "")
    if not first and not last:
        return None
    if not first:
        return range(max(0, size - int(last)), size)
    if last and int(last) < int(first):
        return None
    return range(int(first), min(int(last) + 1, size) if last else size)
