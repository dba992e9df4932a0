"""Augmentations: equal to torchvision's, and a function of the seed, the epoch and the item alone."""

from __future__ import annotations

import numpy as np
import pytest
from recorded import recorded

from singe import data
from singe.data import warp
from singe.errors import DTypeError, InputError, ShapeError

RECORDED = recorded("augment")
IMAGES = np.random.default_rng(0).integers(0, 256, (9, 3, 12, 10), np.uint8)
STEPS = [
    data.RandomAffine(10, (0.1, 0.1), (0.9, 1.1), 10), data.ElasticTransform(20, 4), data.RandomCrop((8, 7), 2), data.RandomHorizontalFlip(),
    data.RandomVerticalFlip(0.3), data.RandomErasing(0.7), data.Normalize((1.0, 2.0, 3.0), 2.0),
]  # fmt: skip


@pytest.mark.parametrize("case", range(len(RECORDED["cases"])))
def test_affine_maps_are_torchvisions(case: int) -> None:
    images, expected = RECORDED["images"], RECORDED[f"affine{case}"]
    places = warp.inverse_affine(*(np.full(len(images), v, np.float32) for v in RECORDED["cases"][case]))
    np.testing.assert_allclose(warp.sampled(images, places, warp.RandomAffine()), expected, atol=1e-4)
    # Not torchvision's, which mixes `fill` with pixels at the edge that are darkened already.
    np.testing.assert_allclose(warp.sampled(images - 3, places, warp.RandomAffine(fill=-3)), expected - 3, atol=1e-4)


@pytest.mark.parametrize("sigma", [3, 5])
def test_elastic_fields_have_the_covariances_of_torchvisions(sigma: int) -> None:
    step, size = data.ElasticTransform(40, sigma), (28, 28)
    found = step.coefficients(data.Draws(0, np.arange(4000)), size)
    moved = (step.places(found, size) - data.RandomAffine().places(found, size)).reshape(8000, 28, 28)[:, 10:18, 10:18]
    found = [(moved[:, :, lag:] * moved[:, :, : 8 - lag]).mean() for lag in range(8)]
    np.testing.assert_allclose(found, RECORDED[f"elastic{sigma}"], atol=0.06 * RECORDED[f"elastic{sigma}"][0])


def test_rectangles_that_do_not_fit_erase_nothing() -> None:
    for ratio in (0.02, 50.0):
        np.testing.assert_array_equal(data.RandomErasing(1.0, (0.3, 0.3), (ratio, ratio))(IMAGES), IMAGES)


def test_elastic_fields_of_any_size_have_one_variance() -> None:
    for size in ((20, 44), (5, 3), (1, 90)):
        step = data.ElasticTransform(30, 4)
        found = step.coefficients(data.Draws(0, range(600)), size)
        moved = step.places(found, size) - data.RandomAffine().places(found, size)
        assert moved.shape == (600, 2, size[0] * size[1])
        assert moved.std(0).mean() == pytest.approx(15 * (1 / 3 / (4 * np.pi * 16)) ** 0.5, rel=0.04)


def test_erased_parts_are_as_large_as_torchvisions() -> None:
    hole = data.RandomErasing(1.0)(np.ones((4000, 1, 28, 28), np.float32), seed=1)[:, 0] == 0
    found = hole.mean(), hole.any(1).sum(1).mean(), hole.any(2).sum(1).mean()
    np.testing.assert_allclose(found, RECORDED["erased"], rtol=0.04)


@pytest.mark.parametrize("step", STEPS, ids=lambda s: type(s).__name__)
def test_an_image_changes_by_its_seed_epoch_and_index_alone(step: data.Step) -> None:
    augment = data.Augment(step)
    whole = augment(IMAGES, data.Draws(3, range(9), epoch=2))
    some = augment(IMAGES[[7, 2]], data.Draws(3, [7, 2], epoch=2))
    np.testing.assert_array_equal(whole[[7, 2]], some)
    assert np.array_equal(IMAGES, np.random.default_rng(0).integers(0, 256, (9, 3, 12, 10), np.uint8))
    if not isinstance(step, data.Normalize):
        assert whole.dtype == np.uint8
        assert not np.array_equal(whole, augment(IMAGES, data.Draws(3, range(9), epoch=3)))
        assert not np.array_equal(whole, augment(IMAGES, data.Draws(4, range(9), epoch=2)))


def test_a_chain_of_warps_samples_once_and_equals_its_maps() -> None:
    """Two quarter turns are a half turn, exactly; an affine and an elastic step need one sampling."""
    turn = data.RandomAffine((90, 90))
    square = IMAGES[:, :, :10]
    np.testing.assert_array_equal(data.Augment(turn, turn)(square, data.Draws(0, range(9))), square[:, :, ::-1, ::-1])
    np.testing.assert_array_equal(turn(square), np.rot90(square, -1, (2, 3)))  # clockwise
    smooth = np.add.outer(np.arange(16.0), 3 * np.arange(16.0)).astype(np.float32)[None, None]
    steps = data.RandomAffine(20, (0.1, 0.1)), data.RandomAffine(shear=(30, 30)), data.ElasticTransform(10, 4)
    draws, apart = data.Draws(0, [0]), smooth
    for step in steps:
        apart = step.apply(apart, draws)
    once = data.Augment(*steps)(smooth, data.Draws(0, [0]))
    inside = np.s_[:, :, 5:11, 5:11]  # of a linear image, sampling twice is sampling once
    np.testing.assert_allclose(once[inside], apart[inside], atol=1e-3)


def test_the_ranges_of_affine_steps_are_kept() -> None:
    step = data.RandomAffine((5, 10), (0.5, 0.25), (2, 3), (0, 1))
    a = step.coefficients(data.Draws(0, range(2000)), (20, 40)).astype(np.float64)
    scale = 1 / np.sqrt(np.linalg.det(a[:, :, :2]))
    assert 2 <= scale.min() < 2.01
    assert 2.99 < scale.max() <= 3.001
    angle = np.rad2deg(np.arctan2(-a[:, 1, 0], a[:, 0, 0]))
    assert 4.9 < angle.min() < 5.1
    assert 9.9 < angle.max() < 10.1
    shift = np.linalg.solve(a[:, :, :2], -a[:, :, 2:])[:, :, 0]
    assert np.abs(shift).max(0) == pytest.approx((20, 5), rel=0.01)


def test_crops_are_parts_of_the_padded_image() -> None:
    crops = data.RandomCrop(6, (1, 2), fill=255)(IMAGES, seed=5)
    padded = np.pad(IMAGES, ((0, 0), (0, 0), (2, 2), (1, 1)), constant_values=255)
    for image, crop in zip(padded, crops, strict=True):
        assert any(np.array_equal(image[:, y : y + 6, x : x + 6], crop) for y in range(16 - 5) for x in range(12 - 5))


def test_flips_mirror_the_part_of_images_that_p_says() -> None:
    images = np.arange(4000 * 4, dtype=np.int32).reshape(4000, 1, 2, 2)
    for step, axis in ((data.RandomHorizontalFlip(0.25), 3), (data.RandomVerticalFlip(0.25), 2)):
        made = step(images)
        mirrored = (made == np.flip(images, axis)).all((1, 2, 3))
        assert ((made == images).all((1, 2, 3)) ^ mirrored).all()
        assert mirrored.mean() == pytest.approx(0.25, abs=0.03)


def test_normalised_pixels_are_those_of_each_channel() -> None:
    made = data.Normalize((1, 2, 3), (4, 5, 6))(IMAGES)
    assert made.dtype == np.float32
    np.testing.assert_allclose(made[:, 2], (IMAGES[:, 2] - 3.0) / 6, rtol=1e-6)
    np.testing.assert_allclose(data.Normalize(10, 5)(IMAGES[:, 0]), (IMAGES[:, 0] - 10.0) / 5, rtol=1e-6)


def test_a_field_of_the_batch_is_changed() -> None:
    flip, draws = data.Augment(data.RandomHorizontalFlip(1.0)), data.Draws(0, range(9))
    images, labels = flip((IMAGES, np.arange(9)), draws)
    np.testing.assert_array_equal(images, IMAGES[..., ::-1])
    np.testing.assert_array_equal(labels, np.arange(9))
    named = data.Augment(data.RandomHorizontalFlip(1.0), field="x")({"y": 1, "x": IMAGES}, draws)
    np.testing.assert_array_equal(named["x"], IMAGES[..., ::-1])
    assert list(named) == ["y", "x"]


def test_wrong_arguments_are_refused() -> None:
    draws = data.Draws(0, range(9))
    for make in (
        lambda: data.RandomAffine((2, 1)), lambda: data.RandomAffine(1, (2, 0)), lambda: data.RandomAffine(1, scale=(0, 1)),
        lambda: data.ElasticTransform(1, 0), lambda: data.RandomCrop(0), lambda: data.RandomCrop(1, (1, 2, 3)), lambda: data.Normalize(0, 0),
        lambda: data.RandomErasing(1, (0, 2)), lambda: data.RandomErasing(1, ratio=(0, 1)), lambda: data.Augment(str),  # pyright: ignore[reportArgumentType]
        lambda: data.Augment(field=3)((IMAGES,), draws), lambda: data.Augment(field="x")((IMAGES,), draws), lambda: data.Draws(0.5, [0]),  # pyright: ignore[reportArgumentType]
    ):  # fmt: skip
        with pytest.raises(InputError):
            make()
    for images in (np.zeros((3, 3)), [1, 2], np.zeros(())):
        with pytest.raises(ShapeError, match="batch of images"):
            data.Augment()((images,), draws)
    with pytest.raises(ShapeError, match="13 × 12 of images that are 12 × 10"):
        data.RandomCrop((13, 12))(IMAGES)
    with pytest.raises(ShapeError, match="2 numbers"):
        data.Normalize((1, 2), 1)(IMAGES)
    with pytest.raises(DTypeError):
        data.Augment()(IMAGES.astype(str), draws)


def test_draws_are_uniform_normal_and_independent() -> None:
    draws = data.Draws(0, range(20_000))
    unit, other = draws.uniform(shape=(3,)), draws.uniform(shape=(3,))
    assert unit.min() >= 0
    assert unit.max() < 1
    assert abs(np.corrcoef(np.concatenate([unit, other], 1).T) - np.eye(6)).max() < 0.03
    assert np.abs(np.histogram(unit, 20, (0, 1))[0] / unit.size - 0.05).max() < 0.003
    normal = draws.normal((4,))
    assert (normal.mean(), normal.std(), (normal**4).mean()) == pytest.approx((0, 1, 3), abs=0.05)
    whole = draws.integers(-2, 3)
    assert np.bincount(whole + 2, minlength=5) / 20_000 == pytest.approx([0.2] * 5, abs=0.015)
    first = [g.random() for g in data.Draws(1, [5, 6]).generators()]
    assert first == [g.random() for g in data.Draws(1, [5, 6]).generators()]
    assert len(set(first)) == 2
    assert data.Draws(-1, [0]).bits(1) != data.Draws(1, [0]).bits(1)
