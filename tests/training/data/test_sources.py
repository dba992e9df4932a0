"""Data sets in files: what is read, from where, and that damaged files are refused without being executed or believed."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import hashlib
import io
import os
import pickle
import struct
import tarfile
import threading
import tracemalloc
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from idx_files import idx_bytes

from singe import data
from singe.data.sources import cifar, idx, labelled
from singe.errors import FormatError, InputError
from singe.files import download

RNG = np.random.default_rng(0)
PICTURES = RNG.integers(0, 256, (7, 28, 28), np.uint8)
LABELS = RNG.integers(0, 10, 7, np.uint8)
SHARED = Path(__file__).parents[4] / "shared" / "data" / "mnist"


# --- IDX -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["u1", "i1", "i2", "i4", "f4", "f8"])
@pytest.mark.parametrize("shape", [(), (3,), (2, 0), (2, 3, 4)])
def test_idx_files_are_read_packed_or_not(dtype: str, shape: tuple[int, ...], tmp_path: Path) -> None:
    array = np.asarray(RNG.random(shape) * 100).astype(dtype)
    (tmp_path / "a").write_bytes(idx_bytes(array))
    (tmp_path / "a.gz").write_bytes(gzip.compress(idx_bytes(array)))
    for name in ("a", "a.gz"):
        found = data.read_idx(tmp_path / name)
        np.testing.assert_array_equal(found, array)
        assert (found.dtype, found.shape) == (array.dtype, shape)


@pytest.mark.parametrize(
    "wrong",
    [b"", b"\0\0", b"\0\0\x08", b"\0\0\x07\x01\0\0\0\0", b"abcd", b"\0\0\x08\x03\0\0", b"\0\0\x08\x01\0\0\0\x05abcd", b"\0\0\x08\x01\0\0\0\x02abc",
     b"\0\0\x0e\x02\xff\xff\xff\xff\xff\xff\xff\xff", b"\0\0\x08\xff" + b"\xff" * 1020, b"\0\0\x08\xff" + bytes(1020),
     b"\0\0\x08\x04\0\0\0\0" + b"\xff" * 12, b"\x1f\x8b", b"\x1f\x8b\x08\0garbage that is no stream",
     gzip.compress(idx_bytes(PICTURES), mtime=0)[:-300], gzip.compress(b"\0\0\x08\x02\x7f\xff\xff\xff\x7f\xff\xff\xff", mtime=0),
     gzip.compress(struct.pack(">HBBI", 0, 8, 1, 1 << 20), mtime=0)],
)  # fmt: skip
def test_damaged_idx_files_are_refused(wrong: bytes) -> None:
    with pytest.raises(FormatError, match="digits: "):
        idx.parse_idx(wrong, "digits")


# --- MNIST -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A small MNIST."""
    made = tmp_path / "mnist"
    made.mkdir()
    for part in ("train", "t10k"):
        for name, array in (("images-idx3", PICTURES), ("labels-idx1", LABELS)):
            (made / f"{part}-{name}-ubyte.gz").write_bytes(gzip.compress(idx_bytes(array), mtime=0))
    return made


@pytest.fixture
def site(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A server of that folder, whose hashes are known, and an empty cache."""

    class Handler(SimpleHTTPRequestHandler):
        def log_message(self, *args: object) -> None:
            pass

    hashes = {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(folder.iterdir(), reverse=True)
    }
    monkeypatch.setattr(data.MNIST, "SHA256", {k: hashes[k] for k in data.MNIST.SHA256})
    monkeypatch.setenv("SINGE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.setattr(download, "FIRST_PAUSE_SECONDS", 0.001)
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=str(folder)))
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def check(found: data.MNIST) -> None:
    np.testing.assert_array_equal(found.images, PICTURES[:, None])
    np.testing.assert_array_equal(found.labels, LABELS)
    picture, label = found[3]
    assert (picture.shape, picture.dtype, label.dtype) == ((1, 28, 28), np.uint8, np.int64)
    images, labels = found.batch([0, 5])
    assert (images.shape, labels.shape) == ((2, 1, 28, 28), (2,))


def test_mnist_is_read_from_a_folder_in_all_spellings(folder: Path) -> None:
    check(data.MNIST(folder))
    check(data.FashionMNIST(str(folder), train=False))
    for path in list(folder.iterdir()):
        (folder / path.name.replace("-idx", ".idx").removesuffix(".gz")).write_bytes(gzip.decompress(path.read_bytes()))
        path.unlink()
    check(data.MNIST(folder))
    with pytest.raises(
        InputError, match=r"expected a file train-images-idx3-ubyte or .*; there is no such folder; .*--data"
    ):
        data.MNIST(folder / "none")


def test_mnist_is_fetched_once_and_compared_with_its_hash(
    site: str, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(data.MNIST, "ADDRESSES", (f"{site}/none/", f"{site}/"))
    check(data.MNIST())
    (folder / "train-images-idx3-ubyte.gz").unlink()
    check(data.MNIST())  # from the cache
    check(data.MNIST(site + "/", train=False))
    check(asyncio.run(data.MNIST.load_async(site)))
    (folder / "t10k-images-idx3-ubyte.gz").write_bytes(gzip.compress(idx_bytes(PICTURES[::-1])))
    monkeypatch.setenv("SINGE_CACHE", str(tmp_path / "other"))
    with pytest.raises(InputError, match=r"(?s)sha256.*give the folder that holds"):
        data.MNIST(train=False)


def test_mnist_in_a_page_is_awaited(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    async def fetched(url: str) -> bytes:
        asked.append(url)
        if "storage" in url:
            raise InputError(f"cannot fetch {url}")
        return (folder / url.rpartition("/")[2].partition("#")[0]).read_bytes()

    monkeypatch.setattr(labelled, "IN_PAGE", True)
    monkeypatch.setattr(labelled, "fetched_bytes", fetched)
    check(asyncio.run(data.MNIST.load_async(train=False)))
    assert len(asked) == 3
    assert all("#sha256=" in url for url in asked)


@pytest.mark.parametrize(
    ("images", "labels"),
    [(PICTURES, LABELS[:6]), (PICTURES[0], LABELS), (PICTURES, LABELS + 10), (PICTURES.astype("f4"), LABELS), (PICTURES, LABELS[:, None])],
)  # fmt: skip
def test_files_that_are_no_mnist_are_refused(images: np.ndarray, labels: np.ndarray, tmp_path: Path) -> None:
    (tmp_path / "train-images-idx3-ubyte").write_bytes(idx_bytes(images))
    (tmp_path / "train-labels-idx1-ubyte").write_bytes(idx_bytes(labels))
    with pytest.raises(FormatError, match="train-images"):
        data.MNIST(tmp_path)


@pytest.mark.slow
def test_the_whole_mnist_is_read() -> None:
    if not SHARED.is_dir():
        pytest.skip(f"no MNIST in {SHARED}")
    train, test = data.MNIST(SHARED), data.MNIST(SHARED, train=False)
    assert (len(train), len(test)) == (60_000, 10_000)
    assert np.bincount(test.labels).tolist() == [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009]
    assert (train.images.mean() / 255, train.images.std() / 255) == pytest.approx((0.1307, 0.3081), abs=1e-4)


# --- CIFAR -----------------------------------------------------------------------------------------------------------

COUNT = 4
PIXELS = RNG.integers(0, 256, (5, COUNT, 3072), np.uint8)
FINE, COARSE = RNG.integers(0, 10, (5, COUNT)), RNG.integers(0, 20, (5, COUNT))


def old_pickle(pixels: np.ndarray, **labels: np.ndarray) -> bytes:
    """As Python 2 wrote it."""
    text = lambda s: b"U" + bytes([len(s)]) + s.encode()
    ints = lambda values: b"](" + b"".join(b"K" + bytes([int(v)]) for v in values) + b"e"
    shape = b"M" + struct.pack("<H", len(pixels)) + b"M\x00\x0c\x86"
    dtype = b"cnumpy\ndtype\nU\x02u1K\x00K\x01\x87R(K\x03U\x01|NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb"
    raw = b"T" + struct.pack("<I", pixels.nbytes) + pixels.tobytes()
    array = (
        b"cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\x00\x85U\x01b\x87R(K\x01"
        + shape
        + dtype
        + b"\x89"
        + raw
        + b"tb"
    )
    parts = [text("batch_label") + text("batch 1 of 5"), text("data") + array]
    parts += [text(k) + ints(v) for k, v in labels.items()] + [text("filenames") + b"](" + text("a.png") + b"e"]
    return b"\x80\x02}(" + b"".join(parts) + b"u."


def records(pixels: np.ndarray, *labels: np.ndarray) -> bytes:
    return np.concatenate([*(x[:, None].astype(np.uint8) for x in labels), pixels], axis=1).tobytes()


def new_pickle(pixels: np.ndarray, **labels: np.ndarray) -> bytes:
    return pickle.dumps({"data": pixels} | {k: [int(x) for x in v] for k, v in labels.items()}, protocol=2)


def test_the_old_pickle_is_one() -> None:
    made = pickle.loads(old_pickle(PIXELS[0], labels=FINE[0]), encoding="latin1")
    np.testing.assert_array_equal(made["data"], PIXELS[0])


def archive(files: dict[str, bytes], folder: str = "cifar-10-batches-bin/") -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w:gz") as tar:
        for name, content in files.items():
            info = tarfile.TarInfo(folder + name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return made.getvalue()


CIFAR10_FILES = {
    "binary": {f"data_batch_{i + 1}.bin": records(PIXELS[i], FINE[i]) for i in range(5)},
    "python 2": {f"data_batch_{i + 1}": old_pickle(PIXELS[i], labels=FINE[i]) for i in range(5)},
    "python 3": {f"data_batch_{i + 1}": new_pickle(PIXELS[i], labels=FINE[i]) for i in range(5)},
}


@pytest.mark.parametrize("version", CIFAR10_FILES)
def test_cifar_is_read_from_archives_and_folders(version: str, tmp_path: Path) -> None:
    files = CIFAR10_FILES[version]
    (tmp_path / "a.tar.gz").write_bytes(archive(files | {"readme.html": b"hello"}))
    inner = tmp_path / "folder" / "cifar-10-batches"
    inner.mkdir(parents=True)
    for name, content in files.items():
        (inner / name).write_bytes(content)
    for source in (tmp_path / "a.tar.gz", tmp_path / "folder", inner):
        found = data.CIFAR10(source)
        np.testing.assert_array_equal(found.images, PIXELS.reshape(-1, 3, 32, 32))
        np.testing.assert_array_equal(found.labels, FINE.reshape(-1))
    with pytest.raises(InputError, match=r"expected a file test_batch\.bin or test_batch"):
        data.CIFAR10(inner, train=False)


def test_a_pickle_that_asks_for_its_bytes_again_and_again_takes_little_memory() -> None:
    text = pickle.dumps("x" * 1_000_000, 2)[2:-1]
    call = b"c_codecs\nencode\n(h\x00X\x06\0\0\0latin1tR"
    tracemalloc.start()
    with pytest.raises(FormatError, match="expected a dict"):
        cifar.read_pickle(b"](" + text + call * 1000 + b"e.", "a", "labels")
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 10_000_000


def test_cifar100_has_fine_and_coarse_labels(tmp_path: Path) -> None:
    (tmp_path / "train.bin").write_bytes(records(PIXELS[0], COARSE[0], FINE[0]))
    (tmp_path / "test").write_bytes(old_pickle(PIXELS[1], fine_labels=FINE[1], coarse_labels=COARSE[1]))
    for i, train in ((0, True), (1, False)):
        fine, coarse = data.CIFAR100(tmp_path, train=train), data.CIFAR100(tmp_path, train=train, coarse=True)
        np.testing.assert_array_equal(fine.labels, FINE[i])
        np.testing.assert_array_equal(coarse.labels, COARSE[i])
        assert (len(fine.classes), len(coarse.classes)) == (100, 20)


class Evil:
    def __reduce__(self) -> Any:
        return os.mkdir, ("/tmp/this-was-executed",)


@pytest.mark.parametrize(
    "content",
    [b"", b"\x80\x02}.", pickle.dumps({"data": Evil(), "labels": []}, protocol=2), pickle.dumps({"data": [1], "labels": [2]}, protocol=2),
     pickle.dumps({"data": PIXELS[0], "labels": ["x"] * COUNT}, protocol=2), pickle.dumps({"data": PIXELS[0], "labels": [1]}, protocol=2),
     pickle.dumps({"data": PIXELS[0].astype("f4"), "labels": [1] * COUNT}, protocol=2),
     pickle.dumps({"data": PIXELS[0][:, :9], "labels": [1] * COUNT}, protocol=2),
     pickle.dumps({"data": PIXELS[0], "labels": [99] * COUNT}, protocol=2), old_pickle(PIXELS[0], labels=FINE[0])[:-900],
     pickle.dumps({"data": np.asfortranarray(PIXELS[0]), "labels": [1] * COUNT}, protocol=2), b"\x80\x02cnumpy\nndarray\nK\x00\x85R."],
)  # fmt: skip
def test_hostile_pickles_are_refused_and_not_executed(content: bytes, tmp_path: Path) -> None:
    for i in range(5):
        (tmp_path / f"data_batch_{i + 1}").write_bytes(content)
    with pytest.raises(FormatError):
        data.CIFAR10(tmp_path)
    assert not Path("/tmp/this-was-executed").exists()


def test_damaged_archives_and_records_are_refused(tmp_path: Path) -> None:
    whole = archive(CIFAR10_FILES["binary"])
    twice = io.BytesIO(gzip.decompress(whole)[:-10240] + gzip.decompress(whole))
    path = tmp_path / "a.tar.gz"
    for content in (b"", b"no archive", whole[: len(whole) // 2], gzip.compress(twice.getvalue()),
                    archive({f"data_batch_{i + 1}.bin": b"123" for i in range(5)}),
                    archive({str(i): b"" for i in range(cifar.MOST_MEMBERS + 1)})):  # fmt: skip
        path.write_bytes(content)
        with pytest.raises(FormatError, match=r"a\.tar\.gz"):
            data.CIFAR10(path)
    with pytest.raises(InputError, match="no-such"):
        data.CIFAR10(tmp_path / "no-such")


@pytest.mark.slow
def test_any_damage_is_a_format_error(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    path = tmp_path / "a.tar.gz"
    path.write_bytes(b"")
    packed = gzip.decompress(archive(CIFAR10_FILES["binary"]))
    cases = [
        (idx_bytes(PICTURES[:, :3, :3]), 16, lambda b: idx.parse_idx(b, "a")),
        (gzip.compress(idx_bytes(PICTURES)), 400, lambda b: idx.parse_idx(b, "a")),
        (old_pickle(PIXELS[0], labels=FINE[0]), 250, lambda b: cifar.read_pickle(b, "a", "labels")),
        (new_pickle(PIXELS[0], labels=FINE[0]), 250, lambda b: cifar.read_pickle(b, "a", "labels")),
        (packed, 600, lambda b: (path.write_bytes(gzip.compress(b, 1)), data.CIFAR10(path))),
    ]
    for whole, head, read in cases:
        for _ in range(300):
            damaged = bytearray(whole)
            for at in rng.integers(0, head, rng.integers(1, 4)):
                damaged[at] = rng.integers(256)
            with contextlib.suppress(FormatError, InputError):
                read(bytes(damaged[: rng.integers(1, len(whole))] if rng.random() < 0.2 else damaged))


def test_an_archive_that_expands_without_end_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cifar, "MOST", 1 << 20)
    path = tmp_path / "a.tar.gz"
    for kind in (tarfile.REGTYPE, tarfile.GNUTYPE_LONGNAME, tarfile.XHDTYPE):
        header = tarfile.TarInfo("data_batch_1.bin")
        header.size, header.type = 1 << 30, kind
        path.write_bytes(gzip.compress(header.tobuf() + bytes(1 << 24)))
        with pytest.raises(FormatError, match="more than 1048576 bytes"):
            data.CIFAR10(path)


# --- folders ---------------------------------------------------------------------------------------------------------


def test_pictures_in_folders_have_the_label_of_their_folder(tmp_path: Path) -> None:
    image = pytest.importorskip("PIL.Image")
    for place, color in (("dog/1.png", (255, 0, 0)), ("cat/b/2.PNG", (0, 255, 0)), ("cat/1.jpg", (0, 0, 255))):
        (tmp_path / place).parent.mkdir(parents=True, exist_ok=True)
        image.new("RGB", (6, 4), color).save(tmp_path / place)
    (tmp_path / "cat" / "notes.txt").write_text("no picture")
    (tmp_path / ".hidden").mkdir()
    found = data.ImageFolder(tmp_path, (2, 2))
    assert found.classes == ("cat", "dog")
    assert [p.name for p in found.paths] == ["1.jpg", "2.PNG", "1.png"]
    np.testing.assert_array_equal(found.column(1), [0, 0, 1])
    pixels, label = found[2]
    assert (pixels.shape, pixels.dtype, pixels[:, 0, 0].tolist(), label) == ((3, 2, 2), np.uint8, [255, 0, 0], 1)
    images, labels = next(iter(data.Loader(found, 3, workers=2)))
    assert images.shape == (3, 3, 2, 2)
    assert labels.tolist() == [0, 0, 1]
    assert data.ImageFolder(tmp_path, channels=1)[0][0].shape == (1, 4, 6)
    (tmp_path / "dog" / "0.png").write_bytes(b"no picture")
    with pytest.raises(InputError, match="cannot be read as a picture") as error:
        list(data.Loader(data.ImageFolder(tmp_path, (2, 2)), 2, workers=2))
    assert any("item 2 of ImageFolder of 4 items" in note for note in error.value.__notes__)


def test_texts_in_folders_have_the_label_of_their_folder(tmp_path: Path) -> None:
    for place, text in (("pos/1.txt", "good"), ("neg/1.txt", "bäd"), ("neg/2.md", "other")):
        (tmp_path / place).parent.mkdir(exist_ok=True)
        (tmp_path / place).write_text(text, "utf-8")
    assert list(data.TextFolder(tmp_path)) == [("bäd", 0), ("good", 1)]
    texts, labels = next(iter(data.Loader(data.TextFolder(tmp_path), 2)))
    assert texts == ["bäd", "good"]
    assert labels.tolist() == [0, 1]
    (tmp_path / "neg" / ".checkpoints").mkdir()
    (tmp_path / "neg" / ".checkpoints" / "3.txt").write_text("hidden")
    assert len(data.TextFolder(tmp_path, suffix=".txt")) == 2
    (tmp_path / "pos" / "2.txt").write_bytes(b"ab\xff")
    with pytest.raises(FormatError, match=r"2\.txt, byte 2: not UTF-8"):
        list(data.TextFolder(tmp_path))
    with pytest.raises(InputError, match=r"no files \*\.md in it"):
        data.TextFolder(tmp_path, suffix=".md")


def test_folders_without_classes_are_refused(tmp_path: Path) -> None:
    for make in (data.ImageFolder, data.TextFolder):
        with pytest.raises(InputError, match="a subfolder for each class"):
            make(tmp_path)
        with pytest.raises(InputError, match="cannot be read"):
            make(tmp_path / "none")
    with pytest.raises(InputError, match="channels=2"):
        data.ImageFolder(tmp_path, channels=2)
