"""Images per second of `a2lp extract` beside PyTorch and onnxruntime, on the same weights and the same files.

    pip install torch torchvision onnx onnxruntime safetensors pillow
    cargo build --release && python benches/extract.py [--count 64] [--networks resnet18 resnet50]

PyTorch's figure is its forward pass alone, on images that are in memory already; ours includes reading, decoding and
resizing the files and writing the features. All use the same number of threads and batches of 32.
"""

import argparse
import pathlib
import re
import subprocess
import tempfile
import time

import numpy
import onnxruntime
import torch
import torchvision
from PIL import Image
from safetensors.torch import save_file

parser = argparse.ArgumentParser()
parser.add_argument("--a2lp", default=pathlib.Path(__file__).parent / "../target/release/a2lp")
parser.add_argument("--count", type=int, default=64)
parser.add_argument("--threads", type=int, default=2)
parser.add_argument("--networks", nargs="+", default=["resnet18", "resnet50"])
args = parser.parse_args()
torch.set_num_threads(args.threads)
folder = pathlib.Path(tempfile.mkdtemp())
draws = numpy.random.default_rng(0)
(folder / "images").mkdir()
for at in range(args.count):
    small = Image.fromarray(draws.integers(0, 256, (12, 16, 3), dtype=numpy.uint8))
    small.resize((480, 360), Image.BICUBIC).save(folder / f"images/{at:04}.jpg", quality=90)
transform = torchvision.transforms.Compose([
    torchvision.transforms.Resize(256), torchvision.transforms.CenterCrop(224), torchvision.transforms.ToTensor(),
    torchvision.transforms.Normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225])])
files = sorted((folder / "images").iterdir())
images = torch.stack([transform(Image.open(file)) for file in files])


def batches(forward):
    """Images per second: the better of two rounds."""
    best = 0
    for _ in range(2):
        start = time.perf_counter()
        parts = [forward(images[at:at + 32]) for at in range(0, len(images), 32)]
        best = max(best, len(images) / (time.perf_counter() - start))
    return best, torch.cat(parts)


def ours(*network):
    best = 0
    for _ in range(2):
        command = [args.a2lp, "extract", "--images", folder / "images", *network, "--out", folder / "ours.npz",
                   "--threads", str(args.threads), "--force"]
        text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        best = max(best, float(re.search(r"\(([\d.]+) images/s", text)[1]))
    return best, torch.from_numpy(numpy.load(folder / "ours.npz")["features"])


print(f"{args.count} images, {args.threads} threads, PyTorch {torch.__version__}")
print("| network | a2lp, images/s | PyTorch | a2lp, ONNX | onnxruntime | a2lp ÷ onnxruntime | a2lp ÷ PyTorch | smallest cosine |")
print("|---|---|---|---|---|---|---|---|")
for name in args.networks:
    torch.manual_seed(0)
    model = getattr(torchvision.models, name)()
    # One pass in training mode, so that the running statistics are those of images.
    with torch.no_grad():
        model(images[:32])
    model.eval()
    state = {key: value.contiguous() for key, value in model.state_dict().items()}
    save_file(state, folder / f"{name}.safetensors")
    model.fc = torch.nn.Identity()
    torch.onnx.export(model, images[:2], folder / f"{name}.onnx", dynamo=False, input_names=["x"],
                      output_names=["y"], dynamic_axes={"x": {0: "n"}, "y": {0: "n"}})
    with torch.no_grad():
        theirs, features = batches(model)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = args.threads
    session = onnxruntime.InferenceSession(str(folder / f"{name}.onnx"), options)
    runtime, _ = batches(lambda part: torch.from_numpy(session.run(None, {"x": part.numpy()})[0]))
    burn, found = ours("--backbone", name, "--weights", folder / f"{name}.safetensors")
    library = next((pathlib.Path(onnxruntime.__file__).parent / "capi").glob("libonnxruntime.so*"))
    onnx, _ = ours("--onnx", folder / f"{name}.onnx", "--onnx-runtime", library)
    cosine = torch.nn.functional.cosine_similarity(found, features).min().item()
    print(f"| {name} | {burn:.1f} | {theirs:.1f} | {onnx:.1f} | {runtime:.1f} | {onnx / runtime:.2f} | {burn / theirs:.2f} | {cosine:.6f} |")
