"""Makes the files that the networks are tested against; run once where PyTorch and torchvision are installed.

A ResNet-50 of two channels where the real one has 64, with random weights, as .safetensors, .pth and .onnx, and the
features that PyTorch computes for two images that every language can make.
"""

import json

import torch
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
