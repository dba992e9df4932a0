"""Files at URLs, kept in a cache folder: asked for with their ETag, resumed where a transfer broke off, compared with a hash.

A URL is http://…, https://…, or hf://owner/repo/path (hf://owner/repo@revision/path) for a file of the model hub. The
hash is that which the hub tells, or that of a fragment: https://…/model.onnx#sha256=….  A file that was fetched before is
used as it is if the server says that it is unchanged, or cannot be reached.

Environment: SINGE_CACHE is the folder (by default `singe` in the user's cache folder), HF_ENDPOINT the hub's address,
HF_TOKEN a token for its private files, which is sent to the hub alone.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import shutil
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Final
from urllib.parse import quote, unquote, urldefrag, urlsplit

from ..errors import InputError
from ..shapes import bytes_text
from .files import reason
from .page import fetch, is_url
from .waiting import IN_PAGE

HUB: Final = "https://huggingface.co"
"""The address of the model hub; HF_ENDPOINT overrides it."""
TIMEOUT: Final = 30
"""Seconds without a byte after which a transfer is broken."""
ATTEMPTS: Final = 5
PAUSE: Final = 0.5
"""Seconds before the second attempt; each pause is twice the one before."""
PIECE: Final = 1 << 18
SPARE: Final = 1 << 26
"""Bytes that stay free on the disk."""
_HUB_FILE: Final = re.compile(r"hf://([\w.-]+/[\w.-]+)(?:@([^/@]+))?/(.+)")
_PLAIN_NAME: Final = re.compile(r"[\w.@+=,~()-][\w.@+=,~() -]{0,199}")


def local_file(path: str | Path, beside: str | None = None) -> Path:
    """The file itself, or where the file at a URL is in the cache, fetched if need be. beside: of the file with this
    relative path in the folder of the first, which must not lead out of it."""
    if not is_url(path):
        return Path(path) if beside is None else Path(path).parent / beside
    if IN_PAGE:
        raise InputError(f"{path}: in a page, URLs are fetched by `await singe.load_async(url)`")
    address, digest = address_of(str(path))
    parts = urlsplit(address)
    folder, _, name = parts.path.rpartition("/")
    key = parts._replace(path=folder).geturl()
    place = cache_folder() / hashlib.sha256(key.encode()).hexdigest()[:32]
    if beside is None:
        name = unquote(name)
        local = place / (name if _PLAIN_NAME.fullmatch(name) else hashlib.sha256(name.encode()).hexdigest())
    else:
        address, digest = parts._replace(path=f"{folder}/{quote(beside)}", query="").geturl(), None
        local = place / beside
    return _Download(str(path) if beside is None else f"{path}: {beside}", address, local, digest).run()


async def fetched(url: str) -> bytes:
    """The bytes at a URL, fetched by the page (a relative one is of the page's site), and compared with the hash that its
    fragment tells."""
    address, digest = address_of(url) if re.match("(hf|https?)://", url, re.IGNORECASE) else (url, None)
    data = await fetch(address)
    found = hashlib.sha256(data).hexdigest() if digest else None
    if found != digest:
        raise InputError(f"{url}: the sha256 of the file is {found}: it was changed, or damaged on its way")
    return data


def cache_folder() -> Path:
    """Where files are kept."""
    given = os.environ.get("SINGE_CACHE")
    if given:
        return Path(given)
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA")
    else:
        base = os.environ.get("XDG_CACHE_HOME") or ("~/Library/Caches" if sys.platform == "darwin" else None)
    return Path(base or "~/.cache").expanduser() / "singe"


def hub() -> str:
    return (os.environ.get("HF_ENDPOINT") or HUB).rstrip("/")


def address_of(path: str) -> tuple[str, str | None]:
    """Where the file of a URL is fetched, and the sha256 that its fragment tells."""
    url, fragment = urldefrag(path)
    digest = None
    if fragment.startswith("sha256="):
        digest = fragment.removeprefix("sha256=").lower()
        if not re.fullmatch("[0-9a-f]{64}", digest):
            raise InputError(f"{path}: a sha256 has 64 hexadecimal digits")
    if url.lower().startswith("hf://"):
        found = _HUB_FILE.fullmatch(url)
        if not found or ".." in found[3].split("/"):
            raise InputError(f"{path}: expected hf://owner/repo/file, or hf://owner/repo@revision/file")
        repo, revision, file = found.groups()
        return f"{hub()}/{repo}/resolve/{quote(revision or 'main', safe='')}/{quote(file)}", digest
    try:
        parts = urlsplit(url)
    except ValueError as e:
        raise InputError(f"{path}: not a URL: {e}") from None
    if parts.scheme.lower() not in ("http", "https") or not parts.netloc:
        raise InputError(f"{path}: got a URL of {parts.scheme or 'no scheme'}, expected https://, http:// or hf://")
    return url, digest


class _Broken(Exception):
    """A transfer that may succeed if it is tried again."""


class _Unreachable(_Broken):
    """A server that cannot be reached."""


class _Refused(Exception):
    """An answer that will not change."""


@dataclass
class _Download:
    """One file: `run` returns its place in the cache. `told` is what earlier runs wrote down: the ETags of the whole file
    and of the part that is there."""

    name: str
    address: str
    local: Path
    digest: str | None
    told: dict[str, str] = field(default_factory=dict)

    @property
    def _part(self) -> Path:
        return self.local.with_name(self.local.name + ".part")

    @property
    def _notes(self) -> Path:
        return self.local.with_name(self.local.name + ".etag")

    def run(self) -> Path:
        try:
            self.local.parent.mkdir(parents=True, exist_ok=True)
            with _alone(self.local.with_name(self.local.name + ".lock")):
                self._recall()
                return self._tried()
        except OSError as e:
            raise InputError(
                f"cannot keep {self.name} in {self.local.parent}: {reason(e)}; SINGE_CACHE names another folder"
            ) from e

    def _recall(self) -> None:
        with contextlib.suppress(OSError, ValueError):
            told = json.loads(self._notes.read_text("utf-8"))
            self.told = {k: v for k, v in told.items() if isinstance(v, str)} if isinstance(told, dict) else {}

    def _note(self, what: str, etag: str | None) -> None:
        self.told = {k: v for k, v in self.told.items() if k != what} | ({what: etag} if etag else {})
        self._notes.write_text(json.dumps(self.told), "utf-8")

    def _tried(self) -> Path:
        if self.digest and self.local.exists() and _sha256(self.local) == self.digest:
            return self.local
        pause = PAUSE
        for attempt in range(1, ATTEMPTS + 1):
            try:
                return self._once()
            except _Refused as e:
                raise InputError(f"cannot fetch {self.name}: {e}") from None
            except _Broken as e:
                if self.local.exists() and not self.digest and (isinstance(e, _Unreachable) or attempt == ATTEMPTS):
                    return self.local
                if attempt == ATTEMPTS:
                    raise InputError(f"cannot fetch {self.name}: {e}; {ATTEMPTS} attempts") from None
                time.sleep(pause)
                pause *= 2
        raise AssertionError

    def _once(self) -> Path:
        """One request, and its answer."""
        from http.client import HTTPException, InvalidURL  # noqa: PLC0415 (`import singe` pays for no network)
        from urllib.error import HTTPError, URLError  # noqa: PLC0415

        whole, part = self.told.get("whole"), self.told.get("part")
        start = self._part.stat().st_size if part and self._part.exists() and not part.startswith("W/") else 0
        headers = {"Accept-Encoding": "identity", "User-Agent": "singe"}
        if start:
            headers |= {"Range": f"bytes={start}-", "If-Range": str(part)}
        elif whole and self.local.exists() and not self.digest:  # with a hash, what is there has another one
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
        except (InvalidURL, UnicodeError) as e:
            raise _Refused(f"{self.address} is not a URL that can be asked for ({e}): quote its characters") from None
        except (HTTPException, TimeoutError, ConnectionError) as e:
            raise _Broken(str(e) or type(e).__name__) from None

    def _kept(self, answer: Any, linked: dict[str, str], start: int) -> Path:
        """Write what an answer has, and compare it with its length and hash."""
        if answer.status == 206:
            span = re.fullmatch(r"bytes (\d+)-(\d+)/(\d+)", answer.headers.get("Content-Range", ""))
            if not span or int(span[1]) != start:
                self._part.unlink(missing_ok=True)
                raise _Broken("the server sends another range than the one that was asked for")
            total = int(span[3])
        else:
            start, length = 0, answer.headers.get("Content-Length", "")
            total = int(length) if length.isdecimal() else None
            self._part.unlink(missing_ok=True)  # of another version, perhaps
            self._note("part", answer.headers.get("ETag"))
        free = shutil.disk_usage(self.local.parent).free
        if total is not None and total - start + SPARE > free:
            raise _Refused(f"it has {bytes_text(total)}, and {bytes_text(free)} are free in {self.local.parent}")
        with self._part.open("r+b" if start else "wb") as file:
            at = file.seek(start)
            with _shown(self.local.name, total) as show:
                while part := answer.read(PIECE):
                    file.write(part)
                    at += len(part)
                    show(at)
                    if total is None and shutil.disk_usage(self.local.parent).free < SPARE:
                        raise _Refused(
                            f"it has more than {bytes_text(at)}, and the disk of {self.local.parent} is full"
                        )
        if total is not None and at != total:
            raise _Broken(f"the connection ended after {at} of {total} bytes")
        self._compare(linked)
        os.replace(self._part, self.local)
        self._note("whole", self.told.get("part"))
        return self.local

    def _compare(self, linked: dict[str, str]) -> None:
        """Refuse a file that differs from the hash that is known of it: of the URL, or as the hub tells it."""
        wanted = self.digest
        if wanted is None and _is_hub(self.address):
            etag = linked.get("X-Linked-Etag", "").strip('"')
            wanted = etag if re.fullmatch("[0-9a-f]{64}", etag) else None
        if wanted is None:
            return
        found = _sha256(self._part)
        if found != wanted:
            self._part.unlink()
            raise _Refused(f"its sha256 is {found}, expected {wanted}: it was changed, or damaged on its way")


def _is_hub(address: str) -> bool:
    return address.startswith(hub() + "/")


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _open(address: str, headers: dict[str, str]) -> tuple[Any, dict[str, str]]:
    """The answer to a request, and the X-Linked headers on the way there: the hub tells hashes where it redirects."""
    from urllib.request import HTTPRedirectHandler, Request, build_opener  # noqa: PLC0415

    linked: dict[str, str] = {}
    token = os.environ.get("HF_TOKEN")

    def with_token(request: Request) -> Request:
        if token and _is_hub(request.full_url):
            request.add_unredirected_header("Authorization", f"Bearer {token}")
        return request

    class Redirects(HTTPRedirectHandler):
        def redirect_request(self, req: Request, fp: IO[bytes], code: int, msg: str, headers: Any, newurl: str) -> Any:
            linked.update({k.title(): v for k, v in headers.items() if k.lower().startswith("x-linked-")})
            if not newurl.startswith("https://") and not (newurl.startswith("http://") and req.type == "http"):
                raise _Refused(f"the server redirects to {newurl:.200}")
            made = super().redirect_request(req, fp, code, msg, headers, newurl)
            return None if made is None else with_token(made)

    answer = build_opener(Redirects).open(with_token(Request(address, headers=headers)), timeout=TIMEOUT)
    linked.update({k.title(): v for k, v in answer.headers.items() if k.lower().startswith("x-linked-")})
    return answer, linked


@contextlib.contextmanager
def _alone(path: Path) -> Iterator[None]:
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
    """A function that shows how many bytes are there: a line on a terminal that is written anew, elsewhere nothing."""
    if not sys.stderr.isatty():
        yield lambda at: None
        return
    last = 0.0

    def show(at: int) -> None:
        nonlocal last
        if time.monotonic() - last > 0.1 or at == total:
            last = time.monotonic()
            of = f" of {bytes_text(total)}, {100 * at // max(total, 1)}%" if total is not None else ""
            print(f"\r{name}: {bytes_text(at)}{of}\x1b[K", end="", file=sys.stderr, flush=True)

    try:
        yield show
    finally:
        print(file=sys.stderr)
