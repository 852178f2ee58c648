#!/usr/bin/env python3
"""Makes tests/unit/nn/fixtures: what PyTorch computes, in float32 on the CPU, for the cases that hold our backends.

Run with .deps/pytorch/bin/python (tools/setup pytorch) from anywhere; the files are committed.

Every number that is expected comes with its tolerance: four times the spread of PyTorch's own answers over 1 and 2
threads and both memory formats, and at least four roundings of float32 times the root of the number of terms of the
longest sum, relative to the largest value of the tensor.
"""

import itertools
import json
import pathlib
import sys

import numpy
import safetensors.numpy
import torch
from torch.nn import functional

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tools"))
import outrigger_random  # noqa: E402
import peer_models  # noqa: E402

TESTS = ROOT / "tests/unit/nn"
VARIANTS = tuple(itertools.product((1, 2), (torch.contiguous_format, torch.channels_last)))
SPREADS = 4
ROUNDING = 2.0**-23
# No value that meets a kink (ReLU, PReLU, max pool) may lie so near it that rounding decides.
LEAST_DISTANCE = 1e-4


def tolerance(answers, terms):
    first = answers[0].astype(numpy.float64)
    spread = max(numpy.abs(answer - first).max(initial=0) for answer in answers)
    floor = ROUNDING * terms**0.5 * numpy.abs(first).max(initial=0)
    return numpy.array(SPREADS * (spread + floor), dtype=numpy.float32)


def store(fixtures, name, answers, terms):
    fixtures[name] = numpy.ascontiguousarray(answers[0], dtype=numpy.float32)
    fixtures[name + ".tolerance"] = tolerance(answers, terms)


def in_variants(function):
    """The answers (dicts of arrays) of every variant, the plain one first."""
    answers = []
    for threads, memory_format in VARIANTS:
        torch.set_num_threads(threads)
        answers.append(function(memory_format))
    return answers


def ours(tensor):
    """{n, c, h, w} to our {n, h, w, c}."""
    tensor = tensor.detach()
    return (tensor.permute(0, 2, 3, 1) if tensor.dim() == 4 else tensor).contiguous().numpy()


class Case:
    """One row of op_cases.json as a PyTorch function."""

    def __init__(self, row, draw):
        self.row = row
        self.random = numpy.random.default_rng([draw, *row["name"].encode()])
        self.parameters, self.buffers = [], []
        self.kink = numpy.inf
        self.terms = row["batch"] * row["input"][0] * row["input"][1]
        height, width, channels = row["input"]
        self.input = self.draw((row["batch"], channels, height, width))
        with torch.no_grad():
            output = self.forward(self.input, make=True)
        self.output_gradient = self.draw(output.shape)
        self.labels = torch.from_numpy(self.random.integers(0, output.shape[1], row["batch"]))

    def draw(self, shape, deviation=1.0, mean=0.0):
        return torch.from_numpy((mean + deviation * self.random.standard_normal(shape)).astype(numpy.float32))

    def take(self, make, index, shape, deviation=None, mean=0.0):
        if make:
            fan_in = numpy.prod(shape[1:])
            self.terms = max(self.terms, int(fan_in))
            self.parameters.append(self.draw(shape, fan_in**-0.5 if deviation is None else deviation, mean))
        return self.parameters[index]

    def avoid_kink(self, distances):
        self.kink = min(self.kink, float(distances.abs().min()))

    def forward(self, x, make=False, training=True, margin=False):
        values, parameters, buffers, self.statistics = [x, x], 0, 0, []
        for layer in self.row["layers"]:
            op = layer["op"]
            x = values[layer["inputs"][0]] if "inputs" in layer else values[-1]
            if op == "convolution":
                shape = (layer["out"], x.shape[1] // layer.get("groups", 1), layer["kernel"], layer["kernel"])
                weight = self.take(make, parameters, shape)
                bias = self.take(make, parameters + 1, (layer["out"],), 0.3) if layer.get("bias") else None
                parameters += 2 if layer.get("bias") else 1
                x = functional.conv2d(
                    x, weight, bias, layer.get("stride", 1), layer.get("padding", 0), 1, layer.get("groups", 1)
                )
            elif op == "batch_norm":
                channels, fixed = x.shape[1], not layer.get("train_scale", True)
                scale = self.take(make, parameters, (channels,), 0.0 if fixed else 0.3, 1.0)
                shift = self.take(make, parameters + 1, (channels,), 0.3)
                if make:
                    self.buffers += [self.draw((channels,), 0.3), self.draw((channels,)).abs() + 0.5]
                mean, variance = self.buffers[buffers : buffers + 2]
                parameters, buffers = parameters + 2, buffers + 2
                if training:
                    dims = [d for d in range(x.dim()) if d != 1]
                    self.statistics += torch.var_mean(x, dims, correction=0)[::-1]
                x = functional.batch_norm(x, mean.clone(), variance.clone(), scale, shift, training)
            elif op == "relu":
                self.avoid_kink(x.detach())
                x = functional.relu(x)
            elif op == "prelu":
                self.avoid_kink(x.detach())
                x = functional.prelu(x, self.take(make, parameters, (x.shape[1],), 0.3))
                parameters += 1
            elif op == "add":
                x = x + values[layer["inputs"][1]]
            elif op == "max_pool":
                window = (layer["kernel"], layer["stride"], layer.get("padding", 0))
                padded = functional.pad(x.detach(), [window[2]] * 4, value=-1e9)
                patches = functional.unfold(padded, window[0], stride=window[1]).view(*x.shape[:2], window[0] ** 2, -1)
                largest = patches.topk(2, dim=2).values
                self.avoid_kink(largest[:, :, 0] - largest[:, :, 1])
                x = functional.max_pool2d(x, *window)
            elif op == "average_pool":
                x = functional.avg_pool2d(x, layer["kernel"], layer["stride"], layer.get("padding", 0))
            elif op == "global_average_pool":
                x = functional.adaptive_avg_pool2d(x, 1).flatten(1)
            elif op == "flatten":
                x = x.flatten(1)
            elif op == "linear":
                weight = self.take(make, parameters, (layer["out"], x.shape[1]))
                bias = self.take(make, parameters + 1, (layer["out"],), 0.3) if layer["bias"] else None
                parameters += 2 if layer["bias"] else 1
                x = functional.linear(x, weight, bias)
            elif op == "arcface":
                weight = self.take(make, parameters, (layer["classes"], x.shape[1]))
                parameters += 1
                if margin:
                    x = peer_models.arcface_logits(x, weight, self.labels, layer["margin"], layer["scale"])
                else:
                    x = layer["scale"] * functional.linear(functional.normalize(x), functional.normalize(weight))
            else:
                raise ValueError(op)
            values.append(x)
        return x

    def trains(self):
        """For each parameter, whether it does: all but the scale of a norm that has it fixed."""
        flags = []
        for layer in self.row["layers"]:
            op = layer["op"]
            if op == "batch_norm":
                flags += [layer.get("train_scale", True), True]
            elif op in ("convolution", "linear"):
                flags += [True] * (2 if layer.get("bias") else 1)
            elif op in ("prelu", "arcface"):
                flags.append(True)
        return flags

    def answer(self, memory_format):
        x = self.input.clone(memory_format=memory_format).requires_grad_()
        for parameter in self.parameters:
            parameter.requires_grad_()
            parameter.grad = None
        output = self.forward(x, margin=True)
        output.backward(self.output_gradient)
        statistics = [statistic.numpy() for statistic in (s.detach() for s in self.statistics)]
        gradients = [
            parameter.grad.contiguous().numpy().reshape(-1) if flag else numpy.zeros(parameter.numel(), numpy.float32)
            for parameter, flag in zip(self.parameters, self.trains(), strict=True)
        ]
        with torch.no_grad():
            inference = self.forward(x, training=False)
        empty = [numpy.zeros(0, numpy.float32)]
        return {
            "output": ours(output),
            "statistics": numpy.concatenate(statistics or empty),
            "input_gradient": ours(x.grad),
            "gradients": numpy.concatenate(gradients or empty),
            "inference": ours(inference),
        }


def flat(tensors):
    return numpy.concatenate([t.numpy().reshape(-1) for t in tensors] or [numpy.zeros(0, numpy.float32)])


def make_operations():
    fixtures = {}
    for row in json.loads((TESTS / "op_cases.json").read_text()):
        if not row.get("torch", True):
            continue
        draw = 0
        while (case := Case(row, draw)).kink < LEAST_DISTANCE:
            draw += 1
        name = row["name"]
        fixtures[name + "/input"] = ours(case.input)
        fixtures[name + "/parameters"] = flat(case.parameters)
        fixtures[name + "/buffers"] = flat(case.buffers)
        fixtures[name + "/output_gradient"] = ours(case.output_gradient)
        fixtures[name + "/labels"] = case.labels.numpy().astype(numpy.int32)
        answers = in_variants(case.answer)
        for key in answers[0]:
            store(fixtures, f"{name}/{key}", [answer[key] for answer in answers], case.terms)
    return fixtures


def make_losses():
    """Softmax cross-entropy, the sum over samples and its gradient, and three steps of SGD."""
    fixtures = {}
    random = numpy.random.default_rng(3)
    logits = torch.from_numpy((3 * random.standard_normal((6, 11))).astype(numpy.float32))
    labels = torch.from_numpy(random.integers(0, 11, 6))
    fixtures["logits"], fixtures["labels"] = logits.numpy(), labels.numpy().astype(numpy.int32)
    for smoothing in (0.0, 0.1):
        x = logits.clone().requires_grad_()
        loss = functional.cross_entropy(x, labels, label_smoothing=smoothing, reduction="sum")
        loss.backward()
        store(fixtures, f"smoothing {smoothing}/loss", [loss.detach().numpy()], 66)
        store(fixtures, f"smoothing {smoothing}/gradient", [x.grad.numpy()], 11)
    start = random.standard_normal(30).astype(numpy.float32)
    gradients = random.standard_normal((3, 30)).astype(numpy.float32)
    fixtures["sgd/start"], fixtures["sgd/gradients"] = start, gradients
    for name, options in {
        "plain": {},
        "momentum": {"momentum": 0.9, "weight_decay": 5e-4},
        "nesterov": {"momentum": 0.9, "nesterov": True, "weight_decay": 5e-2},
    }.items():
        parameter = torch.from_numpy(start.copy()).requires_grad_()
        optimizer = torch.optim.SGD([parameter], lr=0.1, **options)
        for gradient in gradients:
            parameter.grad = torch.from_numpy(gradient.copy())
            optimizer.step()
        store(fixtures, f"sgd/{name}", [parameter.detach().numpy()], 3)
    return fixtures


# What the C++ side of the training test does too (training_agreement_test.cc).
STEPS, BATCH, MICRO_BATCH, CLASSES, SEED, GRID = 20, 16, 8, 8, 7, 4
MOMENTUM, WEIGHT_DECAY = 0.9, 5e-4
EMBEDDING, MARGIN, SCALE = 64, 0.5, 16.0
SIDES = {"lenet5": 28, "resnet18": 32, "iresnet18": 16}
# A ReLU or a max pool that rounding tips over changes a deep network's gradient by parts of a hundred; at a usual rate
# two runs of PyTorch itself have nothing in common after ten steps. At these they stay together.
RATES = {"lenet5": 0.01, "resnet18": 2e-6, "iresnet18": 2e-6}


def initialize(module):
    """Fills a module as nn::initialize does; returns the parameters on which weight decay acts."""
    decayed = []
    for prefix, child in module.named_modules():
        for name, parameter in child.named_parameters(prefix, recurse=False):
            shape, extra = tuple(parameter.shape), {}
            if isinstance(child, torch.nn.Conv2d | torch.nn.Linear):
                kind = "convolution" if parameter.dim() == 4 else "linear"
                extra = {"groups": getattr(child, "groups", 1), "fan_in": child.weight[0].numel()}
                if parameter.dim() > 1:
                    decayed.append(parameter)
            elif isinstance(child, torch.nn.PReLU):
                kind = "slope"
            else:
                kind = "one" if name.endswith("weight") else "zero"
            with torch.no_grad():
                parameter.copy_(torch.from_numpy(outrigger_random.initial(name, shape, SEED, kind, **extra).copy()))
    return decayed


def draw_batch(step, side):
    """Images of GRID x GRID random colours, and labels.

    Images of noise are all alike to a network's deep layers: their batch norms divide by almost nothing, and no two
    implementations agree for long.
    """
    count = BATCH * GRID * GRID * 3
    data = outrigger_random.numbers(SEED, outrigger_random.SYNTHETIC_DATA, step, count + BATCH)
    colours = torch.from_numpy((data[:count] >> numpy.uint64(24)).astype(numpy.uint8)).view(BATCH, GRID, GRID, 3)
    cell = torch.arange(side) * GRID // side
    labels = torch.from_numpy((data[count:] * numpy.uint64(CLASSES) >> numpy.uint64(32)).astype(numpy.int64))
    return colours[:, cell][:, :, cell].contiguous(), labels


def train(model, memory_format, steps=STEPS):
    """`steps` steps of SGD over batches of micro-batches; batch norm sees a micro-batch."""
    side = SIDES[model]
    arcface = model.startswith("iresnet")
    module = peer_models.make(model, 0 if arcface else CLASSES, side, 3, EMBEDDING)
    decayed = initialize(module)
    parameters = [p for p in module.parameters() if p.requires_grad]
    head = None
    if arcface:
        shape = (CLASSES, EMBEDDING)
        head = torch.from_numpy(outrigger_random.initial("head.weight", shape, SEED, "arcface").copy()).requires_grad_()
        parameters.append(head)
        decayed.append(head)
    module = module.to(memory_format=memory_format).train()
    kept = {id(p) for p in decayed}
    groups = [
        {"params": decayed, "weight_decay": WEIGHT_DECAY},
        {"params": [p for p in parameters if id(p) not in kept], "weight_decay": 0.0},
    ]
    optimizer = torch.optim.SGD(groups, lr=RATES[model], momentum=MOMENTUM)
    losses = []
    for step in range(steps):
        pixels, labels = draw_batch(step, side)
        optimizer.zero_grad()
        total = 0.0
        for first in range(0, BATCH, MICRO_BATCH):
            part = slice(first, first + MICRO_BATCH)
            x = peer_models.normalize(model, pixels[part]).contiguous(memory_format=memory_format)
            logits = module(x)
            if arcface:
                logits = peer_models.arcface_logits(logits, head, labels[part], MARGIN, SCALE)
            loss = functional.cross_entropy(logits, labels[part], reduction="sum") / BATCH
            loss.backward()
            total += loss.item()
        losses.append(total)
        optimizer.step()
    state = {k: v.detach().contiguous().numpy() for k, v in module.state_dict().items() if v.is_floating_point()}
    if head is not None:
        state["head.weight"] = head.detach().numpy()
    return {"losses": numpy.array(losses, dtype=numpy.float32), "state": state}


def length(values):
    return numpy.sqrt((values.astype(numpy.float64) ** 2).sum())


def largest(values):
    return numpy.abs(values.astype(numpy.float64)).max()


def scale_of(state, name):
    """Of what size the numbers are that a tensor's rounding comes from."""
    if name.endswith(".running_mean"):
        return largest(state[name]) + largest(state[name.replace("_mean", "_var")]) ** 0.5
    return largest(state[name])


def make_training(model):
    """The loss of every step; of every tensor of the trained model its norm and its first numbers.

    What tips over differs from tensor to tensor and from run to run, so the spread of the weights is pooled: the worst
    spread of any tensor relative to how far the training moved it, times how far it moved this one. Weights and running
    averages are pooled apart. Tensors that do not move in earnest (the mean of what a batch norm gave is nothing but
    rounding) have their own spread.
    """
    fixtures = {}
    start = train(model, torch.contiguous_format, steps=0)["state"]
    answers = in_variants(lambda memory_format: train(model, memory_format))
    store(fixtures, "losses", [answer["losses"] for answer in answers], 1000)
    states = [answer["state"] for answer in answers]
    averages = {name for name in start if ".running_" in name}
    for kind, measure in (("norm", length), ("first", largest)):
        spread = {n: max(measure(state[n] - states[0][n]) for state in states) for n in start}
        movement = {n: measure(states[0][n] - start[n]) for n in start}
        for group in (averages, start.keys() - averages):
            worst = max((spread[n] / movement[n] for n in group if movement[n] > 10 * spread[n]), default=0.0)
            print(f"{model}, {kind}: worst spread relative to the movement: {worst:.2g}")
            for n in group:
                value = [length(states[0][n])] if kind == "norm" else states[0][n].reshape(-1)[:16]
                count = start[n].size if kind == "norm" else 1
                rounding = ROUNDING * scale_of(states[0], n) * (STEPS * count) ** 0.5
                bound = SPREADS * (max(worst * movement[n], spread[n]) + rounding)
                fixtures[f"{n}/{kind}"] = numpy.array(value, dtype=numpy.float32)
                fixtures[f"{n}/{kind}.tolerance"] = numpy.array(bound, dtype=numpy.float32)
    return fixtures


def main():
    folder = TESTS / "fixtures"
    folder.mkdir(exist_ok=True)
    made = {"operations": make_operations, "losses": make_losses}
    for model in SIDES:
        made["training_" + model] = lambda model=model: make_training(model)
    for name in sys.argv[1:] or made:
        path = folder / f"{name}.safetensors"
        safetensors.numpy.save_file(made[name](), path)
        print(f"{path.relative_to(ROOT)}: {path.stat().st_size} bytes, PyTorch {torch.__version__}")


if __name__ == "__main__":
    main()
