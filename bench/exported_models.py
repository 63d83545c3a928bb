#!/usr/bin/env python3
"""Exports one small model of every family of timm and transformers, runs it at two sizes, and compares with ONNX Runtime.

exported_models.py EXE FOLDER [--source timm,transformers] [--only TEXT] [--devices opencl:0] [--forms native,groups]

Weights are random; nothing is downloaded. timm gives the smallest model of each of its modules, with a symbolic batch;
transformers each type of its AutoModel with two layers of 32 channels, with a symbolic batch and length, given tokens,
an image, or sound as a wave or as features. What was exported for one size alone runs twice at it. Files stay in
FOLDER, and a model whose file is there is not exported again. What the exporter or ONNX Runtime refuses is counted and
said. A float output passes when every element lies within rtol 1e-3 and atol 1e-4 of the output's largest magnitude, as
in `dnnopt verify`. The last line is 'N passed, M failed, K not exported'.

Needs torch, timm, transformers, onnx, onnxscript, onnxruntime and numpy from PyPI.
"""
import argparse
import contextlib
import inspect
import io
import logging
import pathlib
import signal
import sys
import warnings

import numpy as np
import torch

from real_models import compared, onnxruntime_session

EXPORT_SECONDS = 100
# What configurations of transformers call sizes, and what makes them small.
SMALL = {
    **dict.fromkeys("hidden_size d_model n_embd dim embed_dim embedding_size projection_dim "
                    "moe_intermediate_size".split(), 32),
    **dict.fromkeys("num_hidden_layers n_layer n_layers num_layers encoder_layers decoder_layers".split(), 2),
    **dict.fromkeys("num_attention_heads n_head n_heads num_heads encoder_attention_heads decoder_attention_heads "
                    "num_experts num_local_experts n_routed_experts linear_num_value_heads".split(), 4),
    **dict.fromkeys("num_key_value_heads num_experts_per_tok linear_num_key_heads".split(), 2),
    **dict.fromkeys("intermediate_size encoder_ffn_dim decoder_ffn_dim ffn_dim n_inner hidden_dim d_ff d_inner "
                    "max_position_embeddings n_positions".split(), 64),
    **dict.fromkeys("head_dim d_kv d_head kv_lora_rank q_lora_rank qk_rope_head_dim qk_nope_head_dim v_head_dim "
                    "linear_key_head_dim linear_value_head_dim patch_size window_size sliding_window".split(), 8),
    "image_size": 32, "vocab_size": 99, "rotary_dim": 4, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2,
}
# For what contradicts itself with small widths: few layers, and widths as they are.
SHALLOW = {key: number for key, number in SMALL.items()
           if "layers" in key or key in ("n_layer", "vocab_size", "pad_token_id", "bos_token_id", "eos_token_id")}


class Late(Exception):
    pass


@contextlib.contextmanager
def limited(seconds):
    def stop(*_):
        raise Late(f"longer than {seconds} s")
    signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)


def enliven(module):
    """Gives what initialization leaves at 0 or 1 other values, so that a wrong one shows."""
    for name, buffer in module.named_buffers():
        if "running_var" in name:
            buffer.uniform_(0.5, 1.5)
        elif "running_mean" in name:
            buffer.uniform_(-0.2, 0.2)
    for _, parameter in module.named_parameters():
        if parameter.ndim == 1:
            torch.nn.init.uniform_(parameter, 0.3, 1.0)


def export(module, inputs, names, axes, path):
    """Writes the model by the newer exporter, or by the older where that fails. Raises what the older says."""
    tensors = tuple(torch.from_numpy(x) for x in inputs)
    with torch.no_grad():
        module(*tensors)
    dynamic = tuple({k: torch.export.Dim.DYNAMIC for k in row} for row in axes)
    if any(isinstance(p, inspect.Parameter) and p.kind == inspect.Parameter.VAR_POSITIONAL
           for p in inspect.signature(module.forward).parameters.values()):
        dynamic = (dynamic,)
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        try:
            torch.onnx.export(module, tensors, path, dynamo=True, dynamic_shapes=dynamic, external_data=False,
                              input_names=names, output_names=["y"])
        except Late:
            raise
        except Exception:
            torch.onnx.export(module, tensors, path, dynamo=False, dynamic_axes=dict(zip(names, axes)),
                              input_names=names, output_names=["y"])


def timm_models():
    """(name, function that makes the module, the inputs of a batch, their names and symbolic axes) of each module."""
    import timm
    of_module = {}
    for name in timm.list_models():
        of_module.setdefault(timm.models._registry._model_to_module[name], []).append(name)
    for names in of_module.values():
        sizes = []
        for name in names[:25]:
            with contextlib.suppress(Exception), torch.device("meta"):
                model = timm.create_model(name, num_classes=10)
                sizes.append((sum(p.numel() for p in model.parameters()), name))
        if not sizes:
            continue
        name = min(sizes)[1]

        def make(name=name):
            model = timm.create_model(name, num_classes=10).eval()
            shape = model.default_cfg.get("input_size", (3, 224, 224))
            inputs = lambda random, batch, _: [random.standard_normal((batch, *shape)).astype(np.float32)]
            return model, inputs, ["x"], [{0: "batch"}]
        yield f"timm_{name}", make


class FirstOutput(torch.nn.Module):
    """A model of transformers by its inputs in order, and of its outputs the first."""

    def __init__(self, model, names):
        super().__init__()
        self.model, self.names = model, names

    def forward(self, *args):
        return self.model(**dict(zip(self.names, args)), return_dict=False)[0]


def shrink(config, sizes):
    for key, number in sizes.items():
        held = getattr(config, key, None)
        if isinstance(held, (int, float)) and not isinstance(held, bool):
            with contextlib.suppress(Exception):
                setattr(config, key, number)
    for part in ("text_config", "vision_config", "audio_config", "encoder", "decoder"):
        if hasattr(getattr(config, part, None), "to_dict"):
            shrink(getattr(config, part), sizes)
    if getattr(config, "layer_types", None):
        with contextlib.suppress(AttributeError):
            config.layer_types = list(config.layer_types)[:2]
    config.use_cache = False


def spoken(model, config):
    """(names, symbolic axes, function that draws inputs) of a model that hears: a wave, or features in either order."""
    main = model.main_input_name
    parts = [config, *(getattr(config, name, None) for name in ("encoder_config", "audio_config"))]
    known = ("num_mel_bins", "feature_size", "input_feat_per_channel", "feature_projection_input_dim", "input_dim",
             "n_mels", "num_features")
    told = (getattr(part, name, None) for part in parts for name in known)
    channels = next((number for number in told if isinstance(number, int)), 80)
    positions = getattr(config, "max_source_positions", 0)
    ways = [((lambda length: (2000 + 40 * length,)), {0: "batch", 1: "samples"}),
            ((lambda length: (1, 2000 + 40 * length)), {0: "batch", 2: "samples"}),
            ((lambda length: (64 + length, channels)), {0: "batch", 1: "frames"}),
            ((lambda length: (channels, 64 + length)), {0: "batch", 2: "frames"}),
            ((lambda _: (channels, 2 * positions)), {0: "batch"}),
            ((lambda _: (getattr(config, "max_length", 1), channels)), {0: "batch"})]
    names = [main] + ["decoder_input_ids"] * bool(getattr(config, "is_encoder_decoder", False))
    for shape, axis in ways[:2] * (main == "input_values") + ways[2:]:
        def inputs(random, batch, length, shape=shape):
            drawn = random.standard_normal((batch, *shape(length))).astype(np.float32)
            return [drawn, random.integers(3, 90, (batch, length))][:len(names)]
        yield names, [axis, {0: "batch", 1: "length"}][:len(names)], inputs


def seen(config):
    """As spoken, of a model that sees an image."""
    parts = [config, getattr(config, "vision_config", None), getattr(config, "backbone_config", None)]
    sides = [number for part in parts if isinstance(number := getattr(part, "image_size", None), int)]
    for side in dict.fromkeys([*sides, 64, 224]):
        shape = (getattr(config, "num_channels", 3), side, side)
        yield ["pixel_values"], [{0: "batch"}], lambda random, batch, _, shape=shape: [
            random.standard_normal((batch, *shape)).astype(np.float32)]


def read(model, config):
    """As spoken, of a model that reads tokens, or sees an image beside them."""
    known = inspect.signature(model.forward).parameters
    names = ["input_ids"] + ["attention_mask"] * ("attention_mask" in known)
    names += ["decoder_input_ids"] * bool(getattr(config, "is_encoder_decoder", False))

    def inputs(random, batch, length):
        mask = np.ones((batch, length), np.int64)
        mask[1:2, length - 2:] = 0
        return [mask if n == "attention_mask" else random.integers(3, 90, (batch, length)) for n in names]
    axes = [{0: "batch", 1: "length"}] * len(names)
    yield names, axes, inputs
    for image, batch_axis, draw in seen(config) if "pixel_values" in known else ():
        yield names + image, axes + batch_axis, lambda random, batch, length, draw=draw: [
            *inputs(random, batch, length), *draw(random, batch, length)]


def called(model, config):
    """The first way of calling a model that it takes: what transformers_models gives."""
    main = model.main_input_name
    if main not in ("input_ids", "pixel_values", "input_values", "input_features"):
        raise RuntimeError(f"its input is {main}")
    ways = (read(model, config) if main == "input_ids" else seen(config) if main == "pixel_values"
            else spoken(model, config))
    why = None
    for names, axes, inputs in ways:
        module = FirstOutput(model, names)
        try:
            with torch.no_grad():
                module(*map(torch.from_numpy, inputs(np.random.default_rng(9), 2, 16)))
            return module, inputs, names, axes
        except Late:
            raise
        except Exception as e:
            why = why or e
    raise why


def transformers_models():
    """As timm_models, of each type that AutoModel knows."""
    from transformers import CONFIG_MAPPING, AutoModel
    for kind in sorted(CONFIG_MAPPING.keys()):
        def make(kind=kind):
            why = None
            for sizes in (SMALL, SHALLOW):
                try:
                    config = CONFIG_MAPPING[kind]()
                    shrink(config, sizes)
                    model = AutoModel.from_config(config).eval()
                    if sum(p.numel() for p in model.parameters()) > 30e6:
                        raise RuntimeError("more than 30 million parameters")
                    return called(model, config)
                except Late:
                    raise
                except Exception as e:
                    why = why or e
            raise why
        yield f"transformers_{kind}", make


SOURCES = {"timm": timm_models, "transformers": transformers_models}


def prepared(name, make, folder):
    """The file of a model, and its inputs at two sizes; made where it is not there. Raises what the exporter says."""
    path, sizes = folder / f"{name}.onnx", folder / f"{name}.npz"
    if not sizes.exists():
        torch.manual_seed(0)
        with limited(EXPORT_SECONDS):
            module, inputs, names, axes = make()
            enliven(module)
            export(module, inputs(np.random.default_rng(9), 2, 16), names, axes, str(path))
        session = onnxruntime_session(path)
        kept = {input.name for input in session.get_inputs()}

        def draw(size, batch, length):
            values = inputs(np.random.default_rng(size), batch, length)
            return {n: value for n, value in zip(names, values) if n in kept}
        drawn = [draw(0, 1, 11), draw(1, 3, 24)]
        try:
            for feeds in drawn:
                session.run(None, feeds)
        except Exception:
            # Some exports hold for the sizes alone that they were traced with.
            drawn = [draw(0, 2, 16), draw(1, 2, 16)]
        np.savez(sizes, **{f"{size}:{n}": value for size, feeds in enumerate(drawn) for n, value in feeds.items()})
    held = np.load(sizes)
    return path, [{key[2:]: held[key] for key in held.files if key.startswith(f"{size}:")} for size in range(2)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("exe")
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--source", default="timm,transformers")
    parser.add_argument("--only", default="", help="models whose name holds this text")
    parser.add_argument("--devices", default="opencl:0")
    parser.add_argument("--forms", default="native,groups")
    args = parser.parse_args()
    warnings.filterwarnings("ignore")
    logging.disable(logging.WARNING)
    args.folder.mkdir(parents=True, exist_ok=True)
    passed = failed = refused = 0
    for source in args.source.split(","):
        for name, make in SOURCES[source]():
            if args.only not in name:
                continue
            try:
                path, sizes = prepared(name, make, args.folder)
                session = onnxruntime_session(path)
                expected = [session.run(None, feeds) for feeds in sizes]
            except Exception as e:
                refused += 1
                said = (str(e).splitlines() or [""])[0][:90]
                print(f"{name:48} not exported: {type(e).__name__} {said}", flush=True)
                continue
            if not all(np.isfinite(out).all() for outs in expected for out in outs):
                refused += 1
                print(f"{name:48} not exported: its outputs are not finite", flush=True)
                continue
            for device in args.devices.split(","):
                for form in args.forms.split(","):
                    results = [compared(args.exe, device, path, feeds, session, ["--form", form]) for feeds in sizes]
                    good = all(ok for ok, _ in results)
                    passed, failed = passed + good, failed + (not good)
                    print(f"{name:48} {device:10} {form:8} {'' if good else 'FAILED  '}" +
                          "; ".join(text for _, text in results), flush=True)
    print(f"{passed} passed, {failed} failed, {refused} not exported")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
