//! R2: every reader, many damaged files. Changes pile up: a changed file that fails in a new way is changed further.
//!
//! It runs on stable Rust without instrumentation; what stands for coverage is the text of the error, less its numbers.

use crate::Effort;
use crate::files::{self, Sample};
use crate::mutate::{Draws, mutate};
use crate::tally::Tally;
use std::collections::HashSet;
use std::panic::catch_unwind;
use std::time::Instant;

/// Most files kept of one target.
const MAX_KEPT: usize = 4000;
/// Largest file tried.
const MAX_BYTES: usize = 16 << 10;

pub(crate) fn check(effort: Effort) -> Tally {
    a2lp_cli::silence_caught_panics();
    let executions: usize = std::env::var("A2LP_FUZZ_EXECUTIONS")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(effort.of(40_000, 11_000_000));
    let mut tally = Tally::default();
    let targets = files::corpus();
    let each = executions.div_ceil(targets.len());
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let next = std::sync::atomic::AtomicUsize::new(0);
    let results = std::sync::Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..cores {
            scope.spawn(|| {
                while let Some(target) = targets.get(next.fetch_add(1, std::sync::atomic::Ordering::Relaxed))
                {
                    let result = fuzz(target, each, &targets);
                    results.lock().unwrap_or_else(|e| e.into_inner()).push((target.name.clone(), result));
                }
            });
        }
    });
    let (mut slowest, mut kinds) = (0f64, 0);
    for (name, result) in results.into_inner().unwrap_or_else(|e| e.into_inner()) {
        tally.passed(result.executions - result.failures.len());
        for failure in result.failures {
            tally.case(&name, Err(failure));
        }
        (slowest, kinds) = (slowest.max(result.slowest), kinds + result.kinds);
    }
    tally.note(format!("{} targets, {kinds} ways to fail, slowest {slowest:.2} s", targets.len()));
    tally
}

struct Fuzzed {
    executions: usize,
    failures: Vec<String>,
    slowest: f64,
    kinds: usize,
}

fn fuzz(target: &Sample, executions: usize, others: &[Sample]) -> Fuzzed {
    let folder = files::scratch();
    let path = folder.path().join(&target.name);
    let mut draws = Draws(target.name.bytes().fold(7, |sum, byte| sum * 31 + u64::from(byte)));
    let mut kept = vec![target.bytes.clone()];
    let mut seen = HashSet::new();
    let mut result = Fuzzed { executions: 0, failures: Vec::new(), slowest: 0.0, kinds: 0 };
    while result.executions < executions {
        let seed = &kept[draws.below(kept.len())];
        let other = &others[draws.below(others.len())].bytes;
        let bytes = mutate(seed, other, &mut draws);
        if bytes.len() > MAX_BYTES {
            continue;
        }
        std::fs::write(&path, &bytes).unwrap_or_else(|error| panic!("{error}"));
        result.executions += 1;
        let started = Instant::now();
        match catch_unwind(|| files::read(&path)) {
            Ok(outcome) => {
                let kind: String =
                    outcome.errors.join("|").chars().filter(|c| !c.is_ascii_digit()).take(400).collect();
                if seen.insert(kind) && kept.len() < MAX_KEPT {
                    kept.push(bytes);
                }
            }
            Err(_) => {
                let keep = std::env::temp_dir().join(format!("a2lp-crash-{}", target.name));
                std::fs::write(&keep, &bytes).ok();
                result.failures.push(format!("a panic; the file is {}", keep.display()));
            }
        }
        let secs = started.elapsed().as_secs_f64();
        if secs > 5.0 {
            result.failures.push(format!("took {secs:.1} s"));
        }
        result.slowest = result.slowest.max(secs);
    }
    result.kinds = seen.len();
    result
}
