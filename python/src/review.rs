//! A review of a result: the page served beside Python, and the same without a page.

use crate::watched::watched;
use crate::{Float2, exception, gather, json, settings};
use a2lp::{Classes, Domains, Labels};
use a2lp_data::Picture;
use a2lp_report::{Layout, Watcher};
use a2lp_review::{
    Event, FullRun, Journal, Looks, Origin, Pictures, Review, ReviewError, Seed, Server, Serving, Session,
    Task, fingerprint,
};
use numpy::{PyArray1, PyReadonlyArray1, PyReadonlyArrayDyn, PyUntypedArrayMethods};
use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

fn refused(error: ReviewError) -> PyErr {
    match error {
        ReviewError::Method(error) => exception(error),
        ReviewError::Serve(error) => PyOSError::new_err(error.to_string()),
        ReviewError::Data(error) => PyOSError::new_err(error.to_string()),
        other => PyValueError::new_err(other.to_string()),
    }
}

/// What the items look like, as Python has it: paths of image files, or an array of 8-bit images.
#[derive(FromPyObject)]
pub(crate) enum Images<'py> {
    Array(PyReadonlyArrayDyn<'py, u8>),
    Paths(Vec<Option<PathBuf>>),
}

impl Images<'_> {
    fn read(self) -> PyResult<Pictures> {
        let array = match self {
            Images::Paths(paths) => return Ok(Pictures::Files(paths)),
            Images::Array(array) => array,
        };
        let (height, width, channels) = match array.shape() {
            [_, height, width] => (*height, *width, 1),
            [_, height, width, channels @ (1 | 3)] => (*height, *width, *channels),
            shape => {
                let message = format!("images of shape {shape:?}; n × h × w or n × h × w × 3 is needed");
                return Err(PyValueError::new_err(message));
            }
        };
        let pixels = array.as_slice()?.chunks_exact((height * width * channels).max(1));
        let picture = |pixels: &[u8]| Picture { width, height, channels, pixels: pixels.to_vec() };
        Ok(Pictures::Pixels(pixels.map(picture).collect()))
    }
}

/// Runs the method again and starts to serve its review.
#[pyfunction]
#[pyo3(signature = (x, labels, classes, settings, title, ids=None, images=None, texts=None, journal=None, port=0, full_runs=true, callback=None))]
#[allow(clippy::too_many_arguments)]
pub(crate) fn start_review(
    py: Python<'_>,
    x: (Float2<'_>, Float2<'_>),
    labels: PyReadonlyArray1<'_, u32>,
    classes: Vec<String>,
    settings: &Bound<'_, PyDict>,
    title: String,
    ids: Option<Vec<String>>,
    images: Option<Images<'_>>,
    texts: Option<Vec<String>>,
    journal: Option<PathBuf>,
    port: u16,
    full_runs: bool,
    callback: Option<Py<PyAny>>,
) -> PyResult<ReviewServer> {
    let parameters = settings::read(settings)?.check().map_err(exception)?;
    let columns = x.0.shape()[1];
    let parts = [x.0.as_slice()?, x.1.as_slice()?];
    let rows = (x.0.shape()[0] + x.1.shape()[0]) as i64;
    let labels = labels.as_slice()?;
    let looks = Looks::new(images.map(Images::read).transpose()?.unwrap_or_default(), texts);
    let server = watched(py, callback, |relay| {
        let features = gather(&parts, columns, &(0..rows).collect::<Vec<_>>())?;
        // The run is known by its data and settings.
        let settings = serde_json::to_vec(&parameters).unwrap_or_default();
        let rows = features.values().chunks(columns.max(1));
        let rows = rows.map(|row| row.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<u8>>());
        let classes_of_rows = labels.iter().map(|label| label.to_le_bytes().to_vec());
        let known_by = fingerprint(rows.chain(classes_of_rows).chain([settings]));
        let labels = Labels::from_ids(Classes::new(classes)?, labels.to_vec())?;
        let domains = Domains::stacked(features, labels.len(), labels)?;
        let layout = Layout::new(domains.features(), &parameters)?;
        let watcher = Watcher::new(&domains, &parameters, None);
        let task = Arc::new(Task {
            domains,
            parameters,
            graph: None,
            rows: None,
            ids,
            title,
            fingerprint: known_by,
        });
        let (journal, seed, events) = match journal {
            None => (None, Seed::random()?, Vec::new()),
            Some(path) => {
                let (journal, past) = Journal::open(&path, &task.fingerprint)?;
                (Some(journal), past.seed, past.events)
            }
        };
        let finished = FullRun::last(task.clone(), &events)?.go(&(relay, &watcher))?;
        let map = watcher.trace(&layout, finished.labelling(), None, task.ids.as_deref()).map;
        let session = Session::new(task, seed, &events, finished)?;
        let serving = Serving {
            looks,
            map: Some(map),
            port,
            in_frame: true,
            without_full_runs: !full_runs,
            ..Serving::default()
        };
        Server::start(Review::new(session, journal), serving)
    })?;
    let server = server.map_err(refused)?;
    Ok(ReviewServer { url: server.url(), server: Mutex::new(Some(server)) })
}

/// A review that is served.
#[pyclass(frozen)]
pub(crate) struct ReviewServer {
    #[pyo3(get)]
    url: String,
    server: Mutex<Option<Server>>,
}

impl ReviewServer {
    fn server(&self) -> MutexGuard<'_, Option<Server>> {
        self.server.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does something with the review, with the GIL released.
    fn with<R: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut Review) -> Result<R, ReviewError> + Send,
    ) -> PyResult<R> {
        py.detach(|| match &*self.server() {
            Some(server) => work(&mut server.review()).map_err(refused),
            None => Err(PyValueError::new_err("the review was stopped")),
        })
    }
}

type Labels2<'py> =
    (Bound<'py, PyArray1<i64>>, Bound<'py, PyArray1<f32>>, Vec<&'static str>, Vec<&'static str>, Vec<String>);

#[pymethods]
impl ReviewServer {
    /// Label numbers or -1, confidence, status and origin of the items, and the classes there are now.
    fn labels<'py>(&self, py: Python<'py>) -> PyResult<Labels2<'py>> {
        let (labels, origins, names) = self.with(py, |review| {
            let session = review.session();
            let labels = session.final_labels();
            let origins: Vec<&str> = (0..labels.len()).map(|item| session.origin(item).as_str()).collect();
            Ok((labels, origins, session.labelling().classes.names().to_vec()))
        })?;
        let numbers = labels.labels().iter().map(|label| label.map_or(-1, i64::from)).collect();
        let status = labels.status().iter().map(|status| status.as_str()).collect();
        Ok((
            PyArray1::from_vec(py, numbers),
            PyArray1::from_slice(py, labels.confidence()),
            status,
            origins,
            names,
        ))
    }

    /// What people said: row, class, and whether it was in the check.
    fn said(&self, py: Python<'_>) -> PyResult<Vec<(usize, String, bool)>> {
        self.with(py, |review| {
            let said = review.session().said().into_iter();
            Ok(said.map(|(item, name, origin)| (item, name.to_string(), origin == Origin::Checked)).collect())
        })
    }

    /// Gives labels to rows, or takes them back. Returns how many other labels changed.
    fn correct(&self, py: Python<'_>, labels: Vec<(u64, Option<String>)>) -> PyResult<usize> {
        self.with(py, |review| Ok(review.act(&Event::Correct { labels })?.changed.len()))
    }

    /// Takes the last action back.
    fn undo(&self, py: Python<'_>) -> PyResult<()> {
        self.with(py, |review| review.act(&Event::Undo).map(drop))
    }

    /// The rows most worth a click.
    fn doubtful(&self, py: Python<'_>, count: usize) -> PyResult<Vec<usize>> {
        self.with(py, |review| Ok(review.session().doubtful(count)))
    }

    /// The certificate, as JSON; null if nothing was answered in the check.
    fn certificate(&self, py: Python<'_>) -> PyResult<String> {
        let certificate = self.with(py, |review| {
            if review.session().answers().is_empty() {
                return Ok(None);
            }
            review.look()?;
            review.session_mut().certificate(None).map(Some)
        })?;
        json(&certificate)
    }

    /// Writes the labels, in the format that the ending names.
    fn export(&self, py: Python<'_>, path: PathBuf, force: bool, probabilities: bool) -> PyResult<()> {
        self.with(py, |review| {
            if !review.session().answers().is_empty() {
                review.look()?;
            }
            review.session_mut().write_labels(&path, force, probabilities, None)
        })
    }

    /// Ends the page.
    fn stop(&self, py: Python<'_>) {
        py.detach(|| drop(self.server().take()));
    }
}
