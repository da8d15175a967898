"""The resize behind `a2lp extract`, beside the real Pillow."""

import numpy as np
import pytest
from PIL import Image

from a2lp import _native


def pictures():
    rng = np.random.default_rng(0)
    y, x = np.mgrid[:300, :400]
    smooth = np.stack([x * 255 // 400, y * 255 // 300, (x + y) % 256], axis=2)
    edges = np.where(((x // 7 + y // 5) % 2)[..., None] == 0, 250, [10, 120, 200])
    return {
        "noise": rng.integers(0, 256, (333, 257, 3)),
        "smooth": smooth,
        "edges": edges,
        "tiny": rng.integers(0, 256, (3, 5, 3)),
        "tall": rng.integers(0, 256, (900, 40, 3)),
    }


@pytest.mark.parametrize("name", pictures())
@pytest.mark.parametrize("bicubic", [False, True])
@pytest.mark.parametrize("size", [(256, 256), (224, 224), (341, 256), (64, 48), (500, 610)])
def test_as_pillow_does_it(name, bicubic, size):
    image = np.ascontiguousarray(pictures()[name].astype(np.uint8))
    filter_ = Image.Resampling.BICUBIC if bicubic else Image.Resampling.BILINEAR
    # Along the rows, then down the columns. In one call newer Pillows begin with the axis that shrinks more, which
    # differs where a cubic overshoots.
    across = Image.fromarray(image).resize((size[0], image.shape[0]), filter_)
    theirs = np.asarray(across.resize(size, filter_)).astype(int)
    ours = _native._resize(image, *size, bicubic).astype(int)
    assert ours.shape == theirs.shape
    assert (np.abs(ours - theirs) <= 1).mean() >= 0.999
