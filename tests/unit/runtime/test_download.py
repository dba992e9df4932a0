"""Files at URLs: fetched once, resumed, compared with their hash; from a server on this machine."""

from __future__ import annotations

import contextlib
import hashlib
import http.client
import io
import json
import threading
import urllib.error
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path, PurePosixPath
from urllib.parse import quote, urlsplit

import numpy as np
import onnx
import pytest
from onnx import TensorProto, external_data_helper, helper, numpy_helper

import singe as sg
from singe import nn
from singe.files import download
from singe.files.download import address_of
from singe.files.places import local_file

DATA = np.random.default_rng(0).bytes(600_000)


@dataclass
class Site:
    """What the server has, how it behaves, and what it was asked."""

    files: dict[str, bytes] = field(default_factory=dict)
    asked: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    redirects: dict[str, str] = field(default_factory=dict)
    linked: dict[str, str] = field(default_factory=dict)
    """Headers of redirects; `linked_of` has those of single paths."""
    linked_of: dict[str, dict[str, str]] = field(default_factory=dict)
    breaks: int = 0
    """How many answers end in their middle."""
    fails: list[int] = field(default_factory=list)
    """Status codes of the next answers."""
    ranges: bool = True
    validates: bool = True
    """Whether If-Range is heeded."""
    headers: dict[str, dict[str, str]] = field(default_factory=dict)
    """More headers of a path's answers."""
    etags: bool = True
    url: str = ""

    def ranges_asked(self) -> list[str | None]:
        return [headers.get("Range") for _, headers in self.asked]


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    site = Site()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            site.asked.append((self.path, dict(self.headers)))
            path = self.path.partition("?")[0]
            if site.fails:
                return self.answer(site.fails.pop(0))
            if path in site.redirects:
                linked = {k: v for k, v in site.linked_of.get(path, site.linked).items() if v}
                return self.answer(302, Location=site.redirects[path], **linked)
            if path not in site.files:
                return self.answer(404)
            data = site.files[path]
            etag = f'"{hashlib.md5(data).hexdigest()}"' if site.etags else None
            headers: dict[str, str] = {**({"ETag": etag} if etag else {}), **site.headers.get(path, {})}
            if etag and self.headers.get("If-None-Match") == etag:
                return self.answer(304, **headers)
            start = self.headers.get("Range", "")
            if start and site.ranges and (not site.validates or self.headers.get("If-Range") == etag):
                at = int(start.removeprefix("bytes=").removesuffix("-"))
                if at >= len(data):
                    return self.answer(416)
                headers["Content-Range"] = f"bytes {at}-{len(data) - 1}/{len(data)}"
                return self.answer(206, data[at:], **headers)
            return self.answer(200, data, **headers)

        def answer(self, code: int, data: bytes = b"", **headers: str) -> None:
            self.send_response(code)
            for name, value in headers.items():
                self.send_header(name.replace("_", "-"), value)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            with contextlib.suppress(ConnectionError):
                if data and site.breaks:
                    site.breaks -= 1
                    self.wfile.write(data[: 2 * len(data) // 3])
                    self.close_connection = True
                else:
                    self.wfile.write(data)

        def log_message(self, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    site.url = f"http://127.0.0.1:{server.server_port}"
    monkeypatch.setenv("SINGE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("HF_ENDPOINT", site.url)
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.delenv("HF_TOKEN", raising=False)
    monkeypatch.setattr(download, "FIRST_PAUSE_SECONDS", 0.001)
    yield site
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_file_is_fetched_once(site: Site) -> None:
    site.files["/a/model.onnx"] = DATA
    first = local_file(f"{site.url}/a/model.onnx")
    assert (first.name, first.read_bytes()) == ("model.onnx", DATA)
    assert local_file(f"{site.url}/a/model.onnx") == first
    assert "If-None-Match" in site.asked[1][1]
    site.files["/a/model.onnx"] = DATA[::-1]
    assert local_file(f"{site.url}/a/model.onnx").read_bytes() == DATA[::-1]
    assert [p.name for p in first.parent.iterdir()] == ["model.onnx"]
    assert {p.suffix for p in (download.cache_folder() / "notes").iterdir()} == {".etag", ".lock"}


def test_files_of_one_name_are_kept_apart(site: Site) -> None:
    site.files |= {"/a/x": b"1", "/b/x": b"2"}
    assert [local_file(f"{site.url}/{k}/x").read_bytes() for k in "ab"] == [b"1", b"2"]
    assert [local_file(f"{site.url}/{k}/x").read_bytes() for k in "ab"] == [b"1", b"2"]


@pytest.mark.parametrize(
    "names", [("a;b", "a;c"), ("x?v=1", "x?v=2"), ("?a", "?b"), ("%00", "%01"), ("é" * 150, "é" * 151)]
)
def test_urls_whose_names_are_no_file_names_are_kept_apart(names: tuple[str, str], site: Site) -> None:
    """Each has its own file, also when the server cannot be reached."""
    urls = [f"{site.url}/a/{name}" for name in names]
    for url, data in zip(urls, (b"1", b"2"), strict=True):
        site.files = {urlsplit(address_of(url)[0]).path: data}
        assert local_file(url).read_bytes() == data
    site.fails = [503] * 2 * download.ATTEMPTS
    assert [local_file(url).read_bytes() for url in urls] == [b"1", b"2"]


def test_files_beside_a_file_may_have_any_names(site: Site) -> None:
    """Also those of notes, and of the file itself."""
    own = f"{site.url}/a/x%3B"
    names = ("x;", "x;.etag", "x;.lock", "x;.part", "file", "d/y", "./z")
    site.files = {f"/a/{quote(str(PurePosixPath(name)))}": name.encode() for name in names}
    for _ in range(2):
        assert local_file(own).read_bytes() == b"x;"
        for name in names:
            assert local_file(own, beside=name).read_bytes() == name.encode()
    asked = len(site.asked)
    for name in ("../x", "..\\x", "/x", "C:x", "", ".", "./", "a\0", "\ud800", "\udc80"):
        with pytest.raises(sg.FormatError, match="not a path inside the folder"):
            local_file(own, beside=name)
    assert len(site.asked) == asked


def test_a_broken_transfer_is_resumed(site: Site) -> None:
    site.files["/x"] = DATA
    site.breaks = 2
    assert local_file(f"{site.url}/x").read_bytes() == DATA
    assert site.ranges_asked() == [None, "bytes=400000-", "bytes=533333-"]


def test_a_later_run_resumes(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    site.files["/x"] = DATA
    site.breaks = 1
    monkeypatch.setattr(download, "ATTEMPTS", 1)
    with pytest.raises(sg.InputError, match=r"the connection ended after 400000 of 600000 bytes; 1 attempts"):
        local_file(f"{site.url}/x")
    assert local_file(f"{site.url}/x").read_bytes() == DATA
    assert site.ranges_asked()[1] == "bytes=400000-"


@pytest.mark.parametrize("how", ["another file", "another file, and If-Range is not heeded", "no ranges", "no etag"])
def test_what_cannot_be_resumed_begins_anew(how: str, site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    site.files["/x"] = DATA
    site.breaks, site.etags = 1, how != "no etag"
    with monkeypatch.context() as once:
        once.setattr(download, "ATTEMPTS", 1)
        with pytest.raises(sg.InputError):
            local_file(f"{site.url}/x")
    site.ranges = how != "no ranges"
    site.validates = "not heeded" not in how
    if how.startswith("another file"):
        site.files["/x"] = DATA[::-1]
    assert local_file(f"{site.url}/x").read_bytes() == site.files["/x"]


def test_parts_of_different_files_are_not_joined(site: Site) -> None:
    """The hash shows that what was resumed is no file that there ever was; it is fetched anew."""
    site.files["/x"] = DATA[::-1]
    digest = hashlib.sha256(DATA).hexdigest()
    notes = download.cache_folder() / "notes"
    with pytest.raises(sg.InputError):
        local_file(f"{site.url}/x#sha256={digest}")
    site.files["/x"] = DATA
    (part,) = (path.with_suffix(".part") for path in notes.glob("*.etag"))
    part.write_bytes(DATA[::-1][:1000])
    part.with_suffix(".etag").write_text(json.dumps({"part": f'"{hashlib.md5(DATA).hexdigest()}"'}))
    assert local_file(f"{site.url}/x#sha256={digest}").read_bytes() == DATA
    assert site.ranges_asked() == [None, "bytes=1000-", None]


def test_no_link_leads_out_of_the_cache(site: Site, tmp_path: Path) -> None:
    site.files |= {"/x": b"new", "/y": b"new"}
    local = local_file(f"{site.url}/x")
    (notes,) = (path.with_suffix("") for path in (download.cache_folder() / "notes").glob("*.etag"))
    kept = tmp_path / "mine"
    for path in (local, *(notes.with_suffix(end) for end in (".part", ".etag", ".lock"))):
        kept.write_bytes(b"mine")
        path.unlink(missing_ok=True)
        path.symlink_to(kept)
        with pytest.raises(sg.InputError, match="a link leads out of the cache"):
            local_file(f"{site.url}/x")
        assert kept.read_bytes() == b"mine"
        path.unlink()
    (tmp_path / "elsewhere").mkdir()
    local.parent.rmdir()
    local.parent.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(sg.InputError, match="a link leads out of the cache"):
        local_file(f"{site.url}/x")
    assert not list((tmp_path / "elsewhere").iterdir())


def test_a_part_is_of_one_version(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """The server's file changes, and the new one is refused before a byte of it is written."""
    site.files["/x"] = DATA
    site.breaks = 1
    monkeypatch.setattr(download, "ATTEMPTS", 1)
    with pytest.raises(sg.InputError, match="the connection ended"):
        local_file(f"{site.url}/x")
    site.files["/x"] = DATA[::-1]
    with monkeypatch.context() as full:
        full.setattr(download, "FREE_DISK_BYTES", 1 << 60)
        with pytest.raises(sg.InputError, match="are free in"):
            local_file(f"{site.url}/x")
    assert local_file(f"{site.url}/x").read_bytes() == DATA[::-1]


def test_a_hash_in_the_url_is_checked(site: Site) -> None:
    site.files["/x"] = DATA
    digest = hashlib.sha256(DATA).hexdigest()
    assert local_file(f"{site.url}/x#sha256={digest}").read_bytes() == DATA
    local_file(f"{site.url}/x#sha256={digest}")
    assert len(site.asked) == 1, "a file of the right hash needs no request"
    site.files["/y"] = DATA[::-1]
    with pytest.raises(sg.InputError, match=rf"its sha256 is \w+, expected {digest}"):
        local_file(f"{site.url}/y#sha256={digest}")
    assert not list(download.cache_folder().rglob("*.part"))
    with pytest.raises(sg.InputError, match="64 hexadecimal digits"):
        local_file(f"{site.url}/x#sha256=12")


def test_a_hash_in_the_url_is_checked_of_a_file_that_is_there(site: Site) -> None:
    site.files["/x"] = DATA
    local_file(f"{site.url}/x")
    wanted = hashlib.sha256(DATA[::-1]).hexdigest()
    with pytest.raises(sg.InputError, match=rf"its sha256 is \w+, expected {wanted}"):
        local_file(f"{site.url}/x#sha256={wanted}")
    assert "If-None-Match" not in site.asked[1][1]
    site.files["/x"] = DATA[::-1]
    assert local_file(f"{site.url}/x#sha256={wanted}").read_bytes() == DATA[::-1]


def test_the_hub_s_files_and_their_hashes(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    path = "/owner/repo/resolve/main/onnx/model.bin"
    site.redirects[path] = "/blobs/1"
    site.files["/blobs/1"] = DATA
    site.linked = {"X_Linked_Etag": f'"{hashlib.sha256(DATA).hexdigest()}"'}
    monkeypatch.setenv("HF_TOKEN", "secret")
    assert local_file("hf://owner/repo/onnx/model.bin").read_bytes() == DATA
    assert [asked for asked, _ in site.asked] == [path, "/blobs/1"]
    assert site.asked[0][1]["Authorization"] == "Bearer secret"
    site.files["/blobs/1"] = DATA[:-1] + b"x"
    with pytest.raises(sg.InputError, match=r"hf://owner/repo/onnx/model.bin: its sha256 is"):
        local_file("hf://owner/repo/onnx/model.bin")
    assert address_of("hf://o/r@v1.0/a b.bin")[0] == f"{site.url}/o/r/resolve/v1.0/a%20b.bin"


def test_the_server_of_the_bytes_cannot_tell_their_hash(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_ENDPOINT", f"{site.url}/hub")
    forged = hashlib.sha256(b"forged").hexdigest()
    site.redirects |= {"/hub/o/r/resolve/main/x": "/cdn/1", "/cdn/1": "/cdn/2"}
    site.files["/cdn/2"] = b"forged"
    site.headers["/cdn/2"] = {"X_Linked_Etag": f'"{forged}"'}
    site.linked = {"X_Linked_Etag": f'"{hashlib.sha256(DATA).hexdigest()}"'}
    site.linked_of["/cdn/1"] = {"X_Linked_Etag": f'"{forged}"'}
    with pytest.raises(sg.InputError, match=f"its sha256 is {forged}, expected"):
        local_file("hf://o/r/x")
    site.files["/cdn/2"] = DATA
    assert local_file("hf://o/r/x").read_bytes() == DATA


def test_a_token_goes_to_the_hub_alone(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", "secret")
    monkeypatch.setenv("HF_ENDPOINT", f"{site.url}/hub")
    site.redirects["/hub/o/r/resolve/main/x"] = f"{site.url}/elsewhere"
    site.files["/elsewhere"] = b"1"
    assert local_file("hf://o/r/x").read_bytes() == b"1"
    assert [headers.get("Authorization") for _, headers in site.asked] == ["Bearer secret", None]


def test_what_was_fetched_serves_without_a_server(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    site.files["/o/r/resolve/main/x"] = b"1"
    local_file("hf://o/r/x")
    monkeypatch.setattr(download, "TIMEOUT_SECONDS", 0.2)
    monkeypatch.setattr(download, "_open", lambda *_: (_ for _ in ()).throw(urllib.error.URLError("no route")))
    assert local_file("hf://o/r/x").read_bytes() == b"1"
    with pytest.raises(sg.InputError, match="no route; 2 attempts"):
        local_file("hf://o/r/y")


def test_a_server_that_answers_and_then_cannot_be_reached(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = iter([http.client.BadStatusLine("")] * 3 + [urllib.error.URLError("no route")])

    def refuse(*_: object) -> None:
        raise next(asked)

    monkeypatch.setattr(download, "_open", refuse)
    with pytest.raises(sg.InputError, match="no route; 4 attempts"):
        local_file(f"{site.url}/z")


@pytest.mark.parametrize("code", [500, 503, 429])
def test_a_server_in_trouble_is_asked_again(code: int, site: Site) -> None:
    site.files["/x"] = b"1"
    site.fails = [code, code]
    assert local_file(f"{site.url}/x").read_bytes() == b"1"
    site.fails = [code] * download.ATTEMPTS
    assert local_file(f"{site.url}/x").read_bytes() == b"1", "what is there serves while the server does not answer"
    site.fails = [code] * download.ATTEMPTS
    with pytest.raises(sg.InputError, match=rf"the server answers {code} .*; 5 attempts"):
        local_file(f"{site.url}/y")


def test_errors_say_what_is_wrong(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    site.redirects["/file"] = "ftp://127.0.0.1/x"
    site.redirects["/loop"] = "/loop"
    refused = {
        f"{site.url}/none": "cannot fetch .*/none: the server answers 404",
        f"{site.url}/file": "the server redirects to ftp://",
        f"{site.url}/loop": "the server answers 302",
        "hf://owner/model.onnx": "expected hf://owner/repo/file",
        "hf://owner/repo/../x": "expected hf://owner/repo/file",
        "file:///etc/passwd": "got a URL of file",
        "https://": "expected https://",
    }
    for url, words in refused.items():
        with pytest.raises(sg.InputError, match=words):
            local_file(url)
    site.fails = [401]
    with pytest.raises(sg.InputError, match="is HF_TOKEN set"):
        local_file("hf://owner/repo/x")
    blocked = download.cache_folder().parent / "blocked"
    blocked.write_bytes(b"")
    monkeypatch.setenv("SINGE_CACHE", str(blocked))
    with pytest.raises(sg.InputError, match="SINGE_CACHE names another folder"):
        local_file(f"{site.url}/x")


@pytest.mark.parametrize(
    "url",
    ["http://[x", "http://[x]/m", "https://h:port/m", "https://h:99999/m", "http://a b/m", "http://a%20b/m", "http://user@h/m",
     "http://:80/m", "http://\udc80/m", "http://h/\ud800", "hf://o/r/\udc80", "http://h/m#sha256=12", "http://" + "ü" * 99 + "/m"],
)  # fmt: skip
def test_what_is_no_url_is_refused_before_any_request(url: str, site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(download, "_open", lambda *_: pytest.fail("a request"))
    with pytest.raises(sg.InputError):
        local_file(url)


def test_other_letters_and_spaces_in_urls_are_quoted(site: Site) -> None:
    site.files["/%C3%BC/a%20b%20c"] = b"1"
    assert local_file(f"{site.url}/ü/a b%20c?q=ü").read_bytes() == b"1"
    assert site.asked[0][0] == "/%C3%BC/a%20b%20c?q=%C3%BC"
    assert address_of("https://bücher.example:81/x")[0] == "https://xn--bcher-kva.example:81/x"
    assert address_of("http://[::1]:8000/x")[0] == "http://[::1]:8000/x"


def test_the_hub_s_address_may_be_empty_and_must_be_a_url(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "")
    assert address_of("hf://o/r/x")[0] == f"{download.HUB}/o/r/resolve/main/x"
    for hub in ("hub", "file:///etc", "http://[x"):
        monkeypatch.setenv("HF_ENDPOINT", hub)
        with pytest.raises(sg.InputError, match="HF_ENDPOINT is"):
            local_file("hf://o/r/x")


def test_redirects_to_no_url_and_tokens_that_are_none_are_errors(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    site.redirects = {"/a": "http://[x", "/b": "http://127.0.0.1:port/"}
    for path in site.redirects:
        with pytest.raises(sg.InputError, match="cannot fetch"):
            local_file(site.url + path)
    assert len(site.asked) == 2, "such an answer does not change"
    monkeypatch.setenv("HF_TOKEN", "secret\nsecret")
    with pytest.raises(sg.InputError, match="HF_TOKEN is set to what is no token") as caught:
        local_file("hf://o/r/x")
    assert "secret" not in str(caught.value)


def test_names_in_urls_do_not_leave_the_folder(site: Site) -> None:
    for name in ("%2e%2e%2fx", "%2fetc%2fx", "a%00b", "..", "%5c..%5cx"):
        site.files[f"/a/{name}"] = b"1"
        with contextlib.suppress(sg.InputError):
            found = local_file(f"{site.url}/a/{name}")
            assert found.parent.parent == download.cache_folder()


def test_progress_is_shown_on_a_terminal(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    site.files["/model.bin"] = DATA
    screen = Terminal()
    monkeypatch.setattr("sys.stderr", screen)
    local_file(f"{site.url}/model.bin")
    assert screen.getvalue().endswith("\rmodel.bin: 600.0 kB of 600.0 kB, 100%\x1b[K\n")


def test_threads_that_want_one_file_fetch_it_once(site: Site) -> None:
    site.files["/x"] = DATA
    found: list[bytes] = []
    threads = [
        threading.Thread(target=lambda: found.append(local_file(f"{site.url}/x").read_bytes())) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [DATA] * 4
    assert sum("If-None-Match" not in headers for _, headers in site.asked) == 1


# --- what is loaded ---------------------------------------------------------------------------------------------------


def test_a_model_is_loaded_with_the_files_it_refers_to(site: Site, tmp_path: Path) -> None:
    w = np.arange(6, dtype=np.float32).reshape(2, 3)
    tensor = numpy_helper.from_array(w, "w")
    external_data_helper.set_external_data(tensor, "data/weights.bin", 0, w.nbytes)
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    value = lambda name, shape: helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
    graph = helper.make_graph([helper.make_node("MatMul", ["x", "w"], ["y"])], "g", [value("x", [1, 2])], [value("y", [1, 3])], [tensor])  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    site.files["/o/r/resolve/main/net.onnx"] = model.SerializeToString()
    site.files["/o/r/resolve/main/data/weights.bin"] = w.tobytes()
    found = sg.load("hf://o/r/net.onnx", device="numpy")
    assert found.name == "net"
    np.testing.assert_array_equal(found(np.ones((1, 2), np.float32)), w.sum(0, keepdims=True))
    assert onnx.ModelProto.FromString(site.files["/o/r/resolve/main/net.onnx"]).graph.name == "g"


def test_weights_and_records_are_loaded_from_urls(site: Site, tmp_path: Path) -> None:
    net = nn.Sequential(nn.Linear(4, 4, rng=0), nn.Linear(4, 4, rng=1))
    sg.save(net, tmp_path / "w.safetensors", shard_bytes=100)
    for path in tmp_path.glob("w*"):
        site.files[f"/a/{path.name}"] = path.read_bytes()
    loaded = sg.load_weights(nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4)), f"{site.url}/a/w.safetensors.index.json")
    np.testing.assert_array_equal(loaded[1].state_dict()["weight"].numpy(), net[1].state_dict()["weight"].numpy())
    sg.save(sg.Model.of(net, {"x": (1, 4)}, device="numpy"), tmp_path / "m.singe")
    site.files["/a/m.singe"] = (tmp_path / "m.singe").read_bytes()
    x = np.ones((1, 4), np.float32)
    np.testing.assert_allclose(
        sg.load(f"{site.url}/a/m.singe", device="numpy")(x), net(sg.tensor(x)).numpy(), rtol=1e-6
    )


def test_a_table_at_a_url_is_fetched_once_and_compared_with_its_hash(site: Site) -> None:
    site.files["/houses.csv"] = b"rooms,price\n3,200\n4,300\n"
    digest = hashlib.sha256(site.files["/houses.csv"]).hexdigest()
    for _ in range(2):
        assert sg.data.CSV(f"{site.url}/houses.csv#sha256={digest}")[1] == {"rooms": 4, "price": 300}
    assert len(site.asked) == 1
    with pytest.raises(sg.InputError, match="sha256"):
        sg.data.CSV(f"{site.url}/houses.csv#sha256={'0' * 64}")
