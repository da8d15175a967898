//! Ctrl-C: the first asks the run to stop at the next block, the second ends the process.

use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

static FLAG: OnceLock<Arc<AtomicBool>> = OnceLock::new();

/// Starts listening for SIGINT and SIGTERM.
pub(crate) fn listen() -> std::io::Result<()> {
    let flag = FLAG.get_or_init(Default::default);
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        signal_hook::flag::register_conditional_shutdown(signal, 130, Arc::clone(flag))?;
        signal_hook::flag::register(signal, Arc::clone(flag))?;
    }
    Ok(())
}

/// Has the user asked to stop?
pub(crate) fn requested() -> bool {
    FLAG.get().is_some_and(|flag| flag.load(Ordering::Relaxed))
}

/// An observer that ends a run when Ctrl-C was pressed.
pub(crate) struct CtrlC;

impl a2lp::Observer for CtrlC {
    fn progress(&self, _: a2lp::Stage, _: u64, _: u64) -> std::ops::ControlFlow<()> {
        match requested() {
            true => std::ops::ControlFlow::Break(()),
            false => std::ops::ControlFlow::Continue(()),
        }
    }
}
