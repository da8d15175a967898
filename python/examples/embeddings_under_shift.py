"""Embeddings of two domains: label the second by the first, and see what is sure."""

import numpy as np

import a2lp

rng = np.random.default_rng(0)
classes = np.array(["backpack", "bike", "keyboard", "mug"])
centres = rng.normal(size=(4, 128)) + 0.5

# Product photos, labelled; and phone snapshots: the same classes seen differently.
y_photos = rng.integers(0, 4, 600)
photos = centres[y_photos] + 2.5 * rng.normal(size=(600, 128))
y_snapshots = rng.integers(0, 4, 800)
snapshots = centres[y_snapshots] + 0.8 * rng.normal(size=128) + 3.5 * rng.normal(size=(800, 128))

result = a2lp.label(photos, classes[y_photos], snapshots)
right = result.labels == classes[y_snapshots]
sure = result.confidence > np.median(result.confidence)
print(f"{right.mean():.1%} of all snapshots are labelled correctly, {right[sure].mean():.1%} of the surer half")
print(result.to_frame().sort_values("confidence").head())

result.report("snapshots.html", y_true=classes[y_snapshots], title="Snapshots by product photos", force=True)
print("a page to look at: snapshots.html")
