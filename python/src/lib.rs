//! The Rust side of the Python package: arrays in, arrays out, the GIL released in between.
//!
//! What users see is made in Python (`python/a2lp`); here is one function per thing the crates can do.

#![warn(clippy::unwrap_used)]

mod predictor;
mod review;
mod settings;
mod shards;
mod watched;

use a2lp::evaluation::TargetTruth;
use a2lp::{
    Classes, Domains, Error, FeatureMatrix, Labelling, Labels, NeighbourGraph, PseudoLabels, SourceNodes,
    Stage,
};
use a2lp_data::Picture;
use a2lp_data::images::{Filter, resize};
use a2lp_report::record::Circumstances;
use a2lp_report::{Chapter, Layout, Run, RunRecord, Trace, Watcher};
use numpy::{
    PyArray1, PyArray2, PyArray3, PyArrayMethods, PyReadonlyArray1, PyReadonlyArray2, PyReadonlyArray3,
    PyUntypedArrayMethods,
};
use predictor::Predictor;
use pyo3::exceptions::{PyFileExistsError, PyKeyboardInterrupt, PyMemoryError, PyOSError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::OnceLock;
use std::time::Instant;
use watched::watched;

/// The extension module behind the package `a2lp`.
#[pymodule]
mod _native {
    #[pymodule_export]
    use super::review::{ReviewServer, start_review};
    #[pymodule_export]
    use super::shards::{
        ShardWorker, labels_names, open_shards, prepare_shards, run_shards, shard_job, shard_plan,
    };
    #[pymodule_export]
    use super::{
        _resize, Fitted, Predictor, check_settings, fit, main, neighbor_graph, parameters,
        weights_of_distances,
    };

    #[pymodule_init]
    fn init(module: &super::Bound<'_, super::PyModule>) -> super::PyResult<()> {
        super::PyModuleMethods::add(module, "__version__", env!("CARGO_PKG_VERSION"))
    }
}

/// An error of the crates as the exception a Python user expects, in Python's spelling.
fn exception(error: Error) -> PyErr {
    match error {
        Error::Cancelled => PyKeyboardInterrupt::new_err("interrupted"),
        Error::Memory { .. } => PyMemoryError::new_err(error.to_string()),
        Error::Parameter { name, value, rule } => {
            PyValueError::new_err(format!("{} = {value}: {rule}", settings::python_name(name)))
        }
        other => PyValueError::new_err(other.to_string()),
    }
}

fn json(value: &impl serde::Serialize) -> PyResult<String> {
    serde_json::to_string(value).map_err(|error| PyValueError::new_err(error.to_string()))
}

type Float2<'py> = PyReadonlyArray2<'py, f32>;

/// Rows of several arrays, one below the other, in a new order.
fn gather(parts: &[&[f32]], columns: usize, order: &[i64]) -> Result<FeatureMatrix, Error> {
    let mut values: Vec<f32> = Vec::new();
    let wanted = order.len() * columns;
    if values.try_reserve_exact(wanted).is_err() {
        let advice = "fit fewer rows";
        return Err(Error::Memory { what: "features", bytes: 4 * wanted as u128, advice });
    }
    for &row in order {
        let mut at = row as usize * columns;
        for part in parts {
            if at < part.len() {
                values.extend_from_slice(&part[at..][..columns]);
                break;
            }
            at -= part.len();
        }
    }
    FeatureMatrix::new(order.len(), columns, values)
}

/// A graph in the order of the rows of X, brought into the order of the nodes.
fn reorder(graph: NeighbourGraph, order: &[i64]) -> NeighbourGraph {
    let mut place = vec![0u32; order.len()];
    order.iter().enumerate().for_each(|(node, &row)| place[row as usize] = node as u32);
    let mut starts = vec![0];
    let (mut columns, mut weights) = (Vec::new(), Vec::new());
    for &row in order {
        let range = graph.starts[row as usize]..graph.starts[row as usize + 1];
        let mut entries: Vec<(u32, f32)> = graph.columns[range.clone()]
            .iter()
            .zip(&graph.weights[range])
            // A column that is too large is refused with the rest of the checks.
            .map(|(&column, &weight)| (place.get(column as usize).copied().unwrap_or(u32::MAX), weight))
            .collect();
        entries.sort_unstable_by_key(|entry| entry.0);
        columns.extend(entries.iter().map(|entry| entry.0));
        weights.extend(entries.iter().map(|entry| entry.1));
        starts.push(columns.len());
    }
    NeighbourGraph { starts, columns, weights }
}

type GraphArrays<'py> = (PyReadonlyArray1<'py, i64>, PyReadonlyArray1<'py, i64>, PyReadonlyArray1<'py, f32>);

fn read_graph(arrays: &GraphArrays<'_>, rows: usize) -> PyResult<NeighbourGraph> {
    let wrong = |message: &str| PyValueError::new_err(format!("the graph does not fit: {message}"));
    let starts: Vec<usize> = arrays
        .0
        .as_slice()?
        .iter()
        .map(|&s| usize::try_from(s).map_err(|_| wrong("a row starts before 0")))
        .collect::<PyResult<_>>()?;
    let columns: Vec<u32> = arrays
        .1
        .as_slice()?
        .iter()
        .map(|&c| u32::try_from(c).map_err(|_| wrong("a column is negative or too large")))
        .collect::<PyResult<_>>()?;
    let weights = arrays.2.as_slice()?.to_vec();
    let sound = starts.len() == rows + 1
        && starts.is_sorted()
        && starts.last() == Some(&columns.len())
        && weights.len() == columns.len();
    if !sound {
        return Err(wrong(&format!("{} row starts for {rows} rows", starts.len())));
    }
    Ok(NeighbourGraph { starts, columns, weights })
}

/// Every parameter: its name, its default as text, and what it is.
#[pyfunction]
fn parameters() -> Vec<(&'static str, String, &'static str)> {
    settings::table()
}

/// Checks settings without doing anything.
#[pyfunction]
fn check_settings(settings: &Bound<'_, PyDict>) -> PyResult<()> {
    settings::read(settings)?.check().map_err(exception).map(drop)
}

/// Labels the rows of `x`, which may come in several arrays, after the first `labels.len()` in `order`.
#[pyfunction]
#[pyo3(signature = (x, order, labels, classes, settings, graph=None, callback=None))]
#[allow(clippy::too_many_arguments)]
fn fit(
    py: Python<'_>,
    x: Vec<Float2<'_>>,
    order: PyReadonlyArray1<'_, i64>,
    labels: PyReadonlyArray1<'_, u32>,
    classes: Vec<String>,
    settings: &Bound<'_, PyDict>,
    graph: Option<GraphArrays<'_>>,
    callback: Option<Py<PyAny>>,
) -> PyResult<Fitted> {
    let started = Instant::now();
    let parameters = settings::read(settings)?.check().map_err(exception)?;
    let (order, ids) = (order.as_slice()?, labels.as_slice()?);
    let columns = x.first().map_or(0, |part| part.shape()[1]);
    let parts = x.iter().map(|part| part.as_slice()).collect::<Result<Vec<_>, _>>()?;
    let graph = graph.map(|arrays| read_graph(&arrays, order.len())).transpose()?;
    let result = watched(py, callback, |relay| {
        let features = gather(&parts, columns, order)?;
        let labels = Labels::from_ids(Classes::new(classes)?, ids.to_vec())?;
        let domains = Domains::stacked(features, ids.len(), labels)?;
        let watcher = Watcher::new(&domains, &parameters, None);
        // A report lays its map out when it is asked for, from the rows that the model keeps. Class centres take the place of
        // source rows there, so they are laid out while the rows are at hand.
        let layout = OnceLock::new();
        if parameters.source_nodes() == SourceNodes::Centres {
            layout.set(Layout::new(domains.features(), &parameters)?).ok();
        }
        let graph = graph.map(|graph| reorder(graph, order));
        let (labelling, model) =
            a2lp::Run::new(domains, &parameters).graph(graph).observe(&(&watcher, relay)).fit()?;
        Ok((labelling, model, watcher, layout))
    })?;
    let (labelling, model, watcher, layout) = result.map_err(exception)?;
    let model = Predictor { model, parameters };
    let total_secs = started.elapsed().as_secs_f64();
    Ok(Fitted { labelling, model: Py::new(py, model)?, watcher, layout, total_secs })
}

/// A finished run.
#[pyclass(frozen)]
struct Fitted {
    labelling: Labelling,
    model: Py<Predictor>,
    watcher: Watcher<'static>,
    /// Made for the first report.
    layout: OnceLock<Layout>,
    total_secs: f64,
}

#[pymethods]
impl Fitted {
    #[getter]
    fn model(&self, py: Python<'_>) -> Py<Predictor> {
        self.model.clone_ref(py)
    }

    /// (labels or -1, confidence, margin, status) of the target items.
    fn targets<'py>(&self, py: Python<'py>) -> Answers<'py> {
        answers(py, &self.labelling.pseudo_labels)
    }

    /// The vectors of the anchors, and (class, round, items) of each.
    fn anchors<'py>(&self, py: Python<'py>) -> PyResult<Anchors<'py>> {
        let anchors = &self.labelling.anchors;
        let columns = self.model.get().model.columns();
        let values: Vec<f32> = anchors.iter().flat_map(|anchor| anchor.vector.iter().copied()).collect();
        let about = anchors.iter().map(|anchor| (anchor.class, anchor.round, anchor.items)).collect();
        Ok((PyArray1::from_vec(py, values).reshape([anchors.len(), columns])?, about))
    }

    /// The rounds, as JSON.
    fn rounds(&self) -> PyResult<String> {
        json(&self.labelling.rounds)
    }

    /// How good the labels look, as JSON; null where that was not asked for.
    fn quality(&self) -> PyResult<String> {
        json(&self.labelling.quality)
    }

    /// The verdict of the guard, as JSON; null where it was not asked for.
    fn guard(&self) -> PyResult<String> {
        json(&self.labelling.guard)
    }

    /// The class mix that a consensus assumes, as JSON; null for the other methods.
    fn mix(&self) -> PyResult<String> {
        json(&self.labelling.mix)
    }

    /// What can be said about classes that the source lacks: the reach of the target items, which of them are unknown, and the
    /// verdict with its reasons and the groups of look-alikes as JSON. `None` where that was not looked for.
    fn unknown<'py>(&self, py: Python<'py>) -> PyResult<Option<Unknown<'py>>> {
        let Some(reach) = &self.labelling.reach else { return Ok(None) };
        let unknown: Vec<bool> = (0..reach.values.len()).map(|item| reach.is_unknown(item)).collect();
        let groups: Vec<&[usize]> = reach.groups.iter().map(|group| &group.items[..]).collect();
        let about = serde_json::json!({
            "verdict": reach.verdict,
            "message": reach.to_string(),
            "threshold": reach.threshold,
            "evidence": reach.evidence,
            "groups": groups,
        });
        Ok(Some((PyArray1::from_slice(py, &reach.values), PyArray1::from_vec(py, unknown), json(&about)?)))
    }

    /// Classes that unknown target items look most like, -1 for all others; `None` unless such items were flagged.
    fn nearest_labels<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyArray1<i64>>> {
        let nearest = self.labelling.nearest_labels.as_ref()?;
        Some(PyArray1::from_vec(py, nearest.iter().map(|label| label.map_or(-1, i64::from)).collect()))
    }

    /// The method that was used, and why.
    fn method(&self) -> String {
        self.labelling.method.to_string()
    }

    /// Views of a consensus that gave each target item its label; `None` for the other methods.
    fn votes<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyArray1<i64>>> {
        let votes = self.labelling.votes()?;
        Some(PyArray1::from_vec(py, votes.into_iter().map(|votes| votes as i64).collect()))
    }

    /// How neighbours were found, as JSON.
    fn graph(&self) -> PyResult<String> {
        json(&self.labelling.graph)
    }

    #[getter]
    fn converged(&self) -> bool {
        self.labelling.converged()
    }

    #[getter]
    fn neighbours_secs(&self) -> f64 {
        self.labelling.neighbours_secs
    }

    fn warnings(&self) -> Vec<String> {
        self.labelling.warnings().iter().map(ToString::to_string).collect()
    }

    /// Writes the page of this run.
    #[pyo3(signature = (path, title, force, tsne, ids=None, truth=None))]
    #[allow(clippy::too_many_arguments)]
    fn report(
        &self,
        py: Python<'_>,
        path: PathBuf,
        title: String,
        force: bool,
        tsne: bool,
        ids: Option<Vec<String>>,
        truth: Option<Vec<String>>,
    ) -> PyResult<()> {
        let items = self.labelling.pseudo_labels.len();
        for (what, given) in [("ids", &ids), ("truth", &truth)] {
            if let Some(given) = given.as_ref().filter(|given| given.len() != items) {
                let message =
                    format!("{} {what} for {items} unlabelled rows; one per row is needed", given.len());
                return Err(PyValueError::new_err(message));
            }
        }
        let truth = truth.map(|names| TargetTruth::new(&self.labelling.classes, &names));
        let circumstances = Circumstances {
            out: path.clone(),
            max_unreached: 1.0,
            total_secs: self.total_secs,
            ..Circumstances::default()
        };
        let parameters = &self.model.get().parameters;
        let record = RunRecord::new(&self.labelling, parameters, truth.as_ref(), None, circumstances);
        let record = record.map_err(exception)?;
        let mut trace = self.watcher.trace(self.layout()?, &self.labelling, truth.as_ref(), ids.as_deref());
        if tsne {
            self.lay_out(py, &mut trace)?;
        }
        let page = a2lp_report::page(&[Chapter::Run(Run { title, record, trace: Some(trace) })]);
        a2lp_data::write_atomically(&path, force, |file| file.write_all(page.as_bytes())).map_err(|error| {
            match error.problem {
                a2lp_data::Problem::Exists => PyFileExistsError::new_err(format!(
                    "{} exists already; pass force=True to replace it",
                    path.display()
                )),
                _ => PyOSError::new_err(error.to_string()),
            }
        })
    }
}

impl Fitted {
    fn layout(&self) -> PyResult<&Layout> {
        if let Some(layout) = self.layout.get() {
            return Ok(layout);
        }
        let Predictor { model, parameters } = self.model.get();
        let layout = Layout::new(model.base(), parameters).map_err(exception)?;
        Ok(self.layout.get_or_init(|| layout))
    }

    /// Lays the map out by t-SNE, from the rows that the model keeps.
    fn lay_out(&self, py: Python<'_>, trace: &mut Trace) -> PyResult<()> {
        let Predictor { model, parameters } = self.model.get();
        let map = &mut trace.map;
        if model.first_target() != map.source_items {
            return Err(PyValueError::new_err(
                "map = 'tsne': class centres have no rows to lay out; use map='pca'",
            ));
        }
        let sources = map.rows[..map.source_points].iter().map(|&row| i64::from(row));
        let targets =
            map.rows[map.source_points..].iter().map(|&row| i64::from(row) + map.source_items as i64);
        let rows: Vec<i64> = sources.chain(targets).collect();
        let features = gather(&[model.base().values()], model.columns(), &rows).map_err(exception)?;
        let laid = watched(py, None, |relay| {
            a2lp_report::lay_out(map, features, parameters.threads(), relay, &|done, total| {
                relay.progress(Stage::Rounds, done, total)
            })
        })?;
        laid.map_err(exception)
    }
}

type Unknown<'py> = (Bound<'py, PyArray1<f32>>, Bound<'py, PyArray1<bool>>, String);
type Anchors<'py> = (Bound<'py, PyArray2<f32>>, Vec<(u32, usize, usize)>);
type Answers<'py> =
    (Bound<'py, PyArray1<i64>>, Bound<'py, PyArray1<f32>>, Bound<'py, PyArray1<f32>>, Vec<&'static str>);

fn answers<'py>(py: Python<'py>, pseudo: &PseudoLabels) -> Answers<'py> {
    let labels = pseudo.labels().iter().map(|label| label.map_or(-1, i64::from)).collect();
    (
        PyArray1::from_vec(py, labels),
        PyArray1::from_slice(py, pseudo.confidence()),
        PyArray1::from_slice(py, pseudo.margin()),
        pseudo.status().iter().map(|status| status.as_str()).collect(),
    )
}

type Csr<'py> =
    (Bound<'py, PyArray1<i64>>, Bound<'py, PyArray1<i64>>, Bound<'py, PyArray1<f32>>, String, Option<String>);

/// Row starts, columns and similarities of the neighbour graph, how it was found as JSON, and a warning.
#[pyfunction]
#[pyo3(signature = (x, settings, symmetric, callback=None))]
fn neighbor_graph<'py>(
    py: Python<'py>,
    x: Float2<'py>,
    settings: &Bound<'_, PyDict>,
    symmetric: bool,
    callback: Option<Py<PyAny>>,
) -> PyResult<Csr<'py>> {
    let parameters = settings::read(settings)?.check().map_err(exception)?;
    let (rows, columns) = (x.shape()[0], x.shape()[1]);
    let values = x.as_slice()?;
    let found = watched(py, callback, |relay| {
        let features = FeatureMatrix::new(rows, columns, values.to_vec())?;
        a2lp::neighbour_graph(features, &parameters, symmetric, relay)
    })?;
    let found = found.map_err(exception)?;
    let whole = |values: &mut dyn Iterator<Item = i64>| PyArray1::from_vec(py, values.collect());
    Ok((
        whole(&mut found.graph.starts.iter().map(|&s| s as i64)),
        whole(&mut found.graph.columns.iter().map(|&c| i64::from(c))),
        PyArray1::from_slice(py, &found.graph.weights),
        json(&found.report)?,
        found.warning().map(|warning| warning.to_string()),
    ))
}

/// The edge weights of pairs at these distances.
#[pyfunction]
fn weights_of_distances<'py>(
    py: Python<'py>,
    distances: PyReadonlyArray1<'py, f64>,
    settings: &Bound<'_, PyDict>,
) -> PyResult<Bound<'py, PyArray1<f32>>> {
    let similarity = settings::read(settings)?.check().map_err(exception)?.similarity();
    let weight = |&distance: &f64| {
        similarity.weight_of_distance(distance).ok_or_else(|| {
            let word = similarity.as_str();
            PyValueError::new_err(format!(
                "metric = {word:?}: distances cannot be turned into it; pass similarities"
            ))
        })
    };
    let weights = distances.as_slice()?.iter().map(weight).collect::<PyResult<Vec<f32>>>()?;
    Ok(PyArray1::from_vec(py, weights))
}

/// An RGB image at another size, as `extract` makes it; for comparison with Pillow.
#[pyfunction]
fn _resize<'py>(
    py: Python<'py>,
    image: PyReadonlyArray3<'py, u8>,
    width: usize,
    height: usize,
    bicubic: bool,
) -> PyResult<Bound<'py, PyArray3<u8>>> {
    let (rows, columns) = (image.shape()[0], image.shape()[1]);
    let picture = Picture { width: columns, height: rows, channels: 3, pixels: image.as_slice()?.to_vec() };
    let filter = if bicubic { Filter::Bicubic } else { Filter::Bilinear };
    PyArray1::from_vec(py, resize(&picture, width, height, filter).pixels).reshape([height, width, 3])
}

/// The command line; gives its exit code.
#[pyfunction]
fn main(py: Python<'_>, args: Vec<OsString>) -> u8 {
    shards::register_cluster();
    py.detach(|| a2lp_cli::main(args))
}
