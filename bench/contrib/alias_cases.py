"""Operators that are, but for details, standard ones; see contrib_cases.py."""
import numpy as np

from contrib_cases import case, f32, i32, i64, number, random

case("expand_dims", "ExpandDims", [f32(2, 3), i32(1)], constants=[1])
case("expand_dims_negative", "ExpandDims", [f32(2, 3), i32(-1)], constants=[1])
case("gather_nd", "GatherND", [f32(2, 3, 4), i64([[0, 1], [1, 2]])])
case("gather_nd_i32", "GatherND", [f32(2, 3, 4), i32([[[0, 1, 2]], [[1, 2, 3]]])])
case("range", "Range", [i64(2), i64(11), i64(3)], constants=[0, 1, 2])
case("range_no_delta", "Range", [number(1.5), number(5)], constants=[0, 1])
case("range_rank1", "Range", [i32([0]), i32([6]), i32([2])], constants=[0, 1, 2])
case("pad", "Pad", [f32(2, 3), i64([1, 0, 0, 2]), number(1.5)], constants=[1, 2])
case("pad_rank2", "Pad", [f32(2, 3), i64([[0, 1, 1, 0]])], {"mode": "constant"}, constants=[1])
case("pad_reflect", "Pad", [f32(4, 3), i64([1, 1, 2, 0])], {"mode": "reflect"}, constants=[1])
case("pad_edge", "Pad", [f32(4, 3), i64([1, 1, 2, 0])], {"mode": "edge"}, constants=[1])
case("trilu", "Trilu", [f32(2, 4, 5)])
case("trilu_lower_k", "Trilu", [f32(4, 5), i64(-1)], {"upper": 0}, constants=[1])
case("unique", "Unique", [number([2, 1, 1, 3, 4, 3])], outputs=3)
for mode in ("bilinear", "nearest", "bicubic"):
    for padding in ("zeros", "border", "reflection"):
        case(f"grid_sample_{mode}_{padding}", "GridSample",
             [f32(1, 2, 4, 5), random.uniform(-1.2, 1.2, (1, 3, 4, 2)).astype(np.float32)],
             {"mode": mode, "padding_mode": padding, "align_corners": int(padding == "border")})
case("cdist_sqeuclidean", "CDist", [f32(5, 4), f32(3, 4)])
case("cdist_euclidean", "CDist", [f32(5, 4), f32(3, 4)], {"metric": "euclidean"})
case("rfft", "Rfft", [f32(2, 8)], {"normalized": 0, "onesided": 1, "signal_ndim": 1},
     expected=lambda x: np.stack([np.fft.rfft(x).real, np.fft.rfft(x).imag], -1).astype(np.float32))
