//! Readers from other crates run behind this guard: a panic over a damaged file becomes an error.

#[cfg(any(feature = "tables", feature = "images", test))]
use crate::error::Problem;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};

thread_local! {
    static GUARDED: Cell<bool> = const { Cell::new(false) };
}

/// Does some work; a panic in it becomes [`Problem::Damaged`].
#[cfg(any(feature = "tables", feature = "images", test))]
pub(crate) fn guarded<T>(
    format: &'static str,
    work: impl FnOnce() -> Result<T, Problem>,
) -> Result<T, Problem> {
    without_panic(work).unwrap_or_else(|reason| Err(Problem::damaged(format, reason)))
}

/// Does some work that reads a file we do not trust; a panic in it becomes an error with its message.
///
/// The panic still runs the process's panic hook. A hook that should stay silent then can ask [`panic_is_caught`].
pub fn without_panic<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    let outer = GUARDED.replace(true);
    let result = catch_unwind(AssertUnwindSafe(work));
    GUARDED.set(outer);
    result.map_err(|panic| {
        let reason = panic
            .downcast_ref::<&str>()
            .map(|text| (*text).to_string())
            .or_else(|| panic.downcast_ref::<String>().cloned());
        reason.unwrap_or_else(|| "the reader gave up".into())
    })
}

/// Is this thread inside [`without_panic`]? For panic hooks of programs.
pub fn panic_is_caught() -> bool {
    GUARDED.get()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_an_error() {
        let error = guarded::<()>("Parquet", || {
            assert!(panic_is_caught());
            panic!("index {} out of range", 7)
        });
        assert_eq!(error.unwrap_err().to_string(), "damaged Parquet file: index 7 out of range");
        assert!(!panic_is_caught());
        assert!(guarded("Parquet", || Ok(1)).is_ok());
    }
}
