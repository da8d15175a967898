#!/usr/bin/env python3
"""Neighbour graphs: a2lp beside the libraries one would reach for, on the same data, in one run.

    python3 benches/compare.py                        # 24,000 x 2048, k = 20 and 100, non-negative features
    python3 benches/compare.py --rows 55400 --peers pynndescent
    python3 benches/compare.py --features my.npy --neighbours 20

Makes a virtual environment under target/ and installs the peers there, builds a2lp, makes features (or takes
yours), and prints a table: wall and CPU seconds, peak memory, recall against the exact answer on 200 rows, and how many
times faster the a2lp search of the last column is. Searches only: reading files and warming up are not counted.
"""
import argparse, json, os, pathlib, resource, subprocess, sys, time

ROOT = pathlib.Path(__file__).resolve().parent.parent
WORK = ROOT / "target" / "compare"
PACKAGES = ["numpy", "scipy", "scikit-learn", "pynndescent", "faiss-cpu", "hnswlib"]
PEERS = ["pynndescent", "faiss-flat", "hnswlib", "sklearn"]
OURS = ["exact", "screened", "pruned"]


def environment():
    """Runs this script again inside the virtual environment."""
    venv = WORK / "venv"
    python = venv / "bin" / "python"
    if not python.exists():
        print("installing", ", ".join(PACKAGES), "...", file=sys.stderr)
        subprocess.run([sys.executable, "-m", "venv", venv], check=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", *PACKAGES], check=True)
    if os.environ.get("A2LP_COMPARE") != "1":
        os.execve(python, [str(python), *sys.argv], {**os.environ, "A2LP_COMPARE": "1"})


def make_features(rows, columns, signed, path):
    """Clusters of a low intrinsic dimension pushed through a random network; heavy tails, noise."""
    import numpy as np

    rng = np.random.default_rng(0)
    latent, classes = 40, 12
    label = rng.integers(0, classes, rows)
    shift = (np.arange(rows) >= rows // 2)[:, None] * rng.normal(size=latent) * 0.5
    z = rng.normal(size=(classes, latent))[label] * 0.9 + rng.normal(size=(rows, latent)) + shift
    hidden = np.maximum(z @ rng.normal(size=(latent, 256)) / latent**0.5 + rng.normal(size=256) * 0.5, 0)
    out = np.empty((rows, columns), dtype=np.float32)
    weights = rng.normal(size=(256, columns)) / 16
    centre = hidden.mean(0) @ weights
    spread = (hidden[:2000] @ weights).std()
    for start in range(0, rows, 4096):
        x = hidden[start : start + 4096] @ weights - centre
        noise = 0.02 * rng.normal(size=x.shape)
        x = x + noise if signed else np.maximum(x - 0.3 * spread, 0) + np.abs(noise)
        out[start : start + 4096] = np.sign(x) * np.abs(x) ** 1.3
    np.save(path, out)


def unit_rows(path):
    import numpy as np

    x = np.load(path).astype(np.float32)
    return x / np.maximum(np.linalg.norm(x, axis=1, keepdims=True), 1e-30)


def intrinsic_dimension(u, k=20):
    """Maximum likelihood over 500 rows."""
    import numpy as np

    rows = np.random.default_rng(1).choice(len(u), min(500, len(u)), replace=False)
    distance = np.sqrt(np.maximum(2 - 2 * (u[rows] @ u.T), 0))
    distance[np.arange(len(rows)), rows] = np.inf
    near = np.sort(np.partition(distance, k, axis=1)[:, :k], axis=1)
    return float(1 / np.mean(np.log(near[:, -1:] / np.maximum(near[:, :-1], 1e-12))))


def run_peer(name, path, k, threads):
    """Searches in this process; prints what it took and the neighbours of the sampled rows."""
    import numpy as np

    u = unit_rows(path)
    sample = np.random.default_rng(2).choice(len(u), min(200, len(u)), replace=False)

    def clock():
        usage = resource.getrusage(resource.RUSAGE_SELF)
        return time.perf_counter(), usage.ru_utime + usage.ru_stime

    if name == "pynndescent":
        import numba, pynndescent

        numba.set_num_threads(threads)
        search = lambda x: pynndescent.NNDescent(x, metric="cosine", n_neighbors=k + 1, n_jobs=threads).neighbor_graph[0]
        search(u[:3000])  # compiles
    elif name == "faiss-flat":
        import faiss

        faiss.omp_set_num_threads(threads)

        def search(x):
            index = faiss.IndexFlatIP(x.shape[1])
            index.add(x)
            return index.search(x, k + 1)[1]

    elif name == "hnswlib":
        import hnswlib

        def search(x):
            index = hnswlib.Index(space="ip", dim=x.shape[1])
            index.init_index(len(x), M=16, ef_construction=100)
            index.set_num_threads(threads)
            index.add_items(x)
            index.set_ef(max(64, k + 28))
            return index.knn_query(x, k + 1)[0]

    elif name == "sklearn":
        from sklearn.neighbors import NearestNeighbors

        def search(x):
            model = NearestNeighbors(n_neighbors=k, metric="cosine", algorithm="brute", n_jobs=threads).fit(x)
            return model.kneighbors(x, n_neighbors=k + 1, return_distance=False)

    wall, cpu = clock()
    found = search(u)
    wall, cpu = clock()[0] - wall, clock()[1] - cpu
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    lists = [[int(j) for j in found[i] if j != i][:k] for i in sample]
    json.dump({"wall": wall, "cpu": cpu, "peak": peak, "lists": lists}, sys.stdout)


def best_blas():
    """The OpenBLAS inside faiss's wheel mistakes some virtual CPUs for old ones; name the right kind for it."""
    flags = pathlib.Path("/proc/cpuinfo").read_text() if pathlib.Path("/proc/cpuinfo").exists() else ""
    kind = "SkylakeX" if "avx512bw" in flags else "Haswell" if "avx2" in flags else None
    return {**os.environ, "OPENBLAS_CORETYPE": kind} if kind else os.environ


def run_ours(method, path, k, threads):
    import numpy as np, scipy.sparse

    graph = WORK / "graph.npz"
    command = [ROOT / "target/release/a2lp", "graph", "--features", path, "--neighbours", str(k), "--out", graph]
    command += ["--graph-method", method, "--threads", str(threads), "--force", "--json"]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    summary = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    matrix = scipy.sparse.load_npz(graph)
    sample = np.random.default_rng(2).choice(matrix.shape[0], min(200, matrix.shape[0]), replace=False)
    return {
        "wall": summary["search_secs"],
        "cpu": after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,  # reading and writing included
        "peak": None,
        "lists": [matrix[i].indices.tolist() for i in sample],
    }


def peak_flops(threads):
    """The best of five multiplications of 4096 x 4096 in f32."""
    import numpy as np

    a = np.random.default_rng(3).random((4096, 4096), dtype=np.float32)
    times = []
    for _ in range(5):
        start = time.perf_counter()
        a @ a
        times.append(time.perf_counter() - start)
    return 2 * 4096**3 / min(times)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=24000)
    parser.add_argument("--columns", type=int, default=2048)
    parser.add_argument("--signed", action="store_true", help="features with negative values")
    parser.add_argument("--features", help="a .npy file instead of made features")
    parser.add_argument("--neighbours", type=int, nargs="+", default=[20, 100])
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--peers", nargs="*", default=PEERS, choices=PEERS)
    parser.add_argument("--ours", nargs="*", default=OURS, choices=OURS)
    parser.add_argument("--child", nargs=3, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child:
        return run_peer(args.child[0], args.child[1], int(args.child[2]), args.threads)

    WORK.mkdir(parents=True, exist_ok=True)
    os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = str(args.threads)
    environment()
    import numpy as np

    subprocess.run(["cargo", "build", "--release", "--quiet"], cwd=ROOT, check=True)
    path = pathlib.Path(args.features or WORK / f"features-{args.rows}-{args.columns}-{int(args.signed)}.npy")
    if not path.exists():
        make_features(args.rows, args.columns, args.signed, path)
    u = unit_rows(path)
    flops = peak_flops(args.threads)
    bound = len(u) ** 2 * u.shape[1] / flops
    print(f"\n{len(u)} x {u.shape[1]}, {'signed' if u.min() < 0 else 'non-negative'}, intrinsic dimension "
          f"{intrinsic_dimension(u):.1f}; {args.threads} threads; f32 peak {flops / 1e9:.0f} GF/s, so every pair once takes "
          f"at least {bound:.2f} s\n")
    sample = np.random.default_rng(2).choice(len(u), min(200, len(u)), replace=False)
    scores = u[sample] @ u.T
    scores[np.arange(len(sample)), sample] = -np.inf
    for k in args.neighbours:
        truth = np.argpartition(-scores, k, axis=1)[:, :k]
        results = {f"a2lp {m}": run_ours(m, path, k, args.threads) for m in args.ours}
        for peer in args.peers:
            child = [sys.executable, __file__, "--threads", str(args.threads), "--child", peer, str(path), str(k)]
            done = subprocess.run(child, capture_output=True, env=best_blas())
            if done.returncode:
                print(f"{peer} failed: {done.stderr.decode()[-300:]}", file=sys.stderr)
                continue
            results[peer] = json.loads(done.stdout)
        best = "screened" if "screened" in args.ours and len(u) < 40000 else args.ours[-1]
        ours = results[f"a2lp {best}"]["wall"]
        print(f"| k = {k} | wall s | CPU s | peak GiB | recall | a2lp {best} is faster by |\n|---|---|---|---|---|---|")
        for name, r in results.items():
            recall = np.mean([len(set(t) & set(l)) / k for t, l in zip(truth.tolist(), r["lists"])])
            peak = f"{r['peak']:.2f}" if r["peak"] else ""
            extra = f" ({r['wall'] / bound:.2f} x the bound)" if name == "a2lp exact" else ""
            print(f"| {name} | {r['wall']:.2f}{extra} | {r['cpu']:.1f} | {peak} | {recall:.5f} | {r['wall'] / ours:.1f} x |", flush=True)
        print()


if __name__ == "__main__":
    main()
