"""Files at URLs, kept in a cache folder: asked for with their ETag, resumed where a transfer broke off, compared with a hash.

A URL is http://…, https://…, or hf://owner/repo/path (hf://owner/repo@revision/path) for a file of the model hub. The
hash is that which the hub tells where it redirects to a server that has the bytes, or that of a fragment:
https://…/model.onnx#sha256=…. What the server of the bytes says of them is no evidence. A file that was fetched before is
used as it is if the server says that it is unchanged, or cannot be reached.

The cache has a folder for each URL, in which its file and those beside it lie as they do on the server, and a folder
`notes` for what is known of each file, and for those that are only partly there. A link in it that leads elsewhere is refused.

Environment: SINGE_CACHE is the folder (see folder.py), HF_ENDPOINT the hub's address,
HF_TOKEN a token for its private files, which is sent to the hub alone. With SINGE_OFFLINE=1 no server is asked: what is in the cache
is used as it is.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import os
import re
import shutil
import string
import sys
import time
from collections.abc import Iterator
from dataclasses import field
from pathlib import Path, PurePosixPath
from typing import IO, Any, Final
from urllib.parse import quote, unquote, urldefrag, urlsplit

from ..awaitables import IN_PAGE
from ..errors import FormatError, InputError
from ..late_dataclass import dataclass
from ..shapes import bytes_text
from ..texts import escaped
from .folder import cache_folder
from .local import inside, reason
from .urls import fetch

_log: Final = logging.getLogger("singe")
HUB: Final = "https://huggingface.co"
"""The address of the model hub; HF_ENDPOINT overrides it."""
OFFLINE: Final = "SINGE_OFFLINE"
TIMEOUT_SECONDS: Final = 30
"""Seconds without a byte after which a transfer is broken."""
ATTEMPTS: Final = 5
ATTEMPTS_TO_REACH: Final = 2
"""Attempts to reach a server that has not sent anything yet: most who cannot reach it have no network."""
FIRST_PAUSE_SECONDS: Final = 0.5
"""Seconds before the second attempt; each pause is twice the one before."""
BYTES_PER_READ: Final = 1 << 18
FREE_DISK_BYTES: Final = 1 << 26
"""Bytes that stay free on the disk."""
_HUB_FILE: Final = re.compile(r"hf://([\w.-]+/[\w.-]+)(?:@([^/@]+))?/(.+)")
_HOST: Final = re.compile(r"([\w.-]+|\[[0-9A-Fa-f:.]+\])(:\d*)?", re.ASCII)
_PLAIN_NAME: Final = re.compile(r"[\w.@+=,~()-][\w.@+=,~() -]{0,199}")


def downloaded(path: str, beside: str | None = None) -> Path:
    """Where the file at a URL is in the cache, fetched if need be. beside: of the file with this relative path in the folder of the
    first; see `inside`."""
    if IN_PAGE:
        raise InputError(f"{path}: in a page, URLs are fetched by `await singe.load_async(url)`")
    address, digest = address_of(path)
    parts = urlsplit(address)
    folder, _, name = parts.path.rpartition("/")
    name, key = unquote(name), _key(address)
    place = cache_folder() / key[:32]
    if beside is None:
        local, shown = place / (name if _is_plain(name) else key), path
    else:
        local, other = inside(place, beside), PurePosixPath(beside).as_posix()
        if other == name:
            return downloaded(path)
        address, digest = parts._replace(path=f"{folder}/{quote(other)}", query="").geturl(), None
        key, shown = _key(f"{key}/{other}"), f"{path}: {beside}"
    return _Download(shown, address, local, cache_folder() / "notes" / key, digest).run()


async def fetched(path: str) -> bytes:
    """For a page: the bytes at a URL, also one of the hub or a relative one, compared with the hash of its fragment."""
    url, digest = _parted(path)
    data = await fetch(address_of(path)[0] if _is_of_hub(url) else url)
    if digest and hashlib.sha256(data).hexdigest() != digest:
        raise InputError(f"cannot fetch {path}: {_changed(hashlib.sha256(data).hexdigest(), digest)}")
    return data


def _key(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _is_plain(name: str) -> bool:
    """Whether a file of any system can have this name."""
    return bool(_PLAIN_NAME.fullmatch(name)) and name not in (".", "..") and len(name.encode()) <= 200


def is_offline() -> bool:
    """Whether no server may be asked."""
    return os.environ.get(OFFLINE, "") not in ("", "0")


def hub() -> str:
    return (os.environ.get("HF_ENDPOINT") or HUB).rstrip("/")


def address_of(path: str) -> tuple[str, str | None]:
    """Where the file of a URL is fetched, in the ASCII of a request, and the sha256 that its fragment tells."""
    url, digest = _parted(path)
    if not _is_of_hub(url):
        return _requested(url, path), digest
    found = _HUB_FILE.fullmatch(url)
    if not found or ".." in found[3].split("/"):
        raise InputError(f"{path}: expected hf://owner/repo/file, or hf://owner/repo@revision/file")
    repo, revision, file = found.groups()
    address = f"{hub()}/{repo}/resolve/{quote(revision or 'main', safe='')}/{quote(file)}"
    return _requested(address, f"HF_ENDPOINT is {hub()!r}"), digest


def _is_of_hub(url: str) -> bool:
    return url.lower().startswith("hf://")


def _parted(path: str) -> tuple[str, str | None]:
    """A URL without its fragment, and the sha256 that this tells."""
    digest = None
    try:
        path.encode()
        url, fragment = urldefrag(path)
    except ValueError as e:  # also of lone surrogates
        raise InputError(f"{path!r}: not a URL: {e}") from None
    if fragment.startswith("sha256="):
        digest = fragment.removeprefix("sha256=").lower()
        if not re.fullmatch("[0-9a-f]{64}", digest):
            raise InputError(f"{path}: a sha256 has 64 hexadecimal digits")
    return url, digest


def _requested(url: str, name: str) -> str:
    """A URL of http or https with its host in ASCII, and what else is not ASCII quoted. name: of the URL, for errors."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
        netloc = parts.netloc
        if not netloc.isascii():
            netloc = host.encode("idna").decode() + ("" if port is None else f":{port}")
        path, query = (quote(x, safe=string.punctuation) for x in (parts.path, parts.query))
    except ValueError as e:
        raise InputError(f"{name}: not a URL: {e}") from None
    if parts.scheme not in ("http", "https") or not netloc:
        raise InputError(f"{name}: got a URL of {parts.scheme or 'no scheme'}, expected https://, http:// or hf://")
    if not _HOST.fullmatch(netloc):
        raise InputError(f"{name}: {netloc!r:.200} is not the name of a host, or a name and a port")
    return parts._replace(netloc=netloc, path=path, query=query).geturl()


class _Broken(Exception):
    """A transfer that may succeed if it is tried again."""


class _Unreachable(_Broken):
    """A server that cannot be reached."""


class _Refused(Exception):
    """An answer that will not change."""


def _received(answer: Any) -> bytes:
    """The next bytes of an answer; none at its end."""
    try:
        return answer.read(BYTES_PER_READ)
    except OSError as e:
        raise _Broken(str(e) or type(e).__name__) from None


@dataclass
class _Download:
    """One file: `run` returns its place in the cache. `told` is what earlier runs wrote down: the ETags of the whole file
    and of the part that is there. notes: the path, but for a suffix, of what belongs to the download."""

    name: str
    address: str
    local: Path
    notes: Path
    digest: str | None
    headers: dict[str, str] = field(default_factory=dict)

    @property
    def _part(self) -> Path:
        return self.notes.with_suffix(".part")

    @property
    def _etags(self) -> Path:
        return self.notes.with_suffix(".etag")

    def run(self) -> Path:
        try:
            cache_folder().mkdir(parents=True, exist_ok=True)
            lock = self.notes.with_suffix(".lock")
            for path in (self.local, self._part, self._etags, lock):
                _refuse_links(path)
                path.parent.mkdir(parents=True, exist_ok=True)
            with alone(lock):
                self._recall()
                return self._tried()
        except OSError as e:
            raise InputError(
                f"cannot keep {self.name} in {self.local.parent}: {reason(e)}; SINGE_CACHE names another folder"
            ) from e

    def _recall(self) -> None:
        with contextlib.suppress(OSError, ValueError):
            told = json.loads(self._etags.read_text("utf-8"))
            self.headers = {k: v for k, v in told.items() if isinstance(v, str)} if isinstance(told, dict) else {}

    def _note(self, what: str, etag: str | None) -> None:
        self.headers = {k: v for k, v in self.headers.items() if k != what} | ({what: etag} if etag else {})
        self._etags.write_text(json.dumps(self.headers), "utf-8")

    def _tried(self) -> Path:
        here = self.local.exists()
        if here and (digest_of(self.local) == self.digest if self.digest else is_offline()):
            return self.local
        if is_offline():
            raise InputError(f"{self.name} is not in {cache_folder()}, and {OFFLINE} is set: nothing is fetched")
        pause = FIRST_PAUSE_SECONDS
        for attempt in range(1, ATTEMPTS + 1):
            try:
                return self._once()
            except _Refused as e:
                raise InputError(f"cannot fetch {self.name}: {e}") from None
            except _Broken as e:
                if self.local.exists() and not self.digest and (isinstance(e, _Unreachable) or attempt == ATTEMPTS):
                    return self.local
                begun = self._part.exists() or not isinstance(e, _Unreachable)
                if attempt >= (ATTEMPTS if begun else ATTEMPTS_TO_REACH):
                    raise InputError(f"cannot fetch {self.name}: {e}; {attempt} attempts") from None
                time.sleep(pause)
                pause *= 2
        raise AssertionError

    def _once(self) -> Path:
        """One request, and its answer."""
        from http.client import HTTPException, InvalidURL  # noqa: PLC0415 (`import singe` pays for no network)
        from urllib.error import HTTPError, URLError  # noqa: PLC0415

        whole, part = self.headers.get("whole"), self.headers.get("part")
        start = self._part.stat().st_size if part and self._part.exists() and not part.startswith("W/") else 0
        headers = {"Accept-Encoding": "identity", "User-Agent": "singe"}
        if start:
            headers |= {"Range": f"bytes={start}-", "If-Range": str(part)}
        elif whole and not self.digest and self.local.exists():  # a file that differs from its hash is fetched anew
            headers["If-None-Match"] = whole
        try:
            answer, linked = _open(self.address, headers)
            with answer:
                return self._kept(answer, linked, start)
        except HTTPError as e:
            e.close()
            if e.code == 304:
                return self.local
            if e.code == 416:  # the part is no beginning of what is there
                self._part.unlink(missing_ok=True)
                raise _Broken("the server has another file than the one that was begun") from None
            if e.code in (408, 425, 429) or e.code >= 500:
                raise _Broken(f"the server answers {e.code} {e.reason}") from None
            hint = (
                "; is HF_TOKEN set to a token that may read it?"
                if e.code in (401, 403) and _is_hub(self.address)
                else ""
            )
            raise _Refused(f"the server answers {e.code} {e.reason}{hint}") from None
        except URLError as e:
            raise _Unreachable(str(e.reason)) from None
        except (InvalidURL, ValueError) as e:  # where the server leads is no URL
            raise _Refused(f"the server's answer is malformed: {e}") from None
        except (HTTPException, TimeoutError, ConnectionError) as e:
            raise _Broken(str(e) or type(e).__name__) from None

    def _kept(self, answer: Any, linked: str | None, start: int) -> Path:
        """Write what an answer has, and compare it with its length and hash."""
        if answer.status == 206:
            span = re.fullmatch(r"bytes (\d+)-(\d+)/(\d+)", answer.headers.get("Content-Range", ""))
            if not span or int(span[1]) != start or not start or answer.headers.get("ETag") != self.headers.get("part"):
                self._part.unlink(missing_ok=True)
                raise _Broken("the server sends another range than the one that was asked for, or of another file")
            total = int(span[3])
        else:
            start, length = 0, answer.headers.get("Content-Length", "")
            total = int(length) if length.isdecimal() else None
            self._part.unlink(missing_ok=True)  # first: what is there is of another version than the one that is noted
            self._note("part", answer.headers.get("ETag"))
        free = shutil.disk_usage(self.local.parent).free
        if total is not None and total - start + FREE_DISK_BYTES > free:
            raise _Refused(f"it has {bytes_text(total)}, and {bytes_text(free)} are free in {self.local.parent}")
        with self._part.open("r+b" if start else "wb") as file:
            at = file.seek(start)
            with _shown(self.local.name, total) as show:
                while part := _received(answer):
                    file.write(part)
                    at += len(part)
                    show(at)
                    if total is not None and at > total:
                        break
                    if total is None and shutil.disk_usage(self.local.parent).free < FREE_DISK_BYTES:
                        raise _Refused(
                            f"it has more than {bytes_text(at)}, and the disk of {self.local.parent} is full"
                        )
        if total is not None and at > total:
            self._part.unlink()
            raise _Broken(f"the server sends more than the {total} bytes that it tells")
        if total is not None and at != total:
            raise _Broken(f"the connection ended after {at} of {total} bytes")
        self._compare(linked, resumed=start > 0)
        os.replace(self._part, self.local)
        self._note("whole", self.headers.get("part"))
        return self.local

    def _compare(self, linked: str | None, resumed: bool) -> None:
        """Refuse a file that differs from the hash that is known of it: of the URL, or as the hub tells it. One whose parts came
        in several answers is fetched anew: they may be of different files."""
        wanted = self.digest or linked
        if wanted is None:
            return
        found = digest_of(self._part)
        if found != wanted:
            self._part.unlink()
            raise (_Broken if resumed else _Refused)(_changed(found, wanted))


def _changed(found_hash: str, wanted: str) -> str:
    return f"its sha256 is {found_hash}, expected {wanted}: it was changed, or damaged on its way"


def _is_hub(address: str) -> bool:
    return address.startswith(hub() + "/")


def digest_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _refuse_links(path: Path) -> None:
    """A file of the cache may be no link that leads out of it, nor in a folder that is one."""
    cache = cache_folder()
    try:
        inside(cache, path.relative_to(cache).as_posix())
    except FormatError:
        raise InputError(
            f"{path}: a link leads out of the cache {cache}; remove it, or name another folder with SINGE_CACHE"
        ) from None


def _open(address: str, headers: dict[str, str]) -> tuple[Any, str | None]:
    """The answer to a request, and the hash that the hub told where it redirected: the first, and only the hub's own."""
    from urllib.request import HTTPRedirectHandler, Request, build_opener  # noqa: PLC0415

    linked: str | None = None
    token = os.environ.get("HF_TOKEN", "").strip()
    if not (token.isascii() and token.isprintable()):  # the error of a header would show it
        raise _Refused("HF_TOKEN is set to what is no token")

    def with_token(request: Request) -> Request:
        if token and _is_hub(request.full_url):
            request.add_unredirected_header("Authorization", f"Bearer {token}")
        return request

    class Redirects(HTTPRedirectHandler):
        def redirect_request(self, req: Request, fp: IO[bytes], code: int, msg: str, headers: Any, newurl: str) -> Any:
            nonlocal linked
            etag = (headers.get("X-Linked-Etag") or "").strip('"')
            if linked is None and _is_hub(req.full_url) and _is_hub(address) and re.fullmatch("[0-9a-f]{64}", etag):
                linked = etag
            if not newurl.startswith("https://") and not (newurl.startswith("http://") and req.type == "http"):
                raise _Refused(f"the server redirects to {newurl:.200}")
            made = super().redirect_request(req, fp, code, msg, headers, newurl)
            return None if made is None else with_token(made)

    answer = build_opener(Redirects).open(with_token(Request(address, headers=headers)), timeout=TIMEOUT_SECONDS)
    return answer, linked


@contextlib.contextmanager
def alone(path: Path) -> Iterator[None]:
    """One thread of one process at a time for each path, where the system has locks of files."""
    try:
        import fcntl  # noqa: PLC0415
    except ImportError:  # Windows: two downloads of one file at a time are the caller's to avoid
        yield
        return
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


@contextlib.contextmanager
def _shown(name: str, total: int | None) -> Iterator[Any]:
    """A function that shows how many bytes are there: a line on a terminal that is written anew, elsewhere nothing. A command shows
    what the logger "singe" logs."""
    logs = _log.isEnabledFor(logging.INFO)
    if not logs and not sys.stderr.isatty():
        yield lambda at: None
        return
    last, name = 0.0, escaped(name)

    def show(at: int) -> None:
        nonlocal last
        if time.monotonic() - last > 0.1 or at == total:
            last = time.monotonic()
            of = f" of {bytes_text(total)}, {100 * at // max(total, 1)}%" if total is not None else ""
            if logs:
                _log.info("%s: %s%s", name, bytes_text(at), of)
            else:
                print(f"\r{name}: {bytes_text(at)}{of}\x1b[K", end="", file=sys.stderr, flush=True)

    try:
        yield show
    finally:
        if not logs:
            print(file=sys.stderr)
