//! Runs on shards, led from here and done by workers that Python brings messages to.

use crate::{exception, json, settings};
use a2lp::Labels;
use a2lp_data::{FeatureFile, FieldNames};
use a2lp_shards::{
    Driver, Engine, Folder, Input, Job, LocalParts, Machines, PartLabels, Parts, Plan, ShardError, Sink,
    Stage, Storage, Watch, Worker,
};
use numpy::{PyReadonlyArray2, PyUntypedArrayMethods};
use pyo3::exceptions::{PyKeyboardInterrupt, PyOSError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyTuple};
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

pub(crate) fn shard_exception(error: ShardError) -> PyErr {
    match error {
        ShardError::Run(error) => exception(error),
        ShardError::Data(_) | ShardError::Storage { .. } => PyOSError::new_err(error.to_string()),
        ShardError::Lost(_) => PyRuntimeError::new_err(error.to_string()),
        other => PyValueError::new_err(other.to_string()),
    }
}

/// An exception of Python as an error of ours. A class named `WorkerLost` means that others can go on.
fn failed(py: Python<'_>, error: PyErr) -> ShardError {
    if error.is_instance_of::<PyKeyboardInterrupt>(py) {
        return a2lp::Error::Cancelled.into();
    }
    match error.get_type(py).name().is_ok_and(|name| name == "WorkerLost") {
        true => ShardError::Lost(error.value(py).to_string()),
        false => ShardError::Broken(error.to_string()),
    }
}

/// Calls a method of a Python object.
fn call(
    object: &Py<PyAny>,
    method: &str,
    arguments: impl for<'py> FnOnce(Python<'py>) -> PyResult<Bound<'py, PyTuple>>,
) -> Result<Py<PyAny>, ShardError> {
    Python::attach(|py| {
        let answer = arguments(py).and_then(|arguments| object.bind(py).call_method1(method, arguments));
        answer.map(Bound::unbind).map_err(|error| failed(py, error))
    })
}

/// What an object of Python says.
fn read<T: for<'a, 'py> FromPyObject<'a, 'py>>(object: &Py<PyAny>) -> Result<T, ShardError> {
    Python::attach(|py| object.extract::<T>(py).map_err(|error| failed(py, error.into())))
}

/// A storage that Python has: `length`, `read`, `write` and `remove`.
struct PythonStorage(Py<PyAny>);

impl Storage for PythonStorage {
    fn length(&self, name: &str) -> Result<Option<u64>, ShardError> {
        read(&call(&self.0, "length", |py| (name,).into_pyobject(py))?)
    }

    fn read_into(&self, name: &str, offset: u64, bytes: &mut [u8]) -> Result<(), ShardError> {
        Python::attach(|py| {
            let read = self.0.bind(py).call_method1("read", (name, offset, bytes.len()));
            let read = read.map_err(|error| failed(py, error))?;
            let read: &[u8] = read.extract().map_err(|error| failed(py, PyErr::from(error)))?;
            if read.len() != bytes.len() {
                let (found, wanted) = (read.len(), bytes.len());
                return Err(ShardError::Broken(format!("{name}: {found} bytes where {wanted} are needed")));
            }
            bytes.copy_from_slice(read);
            Ok(())
        })
    }

    fn write(&self, name: &str, parts: &[&[u8]]) -> Result<(), ShardError> {
        call(&self.0, "write", |py| (name, PyBytes::new(py, &parts.concat())).into_pyobject(py)).map(drop)
    }

    fn remove(&self, name: &str) -> Result<(), ShardError> {
        call(&self.0, "remove", |py| (name,).into_pyobject(py)).map(drop)
    }
}

/// Parts that Python reads and writes: `read` gives arrays, `ids` those of a part, `write` takes a finished file.
struct PythonParts(Py<PyAny>);

impl Parts for PythonParts {
    fn read(&self, part: usize, sink: Sink<'_>) -> Result<(), ShardError> {
        let arrays = call(&self.0, "read", |py| (part,).into_pyobject(py))?;
        loop {
            let values = Python::attach(|py| -> Result<Option<Vec<f32>>, ShardError> {
                let next = arrays.bind(py).call_method0("__next__");
                match next {
                    Err(end) if end.is_instance_of::<pyo3::exceptions::PyStopIteration>(py) => Ok(None),
                    other => {
                        let array = other.map_err(|error| failed(py, error))?;
                        let array: PyReadonlyArray2<'_, f32> =
                            array.extract().map_err(|error| failed(py, error))?;
                        let values = array.as_slice().map_err(|error| failed(py, error.into()))?;
                        debug_assert_eq!(array.shape().len(), 2);
                        Ok(Some(values.to_vec()))
                    }
                }
            })?;
            match values {
                Some(values) => sink(&values)?,
                None => return Ok(()),
            }
        }
    }

    fn write(&self, part: usize, labels: &PartLabels<'_>) -> Result<(), ShardError> {
        let ids: Option<Vec<String>> = read(&call(&self.0, "ids", |py| (part,).into_pyobject(py))?)?;
        let folder = tempfile::tempdir().map_err(|error| ShardError::Broken(error.to_string()))?;
        let path = folder.path().join("labels.parquet");
        labels.write(ids.as_deref(), &path)?;
        call(&self.0, "write", |py| (part, path.to_string_lossy().as_ref()).into_pyobject(py)).map(drop)
    }
}

/// Files on this machine: source, target, where labels go, and the names of features, labels and ids.
type Files = (Vec<PathBuf>, Vec<PathBuf>, PathBuf, (Option<String>, Option<String>, Option<String>));

fn local_parts((sources, targets, out, names): Files) -> LocalParts {
    LocalParts::new(&sources, &targets, &out, field_names(names))
}

fn field_names((features, labels, ids): (Option<String>, Option<String>, Option<String>)) -> FieldNames {
    FieldNames { features, labels, ids }
}

/// A storage: the path of a folder, or an object.
fn storage(work: &Bound<'_, PyAny>) -> PyResult<Arc<dyn Storage>> {
    match work.extract::<PathBuf>() {
        Ok(folder) => Ok(Arc::new(Folder::new(&folder).map_err(shard_exception)?)),
        Err(_) => Ok(Arc::new(PythonStorage(work.clone().unbind()))),
    }
}

fn read_job(job: &str) -> PyResult<Job> {
    serde_json::from_str(job).map_err(|error| PyValueError::new_err(error.to_string()))
}

/// A worker of a run on shards.
#[pyclass]
pub(crate) struct ShardWorker(Mutex<Worker>);

#[pymethods]
impl ShardWorker {
    #[new]
    fn new(
        py: Python<'_>,
        work: &Bound<'_, PyAny>,
        parts: &Bound<'_, PyAny>,
        threads: usize,
        scratch: Option<PathBuf>,
    ) -> PyResult<Self> {
        let storage = storage(work)?;
        let parts: Arc<dyn Parts> = match parts.extract::<Files>() {
            Ok(files) => Arc::new(local_parts(files)),
            Err(_) => Arc::new(PythonParts(parts.clone().unbind())),
        };
        let worker = py.detach(|| Worker::new(storage, parts, threads, scratch)).map_err(shard_exception)?;
        Ok(ShardWorker(Mutex::new(worker)))
    }

    /// Takes a message and parcels; returns the reply and a parcel for every worker.
    fn handle<'py>(
        &self,
        py: Python<'py>,
        message: &[u8],
        parcels: Vec<Vec<u8>>,
    ) -> PyResult<(Bound<'py, PyBytes>, Vec<Bound<'py, PyBytes>>)> {
        let (reply, sent) = py
            .detach(|| {
                let parcels: Vec<&[u8]> = parcels.iter().map(Vec::as_slice).collect();
                self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).handle(message, &parcels)
            })
            .map_err(shard_exception)?;
        Ok((PyBytes::new(py, &reply), sent.iter().map(|parcel| PyBytes::new(py, parcel)).collect()))
    }
}

/// Workers that Python has: `workers`, `tasks`, `step`, `start` and `renew`.
struct PythonEngine(Py<PyAny>);

impl Engine for PythonEngine {
    fn workers(&self) -> usize {
        let workers = call(&self.0, "workers", |py| Ok(PyTuple::empty(py)));
        workers.and_then(|workers| read(&workers)).unwrap_or(1)
    }

    fn tasks(
        &mut self,
        tasks: &[Vec<u8>],
        done: &mut dyn FnMut(usize) -> Result<(), ShardError>,
    ) -> Result<Vec<Vec<u8>>, ShardError> {
        let messages = |py: Python<'_>| -> Vec<Py<PyBytes>> {
            tasks.iter().map(|task| PyBytes::new(py, task).unbind()).collect()
        };
        // A generator: yields how many are done, then the replies are there.
        let running = call(&self.0, "tasks", |py| (messages(py),).into_pyobject(py))?;
        loop {
            let next = Python::attach(|py| {
                let next = running.bind(py).call_method0("__next__");
                match next {
                    Err(end) if end.is_instance_of::<pyo3::exceptions::PyStopIteration>(py) => Ok(None),
                    other => {
                        let count = other.and_then(|count| count.extract::<usize>());
                        count.map(Some).map_err(|error| failed(py, error))
                    }
                }
            })?;
            match next {
                Some(count) => done(count)?,
                None => break,
            }
        }
        read(&call(&self.0, "replies", |py| Ok(PyTuple::empty(py)))?)
    }

    fn step(&mut self, message: &[u8], wants_replies: bool) -> Result<Vec<Vec<u8>>, ShardError> {
        read(&call(&self.0, "step", |py| (PyBytes::new(py, message), wants_replies).into_pyobject(py))?)
    }

    fn start(&mut self, messages: &[Vec<u8>]) -> Result<Vec<Vec<u8>>, ShardError> {
        let all = |py: Python<'_>| -> Vec<Py<PyBytes>> {
            messages.iter().map(|message| PyBytes::new(py, message).unbind()).collect()
        };
        read(&call(&self.0, "start", |py| (all(py),).into_pyobject(py))?)
    }

    fn renew(&mut self) -> Result<(), ShardError> {
        call(&self.0, "renew", |py| Ok(PyTuple::empty(py))).map(drop)
    }
}

/// Passes progress and notes on to Python.
struct PythonWatch(Option<Py<PyAny>>);

impl PythonWatch {
    fn tell(
        &self,
        arguments: impl for<'py> FnOnce(Python<'py>) -> PyResult<Bound<'py, PyTuple>>,
    ) -> ControlFlow<()> {
        let Some(callback) = &self.0 else { return ControlFlow::Continue(()) };
        let told = Python::attach(|py| {
            py.check_signals()?;
            callback.bind(py).call1(arguments(py)?).map(drop)
        });
        if told.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    }
}

impl Watch for PythonWatch {
    fn progress(&self, stage: Stage, done: usize, total: usize) -> ControlFlow<()> {
        if done > total {
            return ControlFlow::Continue(());
        }
        self.tell(|py| (stage.as_str(), done, total).into_pyobject(py))
    }

    fn note(&self, text: &str) {
        // A note that cannot be told is no reason to stop.
        let _ = self.tell(|py| ("note", text, 0).into_pyobject(py));
    }
}

/// What files on this machine hold: their paths, the rows of each, the number of features, the labels of the source, and what
/// tells them from other files.
type Opened = (Vec<PathBuf>, Vec<PathBuf>, Vec<usize>, Vec<usize>, usize, Vec<String>, String);

/// Opens files or folders of source and target.
#[pyfunction]
pub(crate) fn open_shards(
    py: Python<'_>,
    sources: Vec<PathBuf>,
    targets: Vec<PathBuf>,
    names: (Option<String>, Option<String>, Option<String>),
) -> PyResult<Opened> {
    let names = field_names(names);
    let opened = py.detach(|| -> Result<Opened, ShardError> {
        let mut source = FeatureFile::open_set(&sources, &names)?;
        let target = FeatureFile::open_set(&targets, &names)?;
        if source.columns() != target.columns() {
            let (source_columns, target_columns) = (source.columns(), target.columns());
            return Err(a2lp::Error::Width { source_columns, target_columns }.into());
        }
        let class_names = source.class_names()?;
        let Some(labels) = source.labels()? else {
            return Err(ShardError::Broken(
                "the source holds no labels; name their column with label_column".into(),
            ));
        };
        let labels = labels
            .into_class_names(class_names.as_deref())
            .map_err(|problem| ShardError::Broken(format!("{}: {problem}", source.path().display())))?;
        let paths = |file: &FeatureFile| file.paths().map(PathBuf::from).collect::<Vec<_>>();
        let (sources, targets) = (paths(&source), paths(&target));
        let parts = LocalParts::new(&sources, &targets, std::path::Path::new(""), names);
        let (source_rows, target_rows) = (source.part_rows(), target.part_rows());
        Ok((sources, targets, source_rows, target_rows, source.columns(), labels, parts.fingerprint()))
    });
    opened.map_err(shard_exception)
}

/// A job, as text, and the numbers of the classes of all source rows.
#[pyfunction]
pub(crate) fn shard_job(
    source_rows: Vec<usize>,
    target_rows: Vec<usize>,
    columns: usize,
    labels: Vec<String>,
    fingerprint: String,
    given: &Bound<'_, PyDict>,
    probabilities: bool,
) -> PyResult<(String, Vec<u32>)> {
    let parameters = settings::read(given)?.check().map_err(exception)?;
    let labels = Labels::new(&labels);
    let input = Input {
        source_parts: &source_rows,
        target_parts: &target_rows,
        columns,
        labels: &labels,
        fingerprint,
    };
    let job = Job::new(&input, &parameters, probabilities).map_err(exception)?;
    Ok((json(&job)?, labels.ids().to_vec()))
}

/// What a job will take on so many workers, as text. `check`: workers that are too small are refused.
#[pyfunction]
pub(crate) fn shard_plan(
    job: &str,
    workers: usize,
    threads: usize,
    memory: u64,
    check: bool,
) -> PyResult<String> {
    let plan = Plan::new(&read_job(job)?, Machines { workers, threads, memory }).map_err(shard_exception)?;
    if check {
        plan.check().map_err(shard_exception)?;
    }
    json(&plan)
}

/// Puts a job into its storage, unless it is there already; tells whether it was.
#[pyfunction]
pub(crate) fn prepare_shards(work: &Bound<'_, PyAny>, job: &str, labels: Vec<u32>) -> PyResult<bool> {
    Driver::prepare(&*storage(work)?, &read_job(job)?, &labels).map_err(shard_exception)
}

/// Leads the run whose job is in the storage. Returns what came of it, as text.
#[pyfunction]
pub(crate) fn run_shards(
    py: Python<'_>,
    work: &Bound<'_, PyAny>,
    engine: Py<PyAny>,
    memory: u64,
    callback: Option<Py<PyAny>>,
) -> PyResult<String> {
    let storage = storage(work)?;
    let (mut engine, watch) = (PythonEngine(engine), PythonWatch(callback));
    let outcome = py.detach(|| Driver::new(storage, &mut engine, memory as usize, &watch)?.run());
    json(&outcome.map_err(shard_exception)?)
}

/// Names of the labels files of target parts.
#[pyfunction]
pub(crate) fn labels_names(targets: Vec<PathBuf>) -> Vec<String> {
    a2lp_shards::labels_names(&targets)
}

/// Lets the command line run on a cluster: the package knows how.
pub(crate) fn register_cluster() {
    a2lp_cli::set_cluster_runner(|run| {
        let a2lp_cli::ClusterRun { names, job, labels, out, .. } = run;
        let text = serde_json::to_string(job)?;
        let files = (&run.sources, &run.targets, out, (&names.features, &names.labels, &names.ids));
        let answer: PyResult<(String, String)> = Python::attach(|py| {
            let module = py.import("a2lp.ray")?;
            let options = PyDict::new(py);
            options.set_item("address", run.address)?;
            options.set_item("workers", run.workers)?;
            options.set_item("worker_memory", run.memory)?;
            options.set_item("worker_cpus", if run.threads > 0 { Some(run.threads) } else { None })?;
            options.set_item("force", run.force)?;
            module
                .getattr("_run_command")?
                .call((text, labels.ids().to_vec(), files), Some(&options))?
                .extract()
        });
        let (outcome, plan) = answer.map_err(|error| {
            Python::attach(|py| match error.is_instance_of::<PyKeyboardInterrupt>(py) {
                true => anyhow::anyhow!(
                    "interrupted; finished stages are kept in {}, the same command goes on from there",
                    out.join(".work").display()
                ),
                false => anyhow::anyhow!("{}", error.value(py)),
            })
        })?;
        Ok((serde_json::from_str(&outcome)?, serde_json::from_str(&plan)?))
    });
}
