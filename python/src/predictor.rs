//! Models that label points that come later.

use crate::watched::watched;
use crate::{Answers, Float2, answers, exception, settings};
use a2lp::{CheckedParameters, Classes, FeatureMatrix, Labels, Model, ModelParts};
use numpy::{PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray1, PyUntypedArrayMethods};
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// A model that labels points that come later.
#[pyclass(frozen)]
pub(crate) struct Predictor {
    pub(crate) model: Model,
    pub(crate) parameters: CheckedParameters,
}

type Parts<'py> =
    (Bound<'py, PyArray2<f32>>, Bound<'py, PyArray2<f32>>, usize, Bound<'py, PyArray2<f32>>, Vec<bool>);

#[pymethods]
impl Predictor {
    /// A model of labelled rows only.
    #[staticmethod]
    fn of_labelled(
        py: Python<'_>,
        x: Float2<'_>,
        labels: PyReadonlyArray1<'_, u32>,
        classes: Vec<String>,
        settings: &Bound<'_, PyDict>,
    ) -> PyResult<Self> {
        let parameters = settings::read(settings)?.check().map_err(exception)?;
        let (rows, columns) = (x.shape()[0], x.shape()[1]);
        let (values, ids) = (x.as_slice()?, labels.as_slice()?);
        let model = py.detach(|| {
            let features = FeatureMatrix::new(rows, columns, values.to_vec())?;
            Model::of_labelled(
                features,
                &Labels::from_ids(Classes::new(classes)?, ids.to_vec())?,
                &parameters,
            )
        });
        Ok(Predictor { model: model.map_err(exception)?, parameters })
    }

    /// (labels or -1, confidence, margin, status) of new rows, and their probabilities; all 0 where unreached.
    fn predict<'py>(
        &self,
        py: Python<'py>,
        x: Float2<'py>,
        settings: &Bound<'_, PyDict>,
    ) -> PyResult<(Answers<'py>, Bound<'py, PyArray2<f32>>)> {
        // Threads and the confidence asked for may have changed since.
        let parameters = settings::read(settings)?.check().map_err(exception)?;
        let (rows, columns) = (x.shape()[0], x.shape()[1]);
        let values = x.as_slice()?;
        let found = watched(py, None, |_| {
            self.model.predict(FeatureMatrix::new(rows, columns, values.to_vec())?, &parameters)
        })?;
        let found = found.map_err(exception)?;
        let mut probabilities = Vec::with_capacity(rows * self.model.classes());
        for row in 0..rows {
            let reached = found.labels()[row].is_some();
            probabilities.extend(found.probabilities(row).iter().map(|&p| if reached { p } else { 0.0 }));
        }
        let probabilities = PyArray1::from_vec(py, probabilities).reshape([rows, self.model.classes()])?;
        Ok((answers(py, &found), probabilities))
    }

    /// Probabilities of the nodes but anchors, in their order; a row of 0 where no label reaches.
    fn distributions<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<f32>>> {
        let nodes = self.model.base().rows();
        let values = (0..nodes).flat_map(|node| self.model.probabilities(node).iter().copied()).collect();
        PyArray1::from_vec(py, values).reshape([nodes, self.model.classes()])
    }

    #[getter]
    fn first_target(&self) -> usize {
        self.model.first_target()
    }

    /// What is in it, as arrays.
    fn parts<'py>(&self, py: Python<'py>) -> PyResult<Parts<'py>> {
        let ModelParts { base, anchors, first_target, probabilities, candidates } = self.model.parts();
        let matrix =
            |m: &FeatureMatrix| PyArray1::from_slice(py, m.values()).reshape([m.rows(), m.columns()]);
        let nodes = base.rows() + anchors.rows();
        let probabilities = PyArray1::from_vec(py, probabilities).reshape([nodes, candidates.len()])?;
        Ok((matrix(&base)?, matrix(&anchors)?, first_target, probabilities, candidates))
    }

    /// The opposite of `parts`.
    #[staticmethod]
    fn from_parts(
        base: Float2<'_>,
        anchors: Float2<'_>,
        first_target: usize,
        probabilities: Float2<'_>,
        candidates: Vec<bool>,
        settings: &Bound<'_, PyDict>,
    ) -> PyResult<Self> {
        let parameters = settings::read(settings)?.check().map_err(exception)?;
        let matrix = |m: &Float2<'_>| -> PyResult<FeatureMatrix> {
            FeatureMatrix::new(m.shape()[0], m.shape()[1], m.as_slice()?.to_vec()).map_err(exception)
        };
        let probabilities = probabilities.as_slice()?.to_vec();
        let parts = ModelParts {
            base: matrix(&base)?,
            anchors: matrix(&anchors)?,
            first_target,
            probabilities,
            candidates,
        };
        Ok(Predictor { model: Model::from_parts(parts).map_err(exception)?, parameters })
    }
}
