"""Measures what clicks are worth, with a simulated annotator who knows the truth, on real domains.

For each pair of domains, and 10, 25, 50 and 100 clicks, the accuracy on the items that were not clicked, for several ways to choose
items and to use the clicks. Needs the Python package, scikit-learn, Pillow, and folders with data: features as NAME_feat.npy and
NAME_label.npy, or square grey images as NAME_images.npy and NAME_labels.npy.

    python benches/annotator.py DATA/office_caltech10 DATA/digits
"""

import argparse
import itertools
from pathlib import Path

import numpy as np
from PIL import Image
from sklearn.linear_model import LogisticRegression

import a2lp

CLICKS = [10, 25, 50, 100]
LEAST_ITEMS = 250
WAYS = [
    "ours: doubt among neighbours, propagated",
    "least confident, propagated",
    "random, propagated",
    "ours, not propagated",
    "least confident, not propagated",
    "random, not propagated",
    "logistic regression on source and clicks, least confident",
]


def read(folder):
    """Features and labels of every domain in a folder."""
    domains = {}
    for path in sorted(folder.glob("*_feat.npy")):
        name = path.name.removesuffix("_feat.npy")
        domains[name] = np.load(path).astype("f4"), np.load(folder / f"{name}_label.npy")
    images = {path.name.removesuffix("_images.npy"): np.load(path) for path in sorted(folder.glob("*_images.npy"))}
    side = min((array.shape[1] for array in images.values()), default=0)
    for name, array in images.items():
        small = [np.asarray(Image.fromarray(image).resize((side, side), Image.Resampling.BOX)) for image in array]
        domains[name] = np.reshape(small, (len(small), -1)).astype("f4") / 255, np.load(folder / f"{name}_labels.npy")
    return domains


def sampled(domain, most, seed):
    features, labels = domain
    rows = np.sort(np.random.default_rng(seed).permutation(len(labels))[:most])
    return features[rows], labels[rows]


def accuracy_of_rest(labels, truth, clicked):
    rest = np.ones(len(truth), bool)
    rest[list(clicked)] = False
    return (np.asarray(labels)[rest] == truth[rest]).mean()


def by_session(result, truth, way, rng):
    """Clicks one by one; the accuracy of the rest after each number of clicks."""
    propagates = not way.endswith("not propagated")
    clicked, after = [], []
    with a2lp.review(result, full_runs=False) as session:
        fixed = session.doubtful(max(CLICKS))
        labels = session.labels
        for click in range(max(CLICKS)):
            left = np.setdiff1d(np.arange(len(truth)), clicked)
            if way.startswith("random"):
                row = rng.choice(left)
            elif way.startswith("least"):
                confidence = session.confidence if propagates else result.confidence
                row = left[np.argmin(confidence[left])]
            else:
                row = session.doubtful(1)[0] if propagates else fixed[click]
            clicked.append(int(row))
            if propagates:
                session.correct({row: truth[row]})
            if click + 1 in CLICKS:
                labels = session.labels if propagates else result.labels
                after.append(accuracy_of_rest(labels, truth, clicked))
    return after


def by_regression(source, source_labels, target, truth):
    """A classifier trained again after every few clicks, which chooses what it is least sure of."""
    clicked, after = [], []
    source, target = (x / np.linalg.norm(x, axis=1, keepdims=True) for x in (source, target))
    for upto in [5 * at for at in range(max(CLICKS) // 5 + 1)]:
        model = LogisticRegression(C=10, max_iter=200)
        model.fit(np.concatenate([source, target[clicked]]), np.concatenate([source_labels, truth[clicked]]))
        probabilities = model.predict_proba(target)
        if upto in CLICKS:
            after.append(accuracy_of_rest(model.classes_[probabilities.argmax(1)], truth, clicked))
        order = np.argsort(probabilities.max(1))
        clicked += [int(row) for row in order if row not in set(clicked)][:5]
    return after


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--most", type=int, default=2000, help="items of a domain at most")
    parser.add_argument("--method", default="auto")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    for folder in args.folders:
        domains = {name: sampled(domain, args.most, args.seed) for name, domain in read(folder).items()}
        pairs = [(s, t) for s, t in itertools.permutations(domains, 2) if len(domains[t][1]) >= LEAST_ITEMS]
        scores, before = {way: [] for way in WAYS}, []
        for source_name, target_name in pairs:
            (source, source_labels), (target, truth) = domains[source_name], domains[target_name]
            result = a2lp.label(source, source_labels, target, method=args.method, unknown="off")
            before.append((result.labels == truth).mean())
            rng = np.random.default_rng(args.seed)
            for way in WAYS[:-1]:
                scores[way].append(by_session(result, truth, way, rng))
            scores[WAYS[-1]].append(by_regression(source, source_labels, target, truth))
            print(f"  {source_name} to {target_name}: {100 * before[-1]:.1f} % before any click", flush=True)
        print(f"\n{folder.name}, {len(pairs)} pairs, {100 * np.mean(before):.1f} % right before any click\n")
        print("| accuracy % of the items not clicked, after | " + " | ".join(map(str, CLICKS)) + " |")
        print("|---|" + "---|" * len(CLICKS))
        for way in WAYS:
            print(f"| {way} | " + " | ".join(f"{100 * value:.1f}" for value in np.mean(scores[way], axis=0)) + " |")
        print(flush=True)


if __name__ == "__main__":
    main()
