"""Pseudo-labels in a training loop: PyTorch where it is installed, else the same loop with a learner in NumPy."""

import numpy as np

import a2lp

rng = np.random.default_rng(2)
centres = rng.normal(size=(4, 32))
y_source, y_target = rng.integers(0, 4, 400).astype("i8"), rng.integers(0, 4, 400)
source = (centres[y_source] + 0.9 * rng.normal(size=(400, 32))).astype("f4")
target = (centres[y_target] + 0.9 * rng.normal(size=32) + 0.9 * rng.normal(size=(400, 32))).astype("f4")
EPOCHS = 5
labeller = a2lp.PseudoLabeller(threshold=0.7)


class NumpyLearner:
    """A linear layer to 16 features, unit length, and a softmax; gradient descent on the classifier."""

    def __init__(self):
        self.embed = rng.normal(size=(32, 16)) / 6
        self.weights = np.zeros((16, 4))

    def features(self, x):
        return np.tanh(x @ self.embed).astype("f4")

    def logits(self, x):
        return self.features(x) @ self.weights

    def step(self, x, labels, weights):
        features, rate = self.features(x), 0.5
        p = np.exp(features @ self.weights)
        p /= p.sum(axis=1, keepdims=True)
        p[np.arange(len(x)), labels] -= 1
        self.weights -= rate * features.T @ (p * weights[:, None]) / max(weights.sum(), 1e-9)


def with_numpy():
    model = NumpyLearner()
    for epoch in range(EPOCHS):
        labels, weights, keep = labeller(model.features(source), y_source, model.features(target), training=epoch / EPOCHS)
        for _ in range(20):
            model.step(source, y_source, np.ones(len(source)))
            model.step(target[keep], labels[keep], weights[keep])
        report(epoch, keep.mean(), (labels == y_target).mean(), (model.logits(target).argmax(axis=1) == y_target).mean())


def with_torch(torch):
    torch.manual_seed(0)
    features, classifier = torch.nn.Sequential(torch.nn.Linear(32, 16), torch.nn.Tanh()), torch.nn.Linear(16, 4)
    optimiser = torch.optim.SGD([*features.parameters(), *classifier.parameters()], lr=0.1, momentum=0.9)
    xs, xt, ys = torch.as_tensor(source), torch.as_tensor(target), torch.as_tensor(y_source)
    for epoch in range(EPOCHS):
        labels, weights, keep = labeller(features(xs), ys, features(xt), training=epoch / EPOCHS)
        for _ in range(20):
            loss = torch.nn.functional.cross_entropy(classifier(features(xs)), ys)
            each = torch.nn.functional.cross_entropy(classifier(features(xt[keep])), labels[keep], reduction="none")
            loss = loss + (weights[keep] * each).sum() / weights[keep].sum().clamp(min=1e-9)
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
        right = (classifier(features(xt)).argmax(dim=1).numpy() == y_target).mean()
        report(epoch, keep.float().mean().item(), (labels.numpy() == y_target).mean(), right)


def report(epoch, kept, labels_right, right):
    print(f"epoch {epoch}: {kept:.0%} kept, {labels_right:.1%} of the pseudo-labels right, classifier {right:.1%}")


try:
    import torch
except ImportError:
    with_numpy()
else:
    with_torch(torch)
