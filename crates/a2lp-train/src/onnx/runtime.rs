//! A model in ONNX Runtime, whose library is loaded when the first model is opened.

use ort::environment::Environment;
use ort::session::Session;
use ort::value::Tensor;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock};

/// A process has one runtime: the first library that was loaded stays.
static LOADED: OnceLock<Result<(PathBuf, Environment), String>> = OnceLock::new();

/// The minor version of a library, if it is one of ONNX Runtime that we can use.
pub(super) fn version_of(library: &Path) -> Option<u32> {
    ort::util::probe(library).filter(|&version| version >= ort::MINOR_VERSION)
}

fn environment(library: &Path) -> Result<&'static Environment, String> {
    let load = || {
        let builder = ort::init_from(library).map_err(|error| error.to_string())?;
        let environment =
            builder.with_telemetry(false).with_name("a2lp").build().map_err(|error| error.to_string())?;
        Ok((library.to_path_buf(), environment))
    };
    match LOADED.get_or_init(load) {
        Ok((loaded, environment)) if loaded == library => Ok(environment),
        Ok((loaded, _)) => Err(format!(
            "ONNX Runtime was loaded from {} before; a process cannot load another",
            loaded.display()
        )),
        Err(message) => Err(message.clone()),
    }
}

/// A model that ONNX Runtime has opened.
pub(super) struct Runtime(Mutex<Session>);

impl Runtime {
    pub(super) fn open(model: &Path, library: &Path) -> Result<Self, String> {
        let environment = environment(library)?;
        let session = Session::builder(environment)
            .map_err(|error| error.to_string())?
            .with_intra_threads(rayon::current_num_threads())
            .map_err(|error| error.to_string())?
            .commit_from_file(model)
            .map_err(|error| error.to_string())?;
        Ok(Runtime(Mutex::new(session)))
    }

    fn session(&self) -> std::sync::MutexGuard<'_, Session> {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    pub(super) fn inputs(&self) -> usize {
        self.session().inputs().len()
    }

    pub(super) fn outputs(&self) -> usize {
        self.session().outputs().len()
    }

    /// The first output and its shape.
    pub(super) fn run(&self, values: Vec<f32>, shape: [usize; 4]) -> Result<(Vec<f32>, Vec<usize>), String> {
        let input = Tensor::from_array((shape, values)).map_err(|error| error.to_string())?;
        let mut session = self.session();
        let outputs = session.run(ort::inputs![input]).map_err(|error| error.to_string())?;
        let (shape, values) =
            outputs[0].try_extract_tensor::<f32>().map_err(|_| "the output is not of float32".to_string())?;
        Ok((values.to_vec(), shape.iter().map(|&size| size as usize).collect()))
    }
}
