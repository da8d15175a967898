#!/usr/bin/env python3
"""Measures runs on shards: from memory, from disk, and on a Ray cluster on this machine.

    benches/cluster.py compare --rows 250000 1000000 4000000   # time, bytes, memory; fitted exponents; docs/cluster.md has the table
    benches/cluster.py limits                                  # 207,785 × 2048 from disk within 1 GiB
    benches/cluster.py predict                                 # from what `compare` measured: other numbers of machines, 100 million rows

From two million rows on, `compare` leaves out the runs that take longest, and puts each worker into a control group of 700 MiB, for which it
needs the right to make such groups. Needs the Python package with Ray (`make python`). Results go to target/cluster/.
"""

import argparse
import json
import math
import os
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent.parent
FOLDER = HERE / "target" / "cluster"
CLASSES = 12
NEIGHBOURS = 20
# From here on, workers are limited.
LARGE = 2_000_000
LIMIT = 700 << 20


def make(rows, columns):
    """A fifth of the rows is the source; the target is in four files. Features lie near a surface of 24 dimensions."""
    folder = FOLDER / f"data-{rows}-{columns}"
    if (folder / "done").exists():
        return folder
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(4 * CLASSES, 24)).astype("f4") * 1.6
    spread = rng.normal(size=(24, columns)).astype("f4") / np.sqrt(24)
    sizes = {"source": rows // 5} | {f"target-{part}": (rows - rows // 5) // 4 for part in range(4)}
    for name, size in sizes.items():
        x = np.lib.format.open_memmap(folder / f"{name}.npy", "w+", "f4", (size, columns))
        which = rng.integers(0, 4 * CLASSES, size)
        for start in range(0, size, 50_000):
            part = which[start : start + 50_000]
            z = centres[part] + rng.normal(size=(len(part), 24)).astype("f4") + (0.1 if name != "source" else 0)
            x[start : start + 50_000] = np.maximum(z @ spread + 0.05 * rng.normal(size=(len(part), columns)).astype("f4"), 0) + 0.01
        x.flush()
        np.save(folder / f"{name}-labels.npy", which // 4)
    (folder / "done").touch()
    return folder


def inputs(folder):
    targets = [str(folder / f"target-{part}.npy") for part in range(4)]
    source = ["--source", str(folder / "source.npy"), "--source-labels", str(folder / "source-labels.npy")]
    return [*source, "--target", *targets, "--method", "a2lp", "--neighbours", str(NEIGHBOURS)]


def command(binary, *args):
    """Seconds of a command. Its memory is in its record: what the system tells a parent includes the parent's own."""
    began = time.monotonic()
    if subprocess.run([binary, "label", *args], stdout=subprocess.DEVNULL).returncode:
        sys.exit(f"a2lp label {' '.join(args)} failed")
    return time.monotonic() - began


def recorded(path, *keys):
    record = json.loads(path.read_text())
    for key in keys:
        record = record[key]
    return record


def in_memory(binary, folder):
    out = FOLDER / "memory.csv"
    args = [*inputs(folder), "--graph-method", "pruned", "--unknown", "off", "--no-quality", "--threads", "2"]
    secs = command(binary, *args, "--out", str(out), "--force")
    return (secs, recorded(FOLDER / "memory.csv.run.json", "memory", "peak_bytes")), out


def from_disk(binary, folder, memory):
    out = FOLDER / "spilled"
    shutil.rmtree(out, ignore_errors=True)
    secs = command(binary, *inputs(folder), "--threads", "2", "--out", str(out), "--spill", str(FOLDER / "work"), "--max-memory", memory)
    return (secs, recorded(out / "_run.json", "peak_bytes")), out


def on_ray(folder, workers, memory, limit=None):
    """A run on a cluster on this machine. `limit`: bytes that the system lets each worker have."""
    import ray

    import a2lp.ray
    from a2lp import _native

    out = FOLDER / f"ray-{workers}"
    shutil.rmtree(out, ignore_errors=True)
    os.chdir(FOLDER)
    ray.init(num_cpus=workers, log_to_driver=False, configure_logging=False, include_dashboard=False, object_store_memory=500 << 20)
    watcher = Limiter(limit) if limit else None
    try:
        began = time.monotonic()
        targets = [str(folder / f"target-{part}.npy") for part in range(4)]
        # Labels in a file of their own are the command line's; here they come with the job.
        opened = _native.open_shards([str(labelled(folder))], targets, (None, None, None))
        sources, targets, source_rows, target_rows, columns, labels, fingerprint = opened
        settings = {"method": "a2lp", "n_neighbors": NEIGHBOURS}
        job, ids = _native.shard_job(source_rows, target_rows, columns, labels, fingerprint, settings, False)
        place = a2lp.ray._Local.opened(sources, targets, str(out), (None, None, None))
        progress = a2lp.ray._Bar()
        options = {"workers": workers, "worker_cpus": 1, "worker_memory": a2lp.ray._bytes(memory), "force": True}
        outcome, _ = a2lp.ray._run(place, job, ids, address=None, callback=progress, **options)
        return time.monotonic() - began, outcome, out, watcher and watcher.peaks()
    finally:
        if watcher:
            watcher.stop()
        ray.shutdown()


def labelled(folder):
    """The source with its labels in one file."""
    path = folder / "source.npz"
    if not path.exists():
        np.savez(path, features=np.load(folder / "source.npy", mmap_mode="r"), labels=np.load(folder / "source-labels.npy"))
    return path


class Limiter:
    """Puts every worker into a control group of its own as soon as it is there."""

    ROOT = Path("/sys/fs/cgroup/memory")

    def __init__(self, limit):
        self.limit, self.groups, self.running = limit, {}, True
        self.thread = threading.Thread(target=self.watch, daemon=True)
        self.thread.start()

    def watch(self):
        while self.running:
            for path in Path("/proc").glob("[0-9]*/cmdline"):
                pid = path.parent.name
                try:
                    title = path.read_bytes()
                except OSError:
                    continue
                # Ray names a process after its task; ours begin with "a2lp".
                if pid not in self.groups and title.startswith(b"ray::a2lp"):
                    group = self.ROOT / f"a2lp-{pid}"
                    group.mkdir(exist_ok=True)
                    (group / "memory.limit_in_bytes").write_text(str(self.limit))
                    (group / "cgroup.procs").write_text(pid)
                    self.groups[pid] = group
            time.sleep(0.05)

    def peaks(self):
        """Most that each group held, files in memory included, and how often it met its limit without finding room."""
        about = {}
        for pid, group in self.groups.items():
            control = (group / "memory.oom_control").read_text()
            kills = next((int(line.split()[1]) for line in control.splitlines() if line.startswith("oom_kill ")), 0)
            about[pid] = {"peak": int((group / "memory.max_usage_in_bytes").read_text()), "killed": kills}
        return about

    def stop(self):
        self.running = False
        self.thread.join()
        for group in self.groups.values():
            try:
                group.rmdir()
            except OSError:
                pass


def same(whole, folder):
    """Are the labels of all parts, one below the other, the bytes of the whole file?"""
    lines = []
    for part in sorted(folder.glob("*.csv")):
        lines += part.read_bytes().split(b"\n")[1 if lines else 0 : -1]
    return b"\n".join(lines) + b"\n" == whole.read_bytes()


def mib(count):
    return f"{count / 2**20:,.0f}"


def compare(args):
    results = json.loads((FOLDER / "compare.json").read_text()) if args.add else []
    for rows in args.rows:
        folder = make(rows, args.columns)
        labelled(folder)
        row = {"rows": rows, "columns": args.columns}
        (row["memory_secs"], row["memory_bytes"]), whole = in_memory(args.binary, folder)
        if rows < LARGE:
            (row["disk_secs"], row["disk_bytes"]), out = from_disk(args.binary, folder, args.memory)
            row["disk_same"] = same(whole, out)
        for workers in (1, 2) if rows < LARGE else (2,):
            limit, memory = (None, args.memory) if rows < LARGE else (LIMIT, "700M")
            secs, outcome, out, groups = on_ray(folder, workers, memory, limit)
            row[f"ray{workers}_secs"], row[f"ray{workers}"], row["groups"] = secs, outcome, groups
            row[f"ray{workers}_same"] = same(whole, out)
        results.append(row)
        (FOLDER / "compare.json").write_text(json.dumps(results, indent=1))
    print("| rows | memory s | MiB | disk s | MiB | Ray, 2 workers: s | × memory | MiB a worker | MiB moved by stages | KiB a sweep | same bytes |")
    print("|---|---|---|---|---|---|---|---|---|---|---|")
    for r in results:
        ray2 = r["ray2"]
        disk = f"{r['disk_secs']:.0f} | {mib(r['disk_bytes'])}" if "disk_secs" in r else "– | –"
        equal = all(r[name] for name in ("disk_same", "ray1_same", "ray2_same") if name in r)
        print(
            f"| {r['rows']:,} | {r['memory_secs']:.0f} | {mib(r['memory_bytes'])} | {disk} "
            f"| {r['ray2_secs']:.0f} | {r['ray2_secs'] / r['memory_secs']:.2f} | {mib(ray2['worker_peak_bytes'])} "
            f"| {mib(ray2['stage_bytes'])} | {ray2['sweep_bytes'] / 1024:,.0f} | {'yes' if equal else 'NO'} |"
        )
        for about in (r.get("groups") or {}).values():
            print(f"  control group of 700 MiB: at most {mib(about['peak'])} MiB, files in memory included; {about['killed']} kills")
    for name, value in exponents(results).items():
        print(f"{name}: grows with rows^{value:.2f}")


def stage_secs(outcome):
    secs = {}
    for stage, spent in outcome["stage_secs"]:
        secs[stage] = secs.get(stage, 0) + spent
    return secs


def exponents(results):
    """Slopes of straight lines through the logarithms."""
    if len(results) < 2:
        return {}
    n = np.log([r["rows"] for r in results])
    of = {
        "time in memory": [r["memory_secs"] for r in results],
        "time on two workers": [r["ray2_secs"] for r in results],
        "search": [stage_secs(r["ray2"])["search"] for r in results],
        "rounds": [stage_secs(r["ray2"])["rounds"] for r in results],
        "bytes of stages": [r["ray2"]["stage_bytes"] for r in results],
        "bytes of a sweep": [r["ray2"]["sweep_bytes"] for r in results],
    }
    return {name: float(np.polyfit(n, np.log(values), 1)[0]) for name, values in of.items()}


def limits(args):
    folder = make(207_785, 2048)
    (secs, most), _ = from_disk(args.binary, folder, "1G")
    print(f"207,785 × 2048, --max-memory 1G --spill: {secs:.0f} s, at most {mib(most)} MiB")


# Products of two numbers that a core adds up in a second.
MULTIPLIED_PER_SEC = 3e10


def group_count(rows):
    return min(max(1.1 * rows**0.5, rows / 250), 65536)


def looked_at(rows):
    """Centres that a row is compared with to find its own: of many, those in stretches near it."""
    return group_count(rows) if group_count(rows) < 1024 else 9 * group_count(rows) ** 0.5


def predict(args):
    """Stages take their time divided by the cores, and their bytes by what all networks carry; a sweep also waits twice for the slowest
    machine. Rows that a worker needs of others are those at the surface of its blocks: measured for two workers, and growing with
    workers^(1/24) as surfaces do in the 24 dimensions of the data, at most all."""
    results = json.loads((FOLDER / "compare.json").read_text())
    largest = max((r for r in results if "ray1" in r), key=lambda r: r["rows"])
    slopes = exponents(results)

    def secs(rows, columns, machines, cores, bandwidth, latency):
        base = stage_secs(largest["ray1"])
        grown = rows / largest["rows"]
        wider = columns / largest["columns"]
        slope = {"search": slopes.get("search", 1.15), "rounds": slopes.get("rounds", 1.0)}
        cpu = sum(
            spent * grown ** slope.get(stage, 1.0) * (1.0 if stage == "rounds" else wider) for stage, spent in base.items() if stage != "group"
        )
        # Groups: rows × the centres that a row is compared with.
        cpu += base["group"] * grown * looked_at(rows) / looked_at(largest["rows"]) * wider
        # One worker finds the centres, in four passes over a sample.
        alone = 4 * 32 * group_count(rows) * looked_at(rows) * columns / MULTIPLIED_PER_SEC
        workers = machines * cores
        moved = largest["ray1"]["stage_bytes"] * grown * wider
        sweeps = sum(r["solve"]["iterations"] + 1 for r in largest["ray1"]["rounds"])
        surface = largest["ray2"]["sweep_bytes"] * grown * min((workers / 2) ** (1 / 24) if workers > 1 else 0, 8)
        network = 0 if machines == 1 else (moved + sweeps * surface) / (machines * bandwidth) + sweeps * 2 * latency
        return cpu / workers + alone + network, moved, surface, alone

    measured = largest["ray2_secs"]
    two, *_ = secs(largest["rows"], largest["columns"], 1, 2, 1, 0)
    print(f"two workers, {largest['rows']:,} rows: predicted {two:.0f} s, measured {measured:.0f} s ({two / measured:.2f} ×)")
    print("\n| machines of 16 cores, 10 Gbit/s | 100 million × 768: hours | machine-hours |\n|---|---|---|")
    for machines in (2, 4, 8, 16, 32, 64):
        spent, moved, surface, alone = secs(100_000_000, 768, machines, 16, 1.25e9, 1e-3)
        print(f"| {machines} | {spent / 3600:.1f} | {spent * machines / 3600:.0f} |")
    rows, workers = 100_000_000, 16 * 16
    own = rows / workers
    worker = 8 * rows + own * (4 * 4 * 12 + 40 + 33 * 8 + 4 * CLASSES) + 4 * 768 * 65536 * 3
    print(f"\nbytes of stages {moved / 1e12:.1f} TB, of a sweep {surface / 1e9:.1f} GB; a worker of one core about {worker / 2**30:.1f} GiB")
    centres = 4 * 768 * (32 + 6) * 65536
    print(f"the worker that finds the centres about {centres / 2**30:.0f} GiB and {alone / 60:.0f} minutes, which are part of the hours above")
    assert math.isfinite(moved)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["compare", "limits", "predict"])
    parser.add_argument("--rows", type=int, nargs="+", default=[250_000, 1_000_000])
    parser.add_argument("--add", action="store_true", help="to the results that are there")
    parser.add_argument("--columns", type=int, default=128)
    parser.add_argument("--memory", default="2G", help="of a run from disk, and of each worker")
    parser.add_argument("--binary", default=str(HERE / "target" / "release" / "a2lp"))
    args = parser.parse_args()
    FOLDER.mkdir(parents=True, exist_ok=True)
    {"compare": compare, "limits": limits, "predict": predict}[args.what](args)


if __name__ == "__main__":
    main()
