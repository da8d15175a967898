//! Counts the memory that is asked for, to see what a file makes a reader ask for.

#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// The system's allocator, with a tally.
pub(crate) struct Counting;

static HELD: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);

fn take(bytes: usize) {
    MOST.fetch_max(HELD.fetch_add(bytes, Relaxed) + bytes, Relaxed);
}

// SAFETY: every call is handed on to the system's allocator unchanged; the tally only counts.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        take(layout.size());
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        take(layout.size());
        // SAFETY: as the caller promises.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        HELD.fetch_sub(layout.size(), Relaxed);
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        // Grown in place, or moved page by page: the old and the new are not held at once.
        HELD.fetch_sub(layout.size(), Relaxed);
        take(bytes);
        // SAFETY: as the caller promises.
        unsafe { System.realloc(pointer, layout, bytes) }
    }
}

/// The most bytes held at a time during `work`, beyond those held before.
pub(crate) fn most_during<T>(work: impl FnOnce() -> T) -> (T, usize) {
    let before = HELD.load(Relaxed);
    MOST.store(before, Relaxed);
    let result = work();
    (result, MOST.load(Relaxed).saturating_sub(before))
}
