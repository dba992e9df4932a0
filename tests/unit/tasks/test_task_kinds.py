"""Tasks: pictures become inputs as Pillow makes them, maps and points come back to the picture, and what is wrong is refused."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tflite_bytes import Op, Value, model_bytes

import singe as sg
from singe.errors import FormatError, InputError, SingeError
from singe.files.pictures import read_pixels
from singe.model.model import Model
from singe.tasks import Findings, PictureInput, TaskSpec
from singe.tasks.kinds import KINDS
from singe.tasks.kinds.faces import anchors
from singe.tasks.picture.preparing import framed, prepared

RNG = np.random.default_rng(11)
SIZES = ((40, 61), (61, 40), (9, 7), (333, 121))


def whole(
    function: Callable[[sg.Tensor], Any], channels: int = 3, sides: tuple[Any, Any] = (16, 24), device: Any = "numpy"
) -> Model:
    return Model.of(function, {"images": (1, channels, *sides)}, device)


def inputs_of(spec: PictureInput, pixels: np.ndarray, device: Any) -> np.ndarray:
    """What a spec makes of pixels."""

    def function(picture: sg.Tensor) -> sg.Tensor:
        return prepared(picture, spec, sg.float32)[0]

    model = Model.of(function, {"picture": ("height", "width", 4)}, device, dtypes={"picture": "uint8"})
    return model(pixels)


def noise(height: int, width: int) -> np.ndarray:
    pixels = RNG.integers(0, 256, (height, width, 4)).astype(np.uint8)
    pixels[..., 3] = 255
    return pixels


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("filter", ["linear", "cubic"])
def test_a_picture_is_resized_as_pillow_does(on: sg.Device, size: tuple[int, int], filter: str) -> None:
    image = pytest.importorskip("PIL.Image", reason="Pillow is not here")
    spec = PictureInput((16, 24), crop=0.875, std=(1.0,), layout="nhwc", filter=filter)
    pixels = noise(*size) // 2 + 64  # so that no sum is beyond 0 to 255, where Pillow cuts between its axes
    scale = min(size[1] / 24, size[0] / 16) * 0.875
    left, top = (size[1] - 24 * scale) / 2, (size[0] - 16 * scale) / 2
    kind = {"linear": image.Resampling.BILINEAR, "cubic": image.Resampling.BICUBIC}[filter]
    box = (left, top, left + 24 * scale, top + 16 * scale)
    wanted = np.asarray(image.fromarray(pixels[..., :3]).resize((24, 16), kind, box=box))
    # Pillow rounds to whole numbers along each axis.
    np.testing.assert_allclose(inputs_of(spec, pixels, on)[0], wanted, atol=2.5 if filter == "cubic" else 1.01)


def resampled_as_written(values: np.ndarray, out: int, step: float, start: float) -> np.ndarray:
    """Along the first axis, in float64: element i has its centre at (i + 0.5) · step + start, and a triangle around it."""
    far = np.arange(len(values)) + 0.5 - ((np.arange(out) + 0.5) * step + start)[:, None]
    weights = np.maximum(0, 1 - np.abs(far) / max(step, 1))
    total = weights.sum(1, keepdims=True)
    return np.tensordot(weights / np.where(total > 1e-9, total, 1), values, 1)


@pytest.mark.slow
def test_a_map_goes_back_to_pictures_that_are_much_longer_than_wide() -> None:
    spec, values = PictureInput((64, 48), crop=0.875, fit="cover"), RNG.normal(size=(64, 48, 2)).astype(np.float32)

    def function(picture: sg.Tensor, values: sg.Tensor) -> sg.Tensor:
        return framed(picture.shape[0], picture.shape[1], spec).map(values)

    shapes = {"picture": ("height", "width", 4), "values": values.shape}
    model = Model.of(function, shapes, "numpy", dtypes={"picture": "uint8"})
    for height, width in ((33, 700), (700, 33)):
        step = min(height / 64, width / 48) * 0.875
        rows = resampled_as_written(values, height, 1 / step, (64 - height / step) / 2)
        wanted = resampled_as_written(rows.transpose(1, 0, 2), width, 1 / step, (48 - width / step) / 2)
        np.testing.assert_allclose(model(noise(height, width), values), wanted.transpose(1, 0, 2), atol=1e-3)


@pytest.mark.parametrize("fit", ["contain", "corner"])
def test_all_of_a_picture_stands_in_a_border(fit: str) -> None:
    spec = PictureInput((20, 20), std=(1.0,), fit=fit, fill=50.0)
    found = inputs_of(spec, np.full((10, 40, 4), 200, np.uint8), "numpy")[0, 0]
    rows = np.where(found[:, 0] == 200)[0].tolist()
    assert rows == (list(range(7, 12)) if fit == "contain" else list(range(5)))
    assert set(np.unique(found)) == {50.0, 200.0}


def test_channels_are_ordered_and_normalised() -> None:
    pixels = np.zeros((8, 8, 4), np.uint8)
    pixels[:] = (10, 20, 30, 255)
    spec = PictureInput((2, 2), mean=(1.0, 2.0, 3.0), std=(2.0,), order="bgr")
    np.testing.assert_allclose(
        inputs_of(spec, pixels, "numpy")[0, :, 0, 0], [(30 - 1) / 2, (20 - 2) / 2, (10 - 3) / 2], rtol=1e-6
    )
    grey = PictureInput((2, 2), channels=1, std=(1.0,))
    np.testing.assert_allclose(
        inputs_of(grey, pixels, "numpy").ravel(), [0.299 * 10 + 0.587 * 20 + 0.114 * 30] * 4, rtol=1e-6
    )


@pytest.mark.slow
def test_scores_become_probabilities_and_the_likeliest_classes() -> None:
    row = RNG.normal(size=7).astype(np.float32)
    for scores in (row, np.exp(row) / np.exp(row).sum()):
        classify = sg.task(
            "classify", whole(lambda x, s=scores: sg.tensor(s[None]) + x.sum() * 0.0), labels=list("abcdefg")
        )
        found = classify(noise(5, 5), top=3)
        order = np.argsort(-row)[:3]
        assert [x.label for x in found] == ["abcdefg"[k] for k in order]
        np.testing.assert_allclose([x.score for x in found], (np.exp(row) / np.exp(row).sum())[order], rtol=1e-5)


def test_parts_have_the_size_of_the_picture() -> None:
    def halves(x: sg.Tensor) -> sg.Tensor:
        left = (sg.arange(24) < 12).to(dtype="float32").reshape(1, 1, 1, 24) * 9.0
        both = sg.concatenate([left, 9.0 - left], axis=1)
        return both.expand(1, 2, 16, 24) + x.sum() * 0.0

    found = sg.task("segment", whole(halves), labels=["left", "right"])(noise(30, 50))
    assert sorted(x.label for x in found) == ["left", "right"]
    for item in found:
        assert item.mask is not None
        wanted = np.zeros((30, 50), np.uint8)
        wanted[:, slice(0, 25) if item.label == "left" else slice(25, 50)] = 255
        np.testing.assert_array_equal(item.mask, wanted)
        np.testing.assert_allclose(item.score, 1 / (1 + np.exp(-9)), rtol=1e-5)


@pytest.mark.slow
def test_a_cutout_and_a_depth_are_maps_of_the_picture() -> None:
    pixels = noise(30, 50)
    grey = whole(lambda x: x.mean(1, keepdims=True))
    mask = sg.task("cutout", grey)(pixels)
    assert (mask.mask.shape, mask.mask.dtype) == ((30, 50), np.uint8)
    depth = sg.task("depth", grey)(pixels)
    assert (depth.depth.shape, depth.depth.dtype) == ((30, 50), np.float32)
    assert np.abs(depth.depth * 255 - mask.mask).max() <= 0.51
    flat = sg.task("depth", grey)(np.full((30, 50), 64, np.uint8))
    np.testing.assert_allclose(flat.depth, 64 / 255, rtol=1e-5)


def test_a_vector_has_the_length_one() -> None:
    embed = sg.task("embed-image", whole(lambda x: x.mean((2, 3))))
    a = embed(noise(20, 20))
    np.testing.assert_allclose(np.linalg.norm(a.vector), 1, rtol=1e-6)
    assert a.similarity(a) == pytest.approx(1)


@pytest.mark.slow
def test_faces_are_decoded_from_their_anchors() -> None:
    boxes, scores = RNG.normal(0, 6, (896, 16)).astype(np.float32), RNG.normal(-3, 2, (896, 1)).astype(np.float32)
    boxes[:, 2:4] = np.abs(boxes[:, 2:4]) + 8

    def outputs(x: sg.Tensor) -> Mapping[str, sg.Tensor]:
        nothing = x.sum() * 0.0
        return {"regressors": sg.tensor(boxes[None]) + nothing, "classificators": sg.tensor(scores[None]) + nothing}

    find = sg.task("faces", whole(outputs, sides=(128, 128)))
    found = find(np.zeros((256, 256), np.uint8))
    best = int(scores.argmax())
    middle = anchors((128, 128), ((8, 2), (16, 6)))[best] * 128
    assert anchors((128, 128), ((8, 2), (16, 6))).shape == (896, 2)
    np.testing.assert_allclose(middle, [((best // 2 % 16) + 0.5) * 8, (best // 32 + 0.5) * 8] if best < 512 else middle)
    center = boxes[best, :2] + middle
    box = np.clip(np.concatenate([center - boxes[best, 2:4] / 2, center + boxes[best, 2:4] / 2]) * 2, 0, 256)
    first = found[0]
    np.testing.assert_allclose(list(first.box.to_dict().values()), box, atol=1e-2)
    np.testing.assert_allclose(first.landmarks, (boxes[best, 4:].reshape(6, 2) + middle) * 2, atol=1e-2)
    assert first.score == pytest.approx(1 / (1 + np.exp(-scores[best, 0])), rel=1e-5)


def classifier(device: Any = "numpy") -> Any:
    return sg.task("classify", whole(lambda x: x.mean((2, 3)), device=device), labels=["red", "green", "blue"])


def test_a_record_holds_the_task(tmp_path: Path) -> None:
    classify, pixels = classifier(), noise(20, 30)
    classify.save(tmp_path / "colours.singe")
    again = sg.task("classify", tmp_path / "colours.singe", device="numpy")
    assert again.info == classify.info
    assert again(pixels) == classify(pixels)
    with pytest.raises(InputError, match="its task is 'classify', got 'detect'"):
        sg.task("detect", tmp_path / "colours.singe")
    with pytest.raises(InputError, match="takes no labels"):
        sg.task("classify", tmp_path / "colours.singe", labels="coco")
    with pytest.raises(InputError, match="mean 'grey': expected a number, or one a channel"):
        sg.task("classify", whole(lambda x: x.mean((2, 3))), mean="grey")


def test_lists_streams_and_sources_give_the_same_answers() -> None:
    classify, pixels = classifier(), noise(20, 30)
    one = classify(pixels)
    assert classify([pixels, pixels[..., :3]]) == [one, one]
    assert list(classify.stream(iter([pixels, pixels]))) == [one, one]
    assert classify(pixels[..., :3] / 255.0) == one
    assert repr(one).startswith("<classify: 3 found>\n  ")
    assert one.to_dict()[0].keys() == {"label", "score", "index"}
    with classify:
        pass
    with pytest.raises(InputError, match="closed"):
        classify(pixels)


def test_pictures_are_read_and_drawn(tmp_path: Path) -> None:
    image = pytest.importorskip("PIL.Image", reason="Pillow is not here")
    classify, pixels = classifier(), noise(20, 30)
    picture = image.fromarray(pixels[..., :3])
    picture.save(tmp_path / "p.png")
    one = classify(pixels)
    for source in (tmp_path / "p.png", str(tmp_path / "p.png"), (tmp_path / "p.png").read_bytes(), picture):
        assert classify(source) == one
    one.save(tmp_path / "drawn.png")
    assert read_pixels(tmp_path / "drawn.png", 3).shape == (20, 30, 3)
    clear = np.concatenate([pixels[..., :3], np.zeros((20, 30, 1), np.uint8)], axis=2)
    assert classify(clear).picture.min() == 255


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        (np.zeros((3, 4, 5), np.uint8), r"got an array uint8\(3, 4, 5\)"),
        (np.full((3, 4), 2.0), "floats beyond 0 to 1"),
        (np.full((3, 4), np.nan), "floats beyond 0 to 1"),
        (np.zeros((3, 4), np.uint16), "expected uint8"),
        (7, "got a int, expected a path"),
    ],
)
def test_what_is_no_picture_is_refused(source: Any, problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        classifier()(source)


def test_what_a_task_does_not_take_is_refused() -> None:
    for call, problem in (
        (lambda: classifier()(noise(3, 3), topp=2), "got topp; expected some of top"),
        (lambda: sg.task("clasify", "x.onnx"), "got 'clasify', expected one of classify, detect"),
        (lambda: sg.task("classify", whole(lambda x: x.mean((2, 3))), siz=3), "got siz"),
        (lambda: sg.task("classify", whole(lambda x: x.mean((2, 3))), size=7), r"the model takes pictures of \(16, 24\)"),
        (lambda: sg.task("classify", whole(lambda x: x.mean((2, 3))), head="yolo"), "head 'yolo', expected one of each, scores"),
        (lambda: sg.task("classify", whole(lambda x: x.mean((2, 3))), labels="kokko.txt"), "got 'kokko.txt', expected a file"),
        (lambda: sg.task("classify", Model.of(lambda x: x, {"x": (3,)}, "numpy")), "takes no picture"),
    ):  # fmt: skip
        with pytest.raises(InputError, match=problem):
            call()


def test_a_model_stays_on_its_device_unless_another_is_given() -> None:
    model = whole(lambda x: x.mean((2, 3)), device="numpy")
    other = sg.Fusion(sg.Numpy())
    assert sg.task("classify", model).model.device is model.device
    assert sg.task("classify", model, device=other).model.device is other


def test_open_sizes_get_those_of_the_kind() -> None:
    model = whole(lambda x: x.mean((2, 3)), sides=("H", "W"))
    assert sg.task("classify", model).info.preparation.size == (224, 224)
    assert sg.task("classify", model, size=(30, 40)).info.preparation.size == (30, 40)


def test_facts_are_written_and_read_the_same() -> None:
    info = classifier().info
    assert TaskSpec.from_dict(info.to_dict(), "x") == info


def test_facts_that_were_changed_are_refused() -> None:
    good = classifier().info.to_dict()
    bad: list[Any] = [None, [], {}, {**good, "kind": 3}, {**good, "labels": [1]}, {**good, "preparation": {}}]
    for name, value in (
        ("size", [0, 1]),
        ("fit", "x"),
        ("std", [0]),
        ("mean", "12"),
        ("more", 1),
        ("fill", 999),
        ("crop", 5e-4),
    ):
        bad.append({**good, "preparation": {**good["preparation"], name: value}})
    for data in bad:
        with pytest.raises(FormatError, match="not the facts of a task"):
            TaskSpec.from_dict(data, "x")


def test_every_kind_says_what_it_is() -> None:
    for name, kind in KINDS.items():
        assert name == kind.name
        assert kind.about
        assert all(head.about for head in kind.heads)
    assert issubclass(InputError, SingeError)
    assert isinstance(classifier()(noise(3, 3)), Findings)


def test_a_map_of_integers_is_one_of_classes_and_quantised_numbers_are_refused() -> None:
    def numbers(x: sg.Tensor) -> sg.Tensor:
        halves = (sg.arange(24) >= 12).to(dtype="uint8").reshape(1, 1, 24) * 7
        return halves.expand(1, 16, 24) + (x.sum() * 0.0).to(dtype="uint8")

    segment = sg.task("segment", whole(numbers), labels=[f"part {k}" for k in range(8)])
    assert sorted((x.label, x.score) for x in segment(noise(30, 50))) == [("part 0", 1.0), ("part 7", 1.0)]
    with pytest.raises(InputError, match="integers of 8 bits, of which the model does not say what they stand for"):
        sg.task("classify", whole(lambda x: x.mean((2, 3)).to(dtype="uint8")))


def test_a_picture_for_a_quantised_model_is_not_normalised() -> None:
    for kind, wanted in (("uint8", 200), ("int8", 72)):
        net = Model.of(lambda x: x.to(dtype="float32").mean((1, 2)), {"x": (1, 8, 8, 3)}, "numpy", dtypes={"x": kind})
        embed = sg.task("embed-image", net, fit="stretch")
        assert embed.info.preparation.mean == ((128.0,) if kind == "int8" else (0.0,))
        found = embed.model(np.full((9, 9, 4), 200, np.uint8))
        np.testing.assert_allclose(found, np.full(3, wanted) / (wanted * 3**0.5), rtol=1e-5)
        with pytest.raises(InputError, match=r"mean .* this model takes"):
            sg.task("embed-image", net, mean=3)


def test_scores_of_a_sigmoid_stay_what_they_are() -> None:
    row = np.array([0.9, 0.8, 0.1], np.float32)
    logits = np.log(row / (1 - row))
    tags = sg.task("classify", whole(lambda x: (sg.tensor(logits[None]) + x.sum() * 0.0).sigmoid()))
    chosen = sg.task("classify", whole(lambda x: sg.tensor(logits[None]) + x.sum() * 0.0), head="each")
    for task in (tags, chosen):
        np.testing.assert_allclose([x.score for x in task(noise(5, 5))], row, rtol=1e-5)


def test_a_vector_is_that_of_the_whole_picture_or_of_the_place_that_is_asked_for() -> None:
    def several(x: sg.Tensor) -> dict[str, sg.Tensor]:
        places = sg.tensor(np.eye(4, dtype=np.float32)[None]) + x.sum() * 0.0
        return {"last_hidden_state": places, "pooler_output": places[:, 2]}

    def places(x: sg.Tensor) -> sg.Tensor:
        return several(x)["last_hidden_state"]

    pixels = noise(5, 5)
    np.testing.assert_allclose(sg.task("embed-image", whole(several))(pixels).vector, [0, 0, 1, 0], atol=1e-6)
    np.testing.assert_allclose(sg.task("embed-image", whole(places))(pixels).vector, [0.5] * 4, atol=1e-6)
    first = sg.task("embed-image", whole(places), head="first")
    np.testing.assert_allclose(first(pixels).vector, [1, 0, 0, 0], atol=1e-6)


def test_what_another_model_takes_is_refused() -> None:
    features = {"image_embeddings": (1, 256, 16, 24)}
    with pytest.raises(InputError, match="what another model takes, as an encoder's of Segment Anything"):
        sg.task("segment", whole(lambda x: {n: sg.zeros(s) + x.sum() for n, s in features.items()}))
    with pytest.raises(InputError, match="with 256 and more it wants labels"):
        sg.task("segment", whole(lambda x: sg.zeros(features["image_embeddings"]) + x.sum()))


def test_the_names_of_imagenet_fit_models_that_also_know_a_background() -> None:
    classify = sg.task(
        "classify",
        whole(lambda x: (sg.arange(1001) == 1).to(dtype="float32").reshape(1, 1001) + x.sum() * 0.0),
        labels="imagenet",
    )
    assert classify.info.labels[:2] == ("background", "tench, Tinca tinca")


def test_quantised_outputs_of_tensorflow_lite_are_what_they_stand_for(tmp_path: Path) -> None:
    values = [
        Value(np.zeros((1, 2, 2, 3), np.float32)),
        Value(np.array([1, 2], np.int32), is_constant=True),
        Value(np.zeros((1, 3), np.float32)),
        Value(np.zeros((1, 3), np.uint8), scale=[1 / 256]),
    ]
    ops = [Op("MEAN", [0, 1], [2]), Op("QUANTIZE", [2], [3])]
    (tmp_path / "mean.tflite").write_bytes(model_bytes(values, ops, [0], [3]))
    classify = sg.task("classify", tmp_path / "mean.tflite", device="numpy", std=255)
    found = classify(np.full((5, 5, 3), (51, 102, 26), np.uint8))  # 0.2, 0.4 and 0.1, together over a half
    np.testing.assert_allclose([x.score for x in found], [102 / 256, 51 / 256, 26 / 256], rtol=1e-6)
