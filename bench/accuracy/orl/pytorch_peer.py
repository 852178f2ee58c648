"""The same net, splits, augmentation and schedule as job.yaml, trained by PyTorch: what ours must be within 0.3 points of."""

import argparse
import math
import pathlib

import torch
import torch.nn.functional as F
import torchvision
from torchvision.transforms import v2


class Settings:
    """As in job.yaml; run.py checks that they agree."""

    height = 80
    width = 64
    epochs = 60
    batch = 20
    micro_batch = 20
    rate = 0.05
    warmup = 50
    momentum = 0.9
    decay = 5e-4
    smoothing = 0.1


def load(folder: pathlib.Path):
    people = sorted(p.name for p in folder.iterdir())
    images, labels = [], []
    for label, person in enumerate(people):
        for file in sorted((folder / person).iterdir()):
            images.append(torchvision.io.decode_image(torch.frombuffer(bytearray(pgm_as_png(file)), dtype=torch.uint8)))
            labels.append(label)
    return torch.stack(images), torch.tensor(labels)


def pgm_as_png(file: pathlib.Path) -> bytes:
    import io

    from PIL import Image

    buffer = io.BytesIO()
    Image.open(file).save(buffer, "png")
    return buffer.getvalue()


def network(classes: int) -> torch.nn.Module:
    net = torchvision.models.resnet18(num_classes=classes)
    net.conv1 = torch.nn.Conv2d(1, 64, 7, 2, 3, bias=False)
    torch.nn.init.kaiming_normal_(net.conv1.weight, mode="fan_out", nonlinearity="relu")
    return net.to(memory_format=torch.channels_last)


def normalized(pixels: torch.Tensor) -> torch.Tensor:
    return ((pixels.float() / 255 - 0.5) / 0.5).contiguous(memory_format=torch.channels_last)


def covered(images: torch.Tensor) -> torch.Tensor:
    """Resized to cover the input, and its middle: how ours evaluates."""
    scale = max(Settings.height / images.shape[-2], Settings.width / images.shape[-1])
    size = [round(side * scale) for side in images.shape[-2:]]
    return v2.functional.center_crop(v2.functional.resize(images, size, antialias=True),
                                     [Settings.height, Settings.width])


def embed(net: torch.nn.Module, images: torch.Tensor) -> torch.Tensor:
    net.eval()
    head, net.fc = net.fc, torch.nn.Identity()
    with torch.no_grad():
        rows = torch.cat([net(normalized(covered(part))) for part in images.split(50)])
    net.fc = head
    return F.normalize(rows, dim=1)


def rank1(net, gallery, gallery_labels, probes, probe_labels) -> float:
    nearest = (embed(net, probes) @ embed(net, gallery).T).argmax(1)
    return (gallery_labels[nearest] == probe_labels).float().mean().item()


def rate_at(step: int, steps: int) -> float:
    if step < Settings.warmup:
        return Settings.rate * (step + 1) / Settings.warmup
    return Settings.rate * 0.5 * (1 + math.cos(math.pi * (step - Settings.warmup) / (steps - Settings.warmup)))


def train(images, labels, seed: int) -> torch.nn.Module:
    torch.manual_seed(seed)
    net = network(int(labels.max()) + 1)
    norms_and_biases = [p for p in net.parameters() if p.ndim <= 1]
    weights = [p for p in net.parameters() if p.ndim > 1]
    optimizer = torch.optim.SGD([{"params": weights, "weight_decay": Settings.decay}, {"params": norms_and_biases}],
                                lr=Settings.rate, momentum=Settings.momentum)
    augment = v2.Compose([
        v2.RandomRotation(10, interpolation=v2.InterpolationMode.BILINEAR),
        v2.RandomResizedCrop((Settings.height, Settings.width), scale=(0.7, 1.0), ratio=(0.75, 1.0), antialias=True),
        v2.RandomHorizontalFlip(),
        v2.ColorJitter(brightness=0.3, contrast=0.3),
    ])
    steps = Settings.epochs * len(images) // Settings.batch
    order = torch.cat([torch.randperm(len(images)) for _ in range(Settings.epochs)])
    net.train()
    for step in range(steps):
        for group in optimizer.param_groups:
            group["lr"] = rate_at(step, steps)
        optimizer.zero_grad()
        chosen = order[step * Settings.batch:(step + 1) * Settings.batch]
        for part in chosen.split(Settings.micro_batch):
            pixels = torch.stack([augment(images[i]) for i in part])
            loss = F.cross_entropy(net(normalized(pixels)), labels[part], label_smoothing=Settings.smoothing)
            (loss * len(part) / len(chosen)).backward()
        optimizer.step()
    return net


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("splits", type=pathlib.Path, nargs="+", help="folders that splits.py made")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    for split in arguments.splits:
        train_images, train_labels = load(split / "train")
        test_images, test_labels = load(split / "test")
        net = train(train_images, train_labels, seed=1)
        print(f"{split.name} {rank1(net, train_images, train_labels, test_images, test_labels):.4f}", flush=True)


if __name__ == "__main__":
    main()
