"""Windows, products, norms, resized pictures and recurrent layers."""

from __future__ import annotations

from .node import Draw, Node


def window(n: Node, spaces: int, ceil: bool = False, dilate: bool = True) -> None:
    kernel = [n.whole(1, 3) for _ in range(spaces)]
    n.attributes["kernel_shape"] = kernel
    n.maybe("strides", [n.one_of(1, 2, 2, 3) for _ in range(spaces)])
    if dilate:
        n.maybe("dilations", [n.one_of(1, 1, 2) for _ in range(spaces)], 0.3)
    padding = n.one_of("pads", "pads", "", "SAME_UPPER", "SAME_LOWER", "VALID")
    if padding == "pads":
        n.attributes["pads"] = [n.whole(0, k - 1) for k in (*kernel, *kernel)]
    elif padding:
        n.attributes["auto_pad"] = padding
        if padding.startswith("SAME"):
            n.attributes.pop("dilations", None)
            # Of a pool whose step is longer than the window, onnxruntime takes negative padding or refuses it; of a Conv, none.
            strides = n.attributes.get("strides", kernel)
            if n.op.endswith("Pool") and any(s > k for s, k in zip(strides, kernel, strict=True)):
                del n.attributes["strides"]
    if ceil and not padding.startswith(("SAME", "VALID")):
        n.maybe("ceil_mode", 1, 0.3)


def conv(n: Node) -> None:
    spaces, group = n.whole(1, 3), n.one_of(1, 1, 2)
    window(n, spaces)
    inside, outside = group * n.whole(1, 3), group * n.whole(1, 2)
    n.give((n.whole(1, 2), inside, *(n.whole(5, 9) for _ in range(spaces))), "float32")
    kernel = n.attributes["kernel_shape"]
    n.attributes["group"] = group
    if n.op == "Conv":
        n.const(n.array((outside, inside // group, *kernel), "float32"), "float32")
    else:
        n.attributes.pop("auto_pad", None)
        strides = n.attributes.get("strides", [1] * spaces)
        n.maybe("output_padding", [n.whole(0, s - 1) for s in strides], 0.3)
        n.const(n.array((inside, outside // group, *kernel), "float32"), "float32")
    if n.chance(0.5):
        n.const(n.array((outside,), "float32"), "float32")


def pool(n: Node) -> None:
    spaces = n.whole(1, 3)
    window(
        n, spaces, n.op != "LpPool" or n.opset >= 18, n.op == "MaxPool" or n.opset >= (18 if n.op == "LpPool" else 19)
    )
    n.give(
        (n.whole(1, 2), n.whole(1, 3), *(n.whole(5, 9) for _ in range(spaces))),
        n.one_of("float32", "float32", "float64") if n.op == "MaxPool" else "float32",
    )
    if n.op == "AveragePool":
        n.maybe("count_include_pad", 1)
    elif n.op == "LpPool":
        n.maybe("p", n.whole(1, 3))
    elif n.chance(0.3):
        n.outputs = 2


def spatial(n: Node) -> None:
    n.give((n.whole(1, 2), n.whole(1, 3), *n.shape(1, 3, 1)), "float32")
    if n.op == "GlobalLpPool":
        n.maybe("p", n.whole(1, 3))


def matmul(n: Node) -> None:
    kind = n.one_of("float32", "float32", "float64", "int32", "uint32", "int64")
    m, k, l = n.whole(1, 5), n.whole(0 if n.chance(0.03) else 1, 6), n.whole(1, 5)
    batch = n.shape(0, 2)
    left = (k,) if n.chance(0.1) else (*(1 if n.chance(0.2) else d for d in batch), m, k)
    right = (k,) if n.chance(0.1) else (*(1 if n.chance(0.2) else d for d in batch[n.whole(0, len(batch)) :]), k, l)
    n.give(left, kind)
    n.const(n.array(right, kind), kind)


def gemm(n: Node) -> None:
    kind = n.one_of("float32", "float32", "float64")
    m, k, l = n.whole(1, 5), n.whole(1, 6), n.whole(1, 5)
    a, b = n.whole(0, 1), n.whole(0, 1)
    n.attributes |= {"transA": a, "transB": b}
    n.maybe("alpha", 0.5)
    n.maybe("beta", 2.0)
    n.give((k, m) if a else (m, k), kind)
    n.const(n.array((l, k) if b else (k, l), kind), kind)
    if n.chance(0.7):
        n.const(n.array(n.one_of((m, l), (1, l), (l,), (m, 1), ()), kind), kind)


def batch_norm(n: Node) -> None:
    channels = n.whole(1, 4)
    n.give((n.whole(1, 3), channels, *n.shape(0, 3)), "float32")
    for low in (-2, -2, -2, 0.1):
        n.const(n.array((channels,), "float32", low, 2), "float32")
    n.maybe("epsilon", 1e-3)


def instance_norm(n: Node) -> None:
    channels = n.whole(1, 4)
    n.give((n.whole(1, 3), channels, *n.shape(1, 3, 2)), "float32")
    for _ in range(2):
        n.const(n.array((channels,), "float32"), "float32")


def lrn(n: Node) -> None:
    n.give((n.whole(1, 2), n.whole(1, 6), *n.shape(2, 2, 1)), "float32")
    n.attributes["size"] = n.one_of(1, 3, 5)


def resize(n: Node) -> None:
    shape = n.shape(2, 4, 1)
    n.give(shape, "float32")
    mode = n.one_of("nearest", "nearest", "linear", *(["cubic"] if len(shape) == 4 else []))
    new = ["tf_crop_and_resize", *(["half_pixel_symmetric"] if n.opset >= 19 else [])]
    places = n.one_of("half_pixel", "asymmetric", "pytorch_half_pixel", "align_corners", *new)
    n.attributes |= {"mode": mode, "coordinate_transformation_mode": places}
    if mode == "nearest":
        n.attributes["nearest_mode"] = n.one_of("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")
    still = max(0, len(shape) - 2)
    region: list[float] = []
    if places == "tf_crop_and_resize":
        n.attributes["extrapolation_value"] = 7.0
        ends = [[n.whole(*limits) / 8 for _ in shape[still:]] for limits in ((-3, 4), (5, 11))]
        region = [0.0] * still + ends[0] + [1.0] * still + ends[1]
    n.const(region, "float32", always=True)
    # With a scale that gives no whole length, ONNX's reference and onnxruntime think differently of some of these places.
    by_scales = places in ("half_pixel", "half_pixel_symmetric", "asymmetric") and n.chance(0.5)
    if by_scales:
        n.const([1.0] * still + [n.one_of(0.5, 0.6, 1, 1.5, 2, 2.7, 3) for _ in shape[still:]], "float32")
    else:
        n.const([], "float32", always=True)
        n.const([*shape[:still], *(n.whole(1, 7) for _ in shape[still:])])


def grid_sample(n: Node) -> None:
    batch, spaces = n.whole(1, 2), 2
    n.give((batch, n.whole(1, 3), *(n.whole(1, 5) for _ in range(spaces))), "float32")
    n.give((batch, *(n.whole(1, 4) for _ in range(spaces)), spaces), "float32", -1.5, 1.5)
    modes = ("linear", "nearest", "cubic") if n.opset >= 20 else ("bilinear", "nearest", "bicubic")
    n.attributes["mode"] = mode = n.one_of(*modes)
    # Of cubic weights at the border, ONNX's reference and onnxruntime think differently.
    n.maybe("padding_mode", n.one_of("zeros", "reflection", "zeros" if mode == modes[2] else "border"))
    n.maybe("align_corners", 1, 0.4)


def layer_norm(n: Node) -> None:
    shape = n.shape(1, 4)
    axis = n.axis(len(shape))
    n.give(shape, n.one_of("float32", "float32", "float64"))
    assert n.inputs[0] is not None
    for _ in range(n.whole(1, 2)):
        n.const(n.array(shape[axis:], n.inputs[0].dtype.name), n.inputs[0].dtype.name)
    n.attributes["axis"] = axis


def recurrent(gates: int, states: int) -> Draw:
    def draw(n: Node) -> None:
        steps, batch, width, hidden = n.whole(1, 4), n.whole(1, 3), n.whole(1, 4), n.whole(1, 4)
        both = n.chance(0.4)
        count = 2 if both else 1
        n.attributes |= {
            "hidden_size": hidden,
            "direction": "bidirectional" if both else n.one_of("forward", "reverse"),
        }
        n.give((steps, batch, width), "float32", -1, 1)
        n.const(n.array((count, gates * hidden, width), "float32", -1, 1), "float32")
        n.const(n.array((count, gates * hidden, hidden), "float32", -1, 1), "float32")
        n.inputs.append(n.array((count, 2 * gates * hidden), "float32", -1, 1) if n.chance(0.6) else None)
        n.inputs.append(None)
        for _ in range(states):
            n.inputs.append(n.array((count, batch, hidden), "float32", -1, 1) if n.chance(0.5) else None)
        if n.op == "GRU":
            n.maybe("linear_before_reset", 1)
        n.outputs = 1 + n.whole(0, states)

    return draw
