#!/usr/bin/env python3
"""a2lp beside the libraries one would reach for: same data, same threads, one run.

    python3 benches/compare.py                                   # graph, propagation and method on 24,000 x 2048
    python3 benches/compare.py graph --rows 55400                # the neighbour graph alone, more rows
    python3 benches/compare.py graph --features my.npy --neighbours 20
    python3 benches/compare.py scaling                           # cost over the number of rows
    python3 benches/compare.py widths                            # cost over the number of columns
    python3 benches/compare.py large                             # 1,000,000 x 128 and 207,785 x 2048, end to end
    python3 benches/compare.py consensus                         # the default method beside A²LP, up to 1,000,000 x 128
    python3 benches/compare.py graph --cpu avx2                  # nobody uses more than AVX2

Makes a virtual environment under target/ and installs the peers there, builds a2lp, makes features (or takes yours)
and prints tables. Recall is against the exact answer on 200 rows. Graph and propagation: reading files and warming up
are not counted, except in a2lp's CPU seconds. Peak memory is that of the whole process.
"""
import argparse, json, math, os, pathlib, resource, subprocess, sys, time

ROOT = pathlib.Path(__file__).resolve().parent.parent
WORK = ROOT / "target" / "compare"
A2LP = ROOT / "target" / "release" / "a2lp"
PACKAGES = ["numpy", "scipy", "scikit-learn", "pynndescent", "faiss-cpu", "hnswlib", "usearch"]
PEERS = ["pynndescent", "faiss-flat", "faiss-ivf", "faiss-hnsw", "hnswlib", "usearch", "sklearn"]
# For millions of rows.
WHOLE_PEERS = ["pynndescent", "faiss-ivf", "hnswlib"]
OURS = ["exact", "screened", "pruned", "nndescent"]
PARTS = ["graph", "propagation", "method", "scaling", "widths", "large", "consensus"]
# The paper's method, which is what the peers do too.
PAPER = ["--method", "a2lp", "--unknown", "off"]


def environment():
    """Runs this script again inside the virtual environment."""
    venv = WORK / "venv"
    python = venv / "bin" / "python"
    listed = venv / "packages"
    if not listed.exists() or listed.read_text() != " ".join(PACKAGES):
        print("installing", ", ".join(PACKAGES), "...", file=sys.stderr)
        subprocess.run([sys.executable, "-m", "venv", venv], check=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", *PACKAGES], check=True)
        listed.write_text(" ".join(PACKAGES))
    if os.environ.get("A2LP_COMPARE") != "1":
        os.execve(python, [str(python), *sys.argv], {**os.environ, "A2LP_COMPARE": "1"})


def made_features(rows, columns, signed):
    """Clusters of a low intrinsic dimension pushed through a random network; heavy tails, noise; and their classes."""
    import numpy as np

    path = WORK / f"features-{rows}-{columns}-{int(signed)}.npy"
    rng = np.random.default_rng(0)
    latent, classes = 46 if signed else 40, 12
    label = rng.integers(0, classes, rows)
    if path.exists():
        return path, label
    shift = (np.arange(rows) >= rows // 2)[:, None] * rng.normal(size=latent) * 0.5
    z = rng.normal(size=(classes, latent))[label] * 0.9 + rng.normal(size=(rows, latent)) + shift
    hidden = np.maximum(z @ rng.normal(size=(latent, 256)) / latent**0.5 + rng.normal(size=256) * 0.5, 0)
    out = np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=(rows, columns))
    weights = rng.normal(size=(256, columns)) / 16
    centre = hidden.mean(0) @ weights
    spread = (hidden[:2000] @ weights).std()
    for start in range(0, rows, 4096):
        x = hidden[start : start + 4096] @ weights - centre
        noise = 0.02 * rng.normal(size=x.shape)
        x = x + noise if signed else np.maximum(x - 0.3 * spread, 0) + np.abs(noise)
        out[start : start + 4096] = np.sign(x) * np.abs(x) ** 1.3
    return path, label


def unit_rows(path):
    import numpy as np

    x = np.load(path).astype(np.float32)
    return x / np.maximum(np.linalg.norm(x, axis=1, keepdims=True), 1e-30)


def sampled(rows):
    import numpy as np

    return np.random.default_rng(2).choice(rows, min(200, rows), replace=False)


def intrinsic_dimension(u, k=20):
    """Maximum likelihood over 500 rows."""
    import numpy as np

    rows = np.random.default_rng(1).choice(len(u), min(500, len(u)), replace=False)
    distance = np.sqrt(np.maximum(2 - 2 * (u[rows] @ u.T), 0))
    distance[np.arange(len(rows)), rows] = np.inf
    near = np.sort(np.partition(distance, k, axis=1)[:, :k], axis=1)
    return float(1 / np.mean(np.log(near[:, -1:] / np.maximum(near[:, :-1], 1e-12))))


def peak_flops():
    """The best of five multiplications of 4096 x 4096 in f32."""
    import numpy as np

    a = np.random.default_rng(3).random((4096, 4096), dtype=np.float32)
    times = []
    for _ in range(5):
        start = time.perf_counter()
        a @ a
        times.append(time.perf_counter() - start)
    return 2 * 4096**3 / min(times)


# Peers: each search runs in a process of its own, so that its peak memory is its own.


def search_with(name, k, threads):
    """A function from unit rows to neighbour lists (the row itself may be among them)."""
    if name == "pynndescent":
        import numba, pynndescent

        numba.set_num_threads(threads)
        return lambda x: pynndescent.NNDescent(x, metric="cosine", n_neighbors=k + 1, n_jobs=threads).neighbor_graph[0]
    if name in ("faiss-flat", "faiss-hnsw"):
        import faiss

        faiss.omp_set_num_threads(threads)

        def search(x):
            if name == "faiss-flat":
                index = faiss.IndexFlatIP(x.shape[1])
            else:
                index = faiss.IndexHNSWFlat(x.shape[1], 16, faiss.METRIC_INNER_PRODUCT)
                index.hnsw.efConstruction, index.hnsw.efSearch = 100, max(64, k + 28)
            index.add(x)
            return index.search(x, k + 1)[1]

        return search
    if name == "faiss-ivf":
        import faiss

        faiss.omp_set_num_threads(threads)

        def search(x):
            lists = int(4 * len(x) ** 0.5)
            index = faiss.IndexIVFFlat(faiss.IndexFlatIP(x.shape[1]), x.shape[1], lists, faiss.METRIC_INNER_PRODUCT)
            index.train(x[:: max(1, len(x) // (64 * lists))])
            index.add(x)
            index.nprobe = 32
            return index.search(x, k + 1)[1]

        return search
    if name == "hnswlib":
        import hnswlib

        def search(x):
            index = hnswlib.Index(space="ip", dim=x.shape[1])
            index.init_index(len(x), M=16, ef_construction=100)
            index.set_num_threads(threads)
            index.add_items(x)
            index.set_ef(max(64, k + 28))
            return index.knn_query(x, k + 1)[0]

        return search
    if name == "usearch":
        import numpy as np
        from usearch.index import Index

        def search(x):
            index = Index(ndim=x.shape[1], metric="ip", expansion_search=max(64, k + 28))
            index.add(np.arange(len(x)), x, threads=threads)
            return index.search(x, k + 1, threads=threads).keys.astype(np.int64)

        return search
    from sklearn.neighbors import NearestNeighbors

    def search(x):
        model = NearestNeighbors(n_neighbors=k, metric="cosine", algorithm="brute", n_jobs=threads).fit(x)
        return model.kneighbors(x, n_neighbors=k + 1, return_distance=False)

    return search


def child_search(name, path, k, threads):
    u = unit_rows(path)
    search = search_with(name, k, threads)
    if name == "pynndescent":
        search(u[:3000])  # compiles

    def clock():
        usage = resource.getrusage(resource.RUSAGE_SELF)
        return time.perf_counter(), usage.ru_utime + usage.ru_stime

    wall, cpu = clock()
    found = search(u)
    wall, cpu = clock()[0] - wall, clock()[1] - cpu
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    lists = [[int(j) for j in found[i] if j != i][:k] for i in sampled(len(u))]
    return {"wall": wall, "cpu": cpu, "peak": peak, "lists": lists}


def child_label_spreading(path, labels):
    """scikit-learn's LabelSpreading at its defaults; its dense graph is part of what it does."""
    import numpy as np
    from sklearn.semi_supervised import LabelSpreading

    u, y = unit_rows(path), np.load(labels)
    y = np.concatenate([y, np.full(len(u) - len(y), -1)])
    start = time.perf_counter()
    LabelSpreading().fit(u, y)
    return {"wall": time.perf_counter() - start, "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20}


def child_method(path, labels, k, rounds, threads):
    """A2LP with a graph from pynndescent in every round and scipy's solver."""
    import numba, numpy as np, pynndescent, scipy.sparse as sparse
    from scipy.sparse.linalg import cg

    u, y = unit_rows(path), np.load(labels)
    sources, classes = len(y), int(y.max()) + 1
    numba.set_num_threads(threads)
    search = lambda x: pynndescent.NNDescent(x, metric="cosine", n_neighbors=k + 1, n_jobs=threads).neighbor_graph
    search(u[:3000])  # compiles
    start, graph_secs, anchors, anchor_labels = time.perf_counter(), 0.0, [], []
    for _ in range(rounds):
        began = time.perf_counter()
        x = np.vstack([u, *anchors]).astype(np.float32)
        lists, distances = search(x)
        graph_secs += time.perf_counter() - began
        rows, columns = np.repeat(np.arange(len(x)), lists.shape[1]), lists.ravel()
        keep = (columns >= 0) & (columns != rows)
        weights = np.maximum(1 - distances.ravel().astype(float), 0)
        a = sparse.csr_matrix((weights[keep], (rows[keep], columns[keep])), shape=(len(x), len(x)))
        s = normalised(a + a.T)
        f = np.zeros((len(x), classes))
        known = np.concatenate([y, np.full(len(u) - sources, -1), anchor_labels]).astype(int)
        matrix = sparse.eye(len(x), format="csr") - 0.5 * s
        for c in range(classes):
            f[:, c] = cg(matrix, (known == c).astype(float), rtol=1e-6, atol=0)[0]
        p = np.maximum(f[sources : len(u)], 0) + 1e-300
        p /= p.sum(1, keepdims=True)
        label, weight = p.argmax(1), 1 + (p * np.log(p)).sum(1) / math.log(classes)
        new = []
        for c in np.unique(label):
            mean = (weight[label == c, None] * u[sources:][label == c]).sum(0)
            new.append(mean / np.linalg.norm(mean))
            anchor_labels.append(c)
        anchors.append(np.array(new))
    return {"wall": time.perf_counter() - start, "graph": graph_secs}


def child_whole(name, path, labels, k, rounds, threads):
    """A graph that is made once, and scipy's solver in every round. Anchors are left out, which favours the peer."""
    import numpy as np, scipy.sparse as sparse
    from scipy.sparse.linalg import cg

    u, y = unit_rows(path), np.load(labels)
    search = search_with(name, k, threads)
    if name == "pynndescent":
        search(u[:3000])  # compiles
    start = time.perf_counter()
    found = search(u)
    graph = time.perf_counter() - start
    lists = [[int(j) for j in found[i] if j != i][:k] for i in sampled(len(u))]
    rows, columns = np.repeat(np.arange(len(u)), found.shape[1]), found.ravel().astype(np.int64)
    keep = (columns >= 0) & (columns != rows)
    rows, columns = rows[keep], columns[keep]
    weights = np.concatenate([np.maximum(np.einsum("ij,ij->i", u[rows[at : at + 2**20]], u[columns[at : at + 2**20]]), 0)
                              for at in range(0, len(rows), 2**20)])
    a = sparse.csr_matrix((weights, (rows, columns)), shape=(len(u), len(u)))
    matrix = sparse.eye(len(u), format="csr", dtype=np.float32) - 0.5 * normalised(a + a.T)
    built = time.perf_counter() - start
    b = np.zeros(len(u), dtype=np.float32)
    for c in range(int(y.max()) + 1):
        b[: len(y)] = y == c
        cg(matrix, b, rtol=1e-6, atol=0)
    solve = time.perf_counter() - start - built
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    return {"wall": built + rounds * solve, "graph": graph, "solve": solve, "peak": peak, "lists": lists}


def normalised(a):
    import numpy as np, scipy.sparse as sparse

    scale = sparse.diags(1 / np.sqrt(np.maximum(np.asarray(a.sum(1)).ravel(), 1e-30)))
    return (scale @ a @ scale).tocsr()


def run_child(*arguments):
    """One of the functions above in a process of its own."""
    done = subprocess.run([sys.executable, __file__, "--child", json.dumps(arguments)], capture_output=True, env=best_blas())
    if done.returncode:
        print(f"{arguments[:2]} failed: {done.stderr.decode()[-300:]}", file=sys.stderr)
        return None
    return json.loads(done.stdout)


def best_blas():
    """The OpenBLAS inside faiss's wheel mistakes some virtual CPUs for old ones; name the right kind for it."""
    flags = pathlib.Path("/proc/cpuinfo").read_text() if pathlib.Path("/proc/cpuinfo").exists() else ""
    kind = "SkylakeX" if "avx512bw" in flags else "Haswell" if "avx2" in flags else None
    return {"OPENBLAS_CORETYPE": kind, **os.environ} if kind else os.environ


def only_avx2():
    """Keeps us and the peers from AVX-512: OpenBLAS, Numba, faiss, and NumPy's own loops. usearch and hnswlib cannot be told."""
    os.environ.update(A2LP_CPU="avx2", OPENBLAS_CORETYPE="Haswell", NUMBA_CPU_NAME="haswell", FAISS_OPT_LEVEL="AVX2",
                      NPY_DISABLE_CPU_FEATURES="AVX512F AVX512CD AVX512_SKX AVX512_CLX AVX512_CNL AVX512_ICL")


def a2lp(*arguments, program=A2LP):
    """Runs the command; what it printed as JSON, wall and CPU seconds."""
    start = time.perf_counter()
    process = subprocess.Popen([str(program), *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    out = process.stdout.read()
    errors = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    if os.waitstatus_to_exitcode(status) not in (0, 1):
        sys.exit(f"a2lp {' '.join(map(str, arguments))}: {errors.decode()}")
    return json.loads(out), time.perf_counter() - start, usage.ru_utime + usage.ru_stime


def our_graph(method, path, k, threads):
    import scipy.sparse

    out = WORK / "graph.npz"
    summary, _, cpu = a2lp("graph", "--features", path, "--neighbours", k, "--out", out, "--graph-method", method,
                           "--threads", threads, "--force", "--json")
    matrix = scipy.sparse.load_npz(out)
    lists = [matrix[i].indices.tolist() for i in sampled(matrix.shape[0])]
    return {"wall": summary["search_secs"], "cpu": cpu, "peak": summary["peak_bytes"] / 2**30, "lists": lists}


# The parts.


def part_graph(args, path):
    import numpy as np

    u = unit_rows(path)
    flops = peak_flops()
    bound = len(u) ** 2 * u.shape[1] / flops
    print(f"## Neighbour graph, {len(u):,} x {u.shape[1]}\n")
    print(f"{'Signed' if u.min() < 0 else 'Non-negative'} features, intrinsic dimension {intrinsic_dimension(u):.1f}; {args.threads} threads; "
          f"OpenBLAS reached {flops / 1e9:.0f} GF/s in f32, so every pair once takes at least {bound:.2f} s.\n")
    for k in args.neighbours:
        truth = exact_neighbours(u, k)
        results = {f"a2lp {m}": our_graph(m, path, k, args.threads) for m in args.ours}
        results |= {peer: run_child("search", peer, str(path), k, args.threads) for peer in args.peers}
        names = [m for m in ("screened", "pruned") if f"a2lp {m}" in results]
        print(f"| k = {k} | wall s | CPU s | peak GiB | recall |" + "".join(f" {m} is faster by |" for m in names))
        print("|---" * (5 + len(names)) + "|")
        for name, r in results.items():
            if r is None:
                continue
            recall = np.mean([len(set(t) & set(l)) / k for t, l in zip(truth, r["lists"])])
            extra = f" ({r['wall'] / bound:.2f} x the bound)" if name == "a2lp exact" else ""
            ratios = "".join(f" {r['wall'] / results[f'a2lp {m}']['wall']:.1f} x |" for m in names)
            print(f"| {name} | {r['wall']:.2f}{extra} | {r['cpu']:.1f} | {r['peak']:.2f} | {recall:.5f} |{ratios}", flush=True)
        print()


def halves(path, classes, labels=None):
    """The first half of the rows as source, the rest as target."""
    import numpy as np

    x = np.load(path, mmap_mode="r")
    half = len(x) // 2
    files = [WORK / name for name in ("source.npy", "target.npy", "labels.npy")]
    np.save(files[0], x[:half])
    np.save(files[1], x[half:])
    np.save(files[2], labels[:half] if labels is not None else np.random.default_rng(4).integers(0, classes, half))
    return files


def part_propagation(args, path, labels):
    """One round: F for all classes, from the same graph."""
    import numpy as np, scipy.sparse as sparse
    from scipy.sparse.linalg import cg

    print("## Propagation: scipy's cg per class in f64, rtol 1e-6, beside a2lp's solve of all classes\n")
    print("| k | entries | classes | scipy s | a2lp s | a2lp is faster by | largest difference |\n|---|---|---|---|---|---|---|")
    for k in args.neighbours:
        graph = WORK / f"graph-{k}.npz"
        a2lp("graph", "--features", path, "--neighbours", k, "--out", graph, "--force", "--json")
        a = sparse.load_npz(graph).astype(np.float64)
        s = normalised((a + a.T).tocsr())
        matrix = (sparse.eye(len(a.indptr) - 1) - 0.5 * s).tocsr()
        for classes in (12, 31, 345):
            source, target, label_file = halves(path, classes, labels if classes == 12 else None)
            y = np.load(label_file)
            ours = math.inf
            for _ in range(3):
                a2lp("label", *PAPER, "--source", source, "--source-labels", label_file, "--target", target, "--neighbours", k, "--graph",
                     graph, "--rounds", 1, "--threads", args.threads, "--out", WORK / "labels.csv", "--probabilities", "--force", "--json")
                record = json.loads((WORK / "labels.csv.run.json").read_text())
                ours = min(ours, record["rounds"][0]["solve_secs"])
            f = np.zeros((matrix.shape[0], classes))
            start = time.perf_counter()
            for c in range(classes):
                b = np.zeros(matrix.shape[0])
                b[: len(y)][y == c] = 1
                f[:, c] = cg(matrix, b, rtol=1e-6, atol=0)[0]
            theirs = time.perf_counter() - start
            p = np.maximum(f[len(y) :], 0)
            p /= np.maximum(p.sum(1, keepdims=True), 1e-300)
            names = (WORK / "labels.csv").open().readline().strip().split(",")
            order = [names.index(f"p_{c}") for c in range(classes)]
            got = np.loadtxt(WORK / "labels.csv", delimiter=",", skiprows=1, usecols=order)
            print(f"| {k} | {s.nnz:,} | {classes} | {theirs:.3f} | {ours:.3f} | {theirs / ours:.1f} x | {np.abs(got - p).max():.0e} |", flush=True)
    spreading = run_child("label_spreading", str(path), str(halves(path, 12, labels)[2]))
    if spreading:
        print(f"\nscikit-learn's LabelSpreading at its defaults, its dense graph included: {spreading['wall']:.1f} s, "
              f"{spreading['peak']:.1f} GiB.")
    print()


def part_method(args, path, labels):
    """Ten rounds, from files to labels."""
    k, rounds = 100, 10
    source, target, label_file = halves(path, 12, labels)
    command = ["label", *PAPER, "--source", source, "--source-labels", label_file, "--target", target, "--neighbours", k, "--rounds",
               rounds, "--threads", args.threads, "--out", WORK / "labels.csv", "--force", "--json"]
    print(f"## The whole method: k = {k}, 12 classes, {rounds} rounds, from files to labels\n")
    print("| | wall s | graph s | the rest s | rest / graph | peak GiB |\n|---|---|---|---|---|---|")
    results = {}
    for method in ("exact", "screened", "pruned"):
        _, wall, _ = a2lp(*command, "--graph-method", method)
        record = json.loads((WORK / "labels.csv.run.json").read_text())
        times, peak = record["timings"], record["memory"]["peak_bytes"] / 2**30
        graph = times["neighbours_secs"]
        rest = times["total_secs"] - times["read_secs"] - graph
        results[method] = wall
        print(f"| a2lp {method} | {wall:.2f} | {graph:.2f} | {rest:.2f} | {rest / graph:.2f} | {peak:.2f} |", flush=True)
    peer = run_child("method", str(path), str(label_file), k, rounds, args.threads)
    if peer:
        print(f"| pynndescent anew each round, scipy | {peer['wall']:.1f} | {peer['graph']:.1f} | {peer['wall'] - peer['graph']:.1f} | | |\n")
        print("a2lp is faster by " + ", ".join(f"{peer['wall'] / wall:.0f} x ({method})" for method, wall in results.items()) + ".")
    print()


def timed_searches(rows, columns, k, args):
    """Seconds of each search, and those that the plan predicts on this machine: cells of a table; the seconds by search."""
    path, _ = made_features(rows, columns, args.signed)
    cells, times = "", {}
    for method in args.ours:
        summary, *_ = a2lp("graph", "--features", path, "--neighbours", k, "--out", WORK / "graph.npz", "--graph-method", method,
                           "--threads", args.threads, "--force", "--json")
        times[method] = summary["search_secs"]
        cells += f" {summary['search_secs']:.2f} ({summary['planned_secs']:.2f}) | {summary['graph']['recall']:.4f} |"
    return cells, times


def table_of_searches(first, args):
    print(f"| {first} |" + "".join(f" {m} s (predicted) | recall |" for m in args.ours) + "\n" + "|---" * (1 + 2 * len(args.ours)) + "|")


def part_scaling(args):
    """Seconds over the number of rows, and the exponent that fits."""
    import numpy as np

    sizes, columns, k = [8000, 16000, 32000, 64000, 128000], 512, 20
    print(f"## Cost over the number of rows, {columns} columns, k = {k}\n")
    table_of_searches("rows", args)
    times = []
    for rows in sizes:
        cells, secs = timed_searches(rows, columns, k, args)
        times.append(secs)
        print(f"| {rows:,} |{cells}", flush=True)
    fit = {m: np.polyfit(np.log(sizes), np.log([secs[m] for secs in times]), 1)[0] for m in args.ours}
    print("| fitted exponent |" + "".join(f" {fit[m]:.2f} | |" for m in args.ours) + "\n\nThe paper states n^1.1 for NN-Descent.\n")


def part_widths(args):
    """Seconds over the number of columns."""
    k = 20
    print(f"## Cost over the number of columns, k = {k}\n")
    table_of_searches("features", args)
    for columns, rows in ((16, 50_000), (64, 50_000), (128, 50_000), (128, 200_000), (256, 50_000), (1024, 30_000), (4096, 16_000)):
        cells, _ = timed_searches(rows, columns, k, args)
        print(f"| {rows:,} x {columns} |{cells}", flush=True)
    print()


def triad():
    """Bytes a second of a ← b + c·d over 100 MB each, on all threads: the best of five."""
    import numba, numpy as np

    numba.set_num_threads(len(os.sched_getaffinity(0)))

    @numba.njit(parallel=True, fastmath=True)
    def add(a, b, c):
        for i in numba.prange(len(a)):
            a[i] = b[i] + 3 * c[i]

    a, b, c = (np.ones(25_000_000, dtype=np.float32) for _ in range(3))
    times = []
    for _ in range(6):
        start = time.perf_counter()
        add(a, b, c)
        times.append(time.perf_counter() - start)
    return 12 * len(a) / min(times[1:])


def part_large(args):
    """Sizes at which other tools run out of memory or patience."""
    import numpy as np, scipy.sparse as sparse

    k, classes, rounds = 20, 12, 10
    speed = triad()
    print(f"## Large inputs, from files to labels, k = 20, 10 rounds; the triad moves {speed / 1e9:.1f} GB/s\n")
    for rows, columns in ((1_000_000, 128), (207_785, 2048)):
        path, labels = made_features(rows, columns, args.signed)
        source, target, label_file = halves(path, classes, labels)
        np.save(WORK / "truth.npy", labels[rows // 2 :])
        print(f"### {rows:,} x {columns}\n")
        print("| | wall s | neighbours s | recall | a round s | accuracy % | peak GiB |\n" + "|---" * 7 + "|")
        command = ["label", *PAPER, "--source", source, "--source-labels", label_file, "--target", target, "--neighbours", k,
                   "--rounds", rounds, "--eval-labels", WORK / "truth.npy", "--threads", args.threads, "--out", WORK / "labels.csv",
                   "--force", "--json", "--no-quality"]
        binaries = {"a2lp": A2LP, **({"baseline": args.baseline} if args.baseline else {})}
        walls = {}
        for name, program in binaries.items():
            summary, walls[name], _ = a2lp(*command, program=program)
            record = json.loads((WORK / "labels.csv.run.json").read_text())
            later = record["rounds"][1:]
            a_round = sum(r["graph_secs"] + r["solve_secs"] for r in later) / len(later)
            print(f"| {name} ({record['graph']['method']}) | {walls[name]:.1f} | {record['timings']['neighbours_secs']:.1f} | "
                  f"{record['graph']['recall']:.4f} | {a_round:.2f} | {100 * summary['accuracy']:.1f} | "
                  f"{record['memory']['peak_bytes'] / 2**30:.2f} |", flush=True)
            if name == "a2lp":
                iterations = sum(r["solve"]["iterations"] for r in later) / len(later)
        lists = sparse.load_npz(graph_file(path, k, args.threads))
        truth = exact_neighbours(unit_rows(path), k)
        for peer in [peer for peer in WHOLE_PEERS if peer in args.peers]:
            r = run_child("whole", peer, str(path), str(label_file), k, rounds, args.threads)
            if r:
                recall = np.mean([len(set(t) & set(l)) / k for t, l in zip(truth, r["lists"])])
                print(f"| {peer}, scipy | {r['wall']:.1f} | {r['graph']:.1f} | {recall:.4f} | {r['solve']:.2f} | | {r['peak']:.2f} |", flush=True)
        # A round reads the edges (10 bytes) and writes S (8); an iteration reads S and passes over the four vectors eleven times.
        entries = (lists + lists.T).nnz
        moved = 18 * entries + iterations * (8 * entries + 11 * 4 * rows * classes)
        print(f"\nS has {entries:,} entries and a round takes {iterations:.1f} iterations: {moved / 1e9:.1f} GB that must move, "
              f"so at least {moved / speed:.2f} s.", end="")
        print(f" a2lp takes {walls['a2lp'] / walls['baseline']:.2f} of the baseline's time.\n" if args.baseline else "\n")


def graph_file(path, k, threads):
    out = WORK / "graph.npz"
    a2lp("graph", "--features", path, "--neighbours", k, "--out", out, "--threads", threads, "--force", "--json")
    return out


def exact_neighbours(u, k):
    """The nearest rows of each sampled row, found by comparing it with all."""
    import numpy as np

    sample = sampled(len(u))
    scores = u[sample] @ u.T
    scores[np.arange(len(sample)), sample] = -np.inf
    return np.argpartition(-scores, k, axis=1)[:, :k].tolist()


def part_consensus(args):
    """What the recommended method costs beside A²LP, from files to labels. Both measure the quality of their labels."""
    import numpy as np

    k, classes = 20, 12
    print("## The consensus beside A²LP, from files to labels, k = 20, 10 rounds, 12 classes\n")
    print("| | A²LP s | without quality s | consensus s | x A²LP | A²LP GiB | consensus GiB | x A²LP | accuracy % |\n" + "|---" * 9 + "|")
    for rows in (50_000, 200_000, 1_000_000):
        path, labels = made_features(rows, 128, args.signed)
        source, target, label_file = halves(path, classes, labels)
        np.save(WORK / "truth.npy", labels[rows // 2 :])
        command = ["label", "--unknown", "off", "--source", source, "--source-labels", label_file, "--target", target, "--neighbours", k,
                   "--eval-labels", WORK / "truth.npy", "--threads", args.threads, "--out", WORK / "labels.csv", "--force", "--json"]
        seen = {}
        for name, more in {"a2lp": ["--method", "a2lp"], "plain": ["--method", "a2lp", "--no-quality"],
                           "consensus": ["--method", "consensus"]}.items():
            summary, wall, _ = a2lp(*command, *more)
            record = json.loads((WORK / "labels.csv.run.json").read_text())
            seen[name] = wall, record["memory"]["peak_bytes"] / 2**30, 100 * summary["accuracy"]
        (own, held, before), (plain, _, _), (wall, peak, accuracy) = seen["a2lp"], seen["plain"], seen["consensus"]
        print(f"| {rows:,} x 128 | {own:.0f} | {plain:.0f} | {wall:.0f} | {wall / own:.1f} | {held:.2f} | {peak:.2f} | {peak / held:.1f} | "
              f"{before:.1f} → {accuracy:.1f} |", flush=True)
    print()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", help=f"of {', '.join(PARTS)}; graph, propagation and method when none is named")
    parser.add_argument("--rows", type=int, default=24000)
    parser.add_argument("--columns", type=int, default=2048)
    parser.add_argument("--signed", action="store_true", help="features with negative values")
    parser.add_argument("--features", help="a .npy file instead of made features (graph and propagation)")
    parser.add_argument("--neighbours", type=int, nargs="+", default=[20, 100])
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--peers", nargs="*", default=PEERS, choices=PEERS)
    parser.add_argument("--ours", nargs="*", default=OURS, choices=OURS)
    parser.add_argument("--baseline", help="another a2lp to run beside this one (large)")
    parser.add_argument("--cpu", choices=["avx2"], help="keep everybody from AVX-512")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child:
        name, *rest = json.loads(args.child)
        return json.dump(globals()[f"child_{name}"](*rest), sys.stdout)
    if unknown := set(args.parts) - set(PARTS):
        parser.error(f"no such part: {', '.join(unknown)}")

    WORK.mkdir(parents=True, exist_ok=True)
    os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = str(args.threads)
    if args.cpu:
        only_avx2()
    environment()
    subprocess.run(["cargo", "build", "--release", "--quiet"], cwd=ROOT, check=True)
    labels = None
    parts = args.parts or ["graph", "propagation", "method"]
    if {"graph", "propagation", "method"} & set(parts):
        path = pathlib.Path(args.features) if args.features else None
        if path is None:
            path, labels = made_features(args.rows, args.columns, args.signed)
    for part in parts:
        if part == "graph":
            part_graph(args, path)
        elif part == "propagation":
            part_propagation(args, path, labels)
        elif part == "method":
            part_method(args, path, labels)
        else:
            globals()[f"part_{part}"](args)


if __name__ == "__main__":
    main()
