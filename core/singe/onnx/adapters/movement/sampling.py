"""Ops that read elements at places that the model computes: gathered elements, sampled pictures and regions."""

from __future__ import annotations

from ....dtypes import int64
from ....graph import Node
from ....ops.movement.sampling import MAX_SAMPLES, samples_of
from ....shapes import Dim, same, show
from .._call import Call, adapter
from ..elementwise.basic import cast
from ..products.windows import weights_of, window_of
from .shapes import part


@adapter("GatherElements")
def _gather_elements(call: Call) -> Node:
    x = call.x()
    return call.b.gather_elements(x, call.x(1), axis=call.axis(0, len(x.shape)))


@adapter("GatherND")
def _gather_nd(call: Call) -> Node:
    index = call.x(1)
    for d in index.shape[-1:]:
        call.number(d, "how many axes the indices name")
    return call.b.gather_nd(call.x(), index, batch=call.attr("batch_dims", 0))


SAMPLING = {"bilinear": "linear", "bicubic": "cubic"}
"""The modes of GridSample before version 20, and of the op of com.microsoft ↦ those of now."""


@adapter("GridSample", "com.microsoft.GridSample")
def _grid_sample(call: Call) -> Node:
    mode = call.attr("mode", "linear")
    return call.b.grid_sample(
        call.x(), call.x(1), mode=SAMPLING.get(mode, mode), padding=call.attr("padding_mode", "zeros"),
        align_corners=call.flag("align_corners"),
    )  # fmt: skip


@adapter("AffineGrid")
def _affine_grid(call: Call) -> Node:
    theta, sizes = call.x(), call.dims(1)
    if len(sizes) < 3:
        raise call.fail(f"the size {show(sizes)} has no spatial axes")
    return call.b.affine_grid(theta, space=call.lengths(sizes[2:]), align_corners=call.flag("align_corners"))


@adapter("DeformConv")
def _deform_conv(call: Call) -> Node:
    x, w, kernel, group = weights_of(call)
    window = window_of(call, x, kernel)
    return call.b.deform_conv(
        x, w, call.x(2), call.maybe(3), call.maybe(4), strides=window.strides, dilations=window.dilations,
        before=window.before, after=window.after, group=group, offset_group=call.attr("offset_group", 1),
    )  # fmt: skip


@adapter("RoiAlign")
def _roi_align(call: Call) -> Node:
    size = call.attr("output_height", 1), call.attr("output_width", 1)
    shifted = call.attr("coordinate_transformation_mode", "half_pixel" if call.version >= 16 else "output_half_pixel")
    if shifted not in ("half_pixel", "output_half_pixel"):
        raise call.fail(f"coordinate_transformation_mode is {shifted!r}; expected half_pixel or output_half_pixel")
    half, scale, count = shifted == "half_pixel", call.attr("spatial_scale", 1.0), call.attr("sampling_ratio", 0)
    x, rois, b = call.x(), call.x(1), call.b
    if count:
        samples: tuple[Dim, ...] = (count, count)
    else:  # as many as the largest region needs, which a run finds
        samples = call.found("sizes", samples_of(b, rois, size=size, scale=scale, half_pixel=half), most=MAX_SAMPLES)
    return b.roi_align(
        x, rois, call.x(2), size=size, samples=samples, adaptive=not count, mode=call.attr("mode", "avg"), scale=scale, half_pixel=half
    )  # fmt: skip


@adapter("MaxRoiPool")
def _max_roi_pool(call: Call) -> Node:
    """Each region is a row (picture, x, y, x, y)."""
    x, rois, b = call.x(), call.x(1), call.b
    if len(rois.shape) != 2 or not same(rois.shape[1], 5, "MaxRoiPool"):
        raise call.fail(f"the regions are {show(rois.shape)}; expected (regions, 5)")
    picture, corners = (part(b, rois, 1, at, count) for at, count in ((0, 1), (1, 4)))
    picture = cast(call, b.reshape(picture, shape=(rois.shape[0],)), int64)
    size = call.items("pooled_shape", int) or ()
    return b.max_roi_pool(x, corners, picture, size=size, scale=call.attr("spatial_scale", 1.0))
