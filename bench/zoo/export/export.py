#!/usr/bin/env python3
"""Writes graphs without weights of networks that the papers measured, as bench/zoo/papers holds them.

export.py [NAME ...] [--out FOLDER] [--size N] [--list]

Each network comes from a configuration of timm, torchvision or diffusers, or is written here from its paper
(convolutional.py, attention.py). Weights are random and leave the file: float initializers of 64 elements or more become
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


own = lambda make: lambda side: (make(), image(side))
DETECTIONS = ["boxes", "labels", "scores"]
# name: (what makes (module, inputs) of a side, the paper's side, the least side or None where it is fixed, outputs, source)
MODELS = {
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


def export(name, folder, size=None):
    make, side, least, outputs, source = MODELS[name]
    if size and (least is None or size < least):
        raise SystemExit(f"{name}: the side is {side}" + (f", at least {least}" if least else " and cannot change"))
    torch.manual_seed(0)
    module, inputs = make(size or side)
    module.eval()
    with tempfile.TemporaryDirectory() as scratch, warnings.catch_warnings(), open(os.devnull, "w") as quiet:
        warnings.simplefilter("ignore")
        path = os.path.join(scratch, "model.onnx")
        with contextlib.redirect_stdout(quiet), torch.no_grad():
            torch.onnx.export(module, tuple(inputs.values()), path, input_names=list(inputs), output_names=outputs, opset_version=17, dynamo=False, do_constant_folding=False)
        model = onnx.load(path, load_external_data=False)
    total = strip(model, name)
    path = os.path.join(folder, name + ".onnx")
    onnx.save(model, path)
    print(f"{name}: {len(model.graph.node)} nodes, {os.path.getsize(path) // 1024} KB, {total / 4e6:.1f} M parameters, side {size or side}; {source}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--out", default=os.path.join(os.path.dirname(HERE), "papers"))
    parser.add_argument("--size", type=int)
    parser.add_argument("--list", action="store_true")
    a = parser.parse_args()
    unknown = [n for n in a.names if n not in MODELS]
    if unknown:
        parser.error(f"no network {', '.join(unknown)}; there are {', '.join(MODELS)}")
    if a.list:
        for name, (_, side, least, _, source) in MODELS.items():
            print(f"{name}: {source}; side {side}" + (f", at least {least}" if least else ""))
        return
    os.makedirs(a.out, exist_ok=True)
    for name in a.names or MODELS:
        export(name, a.out, a.size)


if __name__ == "__main__":
    main()
