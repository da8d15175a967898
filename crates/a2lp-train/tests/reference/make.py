"""Makes the files that the networks are tested against; run once where PyTorch and torchvision are installed.

A ResNet-50 of two channels where the real one has 64, with random weights, as .safetensors, .pth and .onnx, and the
features that PyTorch computes for two images that every language can make. Of the whole ResNet-18 and ResNet-50 only
some features are kept: their weights are hashes, which every language can make as well.
"""

import json

import numpy
import torch
import torchvision
from safetensors.torch import save_file
from torch import nn
from torchvision.models.resnet import Bottleneck, ResNet


class Narrow(ResNet):
    def __init__(self):
        nn.Module.__init__(self)
        self._norm_layer, self.inplanes, self.dilation, self.groups, self.base_width = nn.BatchNorm2d, 2, 1, 1, 64
        self.conv1 = nn.Conv2d(3, 2, 7, 2, 3, bias=False)
        self.bn1, self.relu, self.maxpool = nn.BatchNorm2d(2), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1)
        for at, blocks in enumerate([3, 4, 6, 3]):
            layer = self._make_layer(Bottleneck, 2 << at, blocks, stride=1 if at == 0 else 2)
            setattr(self, f"layer{at + 1}", layer)
        self.avgpool, self.fc = nn.AdaptiveAvgPool2d((1, 1)), nn.Linear(64, 5)

    def forward(self, x):
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        for layer in (self.layer1, self.layer2, self.layer3, self.layer4):
            x = layer(x)
        return torch.flatten(self.avgpool(x), 1)


torch.manual_seed(0)
model = Narrow()
for module in model.modules():
    if isinstance(module, nn.BatchNorm2d):
        nn.init.uniform_(module.weight, 0.5, 1.5)
        nn.init.normal_(module.bias, std=0.3)
        nn.init.normal_(module.running_mean, std=0.3)
        nn.init.uniform_(module.running_var, 0.5, 1.5)
model.eval()
images = ((torch.arange(2 * 3 * 64 * 64) * 37) % 101).float().reshape(2, 3, 64, 64) / 50 - 1
with torch.no_grad():
    features = model(images)
save_file(model.state_dict(), "narrow.safetensors")
torch.save(model.state_dict(), "narrow.pth")
torch.onnx.export(model, images, "narrow.onnx", input_names=["images"], output_names=["features"], dynamo=False,
                  dynamic_axes={"images": {0: "n", 2: "h", 3: "w"}, "features": {0: "n"}})
with open("narrow.json", "w") as file:
    json.dump({"torch": torch.__version__, "features": features.tolist()}, file)


def numbers(name, count):
    """A hash of the name and of the place, in [0, 1)."""
    start = 2166136261
    for byte in name.encode():
        start = (start ^ byte) * 16777619 % 2**32
    hashes = (numpy.arange(count, dtype=numpy.uint64) * 2654435761 + start).astype(numpy.uint32)
    hashes = (hashes ^ (hashes >> numpy.uint32(15))) * numpy.uint32(2246822519)
    hashes = (hashes ^ (hashes >> numpy.uint32(13))) * numpy.uint32(3266489917)
    return torch.from_numpy((hashes >> numpy.uint32(8)).astype(numpy.float32) / 2**24)


whole = {}
for name in ("resnet18", "resnet50"):
    model = getattr(torchvision.models, name)()
    state = model.state_dict()
    for key, tensor in state.items():
        if key.startswith("fc.") or key.endswith("num_batches_tracked"):
            continue
        values = numbers(key, tensor.numel()).reshape(tensor.shape)
        if key.endswith("running_var"):
            values = 0.5 + values
        elif key.endswith(("bias", "running_mean")):
            values = 0.4 * values - 0.2
        elif tensor.dim() == 1:
            values = 0.4 + 0.4 * values
        else:
            values = (values - 0.5) * (12 / tensor[0].numel()) ** 0.5
        state[key] = values
    model.load_state_dict(state)
    model.eval()
    model.fc = nn.Identity()
    with torch.no_grad():
        features = model(images)
    every = features.numel() // 128
    some = features.flatten()[::every].tolist()
    whole[name] = {"columns": features.shape[1], "every": every, "features": some}
with open("whole.json", "w") as file:
    json.dump({"torch": torch.__version__, **whole}, file)
