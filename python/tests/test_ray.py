"""Runs on a Ray cluster of three nodes on this machine: the bytes of a run in memory, whatever happens to workers and nodes."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import a2lp
from a2lp import _native

ray = pytest.importorskip("ray", reason="RAY TESTS SKIPPED: Ray is not installed")
pa = pytest.importorskip("pyarrow", reason="RAY TESTS SKIPPED: pyarrow is not installed")
import pyarrow.parquet as pq  # noqa: E402

import a2lp.ray  # noqa: E402

SETTINGS = {"n_neighbors": 20, "n_rounds": 4}


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """20,000 rows × 64 as Parquet files with labels and ids, and what a run in memory makes of them."""
    folder = tmp_path_factory.mktemp("shards")
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(36, 16)) * 1.5
    spread = rng.normal(size=(16, 64)) / 4

    def features(count, shift):
        which = rng.integers(0, 36, count)
        return which // 3, ((centres[which] + rng.normal(size=(count, 16)) + shift) @ spread).astype("f4")

    def write(path, x, **columns):
        path.parent.mkdir(exist_ok=True)
        vectors = pa.FixedSizeListArray.from_arrays(pa.array(x.ravel()), x.shape[1])
        pq.write_table(pa.table({"embedding": vectors, **columns}), path, row_group_size=3000)

    labels, x = features(5000, 0.0)
    write(folder / "source" / "a.parquet", x[:2000], kind=[f"k{c}" for c in labels[:2000]])
    write(folder / "source" / "b.parquet", x[2000:], kind=[f"k{c}" for c in labels[2000:]])
    truth, x = features(15000, 0.2)
    for at, (start, end) in enumerate([(0, 7000), (7000, 7001), (7001, 15000)]):
        write(folder / "target" / f"part-{at}.parquet", x[start:end], key=[f"item {row}" for row in range(start, end)])
    whole = folder / "whole.parquet"
    command = [
        *("label", "--source", str(folder / "source"), "--target", str(folder / "target"), "--out", str(whole)),
        *("--label-column", "kind", "--id-column", "key", "--feature-column", "embedding"),
        *("--method", "a2lp", "--graph-method", "pruned", "--neighbours", "20", "--rounds", "4"),
        *("--unknown", "off", "--no-quality"),
    ]
    assert _native.main(["a2lp", *command]) == 0
    table = pq.read_table(whole)
    assert np.mean([f"k{c}" == found for c, found in zip(truth, table["label"].to_pylist())]) > 0.8
    return folder, table


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """Three nodes on this machine, of two workers each."""
    from ray.cluster_utils import Cluster

    # Workers look for modules where the driver is, and here are the sources of the package.
    os.chdir(tmp_path_factory.mktemp("elsewhere"))
    # A lost node is noticed within seconds, not a quarter of a minute.
    os.environ["RAY_health_check_period_ms"] = "1000"
    os.environ["RAY_health_check_failure_threshold"] = "4"
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 2, "object_store_memory": 100 << 20})
    for _ in range(2):
        cluster.add_node(num_cpus=2, object_store_memory=100 << 20)
    ray.init(address=cluster.address, log_to_driver=False, configure_logging=False)
    yield cluster
    ray.shutdown()
    cluster.shutdown()


def run(data, out, **options):
    folder, _ = data
    columns = {"label_column": "kind", "id_column": "key", "feature_column": "embedding"}
    options = {"worker_memory": "1G", "progress": False, **columns, **SETTINGS, **options}
    return a2lp.ray.label(folder / "source", folder / "target", out, **options)


def parts(out):
    return sorted(Path(out).glob("*.parquet"))


def assert_same(data, out):
    """One file for each file of the target, and together the table of the run in memory."""
    folder, whole = data
    assert [path.name for path in parts(out)] == [path.name for path in sorted((folder / "target").iterdir())]
    assert pa.concat_tables([pq.read_table(path) for path in parts(out)]).equals(whole)
    assert not (Path(out) / ".work").exists()


@pytest.mark.parametrize("workers", [1, 2, 5])
def test_any_number_of_workers_gives_the_labels_of_a_run_in_memory(data, cluster, tmp_path, workers):
    record = run(data, tmp_path / "labels", workers=workers)
    assert_same(data, tmp_path / "labels")
    assert record == json.loads((tmp_path / "labels" / "_run.json").read_text())
    outcome = record["outcome"]
    assert outcome["workers"] == workers and outcome["recall"] > 0.98
    assert (outcome["sweep_bytes"] > 0) == (workers > 1)
    assert {stage for stage, _ in outcome["stage_secs"]} == {"read", "group", "gather", "search", "join", "rounds", "write"}
    with pytest.raises(FileExistsError):
        run(data, tmp_path / "labels", workers=workers)


def test_spilled_labels_are_the_same_files(data, cluster, tmp_path):
    folder, _ = data
    run(data, tmp_path / "labels", workers=2)
    command = [
        *("label", "--source", str(folder / "source"), "--target", str(folder / "target" / "*.parquet")),
        *("--out", str(tmp_path / "spilled"), "--spill", str(tmp_path / "work"), "--max-memory", "600M"),
        *("--label-column", "kind", "--id-column", "key", "--feature-column", "embedding", "--neighbours", "20", "--rounds", "4"),
    ]
    assert _native.main(["a2lp", *command]) == 0
    assert_same(data, tmp_path / "spilled")
    for one, other in zip(parts(tmp_path / "labels"), parts(tmp_path / "spilled")):
        assert one.read_bytes() == other.read_bytes()
    assert list((tmp_path / "work").iterdir()) == []


class Once:
    """Calls something when a stage has come so far."""

    def __init__(self, stage, done, act):
        self.stage, self.done, self.act, self.notes = stage, done, act, []

    def __call__(self, stage, done, total):
        if stage == "note":
            self.notes.append(done)
        elif stage == self.stage and done >= self.done and self.act is not None:
            act, self.act = self.act, None
            act()


def kill_a_worker():
    ray.kill(ray.get_actor(ray.util.list_named_actors()[0]))


@pytest.mark.parametrize("stage, done", [("search", 1), ("rounds", 2)])
def test_a_lost_worker_does_not_show(data, cluster, tmp_path, stage, done):
    watch = Once(stage, done, kill_a_worker)
    record = run(data, tmp_path / "labels", workers=3, progress=watch)
    assert watch.act is None and any("lost" in note for note in watch.notes), watch.notes
    assert stage != "rounds" or record["outcome"]["lost"] >= 1
    assert_same(data, tmp_path / "labels")


@pytest.mark.parametrize("stage, done", [("search", 1), ("rounds", 1)])
def test_a_lost_node_does_not_show(data, cluster, tmp_path, stage, done):
    node = cluster.add_node(num_cpus=2, object_store_memory=100 << 20)
    cluster.wait_for_nodes()
    watch = Once(stage, done, lambda: cluster.remove_node(node, allow_graceful=False))
    run(data, tmp_path / "labels", workers=8, progress=watch)
    assert watch.act is None
    assert_same(data, tmp_path / "labels")


def test_a_driver_that_was_killed_goes_on(data, tmp_path):
    """A process of its own, with a cluster of its own, is killed during the rounds; the same call goes on."""
    folder, _ = data
    script = f"""
import sys, os, signal, a2lp.ray
def progress(stage, done, total):
    if stage == "note": print("NOTE", done)
    if sys.argv[1] == "die" and stage == "rounds" and done >= 2: os.kill(os.getpid(), signal.SIGKILL)
a2lp.ray.label({str(folder / "source")!r}, {str(folder / "target")!r}, {str(tmp_path / "labels")!r}, label_column="kind",
    id_column="key", feature_column="embedding", workers=2, worker_memory="1G", progress=progress, **{SETTINGS!r})
"""
    first = subprocess.run([sys.executable, "-c", script, "die"], capture_output=True, text=True, cwd=tmp_path)
    assert first.returncode == -signal.SIGKILL, first.stderr
    assert (tmp_path / "labels" / ".work" / "job.json").exists()
    second = subprocess.run([sys.executable, "-c", script, "live"], capture_output=True, text=True, cwd=tmp_path)
    assert second.returncode == 0 and "going on" in second.stdout, second.stderr
    assert_same(data, tmp_path / "labels")


def test_the_command_line_runs_on_a_cluster(data, cluster, tmp_path, capfd):
    folder, _ = data
    command = [
        *("label", "--source", str(folder / "source"), "--target", str(folder / "target"), "--out", str(tmp_path / "labels")),
        *("--label-column", "kind", "--id-column", "key", "--feature-column", "embedding", "--neighbours", "20", "--rounds", "4"),
        *("--cluster", "auto", "--workers", "2", "--max-memory", "1G"),
    ]
    assert _native.main(["a2lp", *command, "--dry-run"]) == 0
    assert "machine-hours" in capfd.readouterr().out
    assert _native.main(["a2lp", *command]) == 0
    assert "2 workers sent each other" in capfd.readouterr().out
    assert_same(data, tmp_path / "labels")
    assert (tmp_path / "labels" / "_run.json").exists()


def test_what_shards_cannot_do_is_said_at_once(data, cluster, tmp_path):
    for settings in [{"method": "consensus"}, {"graph_method": "exact"}, {"unknown": "flag"}, {"source_nodes": "centres"}]:
        with pytest.raises(ValueError, match="shards"):
            run(data, tmp_path / "labels", **settings)
    with pytest.raises(ValueError, match="memory"):
        run(data, tmp_path / "labels", worker_memory="1M")
    with pytest.raises(ValueError, match="no size"):
        run(data, tmp_path / "labels", worker_memory="much")
    plan = run(data, tmp_path / "labels", dry_run=True, workers=4)
    assert plan["machines"]["workers"] == 4 and plan["machine_hours"] > 0 and plan["moved_bytes"] > 0
    assert not (tmp_path / "labels").exists()


def test_bad_rows_are_named(data, cluster, tmp_path):
    folder, _ = data
    table = pq.read_table(folder / "target" / "part-0.parquet")
    x = np.stack(table["embedding"].to_numpy())
    x[41, 2] = np.nan
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(x.ravel()), 64)
    pq.write_table(table.set_column(0, "embedding", vectors), tmp_path / "bad.parquet")
    with pytest.raises(ValueError, match="target features: row 41, column 2 is NaN"):
        options = {"label_column": "kind", "progress": False, "worker_memory": "1G"}
        a2lp.ray.label(folder / "source", tmp_path / "bad.parquet", tmp_path / "labels", **options)


def test_an_object_store(data, cluster, tmp_path):
    """Input, output and work in S3, as moto's server has it."""
    moto = pytest.importorskip("moto.server", reason="RAY TESTS SKIPPED: moto is not installed")
    from pyarrow import fs

    server = moto.ThreadedMotoServer(port=0)
    server.start()
    try:
        host, port = server.get_host_and_port()
        where = {"endpoint_override": f"{host}:{port}", "scheme": "http", "region": "us-east-1"}
        store = fs.S3FileSystem(access_key="a", secret_key="b", allow_bucket_creation=True, **where)
        store.create_dir("bucket")
        folder, whole = data
        for domain in ("source", "target"):
            fs.copy_files(str(folder / domain), f"bucket/{domain}", destination_filesystem=store)
        columns = {"label_column": "kind", "id_column": "key", "feature_column": "embedding"}
        record = a2lp.ray.label(
            *("s3://bucket/source/", "s3://bucket/target/", "s3://bucket/labels/"),
            filesystem=store, workers=2, worker_memory="1G", progress=False, **columns, **SETTINGS,
        )
        found = [pq.read_table(f"bucket/labels/{name}", filesystem=store) for name in record["outputs"]]
        assert pa.concat_tables(found).equals(whole)
        names = {info.base_name for info in store.get_file_info(fs.FileSelector("bucket/labels"))}
        assert names == {"part-0.parquet", "part-1.parquet", "part-2.parquet", "_run.json"}
    finally:
        server.stop()


def test_the_example_clusters_are_what_ray_accepts():
    """By Ray's own checks: of a file for `ray up`, and of the cluster in a job for KubeRay."""
    import yaml
    from ray.autoscaler._private.kuberay.autoscaling_config import _derive_autoscaling_config_from_ray_cr
    from ray.autoscaler._private.util import prepare_config, validate_config

    folder = Path(__file__).parent.parent.parent / "docs" / "cluster"
    config = prepare_config(yaml.safe_load((folder / "cluster.yaml").read_text()))
    validate_config(config)
    assert config["available_node_types"]["worker"]["max_workers"] == 16
    job = yaml.safe_load((folder / "rayjob.yaml").read_text())
    assert job["kind"] == "RayJob"
    cluster = {"metadata": job["metadata"], "spec": job["spec"]["rayClusterSpec"]}
    types = _derive_autoscaling_config_from_ray_cr(cluster)["available_node_types"]
    assert types["workers"]["resources"]["CPU"] == 16 and types["workers"]["max_workers"] == 16
    # What the job runs is Python.
    code = job["spec"]["entrypoint"].split('"')[1]
    compile(code, "rayjob.yaml", "exec")
