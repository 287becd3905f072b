#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Record training steps of PyTorch for tests/unit/nn/test_pytorch.c.

usage: pytorch_reference.py [MODEL...]

Writes tests/golden/pytorch_MODEL.inc: the loss of each of ten steps of SGD,
the gradients of the first step, and the predictions after the last, all
computed in float64. Weights and data come from `fraction` below, which the test
evaluates to the same bits. The file also gives the error of float32 for each
kind of figure: the same steps are repeated in float32 with the examples of a
batch in several orders, which changes only the rounding.

Needs Debian's python3-torch.
"""
import math
import pathlib
import sys

from pytorch_models import Lenet, Logistic, Lstm, Mlp, Resnet, torch

import numpy
from torch.nn import functional

GOLDEN = pathlib.Path(__file__).parent.parent / "tests" / "golden"

STEPS = 10
BATCHES = 2  # of images, repeated, so that the loss falls
ORDERS = 8
GAP = 3

# The first stream of random numbers for each use; add the tensor or the step.
PARAMETERS, GRADIENTS, STATISTICS = 0, 1000, 2000
PROTOTYPES, EXAMPLES, LABELS, TEXT = 3000, 4000, 5000, 6000


# --- random numbers that the C test reproduces ------------------------------

def draw(stream, indices):
    """Return 64 bits for each index: the last steps of SplitMix64."""
    with numpy.errstate(over="ignore"):
        z = numpy.asarray(indices, numpy.uint64)
        z = z + numpy.uint64(stream << 32)
        z = (z + numpy.uint64(1)) * numpy.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> numpy.uint64(30))) * numpy.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> numpy.uint64(27))) * numpy.uint64(0x94D049BB133111EB)
        return z ^ (z >> numpy.uint64(31))


def fraction(stream, n):
    """Return n multiples of 2^-15 in [-1, 1): few bits, so sums are exact."""
    high = (draw(stream, numpy.arange(n)) >> numpy.uint64(48))
    return (high.astype(numpy.float64) - 2.0 ** 15) * 2.0 ** -15


def images(recipe, step):
    """Return images: the prototype of the class plus noise of the same size."""
    step %= BATCHES
    channels, height, width, classes = recipe["sample"]
    n, size = recipe["batch"], channels * height * width
    labels = (draw(LABELS + step, numpy.arange(n))
              >> numpy.uint64(32)) % numpy.uint64(classes)
    labels = labels.astype(numpy.int64)
    noise = fraction(EXAMPLES + step, n * size).reshape(n, size)
    x = numpy.stack(
        [fraction(PROTOTYPES + int(label), size) for label in labels]) + noise
    return (torch.from_numpy(x.reshape(n, channels, height, width)),
            torch.from_numpy(labels))


def text(recipe, step):
    """Return rows of words; the number of each is that of the word before it
    plus 3, give or take 1, modulo the vocabulary."""
    rows, steps = recipe["batch"], recipe["steps"]
    t = numpy.arange(step * steps, (step + 1) * steps + 1)[:, None]
    r = numpy.arange(rows)[None, :]
    coin = (draw(TEXT, t * rows + r) >> numpy.uint64(63)).astype(numpy.int64)
    words = torch.from_numpy((13 * r + 3 * t + coin) % recipe["sample"][3])
    return words[:-1], words[1:]


# --- ten steps --------------------------------------------------------------

def is_norm(name):
    return "bn" in name or "downsample.1" in name


def scale_of(name, shape, recipe):
    """Return (centre, gap, power): the initial values of a tensor are centre +
    2^power * fraction, plus gap at even indices and minus gap at odd ones.

    Biases of batch norms have a gap. Without it, a few of a million rectifiers
    have inputs within rounding error of zero, and each that changes its sign
    changes a gradient by a thousandth.
    """
    if is_norm(name):
        return (1, 0, -2) if name.endswith("weight") else (0, GAP, -2)
    if len(shape) == 1:
        return 0, 0, -4
    if "encoder" in name:
        return 0, 0, 0
    fan_in = math.prod(shape[1:])
    power = round(math.log2(math.sqrt(6 / fan_in)))
    return 0, 0, power - recipe.get("less", 0)


def fill(model, recipe):
    scales = {}
    with torch.no_grad():
        for i, (name, p) in enumerate(model.named_parameters()):
            centre, gap, power = scales[name] = scale_of(
                name, p.shape, recipe)
            values = centre + 2.0 ** power * fraction(
                PARAMETERS + i, p.numel())
            values[0::2] += gap
            values[1::2] -= gap
            p.copy_(torch.from_numpy(values).reshape(p.shape))
    return scales


def figure(stream, tensor):
    """Return the norm of a tensor and its dot product with fractions."""
    values = tensor.detach().double().flatten().numpy()
    return (float(numpy.sqrt(values @ values)),
            float(values @ fraction(stream, values.size)))


def statistics(model):
    return [(name, b) for name, b in model.named_buffers()
            if name.endswith(("running_mean", "running_var"))]


def train(recipe, dtype, order):
    """A dictionary of figures, of a batch with its examples in this order."""
    model = recipe["model"]().to(dtype)
    scales = fill(model, recipe)
    is_text = "steps" in recipe
    make = text if is_text else images
    carry = None
    if is_text:
        shape = (model.rnn.num_layers, recipe["batch"], model.rnn.hidden_size)
        carry = (torch.zeros(shape, dtype=dtype),) * 2
    result = {"scales": scales, "losses": []}

    def forward(step):
        nonlocal carry
        x, labels = make(recipe, step)
        if is_text:
            logits, carry = model(x[:, order], carry)
            carry = tuple(c.detach() for c in carry)
            return logits.flatten(0, 1), labels[:, order].flatten()
        return model(x[order].to(dtype)), labels[order]

    for step in range(STEPS):
        model.zero_grad()
        loss = functional.cross_entropy(*forward(step))
        loss.backward()
        result["losses"].append(loss.item())
        if step == 0:
            result["gradients"] = [
                (name, *figure(GRADIENTS + i, p.grad))
                for i, (name, p) in enumerate(model.named_parameters())]
        with torch.no_grad():
            for p in model.parameters():
                p -= recipe["rate"] * p.grad
    result["statistics"] = [
        (name, *figure(STATISTICS + i, b))
        for i, (name, b) in enumerate(statistics(model))]
    model.eval()
    with torch.no_grad():
        logits, labels = forward(STEPS)
    result["evaluation"] = functional.cross_entropy(logits, labels).item()
    result["correct"] = int((logits.argmax(1) == labels).sum())
    best = logits.topk(2, dim=1).values
    result["margin"] = (best[:, 0] - best[:, 1]).min().item()
    return result


def sizes(gradients):
    """Return the size that the error of each gradient is compared with.

    This is the norm of the gradient. For the bias of a batch norm it is the
    norm of the weight's gradient, if that is larger: the bias sums the same
    terms, which nearly cancel where another batch norm follows.
    """
    norms = [norm for _, norm, _ in gradients]
    return [max(norms[i - 1:i + 1])
            if is_norm(name) and name.endswith("bias") else norms[i]
            for i, (name, _, _) in enumerate(gradients)]


def distance(exact, rounded):
    """Return the errors of float32: of losses, and of figures relative to
    their sizes."""
    losses = max(abs(a - b) for a, b in zip(
        exact["losses"] + [exact["evaluation"]],
        rounded["losses"] + [rounded["evaluation"]]))

    def figures(key, by):
        return max([max(abs(a[1] - b[1]), abs(a[2] - b[2])) / size
                    for a, b, size in zip(exact[key], rounded[key], by)]
                   or [0])
    return (losses,
            figures("gradients", sizes(exact["gradients"])),
            figures("statistics", [s[1] for s in exact["statistics"]]))


# --- the recorded models ----------------------------------------------------

RECIPES = {
    "logistic": dict(
        model=lambda: Logistic(123, 3), spec="logistic",
        sample=(1, 1, 123, 3), batch=16, rate=2.0 ** -4),
    "mlp": dict(
        model=Mlp, spec="mlp", sample=(1, 28, 28, 10), batch=16,
        rate=2.0 ** -6),
    "lenet": dict(
        model=Lenet, spec="lenet", sample=(1, 28, 28, 10), batch=16,
        rate=2.0 ** -6),
    # Small weights, so that the epsilon of batch norms affects the result.
    "resnet8": dict(
        model=lambda: Resnet(1), spec="resnet8", sample=(3, 32, 32, 10),
        batch=8, rate=2.0 ** -9, less=4),
    "resnet20": dict(
        model=lambda: Resnet(3), spec="resnet20", sample=(3, 32, 32, 10),
        batch=4, rate=2.0 ** -11, less=4),
    "lstm": dict(
        model=lambda: Lstm(50, 16, 2, 0.0),
        spec="lstm:hidden=16,layers=2,dropout=0", sample=(0, 0, 0, 50),
        batch=8, steps=12, rate=16.0),
}


def gradient_rows(result):
    return [
        f'    {{"{name}", {", ".join(map(str, result["scales"][name]))},'
        f"\n     {norm:.10g}, {dot:.10g}, {size:.3g}}},"
        for (name, norm, dot), size in zip(
            result["gradients"], sizes(result["gradients"]))]


def statistic_rows(result):
    return [f'    {{"{name}", {norm:.10g}, {dot:.10g}, {norm:.3g}}},'
            for name, norm, dot in result["statistics"]]


def write(name, recipe):
    torch.set_num_threads(1)
    generator = torch.Generator().manual_seed(1)
    exact = train(recipe, torch.float64, torch.arange(recipe["batch"]))
    strays = [0.0, 0.0, 0.0]
    for _ in range(ORDERS):
        order = torch.randperm(recipe["batch"], generator=generator)
        strays = [max(pair) for pair in zip(
            strays, distance(exact, train(recipe, torch.float32, order)))]
    losses = ",\n        ".join(
        ", ".join(f"{v:.10f}" for v in exact["losses"][i:i + 4])
        for i in range(0, STEPS, 4))
    channels, height, width, classes = recipe["sample"]
    stats = "NULL"
    out = ["// SPDX-License-Identifier: MIT",
           f"// Written by tools/pytorch_reference.py, PyTorch "
           f"{torch.__version__}; do not edit.",
           f"static const tensor_figures {name}_gradients[] = {{",
           *gradient_rows(exact), "};", ""]
    if exact["statistics"]:
        stats = f"{name}_statistics"
        out += [f"static const figures {name}_statistics[] = {{",
                *statistic_rows(exact), "};", ""]
    out += [
        f"static const reference {name}_reference = {{",
        f'    .spec = "{recipe["spec"]}",',
        f"    .sample = {{{channels}, {height}, {width}, {classes}}},",
        f"    .batch = {recipe['batch']},",
        f"    .steps = {recipe.get('steps', 0)},",
        f"    .rate = {recipe['rate']}F,",
        f"    .losses =\n        {{{losses}}},",
        f"    .evaluation = {exact['evaluation']:.10f},",
        f"    .correct = {exact['correct']},",
        f"    .gradients = {name}_gradients,",
        f"    .tensors = {len(exact['gradients'])},",
        f"    .statistics = {stats},",
        f"    .statistics_count = {len(exact['statistics'])},",
        f"    .stray = {{{', '.join(f'{s:.2g}' for s in strays)}}},",
        "};", ""]
    (GOLDEN / f"pytorch_{name}.inc").write_text("\n".join(out))
    print(f"{name}: losses {exact['losses'][0]:.4f} to "
          f"{exact['losses'][-1]:.4f}, evaluation {exact['evaluation']:.4f} "
          f"({exact['correct']} right, margin {exact['margin']:.2g}); float32 "
          f"strays by {strays[0]:.2g}, gradients {strays[1]:.2g}, "
          f"statistics {strays[2]:.2g}")
    if exact["margin"] < 100 * strays[0]:
        sys.exit(f"{name}: two classes are equally probable; the number of "
                 "right ones would depend on rounding")


def main():
    for name in sys.argv[1:] or RECIPES:
        if name not in RECIPES:
            sys.exit(f"{name}: no such model, expected "
                     f"{', '.join(RECIPES)}")
        write(name, RECIPES[name])


if __name__ == "__main__":
    main()
