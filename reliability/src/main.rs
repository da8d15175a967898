//! `reliability [quick] [r1 … r15]`: one line per promise, `R3 pass 412/412`. See docs/reliability.md for the promises.
//!
//! Without a name all are tried. `quick` tries few cases of each, in about a minute; without it, it takes about three quarters of an hour.

mod allocations;
mod commands;
mod files;
mod mutate;
mod r10_warnings;
mod r11_archives;
mod r15_review;
mod r1_malformed;
mod r2_fuzzing;
mod r3_values;
mod r4_degenerate;
mod r5_threads;
mod r6_memory;
mod r7_interrupts;
mod r8_write_faults;
mod r9_changes;
mod tally;

use tally::Tally;

#[global_allocator]
static ALLOCATIONS: allocations::Counting = allocations::Counting;

/// How much is tried.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Effort {
    Quick,
    Full,
}

impl Effort {
    pub(crate) fn of<T>(self, quick: T, full: T) -> T {
        if self == Effort::Quick { quick } else { full }
    }
}

type Check = (&'static str, fn(Effort) -> Tally);

const CHECKS: [Check; 12] = [
    ("R1", r1_malformed::check),
    ("R2", r2_fuzzing::check),
    ("R3", r3_values::check),
    ("R4", r4_degenerate::check),
    ("R5", r5_threads::check),
    ("R6", r6_memory::check),
    ("R7", r7_interrupts::check),
    ("R8", r8_write_faults::check),
    ("R9", r9_changes::check),
    ("R10", r10_warnings::check),
    ("R11", r11_archives::check),
    // R12 to R14 are kept for promises to come.
    ("R15", r15_review::check),
];

fn main() -> std::process::ExitCode {
    let words: Vec<String> = std::env::args().skip(1).map(|word| word.to_uppercase()).collect();
    let effort = if words.iter().any(|word| word == "QUICK") { Effort::Quick } else { Effort::Full };
    let named: Vec<&String> = words.iter().filter(|word| *word != "QUICK").collect();
    if let Some(unknown) = named.iter().find(|word| CHECKS.iter().all(|(name, _)| name != *word)) {
        eprintln!("there is no {unknown}; there are R1 to R11 and R15");
        return 2.into();
    }
    let mut all_passed = true;
    for (name, check) in CHECKS {
        if named.is_empty() || named.iter().any(|word| *word == name) {
            let started = std::time::Instant::now();
            let tally = check(effort);
            all_passed &= tally.report(name, started.elapsed().as_secs_f64());
        }
    }
    u8::from(!all_passed).into()
}
