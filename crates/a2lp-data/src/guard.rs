//! Readers of other people stay behind this wall: should one panic over a damaged file, it is an error like any other.

#[cfg(any(feature = "tables", feature = "images", test))]
use crate::error::Problem;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::Once;

thread_local! {
    static GUARDED: Cell<bool> = const { Cell::new(false) };
}

/// Does some work; a panic in it becomes [`Problem::Damaged`] and prints nothing.
#[cfg(any(feature = "tables", feature = "images", test))]
pub(crate) fn guarded<T>(
    format: &'static str,
    work: impl FnOnce() -> Result<T, Problem>,
) -> Result<T, Problem> {
    without_panic(work).unwrap_or_else(|reason| Err(Problem::damaged(format, reason)))
}

/// Does some work that reads somebody's file; a panic in it prints nothing, and its message is the error.
pub fn without_panic<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let usual = take_hook();
        set_hook(Box::new(move |info| {
            if !GUARDED.get() {
                usual(info);
            }
        }));
    });
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_an_error() {
        let error = guarded::<()>("Parquet", || panic!("index {} out of range", 7)).unwrap_err();
        assert_eq!(error.to_string(), "damaged Parquet file: index 7 out of range");
        assert!(guarded("Parquet", || Ok(1)).is_ok());
    }
}
