"""Steps of training per second of `a2lp train`, beside PyTorch on networks of the same shape.

    pip install torch torchvision safetensors pillow      # without torch only ours, and no ResNet-18
    cargo build --release && python benches/train.py [--steps 40]

A step is one batch of either domain through the network, cross-entropy on the source, entropy of the target, back, and SGD with
momentum (`--learner em`). LeNet and the adapter take 64 + 64 items, ResNet-18 takes 16 + 16 images of 64 x 64. Ours includes
drawing, jittering and (for ResNet-18) decoding and cropping the images; PyTorch's are tensors in memory already. PyTorch's networks
have one batch normalisation where ours have one per domain.
"""

import argparse
import json
import pathlib
import subprocess
import tempfile
import time

import numpy
from PIL import Image

try:
    import torch
    import torchvision
    from safetensors.torch import save_file
except ImportError:
    torch = None

parser = argparse.ArgumentParser()
parser.add_argument("--a2lp", default=pathlib.Path(__file__).parent / "../target/release/a2lp")
parser.add_argument("--steps", type=int, default=40)
parser.add_argument("--threads", type=int, default=2)
args = parser.parse_args()
folder = pathlib.Path(tempfile.mkdtemp())
draws = numpy.random.default_rng(0)


def ours(name, batch, *options):
    """Steps per second of the better of two rounds."""
    out = folder / f"run-{name}"
    command = [args.a2lp, "train", "--learner", "em", "--train-rounds", "2", "--steps", str(args.steps), "--warm-up", "0",
               "--batch", str(batch), "--threads", str(args.threads), "--out", out, *options]
    subprocess.run(command, check=True, capture_output=True, text=True)
    rounds = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    return max(line["steps"] / line["step_secs"] for line in rounds)


def theirs(model, source, target, batch):
    optimiser = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, weight_decay=5e-4)
    classes = torch.arange(len(source)) % 10
    best = 0
    for _ in range(2):
        start = time.perf_counter()
        for step in range(args.steps):
            rows = (torch.arange(batch) + step * batch) % len(source)
            loss = torch.nn.functional.cross_entropy(model(source[rows]), classes[rows])
            log = torch.log_softmax(model(target[rows]), 1)
            loss = loss - 0.1 * (log.exp() * log).sum(1).mean()
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
        best = max(best, args.steps / (time.perf_counter() - start))
    return best


def row(name, mine, peer):
    other = f"{peer:.1f} | {mine / peer:.2f} x" if peer else "- | -"
    print(f"| {name} | {mine:.1f} | {other} |", flush=True)


if torch:
    torch.set_num_threads(args.threads)
    torch.manual_seed(0)
print(f"{args.threads} threads, PyTorch {torch.__version__ if torch else 'is not installed'}")
print("| network | a2lp, steps/s | PyTorch | a2lp / PyTorch |")
print("|---|---|---|---|")

digits = draws.integers(0, 256, (2, 1000, 28, 28), dtype=numpy.uint8)
labels = numpy.arange(1000) % 10
numpy.save(folder / "labels.npy", labels)
for name, images in zip("st", digits):
    numpy.save(folder / f"digits_{name}.npy", images)
files = ["--source", folder / "digits_s.npy", "--source-labels", folder / "labels.npy", "--target", folder / "digits_t.npy"]
peer = None
if torch:
    nn = torch.nn
    lenet = nn.Sequential(nn.Conv2d(1, 20, 5), nn.MaxPool2d(2), nn.ReLU(), nn.Conv2d(20, 50, 5), nn.MaxPool2d(2), nn.ReLU(),
                          nn.Flatten(), nn.Linear(800, 500), nn.BatchNorm1d(500), nn.ReLU(), nn.Linear(500, 10))
    tensors = torch.from_numpy(digits).float().unsqueeze(2) / 255
    peer = theirs(lenet, tensors[0], tensors[1], 64)
row("LeNet, 28 x 28, 64 + 64", ours("lenet", 64, *files), peer)

features = draws.standard_normal((2, 1000, 1280)).astype(numpy.float32)
for name, rows in zip("st", features):
    numpy.save(folder / f"rows_{name}.npy", rows)
files = ["--source", folder / "rows_s.npy", "--source-labels", folder / "labels.npy", "--target", folder / "rows_t.npy"]
if torch:
    adapter = nn.Sequential(nn.Linear(1280, 256), nn.BatchNorm1d(256), nn.ReLU(), nn.Linear(256, 10))
    peer = theirs(adapter, torch.from_numpy(features[0]), torch.from_numpy(features[1]), 64)
row("adapter, 1280 features, 64 + 64", ours("adapter", 64, *files), peer)

if torch:
    for domain in "st":
        for at in range(100):
            (folder / f"photos_{domain}/{at % 10}").mkdir(parents=True, exist_ok=True)
            small = Image.fromarray(draws.integers(0, 256, (12, 16, 3), dtype=numpy.uint8))
            small.resize((96, 80), Image.BICUBIC).save(folder / f"photos_{domain}/{at % 10}/{at}.jpg", quality=90)
    resnet = torchvision.models.resnet18()
    save_file({name: value.contiguous() for name, value in resnet.state_dict().items()}, folder / "resnet18.safetensors")
    resnet.fc = nn.Linear(512, 10)
    peer = theirs(resnet, torch.randn(100, 3, 64, 64), torch.randn(100, 3, 64, 64), 16)
    files = ["--source", folder / "photos_s", "--target", folder / "photos_t", "--backbone", "resnet18",
             "--weights", folder / "resnet18.safetensors", "--transform", "small"]
    row("ResNet-18, 64 x 64, 16 + 16", ours("resnet18", 16, *files), peer)
