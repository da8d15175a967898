//! Where workers are, and how messages come to them.

use crate::error::ShardError;
use crate::parts::Parts;
use crate::storage::Storage;
use crate::worker::Worker;
use std::path::PathBuf;
use std::sync::Arc;

/// Brings messages to workers.
pub trait Engine {
    /// Number of workers.
    fn workers(&self) -> usize;

    /// Gives the tasks to any workers, in any order, and returns the replies in the order of the tasks. Calls `done` with the number of
    /// finished tasks after each; an error of `done` ends it.
    fn tasks(
        &mut self,
        tasks: &[Vec<u8>],
        done: &mut dyn FnMut(usize) -> Result<(), ShardError>,
    ) -> Result<Vec<Vec<u8>>, ShardError>;

    /// Sends every worker the same step, with the parcels that workers sent each other in the step before. `wants_replies`: wait for
    /// them.
    fn step(&mut self, message: &[u8], wants_replies: bool) -> Result<Vec<Vec<u8>>, ShardError>;

    /// The same with a message of its own for every worker, and nothing in their way.
    fn start(&mut self, messages: &[Vec<u8>]) -> Result<Vec<Vec<u8>>, ShardError>;

    /// Replaces workers that were lost. How many there are may change.
    fn renew(&mut self) -> Result<(), ShardError>;
}

/// Workers in this process, one after the other.
pub struct LocalEngine {
    make: Box<dyn Fn() -> Result<Worker, ShardError>>,
    workers: Vec<Worker>,
    /// From every worker, to every worker.
    parcels: Vec<Vec<Vec<u8>>>,
}

impl LocalEngine {
    /// So many workers, each on all of `threads`.
    pub fn new(
        workers: usize,
        threads: usize,
        storage: Arc<dyn Storage>,
        parts: Arc<dyn Parts>,
        scratch: Option<PathBuf>,
    ) -> Result<Self, ShardError> {
        let make = move || Worker::new(storage.clone(), parts.clone(), threads, scratch.clone());
        let workers = (0..workers).map(|_| make()).collect::<Result<_, _>>()?;
        Ok(LocalEngine { make: Box::new(make), workers, parcels: Vec::new() })
    }

    fn send(&mut self, messages: &[&[u8]], parcels: &[Vec<Vec<u8>>]) -> Result<Vec<Vec<u8>>, ShardError> {
        let mut replies = Vec::with_capacity(self.workers.len());
        self.parcels.clear();
        for (at, (worker, message)) in self.workers.iter_mut().zip(messages).enumerate() {
            let own: Vec<&[u8]> = parcels.iter().map(|from| &from[at][..]).collect();
            let (reply, sent) = worker.handle(message, &own)?;
            replies.push(reply);
            self.parcels.push(sent);
        }
        Ok(replies)
    }
}

impl Engine for LocalEngine {
    fn workers(&self) -> usize {
        self.workers.len()
    }

    fn tasks(
        &mut self,
        tasks: &[Vec<u8>],
        done: &mut dyn FnMut(usize) -> Result<(), ShardError>,
    ) -> Result<Vec<Vec<u8>>, ShardError> {
        let count = self.workers.len();
        let mut replies = Vec::with_capacity(tasks.len());
        for (at, task) in tasks.iter().enumerate() {
            replies.push(self.workers[at % count].handle(task, &[])?.0);
            done(at + 1)?;
        }
        Ok(replies)
    }

    fn step(&mut self, message: &[u8], _: bool) -> Result<Vec<Vec<u8>>, ShardError> {
        let parcels = std::mem::take(&mut self.parcels);
        let messages = vec![message; self.workers.len()];
        self.send(&messages, &parcels)
    }

    fn start(&mut self, messages: &[Vec<u8>]) -> Result<Vec<Vec<u8>>, ShardError> {
        let messages: Vec<&[u8]> = messages.iter().map(Vec::as_slice).collect();
        self.send(&messages, &[])
    }

    fn renew(&mut self) -> Result<(), ShardError> {
        for worker in &mut self.workers {
            *worker = (self.make)()?;
        }
        Ok(())
    }
}
