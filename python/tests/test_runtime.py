"""Parity with the command line, threads, interrupts, forks, and life without the optional packages."""

import csv
import os
import signal
import subprocess
import sys
import time

import joblib
import numpy as np
import pytest
from conftest import two_domains

import a2lp
from a2lp import A2LP


def run(*args, cwd):
    return subprocess.run([sys.executable, "-m", "a2lp", *args], cwd=cwd, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("options", "settings"),
    [
        ([], {}),
        (["--neighbours", "7", "--alpha", "0.8", "--rounds", "4"], dict(n_neighbors=7, alpha=0.8, n_rounds=4)),
        (["--source-nodes", "centres", "--similarity", "dot3"], dict(source_nodes="centres", metric="dot3")),
        (["--graph-method", "nndescent", "--seed", "3"], dict(graph_method="nndescent", random_state=3)),
    ],
)
def test_the_command_line_says_the_same_to_the_last_digit(tmp_path, domains, options, settings):
    source, ys, target, _ = domains
    np.save(tmp_path / "s.npy", source)
    np.save(tmp_path / "ys.npy", ys)
    np.save(tmp_path / "t.npy", target)
    files = ["--source", "s.npy", "--source-labels", "ys.npy", "--target", "t.npy", "--out", "labels.csv"]
    done = run("label", *files, "--probabilities", *options, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    result = a2lp.label(source, ys, target, **settings)
    with open(tmp_path / "labels.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["label"] for row in rows] == [str(label) for label in result.labels]
    assert [row["confidence"] for row in rows] == [f"{c:.6f}" for c in result.confidence]
    for at, name in enumerate("012"):
        assert [row[f"p_{name}"] for row in rows] == [f"{p:.8f}" for p in result.probabilities[:, at]]


def test_the_command_line_keeps_its_exit_codes(tmp_path):
    assert run("--version", cwd=tmp_path).stdout.strip() == f"a2lp {a2lp.__version__}"
    assert run("label", "--source", "none.npy", cwd=tmp_path).returncode == 2
    missing = run("inspect", "none.npy", cwd=tmp_path)
    assert missing.returncode == 2 and "none.npy" in missing.stderr


def test_the_command_line_trains_networks_too(tmp_path, domains):
    source, ys, target, _ = domains
    np.savez(tmp_path / "s.npz", features=source, labels=ys)
    np.save(tmp_path / "t.npy", target)
    files = ["--source", "s.npz", "--target", "t.npy", "--out", "run"]
    done = run("train", *files, "--learner", "mstn", "--train-rounds", "1", "--steps", "3", cwd=tmp_path)
    assert done.returncode in (0, 1), done.stderr
    with open(tmp_path / "run/labels.csv", newline="") as file:
        assert len(list(csv.DictReader(file))) == len(target)


def test_any_number_of_threads_gives_the_same_bits(stacked):
    X, y, _ = stacked
    models = [A2LP(n_jobs=jobs).fit(X, y) for jobs in (1, 2, 3, 8, None, -1)]
    for model in models[1:]:
        np.testing.assert_array_equal(model.label_distributions_, models[0].label_distributions_)


def test_progress_is_told_and_can_stop_the_run():
    source, ys, target, _ = two_domains(per_class=3000, columns=64)
    X, y = np.concatenate([source, target]), np.concatenate([ys, np.full(len(target), -1)])
    seen = []
    A2LP(n_neighbors=50, progress=lambda *progress: seen.append(progress)).fit(X, y)
    assert {stage for stage, _, _ in seen} <= {"neighbors", "rounds"} and seen
    assert all(0 <= done <= total for _, done, total in seen)

    def refuse(stage, done, total):
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        A2LP(n_neighbors=50, progress=refuse).fit(X, y)
    A2LP(progress=True).fit(X[::50], y[::50])


SLOW = """
import signal, time, numpy as np, a2lp
signal.signal(signal.SIGINT, signal.default_int_handler)  # it is ignored where tests run in the background
rng = np.random.default_rng(0)
X = rng.normal(size=(60_000, 256)).astype("f4")
y = np.where(np.arange(60_000) < 30_000, np.arange(60_000) % 10, -1)
model = a2lp.A2LP(n_neighbors=100, graph_method="exact")  # the first one imports scikit-learn
print("ready", flush=True)
try:
    model.fit(X, y)
except KeyboardInterrupt:
    print(time.time(), flush=True)
"""


def test_an_interrupt_ends_a_fit_within_a_second(tmp_path):
    child = subprocess.Popen([sys.executable, "-c", SLOW], cwd=tmp_path, stdout=subprocess.PIPE, text=True)
    assert child.stdout.readline() == "ready\n"
    time.sleep(1.0)
    sent = time.time()
    child.send_signal(signal.SIGINT)
    stopped = child.stdout.readline()
    child.wait(timeout=30)
    assert stopped, "it finished before the interrupt, or died of it"
    assert float(stopped) - sent < 1.0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_fork_after_a_fit_can_fit(stacked):
    X, y, _ = stacked
    before = A2LP().fit(X, y)
    child = os.fork()
    if child == 0:
        same = np.array_equal(A2LP().fit(X, y).label_distributions_, before.label_distributions_)
        os._exit(0 if same else 1)
    deadline = time.time() + 60
    while time.time() < deadline:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            assert os.waitstatus_to_exitcode(status) == 0
            return
        time.sleep(0.05)
    os.kill(child, signal.SIGKILL)
    pytest.fail("the child hangs")


def fit_one(X, y, k):
    return A2LP(n_neighbors=k, n_jobs=1).fit(X, y).transduction_


def test_in_joblib_workers(stacked):
    X, y, _ = stacked
    here = [fit_one(X, y, k) for k in (5, 10, 20)]
    for backend in ("loky", "threading"):
        there = joblib.Parallel(n_jobs=2, backend=backend)(joblib.delayed(fit_one)(X, y, k) for k in (5, 10, 20))
        for a, b in zip(here, there):
            np.testing.assert_array_equal(a, b)


ALONE = """
import sys
for name in ("sklearn", "scipy", "pandas", "tqdm", "skada", "joblib"):
    sys.modules[name] = None
import pickle, numpy as np, a2lp
rng = np.random.default_rng(0)
X = rng.normal(size=(60, 5)).astype("f4") + 2
y = np.where(np.arange(60) < 30, np.arange(60) % 2, -1)
X[np.arange(60) % 2 == 1, 0] += 6
model = a2lp.A2LP(n_neighbors=5, alpha=0.4).fit(X, y)
assert model.get_params()["alpha"] == 0.4 and model.set_params(alpha=0.6).alpha == 0.6
assert repr(model) == "A2LP(alpha=0.6, n_neighbors=5)", repr(model)
assert model.score(X, np.arange(60) % 2) > 0.9
again = pickle.loads(pickle.dumps(model))
assert (again.predict(X) == model.predict(X)).all()
try:
    model.predict(X[:, :2])
except ValueError as error:
    assert "expecting 5 features" in str(error)
else:
    raise AssertionError
"""


def test_numpy_is_enough(tmp_path):
    done = subprocess.run([sys.executable, "-c", ALONE], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_importing_is_quick_and_brings_nothing_along(tmp_path):
    code = "import sys, a2lp; print([m for m in ('sklearn', 'scipy', 'pandas', 'tqdm') if m in sys.modules])"
    times = []
    for _ in range(3):
        began = time.perf_counter()
        done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
        times.append(time.perf_counter() - began)
    assert done.stdout.strip() == "[]"
    print(f"python -c 'import a2lp': {min(times):.2f} s, interpreter and NumPy included")
