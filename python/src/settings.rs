//! Settings from Python: scikit-learn's spelling, the crate's meaning.

use a2lp::{Kind, Parameters, Value};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// A parameter of the crate as Python users know it.
pub(crate) fn python_name(name: &str) -> String {
    let known = Parameters::table().iter().find(|info| info.name == name);
    known.map_or_else(|| name.replace('-', "_"), |info| info.python.into())
}

/// Reads a dictionary; what is missing keeps its default.
pub(crate) fn read(settings: &Bound<'_, PyDict>) -> PyResult<Parameters> {
    let mut parameters = Parameters::new();
    for (name, value) in settings {
        let name: String = name.extract()?;
        let Some(info) = Parameters::table().iter().find(|info| info.python == name) else {
            return Err(PyTypeError::new_err(format!("unknown setting '{name}'")));
        };
        let text: String;
        let read = match (&info.kind, name.as_str()) {
            (_, "n_jobs") => Value::Count(threads(&value)?),
            (_, "random_state") if value.is_none() => Value::Count(0),
            (Kind::Flag, _) => Value::Flag(value.is_truthy()?),
            (Kind::Count, _) => Value::Count(count(&name, &value)?),
            (Kind::CountOr(word), _) => match value.extract::<String>() {
                Ok(given) if given == *word => Value::Word(word),
                _ => Value::Count(count(&name, &value)?),
            },
            (Kind::Number, _) => Value::Number(number(&name, &value)?),
            (Kind::Words(words), _) => {
                text = value.extract().map_err(|_| wrong_type(&name, &value, "a string"))?;
                if !words.contains(&text.as_str()) {
                    let words: Vec<String> = words.iter().map(|word| format!("'{word}'")).collect();
                    let message = format!("{name} = {text:?}: one of {}", words.join(", "));
                    return Err(PyValueError::new_err(message));
                }
                Value::Word(&text)
            }
            (Kind::Text, _) => {
                text = value.extract().map_err(|_| wrong_type(&name, &value, "a string"))?;
                Value::Word(&text)
            }
        };
        if !info.set(&mut parameters, read) {
            return Err(wrong_type(&name, &value, &info.wanted()));
        }
    }
    Ok(parameters)
}

/// Every parameter: its name, its default and what it is.
pub(crate) fn table() -> Vec<(&'static str, String, &'static str)> {
    Parameters::table()
        .iter()
        .map(|info| (info.python, info.default.clone().unwrap_or_default(), info.help.trim()))
        .collect()
}

fn wrong_type(name: &str, value: &Bound<'_, PyAny>, wanted: &str) -> PyErr {
    let given = value.repr().map_or_else(|_| "?".into(), |text| text.to_string());
    PyTypeError::new_err(format!("{name} = {given}: {wanted} is needed"))
}

fn number(name: &str, value: &Bound<'_, PyAny>) -> PyResult<f64> {
    value.extract().map_err(|_| wrong_type(name, value, "a number"))
}

fn count(name: &str, value: &Bound<'_, PyAny>) -> PyResult<u64> {
    match value.extract::<i64>() {
        Ok(number) => u64::try_from(number)
            .map_err(|_| PyValueError::new_err(format!("{name} = {number}: not below 0"))),
        Err(_) => Err(wrong_type(name, value, "a whole number")),
    }
}

/// joblib's convention: `None` and -1 are all cores, -2 all but one, and so on.
fn threads(value: &Bound<'_, PyAny>) -> PyResult<u64> {
    if value.is_none() {
        return Ok(0);
    }
    let jobs: i64 = value.extract().map_err(|_| wrong_type("n_jobs", value, "a whole number or None"))?;
    if jobs >= 0 {
        return Ok(jobs as u64);
    }
    let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get() as i64);
    Ok((cores + 1 + jobs).max(1) as u64)
}
