#!/usr/bin/env python3
"""The net, augmentation, loss and schedule of a job's file, trained by PyTorch on the same photos: what ours must be
within 0.3 points of. Reads what `outrigger validate --resolved -o json` prints, so nothing is written down twice."""

import argparse
import json
import math
import pathlib

import torch
import torch.nn.functional as F
from PIL import Image
from torchvision.transforms import v2


def load(folder):
    """All photos of a folder of classes, and their labels."""
    images, labels = [], []
    for label, person in enumerate(sorted(p.name for p in folder.iterdir())):
        for file in sorted((folder / person).iterdir()):
            images.append(v2.functional.pil_to_tensor(Image.open(file)))
            labels.append(label)
    return torch.stack(images), torch.tensor(labels)


def convolution(channels, of):
    layer = torch.nn.Conv2d(channels, of["channels"], of["kernel"], of.get("stride", 1), of.get("padding", 0),
                            bias=of.get("bias", False))
    torch.nn.init.kaiming_normal_(layer.weight, mode="fan_out", nonlinearity="relu")
    return layer


class Layers(torch.nn.Module):
    """spec.model.layers, for the kinds of layers that the job uses; the last gives the logits, its input is the
    embedding."""

    def __init__(self, specs, channels):
        super().__init__()
        self.specs = specs
        self.parts = torch.nn.ModuleDict()
        width = {None: channels}
        last = None
        for spec in specs:
            name = spec["name"]
            channels = width[spec.get("inputs", [last])[0]]
            if "convolution" in spec:
                self.parts[name] = convolution(channels, spec["convolution"])
                channels = spec["convolution"]["channels"]
            elif "batchNorm" in spec:
                self.parts[name] = torch.nn.BatchNorm2d(channels)
            elif "dropout" in spec:
                self.parts[name] = torch.nn.Dropout(spec["dropout"]["rate"])
            elif "linear" in spec:
                self.parts[name] = torch.nn.Linear(channels, spec["linear"]["features"])
                channels = spec["linear"]["features"]
            width[name] = channels
            last = name
        self.last = last

    def embed(self, pixels):
        values = {}
        x = pixels
        for spec in self.specs[:-1]:
            inputs = [values[name] for name in spec["inputs"]] if spec.get("inputs") else [x]
            x = self.run(spec, inputs)
            values[spec["name"]] = x
        return x

    def run(self, spec, inputs):
        if spec["name"] in self.parts:
            return self.parts[spec["name"]](inputs[0])
        if "relu" in spec:
            return F.relu(inputs[0])
        if "add" in spec:
            return inputs[0] + inputs[1]
        if "globalAveragePool" in spec:
            return F.adaptive_avg_pool2d(inputs[0], 1)
        if "flatten" in spec:
            return inputs[0].flatten(1)
        raise SystemExit(f"layer {spec['name']} is of a kind that this script does not know")

    def forward(self, pixels):
        return self.parts[self.last](self.embed(pixels))


def augmentation(steps, size):
    """spec.data.augment, for the steps that the job uses."""
    makers = {
        "randomRotation": lambda o: v2.RandomRotation(o["degrees"], interpolation=v2.InterpolationMode.BILINEAR),
        "randomResizedCrop": lambda o: v2.RandomResizedCrop(
            size, scale=(o["minScale"], o["maxScale"]), ratio=(o["minRatio"], o["maxRatio"]), antialias=True),
        "randomHorizontalFlip": lambda o: v2.RandomHorizontalFlip(o.get("probability", 0.5)),
        "colorJitter": lambda o: v2.ColorJitter(o.get("brightness", 0), o.get("contrast", 0)),
        "randomErasing": lambda o: RandomErasing(o),
    }
    return v2.Compose([makers[name](options) for step in steps for name, options in step.items()])


class RandomErasing(v2.RandomErasing):
    """With the defaults of ours: grey, where torchvision's is black."""

    def __init__(self, options):
        super().__init__(options.get("probability", 0.5), (options.get("minArea", 0.02), options.get("maxArea", 0.33)),
                         value=128)


def normalized(pixels):
    return ((pixels.float() / 255 - 0.5) / 0.5).contiguous(memory_format=torch.channels_last)


def covered(images, size):
    """Resized to cover the input, and its middle: how ours evaluates."""
    scale = max(size[0] / images.shape[-2], size[1] / images.shape[-1])
    sides = [round(side * scale) for side in images.shape[-2:]]
    return v2.functional.center_crop(v2.functional.resize(images, sides, antialias=True), size)


def rank1(net, gallery, probes, size):
    """Part of the probes whose nearest photo of the gallery, by cosine, is of the same person."""
    net.eval()
    with torch.no_grad():
        rows = [F.normalize(net.embed(normalized(covered(images, size))), dim=1) for images, _ in (probes, gallery)]
    nearest = (rows[0] @ rows[1].T).argmax(1)
    return (gallery[1][nearest] == probes[1]).float().mean().item()


class Schedule:
    def __init__(self, spec, steps):
        self.base, self.warm_up, self.steps = spec["base"], spec.get("warmupSteps", 0), steps

    def rate(self, step):
        if step < self.warm_up:
            return self.base * (step + 1) / self.warm_up
        return self.base * 0.5 * (1 + math.cos(math.pi * (step - self.warm_up) / (self.steps - self.warm_up - 1)))


def train(spec, images, labels):
    training = spec["training"]
    torch.manual_seed(training["seed"])
    image = spec["data"]["image"]
    net = Layers(spec["model"]["layers"], image["channels"]).to(memory_format=torch.channels_last)
    sgd = training["optimizer"]["sgd"]
    optimizer = torch.optim.SGD([
        {"params": [p for p in net.parameters() if p.ndim > 1], "weight_decay": sgd["weightDecay"]},
        {"params": [p for p in net.parameters() if p.ndim <= 1]},
    ], lr=1.0, momentum=sgd["momentum"], nesterov=sgd.get("nesterov", False))
    smoothing = training["loss"]["softmaxCrossEntropy"].get("labelSmoothing", 0)
    augment = augmentation(spec["data"]["augment"], [image["height"], image["width"]])
    batch, part = training["batchSize"], training["microBatchSize"]
    steps = training["epochs"] * len(images) // batch
    schedule = Schedule(training["schedule"]["cosine"], steps)
    order = torch.cat([torch.randperm(len(images)) for _ in range(training["epochs"])])
    net.train()
    for step in range(steps):
        for group in optimizer.param_groups:
            group["lr"] = schedule.rate(step)
        optimizer.zero_grad()
        chosen = order[step * batch:(step + 1) * batch]
        for some in chosen.split(part):
            pixels = torch.stack([augment(images[i]) for i in some])
            loss = F.cross_entropy(net(normalized(pixels)), labels[some], label_smoothing=smoothing)
            (loss * len(some) / batch).backward()
        optimizer.step()
    return net


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("job", type=pathlib.Path, help="the resolved job as JSON")
    parser.add_argument("split", type=pathlib.Path, help="a folder that splits.py made")
    parser.add_argument("--threads", type=int, default=1)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    spec = json.loads(arguments.job.read_text(encoding="utf-8"))["spec"]
    gallery, probes = load(arguments.split / "train"), load(arguments.split / "test")
    image = spec["data"]["image"]
    net = train(spec, *gallery)
    print(f"{rank1(net, gallery, probes, [image['height'], image['width']]):.4f}")


if __name__ == "__main__":
    main()
