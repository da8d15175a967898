"""Makes trajectory.json: five steps of training by PyTorch, to compare ours with; run once where PyTorch is installed.

An adapter of 5 hidden units over 6 features for 3 classes, with a normalisation per domain: cross-entropy on the source and
the entropy of the target, SGD with momentum, weight decay, a smaller rate for the body, an annealed rate. Numbers that both
sides need are made by the same formula.
"""

import json

import torch
from torch import nn

torch.set_default_dtype(torch.float64)


def numbers(count, shift):
    return torch.tensor([((at * 37 + shift) % 101) / 50 - 1 for at in range(count)])


class Adapter(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1, self.classifier = nn.Linear(6, 5), nn.Linear(5, 3)
        self.norms = nn.ModuleDict({"source": nn.BatchNorm1d(5), "target": nn.BatchNorm1d(5)})

    def forward(self, rows, domain):
        return self.classifier(torch.relu(self.norms[domain](self.fc1(rows))))


model = Adapter()
with torch.no_grad():
    model.fc1.weight.copy_(numbers(30, 1).reshape(6, 5).T)
    model.fc1.bias.copy_(numbers(5, 2))
    model.classifier.weight.copy_(numbers(15, 3).reshape(5, 3).T)
    model.classifier.bias.copy_(numbers(3, 4))
body = [*model.fc1.parameters(), *model.norms.parameters()]
optimiser = torch.optim.SGD([{"params": body}, {"params": model.classifier.parameters()}], lr=0.1, momentum=0.9,
                            weight_decay=5e-4)
losses = []
for step in range(5):
    rate = 0.1 / (1 + 10 * step / 5) ** 0.75
    optimiser.param_groups[0]["lr"], optimiser.param_groups[1]["lr"] = 0.1 * rate, rate
    source, target = numbers(4 * 6, 5 + step).reshape(4, 6), numbers(4 * 6, 55 + step).reshape(4, 6) * 2
    classes = torch.tensor([0, 1, 2, (step + 1) % 3])
    loss = nn.functional.cross_entropy(model(source, "source"), classes)
    log = torch.log_softmax(model(target, "target"), 1)
    entropy = -(log.exp() * log).sum(1).mean()
    optimiser.zero_grad()
    (loss + 0.3 * entropy).backward()
    optimiser.step()
    losses.append([loss.item(), entropy.item()])
result = {
    "torch": torch.__version__,
    "losses": losses,
    "fc1.weight": model.fc1.weight.T.flatten().tolist(),
    "classifier.weight": model.classifier.weight.T.flatten().tolist(),
    "target.weight": model.norms["target"].weight.tolist(),
    "source.bias": model.norms["source"].bias.tolist(),
    "target.running_mean": model.norms["target"].running_mean.tolist(),
    "source.running_var": model.norms["source"].running_var.tolist(),
}
with open("trajectory.json", "w") as file:
    json.dump(result, file)
