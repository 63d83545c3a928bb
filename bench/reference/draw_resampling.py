"""Draws of Resize, Upsample, GridSample, AffineGrid, RoiAlign, MaxRoiPool, NonMaxSuppression."""
from draw_core import *  # noqa: F403


def scale(r):
    return float(np.float32(pick(r, 0.5, 2.0, 1.0, 3.0, 0.6, 0.25, 1.5, 1 / 3, 0.75, 2.5, r.uniform(0.3, 3.0), r.uniform(0.3, 3.0))))


def interpolated_axes(r, mode, rank):
    """The axes that ONNX Runtime resizes in a mode: the last two, three for linear, all for nearest."""
    if mode == "nearest":
        return [k for k in range(rank) if chance(r, 0.6)] or [rank - 1]
    return list(range(max(0, rank - 2), rank))


@draws
def draw_resize(r):
    opset = pick(r, 10, 11, 13, 18, 19, 19)
    mode = pick(r, "nearest", "linear") if opset == 10 else pick(r, "nearest", "nearest", "linear", "cubic")
    rank = 4 if mode == "cubic" or chance(r, 0.5) else int(r.integers(1, 5)) if mode == "nearest" else pick(r, 2, 3, 4)
    shape = [dim(r, 9, 0.0) for _ in range(rank)]
    axes = interpolated_axes(r, mode, rank)
    if mode != "nearest" and rank > 2:
        shape[0], shape[1] = int(r.integers(1, 3)), int(r.integers(1, 3))
    scales = [1.0] * rank
    for k in axes:
        scales[k] = scale(r)
    dtype = pick(r, np.float32, np.float32, np.float32, np.int32, np.uint8, np.int8) if mode != "cubic" else np.float32
    if mode == "linear" and rank == 3:
        dtype = np.float32  # ONNX Runtime sums twice as many halves there, and cuts other integers
    x = values(r, shape, dtype)
    if opset == 10:
        while any(int(np.float32(d) * np.float32(s)) < 1 for d, s in zip(shape, scales)):
            scales = [1.0 if int(np.float32(d) * np.float32(s)) < 1 else s for d, s in zip(shape, scales)]
        return Case("Resize", 10, [x, np.float32(scales)], {"mode": mode}, constant=(1,) if chance(r, 0.7) else ())
    attributes = {"mode": mode}
    coordinates = pick(r, "half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric", "tf_crop_and_resize",
                       *(["half_pixel_symmetric"] * 2 if opset >= 19 else []), *(["tf_half_pixel_for_nn"] if opset == 11 else []))
    if coordinates != "half_pixel" or chance(r, 0.5):
        attributes["coordinate_transformation_mode"] = coordinates
    if mode == "nearest" and chance(r, 0.8):
        attributes["nearest_mode"] = pick(r, "round_prefer_floor", "round_prefer_ceil", "floor", "ceil")
    if mode == "cubic":
        if chance(r, 0.4):
            attributes["cubic_coeff_a"] = pick(r, -0.5, -0.6)
        if chance(r, 0.4):
            attributes["exclude_outside"] = 1
    if opset >= 18 and mode != "nearest" and chance(r, 0.4):
        attributes["antialias"] = 1
        x = values(r, shape, pick(r, np.float32, np.float32, np.uint8) if mode == "linear" else np.float32)
    roi = None
    if coordinates == "tf_crop_and_resize":
        starts = [float(np.float32(r.uniform(0, 0.4))) if k in axes else 0.0 for k in range(rank)]
        ends = [float(np.float32(r.uniform(0.6, 1.2))) if k in axes else 1.0 for k in range(rank)]
        attributes["extrapolation_value"] = float(pick(r, 0.0, 10.0))
        roi = starts + ends
    out = [max(1, int(np.float32(d) * np.float32(s))) if k in axes else d for k, (d, s) in enumerate(zip(shape, scales))]
    # ONNX Runtime crops no axis that keeps its length.
    for k in range(rank):
        if roi is not None and out[k] == shape[k]:
            roi[k], roi[rank + k], scales[k] = 0.0, 1.0, 1.0
    chosen = list(range(rank))
    if opset >= 18 and chance(r, 0.4):
        chosen = axes if chance(r, 0.5) else axes[::-1]
        attributes["axes"] = [k - rank if chance(r, 0.3) else k for k in chosen]
    negative = any(k < 0 for k in attributes.get("axes", []))
    pickroi = None if roi is None else np.float32([roi[k] for k in chosen] + [roi[rank + k] for k in chosen])
    if chance(r, 0.5):
        sizes = [out[k] for k in chosen]
        # ONNX Runtime keeps no ratio along axes counted from the end, nor does it crop then.
        if opset >= 18 and "axes" in attributes and not negative and roi is None and chance(r, 0.5):
            attributes["keep_aspect_ratio_policy"] = pick(r, "not_larger", "not_smaller", "stretch")
        inputs = [x, pickroi, None, np.int64(sizes)]
        if opset < 13:
            inputs = [x, np.float32([]) if pickroi is None else pickroi, np.float32([]), np.int64(sizes)]
    else:
        scales = [1.0 if int(np.float32(d) * np.float32(s)) < 1 else s for d, s in zip(shape, scales)]
        inputs = [x, pickroi, np.float32([scales[k] for k in chosen])]
        if opset < 13 and pickroi is None:
            inputs[1] = np.float32([])
    return Case("Resize", opset, inputs, attributes, constant=(1, 2, 3) if chance(r, 0.75) else ())


@draws
def draw_upsample(r):
    rank = pick(r, 2, 4, 4)
    mode = pick(r, "nearest", "linear")
    shape = dims(r, rank, zero=0)
    scales = [1.0] * max(0, rank - 2) + [pick(r, 1.0, 2.0, 1.5, 3.0, 1.25, float(np.float32(r.uniform(1, 3)))) for _ in range(min(rank, 2))]
    x = real(r, shape)
    if chance(r, 0.5):
        return Case("Upsample", 7, [x], {"mode": mode, "scales": scales})
    return Case("Upsample", 9, [x, np.float32(scales)], {"mode": mode}, constant=(1,) if chance(r, 0.8) else ())


@draws
def draw_grid_sample(r):
    opset = pick(r, 16, 20, 22)
    rank = 4 if opset == 16 or chance(r, 0.7) else 5
    mode = pick(r, "bilinear", "nearest", "bicubic") if opset == 16 else pick(r, "linear", "nearest", "cubic" if rank == 4 else "linear")
    shape = [int(r.integers(1, 3)), int(r.integers(1, 3))] + [dim(r, 6, 0) for _ in range(rank - 2)]
    out = [shape[0]] + [dim(r, 5, 0.02) for _ in range(rank - 2)]
    spread = pick(r, 0.6, 1.0, 3.0)
    grid = (r.uniform(-spread, spread, size=out + [rank - 2])).astype(np.float32)
    if chance(r, 0.4):
        grid = (np.round(grid * 4) / 4).astype(np.float32)
    attributes = {"mode": mode, "padding_mode": pick(r, "zeros", "border", "reflection"), "align_corners": int(r.integers(2))}
    return Case("GridSample", opset, [real(r, shape), grid], attributes)


@draws
def draw_affine_grid(r):
    spatial = pick(r, 2, 3)
    n = int(r.integers(1, 3))
    size = [n, int(r.integers(1, 4))] + [dim(r, 5, 0) for _ in range(spatial)]
    # Where corners are aligned, ONNX Runtime puts the only element of an axis at 1, ONNX's function body at -1.
    corners = int(min(size[2:]) > 1 and chance(r, 0.7))
    return Case("AffineGrid", 20, [real(r, [n, spatial, spatial + 1]), np.int64(size)], {"align_corners": corners}, constant=(1,))


@draws
def draw_roi_align(r):
    opset = pick(r, 10, 16, 22)
    x = real(r, [int(r.integers(1, 4)), int(r.integers(1, 3)), dim(r, 9, 0), dim(r, 9, 0)])
    count = dim(r, 4, 0.05)
    low = r.uniform(-3, 8, size=(count, 2))
    rois = np.concatenate([low, low + r.uniform(-1, 8, size=(count, 2))], axis=1).astype(np.float32)
    attributes = {"mode": pick(r, "avg", "max"), "output_height": int(r.integers(1, 4)), "output_width": int(r.integers(1, 4)),
                  "sampling_ratio": int(pick(r, 0, 0, 1, 2, 3)), "spatial_scale": float(pick(r, 1.0, 0.5, 0.75))}
    if opset >= 16 and chance(r, 0.7):
        attributes["coordinate_transformation_mode"] = pick(r, "half_pixel", "output_half_pixel")
    return Case("RoiAlign", opset, [x, rois, integer(r, [count], np.int64, low=0, high=x.shape[0] - 1)], attributes)


@draws
def draw_max_roi_pool(r):
    x = real(r, [int(r.integers(1, 3)), int(r.integers(1, 3)), dim(r, 9, 0), dim(r, 9, 0)])
    count = dim(r, 4, 0)
    low = r.integers(-1, 8, size=(count, 2))
    rois = np.concatenate([r.integers(0, x.shape[0], size=(count, 1)), low, low + r.integers(-1, 8, size=(count, 2))], axis=1)
    rois = rois.astype(np.float32) + (np.float32(0.5) if chance(r, 0.2) else 0) * np.float32([0, 1, 1, 1, 1])
    return Case("MaxRoiPool", 7, [x, rois.astype(np.float32)],
                {"pooled_shape": [int(r.integers(1, 4)), int(r.integers(1, 4))], "spatial_scale": float(pick(r, 1.0, 0.5, 0.0625))})


@draws
def draw_non_max_suppression(r):
    batch, classes, count = int(r.integers(1, 3)), int(r.integers(1, 4)), dim(r, 9, 0.03)
    boxes = r.integers(0, 6, size=(batch, count, 4)).astype(np.float32)
    if chance(r, 0.5):
        boxes += r.uniform(0, 0.5, size=boxes.shape).astype(np.float32)
    scores = np.float32(r.integers(0, 5, size=(batch, classes, count)) / 4) if chance(r, 0.5) else r.random((batch, classes, count)).astype(np.float32)
    inputs = [boxes, scores]
    if chance(r, 0.9):
        inputs.append(np.int64([int(pick(r, 0, 1, 2, 3, 100))]))
        if chance(r, 0.8):
            inputs.append(np.float32([pick(r, 0.0, 0.25, 0.5, 1 / 3, 1.0)]))
            if chance(r, 0.6):
                inputs.append(np.float32([pick(r, 0.0, 0.25, 0.5, -1.0)]))
    return Case("NonMaxSuppression", pick(r, 10, 11), inputs, {"center_point_box": int(r.integers(2))},
                constant=tuple(range(2, len(inputs))))
