//! Work on another thread while this one lets Python breathe: signals, and the progress callback.

use a2lp::{Observer, Stage};
use pyo3::prelude::*;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex};
use std::time::Duration;

/// How long Python waits between looks.
const PATIENCE: Duration = Duration::from_millis(50);

#[derive(Default)]
struct Relay {
    cancelled: AtomicBool,
    progress: Mutex<Option<(Stage, u64, u64)>>,
}

impl Observer for Relay {
    fn progress(&self, stage: Stage, done: u64, total: u64) -> ControlFlow<()> {
        // A worker that finds it busy has better things to do.
        if let Ok(mut progress) = self.progress.try_lock() {
            *progress = Some((stage, done, total));
        }
        match self.cancelled.load(Ordering::Relaxed) {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    }
}

/// Sets the flag also when the work panics.
struct Finish<'a>(&'a (Mutex<bool>, Condvar));

impl Drop for Finish<'_> {
    fn drop(&mut self) {
        *self.0.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner()) = true;
        self.0.1.notify_all();
    }
}

/// Does `work` with the GIL released. Ctrl-C and exceptions of the callback end it within a block of work.
pub(crate) fn watched<R: Send>(
    py: Python<'_>,
    callback: Option<Py<PyAny>>,
    work: impl FnOnce(&dyn Observer) -> R + Send,
) -> PyResult<R> {
    let relay = Relay::default();
    let finished = (Mutex::new(false), Condvar::new());
    std::thread::scope(|scope| {
        let worker = scope.spawn(|| {
            let _finish = Finish(&finished);
            work(&relay)
        });
        let mut raised: Option<PyErr> = None;
        loop {
            let done = py.detach(|| {
                let guard = finished.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
                let waited = finished.1.wait_timeout_while(guard, PATIENCE, |done| !*done);
                *waited.unwrap_or_else(|poisoned| poisoned.into_inner()).0
            });
            if raised.is_none() {
                let told = py.check_signals().and_then(|()| report_progress(py, callback.as_ref(), &relay));
                if let Err(error) = told {
                    relay.cancelled.store(true, Ordering::Relaxed);
                    raised = Some(error);
                }
            }
            if done {
                break;
            }
        }
        let result = worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        raised.map_or(Ok(result), Err)
    })
}

fn report_progress(py: Python<'_>, callback: Option<&Py<PyAny>>, relay: &Relay) -> PyResult<()> {
    let Some(callback) = callback else { return Ok(()) };
    let progress = relay.progress.lock().ok().and_then(|mut progress| progress.take());
    let Some((stage, done, total)) = progress else { return Ok(()) };
    let stage = match stage {
        Stage::Neighbours => "neighbors",
        _ => "rounds",
    };
    callback.call1(py, (stage, done, total)).map(drop)
}
