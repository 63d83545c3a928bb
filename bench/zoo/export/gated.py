"""Owns networks whose inputs decide which of their blocks run, written from their papers' descriptions.

All are for torch.jit.script, which keeps the branches, and take images of any size. Their weights are random, so gates
would decide alike for all images: the input `steer` has a number for each gate, which is added to its score (or to its
confidence), and a generator of inputs draws it.
"""
import torch
from torch import nn
from torch.nn import functional as F

from convolutional import conv_bn


def residual(inputs, width, outputs, stride):
    """He et al., "Deep Residual Learning" (2016), Fig. 5, right, without the shortcut."""
    return nn.Sequential(conv_bn(inputs, width, 1, activation=nn.ReLU), conv_bn(width, width, 3, stride, activation=nn.ReLU),
                         conv_bn(width, outputs, 1, activation=None))


class Bottlenecks(nn.Module):
    """Stem, residual branches, shortcuts and head of a ResNet of bottlenecks; the networks below decide which branches run."""

    def __init__(self, depths, classes=1000):
        super().__init__()
        self.stem = nn.Sequential(conv_bn(3, 64, 7, 2, activation=nn.ReLU), nn.MaxPool2d(3, 2, 1))
        branches, shortcuts, self.widths, inputs = [], [], [], 64
        for stage, depth in enumerate(depths):
            for i in range(depth):
                outputs, stride = 256 << stage, 2 if stage > 0 and i == 0 else 1
                branches.append(residual(inputs, 64 << stage, outputs, stride))
                shortcuts.append(conv_bn(inputs, outputs, 1, stride, activation=None) if inputs != outputs else nn.Identity())
                self.widths.append(inputs)
                inputs = outputs
        self.branches, self.shortcuts = nn.ModuleList(branches), nn.ModuleList(shortcuts)
        self.head = nn.Linear(inputs, classes)


class SkipNet(nn.Module):
    """Wang et al., "SkipNet" (2018), section 3.2 and Fig. 2c: a gate per block, pooled features through a 1 x 1 projection into
    one LSTM of ten states that all gates share; a closed gate leaves the shortcut."""

    def __init__(self, depths=(3, 4, 6, 3), states=10):
        super().__init__()
        net = Bottlenecks(depths)
        self.stem, self.branches, self.shortcuts, self.head = net.stem, net.branches, net.shortcuts, net.head
        self.project = nn.ModuleList(nn.Linear(width, states) for width in net.widths)
        self.from_input, self.from_state = nn.Linear(states, 4 * states), nn.Linear(states, 4 * states)
        self.score = nn.Linear(states, 1)
        self.states, self.gates = states, len(net.widths)

    def forward(self, image: torch.Tensor, steer: torch.Tensor) -> torch.Tensor:
        x = self.stem(image)
        state = torch.zeros(1, self.states)
        cell = torch.zeros(1, self.states)
        for i, (branch, shortcut, project) in enumerate(zip(self.branches, self.shortcuts, self.project)):
            gates = self.from_input(project(x.mean([2, 3]))) + self.from_state(state)
            take, forget, new, out = gates.chunk(4, 1)
            cell = torch.sigmoid(forget) * cell + torch.sigmoid(take) * torch.tanh(new)
            state = torch.sigmoid(out) * torch.tanh(cell)
            kept = shortcut(x)
            if bool(self.score(state)[0, 0] + steer[i] > 0):
                x = F.relu(kept + branch(x))
            else:
                x = F.relu(kept)
        return self.head(x.mean([2, 3]))


class ConvNetAIG(nn.Module):
    """Veit and Belongie, "Convolutional Networks with Adaptive Inference Graphs" (2018), section 3.2: a gate per block of two
    layers over pooled features, 16 hidden channels, whose larger one of two scores decides."""

    def __init__(self, depths=(3, 4, 6, 3), hidden=16):
        super().__init__()
        net = Bottlenecks(depths)
        self.stem, self.branches, self.shortcuts, self.head = net.stem, net.branches, net.shortcuts, net.head
        self.relevance = nn.ModuleList(nn.Sequential(nn.Linear(width, hidden), nn.ReLU(), nn.Linear(hidden, 2)) for width in net.widths)
        self.gates = len(net.widths)

    def forward(self, image: torch.Tensor, steer: torch.Tensor) -> torch.Tensor:
        x = self.stem(image)
        for i, (branch, shortcut, relevance) in enumerate(zip(self.branches, self.shortcuts, self.relevance)):
            scores = relevance(x.mean([2, 3]))
            kept = shortcut(x)
            if bool(scores[0, 1] + steer[i] > scores[0, 0]):
                x = F.relu(kept + branch(x))
            else:
                x = F.relu(kept)
        return self.head(x.mean([2, 3]))


class BlockDrop(nn.Module):
    """Wu et al., "BlockDrop" (2018), section 3: a policy network of three residual stages sees the image at a quarter of its
    sides and decides about all blocks at once."""

    def __init__(self, depths=(3, 4, 23, 3)):
        super().__init__()
        net = Bottlenecks(depths)
        self.stem, self.branches, self.shortcuts, self.head = net.stem, net.branches, net.shortcuts, net.head
        self.gates = len(net.widths)
        pair = lambda i, o, s: nn.Sequential(conv_bn(i, o, 3, s, activation=nn.ReLU), conv_bn(o, o, 3, activation=nn.ReLU))
        self.policy = nn.Sequential(conv_bn(3, 16, 3, 2, activation=nn.ReLU), pair(16, 32, 2), pair(32, 64, 2), pair(64, 128, 2))
        self.decide = nn.Linear(128, self.gates)

    def forward(self, image: torch.Tensor, steer: torch.Tensor) -> torch.Tensor:
        small = F.avg_pool2d(image, 4)
        takes = torch.sigmoid(self.decide(self.policy(small).mean([2, 3])))[0] + steer > 0.5
        x = self.stem(image)
        for i, (branch, shortcut) in enumerate(zip(self.branches, self.shortcuts)):
            kept = shortcut(x)
            if bool(takes[i]):
                x = F.relu(kept + branch(x))
            else:
                x = F.relu(kept)
        return self.head(x.mean([2, 3]))


class DGNet(nn.Module):
    """Li et al., "Dynamic Dual Gating Neural Networks" (2021), section 3: each block masks channels by pooled features and
    positions by a map of a smaller resolution; a block of which no position is open is left out."""

    def __init__(self, depths=(3, 4, 6, 3), tile=7):
        super().__init__()
        net = Bottlenecks(depths)
        self.stem, self.branches, self.shortcuts, self.head = net.stem, net.branches, net.shortcuts, net.head
        outputs = net.widths[1:] + [2048]
        self.channels = nn.ModuleList(nn.Sequential(nn.Linear(i, max(i // 16, 16)), nn.ReLU(), nn.Linear(max(i // 16, 16), o))
                                      for i, o in zip(net.widths, outputs))
        self.places = nn.ModuleList(nn.Conv2d(width, 1, 1) for width in net.widths)
        self.gates, self.tile = len(net.widths), tile

    def forward(self, image: torch.Tensor, steer: torch.Tensor) -> torch.Tensor:
        x = self.stem(image)
        for i, (branch, shortcut, channels, places) in enumerate(zip(self.branches, self.shortcuts, self.channels, self.places)):
            kept = shortcut(x)
            opened = (places(F.adaptive_avg_pool2d(x, [self.tile, self.tile])) + steer[i] > 0).to(x.dtype)
            if bool(opened.sum() > 0):
                open_channels = (channels(x.mean([2, 3])) > 0).to(x.dtype)[:, :, None, None]
                open_places = F.interpolate(opened, size=kept.shape[2:], mode="nearest")
                x = F.relu(kept + branch(x) * open_channels * open_places)
            else:
                x = F.relu(kept)
        return self.head(x.mean([2, 3]))


class RANet(nn.Module):
    """Yang et al., "Resolution Adaptive Networks" (2020), section 3: sub-networks for growing resolutions of one image, each
    fed with the features of the one before, and the first whose classifier is confident ends the inference. Blocks are
    dense ones of bottlenecks; widths are those of the paper's smaller model."""

    def __init__(self, scales=3, width=64, growth=32, layers=6, classes=1000):
        super().__init__()
        stems, dense, heads, self.gates = [], [], [], scales - 1
        before = 0
        for s in range(scales):
            stems.append(nn.Sequential(conv_bn(3, width, 7, 2, activation=nn.ReLU), nn.MaxPool2d(3, 2, 1)))
            blocks, channels = [], width + before
            for stage in range(3):
                for _ in range(layers):
                    blocks.append(Dense(channels, growth << s))
                    channels += growth << s
                blocks.append(conv_bn(channels, channels // 2, 1, 2, activation=nn.ReLU))
                channels //= 2
            dense.append(nn.Sequential(*blocks))
            heads.append(nn.Linear(channels, classes))
            before = channels
        self.stems, self.dense, self.heads = nn.ModuleList(stems), nn.ModuleList(dense), nn.ModuleList(heads)

    def forward(self, image: torch.Tensor, steer: torch.Tensor) -> torch.Tensor:
        x = self.dense[0](self.stems[0](F.avg_pool2d(image, 4)))
        logits = self.heads[0](x.mean([2, 3]))
        if bool(torch.softmax(logits, 1).max() + steer[0] < 0.5):
            first = self.stems[1](F.avg_pool2d(image, 2))
            x = self.dense[1](torch.cat([first, F.interpolate(x, size=[first.shape[2], first.shape[3]], mode="nearest")], 1))
            logits = self.heads[1](x.mean([2, 3]))
            if bool(torch.softmax(logits, 1).max() + steer[1] < 0.5):
                second = self.stems[2](image)
                x = self.dense[2](torch.cat([second, F.interpolate(x, size=[second.shape[2], second.shape[3]], mode="nearest")], 1))
                logits = self.heads[2](x.mean([2, 3]))
        return logits


class Dense(nn.Module):
    """Huang et al., "Densely Connected Convolutional Networks" (2017): what a bottleneck makes stands beside what it read."""

    def __init__(self, inputs, growth):
        super().__init__()
        self.make = nn.Sequential(conv_bn(inputs, 4 * growth, 1, activation=nn.ReLU), conv_bn(4 * growth, growth, 3, activation=nn.ReLU))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cat([x, self.make(x)], 1)
