"""Label more rows than one machine holds, on a Ray cluster.

    import a2lp.ray                                   # pip install 'a2lp[ray]'

    a2lp.ray.label(source="s3://bucket/src/", target="s3://bucket/tgt/", out="s3://bucket/labels/",
                   label_column="label", id_column="id", n_neighbors=20, worker_memory="8G")

Workers are Ray actors. They leave the result of every stage in ``out/.work``. A run goes on after a worker or a node was lost, and
after the driver was lost if the same call is given again. For any number of workers the labels are, to the bit, those of
``a2lp label --method a2lp --graph-method pruned``.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Callable, Union

import numpy as np

from . import _native

try:
    import ray
except ImportError as error:  # pragma: no cover
    raise ImportError("a2lp.ray needs Ray: pip install 'a2lp[ray]'") from error

__all__ = ["WorkerLost", "label"]

_Paths = Union[str, "os.PathLike[str]", Sequence[Union[str, "os.PathLike[str]"]]]
_Callback = Callable[[str, Any, int], Any]

# Seconds that workers have to start, once one of them has.
_PATIENCE = 20
# What Python, NumPy and Ray hold in a worker before it has any rows.
_INTERPRETER = 160 << 20
_WORK = ".work"
_RECORD = "_run.json"


class WorkerLost(RuntimeError):
    """A worker or its node is gone; the run goes on with others."""


def label(
    source: _Paths,
    target: _Paths,
    out: str | os.PathLike[str],
    *,
    label_column: str | None = None,
    id_column: str | None = None,
    feature_column: str | None = None,
    address: str | None = None,
    workers: int | None = None,
    worker_cpus: int = 1,
    worker_memory: str | int | None = None,
    probabilities: bool = False,
    force: bool = False,
    keep_work: bool = False,
    dry_run: bool = False,
    filesystem: Any = None,
    progress: bool | _Callback = True,
    **settings: Any,
) -> dict[str, Any]:
    """Label the parts of a target on a cluster, and write a labels file for each.

    Parameters
    ----------
    source, target : path, URI or list of them
        Folders or files of features; the source with labels. Local files may have any format that ``a2lp label`` reads. URIs
        (``s3://…``, ``gs://…``, ``hdfs://…``) are read by pyarrow, as Parquet.
    out : path or URI
        The folder for the labels: one file for each file of the target, in the same order of rows, with the same ids, and
        ``_run.json`` with settings, plan, timings, memory and recall.
    label_column, id_column, feature_column : str, optional
        Names of columns, where the usual ones do not fit.
    address : str, optional
        Of the cluster. ``None`` starts one on this machine, unless Ray is running already; ``"auto"`` joins the one at hand.
    workers : int, optional
        Number of workers; by default as many as the cluster has CPUs for.
    worker_cpus : int
        Threads of each worker.
    worker_memory : str or int, optional
        Memory that each worker may take, Python included, such as ``"8G"``; by default an equal share of half of the smallest node.
    probabilities : bool
        Also write the probability of every class.
    force : bool
        Replace labels that are there.
    keep_work : bool
        Keep ``out/.work`` when the run is done.
    dry_run : bool
        Only return the plan: time, machine-hours, bytes moved, memory of a worker.
    filesystem : pyarrow.fs.FileSystem, optional
        Opens the paths, instead of what the URI names.
    progress : bool or callable
        Print progress to standard error, or call ``progress(stage, done, total)``.
    **settings
        Settings of the method, by the names of :class:`a2lp.A2LP`: ``n_neighbors``, ``alpha``, ``n_rounds``, … Methods are ``a2lp``
        and ``lp``.

    Returns
    -------
    dict
        What ``_run.json`` holds; with ``dry_run`` the plan.
    """
    names = (feature_column, label_column, id_column)
    place: _Place
    if filesystem is not None or _is_uri(out) or any(_is_uri(path) for path in _listed(source) + _listed(target)):
        place = _Remote(_listed(source), _listed(target), os.fspath(out), names, filesystem)
    else:
        place = _Local([os.fspath(p) for p in _listed(source)], [os.fspath(p) for p in _listed(target)], os.fspath(out), names)
    settings.setdefault("method", "a2lp")
    job, labels = _native.shard_job(
        place.source_rows, place.target_rows, place.columns, place.labels, place.fingerprint, settings, probabilities
    )
    outcome, plan = _run(
        place,
        job,
        labels,
        address=address,
        workers=workers,
        worker_cpus=worker_cpus,
        worker_memory=None if worker_memory is None else _bytes(worker_memory),
        force=force,
        keep_work=keep_work,
        dry_run=dry_run,
        callback=_Bar() if progress is True else (progress or None),
    )
    if dry_run:
        return plan
    described = json.loads(job)
    record = {
        "a2lp_version": _native.__version__,
        "outputs": place.outputs,
        "source_rows": sum(place.source_rows),
        "target_rows": sum(place.target_rows),
        "columns": place.columns,
        "classes": described["classes"],
        "settings": described["settings"],
        "plan": plan,
        "outcome": outcome,
    }
    place.write_text(_RECORD, json.dumps(record, indent=2) + "\n")
    return record


def _run_command(
    job: str,
    labels: list[int],
    files: tuple[list[Any], list[Any], Any, tuple[str | None, str | None, str | None]],
    *,
    address: str,
    workers: int | None,
    worker_memory: int | None,
    worker_cpus: int | None,
    force: bool,
) -> tuple[str, str]:
    """Run what the command line was asked for."""
    sources, targets, out, names = files
    place = _Local.opened([os.fspath(p) for p in sources], [os.fspath(p) for p in targets], os.fspath(out), names)
    outcome, plan = _run(
        place,
        job,
        labels,
        address=address,
        workers=workers,
        worker_cpus=worker_cpus or 1,
        worker_memory=worker_memory,
        force=force,
        callback=_Bar(),
    )
    return json.dumps(outcome), json.dumps(plan)


def _run(
    place: _Place,
    job: str,
    labels: list[int],
    *,
    address: str | None,
    workers: int | None,
    worker_cpus: int,
    worker_memory: int | None,
    force: bool,
    keep_work: bool = False,
    dry_run: bool = False,
    callback: _Callback | None = None,
) -> tuple[dict[str, Any], dict[str, Any]]:
    began_ray = _connect(address)
    try:
        nodes = _nodes(worker_cpus)
        count = workers or max(1, sum(nodes))
        if worker_memory is None:
            worker_memory = _usual_memory(worker_cpus)
        room = max(0, worker_memory - _INTERPRETER)
        plan = json.loads(_native.shard_plan(job, count, worker_cpus, room, not dry_run))
        if dry_run:
            return {}, plan
        work = place.work()
        if not place.has_job() and not force:
            place.refuse_existing()
        if _native.prepare_shards(work, job, labels) and callback is not None:
            callback("note", "going on with what an earlier run has left", 0)
        engine = _Engine(count, worker_cpus, place.worker_spec(), callback)
        try:
            outcome = json.loads(_native.run_shards(work, engine, room, engine.watch))
        finally:
            engine.close()
        if not keep_work:
            place.remove_work()
        return outcome, plan
    finally:
        if began_ray:
            ray.shutdown()


# The cluster.


def _connect(address: str | None) -> bool:
    """Join a cluster or start one; tells whether this call did."""
    if ray.is_initialized():
        return False
    options: dict[str, Any] = {"log_to_driver": False, "logging_level": "warning", "configure_logging": False}
    if address == "auto":
        try:
            ray.init(address="auto", **options)
            return True
        except ConnectionError:
            address = None
    ray.init(address=address or "local", **options)
    return True


def _nodes(worker_cpus: int) -> list[int]:
    """How many workers each living node has CPUs for."""
    alive = [node for node in ray.nodes() if node["Alive"]]
    return [int(node["Resources"].get("CPU", 0) // worker_cpus) for node in alive]


def _usual_memory(worker_cpus: int) -> int:
    alive = [node["Resources"] for node in ray.nodes() if node["Alive"] and node["Resources"].get("CPU", 0) >= 1]
    shares = [node.get("memory", 4 << 30) / 2 / max(1, node["CPU"] // worker_cpus) for node in alive]
    return int(min(shares, default=2 << 30))


class _Actor:
    """A worker of a run. Its name and those of its tasks are what Ray's dashboard shows."""

    def __init__(self, number: int, threads: int, spec: tuple[Any, Any]) -> None:
        self._number = number
        work, parts = (part() if callable(part) else part for part in spec)
        self._scratch = tempfile.TemporaryDirectory(prefix="a2lp-")
        self._worker = _native.ShardWorker(work, parts, threads, self._scratch.name)

    def __repr__(self) -> str:
        return f"a2lp worker {self._number}"

    def is_ready(self) -> bool:
        return True

    def task(self, message: bytes) -> bytes:
        return self._worker.handle(message, [])[0]

    def step(self, message: bytes, *parcels: bytes) -> Any:
        reply, sent = self._worker.handle(message, list(parcels))
        return (reply, *sent)


# The driver begins lost work again itself, from the last result.
_Worker: Any = ray.remote(max_restarts=0, max_task_retries=0)(_Actor)

_LOST = (
    ray.exceptions.RayActorError,
    ray.exceptions.RaySystemError,
    ray.exceptions.ObjectLostError,
    ray.exceptions.WorkerCrashedError,
    ray.exceptions.NodeDiedError,
)


class _Engine:
    """Brings the driver's messages to actors, and parcels from actor to actor."""

    def __init__(self, workers: int, cpus: int, spec: tuple[Any, Any], callback: _Callback | None) -> None:
        self._wanted, self._cpus, self._spec, self._callback = workers, cpus, spec, callback
        self._made, self._stage = 0, "begin"
        self._actors: list[Any] = []
        self._parcels: list[list[Any]] = []
        self._replies: list[bytes] = []
        self._begin(workers)

    def _make(self) -> Any:
        self._made += 1
        options = {"num_cpus": self._cpus, "name": f"a2lp-{os.getpid()}-{id(self)}-worker-{self._made}"}
        return _Worker.options(**options).remote(self._made, self._cpus, self._spec)

    def _begin(self, count: int) -> None:
        """Start workers. A cluster may have less room than it says, so those that do not start in time are given up."""
        starting = {actor.is_ready.remote(): actor for actor in (self._make() for _ in range(count))}
        deadline = time.monotonic() + _PATIENCE
        while starting and (not self._actors or time.monotonic() < deadline):
            for ref in ray.wait(list(starting), timeout=1.0)[0]:
                actor = starting.pop(ref)
                try:
                    ray.get(ref)
                    self._actors.append(actor)
                except _LOST:
                    pass
        for actor in starting.values():
            ray.kill(actor)
        if not self._actors:
            raise WorkerLost("no worker could start")
        if len(self._actors) < count:
            self.watch("note", f"{len(self._actors)} of {count} workers have started; the run goes on with these", 0)

    def workers(self) -> int:
        return len(self._actors)

    def watch(self, stage: str, done: Any, total: int) -> None:
        """Is told of progress; tasks are named after the stage."""
        if stage != "note":
            self._stage = stage
        if self._callback is not None:
            self._callback(stage, done, total)

    def tasks(self, messages: list[bytes]) -> Iterator[int]:
        """Hand tasks to whoever is free. A task whose worker is lost goes to another."""
        waiting = list(range(len(messages)))[::-1]
        replies: list[bytes | None] = [None] * len(messages)
        running: dict[Any, tuple[int, Any]] = {}
        losses, done = 0, 0
        free = list(self._actors)
        starting: dict[Any, Any] = {}
        while done < len(messages):
            while waiting and free:
                at, actor = waiting.pop(), free.pop()
                running[actor.task.options(name=f"a2lp {self._stage}").remote(messages[at])] = (at, actor)
            if not running and not starting:
                self._begin(1)
                free = list(self._actors)
                continue
            ready, _ = ray.wait([*running, *starting], timeout=1.0)
            for ref in ready:
                if ref in starting:
                    actor = starting.pop(ref)
                    try:
                        ray.get(ref)
                        self._actors.append(actor)
                        free.append(actor)
                    except _LOST:
                        pass
                    continue
                at, actor = running.pop(ref)
                try:
                    replies[at] = ray.get(ref)
                    done += 1
                    free.append(actor)
                except _LOST as error:
                    losses += 1
                    if losses > 20 + 2 * len(self._actors):
                        raise WorkerLost(f"{losses} workers were lost: {error}") from None
                    self.watch("note", f"a worker was lost ({type(error).__name__}); its task begins again", 0)
                    waiting.append(at)
                    self._actors.remove(actor)
                    replacement = self._make()
                    starting[replacement.is_ready.remote()] = replacement
                except ray.exceptions.RayTaskError as error:
                    raise error.as_instanceof_cause() from None
            yield done
        # There was no room for these.
        for actor in starting.values():
            ray.kill(actor)
        self._replies = [reply for reply in replies if reply is not None]

    def replies(self) -> list[bytes]:
        return self._replies

    def start(self, messages: list[bytes]) -> list[bytes]:
        return self._send(messages, [], True)

    def step(self, message: bytes, wants_replies: bool) -> list[bytes]:
        return self._send([message] * len(self._actors), self._parcels, wants_replies)

    def _send(self, messages: list[bytes], parcels: list[list[Any]], wants_replies: bool) -> list[bytes]:
        count = len(self._actors)
        sent = []
        for at, (actor, message) in enumerate(zip(self._actors, messages)):
            own = [from_worker[at] for from_worker in parcels]
            sent.append(actor.step.options(name=f"a2lp {self._stage}", num_returns=1 + count).remote(message, *own))
        self._parcels = [list(refs[1:]) for refs in sent]
        if not wants_replies:
            return []
        try:
            return ray.get([refs[0] for refs in sent])
        except _LOST as error:
            raise WorkerLost(type(error).__name__) from None
        except ray.exceptions.RayTaskError as error:
            cause = error.as_instanceof_cause()
            # A parcel that never came is the loss of its sender.
            if isinstance(error.cause, _LOST) or isinstance(cause, _LOST):
                raise WorkerLost(type(error.cause).__name__) from None
            raise cause from None

    def renew(self) -> None:
        """Begin again with new workers, as many as the cluster has room for now."""
        self.close()
        self._parcels = []
        time.sleep(0.5)
        self._begin(max(1, min(self._wanted, sum(_nodes(self._cpus)))))

    def close(self) -> None:
        for actor in self._actors:
            ray.kill(actor)
        self._actors = []


# Where input, output and work are.


class _Place:
    """Input and output of a run."""

    source_rows: list[int]
    target_rows: list[int]
    columns: int
    labels: list[str]
    fingerprint: str
    outputs: list[str]

    def work(self) -> Any:
        """The storage for the driver."""
        raise NotImplementedError

    def worker_spec(self) -> tuple[Any, Any]:
        """Storage and parts for workers, or functions that make them there."""
        raise NotImplementedError

    def has_job(self) -> bool:
        raise NotImplementedError

    def refuse_existing(self) -> None:
        raise NotImplementedError

    def remove_work(self) -> None:
        raise NotImplementedError

    def write_text(self, name: str, text: str) -> None:
        raise NotImplementedError


class _Local(_Place):
    """Files that every node sees under the same path."""

    def __init__(self, source: list[str], target: list[str], out: str, names: tuple[str | None, str | None, str | None]) -> None:
        opened = _native.open_shards(source, target, names)
        self._sources, self._targets, self.source_rows, self.target_rows, self.columns, self.labels, self.fingerprint = opened
        self._set(out, names)

    @classmethod
    def opened(cls, sources: list[str], targets: list[str], out: str, names: tuple[str | None, str | None, str | None]) -> _Local:
        place = cls.__new__(cls)
        place._sources, place._targets = sources, targets
        place._set(out, names)
        return place

    def _set(self, out: str, names: tuple[str | None, str | None, str | None]) -> None:
        self._out, self._names = os.path.abspath(out), names
        self._sources = [os.path.abspath(path) for path in self._sources]
        self._targets = [os.path.abspath(path) for path in self._targets]
        self.outputs = _native.labels_names(self._targets)

    def work(self) -> str:
        return os.path.join(self._out, _WORK)

    def worker_spec(self) -> tuple[Any, Any]:
        return self.work(), (self._sources, self._targets, self._out, self._names)

    def has_job(self) -> bool:
        return os.path.exists(os.path.join(self.work(), "job.json"))

    def refuse_existing(self) -> None:
        for name in [*self.outputs, _RECORD]:
            path = os.path.join(self._out, name)
            if os.path.exists(path):
                raise FileExistsError(f"{path} exists already; force=True replaces it")

    def remove_work(self) -> None:
        shutil.rmtree(self.work())

    def write_text(self, name: str, text: str) -> None:
        path = os.path.join(self._out, name)
        with tempfile.NamedTemporaryFile("w", dir=self._out, delete=False) as file:
            file.write(text)
        os.replace(file.name, path)


class _Remote(_Place):
    """Parquet files and results behind pyarrow's file systems."""

    def __init__(
        self, source: list[Any], target: list[Any], out: str, names: tuple[str | None, str | None, str | None], filesystem: Any
    ) -> None:
        self._fs, self._out = _filesystem(out, filesystem)
        self._sources = [file for path in source for file in _parquet_files(path, filesystem)]
        self._targets = [file for path in target for file in _parquet_files(path, filesystem)]
        self._names = names
        source_fs, target_fs = (_filesystem(paths[0], filesystem)[0] for paths in (source, target))
        self._parts = _ParquetParts(source_fs, target_fs, self._fs, self._sources, self._targets, self._out, names)
        self.columns, self.source_rows, self.target_rows = self._parts.shape()
        self.labels = self._parts.labels()
        self.fingerprint = self._parts.fingerprint()
        self.outputs = self._parts.outputs

    def work(self) -> _RemoteStorage:
        return _RemoteStorage(self._fs, f"{self._out}/{_WORK}")

    def worker_spec(self) -> tuple[Any, Any]:
        fs, root, parts = self._fs, f"{self._out}/{_WORK}", self._parts
        return lambda: _RemoteStorage(fs, root), lambda: parts

    def has_job(self) -> bool:
        return self.work().length("job.json") is not None

    def refuse_existing(self) -> None:
        import pyarrow.fs as fs

        for name in [*self.outputs, _RECORD]:
            path = f"{self._out}/{name}"
            if self._fs.get_file_info(path).type != fs.FileType.NotFound:
                raise FileExistsError(f"{path} exists already; force=True replaces it")

    def remove_work(self) -> None:
        self._fs.delete_dir(f"{self._out}/{_WORK}")

    def write_text(self, name: str, text: str) -> None:
        with self._fs.open_output_stream(f"{self._out}/{name}") as file:
            file.write(text.encode())


class _RemoteStorage:
    """Results behind a file system of pyarrow. What is read once is kept on this machine: results do not change."""

    def __init__(self, fs: Any, root: str) -> None:
        self._fs, self._root = fs, root
        self._folder = tempfile.TemporaryDirectory(prefix="a2lp-cache-")
        self._files: dict[str, Any] = {}

    def _path(self, name: str) -> str:
        return f"{self._root}/{name}"

    def length(self, name: str) -> int | None:
        import pyarrow.fs as fs

        info = self._fs.get_file_info(self._path(name))
        return info.size if info.type == fs.FileType.File else None

    def read(self, name: str, offset: int, length: int) -> bytes:
        if name not in self._files:
            local = os.path.join(self._folder.name, re.sub(r"\W", "-", name))
            partial = f"{local}.{os.getpid()}.{time.monotonic_ns()}"
            with self._fs.open_input_stream(self._path(name)) as stream, open(partial, "wb") as file:
                while block := stream.read(1 << 22):
                    file.write(block)
            os.replace(partial, local)
            self._files[name] = os.open(local, os.O_RDONLY)
        return os.pread(self._files[name], length, offset)

    def write(self, name: str, data: bytes) -> None:
        path = self._path(name)
        self._fs.create_dir(path.rsplit("/", 1)[0], recursive=True)
        # Object stores show an object when it is complete; file systems need a second name.
        if getattr(self._fs, "type_name", "") in ("s3", "gcs", "abfs"):
            with self._fs.open_output_stream(path) as file:
                file.write(data)
        else:
            partial = f"{path}.{os.getpid()}.part"
            with self._fs.open_output_stream(partial) as file:
                file.write(data)
            self._fs.move(partial, path)

    def remove(self, name: str) -> None:
        if self.length(name) is not None:
            self._fs.delete_file(self._path(name))
        if name in self._files:
            os.close(self._files.pop(name))


class _ParquetParts:
    """Parquet files as the parts of a run."""

    def __init__(
        self,
        source_fs: Any,
        target_fs: Any,
        out_fs: Any,
        sources: list[str],
        targets: list[str],
        out: str,
        names: tuple[str | None, str | None, str | None],
    ) -> None:
        self._files = [(source_fs, path) for path in sources] + [(target_fs, path) for path in targets]
        self._sources, self._out_fs, self._out = len(sources), out_fs, out
        self._features, self._labels, self._ids = names
        self.outputs = _native.labels_names(targets)

    def _open(self, part: int) -> Any:
        import pyarrow.parquet as pq

        fs, path = self._files[part]
        return pq.ParquetFile(fs.open_input_file(path), pre_buffer=True)

    def _feature_column(self, schema: Any) -> str:
        import pyarrow.types as types

        if self._features is not None:
            return self._features
        lists = [field.name for field in schema if types.is_list(field.type) or types.is_fixed_size_list(field.type)]
        if len(lists) != 1:
            raise ValueError(f"{len(lists)} columns hold vectors ({', '.join(lists)}); name the features with feature_column")
        return lists[0]

    def shape(self) -> tuple[int, list[int], list[int]]:
        rows, widths = [], set()
        for part in range(len(self._files)):
            file = self._open(part)
            rows.append(file.metadata.num_rows)
            for block in self.read(part):
                widths.add(block.shape[1])
                break
        if len(widths) != 1:
            raise ValueError(f"features have {sorted(widths)} columns; all files need features of the same extractor")
        return widths.pop(), rows[: self._sources], rows[self._sources :]

    def _column(self, part: int, given: str | None, usual: Sequence[str]) -> list[str] | None:
        file = self._open(part)
        have = file.schema_arrow.names
        name = given if given is not None else next((name for name in usual if name in have), None)
        if name is None:
            return None
        if name not in have:
            raise ValueError(f"{self._files[part][1]}: no column {name!r}; it has {', '.join(have)}")
        return [str(value) for value in file.read(columns=[name]).column(0).to_pylist()]

    def labels(self) -> list[str]:
        found = []
        for part in range(self._sources):
            column = self._column(part, self._labels, ("labels", "label", "class"))
            if column is None:
                raise ValueError(f"{self._files[part][1]} holds no labels; name their column with label_column")
            found += column
        return found

    def ids(self, part: int) -> list[str] | None:
        given = self._ids if part >= self._sources else None
        return self._column(part, given, ("ids", "id", "path", "filename"))

    def fingerprint(self) -> str:
        about = [fs.get_file_info(path) for fs, path in self._files]
        return "\n".join(f"{info.path} {info.size} {info.mtime_ns}" for info in about)

    def read(self, part: int) -> Iterator[np.ndarray]:
        file = self._open(part)
        name = self._feature_column(file.schema_arrow)
        for batch in file.iter_batches(batch_size=1 << 14, columns=[name]):
            column = batch.column(0)
            if column.null_count:
                raise ValueError(f"{self._files[part][1]}: {column.null_count} rows have no features")
            if len(column) == 0:
                continue
            values = column.flatten().to_numpy(zero_copy_only=False).astype(np.float32, copy=False)
            if values.size % len(column):
                raise ValueError(f"{self._files[part][1]}: rows of different lengths")
            yield np.ascontiguousarray(values.reshape(len(column), -1))

    def write(self, part: int, path: str) -> None:
        name = f"{self._out}/{self.outputs[part - self._sources]}"
        with open(path, "rb") as file, self._out_fs.open_output_stream(name) as stream:
            shutil.copyfileobj(file, stream, 1 << 22)


def _listed(paths: _Paths) -> list[Any]:
    return [paths] if isinstance(paths, (str, os.PathLike)) else list(paths)


def _is_uri(path: Any) -> bool:
    return isinstance(path, str) and re.match(r"[a-z][a-z0-9+.-]+://", path) is not None


def _filesystem(path: Any, given: Any) -> tuple[Any, str]:
    import pyarrow.fs as fs

    if given is not None:
        text = os.fspath(path)
        return given, text.split("://", 1)[-1].rstrip("/")
    opened, inner = fs.FileSystem.from_uri(path if _is_uri(path) else os.path.abspath(path))
    return opened, inner.rstrip("/")


def _parquet_files(path: Any, given: Any) -> list[str]:
    import pyarrow.fs as fs

    opened, inner = _filesystem(path, given)
    info = opened.get_file_info(inner)
    if info.type == fs.FileType.File:
        return [inner]
    found = opened.get_file_info(fs.FileSelector(inner, recursive=True, allow_not_found=True))
    hidden = re.compile(r"/[._]")
    shown = [file for file in found if file.is_file and not hidden.search(file.path[len(inner) :])]
    files = sorted(file.path for file in shown if file.extension in ("parquet", "pq"))
    if not files:
        raise FileNotFoundError(f"{path}: no Parquet files are there")
    return files


def _bytes(size: str | int) -> int:
    if isinstance(size, int):
        return size
    match = re.fullmatch(r"\s*([\d.]+)\s*([kmgt]?)i?b?\s*", size, re.IGNORECASE)
    if match is None:
        raise ValueError(f"{size!r} is no size; write '8G', '500M' or a number of bytes")
    return int(float(match[1]) * 1024 ** " kmgt".index(match[2].lower() or " "))


_WORDS: Mapping[str, str] = {
    "read": "reading",
    "group": "grouping",
    "gather": "putting in order",
    "search": "finding neighbours",
    "join": "joining edges",
    "rounds": "propagating",
    "write": "writing",
}


class _Bar:
    """A line on standard error for every stage that takes longer than a second."""

    def __init__(self) -> None:
        self._stage, self._began, self._shown = "", 0.0, False

    def __call__(self, stage: str, done: Any, total: int) -> None:
        if stage == "note":
            self._end()
            print(f"note: {done}", file=sys.stderr)
            return
        if stage != self._stage:
            self._end()
            self._stage, self._began = stage, time.monotonic()
        elapsed = time.monotonic() - self._began
        if elapsed > 1 and sys.stderr.isatty():
            left = f", {elapsed / done * (total - done):.0f} s left" if done else ""
            print(f"\r{_WORDS.get(stage, stage):<18} {done} of {total}{left}    ", end="", file=sys.stderr)
            self._shown = True

    def _end(self) -> None:
        if self._shown:
            print(file=sys.stderr)
            self._shown = False
