#!/usr/bin/env python3
"""Writes graphs without weights of networks that the papers measured, as bench/zoo/papers and bench/zoo/sod2 hold them.

export.py [NAME ...] [--out FOLDER] [--size N] [--list]

Each network comes from a configuration of timm, torchvision or diffusers, or is written here from its paper
(convolutional.py, attention.py, gated.py). Weights are random and leave the file: float initializers of 64 elements or more become
references into <name>.weights, which `dnnopt weights` writes. --size takes another side of the image (or of the latent)
where the network allows it, for machines that are too small for the paper's. Names of values are shortened, names of
nodes are the exporter's. Needs torch, torchvision, timm, diffusers and onnx from PyPI.
"""
import argparse
import contextlib
import os
import re
import tempfile
import warnings

import onnx
import torch

import attention
import convolutional
import gated

HERE = os.path.dirname(os.path.abspath(__file__))
LEAST = 64  # elements of a float initializer that leaves the file


def image(side):
    return {"image": torch.rand(1, 3, side, side)}


def from_timm(name):
    import timm

    return timm.create_model(name, pretrained=False, exportable=True)


def detector(name, side):
    import torchvision

    make = getattr(torchvision.models.detection, name)
    model = make(weights=None, weights_backbone=None, min_size=side, max_size=side)

    class flat(torch.nn.Module):
        """Gives the one image's results by name, in the order of the dictionary."""

        def __init__(self):
            super().__init__()
            self.model = model

        def forward(self, image):
            return tuple(self.model([image[0]])[0].values())

    return flat(), image(side)


def diffusion_unet(side):
    import diffusers

    model = diffusers.UNet2DConditionModel(sample_size=side, cross_attention_dim=768, attention_head_dim=8)

    class flat(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.model = model

        def forward(self, sample, timestep, encoder_hidden_states):
            return self.model(sample, timestep, encoder_hidden_states, return_dict=False)[0]

    inputs = {"sample": torch.rand(1, 4, side, side), "timestep": torch.tensor([10.0]), "encoder_hidden_states": torch.rand(1, 77, 768)}
    return flat(), inputs


def diffusion_decoder(side):
    import diffusers

    down, up = ("DownEncoderBlock2D",) * 4, ("UpDecoderBlock2D",) * 4
    model = diffusers.AutoencoderKL(down_block_types=down, up_block_types=up, block_out_channels=(128, 256, 512, 512), layers_per_block=2, latent_channels=4, sample_size=512)

    class flat(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.model = model

        def forward(self, latent):
            return self.model.decode(latent, return_dict=False)[0]

    return flat(), {"latent": torch.rand(1, 4, side, side)}


def diffusion_encoder(side):
    import diffusers

    down, up = ("DownEncoderBlock2D",) * 4, ("UpDecoderBlock2D",) * 4
    model = diffusers.AutoencoderKL(down_block_types=down, up_block_types=up, block_out_channels=(128, 256, 512, 512), layers_per_block=2, latent_channels=4, sample_size=512)

    class flat(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.encoder, self.quantized = model.encoder, model.quant_conv

        def forward(self, image):
            return self.quantized(self.encoder(image))

    return flat(), image(side)


def codebert(length):
    import transformers

    config = transformers.RobertaConfig(vocab_size=50265, max_position_embeddings=514, type_vocab_size=1, layer_norm_eps=1e-5, pad_token_id=1, attn_implementation="eager")
    model = transformers.RobertaModel(config, add_pooling_layer=False)

    class flat(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.model = model

        def forward(self, input_ids, attention_mask):
            return self.model(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state

    return flat(), {"input_ids": torch.randint(2, 50000, (1, length)), "attention_mask": torch.ones(1, length, dtype=torch.int64)}


def with_branches(make):
    """A network whose branches the exported graph keeps, and its inputs."""

    def made(side):
        module = make().eval()
        return torch.jit.freeze(torch.jit.script(module), optimize_numerics=False), image(side) | {"steer": torch.zeros(module.gates)}

    return made


SIDES = {"image": {2: "height", 3: "width"}}
TOKENS = {name: {1: "sequence"} for name in ("input_ids", "attention_mask")}
own = lambda make: lambda side: (make(), image(side))
DETECTIONS = ["boxes", "labels", "scores"]
# name: (what makes (module, inputs) of a side, the paper's side, the least side or None where it is fixed, outputs, source,
# and, for networks of bench/zoo/sod2, the dims that are symbols)
MODELS = {
    "skipnet": (with_branches(gated.SkipNet), 224, 64, ["logits"], "SkipNet over ResNet-50, written from the paper", SIDES),
    "convnet_aig": (with_branches(gated.ConvNetAIG), 224, 64, ["logits"], "ConvNet-AIG over ResNet-50, written from the paper", SIDES),
    "blockdrop": (with_branches(gated.BlockDrop), 224, 64, ["logits"], "BlockDrop over ResNet-101, written from the paper", SIDES),
    "dgnet": (with_branches(gated.DGNet), 224, 224, ["logits"], "DGNet over ResNet-50, written from the paper", {}),
    "ranet": (with_branches(gated.RANet), 224, 128, ["logits"], "RANet of three resolutions, written from the paper", SIDES),
    "yolov6n": (lambda side: (convolutional.YoloV6(), image(side)), 640, 64, ["detections"], "YOLOv6-n, written from the paper", SIDES),
    "sd_vae_encoder": (diffusion_encoder, 224, 64, ["moments"], "diffusers AutoencoderKL.encode, configuration of Stable Diffusion 1.5", SIDES),
    "codebert_dynamic": (codebert, 64, 8, ["hidden"], "transformers RobertaModel, configuration of CodeBERT", TOKENS),
    "autoformer_small": (own(attention.AutoFormer), 224, None, ["logits"], "AutoFormer-small, written from the paper"),
    "biformer_small": (own(attention.BiFormer), 224, None, ["logits"], "BiFormer-S, written from the paper"),
    "crossformer_small": (own(attention.CrossFormer), 224, None, ["logits"], "CrossFormer-S, written from the paper"),
    "cswin_small": (own(attention.CSwin), 224, None, ["logits"], "CSWin-S, written from the paper"),
    "flatten_pvt_medium": (own(attention.FlattenFormer), 224, None, ["logits"], "FLatten-PVT-M, written from the paper"),
    "smt_small": (own(attention.SMT), 224, None, ["logits"], "SMT-S, written from the paper"),
    "sd_unet": (diffusion_unet, 32, 16, ["noise"], "diffusers UNet2DConditionModel, configuration of Stable Diffusion 1.5"),
    "sd_vae_decoder": (diffusion_decoder, 32, 16, ["image"], "diffusers AutoencoderKL.decode, configuration of Stable Diffusion 1.5"),
    "yolov8n": (lambda side: (convolutional.YoloV8(size=side), image(side)), 640, 64, ["detections"], "YOLOv8-n, written from its description"),
    "yolov4": (own(convolutional.YoloV4), 320, 64, ["fine", "middle", "coarse"], "YOLOv4, written from the paper"),
    "c3d": (lambda side: (convolutional.C3D(), {"clip": torch.rand(1, 3, 16, side, side)}), 112, None, ["scores"], "C3D, written from the paper"),
    "unet": (own(convolutional.UNet), 512, 64, ["logits"], "U-Net of width 16, written from the paper"),
    "mobilenetv1_ssd": (own(convolutional.mobilenet_v1_ssd), 300, None, ["scores", "boxes"], "MobileNetV1 under SSD, written from the papers"),
    "mobilenetv2_ssd": (own(convolutional.mobilenet_v2_ssd), 300, None, ["scores", "boxes"], "MobileNetV2 under SSD, written from the papers"),
    "deeplabv3_mobilenetv2": (own(convolutional.DeepLabV3MobileNetV2), 257, None, ["logits"], "DeepLabV3 over MobileNetV2 0.5, written from the papers"),
    "mobilenetv3_large_100": (lambda side: (from_timm("mobilenetv3_large_100"), image(side)), 224, 64, ["logits"], "timm mobilenetv3_large_100"),
    "esrgan": (own(convolutional.ESRGAN), 50, 16, ["enlarged"], "ESRGAN with 23 blocks, written from the paper"),
    "fast_style_transfer": (own(convolutional.FastStyleTransfer), 1024, 64, ["styled"], "fast style transfer, written from the papers"),
    "fasterrcnn_resnet50": (lambda side: detector("fasterrcnn_resnet50_fpn", side), 320, 224, DETECTIONS, "torchvision fasterrcnn_resnet50_fpn"),
    "maskrcnn_resnet50": (lambda side: detector("maskrcnn_resnet50_fpn", side), 320, 224, DETECTIONS + ["masks"], "torchvision maskrcnn_resnet50_fpn"),
}


def graphs(graph):
    yield graph
    for node in graph.node:
        for attribute in node.attribute:
            for inner in ([attribute.g] if attribute.type == onnx.AttributeProto.GRAPH else attribute.graphs):
                yield from graphs(inner)


def strip(model, name):
    """Takes weights, notes of the exporter and long names of values out of `model`."""
    offset = 0
    for graph in graphs(model.graph):
        for tensor in graph.initializer:
            count = 1
            for dim in tensor.dims:
                count *= dim
            if tensor.data_type != onnx.TensorProto.FLOAT or count < LEAST:
                continue
            for field in ("raw_data", "float_data"):
                tensor.ClearField(field)
            del tensor.external_data[:]
            tensor.data_location = onnx.TensorProto.EXTERNAL
            for key, value in (("location", name + ".weights"), ("offset", offset), ("length", 4 * count)):
                tensor.external_data.add(key=key, value=str(value))
            offset += (4 * count + 63) // 64 * 64
    kept = {v.name for v in [*model.graph.input, *model.graph.output]} | {""}
    kept |= {t.name for g in graphs(model.graph) for t in g.initializer if not re.match(r"^(onnx::|/)", t.name)}
    short = {}

    def rename(value):
        return value if value in kept else short.setdefault(value, f"v{len(short)}")

    for graph in graphs(model.graph):
        for part in (graph.node, graph.initializer, graph.input, graph.output):
            for item in part:
                item.ClearField("doc_string")
                del item.metadata_props[:]
        for node in graph.node:
            node.input[:] = [rename(v) for v in node.input]
            node.output[:] = [rename(v) for v in node.output]
        for item in [*graph.initializer, *graph.input, *graph.output]:
            item.name = rename(item.name)
        del graph.value_info[:]
        del graph.metadata_props[:]
    del model.metadata_props[:]
    model.ClearField("doc_string")
    model.graph.name = name
    return offset


def lift_constants(model):
    """Constants of LEAST elements and more, which freezing leaves in the bodies, become initializers of the model."""
    for graph in list(graphs(model.graph)):
        for node in [n for n in graph.node if n.op_type == "Constant"]:
            tensor = next((a.t for a in node.attribute if a.name == "value"), None)
            if tensor is None or tensor.data_type != onnx.TensorProto.FLOAT or len(tensor.raw_data) < 4 * LEAST:
                continue
            lifted = model.graph.initializer.add()
            lifted.CopyFrom(tensor)
            lifted.name = f"w{len(model.graph.initializer)}"
            graph.node.remove(node)
            for inner in graphs(model.graph):
                for reader in inner.node:
                    reader.input[:] = [lifted.name if v == node.output[0] else v for v in reader.input]


def export(name, folder, size=None):
    make, side, least, outputs, source, *dims = MODELS[name]
    if size and (least is None or size < least):
        raise SystemExit(f"{name}: the side is {side}" + (f", at least {least}" if least else " and cannot change"))
    torch.manual_seed(0)
    module, inputs = make(size or side)
    module.eval()
    symbolic = dims[0] if dims else None
    with tempfile.TemporaryDirectory() as scratch, warnings.catch_warnings(), open(os.devnull, "w") as quiet:
        warnings.simplefilter("ignore")
        path = os.path.join(scratch, "model.onnx")
        with contextlib.redirect_stdout(quiet), torch.no_grad():
            torch.onnx.export(module, tuple(inputs.values()), path, input_names=list(inputs), output_names=outputs, opset_version=17, dynamo=False, do_constant_folding=False, dynamic_axes=symbolic)
        model = onnx.load(path, load_external_data=False)
    if symbolic is not None:
        lift_constants(model)
    total = strip(model, name)
    folder = folder or os.path.join(os.path.dirname(HERE), "papers" if symbolic is None else "sod2")
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, name + ".onnx")
    onnx.save(model, path)
    print(f"{name}: {len(model.graph.node)} nodes, {os.path.getsize(path) // 1024} KB, {total / 4e6:.1f} M parameters, side {size or side}; {source}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--out", help="bench/zoo/papers, or bench/zoo/sod2 for networks with symbols")
    parser.add_argument("--size", type=int)
    parser.add_argument("--list", action="store_true")
    a = parser.parse_args()
    unknown = [n for n in a.names if n not in MODELS]
    if unknown:
        parser.error(f"no network {', '.join(unknown)}; there are {', '.join(MODELS)}")
    if a.list:
        for name, (_, side, least, _, source, *_) in MODELS.items():
            print(f"{name}: {source}; side {side}" + (f", at least {least}" if least else ""))
        return
    for name in a.names or MODELS:
        export(name, a.out, a.size)


if __name__ == "__main__":
    main()
