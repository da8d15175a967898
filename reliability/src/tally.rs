//! Counts of cases that passed and failed.

/// Cases tried so far.
#[derive(Default)]
pub(crate) struct Tally {
    passed: usize,
    failures: Vec<String>,
    notes: Vec<String>,
}

impl Tally {
    /// One more case; `wrong` says what is wrong with it, if anything.
    pub(crate) fn case(&mut self, name: impl std::fmt::Display, wrong: Result<(), String>) {
        match wrong {
            Ok(()) => self.passed += 1,
            Err(wrong) => self.failures.push(format!("{name}: {wrong}")),
        }
    }

    /// Many cases that passed.
    pub(crate) fn passed(&mut self, count: usize) {
        self.passed += count;
    }

    /// Something measured that belongs on the line.
    pub(crate) fn note(&mut self, note: impl std::fmt::Display) {
        self.notes.push(note.to_string());
    }

    /// Prints the line; failures go to standard error, notes go in brackets.
    pub(crate) fn report(self, name: &str, secs: f64) -> bool {
        let total = self.passed + self.failures.len();
        let word = if self.failures.is_empty() && total > 0 { "pass" } else { "FAIL" };
        let notes = [vec![format!("{secs:.0} s")], self.notes].concat().join("; ");
        println!("{name} {word} {}/{total} ({notes})", self.passed);
        for failure in self.failures.iter().take(20) {
            eprintln!("  {name}: {failure}");
        }
        word == "pass"
    }
}

/// Says what was expected and is not so.
pub(crate) fn expect(holds: bool, wrong: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(wrong()) }
}
