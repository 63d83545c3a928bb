"""Attention in ONNX Runtime's forms; see contrib_cases.py."""
import numpy as np

from contrib_cases import case, f16, f32, i32, i64, i8, number, random, u8

B, S, N, H = 2, 3, 2, 4
D = N * H
x, w, b = f32(B, S, 6), f32(6, 3 * D), f32(3 * D)
past = f32(2, B, N, 5, H)
T = 5 + S
padding = i32([[1, 1, 1], [1, 1, 0]])
wide_padding = i32([[1] * T, [0, 0] + [1] * (T - 2)])

# --- Attention ---
case("attention", "Attention", [x, w, b], {"num_heads": N}, constants=[1, 2])
case("attention_no_bias", "Attention", [x, w], {"num_heads": N, "scale": 0.3})
case("attention_present", "Attention", [x, w, b], {"num_heads": N}, outputs=2)
case("attention_causal", "Attention", [x, w, b], {"num_heads": N, "unidirectional": 1}, constants=[1, 2])
case("attention_past", "Attention", [x, w, b, None, past], {"num_heads": N, "unidirectional": 1}, outputs=2)
case("attention_past_one_query", "Attention", [x[:, :1], w, b, None, past], {"num_heads": N, "unidirectional": 1},
     outputs=2)
case("attention_padding", "Attention", [x, w, b, padding], {"num_heads": N})
case("attention_padding_filter", "Attention", [x, w, b, padding], {"num_heads": N, "mask_filter_value": -3.0})
case("attention_padding_past_causal", "Attention", [x, w, b, wide_padding, past], {"num_heads": N, "unidirectional": 1},
     outputs=2)
case("attention_padding_rank3", "Attention", [x, w, b, i32(random.integers(0, 2, (B, S, S)) | np.eye(S, dtype=int))],
     {"num_heads": N})
case("attention_ends", "Attention", [x, w, b, i32([3, 2])], {"num_heads": N})
case("attention_ends_starts", "Attention", [x, w, b, i32([3, 2, 1, 0])], {"num_heads": N})
case("attention_bias_all", "Attention", [x, w, b, None, None, f32(B, N, S, S)], {"num_heads": N})
case("attention_bias_one", "Attention", [x, w, b, padding, None, f32(1, N, S, S)], {"num_heads": N})
case("attention_sizes", "Attention", [x, f32(6, 8 + 8 + 12), f32(28)], {"num_heads": N, "qkv_hidden_sizes": [8, 8, 12]})
case("attention_symbolic", "Attention", [x, w, b, padding], {"num_heads": N, "unidirectional": 1}, constants=[1, 2],
     symbolic=True)
case("attention_symbolic_past", "Attention", [x, w, b, None, past], {"num_heads": N}, constants=[1, 2], symbolic=True,
     outputs=2, fixed={4: [0, 2, 4]})

# --- QAttention ---
qx, qw = u8(B, S, 6), u8(6, 3 * D)
scales = [number(0.02), number(0.01)]
case("qattention", "QAttention", [qx, qw, b, *scales, None, number(120, np.uint8), number(130, np.uint8)],
     {"num_heads": N}, constants=[1, 2, 3, 4, 6, 7])
case("qattention_signed_weights", "QAttention", [qx, i8(6, 3 * D), b, *scales, i32([3, 2]), number(120, np.uint8),
                                                 number(3, np.int8)], {"num_heads": N})
case("qattention_columns", "QAttention", [qx, i8(6, 3 * D), b, scales[0], np.abs(f32(3 * D, scale=0.01)), None,
                                          number(120, np.uint8), np.zeros(3 * D, np.int8)], {"num_heads": N},
     constants=[1, 2, 3, 4, 6, 7])
case("qattention_past", "QAttention", [qx, qw, b, *scales, None, number(120, np.uint8), number(130, np.uint8), past],
     {"num_heads": N, "unidirectional": 1}, outputs=2)

# --- MultiHeadAttention ---
q, k, v = f32(B, S, D), f32(B, 4, D), f32(B, 4, D)
case("mha", "MultiHeadAttention", [q, k, v], {"num_heads": N})
case("mha_value_size", "MultiHeadAttention", [q, k, f32(B, 4, 12)], {"num_heads": N, "scale": 0.4})
case("mha_bias", "MultiHeadAttention", [q, k, v, f32(3 * D)], {"num_heads": N})
case("mha_ends", "MultiHeadAttention", [q, k, v, None, i32([4, 2])], {"num_heads": N})
case("mha_padding", "MultiHeadAttention", [q, k, v, None, i32([[1, 1, 1, 1], [1, 1, 0, 0]])], {"num_heads": N})
case("mha_padding_rank3", "MultiHeadAttention",
     [q, k, v, None, i32(np.maximum(random.integers(0, 2, (B, S, 4)), i32([1, 0, 0, 0])))], {"num_heads": N})
case("mha_scores_bias", "MultiHeadAttention", [q, k, v, None, None, f32(B, N, S, 4)], {"num_heads": N})
case("mha_scores_bias_one_head", "MultiHeadAttention", [q, k, v, None, None, f32(1, 1, S, 4)], {"num_heads": N})
case("mha_causal", "MultiHeadAttention", [q, f32(B, S, D), f32(B, S, D)], {"num_heads": N, "unidirectional": 1})
case("mha_causal_one_query", "MultiHeadAttention", [q[:, :1], k, v], {"num_heads": N, "unidirectional": 1})
case("mha_past", "MultiHeadAttention", [q, f32(B, S, D), f32(B, S, D), None, None, None, past[0], past[1]],
     {"num_heads": N}, outputs=3)
case("mha_past_padding", "MultiHeadAttention",
     [q, f32(B, S, D), f32(B, S, D), f32(3 * D), wide_padding, None, past[0], past[1]],
     {"num_heads": N, "unidirectional": 1}, outputs=3)
case("mha_past_keys_as_input", "MultiHeadAttention", [q, f32(B, N, 5, H), f32(B, N, 5, H)], {"num_heads": N})
case("mha_scores", "MultiHeadAttention", [q, k, v, None, i32([[1, 1, 1, 1], [1, 1, 1, 0]])], {"num_heads": N},
     outputs=[0, 3], typed={3: np.float32})
case("mha_symbolic", "MultiHeadAttention", [q, k, v, f32(3 * D), None, f32(1, N, S, 4)], {"num_heads": N},
     constants=[3], symbolic=True, fixed={0: [2], 1: [2], 2: [2], 5: [0, 1]})
case("mha_symbolic_past", "MultiHeadAttention",
     [q, f32(B, S, D), f32(B, S, D), None, None, None, past[0], past[1]], {"num_heads": N}, outputs=3, symbolic=True,
     fixed={0: [2], 1: [2], 2: [2], 6: [1, 3], 7: [1, 3]})


def softmax(s):
    e = np.exp(s - s.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def attend(q, k, v):
    """[batch, position, head, size] each."""
    q, k, v = (np.moveaxis(t.astype(np.float64), 2, 1) for t in (q, k, v))
    y = softmax(q @ np.swapaxes(k, -1, -2) / np.sqrt(q.shape[-1])) @ v
    y = np.moveaxis(y, 1, 2)
    return y.reshape(*y.shape[:2], -1).astype(np.float32)


case("mha_packed", "MultiHeadAttention", [f32(B, S, N, 3, H)], {"num_heads": N},
     expected=lambda p: attend(p[:, :, :, 0], p[:, :, :, 1], p[:, :, :, 2]))
case("mha_packed_keys", "MultiHeadAttention", [q, f32(B, 4, N, 2, H)], {"num_heads": N},
     expected=lambda q, p: attend(q.reshape(B, S, N, H), p[:, :, :, 0], p[:, :, :, 1]))

# --- DecoderMaskedMultiHeadAttention ---
one = [f32(B, 1, D) for _ in range(3)]
filled = np.array([1, 1, 1, 1, 0])[None, None, :, None]
case("decoder_mha", "DecoderMaskedMultiHeadAttention", [*one, None, None, past[0], past[1], i32([3])],
     {"num_heads": N, "past_present_share_buffer": 1}, outputs=3, factors={1: filled, 2: filled})
case("decoder_mha_padding", "DecoderMaskedMultiHeadAttention",
     [*one, i32([[1, 1, 1, 1], [0, 1, 1, 1]]), None, past[0], past[1], i32([3]), None, None, f32(3 * D)],
     {"num_heads": N, "past_present_share_buffer": 1}, outputs=3, factors={1: filled, 2: filled})
case("decoder_mha_cross", "DecoderMaskedMultiHeadAttention", [one[0], past[0], past[1]], {"num_heads": N})

# --- GroupQueryAttention ---
QH, KH, size = 4, 2, 16


def group_query(name, sequence, past_length, lengths, capacity=None, batch=None, rotary=None, packed=False, extra=(),
                kind=f32, total=None, size=size, **attributes):
    """`lengths`: of each sequence with its new rows; `capacity`: of the cache, where past and present share one."""
    batch = len(lengths)
    held = past_length if capacity is None else capacity
    total = max(lengths) if total is None else total
    wide = kind(batch, sequence, (QH + 2 * KH) * size)
    qkv = [wide, None, None] if packed else [kind(batch, sequence, QH * size), kind(batch, sequence, KH * size),
                                             kind(batch, sequence, KH * size)]
    inputs = [*qkv, kind(batch, KH, held, size), kind(batch, KH, held, size), i32([n - 1 for n in lengths]), i32(total)]
    if rotary is not None:
        angles = np.outer(np.arange(32), 1 / 10000 ** (np.arange(rotary // 2) / (rotary // 2)))
        dtype = np.float16 if kind is f16 else np.float32
        inputs += [np.cos(angles).astype(dtype), np.sin(angles).astype(dtype)]
        attributes["do_rotary"] = 1
    for slot, value in extra:
        inputs += [None] * (slot + 1 - len(inputs))
        inputs[slot] = value
    options = {key: attributes.pop(key) for key in ("symbolic", "fixed", "constants") if key in attributes}
    if attributes.pop("valid_rows", False):
        # Rows of the result beyond a padded prompt and rows of the cache beyond its sequence may hold anything.
        rows, kept = np.arange(sequence), np.arange(max(total, held))
        valid = np.array([rows < n for n in lengths] if total == sequence else np.ones((batch, sequence)))[:, :, None]
        filled = np.array([kept < n for n in lengths])[:, None, :, None]
        options["factors"] = {0: valid, 1: filled, 2: filled}
    case("gqa_" + name, "GroupQueryAttention", inputs, {"num_heads": QH, "kv_num_heads": KH, **attributes}, outputs=3,
         **options)


group_query("prompt", 3, 0, [3, 3])
group_query("prompt_rotary", 3, 0, [3, 3], rotary=16)
group_query("prompt_rotary_interleaved", 3, 0, [3], rotary=16, rotary_interleaved=1)
group_query("prompt_rotary_partial", 3, 0, [3], rotary=16, size=32)
group_query("prompt_packed_rotary", 3, 0, [3, 3], rotary=16, packed=True)
group_query("prompt_window", 6, 0, [6], local_window_size=2)
group_query("prompt_softcap_scale", 3, 0, [3], softcap=2.0, scale=0.5)
group_query("prompt_smooth", 3, 0, [3], smooth_softmax=1)
group_query("prompt_sink", 3, 0, [3, 3], extra=[(11, f32(QH))])
group_query("prompt_bias", 3, 0, [3, 3], extra=[(10, f32(2, QH, 3, 3))])
group_query("prompt_f16", 3, 0, [3], kind=f16)
group_query("token", 1, 5, [6, 6])
group_query("token_ragged", 1, 5, [6, 4], valid_rows=True)
group_query("token_rotary", 1, 5, [6, 6], rotary=16)
group_query("token_rotary_packed_window", 1, 6, [7], rotary=16, packed=True, local_window_size=3)
group_query("token_window_bias_softcap", 1, 6, [7], local_window_size=3, softcap=1.5, extra=[(10, f32(1, 1, 1, 7))])
group_query("token_sink_window", 1, 6, [7], local_window_size=3, extra=[(11, f32(QH))])
group_query("token_sink_bias_ragged", 1, 5, [6, 3], extra=[(10, f32(1, QH, 1, 6)), (11, f32(QH))], valid_rows=True)
group_query("token_shared_buffer", 1, 0, [6, 5], capacity=9, rotary=16, valid_rows=True)
group_query("chunk", 2, 3, [5], rotary=16)
group_query("chunk_shared_buffer", 2, 0, [5], capacity=8, rotary=16, valid_rows=True)
group_query("prompt_shared_buffer", 3, 0, [3], capacity=8, rotary=16, valid_rows=True)
group_query("prompt_padded", 4, 0, [4, 2], rotary=16, valid_rows=True)
group_query("bidirectional", 3, 0, [3], causal=0)
group_query("token_positions", 1, 5, [6, 6], rotary=16, extra=[(9, i64([[5], [3]]))])
group_query("prompt_positions", 3, 0, [3], rotary=16, extra=[(9, i64([[2, 3, 4]]))])
group_query("symbolic_token", 1, 5, [6, 6], rotary=16, symbolic=True, constants=[7, 8],
            fixed={0: [2], 1: [2], 2: [2], 3: [1, 3], 4: [1, 3]})
group_query("symbolic_prompt", 3, 0, [3, 3], rotary=16, symbolic=True, constants=[7, 8],
            fixed={0: [2], 1: [2], 2: [2], 3: [1, 3], 4: [1, 3]})
