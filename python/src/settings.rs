//! Settings from Python: scikit-learn's spelling, the crate's meaning.

use a2lp::{
    AnchorMode, AnchorSpace, AnchorWeights, GraphMethod, LabelWeight, Method, Parameters, Similarity, Solver,
    SourceNodes, Unreached,
};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// A parameter of the crate as Python users know it.
pub(crate) fn python_name(name: &str) -> String {
    match name {
        "neighbours" => "n_neighbors".into(),
        "rounds" => "n_rounds".into(),
        "tolerance" => "tol".into(),
        "max-iterations" => "max_iter".into(),
        other => other.replace('-', "_"),
    }
}

/// Reads a dictionary; what is missing keeps its default.
pub(crate) fn read(settings: &Bound<'_, PyDict>) -> PyResult<Parameters> {
    let mut p = Parameters::new();
    let (mut metric, mut sigma2) = (Similarity::Cosine, 1.0);
    for (name, value) in settings {
        let name: String = name.extract()?;
        p = match name.as_str() {
            "n_neighbors" => match value.extract::<String>() {
                Ok(word) if word == "all" => p.full_graph(),
                _ => p.neighbours(count(&name, &value)?),
            },
            "method" => p.method(word(&name, &value, Method::WORDS)?),
            "views" => p.views(count(&name, &value)?),
            "quality" => p.quality(value.is_truthy()?),
            "alpha" => p.alpha(number(&name, &value)?),
            "n_rounds" => p.rounds(count(&name, &value)?),
            "metric" => {
                metric = word(&name, &value, Similarity::WORDS)?;
                p
            }
            "gauss_sigma2" => {
                sigma2 = number(&name, &value)?;
                p
            }
            "min_confidence" => p.min_confidence(number(&name, &value)? as f32),
            "tol" => p.tolerance(number(&name, &value)?),
            "max_iter" => p.max_iterations(count(&name, &value)?),
            "k_includes_self" => p.k_includes_self(value.is_truthy()?),
            "stop_when_stable" => p.stop_when_stable(value.is_truthy()?),
            "random_state" => p.seed(if value.is_none() { 0 } else { count(&name, &value)? as u64 }),
            "n_jobs" => p.threads(threads(&value)?),
            "graph_method" => p.graph_method(word(&name, &value, GraphMethod::WORDS)?),
            "source_nodes" => p.source_nodes(word(&name, &value, SourceNodes::WORDS)?),
            "unreached" => p.unreached(word(&name, &value, Unreached::WORDS)?),
            "solver" => p.solver(word(&name, &value, Solver::WORDS)?),
            "anchor_weights" => p.anchor_weights(word(&name, &value, AnchorWeights::WORDS)?),
            "anchor_mode" => p.anchor_mode(word(&name, &value, AnchorMode::WORDS)?),
            "anchor_space" => p.anchor_space(word(&name, &value, AnchorSpace::WORDS)?),
            "label_weight" => p.label_weight(word(&name, &value, LabelWeight::WORDS)?),
            _ => return Err(PyTypeError::new_err(format!("unknown setting '{name}'"))),
        };
    }
    Ok(p.similarity(metric.with_sigma2(sigma2)))
}

fn wrong_type(name: &str, value: &Bound<'_, PyAny>, wanted: &str) -> PyErr {
    let given = value.repr().map_or_else(|_| "?".into(), |text| text.to_string());
    PyTypeError::new_err(format!("{name} = {given}: {wanted} is needed"))
}

fn number(name: &str, value: &Bound<'_, PyAny>) -> PyResult<f64> {
    value.extract().map_err(|_| wrong_type(name, value, "a number"))
}

fn count(name: &str, value: &Bound<'_, PyAny>) -> PyResult<usize> {
    match value.extract::<i64>() {
        Ok(number) => usize::try_from(number)
            .map_err(|_| PyValueError::new_err(format!("{name} = {number}: not below 0"))),
        Err(_) => Err(wrong_type(name, value, "a whole number")),
    }
}

/// joblib's convention: `None` and -1 are all cores, -2 all but one, and so on.
fn threads(value: &Bound<'_, PyAny>) -> PyResult<usize> {
    if value.is_none() {
        return Ok(0);
    }
    let jobs: i64 = value.extract().map_err(|_| wrong_type("n_jobs", value, "a whole number or None"))?;
    if jobs >= 0 {
        return Ok(jobs as usize);
    }
    let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get() as i64);
    Ok((cores + 1 + jobs).max(1) as usize)
}

fn word<T: Copy>(name: &str, value: &Bound<'_, PyAny>, words: &[(&str, T)]) -> PyResult<T> {
    let given: String = value.extract().map_err(|_| wrong_type(name, value, "a string"))?;
    words.iter().find(|(word, _)| *word == given).map(|(_, choice)| *choice).ok_or_else(|| {
        let choices: Vec<String> = words.iter().map(|(word, _)| format!("'{word}'")).collect();
        PyValueError::new_err(format!("{name} = {given:?}: one of {}", choices.join(", ")))
    })
}
