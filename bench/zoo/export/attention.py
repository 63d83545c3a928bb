"""Owns vision transformers of SmartMem's Table 7 that no library in use defines, written from their papers.

Sizes are those of the published variant with the parameters and multiply-accumulates of the table; each class names it.
"""
import torch
from torch import nn
from torch.nn import functional as F


class LayerNorm2d(nn.LayerNorm):
    """Layer normalization over the channels of [N, C, H, W]."""

    def forward(self, x):
        return super().forward(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)


class MLP(nn.Sequential):
    def __init__(self, width, hidden):
        super().__init__(nn.Linear(width, hidden), nn.GELU(), nn.Linear(hidden, width))


class Downsample(nn.Module):
    """A strided convolution between stages on tokens: [B, H*W, C] in, [B, H*W/4, D] out, both normalized."""

    def __init__(self, inputs, outputs, kernel=3, stride=2):
        super().__init__()
        self.convolution, self.norm = nn.Conv2d(inputs, outputs, kernel, stride, (kernel - 1) // 2), nn.LayerNorm(outputs)

    def forward(self, x, side):
        x = self.convolution(x.transpose(1, 2).reshape(x.shape[0], -1, side, side))
        return self.norm(x.flatten(2).transpose(1, 2)), x.shape[-1]


# ---------------------------------------------------------------------------------------------------------- AutoFormer


class RelativeAttention(nn.Module):
    """Attention with relative positions in two directions for keys and values (Chen et al., "AutoFormer", 2021, sec. 3.2;
    Wu et al., "iRPE", 2021); `count` patches a side and one class token."""

    def __init__(self, width, heads, count=14, head=64, reach=14):
        super().__init__()
        self.heads, self.head = heads, head
        self.qkv, self.project = nn.Linear(width, 3 * heads * head), nn.Linear(heads * head, width)
        self.tables = nn.ParameterList(nn.Parameter(torch.randn(2 * reach + 2, head) * 0.02) for _ in range(4))
        place = torch.arange(count * count)
        apart = lambda p: F.pad((p[None] - p[:, None]).clamp(-reach, reach) + reach + 1, (1, 0, 1, 0))
        self.register_buffer("rows", apart(place // count))
        self.register_buffer("columns", apart(place % count))

    def forward(self, x):
        b, n, _ = x.shape
        q, k, v = self.qkv(x).reshape(b, n, 3, self.heads, self.head).permute(2, 0, 3, 1, 4).unbind(0)
        scores = q @ k.transpose(-2, -1)
        keys = self.tables[0][self.rows] + self.tables[1][self.columns]
        by_row = lambda t: t.permute(2, 0, 1, 3).reshape(n, self.heads * b, -1)
        scores = scores + (by_row(q) @ keys.transpose(2, 1)).transpose(1, 0).reshape(b, self.heads, n, n)
        weights = (scores * self.head**-0.5).softmax(-1)
        y = (weights @ v).transpose(1, 2).reshape(b, n, -1)
        values = self.tables[2][self.rows] + self.tables[3][self.columns]
        far = (by_row(weights) @ values).transpose(1, 0).reshape(b, self.heads, n, -1)
        return self.project(y + far.transpose(2, 1).reshape(b, n, -1))


class AutoFormer(nn.Module):
    """AutoFormer-small: 13 blocks of width 384, heads and ratios by block as the search found them."""

    HEADS = [6, 6, 5, 7, 5, 5, 5, 6, 6, 7, 7, 6, 7]
    RATIOS = [3, 3.5, 3, 3.5, 4, 4, 4, 4, 4, 4, 4, 3.5, 4]

    def __init__(self, width=384, classes=1000):
        super().__init__()
        self.patch = nn.Conv2d(3, width, 16, 16)
        self.token, self.position = nn.Parameter(torch.zeros(1, 1, width)), nn.Parameter(torch.randn(1, 197, width) * 0.02)
        block = lambda h, r: nn.ModuleList([nn.LayerNorm(width), RelativeAttention(width, h), nn.LayerNorm(width), MLP(width, int(width * r))])
        self.blocks = nn.ModuleList(block(h, r) for h, r in zip(self.HEADS, self.RATIOS))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, classes)

    def forward(self, image):
        x = self.patch(image).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(x.shape[0], -1, -1), x], 1) + self.position
        for norm1, attention, norm2, mlp in self.blocks:
            x = x + attention(norm1(x))
            x = x + mlp(norm2(x))
        return self.head(self.norm(x)[:, 1:].mean(1))


# ------------------------------------------------------------------------------------------------------------ BiFormer


class BiLevelAttention(nn.Module):
    """Bi-level routing attention (Zhu et al., "BiFormer", 2023, Algorithm 1): each of 7x7 regions attends to the `top`
    regions whose mean keys are nearest to its mean query; a depthwise 5x5 of the values is added."""

    def __init__(self, width, heads, top, regions=7):
        super().__init__()
        self.heads, self.top, self.regions, self.scale = heads, top, regions, (width // heads) ** -0.5
        self.qkv, self.project = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.local = nn.Conv2d(width, width, 5, 1, 2, groups=width)

    def forward(self, x):  # [B, H, W, C]
        b, h, w, c = x.shape
        n, d = self.regions, c // self.heads
        side, tokens = h // n, (h // n) * (w // n)
        parts = x.reshape(b, n, side, n, side, c).permute(0, 1, 3, 2, 4, 5).reshape(b, n * n, tokens, c)
        q, k, v = self.qkv(parts).split(c, -1)
        near = ((q.mean(2) * c**-0.5) @ k.mean(2).transpose(1, 2)).topk(self.top, -1)[1]
        chosen = near.reshape(b, n * n * self.top, 1, 1).expand(-1, -1, tokens, c)
        gather = lambda t: torch.gather(t, 1, chosen).reshape(b * n * n, self.top * tokens, self.heads, d)
        query = q.reshape(b * n * n, tokens, self.heads, d).transpose(1, 2)
        weights = (query * self.scale @ gather(k).permute(0, 2, 3, 1)).softmax(-1)
        y = (weights @ gather(v).transpose(1, 2)).transpose(1, 2).reshape(b, n, n, side, side, c)
        whole = lambda t: t.reshape(b, n, n, side, side, c).permute(0, 1, 3, 2, 4, 5).reshape(b, h, w, c)
        local = self.local(whole(v).permute(0, 3, 1, 2)).permute(0, 2, 3, 1)
        return self.project(whole(y) + local)


class FullAttention(nn.Module):
    """Plain attention over all pixels of [B, H, W, C]: BiFormer's last stage."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads, self.qkv, self.project = heads, nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x):
        b, h, w, c = x.shape
        q, k, v = self.qkv(x).reshape(b, h * w, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4).unbind(0)
        y = (q * (c // self.heads) ** -0.5 @ k.transpose(-2, -1)).softmax(-1) @ v
        return self.project(y.transpose(1, 2).reshape(b, h, w, c))


class BiFormerBlock(nn.Module):
    def __init__(self, width, heads, top):
        super().__init__()
        self.place = nn.Conv2d(width, width, 3, 1, 1, groups=width)
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = BiLevelAttention(width, heads, top) if top else FullAttention(width, heads)
        self.mlp = MLP(width, 3 * width)

    def forward(self, x):
        x = (x + self.place(x)).permute(0, 2, 3, 1)
        x = x + self.attention(self.norm1(x))
        return (x + self.mlp(self.norm2(x))).permute(0, 3, 1, 2)


class BiFormer(nn.Module):
    """BiFormer-S: depths 4 4 18 4, widths 64 to 512, heads of 32, top 1 4 16 regions and full attention at last."""

    def __init__(self, depths=(4, 4, 18, 4), widths=(64, 128, 256, 512), classes=1000):
        super().__init__()
        stem = nn.Sequential(nn.Conv2d(3, 32, 3, 2, 1), nn.BatchNorm2d(32), nn.GELU(), nn.Conv2d(32, 64, 3, 2, 1), nn.BatchNorm2d(64))
        steps = [nn.Sequential(nn.Conv2d(i, o, 3, 2, 1), nn.BatchNorm2d(o)) for i, o in zip(widths, widths[1:])]
        self.steps = nn.ModuleList([stem] + steps)
        self.stages = nn.ModuleList(nn.Sequential(*(BiFormerBlock(w, w // 32, t) for _ in range(d))) for d, w, t in zip(depths, widths, (1, 4, 16, 0)))
        self.norm, self.head = nn.BatchNorm2d(widths[-1]), nn.Linear(widths[-1], classes)

    def forward(self, image):
        x = image
        for step, stage in zip(self.steps, self.stages):
            x = stage(step(x))
        return self.head(self.norm(x).flatten(2).mean(-1))


# --------------------------------------------------------------------------------------------------------- CrossFormer


class GroupAttention(nn.Module):
    """Attention in groups of G x G, with a bias that a small network makes of the positions (Wang et al.,
    "CrossFormer", 2021, sec. 3.2.2); groups are neighbours (short distance) or every I-th pixel (long distance)."""

    def __init__(self, width, heads, group, interval):
        super().__init__()
        self.heads, self.group, self.interval = heads, group, interval
        self.qkv, self.project = nn.Linear(width, 3 * width), nn.Linear(width, width)
        small = width // 4
        step = lambda o: nn.Sequential(nn.LayerNorm(small), nn.ReLU(), nn.Linear(small, o))
        self.bias = nn.Sequential(nn.Linear(2, small), step(small), step(small), step(heads))
        line = torch.arange(1 - group, group)
        self.register_buffer("offsets", torch.stack(torch.meshgrid(line, line, indexing="ij")).flatten(1).t().float())
        place = torch.arange(group * group)
        apart = lambda p: p[:, None] - p[None] + group - 1
        self.register_buffer("index", apart(place // group) * (2 * group - 1) + apart(place % group))

    def forward(self, x, side):  # [B, H*W, C]
        b, _, c = x.shape
        g, n = self.group, side // self.group
        x = x.reshape(b, side, side, c)
        if self.interval:
            x = x.reshape(b, g, n, g, n, c).permute(0, 2, 4, 1, 3, 5)
        else:
            x = x.reshape(b, n, g, n, g, c).permute(0, 1, 3, 2, 4, 5)
        x = x.reshape(b * n * n, g * g, c)
        q, k, v = self.qkv(x).reshape(b * n * n, g * g, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4).unbind(0)
        scores = (q * (c // self.heads) ** -0.5) @ k.transpose(-2, -1)
        bias = self.bias(self.offsets)[self.index.view(-1)].view(g * g, g * g, -1).permute(2, 0, 1)
        y = self.project(((scores + bias).softmax(-1) @ v).transpose(1, 2).reshape(b * n * n, g * g, c))
        y = y.reshape(b, n, n, g, g, c)
        y = y.permute(0, 3, 1, 4, 2, 5) if self.interval else y.permute(0, 1, 3, 2, 4, 5)
        return y.reshape(b, side * side, c)


class CrossScale(nn.Module):
    """Convolutions of several kernels and one stride, whose outputs are joined: the first gets half of the channels."""

    def __init__(self, inputs, outputs, kernels, stride):
        super().__init__()
        parts = [outputs // 2 ** (i + 1) for i in range(len(kernels))]
        parts[-1] = outputs - sum(parts[:-1])
        self.layers = nn.ModuleList(nn.Conv2d(inputs, o, k, stride, (k - stride) // 2) for o, k in zip(parts, kernels))

    def forward(self, x):
        return torch.cat([layer(x) for layer in self.layers], 1)


class CrossFormer(nn.Module):
    """CrossFormer-S: depths 2 2 6 2, width 96, groups of 7, long distances 8 4 2 1."""

    def __init__(self, depths=(2, 2, 6, 2), width=96, heads=(3, 6, 12, 24), classes=1000):
        super().__init__()
        self.patch, self.enter = CrossScale(3, width, (4, 8, 16, 32), 4), nn.LayerNorm(width)
        self.stages, self.merges = nn.ModuleList(), nn.ModuleList()
        for i, (depth, head) in enumerate(zip(depths, heads)):
            w = width << i
            block = lambda j: nn.ModuleList([nn.LayerNorm(w), GroupAttention(w, head, 7, j % 2 == 1 and i < 3), nn.LayerNorm(w), MLP(w, 4 * w)])
            self.stages.append(nn.ModuleList(block(j) for j in range(depth)))
            if i < 3:
                self.merges.append(nn.ModuleList([nn.LayerNorm(w), CrossScale(w, 2 * w, (2, 4), 2)]))
        self.norm, self.head = nn.LayerNorm(8 * width), nn.Linear(8 * width, classes)

    def forward(self, image):
        x = self.patch(image)
        side = x.shape[-1]
        x = self.enter(x.flatten(2).transpose(1, 2))
        for i, stage in enumerate(self.stages):
            for norm1, attention, norm2, mlp in stage:
                x = x + attention(norm1(x), side)
                x = x + mlp(norm2(x))
            if i < 3:
                norm, merge = self.merges[i]
                x = merge(norm(x).transpose(1, 2).reshape(x.shape[0], -1, side, side))
                side = x.shape[-1]
                x = x.flatten(2).transpose(1, 2)
        return self.head(self.norm(x).mean(1))


# --------------------------------------------------------------------------------------------------------------- CSwin


class StripeAttention(nn.Module):
    """Attention inside of stripes, with locally enhanced positions (Dong et al., "CSWin", 2022, sec. 3.2 and 3.3)."""

    def __init__(self, width, heads, rows, columns):
        super().__init__()
        self.heads, self.rows, self.columns, self.scale = heads, rows, columns, (width // heads) ** -0.5
        self.local = nn.Conv2d(width, width, 3, 1, 1, groups=width)

    def stripes(self, x, side):  # [B, H*W, C] -> [B', C, rows, columns]
        b, _, c = x.shape
        x = x.transpose(1, 2).reshape(b, c, side // self.rows, self.rows, side // self.columns, self.columns)
        return x.permute(0, 2, 4, 1, 3, 5).reshape(-1, c, self.rows, self.columns)

    def heads_of(self, x):  # [B', C, rows, columns] -> [B', heads, rows*columns, d]
        return x.reshape(x.shape[0], self.heads, x.shape[1] // self.heads, -1).transpose(2, 3)

    def forward(self, q, k, v, side):
        b, _, c = q.shape
        values = self.stripes(v, side)
        local = self.heads_of(self.local(values))
        q, k = self.heads_of(self.stripes(q, side)), self.heads_of(self.stripes(k, side))
        y = ((q * self.scale) @ k.transpose(-2, -1)).softmax(-1) @ self.heads_of(values) + local
        y = y.transpose(1, 2).reshape(b, side // self.rows, side // self.columns, self.rows, self.columns, c)
        return y.permute(0, 1, 3, 2, 4, 5).reshape(b, side * side, c)


class CSwinBlock(nn.Module):
    def __init__(self, width, heads, stripe, side):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.project, self.mlp = nn.Linear(width, 3 * width), nn.Linear(width, width), MLP(width, 4 * width)
        if stripe == side:
            self.parts = nn.ModuleList([StripeAttention(width, heads, side, side)])
        else:
            half = (width // 2, heads // 2)
            self.parts = nn.ModuleList([StripeAttention(*half, side, stripe), StripeAttention(*half, stripe, side)])

    def forward(self, x, side):
        qkv = [t.chunk(len(self.parts), -1) for t in self.qkv(self.norm1(x)).chunk(3, -1)]
        x = x + self.project(torch.cat([part(*(t[i] for t in qkv), side) for i, part in enumerate(self.parts)], -1))
        return x + self.mlp(self.norm2(x))


class CSwin(nn.Module):
    """CSWin-S: depths 2 4 32 2, width 64, stripes 1 2 7 7, heads 2 4 8 16."""

    def __init__(self, depths=(2, 4, 32, 2), width=64, classes=1000):
        super().__init__()
        self.patch, self.enter = nn.Conv2d(3, width, 7, 4, 2), nn.LayerNorm(width)
        self.stages = nn.ModuleList()
        for i, (depth, stripe, heads) in enumerate(zip(depths, (1, 2, 7, 7), (2, 4, 8, 16))):
            self.stages.append(nn.ModuleList(CSwinBlock(width << i, heads, stripe, 56 >> i) for _ in range(depth)))
        self.downs = nn.ModuleList(Downsample(width << i, width << i + 1) for i in range(3))
        self.norm, self.head = nn.LayerNorm(8 * width), nn.Linear(8 * width, classes)

    def forward(self, image):
        x = self.patch(image)
        side = x.shape[-1]
        x = self.enter(x.flatten(2).transpose(1, 2))
        for i, stage in enumerate(self.stages):
            for block in stage:
                x = block(x, side)
            if i < 3:
                x, side = self.downs[i](x, side)
        return self.head(self.norm(x).mean(1))


# ------------------------------------------------------------------------------------------------------- FlattenFormer


class FocusedAttention(nn.Module):
    """Focused linear attention (Han et al., "FLatten Transformer", 2023, sec. 4): queries and keys are cubed and scaled
    back to their norm, products associate the other way, a depthwise 5x5 of the values is added."""

    def __init__(self, width, heads, side, power=3):
        super().__init__()
        self.heads, self.power = heads, power
        self.q, self.kv, self.project = nn.Linear(width, width), nn.Linear(width, 2 * width), nn.Linear(width, width)
        self.local = nn.Conv2d(width // heads, width // heads, 5, 1, 2, groups=width // heads)
        self.scale = nn.Parameter(torch.zeros(1, 1, width))
        self.position = nn.Parameter(torch.randn(1, side * side, width) * 0.02)

    def forward(self, x, side):
        b, n, c = x.shape
        q = self.q(x)
        k, v = self.kv(x).chunk(2, -1)
        k = k + self.position
        scale = F.softplus(self.scale)
        focus = lambda t: (F.relu(t) + 1e-6) / scale
        cubed = lambda t: t**self.power / (t**self.power).norm(dim=-1, keepdim=True) * t.norm(dim=-1, keepdim=True)
        heads = lambda t: t.reshape(b, n, self.heads, c // self.heads).transpose(1, 2).reshape(b * self.heads, n, -1)
        q, k, v = heads(cubed(focus(q))), heads(cubed(focus(k))), heads(v)
        z = 1 / (q @ k.mean(1, keepdim=True).transpose(-2, -1) + 1e-6)
        y = q @ ((k.transpose(-2, -1) * n**-0.5) @ (v * n**-0.5)) * z
        local = self.local(v.transpose(1, 2).reshape(b * self.heads, -1, side, side))
        y = y + local.flatten(2).transpose(1, 2)
        return self.project(y.reshape(b, self.heads, n, -1).transpose(1, 2).reshape(b, n, c))


class FlattenFormer(nn.Module):
    """FLatten-PVT-M: depths 3 4 18 3, widths 64 128 320 512, focused linear attention of unreduced keys throughout."""

    def __init__(self, depths=(3, 4, 18, 3), widths=(64, 128, 320, 512), classes=1000):
        super().__init__()
        self.patches, self.stages, self.places = nn.ModuleList(), nn.ModuleList(), nn.ParameterList()
        for i, (depth, w, heads, ratio) in enumerate(zip(depths, widths, (1, 2, 5, 8), (8, 8, 4, 4))):
            step, side = (4, 56) if i == 0 else (2, 56 >> i)
            self.patches.append(Downsample(3 if i == 0 else widths[i - 1], w, step, step))
            self.patches[-1].convolution.padding = (0, 0)
            self.places.append(nn.Parameter(torch.randn(1, side * side, w) * 0.02))
            block = lambda: nn.ModuleList([nn.LayerNorm(w), FocusedAttention(w, heads, side), nn.LayerNorm(w), MLP(w, ratio * w)])
            self.stages.append(nn.ModuleList(block() for _ in range(depth)))
        self.norm, self.head = nn.LayerNorm(widths[-1]), nn.Linear(widths[-1], classes)

    def forward(self, image):
        x, side = image.flatten(2).transpose(1, 2), image.shape[-1]
        for patch, place, stage in zip(self.patches, self.places, self.stages):
            x, side = patch(x, side)
            x = x + place
            for norm1, attention, norm2, mlp in stage:
                x = x + attention(norm1(x), side)
                x = x + mlp(norm2(x))
        return self.head(self.norm(x).mean(1))


# ----------------------------------------------------------------------------------------------------------------- SMT


class ScaleModulation(nn.Module):
    """Multi-head mixed convolution and scale-aware aggregation (Lin et al., "SMT", 2023, sec. 3.1): depthwise kernels of
    3 5 7 9 on a quarter of the channels each, channels of all heads mixed in groups, then a product with the values."""

    def __init__(self, width, heads=4, expand=2):
        super().__init__()
        self.heads, part = heads, width // heads
        self.values, self.source, self.project = nn.Linear(width, width), nn.Linear(width, width), nn.Linear(width, width)
        self.local = nn.ModuleList(nn.Conv2d(part, part, 3 + 2 * i, 1, 1 + i, groups=part) for i in range(heads))
        self.mix = nn.Sequential(nn.Conv2d(width, width * expand, 1, groups=part), nn.BatchNorm2d(width * expand), nn.GELU(), nn.Conv2d(width * expand, width, 1))

    def forward(self, x, side):
        b, n, c = x.shape
        values = self.values(x)
        s = self.source(x).reshape(b, side, side, self.heads, c // self.heads).permute(3, 0, 4, 1, 2)
        s = torch.cat([local(s[i]).unsqueeze(2) for i, local in enumerate(self.local)], 2)
        s = self.mix(s.reshape(b, c, side, side)).reshape(b, c, n).permute(0, 2, 1)
        return self.project(s * values)


class SMTAttention(nn.Module):
    """Attention over all tokens; a depthwise 3x3 of the values is added before the projection."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads, self.q, self.kv = heads, nn.Linear(width, width), nn.Linear(width, 2 * width)
        self.local, self.project = nn.Conv2d(width, width, 3, 1, 1, groups=width), nn.Linear(width, width)

    def forward(self, x, side):
        b, n, c = x.shape
        q = self.q(x).reshape(b, n, self.heads, -1).permute(0, 2, 1, 3)
        k, v = self.kv(x).reshape(b, n, 2, self.heads, c // self.heads).permute(2, 0, 3, 1, 4).unbind(0)
        y = ((q @ k.transpose(-2, -1)) * (c // self.heads) ** -0.5).softmax(-1) @ v
        local = self.local(v.transpose(1, 2).reshape(b, n, c).transpose(1, 2).reshape(b, c, side, side))
        return self.project(y.transpose(1, 2).reshape(b, n, c) + local.reshape(b, c, n).transpose(1, 2))


class SMTBlock(nn.Module):
    def __init__(self, width, ratio, attention):
        super().__init__()
        self.norm1, self.norm2, self.attention = nn.LayerNorm(width), nn.LayerNorm(width), attention
        hidden = ratio * width
        self.enter, self.leave = nn.Linear(width, hidden), nn.Linear(hidden, width)
        self.local = nn.Conv2d(hidden, hidden, 3, 1, 1, groups=hidden)

    def forward(self, x, side):
        x = x + self.attention(self.norm1(x), side)
        y = self.enter(self.norm2(x))
        local = self.local(y.transpose(1, 2).reshape(y.shape[0], -1, side, side)).flatten(2).transpose(1, 2)
        return x + self.leave(F.gelu(y + local))


class SMT(nn.Module):
    """SMT-S: depths 3 4 18 2, widths 64 to 512; scale-aware modulation, in the third stage by turns with attention."""

    def __init__(self, depths=(3, 4, 18, 2), widths=(64, 128, 256, 512), classes=1000):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 64, 3, 2, 1), nn.BatchNorm2d(64), nn.GELU(), nn.Conv2d(64, 64, 2, 2))
        self.enter, self.stages, self.norms = nn.LayerNorm(64), nn.ModuleList(), nn.ModuleList()
        for i, (depth, w, ratio) in enumerate(zip(depths, widths, (8, 6, 4, 2))):
            attends = lambda j: i == 3 or (i == 2 and j % 2 == 1)
            self.stages.append(nn.ModuleList(SMTBlock(w, ratio, SMTAttention(w, w // 32) if attends(j) else ScaleModulation(w)) for j in range(depth)))
            self.norms.append(nn.LayerNorm(w))
        self.downs = nn.ModuleList(Downsample(i, o) for i, o in zip(widths, widths[1:]))
        self.head = nn.Linear(widths[-1], classes)

    def forward(self, image):
        x = self.stem(image)
        side = x.shape[-1]
        x = self.enter(x.flatten(2).transpose(1, 2))
        for i, (stage, norm) in enumerate(zip(self.stages, self.norms)):
            for block in stage:
                x = block(x, side)
            x = norm(x)
            if i < 3:
                x, side = self.downs[i](x, side)
        return self.head(x.mean(1))
