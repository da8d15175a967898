"""Makes two small domains and labels them: an independent implementation of the method in NumPy, for tests to compare with.

    python make.py        # needs NumPy; writes source.npz, target.npz and answers.json beside this file,
                          # and the worked example of the crate a2lp

Everything is dense and in float64, straight from the paper's equations; nothing is shared with the Rust code.
"""

import json
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
CLASSES, PER_CLASS, COLUMNS = 10, 40, 48


def domains(seed=0):
    """Clouds round class means; in the target the means have moved, half of the way together, and the clouds are wider."""
    rng = np.random.default_rng(seed)
    means = rng.normal(size=(CLASSES, COLUMNS))
    shift = rng.normal(size=COLUMNS)
    moved = 0.6 * means + 0.5 * rng.normal(size=means.shape) + 0.8 * shift
    labels = np.repeat(np.arange(CLASSES), PER_CLASS)
    # Every class stretches along directions of its own, so that neighbours of neighbours lead further than centres.
    stretch = rng.normal(size=(CLASSES, 3, COLUMNS)) * 0.7

    def draw(centres, noise):
        along = rng.normal(size=(len(labels), 3))
        rows = centres[labels] + np.einsum("ij,ijk->ik", along, stretch[labels])
        return (rows + noise * rng.normal(size=rows.shape)).astype(np.float32)

    return draw(means, 1.3), draw(moved, 1.4), labels


def similarities(x, y, kind, sigma2=1.0):
    """The similarity of every row of x with every row of y (section 5.1 of the paper)."""
    if kind == "gaussian":
        squared = (x**2).sum(1)[:, None] + (y**2).sum(1)[None] - 2 * x @ y.T
        return np.exp(-np.maximum(squared, 0) / (2 * sigma2))
    products = np.maximum(x @ y.T, 0)
    return products**3 if kind == "dot3" else products


def unit(x):
    return x / np.maximum(np.linalg.norm(x, axis=1, keepdims=True), 1e-300)


def affinity(x, k, kind, sigma2):
    """A + A^T over the k nearest neighbours (eq. 6); the lower index wins a tie."""
    weights = similarities(x, x, kind, sigma2)
    np.fill_diagonal(weights, -1)
    kept = np.zeros_like(weights)
    for row in range(len(x)):
        for column in np.argsort(-weights[row], kind="stable")[:k]:
            kept[row, column] = max(weights[row, column], 0)
    return kept + kept.T


def propagate(a, labels, classes, alpha):
    """F = (I - alpha S)^-1 Y (eq. 7); labels are -1 where there is none."""
    degrees = a.sum(1)
    root = np.where(degrees > 0, 1 / np.sqrt(np.where(degrees > 0, degrees, 1)), 0)
    s = root[:, None] * a * root[None]
    y = (labels[:, None] == np.arange(classes)[None]).astype(float)
    return np.linalg.solve(np.eye(len(a)) - alpha * s, y)


def probabilities(f):
    """Rows of F as probabilities, and 1 - H/ln K (eq. 8)."""
    f = np.maximum(f, 0)
    total = f.sum(1, keepdims=True)
    p = np.where(total > 0, f / np.where(total > 0, total, 1), 1 / f.shape[1])
    entropy = -(p * np.log(np.where(p > 0, p, 1))).sum(1)
    return p, np.clip(1 - entropy / np.log(f.shape[1]), 0, 1)


def label(source, source_labels, target, *, k=20, alpha=0.5, rounds=10, kind="cosine", sigma2=1.0,
          weights="entropy", centres=False, raw_anchors=False, k_includes_self=False):
    """A2LP. Returns, for every round: graph, F of the target, labels, confidence and the anchors made of it."""
    source, target = source.astype(float), target.astype(float)
    classes = int(source_labels.max()) + 1
    if centres:
        source = np.stack([source[source_labels == c].mean(0) for c in range(classes)])
        source_labels = np.arange(classes)
    lengths = np.linalg.norm(target, axis=1, keepdims=True)
    prepare = unit if kind == "cosine" else (lambda x: x)
    source, target = prepare(source), prepare(target)
    first, last = len(source), len(source) + len(target)
    x = np.concatenate([source, target])
    labels = np.concatenate([source_labels, np.full(len(target), -1)])
    history = []
    for number in range(1, rounds + 1):
        a = affinity(x, k - k_includes_self, kind, sigma2)
        f = propagate(a, labels, classes, alpha)[first:last]
        _, w = probabilities(f)
        found = np.maximum(f, 0).argmax(1)
        anchors = []
        for c in range(classes):
            members = found == c
            if members.any():
                weight = w[members] if weights == "entropy" else np.ones(members.sum())
                if weight.sum() <= 0:
                    continue
                rows = target[members] * (lengths[members] if raw_anchors and kind == "cosine" else 1)
                anchors.append((c, prepare((weight[:, None] * rows).sum(0, keepdims=True) / weight.sum())[0]))
        history.append({"a": a, "f": f, "labels": found, "w": w, "anchors": anchors})
        if number < rounds and anchors:
            x = np.concatenate([x, [vector for _, vector in anchors]])
            labels = np.concatenate([labels, [c for c, _ in anchors]])
    return history


VARIANTS = {
    "default": {},
    "uniform_weights": {"weights": "uniform"},
    "centres": {"centres": True},
    "k_includes_self": {"k_includes_self": True},
    "raw_anchors": {"raw_anchors": True},
    "gaussian": {"kind": "gaussian", "sigma2": 20.0},
    "dot3": {"kind": "dot3"},
    "alpha_2": {"alpha": 2.0},
    "k_5": {"k": 5},
}


def worked_example():
    """Nine points, three classes, k = 2: every number of two rounds."""
    source = np.array([[2.0, 0.0, 0.0], [0.0, 1.0, 0.2], [0.1, 0.0, 3.0]])
    target = np.array([[1.0, 0.6, 0.0], [0.9, 0.2, 0.1], [0.3, 1.0, 0.1], [0.2, 0.8, 0.6], [0.0, 0.5, 1.0], [0.1, 0.2, 0.8]])
    history = label(source, np.arange(3), target, k=2, rounds=2)
    return {
        "source": source.tolist(),
        "target": target.tolist(),
        "rounds": [
            {
                "edges": [[i, j, r["a"][i, j]] for i in range(len(r["a"])) for j in range(i) if r["a"][i, j] > 0],
                "degrees": r["a"].sum(1).tolist(),
                "f": r["f"].tolist(),
                "confidence": r["w"].tolist(),
                "labels": r["labels"].tolist(),
                "anchors": [vector.tolist() for _, vector in r["anchors"]],
            }
            for r in history
        ],
    }


def main():
    source, target, truth = domains()
    np.savez(HERE / "source.npz", features=source, labels=truth)
    np.savez(HERE / "target.npz", features=target)
    answers = {"truth": truth.tolist(), "variants": {}}
    for name, settings in VARIANTS.items():
        history = label(source, truth, target, **settings)
        accuracy = [100 * float((r["labels"] == truth).mean()) for r in history]
        answers["variants"][name] = {
            "accuracy_by_round": accuracy,
            "labels_round_1": history[0]["labels"].tolist(),
            "labels_last_round": history[-1]["labels"].tolist(),
            "confidence_round_1": [round(float(w), 6) for w in history[0]["w"]],
        }
        print(f"{name:16} {accuracy[0]:6.2f} {accuracy[-1]:6.2f}")
    (HERE / "answers.json").write_text(json.dumps(answers) + "\n")
    example = HERE.parents[2] / "a2lp" / "tests" / "worked_example.json"
    example.write_text(json.dumps(worked_example(), indent=1) + "\n")


if __name__ == "__main__":
    main()
