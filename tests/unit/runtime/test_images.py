"""Pictures to tensors: every mode, orientation and option of a PictureSpec, and refused files."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from singe.errors import InputError
from singe.files.pictures import MAX_PIXELS
from singe.shapes import size
from singe.tasks.picture.spec import PictureSpec, layout_of, picture_for, read_picture

Image = pytest.importorskip("PIL.Image", reason="Pillow is not here")
PLAIN = {"mean": (0.0,), "std": (1.0,)}


def saved(tmp_path: Path, pixels: np.ndarray, name: str = "p.png", **options: object) -> Path:
    Image.fromarray(pixels).save(tmp_path / name, **options)
    return tmp_path / name


def quarters() -> np.ndarray:
    """A picture of 8 by 4 whose quarters have four colours."""
    pixels = np.zeros((4, 8, 3), np.uint8)
    pixels[:2, :4], pixels[:2, 4:], pixels[2:, :4], pixels[2:, 4:] = (
        (250, 0, 0),
        (0, 250, 0),
        (0, 0, 250),
        (250, 250, 0),
    )
    return pixels


def test_pixels_come_as_they_are(tmp_path: Path) -> None:
    x = read_picture(saved(tmp_path, quarters()), PictureSpec((4, 8), 3, **PLAIN))
    assert (x.shape, x.dtype, x.flags.c_contiguous) == ((1, 3, 4, 8), np.float32, True)
    np.testing.assert_array_equal(x[0].transpose(1, 2, 0), quarters())


def test_layout_nhwc(tmp_path: Path) -> None:
    x = read_picture(saved(tmp_path, quarters()), PictureSpec((4, 8), 3, layout="nhwc", **PLAIN))
    np.testing.assert_array_equal(x[0], quarters())


@pytest.mark.parametrize(("mean", "std"), [((127.0,), (128.0,)), ((1.0, 2.0, 3.0), (4.0, 5.0, 6.0))])
def test_mean_and_std(tmp_path: Path, mean: tuple[float, ...], std: tuple[float, ...]) -> None:
    x = read_picture(saved(tmp_path, quarters()), PictureSpec((4, 8), 3, mean=mean, std=std, layout="nhwc"))
    np.testing.assert_allclose(x[0], (quarters().astype(np.float64) - mean) / std, rtol=1e-6)


def test_the_centre_is_used(tmp_path: Path) -> None:
    """Of 12 by 8, crop 0.5 to a square takes the 4 by 4 in the middle."""
    pixels = np.zeros((8, 12), np.uint8)
    pixels[2:6, 4:8] = np.arange(16).reshape(4, 4)
    x = read_picture(saved(tmp_path, pixels), PictureSpec((4, 4), 1, crop=0.5, **PLAIN))
    np.testing.assert_array_equal(x[0, 0], np.arange(16).reshape(4, 4))


def test_the_shorter_side_decides(tmp_path: Path) -> None:
    """Resizing the shorter side to size / crop and cutting the centre out, to within what rounding the sides does."""
    pixels = np.random.default_rng(0).integers(0, 256, (6, 9, 3), np.uint8).repeat(20, 0).repeat(20, 1)
    x = read_picture(saved(tmp_path, pixels), PictureSpec((28, 28), 3, crop=0.875, layout="nhwc", **PLAIN))
    whole = np.asarray(Image.fromarray(pixels).resize((48, 32), Image.Resampling.BICUBIC), np.float32)
    assert np.abs(x[0] - whole[2:30, 10:38]).max() <= 1


HELD = {
    1: None,
    2: "FLIP_LEFT_RIGHT",
    3: "ROTATE_180",
    4: "FLIP_TOP_BOTTOM",
    5: "TRANSPOSE",
    6: "ROTATE_90",
    7: "TRANSVERSE",
    8: "ROTATE_270",
}
"""An EXIF orientation ↦ how the stored picture is made from an upright one."""


@pytest.mark.parametrize("turn", HELD)
def test_exif_orientation(tmp_path: Path, turn: int) -> None:
    """The picture stands upright, whichever way the camera was held."""
    method = HELD[turn]
    held = Image.fromarray(quarters())
    if method is not None:
        held = held.transpose(Image.Transpose[method])
    exif = Image.Exif()
    exif[0x0112] = turn
    held.save(tmp_path / "held.png", exif=exif)
    x = read_picture(tmp_path / "held.png", PictureSpec((4, 8), 3, layout="nhwc", **PLAIN))
    np.testing.assert_array_equal(x[0], quarters())


MODES = {
    "1": 255, "L": 100, "P": 102, "RGB": 100, "CMYK": 100, "YCbCr": 100,
    "RGBA": 255 * (1 - 0x40 / 255) + 100 * (0x40 / 255), "LA": 255 * (1 - 0x40 / 255) + 100 * (0x40 / 255), "I;16": 100,
}  # fmt: skip
"""A mode ↦ the grey in the tensor of a picture of grey 100. The palette has 102; a pixel that is three quarters
transparent is blended with white."""


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("mode", MODES)
def test_modes(tmp_path: Path, mode: str, channels: int) -> None:
    grey = Image.new("RGBA", (4, 4), (100, 100, 100, 0x40))
    if mode == "I;16":
        picture = Image.fromarray(np.full((4, 4), 100 * 257, np.uint16))
    elif mode == "1":
        picture = Image.new("1", (4, 4), 1)
    else:
        picture = grey.convert(mode) if "A" in mode else grey.convert("RGB").convert(mode)
    path = tmp_path / ("p.tiff" if mode in ("CMYK", "YCbCr") else "p.png")
    picture.save(path)
    x = read_picture(path, PictureSpec((4, 4), channels, **PLAIN))
    assert x.shape == (1, channels, 4, 4)
    np.testing.assert_allclose(x, MODES[mode], atol=1.5)


def test_a_transparent_palette(tmp_path: Path) -> None:
    picture = Image.new("P", (4, 4), 0)
    picture.putpalette([10, 20, 30])
    picture.save(tmp_path / "p.png", transparency=0)
    np.testing.assert_array_equal(
        read_picture(tmp_path / "p.png", PictureSpec((4, 4), 3, **PLAIN)), np.full((1, 3, 4, 4), 255, np.float32)
    )


# --- specs ----------------------------------------------------------------------------------------------------------


def test_a_spec_is_read_off_the_input() -> None:
    n = size("N")
    assert (layout_of((n, 3, 32, 32)), layout_of((n, 32, 32, 3))) == ("nchw", "nhwc")
    assert picture_for((n, 1, 28, 24)) == PictureSpec((28, 24), 1)
    assert picture_for((n, 28, 24, 3)).layout == "nhwc"
    assert picture_for((n, 3, size("H"), size("W")), size=(5, 6)).size == (5, 6)


@pytest.mark.parametrize(
    ("shape", "options", "message"),
    [
        ((1, 3, size("H"), 32), {}, "leaves H open: give --size"),
        ((1, 10), {}, "is not nchw"),
        ((1, 4, 8, 8), {}, "channels 4"),
        ((1, 3, 8, 8), {"crop": 0.0}, "crop 0.0"),
        ((1, 3, 8, 8), {"crop": float("nan")}, "crop nan"),
        ((1, 3, 8, 8), {"std": (0.0,)}, "other than 0"),
        ((1, 3, 8, 8), {"mean": (1.0, 2.0)}, "expected 1 or 3 numbers"),
        ((1, 3, 8, 8), {"mean": (float("inf"),)}, "finite"),
        ((1, 3, 8, 8), {"size": (0, 8)}, "two numbers from 1"),
        ((1, 3, 8, 8), {"size": (1 << 20, 8)}, "two numbers from 1"),
    ],
)
def test_what_a_spec_refuses(shape: tuple[int, ...], options: dict[str, tuple[int, int]], message: str) -> None:
    with pytest.raises(InputError, match=message):
        picture_for(shape, **options)  # pyright: ignore[reportArgumentType]


# --- files ------------------------------------------------------------------------------------------------------------


def test_a_bomb_is_refused_before_it_is_decoded(tmp_path: Path) -> None:
    side = int(MAX_PIXELS**0.5) + 1
    Image.new("1", (side, side)).save(tmp_path / "bomb.png")
    assert (tmp_path / "bomb.png").stat().st_size < 50_000
    with pytest.raises(InputError, match="more than the"):
        read_picture(tmp_path / "bomb.png", PictureSpec((8, 8)))


def test_a_long_picture_takes_no_more_than_it_has(tmp_path: Path) -> None:
    Image.new("L", (60_000, 1), 7).save(tmp_path / "long.png")
    np.testing.assert_array_equal(
        read_picture(tmp_path / "long.png", PictureSpec((64, 64), 1, **PLAIN)), np.full((1, 1, 64, 64), 7, np.float32)
    )


@pytest.mark.parametrize("name", ["p.png", "p.jpg", "p.gif", "p.webp", "p.bmp", "p.tiff"])
def test_damaged_files(tmp_path: Path, name: str) -> None:
    """Any flip or cut gives a picture or an InputError."""
    data = saved(tmp_path, np.random.default_rng(0).integers(0, 256, (16, 16, 3), np.uint8), name).read_bytes()
    rng = np.random.default_rng(1)
    for _ in range(60):
        damaged = bytearray(data[: rng.integers(len(data)) if rng.integers(2) else None])
        for at in rng.integers(0, max(1, len(damaged)), 3):
            if damaged:
                damaged[at] ^= 1 << int(rng.integers(8))
        (tmp_path / name).write_bytes(damaged)
        try:
            shape = read_picture(tmp_path / name, PictureSpec((8, 8))).shape
        except InputError:
            continue
        assert shape == (1, 3, 8, 8)


def test_what_is_no_picture(tmp_path: Path) -> None:
    (tmp_path / "p.png").write_text("%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 10 10\n")
    with pytest.raises(InputError, match="cannot be read as a picture"):
        read_picture(tmp_path / "p.png", PictureSpec((8, 8)))
    with pytest.raises(InputError, match="no such file"):
        read_picture(tmp_path / "none.png", PictureSpec((8, 8)))
    Image.fromarray(np.zeros((4, 4), np.float32)).save(tmp_path / "f.tiff")
    with pytest.raises(InputError, match="floats"):
        read_picture(tmp_path / "f.tiff", PictureSpec((8, 8)))


def test_without_pillow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = saved(tmp_path, quarters())
    monkeypatch.setitem(sys.modules, "PIL.Image", None)
    with pytest.raises(InputError, match=r"pip install 'singe\[images\]'"):
        read_picture(path, PictureSpec((8, 8)))
