//! Networks in ONNX: run by ONNX Runtime where its library is on the machine, else by rten, which is part of the program.

mod library;
mod runtime;

use a2lp_data::without_panic;
use rten::ValueOrView;
use rten_tensor::prelude::*;
use runtime::Runtime;
use std::fmt;
use std::path::{Path, PathBuf};

/// Which program is to run ONNX models.
#[derive(Clone, Copy, Debug, Default)]
pub enum OnnxEngine<'a> {
    /// ONNX Runtime if a usable library is found, else rten.
    #[default]
    Found,
    /// ONNX Runtime from this library, and nothing else.
    Library(&'a Path),
    /// The one that is part of this program.
    Rten,
}

/// The program that runs a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OnnxRunner {
    /// The one that is part of this program.
    Rten,
    /// ONNX Runtime.
    Runtime {
        /// Its minor version: 1.x.
        version: u32,
        /// Its library.
        library: PathBuf,
    },
}

/// The name and version, without the place: what results depend on.
impl fmt::Display for OnnxRunner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OnnxRunner::Rten => f.write_str("rten"),
            OnnxRunner::Runtime { version, .. } => write!(f, "ONNX Runtime 1.{version}"),
        }
    }
}

/// A model with one input of images.
pub(crate) struct OnnxModel {
    engine: Engine,
    pub(crate) runner: OnnxRunner,
}

enum Engine {
    Rten(Box<rten::Model>),
    Runtime(Runtime),
}

impl OnnxModel {
    /// Opens a model; the error is a sentence about it.
    pub(crate) fn open(path: &Path, engine: OnnxEngine<'_>) -> Result<Self, String> {
        if !path.is_file() {
            return Err("no such file".into());
        }
        let library = match engine {
            OnnxEngine::Rten => None,
            OnnxEngine::Library(named) => Some(library::named(named)?),
            OnnxEngine::Found => library::find()?,
        };
        if let Some((library, version)) = library {
            let runtime = Runtime::open(path, &library)?;
            check_shape(runtime.inputs(), runtime.outputs())?;
            let runner = OnnxRunner::Runtime { version, library };
            return Ok(OnnxModel { engine: Engine::Runtime(runtime), runner });
        }
        let model = without_panic(|| rten::Model::load_file(path))
            .and_then(|loaded| loaded.map_err(|error| error.to_string()))?;
        check_shape(model.input_ids().len(), model.output_ids().len())?;
        Ok(OnnxModel { engine: Engine::Rten(Box::new(model)), runner: OnnxRunner::Rten })
    }

    /// The first output for `count` images of 3 × side × side, and its shape.
    pub(crate) fn run(
        &self,
        images: Vec<f32>,
        count: usize,
        side: usize,
    ) -> Result<(Vec<f32>, Vec<usize>), String> {
        match &self.engine {
            Engine::Runtime(runtime) => runtime.run(images, [count, 3, side, side]),
            Engine::Rten(model) => {
                let images = rten_tensor::Tensor::from_data(&[count, 3, side, side], images);
                let out = model.run_one(ValueOrView::from(images), None).map_err(|e| e.to_string())?;
                let out: rten_tensor::Tensor<f32> =
                    out.try_into().map_err(|_| "the output is not of float32".to_string())?;
                let shape = out.shape().to_vec();
                Ok((out.to_vec(), shape))
            }
        }
    }
}

fn check_shape(inputs: usize, outputs: usize) -> Result<(), String> {
    match (inputs, outputs) {
        (1, 1..) => Ok(()),
        (1, _) => Err("no output".into()),
        _ => Err(format!("{inputs} inputs; one, of images, is needed")),
    }
}
