"""Outrigger's models as PyTorch modules, with the names that torchvision and insightface's arcface_torch give tensors.

resnet18 and resnet50 are torchvision's own. The others are written here after the papers (LeNet-5: LeCun et al. 1998;
IResNet: Deng et al., "ArcFace", CVPR 2019; MobileFaceNet: Chen et al. 2018), so that tests and benches have a peer
whose state_dict must equal ours with strict=True.
"""

import torch
import torchvision
from torch import nn
from torch.nn import functional


class LeNet5(nn.Module):
    def __init__(self, classes, side, channels):
        super().__init__()
        self.conv1 = nn.Conv2d(channels, 6, 5)
        self.conv2 = nn.Conv2d(6, 16, 5)
        side = ((side - 4) // 2 - 4) // 2
        self.fc1 = nn.Linear(16 * side * side, 120)
        self.fc2 = nn.Linear(120, 84)
        if classes:
            self.fc3 = nn.Linear(84, classes)

    def forward(self, x):
        for convolution in (self.conv1, self.conv2):
            x = functional.max_pool2d(functional.relu(convolution(x)), 2)
        x = functional.relu(self.fc2(functional.relu(self.fc1(x.flatten(1)))))
        return self.fc3(x) if hasattr(self, "fc3") else x


class IResNetBlock(nn.Module):
    def __init__(self, before, channels, stride):
        super().__init__()
        self.bn1 = nn.BatchNorm2d(before)
        self.conv1 = nn.Conv2d(before, channels, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(channels)
        self.prelu = nn.PReLU(channels)
        self.conv2 = nn.Conv2d(channels, channels, 3, stride, padding=1, bias=False)
        self.bn3 = nn.BatchNorm2d(channels)
        self.downsample = None
        if stride != 1:
            self.downsample = nn.Sequential(
                nn.Conv2d(before, channels, 1, stride, bias=False), nn.BatchNorm2d(channels)
            )

    def forward(self, x):
        main = self.prelu(self.bn2(self.conv1(self.bn1(x))))
        main = self.bn3(self.conv2(main))
        return main + (x if self.downsample is None else self.downsample(x))


class IResNet(nn.Module):
    def __init__(self, stages, embedding, classes, side, channels):
        super().__init__()
        self.conv1 = nn.Conv2d(channels, 64, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(64)
        self.prelu = nn.PReLU(64)
        before = 64
        for index, count in enumerate(stages):
            width = 64 << index
            blocks = [IResNetBlock(before if i == 0 else width, width, 2 if i == 0 else 1) for i in range(count)]
            setattr(self, f"layer{index + 1}", nn.Sequential(*blocks))
            before = width
        for _ in range(4):
            side = (side + 1) // 2
        self.bn2 = nn.BatchNorm2d(512)
        self.fc = nn.Linear(512 * side * side, embedding)
        self.features = nn.BatchNorm1d(embedding)
        self.features.weight.requires_grad = False
        if classes:
            self.head = nn.Linear(embedding, classes)

    def forward(self, x):
        x = self.prelu(self.bn1(self.conv1(x)))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        x = self.features(self.fc(self.bn2(x).flatten(1)))
        return self.head(x) if hasattr(self, "head") else x


class Layers(nn.Module):
    """A sequence whose tensors are named layers.0, layers.1, …, with an identity beside it where asked for."""

    def __init__(self, *layers, residual=False):
        super().__init__()
        self.layers = nn.Sequential(*layers)
        self.residual = residual

    def forward(self, x):
        return x + self.layers(x) if self.residual else self.layers(x)


def linear_block(before, channels, kernel=1, stride=1, padding=0, groups=1):
    convolution = nn.Conv2d(before, channels, kernel, stride, padding, groups=groups, bias=False)
    return Layers(convolution, nn.BatchNorm2d(channels))


def prelu_block(before, channels, kernel=1, stride=1, padding=0, groups=1):
    block = linear_block(before, channels, kernel, stride, padding, groups)
    block.layers.append(nn.PReLU(channels))
    return block


def depthwise(before, inner, channels, stride, residual=False):
    return Layers(
        prelu_block(before, inner),
        prelu_block(inner, inner, 3, stride, 1, inner),
        linear_block(inner, channels),
        residual=residual,
    )


def residuals(count, channels, inner):
    return Layers(*(depthwise(channels, inner, channels, 1, residual=True) for _ in range(count)))


class MobileFaceNet(nn.Module):
    def __init__(self, embedding, classes, side, channels):
        super().__init__()
        self.layers = nn.ModuleList([
            prelu_block(channels, 128, 3, 2, 1),
            prelu_block(128, 128, 3, 1, 1, 64),
            depthwise(128, 128, 128, 2),
            residuals(4, 128, 128),
            depthwise(128, 256, 256, 2),
            residuals(6, 256, 256),
            depthwise(256, 512, 256, 2),
            residuals(2, 256, 256),
        ])
        for _ in range(4):
            side = (side + 1) // 2
        self.conv_sep = prelu_block(256, 512)
        self.features = Layers(
            linear_block(512, 512, side, groups=512),
            nn.Flatten(),
            nn.Linear(512, embedding, bias=False),
            nn.BatchNorm1d(embedding),
        )
        if classes:
            self.head = nn.Linear(embedding, classes)

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        x = self.features(self.conv_sep(x))
        return self.head(x) if hasattr(self, "head") else x


def make(name, classes, side=112, channels=3, embedding=512):
    """The module; `classes` 0: without a head."""
    if name == "lenet5":
        return LeNet5(classes, side, channels)
    if name in ("resnet18", "resnet50"):
        model = getattr(torchvision.models, name)(weights=None, num_classes=classes or 1)
        if not classes:
            model.fc = nn.Identity()
        return model
    if name in ("iresnet18", "iresnet50"):
        stages = (2, 2, 2, 2) if name == "iresnet18" else (3, 4, 14, 3)
        return IResNet(stages, embedding, classes, side, channels)
    if name == "mobilefacenet":
        return MobileFaceNet(embedding, classes, side, channels)
    raise ValueError(f"no peer of {name}")


def normalize(name, pixels):
    """Our first layer: uint8 {n, h, w, c} to what the module takes, {n, c, h, w}."""
    x = pixels.permute(0, 3, 1, 2).float() / 255
    if name.startswith("resnet") and x.shape[1] == 3:
        mean, deviation = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
    else:
        mean = deviation = (0.5,) * x.shape[1]
    shape = (1, -1, 1, 1)
    return (x - torch.tensor(mean).view(shape)) / torch.tensor(deviation).view(shape)


def arcface_logits(embeddings, weight, labels, margin, scale):
    """ArcFace with the monotone continuation behind pi that its authors use."""
    cosine = functional.linear(functional.normalize(embeddings), functional.normalize(weight))
    index = torch.arange(len(labels)), labels
    own = cosine[index]
    sine = (1 - own * own).clamp(min=0).sqrt()
    margin = torch.tensor(float(margin))
    moved = torch.where(
        own > -margin.cos(), own * margin.cos() - sine * margin.sin(), own - margin * margin.sin()
    )
    return scale * cosine.index_put(index, moved)
