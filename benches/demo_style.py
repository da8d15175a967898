"""Why `a2lp train --demo` reports so little for source-only: undoes the target's style step by step.

    python benches/demo_style.py path/to/a2lp        # needs NumPy and a binary with the feature `networks`; five minutes

Trains source-only with and without jitter on the demo's images, and prints the accuracy on the target with its slant sheared
away, its strokes thinned, and its contrast matched.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

SIDE = 28


def neighbourhoods(images):
    """The nine pixels around every pixel."""
    padded = np.pad(images.astype(float), ((0, 0), (1, 1), (1, 1)), mode="edge")
    return np.stack([padded[:, y : y + SIDE, x : x + SIDE] for y in range(3) for x in range(3)])


def upright(images):
    """Shears by the target's mean slant of one half."""
    sheared = np.zeros_like(images)
    for y in range(SIDE):
        sheared[:, y] = np.roll(images[:, y], round(0.5 * (y - (SIDE - 1) / 2)), axis=1)
    return sheared


def thin(images):
    """Smooths the noise and erodes by one pixel."""
    return neighbourhoods(neighbourhoods(images).mean(0)).min(0)


def contrast(images):
    """From the target's greys (30 to 220) to the source's (15 to 240)."""
    return (images.astype(float) - 30) / 190 * 225 + 15


def main(a2lp):
    def run(*words):
        return subprocess.run([a2lp, *map(str, words)], check=True, capture_output=True, text=True).stdout

    folder = Path(tempfile.mkdtemp())
    run("demo", "--out", folder / "demo")
    source, target = (np.load(folder / "demo" / f"{name}.npz") for name in ("source", "target"))
    images = 255 - target["images"]
    variants = {
        "as it is": images,
        "upright": upright(images),
        "upright, thin": upright(thin(images)),
        "upright, thin, contrast": contrast(upright(thin(images))),
    }
    np.save(folder / "source.npy", source["images"])
    np.save(folder / "labels.npy", source["labels"])
    for name, pixels in variants.items():
        np.save(folder / f"{name}.npy", np.clip(pixels, 0, 255).astype(np.uint8))
    for jitter in ("0.25", "0"):
        model = folder / f"model-{jitter}"
        run("train", "--source", folder / "source.npy", "--source-labels", folder / "labels.npy", "--target",
            folder / "as it is.npy", "--learner", "source-only", "--jitter", jitter, "--out", model)
        tests = [("source", folder / "labels.npy")] + [(name, folder / "demo" / "truth.txt") for name in variants]
        for name, truth in tests:
            told = run("predict", "--model", model, "--images", folder / f"{name}.npy", "--eval-labels", truth, "--out",
                       folder / "labels.csv", "--force")
            print(f"jitter {jitter}, {name}: {next(line for line in told.splitlines() if line.startswith('accuracy'))}")


if __name__ == "__main__":
    main(*sys.argv[1:])
