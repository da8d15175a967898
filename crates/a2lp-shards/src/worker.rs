//! A worker: does tasks, and takes steps of the rounds.

use crate::error::ShardError;
use crate::job::{Job, names};
use crate::parts::Parts;
use crate::state::{Answer, Parcels, State, Step};
use crate::storage::Storage;
use crate::tasks::{Found, Task, TaskRunner, decode, encode};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::sync::Arc;

/// What a driver says to a worker.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Message {
    Task(Task),
    Step(Step),
}

/// What a worker says.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Reply {
    Found(Found),
    Answer(Answer),
}

/// A worker of a run.
pub struct Worker {
    runner: TaskRunner,
    state: Option<State>,
    pool: rayon::ThreadPool,
}

impl Worker {
    /// A worker for the run whose job is in the storage, on so many threads; 0 is one per core. `scratch` is a folder for temporary
    /// files.
    pub fn new(
        storage: Arc<dyn Storage>,
        parts: Arc<dyn Parts>,
        threads: usize,
        scratch: Option<PathBuf>,
    ) -> Result<Self, ShardError> {
        let job: Job = read_job(&*storage)?;
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
        let pool = pool.map_err(|error| ShardError::Broken(error.to_string()))?;
        Ok(Worker { runner: TaskRunner::new(Arc::new(job), storage, parts, scratch), state: None, pool })
    }

    /// Takes a message and the parcels of all workers from the step before. Returns the reply, and a parcel for every worker.
    pub fn handle(
        &mut self,
        message: &[u8],
        parcels: &[&[u8]],
    ) -> Result<(Vec<u8>, Vec<Vec<u8>>), ShardError> {
        let Worker { runner, state, pool } = self;
        pool.install(|| match decode(message)? {
            Message::Task(task) => Ok((encode(&Reply::Found(runner.run(&task)?)), Parcels::new())),
            Message::Step(step @ Step::Open { .. }) => {
                let (opened, answer, parcels) = State::open(runner, &step)?;
                *state = Some(opened);
                Ok((encode(&Reply::Answer(answer)), parcels))
            }
            Message::Step(step) => {
                let Some(state) = state else {
                    return Err(ShardError::Broken("a worker must be opened first".into()));
                };
                let (answer, parcels) = state.step(runner, &step, parcels)?;
                Ok((encode(&Reply::Answer(answer)), parcels))
            }
        })
    }
}

pub(crate) fn read_job(storage: &dyn Storage) -> Result<Job, ShardError> {
    let bytes: Vec<u8> = storage.read_all(names::JOB)?;
    serde_json::from_slice(&bytes).map_err(|error| ShardError::storage(names::JOB, error))
}
