//! A few cases of every promise. The lines go where `make test` finds them.

use std::path::Path;
use std::process::Command;

#[test]
fn nothing_breaks_at_once() {
    let output = Command::new(env!("CARGO_BIN_EXE_reliability")).arg("quick").output().unwrap();
    let lines = String::from_utf8_lossy(&output.stdout).into_owned();
    let notes = Path::new(env!("CARGO_TARGET_TMPDIR")).join("reliability-quick");
    std::fs::write(notes, &lines).unwrap();
    assert!(output.status.success(), "{lines}{}", String::from_utf8_lossy(&output.stderr));
}
