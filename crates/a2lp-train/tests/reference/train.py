"""Makes trajectory.json: six steps of every learner by PyTorch, to compare ours with; run once where PyTorch is installed.

An adapter of 5 hidden units over 6 features for 3 classes, with batch-norm statistics per domain, and a discriminator without
dropout. Two rounds of three steps; every batch holds all items, so the order of the items does not matter. Losses, ramps,
weights and the learning rates are written here from the papers' formulas. Numbers that both sides need come from one formula.
"""

import json
import math

import torch
from torch import nn

torch.set_default_dtype(torch.float64)

ITEMS, COLUMNS, HIDDEN, CLASSES, JUDGE = 12, 6, 5, 3, 4
ROUNDS, STEPS = 2, 3
RATE, BODY_SHARE, MU, BETA, MOMENTUM, DECAY = 0.05, 0.1, 10, 0.75, 0.9, 5e-4
TARGET_WEIGHT, ADVERSARIAL_WEIGHT, THETA = 0.5, 0.2, 0.7


def numbers(count, shift):
    return torch.tensor([((at * 37 + shift) % 101) / 50 - 1 for at in range(count)])


SOURCE = numbers(ITEMS * COLUMNS, 5).reshape(ITEMS, COLUMNS)
TARGET = 2 * numbers(ITEMS * COLUMNS, 55).reshape(ITEMS, COLUMNS)
SOURCE_CLASSES = torch.arange(ITEMS) % CLASSES
PSEUDO_LABELS = (torch.arange(ITEMS) + 1) % CLASSES
PSEUDO_WEIGHTS = 0.1 * (1 + torch.arange(ITEMS) % 5)


def linear(columns, width, shift):
    layer = nn.Linear(columns, width)
    with torch.no_grad():
        layer.weight.copy_(numbers(columns * width, shift).reshape(columns, width).T)
        layer.bias.copy_(numbers(width, shift + 1))
    return layer


class Reverse(torch.autograd.Function):
    """Passes values on, and gradients times −strength."""

    @staticmethod
    def forward(ctx, rows, strength):
        ctx.strength = strength
        return rows.clone()

    @staticmethod
    def backward(ctx, gradient):
        return -ctx.strength * gradient, None


class Network(nn.Module):
    def __init__(self, splits, adversarial):
        super().__init__()
        self.body = nn.ModuleDict({"fc1": linear(COLUMNS, HIDDEN, 1), "target": nn.BatchNorm1d(HIDDEN)})
        if splits:
            self.body["source"] = nn.BatchNorm1d(HIDDEN)
        self.classifier = linear(HIDDEN, CLASSES, 3)
        self.judge = None
        if adversarial:
            layers = [linear(HIDDEN, JUDGE, 11), nn.ReLU(), linear(JUDGE, JUDGE, 13), nn.ReLU(), linear(JUDGE, 1, 15)]
            self.judge = nn.Sequential(*layers)

    def forward(self, rows, domain):
        norm = self.body[domain] if domain in self.body else self.body["target"]
        features = torch.relu(norm(self.body["fc1"](rows)))
        return features, self.classifier(features)


def cdd(layers, source_classes, target_classes):
    """CAN's eq. 3 to 5, pair of classes by pair of classes."""
    squared = lambda a, b: ((a[:, None] - b[None]) ** 2).sum(2)
    total = 0
    for source, target in layers:
        for a in range(CLASSES):
            for b in range(CLASSES):
                s, t = source[source_classes == a], target[target_classes == b]
                ss, tt, st = squared(s, s), squared(t, t), squared(s, t)
                n, m = len(s), len(t)
                pairs = (n + m) * (n + m) - n - m
                width = ((ss.sum() + tt.sum() + 2 * st.sum()) / pairs).detach()
                kernel = lambda d: sum(torch.exp(-(d / (width * 2.0**at)).clamp(1e-5, 1e5)) for at in range(-2, 3)).mean()
                mmd = kernel(ss) + kernel(tt) - 2 * kernel(st)
                total = total + (mmd / CLASSES if a == b else -mmd / (CLASSES * (CLASSES - 1)))
    return total


class Centroids:
    """MSTN's moving centroids of one domain."""

    def __init__(self):
        self.values = [None] * CLASSES

    def update(self, features, classes):
        moved = []
        for c in range(CLASSES):
            rows = features[classes == c]
            if len(rows) == 0:
                moved.append(self.values[c])
            elif self.values[c] is None:
                moved.append(rows.mean(0))
            else:
                moved.append(THETA * self.values[c] + (1 - THETA) * rows.mean(0))
        self.values = [None if value is None else value.detach() for value in moved]
        return moved


def centroid_distance(source, target):
    both = [(s - t) ** 2 for s, t in zip(source, target) if s is not None and t is not None]
    return sum(d.sum() for d in both) / (CLASSES * HIDDEN)


def train(learner, own_labels):
    adversarial = learner in ("dann", "mstn")
    network = Network(splits=learner != "source-only", adversarial=adversarial)
    groups = []
    for name, value in network.named_parameters():
        share = BODY_SHARE if name.startswith("body.") else 1
        plain = adversarial and value.dim() == 1
        groups.append({"params": [value], "share": 2 * share if plain else share, "weight_decay": 0 if plain else DECAY})
    optimiser = torch.optim.SGD(groups, lr=RATE, momentum=MOMENTUM)
    centroids = [Centroids(), Centroids()]
    # One item has no pseudo-label, except for CAN, whose batches are drawn by class.
    labels = PSEUDO_LABELS.clone()
    if learner != "can":
        labels[0] = -1
    losses = []
    for step in range(ROUNDS * STEPS):
        progress = step / (ROUNDS * STEPS)
        ramp = 2 / (1 + math.exp(-10 * progress)) - 1
        source, logits = network(SOURCE, "source")
        loss = [nn.functional.cross_entropy(logits, SOURCE_CLASSES), torch.zeros(()), torch.zeros(())]
        weights = [1, TARGET_WEIGHT, ADVERSARIAL_WEIGHT]
        if learner == "can":
            (s, s_logits), (t, t_logits) = network(SOURCE, "source"), network(TARGET, "target")
            layers = [(s, t), (s_logits.softmax(1), t_logits.softmax(1))]
            loss[1] = cdd(layers, SOURCE_CLASSES, labels)
        elif learner != "source-only":
            target, target_logits = network(TARGET, "target")
            log = target_logits.log_softmax(1)
            if learner == "em":
                loss[1] = -(log.exp() * log).sum(1).mean()
                weights[1] *= ramp
            if learner == "ce":
                known = labels >= 0
                picked = -log[known, labels[known]] * PSEUDO_WEIGHTS[known]
                loss[1] = picked.sum() / PSEUDO_WEIGHTS[known].sum()
            if adversarial:
                judged = [network.judge(Reverse.apply(features, ramp)) for features in (source, target)]
                as_if = nn.functional.binary_cross_entropy_with_logits
                loss[2] = as_if(judged[0], torch.zeros_like(judged[0])) + as_if(judged[1], torch.ones_like(judged[1]))
            if learner == "mstn":
                found = target_logits.argmax(1) if own_labels else labels
                moved = centroids[0].update(source, SOURCE_CLASSES), centroids[1].update(target, found)
                loss[1] = centroid_distance(*moved)
                weights[1] *= ramp
        optimiser.zero_grad()
        sum(weight * part for weight, part in zip(weights, loss)).backward()
        for group in optimiser.param_groups:
            group["lr"] = group["share"] * RATE / (1 + MU * progress) ** BETA
        optimiser.step()
        losses.append([part.item() for part in loss])
    result = {"losses": losses}
    for name, value in network.state_dict().items():
        if not name.endswith("num_batches_tracked"):
            result[name] = (value.T if value.dim() == 2 else value).flatten().tolist()
    return result


LEARNERS = [("source-only", False), ("em", False), ("ce", False), ("dann", False), ("mstn", False), ("mstn", True), ("can", False)]
result = {"torch": torch.__version__}
for learner, own_labels in LEARNERS:
    result[learner + ("-own" if own_labels else "")] = train(learner, own_labels)
with open("trajectory.json", "w") as file:
    json.dump(result, file)
