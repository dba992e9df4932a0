"""The file server, through real sockets: the features that a page needs, and files that are never served."""

from __future__ import annotations

import gzip
import http.client
import os
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest

from singe.errors import InputError
from singe.tools import cli
from singe.tools.serving import folder_server
from singe.tools.serving.folder_server import (
    HEADERS,
    Gzipped,
    Server,
    accepts_gzip,
    find_file,
    open_within,
    parse_range,
)
from singe.tools.serving.listing import listing

TEXT = "".join(f"{{line: {k}}}\n" for k in range(500)).encode()
BYTES = bytes(range(256)) * 40
HASHED = "kernels-0123456789abcdef.wasm"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server of `site`, with secrets beside it and hidden in it."""
    outer = tmp_path_factory.mktemp("outer")
    site = outer / "site"
    (site / "sub dir").mkdir(parents=True)
    (site / "bare").mkdir()
    (site / ".git").mkdir()
    (site / ".git" / "config").write_text("secret")
    (outer / "secret.txt").write_text("secret")
    (outer / "site-other").mkdir()
    (outer / "site-other" / "secret.txt").write_text("secret")
    for name in ("a.js", "a.mjs", "a.json", "a.html", "a.txt", "big.wasm", HASHED):
        (site / name).write_bytes(TEXT)
    (site / "w.bin").write_bytes(BYTES)
    (site / "empty.bin").write_bytes(b"")
    (site / "small.json").write_bytes(b"{}")
    (site / "größe.txt").write_bytes(b"umlaut")
    (site / "sub dir" / "index.html").write_bytes(b"<p>index")
    (site / "out.txt").symlink_to(outer / "secret.txt")
    (site / "outdir").symlink_to(outer)
    (site / "hidden.txt").symlink_to(site / ".git" / "config")
    (site / "hidden").symlink_to(site / ".git")
    (site / "in.txt").symlink_to(site / "a.txt")
    (site / "loop").symlink_to(site / "loop")
    os.mkfifo(site / "pipe.txt")
    with Server(site, port=0) as made:
        threading.Thread(target=made.serve_forever, args=(0.02,), daemon=True).start()
        yield made
        made.shutdown()


class Answer:
    def __init__(self, response: http.client.HTTPResponse) -> None:
        self.status = response.status
        self.headers = response.headers
        self.body = response.read()


def get(server: Server, path: str, method: str = "GET", body: bytes | None = None, **headers: str) -> Answer:
    """A response. The path is sent unchanged; `_` in names of headers stands for `-`."""
    with closing(http.client.HTTPConnection(*server.server_address[:2], timeout=60)) as connection:  # pyright: ignore[reportArgumentType]
        connection.putrequest(method, path, skip_accept_encoding=True)
        for name, value in headers.items():
            connection.putheader(name.replace("_", "-"), value)
        if body is not None:
            connection.putheader("Content-Length", str(len(body)))
        connection.endheaders(body)
        return Answer(connection.getresponse())


# --- headers ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["/a.js", "/none", "/sub%20dir", "/sub%20dir/"])
def test_every_answer_isolates(server: Server, path: str) -> None:
    answer = get(server, path)
    assert {k: answer.headers[k] for k in HEADERS} == HEADERS
    assert answer.headers["Cross-Origin-Opener-Policy"] == "same-origin"
    assert answer.headers["Cross-Origin-Embedder-Policy"] == "require-corp"


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/a.js", "text/javascript; charset=utf-8"),
        ("/a.mjs", "text/javascript; charset=utf-8"),
        ("/a.json", "application/json"),
        ("/a.html", "text/html; charset=utf-8"),
        ("/big.wasm", "application/wasm"),
        ("/w.bin", "application/octet-stream"),
    ],
)
def test_types(server: Server, path: str, kind: str) -> None:
    assert get(server, path).headers["Content-Type"] == kind


def test_only_names_with_hashes_are_kept_for_good(server: Server) -> None:
    assert "immutable" in get(server, f"/{HASHED}").headers["Cache-Control"]
    for path in ("/a.html", "/a.json", "/a.js", "/w.bin"):
        assert get(server, path).headers["Cache-Control"] == "no-cache"


def test_head_is_get_without_the_body(server: Server) -> None:
    for path in ("/a.js", "/w.bin", "/none"):
        for extra in ({}, {"Accept_Encoding": "gzip"}):
            one, two = get(server, path, **extra), get(server, path, "HEAD", **extra)
            assert two.body == b""
            assert one.status == two.status
            one_headers, two_headers = dict(one.headers), dict(two.headers)
            del one_headers["Date"], two_headers["Date"]
            assert one_headers == two_headers


def test_other_methods_are_refused(server: Server) -> None:
    for method in ("POST", "PUT", "DELETE", "OPTIONS", "PATCH"):
        answer = get(server, "/a.js", method, b"GET /x HTTP/1.1\r\n\r\n")
        assert (answer.status, answer.headers["Allow"]) == (405, "GET, HEAD")
        assert answer.headers["Connection"] == "close"


# --- ranges -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("header", "start", "stop"), [("0-9", 0, 10), ("100-", 100, 10240), ("-16", 10224, 10240), ("10230-99999", 10230, 10240), ("-99999", 0, 10240)]
)  # fmt: skip
def test_one_range(server: Server, header: str, start: int, stop: int) -> None:
    answer = get(server, "/w.bin", Range=f"bytes={header}")
    assert (answer.status, answer.body) == (206, BYTES[start:stop])
    assert answer.headers["Content-Range"] == f"bytes {start}-{stop - 1}/10240"
    assert answer.headers["Content-Length"] == str(stop - start)


@pytest.mark.parametrize(
    ("path", "header"), [("/w.bin", "10240-"), ("/w.bin", "99999-100000"), ("/w.bin", "-0"), ("/empty.bin", "0-")]
)
def test_ranges_beyond_the_end(server: Server, path: str, header: str) -> None:
    answer = get(server, path, Range=f"bytes={header}")
    assert answer.status == 416
    assert answer.headers["Content-Range"] == f"bytes */{10240 if path == '/w.bin' else 0}"


@pytest.mark.parametrize("header", ["bytes=0-1,4-5", "bytes=5-2", "bytes=-", "bytes=a-b", "lines=1-2", "bytes=²-"])
def test_other_ranges_are_ignored(server: Server, header: str) -> None:
    answer = get(server, "/w.bin", Range=header.encode().decode("latin-1"))
    assert (answer.status, answer.body) == (200, BYTES)


def test_a_range_of_a_file_that_changed_is_all_of_it(server: Server) -> None:
    whole = get(server, "/w.bin")
    for state in (whole.headers["ETag"], whole.headers["Last-Modified"]):
        assert get(server, "/w.bin", Range="bytes=0-9", If_Range=state).status == 206
    for state in ('"other"', "Mon, 01 Jan 2001 00:00:00 GMT"):
        assert get(server, "/w.bin", Range="bytes=0-9", If_Range=state).status == 200


def test_a_range_is_never_compressed(server: Server) -> None:
    answer = get(server, "/a.js", Range="bytes=0-9", Accept_Encoding="gzip")
    assert (answer.status, answer.body, answer.headers["Content-Encoding"]) == (206, TEXT[:10], None)


def test_numbers_of_ranges_are_bounded() -> None:
    assert parse_range("bytes=0-" + "9" * 5000, 10) is None
    assert parse_range("bytes=0-" + "9" * 18, 10) == range(10)


# --- compression ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["/a.js", "/a.json", "/a.html", "/big.wasm"])
def test_text_is_compressed_for_who_accepts_it(server: Server, path: str) -> None:
    plain, small = get(server, path), get(server, path, Accept_Encoding="br, gzip;q=0.5")
    assert (plain.body, plain.headers["Content-Encoding"]) == (TEXT, None)
    assert small.headers["Content-Encoding"] == "gzip"
    assert gzip.decompress(small.body) == TEXT
    assert small.headers["Content-Length"] == str(len(small.body))
    assert plain.headers["Vary"] == small.headers["Vary"] == "Accept-Encoding"
    assert plain.headers["ETag"] != small.headers["ETag"]


@pytest.mark.parametrize("path", ["/w.bin", "/small.json"])
def test_what_does_not_pay_is_not_compressed(server: Server, path: str) -> None:
    assert get(server, path, Accept_Encoding="gzip").headers["Content-Encoding"] is None


def test_who_accepts_gzip() -> None:
    assert all(map(accepts_gzip, ["gzip", "GZIP", "*", "br, gzip", "gzip;q=0.1", "identity, *;q=0.5"]))
    assert not any(map(accepts_gzip, ["", "br", "gzip;q=0", "*, gzip;q=0.0", "gzip;q=x", "gzipped"]))


def test_compressed_files_are_kept_within_a_bound_and_made_again_after_a_change(tmp_path: Path) -> None:
    held, file = Gzipped(limit=300), tmp_path / "f"
    for k in range(5):
        file.write_bytes(os.urandom(100))
        with file.open("rb") as f:
            first = held.get(file, str(k), f)
        with file.open("rb") as f:
            assert held.get(file, str(k), f) is first
            assert f.tell() == 0
        assert gzip.decompress(first) == file.read_bytes()
        assert 0 < held.size <= 300
    file.write_bytes(os.urandom(400))
    with file.open("rb") as f:
        assert gzip.decompress(held.get(file, "large", f)) == file.read_bytes()
    assert held.size <= 300


# --- unchanged files --------------------------------------------------------------------------------------------------


def test_unchanged_files_are_not_sent_again(server: Server) -> None:
    for extra in ({}, {"Accept_Encoding": "gzip"}):
        first = get(server, "/a.js", **extra)
        tag, date = first.headers["ETag"], first.headers["Last-Modified"]
        for condition in (
            {"If_None_Match": tag}, {"If_None_Match": f'"x", W/{tag}'}, {"If_None_Match": "*"}, {"If_Modified_Since": date},
        ):  # fmt: skip
            answer = get(server, "/a.js", **extra, **condition)
            assert (answer.status, answer.body, answer.headers["ETag"]) == (304, b"", tag)
        for condition in (
            {"If_None_Match": '"x"'}, {"If_None_Match": '"x"', "If_Modified_Since": date},
            {"If_Modified_Since": "Mon, 01 Jan 2001 00:00:00 GMT"}, {"If_Modified_Since": "nonsense"},
        ):  # fmt: skip
            assert get(server, "/a.js", **extra, **condition).status == 200


def test_a_change_is_seen(tmp_path: Path) -> None:
    file = tmp_path / "f.txt"
    file.write_bytes(TEXT)
    with Server(tmp_path, port=0) as server:
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        tag = get(server, "/f.txt", Accept_Encoding="gzip").headers["ETag"]
        file.write_bytes(TEXT[::-1])
        os.utime(file, (1, 1))
        answer = get(server, "/f.txt", Accept_Encoding="gzip", If_None_Match=tag)
        assert (answer.status, gzip.decompress(answer.body)) == (200, TEXT[::-1])
        server.shutdown()


# --- paths ------------------------------------------------------------------------------------------------------------


def test_paths_that_name_files(server: Server) -> None:
    for path in ("/a.txt", "/a.txt?v=1", "/a%2Etxt", "/in.txt", "/a.txt#x"):
        assert get(server, path).body == TEXT
    assert get(server, "/gr%C3%B6%C3%9Fe.txt").body == b"umlaut"


def test_a_folder_without_a_page_is_a_list_of_what_is_served(server: Server) -> None:
    found = get(server, "/")
    text = found.body.decode()
    assert (found.status, found.headers["Content-Type"]) == (200, "text/html; charset=utf-8")
    names = re.findall(r'<a href="([^"]*)">', text)
    assert {"a.txt", "in.txt", "sub%20dir/", "bare/", "gr%C3%B6%C3%9Fe.txt"} <= set(names)
    assert not {"hidden.txt", "out.txt", "outdir/", ".git/", "loop", "pipe.txt", "../"} & set(names)
    for name in names:
        assert get(server, f"/{name}").status == 200, name
    assert '<a href="../">' in get(server, "/bare/").body.decode()
    assert get(server, "/", method="HEAD").body == b""


def test_names_in_a_list_are_text(tmp_path: Path) -> None:
    (tmp_path / "<b>&\"'.txt").write_text("x")
    page = listing(tmp_path, "/", partial(find_file, tmp_path)).decode()
    assert "&lt;b&gt;&amp;&quot;&#x27;.txt" in page
    assert "<b>" not in page
    assert f"<title>{tmp_path.name}/</title>" in page
    assert "<title>/deeper/</title>" in listing(tmp_path, "/deeper/", partial(find_file, tmp_path)).decode()


def test_a_folder_is_its_index(server: Server) -> None:
    assert get(server, "/sub%20dir/").body == b"<p>index"
    moved = get(server, "/sub%20dir?a=b")
    assert (moved.status, moved.headers["Location"]) == (301, "/sub%20dir/?a=b")
    assert get(server, "/a.txt/").status == 404


@pytest.mark.parametrize(
    "path",
    [
        "/../secret.txt", "/sub%20dir/../../secret.txt", "/%2e%2e/secret.txt", "/%2E%2E%2Fsecret.txt", "/..%2fsecret.txt",
        "/..%5csecret.txt", "/..\\secret.txt", "/sub%20dir/..%5c..%5csecret.txt", "/%252e%252e/secret.txt", "/%c0%ae%c0%ae/secret.txt",
        "/hidden.txt", "/hidden/config",
        "/out.txt", "/outdir/secret.txt", "/outdir", "/../site-other/secret.txt", "/.git/config", "/./a.txt", "/loop", "/pipe.txt",
        "/a.txt%00", "/%00", "/a.txt%00.js", "//secret.txt/..", "/sub%20dir//index.html", "/C:/windows", "/%2Fetc%2Fpasswd",
        "//etc/passwd", "/" + "a" * 5000, "/%ff", "secret.txt", "http://x/../secret.txt", "*",
    ],
)  # fmt: skip
def test_nothing_else_is_served(server: Server, path: str) -> None:
    answer = get(server, path)
    assert answer.status == (421 if path.startswith("http:") else 404)
    assert b"secret" not in answer.body


def test_what_a_path_finds(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("")
    assert find_file(tmp_path.resolve(), "/a") == tmp_path.resolve() / "a"
    assert find_file(tmp_path.resolve(), "/") == tmp_path.resolve()
    assert find_file(tmp_path.resolve(), f"/{tmp_path}/a") is None


def test_nonsense_is_answered_and_not_followed(server: Server) -> None:
    for request, wanted in ((b"\x16\x03\x01\r\n\r\n", b"400"), (b"GET / HTTP/9.9\r\n\r\n", b"505")):
        assert wanted in raw(server, request)
    body = b"GET /a.txt HTTP/1.1\r\n\r\n"
    assert get(server, "/small.json", body=body).headers["Connection"] == "close"


def raw(server: Server, request: bytes) -> bytes:
    """All that is answered to these bytes, until the connection is closed."""
    with socket.create_connection(server.server_address[:2], 10) as s:  # pyright: ignore[reportArgumentType]
        s.sendall(request)
        s.shutdown(socket.SHUT_WR)
        return s.makefile("rb").read()


INNER = b"GET /a.json HTTP/1.1\r\nHost: localhost\r\n\r\n"
"""What another program may take for the body of the request before it."""


@pytest.mark.parametrize(
    "headers",
    [
        b"Content-Length: 0\r\nContent-Length: 45", b"Content-Length: 45\r\nContent-Length: 45", b"Content-Length: 0, 45",
        b"Content-Length : 45", b"Content-Length: +45", b"Content-Length: ", b"Transfer-Encoding : chunked", b"Transfer-Encoding: chunked",
        b"Transfer-Encoding:\tchunked", b"X: y\r\n Content-Length: 45", b"X: y\rContent-Length: 45", b"X: y\nContent-Length: 45", b"X", b": 1",
    ],
)  # fmt: skip
def test_a_request_whose_end_is_in_doubt_is_refused_once(server: Server, headers: bytes) -> None:
    answers = raw(server, b"GET /a.txt HTTP/1.1\r\nHost: localhost\r\n" + headers + b"\r\n\r\n" + INNER)
    assert answers.startswith(b"HTTP/1.1 400 ")
    assert answers.count(b"HTTP/1.1 ") == 1
    assert b"Connection: close" in answers


def test_requests_that_follow_at_once_are_answered(server: Server) -> None:
    assert raw(server, INNER * 3).count(b"HTTP/1.1 200 OK") == 3


def test_other_hosts_are_refused(server: Server) -> None:
    """A page whose name was made to lead here must not read the files."""
    port = server.server_address[1]
    for host in (f"127.0.0.1:{port}", f"localhost:{port}", f"[::1]:{port}", "LocalHost", "a.localhost", "192.0.2.1"):
        assert raw(server, f"GET /a.txt HTTP/1.1\r\nHost: {host}\r\n\r\n".encode()).startswith(b"HTTP/1.1 200 ")
    for host in (
        f"evil.example:{port}",
        "localhost.evil.example",
        "127.0.0.1.evil.example",
        "127.0.0.1@evil.example",
        "evil",
    ):
        answer = raw(server, f"GET /a.txt HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
        assert answer.startswith(b"HTTP/1.1 421 ")
        assert server.address.encode() in answer
        assert TEXT[:20] not in answer
    for hosts in (b"", b"Host: localhost\r\nHost: evil.example\r\n"):
        assert raw(server, b"GET /a.txt HTTP/1.1\r\n" + hosts + b"\r\n").startswith(b"HTTP/1.1 400 ")


def test_a_slow_client_has_a_time_for_the_whole_request(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folder_server, "REQUEST_PATIENCE", 0.2)
    with socket.create_connection(server.server_address[:2], 10) as s:  # pyright: ignore[reportArgumentType]
        s.settimeout(0.03)
        for byte in INNER[:-1]:
            s.sendall(bytes([byte]))
            try:
                assert s.recv(1) == b""
                return  # it was closed
            except TimeoutError:
                pass
    raise AssertionError("the whole request was waited for")


def test_a_head_without_end_is_refused(server: Server) -> None:
    try:
        answer = raw(server, b"GET / HTTP/1.1\r\nX: " + b"a" * (1 << 20))
    except OSError:  # it was closed before all was sent
        return
    assert answer.startswith(b"HTTP/1.1 431 ")


@pytest.mark.parametrize(
    ("rest", "status"),
    [(b"", b"400"), (b"X: y", b"400"), (b"X: y\r\n", b"400"), ((b"X: " + b"a" * 900 + b"\r\n") * 80, b"431")],
)
def test_a_head_that_is_cut_off_or_too_long_is_answered_once(server: Server, rest: bytes, status: bytes) -> None:
    answers = raw(server, b"GET /a.txt HTTP/1.1\r\nHost: localhost\r\n" + rest)
    assert answers.startswith(b"HTTP/1.1 " + status)
    assert answers.count(b"HTTP/1.1 ") == 1
    assert b"Connection: close" in answers


def test_a_link_that_takes_the_place_of_a_found_file_is_not_followed(tmp_path: Path) -> None:
    folder = (tmp_path / "site").resolve()
    (folder / "sub").mkdir(parents=True)
    (tmp_path / "secret").mkdir()
    for name in ("site/sub", "secret"):
        (tmp_path / name / "f").write_text(name)
    found = find_file(folder, "/sub/f")
    assert found is not None
    file = open_within(folder, found)
    assert file is not None
    with file:
        assert file.read() == b"site/sub"
    found.unlink()
    found.symlink_to(tmp_path / "secret" / "f")
    assert open_within(folder, found) is None
    (folder / "sub").rename(folder / "away")
    (folder / "sub").symlink_to(tmp_path / "secret")
    assert open_within(folder, found) is None


def test_a_connection_serves_several_requests(server: Server) -> None:
    with closing(http.client.HTTPConnection(*server.server_address[:2], timeout=60)) as c:  # pyright: ignore[reportArgumentType]
        for path in ("/a.txt", "/none", "/w.bin", "/sub%20dir"):
            c.request("GET", path)
            first = c.sock
            c.getresponse().read()
            assert c.sock is first is not None


# --- the command ------------------------------------------------------------------------------------------------------


def test_a_port_that_is_taken(server: Server, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    port = str(server.server_address[1])
    assert cli.main(["serve", str(tmp_path), "--port", port]) == 2
    assert f"port {port} of 127.0.0.1 is taken: give another with --port" in capsys.readouterr().err


def test_what_cannot_be_served(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("")
    for folder in (tmp_path / "none", tmp_path / "f"):
        with pytest.raises(InputError, match="expected a folder"):
            Server(folder, port=0)
    with pytest.raises(InputError, match="expected a number from 0"):
        Server(tmp_path, port=1 << 16)
    with pytest.raises(InputError, match="give an address of this machine with --host"):
        Server(tmp_path, "192.0.2.1", 0)


def test_pages_in_folders_are_listed_where_there_is_no_other(tmp_path: Path) -> None:
    for name in ("one", "a b", ".hidden", "none"):
        (tmp_path / name).mkdir()
        if name != "none":
            (tmp_path / name / "index.html").write_text("")
    with Server(tmp_path, port=0) as server:
        assert server.pages() == [f"{server.address}a%20b/", f"{server.address}one/"]
        (tmp_path / "index.html").write_text("")
        assert server.pages() == []


@pytest.mark.slow
def test_the_command_serves_until_interrupted(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(TEXT)
    command = [sys.executable, "-m", "singe", "serve", str(tmp_path), "--port", "0"]
    # A shell that started the tests in the background has them, and what they start, ignore the signal.
    heard = signal.signal(signal.SIGINT, signal.default_int_handler)
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    signal.signal(signal.SIGINT, heard)
    with process:
        assert process.stdout is not None
        assert process.stderr is not None
        line = process.stdout.readline()
        match = re.search(r"http://127\.0\.0\.1:(\d+)/", line)
        assert match is not None
        with closing(http.client.HTTPConnection("127.0.0.1", int(match[1]), timeout=60)) as c:
            c.request("GET", "/a.txt")
            assert c.getresponse().read() == TEXT
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 0
        assert process.stderr.read() == ""
