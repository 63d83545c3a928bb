"""Owns convolutional networks of the papers that no library in use defines, written from their papers' descriptions."""
import torch
from torch import nn
from torch.nn import functional as F


def conv_bn(inputs, outputs, kernel=3, stride=1, groups=1, activation=nn.ReLU6):
    """Convolution without a bias, batch normalization, and an activation unless that is None."""
    layers = [nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, groups=groups, bias=False), nn.BatchNorm2d(outputs)]
    return nn.Sequential(*layers, *([activation()] if activation else []))


class C3D(nn.Module):
    """Tran et al., "Learning Spatiotemporal Features with 3D Convolutional Networks" (2015), Fig. 3; 487 classes."""

    def __init__(self, classes=487):
        super().__init__()
        layers, inputs = [], 3
        for i, widths in enumerate([[64], [128], [256, 256], [512, 512], [512, 512]]):
            for width in widths:
                layers += [nn.Conv3d(inputs, width, 3, padding=1), nn.ReLU()]
                inputs = width
            depth = 1 if i == 0 else 2
            layers.append(nn.MaxPool3d((depth, 2, 2), (depth, 2, 2), padding=(0, 1, 1) if i == 4 else 0))
        self.features = nn.Sequential(*layers)
        self.head = nn.Sequential(nn.Linear(8192, 4096), nn.ReLU(), nn.Linear(4096, 4096), nn.ReLU(), nn.Linear(4096, classes))

    def forward(self, clip):
        return self.head(self.features(clip).flatten(1))


class UNet(nn.Module):
    """Ronneberger et al., "U-Net" (2015), Fig. 1, with padded convolutions and batch normalization; `width` is that of
    the first level (64 in the paper; 16 has the 2 million parameters that DNNFusion states)."""

    def __init__(self, width=16, classes=2):
        super().__init__()
        widths = [width << i for i in range(5)]
        pair = lambda i, o: nn.Sequential(conv_bn(i, o, activation=nn.ReLU), conv_bn(o, o, activation=nn.ReLU))
        self.down = nn.ModuleList(pair(i, o) for i, o in zip([3] + widths, widths))
        self.up = nn.ModuleList(nn.ConvTranspose2d(w, w // 2, 2, 2) for w in widths[:0:-1])
        self.merge = nn.ModuleList(pair(w, w // 2) for w in widths[:0:-1])
        self.head = nn.Conv2d(width, classes, 1)

    def forward(self, image):
        kept, x = [], image
        for i, level in enumerate(self.down):
            x = level(x if i == 0 else F.max_pool2d(x, 2))
            kept.append(x)
        for up, merge, left in zip(self.up, self.merge, kept[-2::-1]):
            x = merge(torch.cat([left, up(x)], 1))
        return self.head(x)


class InvertedResidual(nn.Module):
    """Sandler et al., "MobileNetV2" (2018), Fig. 4d; with dilation for DeepLab."""

    def __init__(self, inputs, outputs, stride, expand, dilation=1):
        super().__init__()
        hidden = inputs * expand
        self.expand = conv_bn(inputs, hidden, 1) if expand > 1 else nn.Identity()
        self.depthwise = nn.Sequential(nn.Conv2d(hidden, hidden, 3, stride, dilation, dilation, hidden, bias=False), nn.BatchNorm2d(hidden), nn.ReLU6())
        self.project = conv_bn(hidden, outputs, 1, activation=None)
        self.residual = stride == 1 and inputs == outputs

    def forward(self, x):
        y = self.project(self.depthwise(self.expand(x)))
        return x + y if self.residual else y


MOBILENET_V2 = [(1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)]


def mobilenet_v2_blocks(multiplier=1.0, output_stride=32):
    """The stem and blocks of MobileNetV2's Table 2; beyond `output_stride` dilation takes the place of strides."""
    width = lambda c: max(8, int(c * multiplier + 4) // 8 * 8)
    blocks, inputs, stride, dilation = [conv_bn(3, width(32), 3, 2)], width(32), 2, 1
    for expand, channels, count, first in MOBILENET_V2:
        for i in range(count):
            step = first if i == 0 else 1
            if step > 1 and stride >= output_stride:
                dilation, step = dilation * step, 1
            stride *= step
            blocks.append(InvertedResidual(inputs, width(channels), step, expand, dilation))
            inputs = width(channels)
    return blocks, inputs


class SSD(nn.Module):
    """Liu et al., "SSD" (2016): six maps at 300x300, class scores by softmax and boxes decoded against anchors that lie
    in the graph. Non-maximum suppression is left to the caller, as TFLite's converter and DNNFusion's counts have it."""

    def __init__(self, stem, tail, widths, extras, classes):
        super().__init__()
        self.stem, self.tail, self.extras, self.classes = stem, tail, extras, classes
        counts = [3, 6, 6, 6, 6, 6]
        self.scores = nn.ModuleList(nn.Conv2d(w, n * classes, 1 if i == 5 else 3, padding=0 if i == 5 else 1) for i, (w, n) in enumerate(zip(widths, counts)))
        self.boxes = nn.ModuleList(nn.Conv2d(w, n * 4, 1 if i == 5 else 3, padding=0 if i == 5 else 1) for i, (w, n) in enumerate(zip(widths, counts)))
        anchors = []
        for side, n, scale in zip([19, 10, 5, 3, 2, 1], counts, [0.2, 0.35, 0.5, 0.65, 0.8, 0.95]):
            y, x = torch.meshgrid((torch.arange(side) + 0.5) / side, (torch.arange(side) + 0.5) / side, indexing="ij")
            shapes = [(scale * r**0.5, scale / r**0.5) for r in (1, 2, 0.5, 3, 1 / 3)][: min(n, 5)] + [(scale * 1.15,) * 2] * (n == 6)
            anchors.append(torch.stack([torch.stack([x, y, torch.full_like(x, w), torch.full_like(x, h)], -1) for w, h in shapes], 2).flatten(0, 2))
        self.register_buffer("anchors", torch.cat(anchors))

    def forward(self, image):
        x = self.stem(image)
        maps = [x, self.tail(x)]
        for extra in self.extras:
            maps.append(extra(maps[-1]))
        flat = lambda heads, n: torch.cat([h(m).permute(0, 2, 3, 1).reshape(m.shape[0], -1, n) for h, m in zip(heads, maps)], 1)
        scores, offsets = flat(self.scores, self.classes).softmax(-1), flat(self.boxes, 4)
        centre = offsets[..., :2] * 0.1 * self.anchors[:, 2:] + self.anchors[:, :2]
        half = torch.exp(offsets[..., 2:] * 0.2) * self.anchors[:, 2:] / 2
        return scores, torch.cat([centre - half, centre + half], -1)


def mobilenet_v1_ssd(classes=21):
    """Howard et al., "MobileNets" (2017), Table 1, under SSD: 9.5 million parameters with the 21 classes of VOC."""
    layers, inputs = [conv_bn(3, 32, 3, 2, activation=nn.ReLU)], 32
    plan = [(64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2)] + [(512, 1)] * 5 + [(1024, 2), (1024, 1)]
    for width, stride in plan:
        layers.append(nn.Sequential(conv_bn(inputs, inputs, 3, stride, inputs, nn.ReLU), conv_bn(inputs, width, 1, activation=nn.ReLU)))
        inputs = width
    extra = lambda i, m, o: nn.Sequential(nn.Conv2d(i, m, 1), nn.ReLU(), nn.Conv2d(m, o, 3, 2, 1), nn.ReLU())
    extras = nn.ModuleList([extra(1024, 256, 512), extra(512, 128, 256), extra(256, 128, 256), extra(256, 128, 256)])
    return SSD(nn.Sequential(*layers[:12]), nn.Sequential(*layers[12:]), [512, 1024, 512, 256, 256, 256], extras, classes)


def mobilenet_v2_ssd(classes=91):
    """MobileNetV2 under SSD: the first map is the expansion at stride 16, as its section 6.2 says; COCO's classes."""
    blocks, inputs = mobilenet_v2_blocks()
    split = 14  # the first block of stride 32; its input has stride 16
    extra = lambda i, m, o: nn.Sequential(conv_bn(i, m, 1), conv_bn(m, o, 3, 2))
    extras = nn.ModuleList([extra(1280, 256, 512), extra(512, 128, 256), extra(256, 128, 256), extra(256, 64, 128)])
    tail = nn.Sequential(blocks[split].depthwise, blocks[split].project, *blocks[split + 1 :], conv_bn(inputs, 1280, 1))
    return SSD(nn.Sequential(*blocks[:split], blocks[split].expand), tail, [576, 1280, 512, 256, 256, 128], extras, classes)


class DeepLabV3MobileNetV2(nn.Module):
    """Chen et al., "Rethinking Atrous Convolution" (2017) over MobileNetV2 of depth 0.5 at 257x257, the form that
    TFLite's GPU page distributes: output stride 8, image pooling and a 1x1 branch, 21 classes, resized to the image."""

    def __init__(self, classes=21):
        super().__init__()
        blocks, inputs = mobilenet_v2_blocks(0.5, 8)
        self.features = nn.Sequential(*blocks)
        self.pooled, self.local = conv_bn(inputs, 256, 1, activation=nn.ReLU), conv_bn(inputs, 256, 1, activation=nn.ReLU)
        self.project, self.head = conv_bn(512, 256, 1, activation=nn.ReLU), nn.Conv2d(256, classes, 1)

    def forward(self, image):
        x = self.features(image)
        pooled = F.interpolate(self.pooled(F.adaptive_avg_pool2d(x, 1)), size=[33, 33], mode="bilinear", align_corners=True)
        x = self.head(self.project(torch.cat([pooled, self.local(x)], 1)))
        return F.interpolate(x, size=[257, 257], mode="bilinear", align_corners=True)


class DarknetStage(nn.Module):
    """A cross-stage partial stage of CSPDarknet53 (Wang et al., "CSPNet", 2020)."""

    def __init__(self, inputs, outputs, count, first=False):
        super().__init__()
        half, hidden = (outputs, outputs // 2) if first else (outputs // 2, outputs // 2)
        self.down = conv_bn(inputs, outputs, 3, 2, activation=nn.Mish)
        self.part, self.main = conv_bn(outputs, half, 1, activation=nn.Mish), conv_bn(outputs, half, 1, activation=nn.Mish)
        self.blocks = nn.ModuleList(nn.Sequential(conv_bn(half, hidden, 1, activation=nn.Mish), conv_bn(hidden, half, 3, activation=nn.Mish)) for _ in range(count))
        self.last = conv_bn(half, half, 1, activation=nn.Mish)
        self.merge = conv_bn(2 * half, outputs, 1, activation=nn.Mish)

    def forward(self, x):
        x = self.down(x)
        y = self.main(x)
        for block in self.blocks:
            y = y + block(y)
        return self.merge(torch.cat([self.last(y), self.part(x)], 1))


def leaky():
    return nn.LeakyReLU(0.1)


class YoloV4(nn.Module):
    """Bochkovskiy et al., "YOLOv4" (2020): CSPDarknet53 with Mish, SPP, PAN, three heads of 255 channels (COCO)."""

    def __init__(self, classes=80):
        super().__init__()
        conv = lambda i, o, k=1, s=1: conv_bn(i, o, k, s, activation=leaky)
        self.stem = conv_bn(3, 32, 3, activation=nn.Mish)
        widths = [32, 64, 128, 256, 512, 1024]
        self.stages = nn.ModuleList(DarknetStage(i, o, n, i == 32) for i, o, n in zip(widths, widths[1:], [1, 2, 8, 8, 4]))
        self.before = nn.Sequential(conv(1024, 512), conv(512, 1024, 3), conv(1024, 512))
        five = lambda i, o: nn.Sequential(conv(i, o), conv(o, 2 * o, 3), conv(2 * o, o), conv(o, 2 * o, 3), conv(2 * o, o))
        self.after = nn.Sequential(conv(2048, 512), conv(512, 1024, 3), conv(1024, 512))
        self.up = nn.ModuleList([conv(512, 256), conv(256, 128)])
        self.lateral = nn.ModuleList([conv(512, 256), conv(256, 128)])
        self.merge_up = nn.ModuleList([five(512, 256), five(256, 128)])
        self.down = nn.ModuleList([conv(128, 256, 3, 2), conv(256, 512, 3, 2)])
        self.merge_down = nn.ModuleList([five(512, 256), five(1024, 512)])
        self.heads = nn.ModuleList(nn.Sequential(conv(w, 2 * w, 3), nn.Conv2d(2 * w, 3 * (classes + 5), 1)) for w in (128, 256, 512))

    def forward(self, image):
        x, kept = self.stem(image), []
        for stage in self.stages:
            x = stage(x)
            kept.append(x)
        x = self.before(x)
        deep = self.after(torch.cat([F.max_pool2d(x, k, 1, k // 2) for k in (13, 9, 5)] + [x], 1))
        levels = [deep]
        for up, lateral, merge, left in zip(self.up, self.lateral, self.merge_up, kept[3:1:-1]):
            raised = F.interpolate(up(levels[-1]), scale_factor=2.0, mode="nearest")
            levels.append(merge(torch.cat([lateral(left), raised], 1)))
        outputs, x = [self.heads[0](levels[2])], levels[2]
        for down, merge, head, level in zip(self.down, self.merge_down, self.heads[1:], levels[1::-1]):
            x = merge(torch.cat([down(x), level], 1))
            outputs.append(head(x))
        return tuple(outputs)


class SplitBlock(nn.Module):
    """The cross-stage block of YOLOv8: the channels are halved once, and the outputs of all bottlenecks are joined."""

    def __init__(self, inputs, outputs, count, shortcut):
        super().__init__()
        conv = lambda i, o, k: conv_bn(i, o, k, activation=nn.SiLU)
        self.hidden, self.shortcut = outputs // 2, shortcut
        self.enter, self.leave = conv(inputs, outputs, 1), conv((2 + count) * self.hidden, outputs, 1)
        self.blocks = nn.ModuleList(nn.Sequential(conv(self.hidden, self.hidden, 3), conv(self.hidden, self.hidden, 3)) for _ in range(count))

    def forward(self, x):
        parts = list(self.enter(x).split(self.hidden, 1))
        for block in self.blocks:
            y = block(parts[-1])
            parts.append(parts[-1] + y if self.shortcut else y)
        return self.leave(torch.cat(parts, 1))


def pooled_pyramid(model, image):
    """The results of a YOLO's stages, and the last one pooled three times over 5 x 5 with all of them side by side."""
    x, kept = model.stem(image), []
    for stage in model.stages:
        x = stage(x)
        kept.append(x)
    pools = [model.pyramid_in(x)]
    for _ in range(3):
        pools.append(F.max_pool2d(pools[-1], 5, 1, 2))
    return kept, model.pyramid_out(torch.cat(pools, 1))


class YoloV8(nn.Module):
    """YOLOv8-n, written from its published description: widths 16 to 256, depths 1 2 2 1, fast spatial pyramid
    pooling, a decoupled anchor-free head with a distribution over 16 distances (Li et al., "Generalized Focal Loss"),
    boxes in pixels and class probabilities of COCO joined to [batch, 84, points]."""

    def __init__(self, classes=80, size=640):
        super().__init__()
        conv = lambda i, o, k=3, s=1: conv_bn(i, o, k, s, activation=nn.SiLU)
        self.classes = classes
        self.stem = nn.Sequential(conv(3, 16, 3, 2), conv(16, 32, 3, 2), SplitBlock(32, 32, 1, True))
        self.stages = nn.ModuleList(nn.Sequential(conv(i, o, 3, 2), SplitBlock(o, o, n, True)) for i, o, n in ((32, 64, 2), (64, 128, 2), (128, 256, 1)))
        self.pyramid_in, self.pyramid_out = conv(256, 128, 1), conv(512, 256, 1)
        self.up = nn.ModuleList([SplitBlock(384, 128, 1, False), SplitBlock(192, 64, 1, False)])
        self.down = nn.ModuleList([conv(64, 64, 3, 2), conv(128, 128, 3, 2)])
        self.merge = nn.ModuleList([SplitBlock(192, 128, 1, False), SplitBlock(384, 256, 1, False)])
        head = lambda w, hidden, o: nn.Sequential(conv(w, hidden), conv(hidden, hidden), nn.Conv2d(hidden, o, 1))
        self.boxes = nn.ModuleList(head(w, 64, 64) for w in (64, 128, 256))
        self.scores = nn.ModuleList(head(w, 80, classes) for w in (64, 128, 256))
        points, strides = [], []
        for stride in (8, 16, 32):
            y, x = torch.meshgrid(torch.arange(size // stride) + 0.5, torch.arange(size // stride) + 0.5, indexing="ij")
            points.append(torch.stack([x, y]).flatten(1))
            strides.append(torch.full((1, points[-1].shape[1]), float(stride)))
        self.register_buffer("points", torch.cat(points, 1)[None])
        self.register_buffer("strides", torch.cat(strides, 1))
        self.register_buffer("distances", torch.arange(16.0).reshape(1, 16, 1, 1))

    def forward(self, image):
        kept, deep = pooled_pyramid(self, image)
        middle = self.up[0](torch.cat([F.interpolate(deep, scale_factor=2.0, mode="nearest"), kept[1]], 1))
        fine = self.up[1](torch.cat([F.interpolate(middle, scale_factor=2.0, mode="nearest"), kept[0]], 1))
        half = self.merge[0](torch.cat([self.down[0](fine), middle], 1))
        levels = [fine, half, self.merge[1](torch.cat([self.down[1](half), deep], 1))]
        both = [torch.cat([box(l), score(l)], 1).flatten(2) for box, score, l in zip(self.boxes, self.scores, levels)]
        boxes, scores = torch.cat(both, 2).split([64, self.classes], 1)
        sides = boxes.view(boxes.shape[0], 4, 16, -1).transpose(1, 2).softmax(1)
        sides = (sides * self.distances).sum(1)
        least, most = sides.chunk(2, 1)
        low, high = self.points - least, self.points + most
        return torch.cat([torch.cat([(low + high) / 2, high - low], 1) * self.strides, scores.sigmoid()], 1)


class YoloV6(nn.Module):
    """Li et al., "YOLOv6" (2022), version n: EfficientRep of widths 16 to 256 and depths 2 4 6 2, whose blocks are 3 x 3
    convolutions as they are after re-parameterization, Rep-PAN, and an efficient decoupled head with four distances; boxes
    in pixels, the score of an object (1) and class probabilities of COCO as [batch, points, 85]. Images have any sides
    that are multiples of 32."""

    def __init__(self, classes=80):
        super().__init__()
        conv = lambda i, o, k=3, s=1: conv_bn(i, o, k, s, activation=nn.ReLU)
        chain = lambda i, o, n: nn.Sequential(*(conv(i if k == 0 else o, o) for k in range(n)))
        self.stem = conv(3, 16, 3, 2)
        self.stages = nn.ModuleList(nn.Sequential(conv(i, o, 3, 2), chain(o, o, n)) for i, o, n in ((16, 32, 2), (32, 64, 4), (64, 128, 6), (128, 256, 2)))
        self.pyramid_in, self.pyramid_out = conv(256, 128, 1), conv(512, 256, 1)
        self.reduce = nn.ModuleList([conv(256, 64, 1), conv(64, 32, 1)])
        self.enlarge = nn.ModuleList([nn.ConvTranspose2d(64, 64, 2, 2), nn.ConvTranspose2d(32, 32, 2, 2)])
        self.up = nn.ModuleList([chain(192, 64, 4), chain(96, 32, 4)])
        self.down = nn.ModuleList([conv(32, 32, 3, 2), conv(64, 64, 3, 2)])
        self.merge = nn.ModuleList([chain(64, 64, 4), chain(128, 128, 4)])
        widths = (32, 64, 128)
        head = lambda w, o: nn.Sequential(conv(w, w), nn.Conv2d(w, o, 1))
        self.enter = nn.ModuleList(conv(w, w, 1) for w in widths)
        self.scores = nn.ModuleList(head(w, classes) for w in widths)
        self.boxes = nn.ModuleList(head(w, 4) for w in widths)

    def forward(self, image):
        kept, deep = pooled_pyramid(self, image)
        deep = self.reduce[0](deep)
        middle = self.reduce[1](self.up[0](torch.cat([self.enlarge[0](deep), kept[2]], 1)))
        fine = self.up[1](torch.cat([self.enlarge[1](middle), kept[1]], 1))
        half = self.merge[0](torch.cat([self.down[0](fine), middle], 1))
        levels = [fine, half, self.merge[1](torch.cat([self.down[1](half), deep], 1))]
        found = []
        for level, enter, box, score, stride in zip(levels, self.enter, self.boxes, self.scores, (8, 16, 32)):
            x = enter(level)
            rows, columns = x.shape[2], x.shape[3]
            y = (torch.arange(rows) + 0.5)[:, None].expand(rows, columns)
            across = (torch.arange(columns) + 0.5)[None].expand(rows, columns)
            points = torch.stack([across, y], 2).flatten(0, 1)[None]
            least, most = box(x).flatten(2).transpose(1, 2).chunk(2, 2)
            low, high = points - least, points + most
            classes = score(x).flatten(2).transpose(1, 2).sigmoid()
            found.append(torch.cat([torch.cat([(low + high) / 2, high - low], 2) * stride, torch.ones_like(classes[:, :, :1]), classes], 2))
        return torch.cat(found, 1)


class DenseBlock(nn.Module):
    """Five convolutions, each of which reads all before it; a fifth of the result is added to the input."""

    def __init__(self, width, growth):
        super().__init__()
        self.convolutions = nn.ModuleList(nn.Conv2d(width + i * growth, growth if i < 4 else width, 3, padding=1) for i in range(5))

    def forward(self, x):
        parts = [x]
        for convolution in self.convolutions[:4]:
            parts.append(F.leaky_relu(convolution(torch.cat(parts, 1)), 0.2))
        return x + 0.2 * self.convolutions[4](torch.cat(parts, 1))


class ResidualDenseBlocks(nn.Module):
    def __init__(self, width, growth):
        super().__init__()
        self.blocks = nn.Sequential(*(DenseBlock(width, growth) for _ in range(3)))

    def forward(self, x):
        return x + 0.2 * self.blocks(x)


class ESRGAN(nn.Module):
    """Wang et al., "ESRGAN" (2018): 23 residual-in-residual dense blocks of width 64, four times the side."""

    def __init__(self, width=64, growth=32, blocks=23):
        super().__init__()
        self.enter = nn.Conv2d(3, width, 3, padding=1)
        self.trunk = nn.Sequential(*(ResidualDenseBlocks(width, growth) for _ in range(blocks)))
        self.convolutions = nn.ModuleList(nn.Conv2d(width, width, 3, padding=1) for _ in range(4))
        self.leave = nn.Conv2d(width, 3, 3, padding=1)

    def forward(self, image):
        x = self.enter(image)
        x = x + self.convolutions[0](self.trunk(x))
        for convolution in self.convolutions[1:3]:
            x = F.leaky_relu(convolution(F.interpolate(x, scale_factor=2.0, mode="nearest")), 0.2)
        return self.leave(F.leaky_relu(self.convolutions[3](x), 0.2))


class StyleConvolution(nn.Module):
    """Reflection padding and a convolution, after a resize where `scale` says so."""

    def __init__(self, inputs, outputs, kernel, stride=1, scale=1):
        super().__init__()
        self.scale, self.padding = scale, nn.ReflectionPad2d(kernel // 2)
        self.convolution = nn.Conv2d(inputs, outputs, kernel, stride)

    def forward(self, x):
        if self.scale > 1:
            x = F.interpolate(x, scale_factor=float(self.scale), mode="nearest")
        return self.convolution(self.padding(x))


class StyleBlock(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.layers = nn.Sequential(StyleConvolution(width, width, 3), nn.InstanceNorm2d(width, affine=True), nn.ReLU(), StyleConvolution(width, width, 3), nn.InstanceNorm2d(width, affine=True))

    def forward(self, x):
        return x + self.layers(x)


class FastStyleTransfer(nn.Module):
    """Johnson et al., "Perceptual Losses for Real-Time Style Transfer" (2016), supplement Table 1, with instance
    normalization (Ulyanov et al., 2016) and resizes before convolutions in place of transposed convolutions."""

    def __init__(self):
        super().__init__()
        step = lambda *a, **k: nn.Sequential(StyleConvolution(*a, **k), nn.InstanceNorm2d(a[1], affine=True), nn.ReLU())
        self.layers = nn.Sequential(step(3, 32, 9), step(32, 64, 3, 2), step(64, 128, 3, 2), *(StyleBlock(128) for _ in range(5)), step(128, 64, 3, scale=2), step(64, 32, 3, scale=2), StyleConvolution(32, 3, 9))

    def forward(self, image):
        return self.layers(image)
